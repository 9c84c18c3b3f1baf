"""ONNX models of several parts: functions, graphs inside graphs, data beside the model."""

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dmlsplit.formats import onnx as front_end
from dmlsplit.system.errors import InputError
from tests.formats.split_nodes import rules, splits
from tests.models import BOOL, EQUAL, FLOAT, INT64, graph, ints, model, node, value, with_reference


class TestExternalData:
    def lengths(self, location, **entries):
        tensor = TensorProto(name="l", data_type=INT64, dims=[2], data_location=TensorProto.EXTERNAL)
        for key, entry in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=str(entry))
        return model([node("Split", ["x", "l"], ["a", "b"], axis=1)], [value("x", [2, 4])], initializers=[tensor])

    def read(self, folder, made, **options):
        folder.mkdir(exist_ok=True)
        onnx.save_model(made, folder / "m.onnx")
        [split] = front_end.read(folder / "m.onnx", **options)
        return split

    def test_is_read_for_lengths(self, tmp_path):
        (tmp_path / "data.bin").write_bytes(b"?" * 8 + np.array([1, 3], "<i8").tobytes())
        assert self.read(tmp_path, self.lengths("data.bin", offset=8, length=16)).lengths == (1, 3)

    @pytest.mark.parametrize(
        ("location", "entries", "message"),
        [
            ("missing.bin", {}, "No such file"),
            ("data.bin", {"length": 8}, "its dimensions need 16"),
            ("data.bin", {"offset": 1}, "ends before"),
            ("data.bin", {"offset": -1}, "offset -1"),
            ("data.bin", {"offset": 2**80}, "data.bin"),
            ("data.bin", {"offset": "x"}, "not a number"),
            *(("data.bin", {"offset": text}, "not a number") for text in (" 0", "1_6", "\u0660", "1" * 5000, "")),
            ("../data.bin", {}, "outside the model's folder"),
            ("link.bin", {}, "outside the model's folder"),
            ("", {}, "without a location"),
        ],
    )
    def test_that_cannot_be_had(self, tmp_path, location, entries, message):
        folder = tmp_path / "model"
        folder.mkdir()
        (tmp_path / "data.bin").write_bytes(bytes(16))
        (folder / "data.bin").write_bytes(bytes(16))
        os.symlink(tmp_path / "data.bin", folder / "link.bin")
        split = self.read(folder, self.lengths(location, **entries))
        assert rules(split) == {"onnx/split-malformed"}
        assert message in split.report.errors[0].message

    def test_may_be_elsewhere_where_that_is_allowed(self, tmp_path):
        (tmp_path / "data.bin").write_bytes(np.array([1, 3], "<i8").tobytes())
        split = self.read(tmp_path / "model", self.lengths("../data.bin"), allow_paths=[tmp_path])
        assert split.lengths == (1, 3)

    def test_of_weights_is_never_read(self, tmp_path):
        weights = TensorProto(name="w", data_type=FLOAT, dims=[4, 2**30], data_location=TensorProto.EXTERNAL)
        weights.external_data.add(key="location", value="nowhere.bin")
        made = model([node("MatMul", ["x", "w"], ["y"]), node("Split", ["y"], ["a", "b"], axis=1, num_outputs=2)],
                     [value("x", [2, 4])], initializers=[weights])  # fmt: skip
        assert self.read(tmp_path, made).lengths == (2**29, 2**29)


def test_large_weights_are_left_out():
    weights = numpy_helper.from_array(np.zeros((1 << 19, 4), np.float32), "w")
    nodes = [
        node("Constant", [], ["c"], value=numpy_helper.from_array(np.zeros((4, 1 << 19), np.float32))),
        node("MatMul", ["w", "c"], ["y"]),
        node("Split", ["y"], ["a", "b"], axis=0, num_outputs=2),
    ]
    made = model(nodes, [], initializers=[weights])
    before = made.SerializeToString(deterministic=True)
    assert front_end.read(made)[0].input_shape == (1 << 19, 1 << 19)
    assert made.SerializeToString(deterministic=True) == before


