"""The rewritings of nodes, one by one: what comes of a node, and what is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from dmlsplit.formats import onnx as front_end
from dmlsplit.mending.rewritings import REWRITINGS
from dmlsplit.system.errors import NotLegalizedError
from tests.models import FLOAT, graph, ints, model, node, value

INT64, UINT8, BOOL = TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL


def written(made, **target):
    return front_end.legalize(made, **target)


def operators(data):
    return [n.op_type for n in onnx.load_from_string(data).graph.node if n.op_type != "Constant"]


def the(data, operator):
    (found,) = [n for n in onnx.load_from_string(data).graph.node if n.op_type == operator]
    return found


def reasons(made, **target):
    with pytest.raises(NotLegalizedError) as refused:
        front_end.legalize(made, **target)
    return "; ".join(refused.value.reasons)


def names(found):
    return [name for change in found.changes for name in change.names]


def split(shape, lengths, data_type=FLOAT, opset=17, outputs=("a", "b"), axis=1, **fields):
    made = model(
        [node("Split", ["x", "l"], outputs, axis=axis, name="split")],
        [value("x", shape, data_type)],
        [helper.make_tensor_value_info(name, data_type, [None] * len(shape)) for name in outputs if name],
        opset=opset,
        initializers=[ints("l", *lengths)],
        ir_version=8,
        **fields,
    )
    onnx.checker.check_model(made, full_check=True)
    return made


def concat(shapes, axis, data_type=FLOAT):
    inputs = [value(f"x{i}", shape, data_type) for i, shape in enumerate(shapes)]
    nodes = [node("Concat", [v.name for v in inputs], ["z"], axis=axis, name="concat")]
    outputs = [helper.make_tensor_value_info("z", data_type, [None] * len(shapes[0]))]
    return model(nodes, inputs, outputs, opset=13, ir_version=8)


def runs_alike(made, data, *arrays):
    inputs = {v.name: array for v, array in zip(made.graph.input, arrays, strict=True)}
    one, two = (
        ReferenceEvaluator(made).run(None, inputs),
        ReferenceEvaluator(onnx.load_from_string(data)).run(None, inputs),
    )
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True)
    )


def test_every_rewriting_is_shown():
    """One node needs all of them but explicit-lengths, which is for computed ones."""
    shape = node("Shape", ["x"], ["s"])
    size = node("Gather", ["s", "one"], ["g"])
    nodes = [
        shape,
        size,
        node("Div", ["g", "two"], ["half"]),
        node("Concat", ["half", "half"], ["l"], axis=0),
        node("Split", ["x", "l"], ["a", ""], axis=1, name="computed"),
        node("Split", ["x", "k"], ["b", "c"], axis=1, name="empty"),
    ]
    made = model(
        nodes,
        [value("x", [1, 4, 2, 2, 2], UINT8)],
        [helper.make_tensor_value_info(name, UINT8, [None] * 5) for name in "abc"],
        opset=13,
        initializers=[ints("one", 1), ints("two", 2), ints("k", 4, 0)],
        ir_version=8,
    )
    found = names(written(made, feature_level="2_0"))
    assert {*found, "explicit-lengths"} == {rewriting.name for rewriting in REWRITINGS}


@pytest.mark.parametrize(
    ("shape", "axis", "sizes"),
    [
        ([1, 4, 2, 3, 5], 1, (1, 4, 30)),
        ([2, 3, 4, 3, 5], 2, (6, 4, 15)),
        ([4, 2, 2, 2, 2], 0, (4, 16)),
        ([2, 2, 2, 2, 4], 4, (16, 4)),
        (["N", 4, 2, 3, 5], 1, (0, 4, 30)),
        (["N", 4, "H", 3, 5], 1, (0, 4, -1)),
        (["N", "C", 4, 3, 5], 2, (0, 0, 4, 15)),
    ],
)
def test_ranks(shape, axis, sizes):
    made = split(shape, [1, 3], axis=axis)
    found = written(made, feature_level="2_0")
    assert names(found) == ["merge-dimensions"]
    assert operators(found.model) == ["Reshape", "Split", "Reshape", "Reshape"]
    constants = {
        n.output[0]: n.attribute[0].t for n in onnx.load_from_string(found.model).graph.node if n.op_type == "Constant"
    }
    reshape = next(n for n in onnx.load_from_string(found.model).graph.node if n.op_type == "Reshape")
    assert tuple(onnx.numpy_helper.to_array(constants[reshape.input[1]])) == sizes
    real = [{"N": 3, "H": 2, "C": 2}.get(size, size) for size in shape]
    assert runs_alike(made, found.model, np.arange(np.prod(real), dtype=np.float32).reshape(real))


@pytest.mark.parametrize("opset", [7, 8])
def test_before_opset_9_sizes_are_cast_from_floats(opset):
    nodes = [node("Split", ["x"], ["a", "b"], axis=1, split=[1, 3])]
    outputs = [value("a", [1, 1, 2, 2, 2]), value("b", [1, 3, 2, 2, 2])]
    made = model(nodes, [value("x", [1, 4, 2, 2, 2])], outputs, opset=opset, ir_version=3)
    found = written(made, feature_level="2_0")
    onnx.checker.check_model(onnx.load_from_string(found.model), full_check=True)
    assert operators(found.model) == [*["Cast"] * 3, "Reshape", "Split", "Reshape", "Reshape"]
    assert written(found.model, feature_level="2_0") == (found.model, ())


def test_ranks_whose_open_sizes_no_reshape_can_name():
    assert "too many sizes are open" in reasons(split(["N", 4, "H", "W", "D"], [1, 3], axis=3 - 2), feature_level="2_0")


def test_a_rank_that_the_runtime_has_nowhere():
    made = split([1, 4, 1, 1, 1, 1, 1, 1, 2], [1, 3])
    assert "not even for a Reshape" in reasons(made, onnxruntime="1.24.4")
    found = written(made, feature_level="5_0")
    assert names(found) == ["merge-dimensions"]


def test_ranks_of_a_concat():
    made = concat([[1, 4, 2, 2, 2], [1, 3, 2, 2, 2]], 1)
    found = written(made, feature_level="1_0")
    assert operators(found.model) == ["Reshape", "Reshape", "Concat", "Reshape"]
    arrays = [np.random.default_rng(i).normal(size=(1, c, 2, 2, 2)).astype(np.float32) for i, c in enumerate((4, 3))]
    assert runs_alike(made, found.model, *arrays)


@pytest.mark.parametrize(("data_type", "dtype"), [(UINT8, np.uint8), (TensorProto.INT8, np.int8), (BOOL, np.bool_)])
def test_types_by_way_of_an_integer_that_holds_every_value(data_type, dtype):
    made = split([1, 256], [100, 156], data_type)
    found = written(made, feature_level="1_0")
    assert names(found) == ["cast"]
    assert [
        a.i for a in the(written(concat([[1, 2]] * 2, 0, data_type), feature_level="1_0").model, "Concat").attribute
    ] == [0]
    assert runs_alike(made, found.model, np.arange(256).astype(dtype).reshape(1, 256))
    assert written(made, feature_level="2_1").changes == ()


def test_booleans_come_back_by_way_of_bytes():
    """OpenVINO computes a Cast to BOOL right behind a Split wrongly, or does not compile it."""
    found = written(split([1, 4], [1, 3], BOOL), feature_level="1_0")
    types = [n.attribute[0].i for n in onnx.load_from_string(found.model).graph.node if n.op_type == "Cast"]
    assert types == [TensorProto.INT32, UINT8, BOOL, UINT8, BOOL]


@pytest.mark.parametrize("data_type", [INT64, TensorProto.DOUBLE, TensorProto.UINT64])
def test_types_that_no_cast_carries(data_type):
    assert "lossless casts" in reasons(split([1, 4], [1, 3], data_type), feature_level="4_0")
    assert written(split([1, 4], [1, 3], data_type), feature_level="4_1").changes == ()


def test_empty_parts_are_constants():
    made = split([2, 4], [1, 0, 3], outputs=("a", "b", "c"))
    found = written(made, directml="1.15.4")
    assert names(found) == ["cut-empty"]
    assert list(the(found.model, "Split").output) == ["a", "c"]
    assert runs_alike(made, found.model, np.arange(8, dtype=np.float32).reshape(2, 4))


def test_one_part_that_is_left_is_the_whole():
    made = split([2, 4], [0, 4])
    found = written(made, directml="1.15.4")
    assert operators(found.model) == ["Identity"]
    assert runs_alike(made, found.model, np.arange(8, dtype=np.float32).reshape(2, 4))


@pytest.mark.parametrize(("shape", "lengths"), [([0, 4], [1, 3]), ([2, 0], [0, 0])])
def test_parts_of_a_tensor_without_elements_are_constants(shape, lengths):
    made = split(shape, lengths)
    found = written(made, directml="1.15.4")
    assert operators(found.model) == []
    assert runs_alike(made, found.model, np.zeros(shape, np.float32))


@pytest.mark.parametrize("shapes", [([0, 4], [0, 3]), ([2, 0], [2, 0])])
def test_a_concat_without_elements_is_a_constant(shapes):
    made = concat(shapes, 1)
    found = written(made, directml="1.15.4")
    assert operators(found.model) == []
    assert runs_alike(made, found.model, *(np.zeros(shape, np.float32) for shape in shapes))


@pytest.mark.parametrize("made", [split([0, 4], [1, 3]), concat([[0, 4], [0, 3]], 1), concat([[2, 4], [2, 0]], 1)])
def test_what_a_runtime_passes_over_stays(made):
    assert written(made, onnxruntime="1.24.4") == (made.SerializeToString(), ())
    assert names(written(made, directml="1.15.4")) == ["cut-empty"]


def test_empty_parts_beside_open_sizes_are_cut_from_the_whole():
    made = split(["N", 4], [0, 4])
    found = written(made, directml="1.15.4")
    assert operators(found.model) == ["Slice", "Compress", "Identity"]
    assert runs_alike(made, found.model, np.arange(8, dtype=np.float32).reshape(2, 4))


def test_omitted_outputs_get_names():
    made = split([2, 4], [1, 1, 2], outputs=("a", "", "c"))
    found = written(made, onnxruntime="1.24.4")
    assert names(found) == ["name-outputs"]
    assert list(the(found.model, "Split").output) == ["a", "a/output_1", "c"]


def test_an_output_that_is_omitted_and_empty_is_left_out():
    made = split([2, 4], [2, 0, 2], outputs=("a", "", "c"))
    assert list(the(written(made, onnxruntime="1.24.4").model, "Split").output) == ["a", "c"]


def test_lengths_that_are_always_the_same_become_a_constant():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["g"]),
        node("Div", ["g", "two"], ["half"]),
        node("Concat", ["half", "half"], ["l"], axis=0),
        node("Split", ["x", "l"], ["a", "b"], axis=1),
    ]
    inputs, numbers = [value("x", ["N", 4])], [ints("one", 1), ints("two", 2)]
    outputs = [helper.make_tensor_value_info(name, FLOAT, ["N", None]) for name in "ab"]
    made = model(nodes, inputs, outputs, opset=13, initializers=numbers, ir_version=8)
    found = written(made, onnxruntime="1.24.4")
    assert names(found) == ["explicit-lengths"]
    assert operators(found.model) == ["Split"]  # what computed the lengths is gone, too
    assert runs_alike(made, found.model, np.arange(8, dtype=np.float32).reshape(2, 4))


@pytest.mark.parametrize("opset", [1, 2, 4])
def test_versions_without_a_kernel(opset):
    nodes = [node("Split", ["x"], ["a", "b"], axis=1, split=[1, 3])]
    outputs = [helper.make_tensor_value_info(name, FLOAT, [2, size]) for name, size in (("a", 1), ("b", 3))]
    made = model(nodes, [value("x", [2, 4])], outputs, opset=opset, ir_version=3)
    found = written(made, onnxruntime="1.24.4")
    assert names(found) == (["convert-opset"] if opset == 1 else [])
    result = onnx.load_from_string(found.model)
    assert result.opset_import[0].version == (7 if opset == 1 else opset)
    (node_,) = result.graph.node
    assert [(a.name, list(a.ints) or a.i) for a in node_.attribute] in (
        [("axis", 1), ("split", [1, 3])],
        [("split", [1, 3]), ("axis", 1)],
    )


def test_lengths_that_are_an_input_of_split_1_become_an_attribute():
    nodes = [node("Split", ["x", "l"], ["a", "b"], axis=1)]
    outputs = [value("a", [2, 1]), value("b", [2, 3])]
    lengths = onnx.numpy_helper.from_array(np.array([1, 3], np.float32), "l")
    inputs = [value("x", [2, 4]), value("l", [2])]
    made = model(nodes, inputs, outputs, opset=1, initializers=[lengths], ir_version=3)
    (node_,) = onnx.load_from_string(written(made, onnxruntime="1.24.4").model).graph.node
    assert list(node_.input) == ["x"]
    assert {a.name: list(a.ints) or a.i for a in node_.attribute} == {"axis": 1, "split": [1, 3]}


def test_an_opset_that_is_not_loaded_is_a_number_where_no_operator_changed():
    made = model([node("Relu", ["x"], ["y"])], [value("x", [2, 4])], [value("y", [2, 4])], opset=22, ir_version=10)
    made.graph.node.append(node("Concat", ["y", "x"], ["z"], axis=0))
    found = onnx.load_from_string(written(made, onnxruntime="1.18.0").model)
    assert found.opset_import[0].version == 21
    assert found.graph == made.graph


def test_an_opset_that_is_not_loaded_is_converted():
    nodes = [node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), node("HardSwish", ["a"], ["y"])]
    outputs = [value("y", [2, 2]), value("b", [2, 2])]
    made = model(nodes, [value("x", [2, 4])], outputs, opset=22, ir_version=10)
    found = written(made, onnxruntime="1.10.0")
    assert names(found) == ["older-ir-version", "convert-opset"]
    result = onnx.load_from_string(found.model)
    assert (result.opset_import[0].version, result.ir_version) == (15, 8)
    assert [a.name for a in the(found.model, "Split").attribute] == ["axis"]
    onnx.checker.check_model(result, full_check=True)
    assert runs_alike(made, found.model, np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32))


def function_model(*shapes, nodes=None):
    body = nodes or [node("Split", ["p"], ["a", "b"], axis=0), node("Concat", ["b", "a"], ["q"], axis=0)]
    function = helper.make_function("own", "Swap", ["p"], ["q"], body, [helper.make_opsetid("", 13)])
    calls = [node("Swap", [f"x{i}"], [f"y{i}"], domain="own", name=f"call{i}") for i in range(len(shapes))]
    inputs = [value(f"x{i}", shape) for i, shape in enumerate(shapes)]
    outputs = [value(f"y{i}", shape) for i, shape in enumerate(shapes)]
    return model(calls, inputs, outputs, opset=13, functions=[function], domains=["own"], ir_version=8)


def test_a_function_is_mended_once_for_all_its_calls():
    made = function_model([2, 3, 2, 2, 2], [4, 3, 5, 2, 2])
    found = written(made, feature_level="2_0")
    assert [change.path for change in found.changes] == ["call0/a", "call0/q"]
    result = onnx.load_from_string(found.model)
    assert result.graph == made.graph
    arrays = [
        np.random.default_rng(i).normal(size=s).astype(np.float32)
        for i, s in enumerate(((2, 3, 2, 2, 2), (4, 3, 5, 2, 2)))
    ]
    assert runs_alike(made, found.model, *arrays)


def test_a_function_whose_calls_need_different_things_is_refused():
    assert "differs between the calls of its function" in reasons(
        function_model([2, 3, 2, 2, 2], [2, 3, 2, 2]), feature_level="2_0"
    )


def test_a_branch_that_a_function_is_handed_is_not_the_functions():
    inner = graph([node("Split", ["p"], ["a", "b"], axis=0)], [], ("a",))
    call = helper.make_node("If", ["c"], ["q"], else_branch=inner)
    call.attribute.append(onnx.AttributeProto(name="then_branch", type=onnx.AttributeProto.GRAPH, ref_attr_name="g"))
    function = helper.make_function(
        "own", "F", ["p", "c"], ["q"], [call], [helper.make_opsetid("", 13)], attributes=["g"]
    )
    handed = graph([node("Split", ["p"], ["a", "b"], axis=0)], [], ("a",))
    made = model(
        [helper.make_node("F", ["x", "c"], ["y"], domain="own", g=handed)],
        [value("x", [2, 1, 1, 1, 1]), value("c", [], BOOL)],
        [value("y", [1, 1, 1, 1, 1])],
        opset=13,
        functions=[function],
        domains=["own"],
        ir_version=8,
    )
    assert "an attribute of a function call" in reasons(made, feature_level="2_0")


def test_a_node_that_is_not_valid_is_refused():
    made = model([node("Split", ["x"], ["a", "b"], axis=7)], [value("x", [2, 4])], ("a",), opset=13, ir_version=8)
    assert "it is not valid ONNX: axis: is 7, must be in -2..1" in reasons(made, directml="1.15.4")


@pytest.mark.parametrize("target", [{"onnxruntime": "1.24.4"}, {"feature_level": "3_0"}])
def test_a_split_without_outputs_is_refused(target):
    made = model([node("Split", ["x"], [], axis=1)], [value("x", [2, 4])], ("x",), opset=13, ir_version=8)
    assert "it is not valid ONNX: outputs: are none" in reasons(made, **target)


def test_a_function_of_another_opset_takes_constants_where_the_model_has_them():
    """Nodes that a function and the model have by different versions are not valid, and opset changes Constant."""
    body = [node("Split", ["p"], ["a", "b"], axis=0, num_outputs=2), node("Concat", ["b", "a"], ["q"], axis=0)]
    made = function_model([2, 3, 2, 2, 2], nodes=body)
    other = helper.make_function(
        "own", "Other", ["p"], ["q"], [node("Sin", ["p"], ["q"])], [helper.make_opsetid("", 18)]
    )
    made.functions.append(other)
    made.functions[0].opset_import[0].version, made.opset_import[0].version, made.ir_version = 18, 21, 10
    made.graph.node.append(node("Other", ["y0"], ["z"], domain="own", name="other"))
    made.graph.output.append(value("z", [2, 3, 2, 2, 2]))
    onnx.checker.check_model(made, full_check=True)
    result = onnx.load_from_string(written(made, feature_level="2_0").model)
    onnx.checker.check_model(result, full_check=True)
    assert [function.opset_import[0].version for function in result.functions] == [21, 18]
    assert result.functions[1] == other
    assert written(made, feature_level="6_4") == (made.SerializeToString(), ())


@pytest.mark.parametrize("calls", [2, 5])
def test_one_cure_is_for_all_calls(calls):
    body = [
        node("Split", ["p"], ["a", "b"], axis=1, name="split"),
        node("Sigmoid", ["b"], ["s"]),
        node("Mul", ["a", "s"], ["q"], name="gate"),
    ]
    made = function_model(*[[2, 8, 4]] * calls, nodes=body)
    for output in made.graph.output:
        output.type.tensor_type.shape.dim[1].dim_value = 4
    assert names(written(made, onnxruntime="1.24.4")) == ["two-slices"]


def test_new_nodes_have_names_of_their_own():
    """Names of nodes are no names of tensors, and ONNX Runtime loads no graph with two nodes of one name."""
    nodes = [node("Split", ["x"], ["a", "b"], axis=1, name="a/merged"), node("Neg", ["a"], ["y"], name="b")]
    outputs = [value("y", [1, 2, 2, 2, 2]), value("b", [1, 2, 2, 2, 2])]
    made = model(nodes, [value("x", [1, 4, 2, 2, 2])], outputs, opset=13, ir_version=8)
    found = onnx.load_from_string(written(made, feature_level="2_0").model)
    given = [n.name for n in found.graph.node]
    assert len(set(given)) == len(given)
    assert {"a/merged", "b"} < set(given)


@pytest.mark.parametrize("opset", [2**31 - 1, 2**31, 2**32 + 13, 2**63 - 1])
def test_an_opset_beyond_all_measure(opset):
    """Nobody knows what its operators are."""
    inner = graph([node("Not", ["c"], ["t"])], [], [value("t", [], TensorProto.BOOL)])
    nodes = [
        node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
        node("If", ["c"], ["y"], then_branch=inner, else_branch=inner),
    ]
    inputs = [value("x", [1, 4, 2, 2]), value("c", [], TensorProto.BOOL)]
    made = model(nodes, inputs, ["a", "y"], opset=opset, ir_version=8)
    with pytest.raises(NotLegalizedError, match=f"opset {opset} is newer than .* does not know it"):
        front_end.legalize(made.SerializeToString(), onnxruntime="1.24.4")


def test_a_split_that_is_not_valid_is_not_converted_either():
    made = model([node("Split", ["x"], ["a", "b"], axis=5)], [value("x", [4, 4])], ["a"], opset=17, ir_version=8)
    with pytest.raises(NotLegalizedError, match="not valid ONNX"):
        front_end.legalize(made.SerializeToString(), onnxruntime="1.10.0")
