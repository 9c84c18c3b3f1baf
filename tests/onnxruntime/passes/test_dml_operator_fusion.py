"""The pass dmlsplit.onnxruntime.passes.dml_operator_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.dml_operator_fusion import dml_operator_fusion
from tests.onnxruntime.passes import after, graph_of

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
    assert (node.unwritten, node.index, node.absorbed) == ("a", 1, [0])
