"""The ONNX front end: what it finds in a model, and where."""

import pickle

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlsplit as dml
from dmlsplit.formats import onnx as front_end
from dmlsplit.system.errors import InputError
from tests.formats.split_nodes import read_one, rules, splits
from tests.models import BOOL, EQUAL, FLOAT, INT64, graph, ints, model, node, value


@pytest.mark.parametrize(
    ("opset", "version"),
    [(1, 1), (2, 2), (10, 2), (11, 11), (12, 11), (13, 13), (17, 13), (18, 18), (25, 18), (999, 18)],
)
def test_the_opset_selects_the_version(opset, version):
    split = read_one([EQUAL], [value("x", [2, 4])], opset=opset)
    assert split.version == version
    assert ("onnx/opset-unknown" in rules(split)) is (opset == 999)


def test_the_default_domain_has_two_names():
    made = model([node("Split", ["x"], ["a", "b"], domain="ai.onnx")], [value("x", [4])], opset=13)
    made.opset_import[0].domain = "ai.onnx"
    [split] = front_end.read(made)
    assert (split.version, split.lengths) == (13, (2, 2))


def test_before_ir_version_3_there_is_no_import():
    made = model([EQUAL], [value("x", [2, 4])], opset=None)
    assert not made.opset_import
    [split] = front_end.read(made)
    assert rules(split) == {"onnx/opset-missing"}
    made.ClearField("ir_version")
    [split] = front_end.read(made)
    assert split.version == 1
    assert split.report.ok


def test_several_imports_of_one_domain_are_none():
    made = model([EQUAL], [value("x", [2, 4])], opset=13)
    made.opset_import.append(helper.make_opsetid("ai.onnx", 18))
    assert rules(front_end.read(made)[0]) == {"onnx/opset-missing"}


def test_what_is_inferred_and_what_the_caller_says():
    made = model(
        [node("Relu", ["x"], ["y"]), node("Split", ["y"], ["a", "b"], axis=-1, name="s")],
        [value("x", ["batch", 3, None])],
        opset=13,
    )
    [split] = front_end.read(made)
    assert split.input_shape == ("batch", 3, None)
    assert split.lengths == (None, None)
    assert split.axis == 2
    [unknown] = [d for d in split.report.diagnostics if d.rule == "node/shape-unknown"]
    assert "--shape x:?,3,?" in unknown.message
    assert "--dim batch=NUMBER" in unknown.message
    [split] = front_end.read(made, shapes={"x": (2, 3, 8)})
    assert split.output_shapes == ((2, 3, 4), (2, 3, 4))
    assert not split.report.diagnostics
    [split] = front_end.read(made, dims={"batch": 5}, shapes={"x": (None, 3, 8)})
    assert split.input_shape == (5, 3, 8)
    [split] = front_end.read(made, shapes={"y": (1, 3, 6)})
    assert split.lengths == (3, 3)


def test_a_size_binds_its_symbol_everywhere():
    made = model([EQUAL, node("Split", ["z"], ["c", "d"])], [value("x", ["n", 4]), value("z", ["n"])], opset=13)
    first, second = front_end.read(made, shapes={"x": (6, 4)})
    assert first.input_shape == (6, 4)
    assert second.lengths == (3, 3)


def test_what_was_declared_for_other_sizes():
    """Exporters leave the sizes that they saw; the caller's go before those, not before what nothing contradicts."""
    nodes = [
        node("Relu", ["x"], ["y"]),
        node("Own", ["y"], ["z"], domain="own"),
        node("Relu", ["z"], ["t"]),
        node("Split", ["y"], ["a", "b"], axis=1),
        node("Split", ["t"], ["c", "d"], axis=1),
    ]
    declared = [value("y", [1, 4]), value("z", [5, 6])]
    made = model(nodes, [value("x", [None, 4])], ["a", "c"], opset=13, value_info=declared, domains=["own"])
    shapes = [split.input_shape for split in front_end.read(made, shapes={"x": (2, 4)})]
    assert shapes == [(2, 4), (5, 6)]
    assert [split.input_shape for split in front_end.read(made)] == [(1, 4), (5, 6)]
    shapes = [split.input_shape for split in front_end.read(made, shapes={"x": (2, 4), "y": (1, 4)})]
    assert shapes == [(1, 4), (5, 6)]


