"""The pass dmlsplit.onnxruntime.passes.gemm_transpose_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.models.graph import Doubt, attribute
from dmlsplit.onnxruntime.passes.gemm_transpose_fusion import gemm_transpose_fusion
from dmlsplit.onnxruntime.passes.transpose_optimizer import doubt_moves
from tests.onnxruntime.passes import after, graph_of, left

HEAD = "(float[4,4] x, float[4,4] y, float[4] c) => (float[4,4] o{})"


def fused(body: str, more: str = "", opset: int = 17):
    graph = graph_of(f"{HEAD.format(more)} {{ {body} }}", opset)
    gemm_transpose_fusion(graph)
    return graph


@pytest.mark.parametrize(
    ("body", "expected", "transforms"),
    [
        ("t = Transpose(x) o = Gemm(t, y, c)", ["o = Gemm(x,y,c)"], [1, 0]),
        ("t = Transpose(y) o = Gemm<transB=1>(x, t, c)", ["o = Gemm(x,y,c)"], [0, 0]),
        ("t = Transpose(x) s = Transpose(y) o = Gemm(t, s)", ["o = Gemm(x,y)"], [1, 1]),
        ("t = Transpose(x) o = Gemm(t, t)", ["o = Gemm(x,x)"], [1, 1]),
        ("g = Gemm<transA=1>(x, y) o = Transpose(g)", ["o = Gemm(y,x)"], [1, 0]),
        ("g = Gemm(x, y, c) o = Transpose(g)", ["g = Gemm(x,y,c)", "o = Transpose(g)"], None),
    ],
)
def test_transposes(body, expected, transforms):
    graph = fused(body)
    assert left(graph) == expected
    if transforms is not None:
        (node,) = graph.nodes
        assert [attribute(node, name).i for name in ("transA", "transB")] == transforms
        assert sorted(node.origins) == list(range(len(body.split(" = ")) - 1))


def test_factors_are_kept():
    (node,) = fused("t = Transpose(x) o = Gemm<alpha=0.5, beta=2.0>(t, y, c)").nodes
    assert [attribute(node, name).f for name in ("alpha", "beta")] == [0.5, 2.0]


@pytest.mark.parametrize(
    ("body", "more", "opset"),
    [
        ("t = Transpose(x) o = Gemm(t, y, c)", ", float[4,4] t", 17),
        ("t = Transpose(x) o = Gemm(t, y, c) r = Relu(t)", ", float[4,4] r", 17),
        ("g = Gemm(x, y) o = Transpose(g)", ", float[4,4] g", 17),
    ],
    ids=["an output", "read twice", "the product is an output"],
)
def test_what_stays(body, more, opset):
    graph = fused(body, more, opset)
    assert "Transpose" in [node.op_type for node in graph.nodes]


def test_a_doubt_is_handed_on():
    swapped = "Transpose<perm=[1,0]>"
    body = f"a = {swapped}(x) b = Sqrt(a) e = Exp(b) t = {swapped}(e) o = Gemm(t, y, c)"
    graph = graph_of(f"{HEAD.format('')} {{ {body} }}")
    doubt_moves(graph)
    gemm_transpose_fusion(graph)
    assert Doubt.TRANSPOSED in graph.nodes[-1].doubts


def test_one_transpose_that_is_both_factors():
    """As ONNX Runtime fuses it, asked live of 1.18.0 to 1.30.0."""
    body = "(float[3,3] x, float[3] b) => (float[3,3] o) { t = Transpose(x) o = Gemm(t, t, b) }"
    assert after(gemm_transpose_fusion, body) == ["o = Gemm(x,x,b)"]
