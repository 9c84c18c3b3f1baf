"""What a small ONNX file may make of itself: memory and time have limits, and each has its name."""

import time
from pathlib import Path
from random import Random

import numpy as np
import pytest
from onnx import AttributeProto, helper, numpy_helper

pytest.importorskip("resource")

from dmlsplit.checking.files import check_files
from dmlsplit.formats import limits
from dmlsplit.formats import onnx as front_end
from dmlsplit.formats.limits import Limit
from dmlsplit.system.errors import InputError
from tests.formats.onnx_subprocess import read_alone
from tests.formats.split_nodes import read_one, rules
from tests.models import BOOL, INT64, graph, ints, model, node, value, with_reference

EXAMPLES = Path(__file__).parents[2] / "examples"
INPUTS = [value("x", [4, 6])]
SPLIT = node("Split", ["x"], ["a", "b"], num_outputs=2, name="s")
MEGABYTES = 500 << 20


def function(name, made, attributes=(), inputs=("x",), **fields):
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)]
    return helper.make_function("d", name, list(inputs), ["a"], made, imports, list(attributes), **fields)


def call(called, outputs=("a",), inputs=("x",), **fields):
    return node(called, list(inputs), list(outputs), domain="d", **fields)


def calling(functions, *calls, **fields):
    return model(calls or [call("f0", ["o"])], INPUTS, functions=functions, domains=["d"], **fields)


def referring(op, output, attribute, reference):
    return with_reference(node(op, [], [output]), attribute, reference, AttributeProto.GRAPH)


def doubling(last, depth=24):
    """Functions each of which hands its graph on twice; the last does `last` with it."""
    made = []
    for k in range(depth):
        twice = graph([referring("Foo", f"z{i}", "g", "A") for i in range(2)], [], [])
        made.append(function(f"f{k}", [call(f"f{k + 1}", A=twice)], ["A"]))
    made.append(function(f"f{depth}", last, ["A"]))
    return calling(made, call("f0", ["o"], A=graph([node("Foo", [], ["w"])], [], [])))


def refused(path, made, limit):
    """The file is refused for the limit, in few bytes."""
    answer, memory = read_alone(path / "m.onnx", made)
    assert f"beyond the limit {limit.name}: " in answer
    assert memory < MEGABYTES


class TestFunctions:
    @pytest.mark.slow
    def test_that_double_a_graph_at_each_call(self, tmp_path):
        refused(tmp_path, doubling([SPLIT]), Limit.ONNX_COPIED)

    def test_that_double_a_graph_without_a_split_are_not_followed(self, tmp_path):
        made = doubling([referring("If", "a", "then_branch", "A")], 40)
        made.graph.node.append(node("Split", ["o"], ["b"], num_outputs=1))
        answer, memory = read_alone(tmp_path / "m.onnx", made)
        assert answer == "1 splits"
        assert memory < MEGABYTES

    @pytest.mark.slow
    def test_that_double_by_a_default(self, tmp_path):
        made = doubling([SPLIT])
        del made.graph.node[0].attribute[:], made.functions[0].attribute[:]
        made.functions[0].attribute_proto.append(helper.make_attribute("A", graph([node("Foo", [], ["w"])], [], [])))
        refused(tmp_path, made, Limit.ONNX_COPIED)

    @pytest.mark.slow
    def test_that_double_their_calls(self, tmp_path):
        made = [function(f"f{k}", [call(f"f{k + 1}", ["t"]), call(f"f{k + 1}")]) for k in range(30)]
        answer, memory = read_alone(tmp_path / "m.onnx", calling([*made, function("f30", [SPLIT])]))
        assert "are called more than 1000 times" in answer
        assert memory < MEGABYTES

    def test_that_are_copied_with_long_names(self, tmp_path):
        named = node("Relu", ["x"], ["y"], name="n" * 16_000)
        made = calling([function("f0", [named] * 100 + [SPLIT])], *[call("f0", [f"o{i}"]) for i in range(900)])
        refused(tmp_path, made, Limit.ONNX_COPIED)

    def test_that_get_a_large_constant_often(self, tmp_path):
        formals = [f"k{i}" for i in range(900)]
        large = numpy_helper.from_array(np.ones(1 << 16, np.int8), "l")
        constant = node("Cast", ["l"], ["c"], to=INT64)
        calls = [call("f0", [f"o{i}"], ["x", *["c"] * 900]) for i in range(9)]
        made = calling([function("f0", [SPLIT], inputs=["x", *formals])], constant, *calls, initializers=[large])
        refused(tmp_path, made, Limit.ONNX_COPIED)

    def test_that_are_deep_in_graphs_which_are_deep_in_functions(self, tmp_path):
        def nested(made):
            for i in range(20):
                made = [node("If", ["c"], [f"y{i}"], then_branch=graph(made, [], []))]
            return made

        made = [function(f"f{k}", nested([call(f"f{k + 1}")])) for k in range(30)]
        refused(tmp_path, calling([*made, function("f30", [SPLIT])]), Limit.ONNX_DEPTH)

    def test_that_deepen_a_graph_at_each_call(self):
        made = []
        for k in range(30):
            inner = [referring("If", "z", "then_branch", "A")]
            for i in range(20):
                inner = [node("If", ["c"], [f"y{i}"], then_branch=graph(inner, [], []))]
            made.append(function(f"f{k}", [call(f"f{k + 1}", A=graph(inner, [], []))], ["A"]))
        made.append(function("f30", [referring("If", "z", "then_branch", "A"), SPLIT], ["A"]))
        with pytest.raises(InputError, match="nested too deeply"):
            front_end.read(calling(made, call("f0", ["o"], A=graph([node("Foo", [], ["w"])], [], []))))

    def test_that_are_useful_are_read(self):
        made = [function("f0", [SPLIT])]
        calls = [call("f0", [f"o{i}"], name=f"c{i}") for i in range(900)]
        found = front_end.read(calling(made, *calls))
        assert [split.path for split in found] == [f"c{i}/s" for i in range(900)]

    def test_share_the_time_of_one_inference(self, monkeypatch):
        from dmlsplit.models import inference

        asked = []

        def hang(process, request):
            asked.append(request)
            process.wait()

        monkeypatch.setattr(inference, "TIMEOUT", 0.5)
        monkeypatch.setattr(inference._worker, "_ask", hang)
        relu = [node("Relu", ["x"], ["y"]), node("Split", ["y"], ["a", "b"], num_outputs=2)]
        found = front_end.read(calling([function("f0", relu)], *[call("f0", [f"o{i}"]) for i in range(50)]))
        assert len(found) == 50
        assert all("did not end within" in split.report.diagnostics[0].message for split in found)
        assert len(asked) == 1


