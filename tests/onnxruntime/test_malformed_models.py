"""Declarations and attributes with which ONNX Runtime does not load a model. Each was asked of 1.18.0, 1.20.1, 1.24.4
and 1.30.0."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests import models
from tests.models import array, ints, model, node, value
from tests.onnxruntime.placements import placed_model


def made(**attribute):
    nodes = [node("LeakyRelu", ["x"], ["a"], alpha=0.1, name="r"), node("Abs", ["a"], ["y"])]
    found = model(
        nodes,
        [value("x", [2, 3])],
        [value("y", [2, 3])],
        17,
        value_info=[value("a", [2, 3]), value("unwritten", [2, 3])],
        domains=["com.microsoft"],
        ir_version=8,
    )
    (alpha,) = found.graph.node[0].attribute
    for field, given in attribute.items():
        if isinstance(given, list):
            getattr(alpha, field).extend(given)
        elif isinstance(given, (onnx.TensorProto, onnx.TypeProto, onnx.GraphProto, onnx.SparseTensorProto)):
            getattr(alpha, field).CopyFrom(given)
        else:
            setattr(alpha, field, given)
    return found


def answer(found):
    placed = placed_model(found)
    return placed.created, placed.failure and placed.failure.message


@pytest.mark.parametrize(
    "other",
    [
        {"i": 0},
        {"s": b""},
        {"t": onnx.TensorProto()},
        {"g": onnx.GraphProto()},
        {"tp": onnx.TypeProto()},
        {"sparse_tensor": onnx.SparseTensorProto()},
        {"floats": [1.0]},
        {"ints": [1]},
        {"strings": [b""]},
        {"tensors": [onnx.TensorProto()]},
        {"graphs": [onnx.GraphProto()]},
        {"type_protos": [onnx.TypeProto()]},
        {"sparse_tensors": [onnx.SparseTensorProto()]},
    ],
    ids=lambda other: next(iter(other)),
)
def test_an_attribute_has_only_the_value_of_its_type(other):
    assert answer(made()) == (True, None)
    message = "LeakyRelu r has an attribute alpha with a value of another type than its own; the model is not loaded"
    assert answer(made(**other)) == (False, message)


def test_an_attribute_of_an_operator_of_onnx_runtime():
    found = made(i=1)
    found.graph.node[0].op_type, found.graph.node[0].domain = "QuickGelu", "com.microsoft"
    assert answer(found)[0] is False


def test_results_are_declared_with_an_element_type():
    for values, place, created in (
        ("output", 0, False),
        ("value_info", 0, False),
        ("value_info", 1, True),
    ):
        found = made()
        declared = getattr(found.graph, values)[place]
        declared.type.tensor_type.ClearField("elem_type")
        message = f"{declared.name} is declared without an element type: the model is not loaded"
        assert answer(found) == ((True, None) if created else (False, message))


def test_an_input_is_declared_with_an_element_type():
    nodes, scale = [node("DequantizeLinear", ["x", "s"], ["y"])], array("s", np.float32(0.1))
    found = model(nodes, [value("x", [4], onnx.TensorProto.UINT8)], [value("y", [4])], 13, [scale], ir_version=8)
    assert answer(found) == (True, None)
    found.graph.input[0].type.tensor_type.ClearField("elem_type")
    assert answer(found) == (False, "x is declared without an element type: the model is not loaded")


def test_an_input_is_declared_with_a_type_that_says_something():
    found = made()
    found.graph.input[0].type.Clear()
    assert answer(found) == (False, "the input x has no type: the model is not loaded")


def test_a_model_has_an_ir_version():
    found = made()
    found.ClearField("ir_version")
    assert answer(found) == (False, "the model has no IR version: it is not loaded")


def test_a_rank_that_contradicts_a_transpose():
    """The tensor t has the rank that is declared, and a Transpose of another one; an IndexError ended the answer."""
    found = model(
        [
            node("Reshape", ["x", "s"], ["r"]),
            node("Transpose", ["r"], ["t"], perm=[1, 0]),
            node("Softmax", ["t"], ["y"]),
        ],
        [value("x", None)],
        [value("y", [6])],
        13,
        [ints("s", 6, 2)],
        ir_version=8,
    )
    found.graph.input[0].ClearField("type")
    found.graph.output[0].type.tensor_type.ClearField("elem_type")
    assert placed_model(found).created is False


@pytest.mark.parametrize(
    ("version", "created"),
    [(1, True), (2, False), (2**32 + 1, True), (2**32 + 2, False), (2**63 - 1, True), (-1, True)],
)
def test_opsets_are_read_in_32_bits(version, created):
    found = made()
    found.opset_import[1].version = version
    assert answer(found)[0] is created


@pytest.mark.parametrize(
    ("versions", "created"),
    [([1], True), ([0], False), ([-5], False), ([2**32], False), ([0, 1], True), ([1, 0], False)],
)
def test_a_domain_is_imported_with_an_opset_above_0(versions, created):
    found = made()
    found.graph.node[0].CopyFrom(node("QuickGelu", ["x"], ["a"], domain="com.microsoft"))
    del found.opset_import[1:]
    found.opset_import.extend([onnx.OperatorSetIdProto(domain="com.microsoft", version=each) for each in versions])
    message = "a node has the domain com.microsoft, whose opset is below 1: the model is not loaded"
    assert answer(found) == ((True, None) if created else (False, message))


@pytest.mark.parametrize(("of_model", "of_function", "created"), [(1, 0, True), (0, 1, False)])
def test_the_opset_of_a_domain_in_a_function_is_that_of_the_model(of_model, of_function, created):
    found = made()
    imports = [onnx.OperatorSetIdProto(domain="com.microsoft", version=of_function)]
    inner = [node("QuickGelu", ["p"], ["q"], domain="com.microsoft")]
    found.functions.append(onnx.helper.make_function("local", "F", ["p"], ["q"], inner, imports))
    found.graph.node[0].CopyFrom(node("F", ["x"], ["a"], domain="local"))
    found.opset_import[1].version = of_model
    found.opset_import.append(onnx.OperatorSetIdProto(domain="local", version=1))
    assert answer(found)[0] is created


@pytest.mark.parametrize(
    ("body", "opset", "refused"),
    [
        ("[u] y = Upsample(x, s)", 9, ""),
        ("[u] y = Upsample(x, s)", 10, "Upsample u has an operator that opset 10 replaces with Resize"),
        (
            "[s] y = Scatter<axis = 0>(x, i, x)",
            11,
            "Scatter s has an operator that opset 11 replaces with ScatterElements",
        ),
        ("[s] y = Scatter<axis = 0>(x, i, x)", 10, ""),
        ("[g] y = GroupNormalization<num_groups = 2>(x, t, t)", 18, ""),
        ("[b] y, m = BatchNormalization(x, s, s, s, s)", 9, "BatchNormalization b writes 2 tensors, not 1 or 5"),
        ("[b] y = BatchNormalization(x, s, s, s, s)", 9, ""),
        ("[b] y, m, v = BatchNormalization<training_mode = 1>(x, s, s, s, s)", 15, ""),
    ],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_operators_that_the_opset_does_not_take(body, opset, refused, version):
    inputs = "float[1,4,8,8] x, float[4] s, float[2] t, int64[1,4,8,8] i"
    placed = placed_model(models.text(f"({inputs}) => (float[] y) {{ {body} }}", opset), version)
    message = f"{refused}; the model is not loaded" if refused else None
    assert (placed.created, placed.failure and placed.failure.message) == (not refused, message)


def test_a_batch_normalization_with_the_outputs_of_training():
    body = "y, m, v, a, b = BatchNormalization(x, s, s, s, s)"
    for sizes, created in (("1,4,8,8", False), ("N,4,8,8", True)):
        found = models.text(f"(float[{sizes}] x, float[4] s) => (float[] y) {{ [b] {body} }}", 9)
        placed = placed_model(found)
        assert placed.created is created
        assert created or "it computes only one of 5 outputs" in placed.failure.message


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "named", "is_loaded"),
    [
        ("TopK", ["x", "k"], ["", "y"], onnx.TensorProto.INT64, False),
        ("TopK", ["x", "k"], ["y", ""], onnx.TensorProto.FLOAT, False),
        ("Dropout", ["x"], ["y", ""], onnx.TensorProto.FLOAT, True),
        ("Dropout", ["x"], ["", "y"], onnx.TensorProto.BOOL, False),
        ("MaxPool", ["p"], ["", "y"], onnx.TensorProto.INT64, False),
        ("DynamicQuantizeLinear", ["x"], ["y", "", ""], onnx.TensorProto.UINT8, False),
    ],
)
def test_an_output_has_a_name_unless_it_is_optional(operator, inputs, outputs, named, is_loaded):
    given = {"kernel_shape": [1, 1]} if operator == "MaxPool" else {}
    read = [value("x", [2, 3]), value("p", [1, 1, 2, 3])]
    nodes, count = [node(operator, inputs, outputs, name="n", **given)], [ints("k", 1)]
    found = model(nodes, read, [value("y", None, named)], 13, count, ir_version=8)
    message = f"{operator} n lacks the name of an output; the model is not loaded"
    assert answer(found) == ((True, None) if is_loaded else (False, message))


@pytest.mark.parametrize("kind", [onnx.TensorProto.INT64, onnx.TensorProto.FLOAT])
@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_the_declared_type_of_a_constant_does_not_count(kind, version):
    nodes = [node("Constant", [], ["c"], value=ints("c", 1, 2)), node("Relu", ["x"], ["y"])]
    found = model(nodes, [value("x", [2])], [value("c", [2], kind), value("y", [2])], 13, ir_version=8)
    assert placed_model(found, version).created is True