def test_a_shape_for_a_tensor_of_a_graph_inside():
    """What a loop carries may change its shape, so that inference says nothing of it."""
    body = graph(
        [node("Identity", ["go"], ["on"]), node("Relu", ["s"], ["t"]), node("Split", ["t"], ["u", "v"], num_outputs=2)],
        [value("i", [], INT64), value("go", [], BOOL), value("s", None)],
        outputs=["on", "t", "u"],
    )
    made = model(
        [node("Loop", ["n", "c", "x"], ["l", "ls"], body=body)],
        [value("x", [6, 8]), value("n", [], INT64), value("c", [], BOOL)],
        outputs=["l"],
    )
    [split] = front_end.read(made)
    assert split.input_shape is None
    for name in "st":
        [split] = front_end.read(made, shapes={name: (6, 8)})
        assert split.output_shapes == ((3, 8), (3, 8))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shapes": {"y": (1,)}}, "there is no tensor 'y'; the inputs are x"),
        ({"dims": {"m": 1}}, "there is no symbolic dimension 'm'; the model has n"),
        ({"shapes": {"x": (1, 2, 3)}}, r"\[1, 2, 3\] is given, but the model has \[n, 4\]"),
        ({"shapes": {"x": (1, 5)}}, "dimension 1 is 5, but the model has 4"),
        ({"shapes": {"x": (1, 4)}, "dims": {"n": 2}}, "dimension 0 is 1, but the model has n = 2"),
        ({"dims": {"n": -1}}, "-1 is not a size"),
        ({"dims": {"n": "four"}}, "'four' is not a size"),
        ({"shapes": {"x": (2**70, 4)}}, "is not a size"),
        ({"values": {"y": [1, 3]}}, "there is no tensor 'y'; the inputs are x"),
        ({"values": {"x": ["one"]}}, "is not a numeric type"),
        ({"values": {"x": [[1], [2, 3]]}}, "values of 'x'"),
    ],
)
def test_what_the_caller_says_must_fit(given, message):
    with pytest.raises(InputError, match=message):
        front_end.read(model([EQUAL], [value("x", ["n", 4])]), **given)


def test_names_of_sizes_are_shown_and_not_obeyed():
    name = "\x1b[31m\u202e\n"
    made = model([EQUAL], [value("x", [name, 4])], [value("a", [name, 2]), value("b", None)], opset=13)
    [split] = front_end.read(made)
    assert split.input_shape == (r"\x1b[31m\u202e\n", 4)
    assert all(text.isprintable() for text in str(split.report).splitlines())
    assert front_end.read(made, dims={name: 3})[0].input_shape == (3, 4)
    with pytest.raises(InputError) as error:
        front_end.read(made, shapes={"x": (2, 5)})
    assert str(error.value).isprintable()