class TestReferences:
    def test_to_the_attribute_itself(self, tmp_path):
        inner = graph([referring("If", "z", "then_branch", "A")], [], [])
        made = [function("f0", [referring("If", "y", "then_branch", "A"), SPLIT], ["A"])]
        circle = calling(made, call("f0", ["o"], A=inner))
        with pytest.raises(
            InputError, match="attribute 'then_branch' refers to attribute 'A' of a function, but is not in a function"
        ):
            front_end.read(circle)
        (tmp_path / "m.onnx").write_bytes(circle.SerializeToString())
        wrong, *right = check_files([tmp_path / "m.onnx", EXAMPLES / "split.json"])
        assert "is not in a function" in wrong.errors[0].message
        assert [report.ok for report in right] == [True, True]

    def test_of_a_default_to_itself(self):
        inner = helper.make_attribute("A", graph([referring("If", "z", "then_branch", "A")], [], []))
        made = [function("f0", [referring("If", "y", "then_branch", "A"), SPLIT], attribute_protos=[inner])]
        with pytest.raises(InputError, match="is not in a function"):
            front_end.read(calling(made))

    def test_of_one_name_through_functions_are_each_their_own(self):
        handed = graph([referring("If", "z", "then_branch", "A")], [], [])
        made = [
            function("f0", [call("f1", A=handed)], ["A"]),
            function("f1", [call("f2", A=handed)], ["A"]),
            function("f2", [referring("If", "y", "then_branch", "A"), SPLIT], ["A"]),
        ]
        given = graph([node("Foo", [], ["w"])], [], [])
        [split] = front_end.read(calling(made, call("f0", ["o"], A=given)))
        assert (split.path, split.lengths) == ("o/a/a/s", (2, 2))

    def test_that_the_call_leaves_out_are_left_out(self):
        made = [function("f0", [with_reference(node("Split", ["x"], ["a", "b"], num_outputs=2), "axis", "ax")], ["ax"])]
        assert front_end.read(calling(made))[0].axis == 0


