"""Models whose sizes are open: those that are given count for what is cut out, too."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import dmlsplit as dml
from dmlsplit.reducing.findings import Finding
from dmlsplit.reducing.reduction import _class_of
from dmlsplit.system.errors import InputError
from tests.models import text

GLU = """(float[N,8,4,4] x) => (float[N,4,4,4] o)
{ y = Exp(x)  z = Softmax(y)  a, b = Split<axis=1>(z)  s = Sigmoid(b)  m = Mul(a, s)  o = Neg(m) }"""
EMPTY = """(float[n,4] x, float[1,4] s) => (float[n,4] y, float[1,4] t)
{ h = Exp(x)  g = Neg(h)  y = Relu(g)  u = Exp(s)  t = Tanh(u) }"""


def sizes(found):
    return [
        [dim.dim_value or dim.dim_param for dim in each.type.tensor_type.shape.dim] for each in found.model.graph.input
    ]


def test_a_size_that_is_given_at_session_creation():
    with pytest.raises(InputError, match="it has no known fault"):
        dml.onnx.reduce(text(GLU), "1.24.4")
    found = dml.onnx.reduce(text(GLU), "1.24.4", free_dimensions={"N": 2})
    assert (found.rule, found.nodes, sizes(found)) == ("graph/fused-wrongly", 3, [[2, 8, 4, 4]])
    assert found.explanation is not None
    assert [node.op_type for node in found.model.graph.node] == ["Split", "Sigmoid", "Mul"]
    (array,) = found.inputs.arrays.values()
    assert array.shape == (2, 8, 4, 4)


def test_a_size_of_the_first_run():
    found = dml.onnx.reduce(text(EMPTY), "1.24.4", run_dims={"n": 0})
    assert (found.rule, found.nodes <= 2) == ("graph/empty-output", True)
    onnx.checker.check_model(found.model, full_check=True)


def test_the_class_is_what_the_sizes_break_that_are_known_in_the_end():
    """Where the whole model's are not, only ONNX Runtime's refusal is; a rule that was chosen stays."""
    error = dml.Severity.ERROR
    chosen = Finding("onnxruntime/inference-fails", error, "a", "")
    left = [Finding("onnx/axis-negative", error, "b", ""), Finding("onnx/split-sum", error, "a", ""), chosen]
    assert _class_of(left, chosen, by_rule=False).rule == "onnx/split-sum"
    assert _class_of(left, chosen, by_rule=True) is chosen
    assert _class_of(left[:2], chosen, by_rule=False) is None


def test_a_fault_of_a_graph_is_what_a_node_of_it_was_refused_for():
    refused = Finding("graph/memory-too-small", dml.Severity.ERROR, "", "")
    assert refused.is_like(("onnxruntime/graph-refused", ""))
    assert not refused.is_like(("onnxruntime/empty-part", ""))


def test_inputs_that_are_too_large_are_not_written():
    found = dml.onnx.reduce(text(GLU.replace("[N,", "[1000000,")), "1.24.4")
    assert (found.rule, found.nodes, found.inputs.arrays, found.predicted.arrays) == ("graph/fused-wrongly", 3, {}, {})
    assert "268435456" in found.inputs.why
    assert found.expected.why == found.predicted.why == found.inputs.why


def test_integers_and_booleans_get_inputs_too():
    body = "(int64[2,3] i, bool[2,3] c, float[2,3] x) => (float[2,3] o) { f = Cast<to=1>(i)  o = Where(c, f, x) }"
    found = dml.onnx.reduce(text(body), "1.24.4", check=lambda model: "Where" in [n.op_type for n in model.graph.node])
    assert {array.dtype.kind for array in found.inputs.arrays.values()} == {"b", "f"}
    (out,) = found.expected.arrays.values()
    c, f, x = found.inputs.arrays["c"], found.inputs.arrays["f"], found.inputs.arrays["x"]
    assert (out == np.where(c, f, x)).all()
