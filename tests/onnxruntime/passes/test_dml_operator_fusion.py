"""The pass dmlsplit.onnxruntime.passes.dml_operator_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.formats.onnx import loading
from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.formats.sessions import Inputs
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.passes.dml_operator_fusion import dml_operator_fusion
from dmlsplit.targets.runtime_versions import NEWEST
from tests.models import text
from tests.onnxruntime.passes import NONE, after, graph_of, left

HEAD = "(float[2,6] x, float[2,6] y, float[6,6] w) => (float[2,6] o)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = MatMul(x, w) o = Relu(a)", ["o = MatMul(x,w)"]),
        ("a = Gemm(x, w, y) o = Tanh(a)", ["o = Gemm(x,w,y)"]),
        ("a = Add(x, y) o = Relu(a)", ["o = FusedAdd(x,y)"]),
        ("a = Sum(x, y) o = LeakyRelu(a)", ["o = FusedAdd(x,y)"]),
        ("a = Sum(x, y, y) o = Relu(a)", ["a = Sum(x,y,y)", "o = Relu(a)"]),
        ("a = Add(x, y) o = Tanh(a)", ["a = Add(x,y)", "o = Tanh(a)"]),
        ("a = Mul(x, y) o = Relu(a)", ["a = Mul(x,y)", "o = Relu(a)"]),
        ("a = Add(x, y) b = Relu(a) o = Mul(a, b)", ["a = Add(x,y)", "b = Relu(a)", "o = Mul(a,b)"]),
    ],
    ids=["MatMul", "Gemm", "Add", "Sum", "a sum of three", "no Relu", "no sum", "another reader"],
)
def test_an_activation_becomes_part_of_what_feeds_it(body, expected):
    assert after(dml_operator_fusion, f"{HEAD} {{ {body} }}") == expected


def test_an_output_between_them_is_never_written():
    graph = graph_of(f"{HEAD.replace('=> (', '=> (float[2,6] a, ')} {{ a = Add(x, y) o = Relu(a) }}")
    dml_operator_fusion(graph)
    (node,) = graph.nodes
    assert (node.unwritten, node.index, node.absorbed) == ("a", 1, (0,))


def test_in_a_branch_of_an_if_nothing_is_fused():
    body = "{0} () => (float[2,6] {0}0) {{ a{0} = Add(x, y) {0}0 = Relu(a{0}) }}"
    choice = f"o = If (c) <then_branch = {body.format('t')}, else_branch = {body.format('e')}>"
    made = text(f"(float[2,6] x, float[2,6] y, bool c) => (float[2,6] o) {{ {choice} }}")
    for graph in OnnxSessions(loading.without_weights(made), no_external_data).of(NEWEST, NONE, Inputs()).graphs:
        dml_operator_fusion(graph.graph)
        assert left(graph.graph) in (
            ["o = If(c)"],
            ["at = Add(x,y)", "t0 = Relu(at)"],
            ["ae = Add(x,y)", "e0 = Relu(ae)"],
        )
