"""legalize merges the batch of nodes with more dimensions than their kernels take."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import dmlsplit as dml
from dmlsplit.mending import mended_model
from dmlsplit.targets.target import find_target
from tests import models

NEWEST = "1.24.4"


def legalized(model):
    with mended_model(model, find_target(onnxruntime=NEWEST)) as found:
        return found, onnx.load_from_string(b"".join(map(bytes, found.copied()))) if found.parts else None


def product(left, right):
    result = (*np.broadcast_shapes(left[:-2], right[:-2]), left[-2], right[-1])
    shapes = [",".join(map(str, shape)) for shape in (left, right, result)]
    return models.text("(float[{}] x, float[{}] z) => (float[{}] y) {{ y = MatMul(x, z) }}".format(*shapes))


def computed(model):
    random = np.random.default_rng(1)
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    inputs = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return [each.tobytes() for each in ReferenceEvaluator(model).run(None, inputs)]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 2, 3, 4, 5), (1, 2, 3, 5, 2)),
        ((2, 3, 4, 5, 6), (6, 7)),
        ((2, 3, 4, 5, 6), (1, 1, 1, 6, 7)),
        ((5, 6), (2, 3, 4, 6, 7)),
        ((1, 2, 3, 4, 5), (2, 3, 5, 6)),
        ((1, 1, 1, 2, 2, 2, 4, 5), (1, 1, 1, 2, 2, 2, 5, 3)),
    ],
)
def test_a_product_of_batches(left, right):
    model = product(left, right)
    assert dml.onnxruntime.session(model, NEWEST).created is False
    found, written = legalized(model)
    assert (found.refusals, [each.names for each in found.changes]) == ([], [("merge-batch",)])
    onnx.checker.check_model(written, full_check=True)
    assert dml.onnxruntime.session(written, NEWEST).created is True
    assert computed(written) == computed(model)


def test_trilu():
    model = models.text("(float[2,1,3,4,4] x) => (float[2,1,3,4,4] y) { y = Trilu<upper=0>(x) }")
    found, written = legalized(model)
    assert [each.names for each in found.changes] == [("merge-batch",)]
    assert dml.onnxruntime.session(written, NEWEST).created is True
    assert [node.op_type for node in written.graph.node] == ["Constant", "Reshape", "Trilu", "Constant", "Reshape"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "(float[2,3,4,4,5] x, float[2,1,1,5,2] z) => (float[2,3,4,4,2] y) { y = MatMul(x, z) }",
            "y reads a static tensor of rank 5, but its kernel accepts at most 4, and one of its inputs is broadcast "
            "along a part of the batch dimensions",
        ),
        (
            "(float[1,1,1,1,1,1,1,2,3] x) => (float[1,1,1,1,1,1,1,2,3] y) { y = Relu(x) }",
            "y has a static tensor of rank 9, and a Reshape does not accept that rank either",
        ),
        (
            "(float[1,2,3,3,3,3] x, float[2,2,1,1,1,1] w) => (float[?,?,?,?,?,?] y) { y = Conv(x, w) }",
            "y reads a static tensor of rank 6, but its kernel accepts at most 5, and its dimensions are not a batch",
        ),
    ],
)
def test_what_cannot_be_merged(text, why):
    found, written = legalized(models.text(text))
    assert written is None
    assert [each.reason for each in found.refusals] == [why]


def test_a_function_with_other_sizes_at_each_call():
    function = '<domain: "own", opset_import: ["" : 17]> F (x, z) => (y) { y = MatMul(x, z) }'
    text = """(float[1,2,3,4,5] x, float[1,2,3,5,2] z, float[1,2,4,4,5] u, float[1,2,4,5,2] v)
        => (float[1,2,3,4,2] y, float[1,2,4,4,2] w) { y = own.F(x, z) w = own.F(u, v) }"""
    found, _ = legalized(models.text(text, functions=function))
    assert [each.reason.split(", and ")[1] for each in found.refusals] == [
        "its sizes differ between the calls of its function"
    ]


def test_open_sizes_are_no_rank_that_fails():
    model = models.text("(float[N,2,3,4,5] x, float[N,2,3,5,2] z) => (float[N,2,3,4,2] y) { y = MatMul(x, z) }")
    found, written = legalized(model)
    assert (found.changes, written) == ([], model)


def test_a_tensor_of_a_type_that_onnx_does_not_name():
    """The change that is listed shows the replaced node, with attributes that are no operator's."""
    model = product((1, 2, 3, 4, 5), (1, 2, 3, 5, 2))
    for number in (99, 0):
        tensor = onnx.TensorProto(data_type=number, dims=[1])
        model.graph.node[0].attribute.append(onnx.helper.make_attribute(f"__of_type_{number}", tensor))
    found, written = legalized(model)
    assert written is not None
    (before,) = found.changes[0].before
    assert before.endswith(" __of_type_99=type 99[1] __of_type_0=UNDEFINED[1]")