class TestNames:
    def test_of_calls_in_a_function_that_is_called_often(self, tmp_path):
        inner = function("g", [SPLIT])
        outer = function("f0", [call("g", name="n" * 10_000_000)])
        refused(tmp_path, calling([inner, outer], *[call("f0", [f"o{i}"]) for i in range(400)]), Limit.ONNX_NAME)

    def test_of_sizes_that_the_inference_hands_on(self, tmp_path):
        chain = [node("Relu", ["x" if i == 0 else f"r{i - 1}"], [f"r{i}"]) for i in range(400)]
        made = model([*chain, node("Split", ["r399"], ["a", "b"], num_outputs=2)], [value("x", ["s" * 10_000_000, 6])])
        refused(tmp_path, made, Limit.ONNX_NAME)

    def test_of_graphs_in_graphs_are_shortened_in_the_middle(self):
        made = [SPLIT]
        for i in range(20):
            made = [node("If", ["c"], [f"y{i}"], name=f"{i}" * 300, then_branch=graph(made, [], []))]
        [split] = front_end.read(model(made, [*INPUTS, value("c", [], BOOL)]))
        assert len(split.graph) <= Limit.ONNX_PATH.most + 3
        assert split.path.startswith("1919")
        assert split.path.endswith("then_branch/s")

    def test_of_documentation_have_none(self):
        made = model([SPLIT], INPUTS)
        made.graph.doc_string = made.graph.node[0].doc_string = "d" * 100_000
        made.graph.node[0].metadata_props.add(key="k", value="v" * 100_000)
        assert front_end.read(made)[0].report.ok


def field(number, content):
    """The bytes of a length-delimited field."""
    length, encoded = len(content), bytearray()
    while length >= 128:
        encoded.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 & 127 | 2 | (128 if number > 15 else 0)]) + (
        bytes([number >> 4]) if number > 15 else b""
    ) + bytes(encoded) + bytes([length]) + content  # fmt: skip


class TestMessages:
    GRAPH, NODE, ATTRIBUTE, TENSOR, FUNCTION = 7, 1, 5, 5, 25

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(field(GRAPH, field(NODE, b"") * 2_000_000), id="nodes"),
            *(
                pytest.param(content, id=name, marks=pytest.mark.slow)
                for name, content in {
                    "attributes": field(GRAPH, field(NODE, field(ATTRIBUTE, b"") * 2_000_000)),
                    "tensors": field(GRAPH, field(TENSOR, b"") * 2_000_000),
                    "functions": field(FUNCTION, b"") * 2_000_000,
                }.items()
            ),
            pytest.param(
                field(GRAPH, field(NODE, field(ATTRIBUTE, field(6, field(NODE, b"") * 2_000_000)))),
                id="nodes of a subgraph",
            ),
        ],
    )
    def test_of_two_bytes(self, tmp_path, content):
        refused(tmp_path, model([SPLIT], INPUTS).SerializeToString() + content, Limit.ONNX_MESSAGES)

    def test_as_many_as_a_large_model_has(self, monkeypatch):
        from dmlsplit.formats.onnx import wire

        made = model([node("Relu", ["x"], ["y"], name="some name")] * 100 + [SPLIT], INPUTS, doc_string="d" * 300)
        data = made.SerializeToString()
        found = []
        monkeypatch.setattr(wire.LimitError, "__init__", lambda *_: found.append(True))
        wire._count(data, _messages(made))
        assert not found
        with pytest.raises(wire.LimitError):
            wire._count(data, _messages(made) - 1)

    @pytest.mark.parametrize("cut", [1, 2, 3, 30])
    def test_of_a_file_that_ends_too_early(self, cut, monkeypatch):
        from dmlsplit.formats.onnx import wire

        monkeypatch.setattr(wire.Limit.ONNX_MESSAGES, "most", 0)
        monkeypatch.setattr(wire.Limit.ONNX_MESSAGES, "a_byte", 1 / 4)
        wire.check_messages(model([SPLIT], INPUTS).SerializeToString()[:-cut])

    @pytest.mark.parametrize(
        "number",
        [
            b"\x08\x08",
            b"\xa0\x06\xff\x01",
            b"\xa3\x06\xa4\x06",
            b"\x0b\x0c",
            b"\x0d\xff\xff\xff\xff",
            b"\x09" + b"\n" * 8,
        ],
        ids=["varint", "long key", "group", "short group", "32 bits", "64 bits"],
    )
    def test_numbers_and_groups_are_skipped_at_once(self, number):
        """A field took a microsecond: a file of 2 GB of them took half an hour."""
        from dmlsplit.formats.onnx import wire

        made = model([SPLIT], INPUTS)
        data, start = number * 3_000_000 + made.SerializeToString(), time.process_time()
        wire._count(data, _messages(made))
        assert time.process_time() - start < 1.5
        with pytest.raises(wire.LimitError):
            wire._count(data, _messages(made) - 1)

    @pytest.mark.parametrize("content", [field(100, b""), field(2, b"a")], ids=["unknown", "texts"])
    def test_fields_that_are_no_messages_are_counted(self, content, monkeypatch):
        from dmlsplit.formats.onnx import wire

        monkeypatch.setattr(Limit.ONNX_FIELDS, "most", 600_000)
        data = model([SPLIT], INPUTS).SerializeToString()
        wire.check_messages(data + content * 599_000)
        with pytest.raises(wire.LimitError, match=r"^beyond the limit ONNX_FIELDS: 600000 fields"):
            wire.check_messages(data + content * 600_000)

    @pytest.mark.parametrize("seed", range(20))
    def test_the_messages_of_any_bytes_are_counted(self, seed):
        from dmlsplit.formats.onnx import wire

        random = Random(seed)
        data = b"".join(
            random.choice(
                (field(7, b"\x0a\x00" * random.randrange(3)), field(20, b""), field(1, b"x"), b"\x08\x96\x01")
            )
            + random.choice((b"", b"\xa5\x06abcd", b"\x11" + bytes(8), b"\x0b", b"\x84\x07", b"\x88\x80\x01\x7f"))
            for _ in range(200)
        )
        counted = _of_bytes(data, wire._fields())
        wire._count(data, counted)
        with pytest.raises(wire.LimitError):
            wire._count(data, counted - 1)