class TestLengths:
    @pytest.mark.parametrize(
        "constant",
        [
            {"value": numpy_helper.from_array(np.array([1, 3]))},
            {"value_ints": [1, 3]},
        ],
    )
    def test_of_a_constant_node(self, constant):
        nodes = [node("Constant", [], ["l"], **constant), node("Split", ["x", "l"], ["a", "b"], axis=1)]
        assert read_one(nodes, [value("x", [2, 4])]).lengths == (1, 3)

    def test_of_version_1_are_of_the_type_of_the_data(self):
        lengths = helper.make_tensor("l", TensorProto.FLOAT16, [2], [1.0, 3.0])
        x = [value("x", [2, 4], TensorProto.FLOAT16)]
        split = read_one([node("Split", ["x", "l"], ["a", "b"], axis=1)], x, initializers=[lengths], opset=1)
        assert split.lengths == (1, 3)
        lengths = helper.make_tensor("l", TensorProto.FLOAT16, [2], [1.5, 2.5])
        split = read_one([node("Split", ["x", "l"], ["a", "b"], axis=1)], x, initializers=[lengths], opset=1)
        assert rules(split) == {"onnx/split-not-whole"}

    def test_are_folded(self):
        """Half of the known size of a shape that is known in part."""
        nodes = [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "one"], ["size"]),
            node("Div", ["size", "two"], ["half"]),
            node("Sub", ["size", "half"], ["rest"]),
            node("Concat", ["half", "rest"], ["l"], axis=0),
            node("Split", ["x", "l"], ["a", "b"], axis=1),
        ]
        constants = [ints("one", 1), ints("two", 2)]
        assert read_one(nodes, [value("x", ["n", 7])], initializers=constants).lengths == (3, 4)
        split = read_one(nodes, [value("x", [7, "n"])], initializers=constants)
        assert split.lengths == (None, None)
        assert "node/shape-unknown" in rules(split)

    @pytest.mark.parametrize(
        "nodes",
        [
            [node("Shape", ["y"], ["l"])],
            [node("Shape", ["y"], ["s"]), node("Cast", ["s"], ["f"], to=FLOAT), node("Cast", ["f"], ["l"], to=INT64)],
            [node("Constant", [], ["c"], value_int=2), node("Unsqueeze", ["c", "zero"], ["u"]),
             node("Concat", ["u", "u"], ["l"], axis=0)],
            [node("Constant", [], ["c"], value_ints=[9, 2, 2]), node("Slice", ["c", "one", "three"], ["l"])],
            [node("ConstantOfShape", ["two"], ["l"], value=helper.make_tensor("v", INT64, [1], [2]))],
        ],
    )  # fmt: skip
    def test_of_simple_chains(self, nodes):
        split = node("Split", ["x", "l"], ["a", "b"], axis=1)
        constants = [ints("zero", 0), ints("one", 1), ints("two", 2), ints("three", 3)]
        inputs = [value("x", [2, 4]), value("y", [2, 2])]
        assert read_one([*nodes, split], inputs, initializers=constants).lengths == (2, 2)

    def test_that_the_caller_knows(self):
        inputs = [value("x", [2, 4]), value("l", [2], INT64)]
        nodes = [node("Split", ["x", "l"], ["a", "b"], axis=1)]
        assert "node/shape-unknown" in rules(read_one(nodes, inputs))
        [unknown] = [d for d in read_one(nodes, inputs).report.diagnostics if d.rule == "node/shape-unknown"]
        assert "values={'l': ...}" in unknown.message
        assert read_one(nodes, inputs, given={"values": {"l": [1, 3]}}).lengths == (1, 3)

    def test_of_symbolic_sizes_keep_the_names(self):
        nodes = [
            node("Concat", ["x", "y"], ["xy"], axis=0),
            node("Shape", ["x"], ["sx"]),
            node("Shape", ["y"], ["sy"]),
            node("Gather", ["sx", "zero"], ["n"]),
            node("Gather", ["sy", "zero"], ["m"]),
            node("Concat", ["n", "m"], ["l"], axis=0),
            node("Split", ["xy", "l"], ["a", "b"]),
        ]
        inputs, constants = [value("x", ["n", 4]), value("y", ["m", 4])], [ints("zero", 0)]
        split = read_one(nodes, inputs, initializers=constants)
        assert split.lengths == ("n", "m")
        assert split.output_shapes == (("n", 4), ("m", 4))
        assert read_one(nodes, inputs, initializers=constants, given={"dims": {"n": 2, "m": 3}}).lengths == (2, 3)
        split = read_one(nodes, inputs, initializers=constants, given={"dims": {"m": 3}})
        assert split.lengths == ("n", 3)
        assert [part.shape for part in split.execute(np.zeros((5, 4), "f4"))] == [(2, 4), (3, 4)]

    def test_that_change_are_no_symbols(self):
        """Twice a size is not that size."""
        nodes = [node("Shape", ["x"], ["s"]), node("Add", ["s", "s"], ["l"]), node("Split", ["y", "l"], ["a"])]
        assert read_one(nodes, [value("x", ["n"]), value("y", ["m"])]).lengths == (None,)

    def test_are_as_declared_where_the_rules_leave_them_open(self):
        outputs = [value("a", ["h", 4]), value("b", [3, 4])]
        split = read_one([node("Split", ["x"], ["a", "b"])], [value("x", ["n", 4])], outputs, opset=13)
        assert split.lengths == ("h", 3)
        assert split.output_shapes == (("h", 4), (3, 4))

    def test_that_are_malformed(self):
        tensor = ints("l", 1, 3)
        tensor.ClearField("int64_data")
        tensor.raw_data = b"\1" * 8
        split = read_one([node("Split", ["x", "l"], ["a", "b"], axis=1)], [value("x", [2, 4])], initializers=[tensor])
        assert rules(split) == {"onnx/split-malformed"}