class TestFunctions:
    def function(self, name="F", nodes=None, opset=13, attributes=("ax",), domains=(), **fields):
        split = with_reference(node("Split", ["y"], ["p", "q"], name="inner"), "axis", "ax")
        made = nodes or [node("Relu", ["x"], ["y"]), split]
        imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        return helper.make_function("local", name, ["x"], ["p", "q"], made, imports, list(attributes), **fields)

    def test_are_read_at_each_call(self):
        calls = [
            node("F", ["x"], ["a", "b"], domain="local", name="first", ax=1),
            node("F", ["z"], ["c", "d"], domain="local", name="second"),
        ]
        made = model(calls, [value("x", [2, 4]), value("z", [6, 4])], functions=[self.function()], domains=["local"])
        first, second = front_end.read(made)
        assert (first.graph, first.version, first.axis, first.lengths) == ("first", 13, 1, (2, 2))
        assert (second.graph, second.axis, second.lengths) == ("second", 0, (3, 3))
        assert first.path == "first/inner"

    def test_may_import_nothing(self):
        made = model([node("F", ["x"], ["a", "b"], domain="local", name="f", ax=1)], [value("x", [2, 4])],
                     functions=[self.function()], domains=["local"])  # fmt: skip
        made.ir_version = 2
        del made.functions[0].opset_import[:]
        assert [split.version for split in splits(front_end.read_model(made))] == [0]

    def test_have_defaults(self):
        default = helper.make_attribute("ax", 1)
        function = self.function(attributes=(), attribute_protos=[default])
        made = model([node("F", ["x"], ["a", "b"], domain="local")], [value("x", [2, 4])],
                     functions=[function], domains=["local"])  # fmt: skip
        assert front_end.read(made)[0].axis == 1

    def test_get_constants_and_call_others(self):
        inner = helper.make_function(
            "local", "G", ["x", "l"], ["p", "q"], [node("Split", ["x", "l"], ["p", "q"], axis=1)],
            [helper.make_opsetid("", 18)],
        )  # fmt: skip
        outer = self.function(
            "F",
            [
                node("G", ["x", "k"], ["p", "q"], domain="local"),
            ],
            domains=["local"],
        )
        outer.node.insert(0, node("Constant", [], ["k"], value_ints=[1, 3]))
        nodes = [node("F", ["x"], ["a", "b"], domain="local", name="f"), node("Split", ["b"], ["c"], num_outputs=1)]
        made = model(nodes, [value("x", [2, 4])], functions=[inner, outer], domains=["local"])
        nested, last = front_end.read(made)
        assert (nested.graph, nested.version, nested.lengths) == ("f/p", 18, (1, 3))
        assert last.input_shape == (2, 3)

    def test_that_call_themselves_are_reported(self):
        nodes = [node("Split", ["x"], ["p", "q"]), node("R", ["p"], ["r", "s"], domain="local", name="again")]
        function = self.function("R", nodes, attributes=(), domains=["local"])
        made = model([node("R", ["x"], ["a", "b"], domain="local", name="r"), EQUAL], [value("x", [2, 4])],
                     opset=13, functions=[function], domains=["local"])  # fmt: skip
        found = front_end.read_model(made)
        assert [split.graph for split in splits(found)] == ["r", ""]
        [other] = [item for item in found.items if item not in splits(found)]
        assert other.diagnostic.rule == "onnx/function-recursive"

    def test_that_a_graph_of_their_caller_calls_are_not_called_by_themselves(self):
        """The graph that the call hands to F calls F, which ends."""
        handed = with_reference(node("If", ["c"], ["t"]), "then_branch", "g", onnx.AttributeProto.GRAPH)
        other = with_reference(node("If", ["c"], ["t"]), "else_branch", "g", onnx.AttributeProto.GRAPH)
        handed.attribute.append(other.attribute[0])
        function = self.function("F", [handed, node("Split", ["t"], ["a", "b"])], attributes=["g"])
        del function.input[:], function.output[:]
        function.input.append("c")
        function.output.append("a")

        def call(inner, output):
            return node("F", ["c"], [output], domain="local", name=output, g=graph([*inner], [], [value("v", [4])]))

        constants = [node("Constant", [], ["v"], value_floats=[1.0] * 4), node("Constant", [], ["c"], value_int=1)]
        nodes = [call([constants[1], call(constants[:1], "v")], "y")]
        made = model(nodes, [value("c", [], 9)], opset=13, functions=[function], domains=["local"])
        found = front_end.read_model(made)
        places = ["y", "y/t.else_branch/v", "y/t.then_branch/v", "y.g/v"]  # the last in the graph as the call has it
        assert sorted(split.graph for split in splits(found)) == sorted(places)
        assert len(found.items) == len(places)

    def test_that_multiply_have_an_end(self):
        functions = [self.function("F0", [node("Split", ["x"], ["p", "q"])], attributes=())]
        for i in range(1, 30):
            nodes = [node(f"F{i - 1}", ["x"], [f"p{k}", f"q{k}"], domain="local") for k in range(8)]
            functions.append(self.function(f"F{i}", nodes, attributes=(), domains=["local"]))
        made = model([node("F29", ["x"], ["a", "b"], domain="local")], [value("x", [4])],
                     functions=functions, domains=["local"])  # fmt: skip
        with pytest.raises(InputError, match="are called more than"):
            front_end.read(made)


def test_subgraphs_see_what_is_around_them():
    body = graph(
        [node("Split", ["v", "l"], ["p", "q"], axis=0, name="inside"), node("Identity", ["c"], ["again"])],
        [value("i", [], INT64), value("c", [], BOOL), value("v", ["n"])],
        [value("again", [], BOOL), value("v2", ["n"]), value("p", None)],
    )
    body.node.append(node("Identity", ["v"], ["v2"]))
    nodes = [node("Relu", ["x"], ["y"]), node("Loop", ["", "k", "y"], ["vs", "ps"], body=body, name="loop")]
    made = model(nodes, [value("x", [4]), value("k", [], BOOL)], ["vs"], initializers=[ints("l", 1, 3)])
    [split] = front_end.read(made)
    assert split.graph == "loop.body"
    assert split.path == "loop.body/inside"
    assert split.lengths == (1, 3)