def _of_bytes(data, fields):
    """The messages in bytes, field by field."""
    found, place = 0, 0

    def varint():
        nonlocal place
        number = shift = 0
        while True:
            byte = data[place]
            place += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while place < len(data):
        key = varint()
        match key & 7:
            case 0:
                varint()
            case 1:
                place += 8
            case 2:
                length = varint()
                inside = fields.get(key >> 3)
                if inside is not None:
                    found += 1 + _of_bytes(data[place : place + length], inside)
                place += length
            case 5:
                place += 4
    return found


def _messages(message):
    found = 0
    for descriptor, child in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE and descriptor.message_type.name != "TypeProto":
            children = [child] if hasattr(child, "ListFields") else child
            found += sum(1 + _messages(part) for part in children)
    return found


class TestShapes:
    @pytest.mark.parametrize("made", [
        lambda: model([SPLIT], [value("x", [1] * 65)]),
        lambda: model([SPLIT], INPUTS, value_info=[value("y", [1] * 65)]),
        lambda: model([SPLIT], INPUTS, initializers=[helper.make_tensor("y", INT64, [1] * 65, [0])]),
        lambda: model([node("Reshape", ["x", "s"], ["y"]), node("Split", ["y"], ["a"], num_outputs=1)], INPUTS,
                      initializers=[ints("s", 24, *[1] * 64)]),
    ], ids=["of the input", "of another value", "of an initializer", "inferred"])  # fmt: skip
    def test_of_many_dimensions(self, made):
        with pytest.raises(InputError, match="64 dimensions"):
            front_end.read(made())

    def test_of_as_many_dimensions_as_numpy_has(self):
        assert read_one([node("Split", ["x"], ["a"], num_outputs=1)], [value("x", [1] * 64)]).report.ok

    @pytest.mark.slow
    def test_that_inference_makes_of_nothing(self, tmp_path):
        chain = [node("Relu", [f"r{i}"], [f"r{i + 1}"]) for i in range(3000)]
        large = numpy_helper.from_array(np.ones(60_000, np.int64), "s")
        last = node("Split", ["r3000"], ["a"], num_outputs=1)
        made = model([node("Reshape", ["x", "s"], ["r0"]), *chain, last], INPUTS, initializers=[large])
        answer, memory = read_alone(tmp_path / "m.onnx", made)
        assert answer == "1 splits"
        assert memory < 2 * Limit.ONNX_INFERENCE_MEMORY.of(1 << 20)