class TestSplitOne:
    """There is no shape inference for version 1: the front end's own goes into onnx's."""

    def test_feeds_the_next(self):
        nodes = [
            node("Split", ["x"], ["a", "b"], axis=0),
            node("Split", ["b"], ["c", "d"], axis=1, split=[1, 3]),
            node("Transpose", ["d"], ["t"]),
            node("Split", ["t"], ["e", "f", "g"], axis=0),
        ]
        first, second, third = front_end.read(model(nodes, [value("x", [8, 4])], opset=1))
        assert first.output_shapes == ((4, 4), (4, 4))
        assert second.output_shapes == ((4, 1), (4, 3))
        assert third.input_shape == (3, 4)
        assert third.lengths == (1, 1, 1)

    def test_in_branches(self):
        branch = graph([node("Split", ["x"], ["a", "b"], axis=0), node("Split", ["a"], ["c", "d"], axis=1)],
                       [], ["c"])  # fmt: skip
        made = model([node("If", ["k"], ["r"], then_branch=branch, else_branch=branch)],
                     [value("x", [8, 4]), value("k", [], BOOL)], ["r"], opset=1)  # fmt: skip
        found = front_end.read(made)
        assert [split.lengths for split in found] == [(4, 4), (2, 2)] * 2


def test_other_splits_are_counted():
    nodes = [
        node("SplitToSequence", ["x"], ["s"], name="to"),
        node("Split", ["x"], ["t"], domain="com.microsoft"),
        EQUAL,
        node("SplitToSequence", ["x"], ["u"]),
    ]
    found = front_end.read_model(model(nodes, [value("x", [2, 4])], opset=13, domains=["com.microsoft"]))
    others = [item.op for item in found.items if item not in found.judged]
    assert others == ["SplitToSequence", "com.microsoft.Split", "SplitToSequence"]
    assert len(splits(found)) == 1


def test_declared_shapes_are_compared():
    declared = [value("a", [2, 2]), value("b", [2, 3])]
    split = read_one([EQUAL], [value("x", [2, 4])], declared, opset=13)
    assert rules(split) == {"onnx/declared-shape-differs"}
    assert split.report.errors[0].path == "a.outputs[1]"
    split = read_one([EQUAL], [value("x", [2, 4])], [value("a", ["k", 2], TensorProto.FLOAT16)], opset=13)
    assert rules(split) == {"onnx/declared-type-differs"}


def test_two_outputs_of_one_name():
    split = read_one([node("Split", ["x"], ["a", "b", "a"], axis=1)], [value("x", [2, 6])], opset=13)
    assert rules(split) == {"onnx/output-repeated"}
    assert [d.path for d in split.report.errors] == ["a.outputs[2]"]


def test_a_node_is_called_by_its_name_or_by_its_output():
    assert read_one([node("Split", ["x"], ["", "out"])], [value("x", [4])], opset=13).path == "out"
    assert read_one([node("Split", ["x"], [], name="n\x1b[31m")], [value("x", [4])], opset=13).path == r"n\x1b[31m"


def test_nodes_are_picklable():
    split = read_one([EQUAL], [value("x", ["n", 4])], opset=13)
    assert pickle.loads(pickle.dumps(split)) == split


def test_execution_of_sizes_that_only_the_array_has():
    split = read_one([node("Split", ["x"], ["a", "b", "c"], num_outputs=3, axis=-1)], [value("x", ["n", None])])
    array = np.arange(14, dtype=np.float32).reshape(2, 7)
    assert [part.shape for part in split.execute(array)] == [(2, 3), (2, 3), (2, 1)]
    with pytest.raises(InputError, match="are left for"):
        split.execute(np.zeros((2, 1), np.float32))
    split = read_one([node("Split", ["x"], ["a", "b"], axis=-1)], [value("x", None)], opset=13)
    assert split.axis == -1
    assert [part.tolist() for part in split.execute(np.float32([[1, 2], [3, 4]]))] == [[[1], [3]], [[2], [4]]]


def test_the_public_way():
    assert dml.check_files
    [split] = front_end.read(model([EQUAL], [value("x", [2, 4])], opset=13))
    assert split.legalize("1_0").ok