class TestLengths:
    LARGE = numpy_helper.from_array(np.full(1 << 16, -1, np.int64), "l")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "large", [LARGE, numpy_helper.from_array(np.full(1 << 16, 0.5, np.float32), "l")], ids=["negative", "broken"]
    )
    def test_shared_by_many_splits(self, tmp_path, large):
        made = model([node("Split", ["x", "l"], ["a", "b"])] * 100, INPUTS, initializers=[large], opset=1)
        refused(tmp_path, made, Limit.ONNX_PARTS)

    def test_counted_by_many_splits(self, tmp_path):
        refused(tmp_path, model([node("Split", ["x"], ["a"], num_outputs=1 << 16)] * 1000, INPUTS), Limit.ONNX_PARTS)

    def test_of_one_split_are_told(self):
        split = read_one([node("Split", ["x", "l"], ["a", "b"])], INPUTS, initializers=[ints("l", 1, 2, 3)])
        assert "onnx/split-count" in rules(split)

    def test_folded_from_one_large_constant(self, tmp_path):
        added = [node("Neg", ["l"], [f"l{i}"]) for i in range(100)]
        sums = [node("ReduceSum", [f"l{i}"], [f"s{i}"]) for i in range(100)]
        splits = [node("Split", ["x", f"s{i}"], ["a"]) for i in range(100)]
        refused(tmp_path, model([*added, *sums, *splits], INPUTS, initializers=[self.LARGE]), Limit.ONNX_ALL_ELEMENTS)

    def test_of_outputs_without_a_name(self, tmp_path):
        refused(tmp_path, model([node("Split", ["x"], [""] * (1 << 16))] * 10, INPUTS), Limit.ONNX_PARTS)

    @pytest.mark.slow
    def test_of_more_inputs_than_can_be_multiplied(self, tmp_path):
        # A product of all their sizes would have as many digits as there are inputs.
        made = [node("Concat", ["l"] * 200_000, ["k"], axis=0), node("Split", ["x", "k"], ["a", "b"])]
        answer, memory = read_alone(tmp_path / "m.onnx", model(made, INPUTS, initializers=[ints("l", *[1] * 100)]))
        assert "beyond the limit ONNX_ALL_ELEMENTS" in answer
        assert memory < 2 * Limit.ONNX_INFERENCE_MEMORY.of(4 << 20)

    @pytest.mark.slow
    def test_of_a_shape_of_more_sizes_than_can_be_multiplied(self, tmp_path):
        large = numpy_helper.from_array(np.full(1 << 16, 2**62, np.int64), "l")
        filled = [node("ConstantOfShape", ["l"], [f"k{i}"]) for i in range(60)]
        splits = [node("Split", ["x", f"k{i}"], ["a", "b"]) for i in range(60)]
        answer, memory = read_alone(tmp_path / "m.onnx", model([*filled, *splits], INPUTS, initializers=[large]))
        assert answer == "60 splits"
        assert memory < 3 * MEGABYTES

    def test_folded_by_many_nodes(self, monkeypatch):
        monkeypatch.setattr(Limit.ONNX_FOLDED, "most", 10)
        made = [node("Neg", ["l"], ["l0"]), *[node("Neg", [f"l{i}"], [f"l{i + 1}"]) for i in range(10)]]
        with pytest.raises(InputError, match="ONNX_FOLDED"):
            read_one([*made, node("Split", ["x", "l10"], ["a", "b"])], INPUTS, initializers=[ints("l", 2, 2)])


@pytest.mark.slow
def test_memory_of_the_inference_is_limited(tmp_path):
    size = "s" * 16_000
    chain = [node("Relu", [f"r{i}"], [f"r{i + 1}"]) for i in range(30_000)]
    last = node("Split", ["r30000"], ["a"], num_outputs=1)
    made = model([*chain, last], [value("r0", [f"{i}{size}" for i in range(9)])])
    answer, memory = read_alone(tmp_path / "m.onnx", made)
    assert answer == "1 splits"
    assert memory < 2 * Limit.ONNX_INFERENCE_MEMORY.of(1 << 20)


def test_an_answer_of_the_inference_is_limited(monkeypatch):
    monkeypatch.setattr(Limit.ONNX_INFERENCE_ANSWER, "most", 10)
    monkeypatch.setattr(Limit.ONNX_INFERENCE_ANSWER, "a_byte", 0)
    made = [node("Relu", ["x"], ["y"]), node("Split", ["y"], ["a", "b"], num_outputs=2)]
    split = read_one(made, INPUTS)
    assert "which is more than allowed" in split.report.diagnostics[0].message
    monkeypatch.undo()
    assert read_one(made, INPUTS).lengths == (2, 2)


def test_many_domains_of_many_functions_are_imported_where_they_are_used():
    from dmlsplit.models.functions import Functions
    from dmlsplit.models.inference import make_harmless

    made = calling([function(f"f{i}", [node("Foo", ["x"], ["a"], domain=f"q{i}")]) for i in range(50)])
    make_harmless(made, Functions(made.functions, limits.Budget(0)))
    assert [len(f.opset_import) for f in made.functions] == [3] * 50
    assert {entry.domain for entry in made.opset_import} == {"", "d", "ai.onnx.preview.training"}
