"""The passes dmlsplit.onnxruntime.passes.matmul_transpose_fusion and matmul_activation_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.matmul_activation_fusion import later_matmul_fusion, matmul_activation_fusion
from dmlsplit.onnxruntime.passes.matmul_scale_fusion import Product, matmul_scale_fusion, product_of
from dmlsplit.onnxruntime.passes.matmul_transpose_fusion import matmul_transpose_fusion
from tests.onnxruntime.passes import graph_of, left

HEAD = (
    "(float[5,4,3] x, float[5,4,2] y, float[4,2] w, float[5,2] v, float[3,4,2] xw, float[3,5,2] xv, float[3,2] u) => "
    "(float[?,?,?] o{}) <float k = {{0.5}}, float two = {{2}}>"
)


def fused(body: str, more: str = "", *changes):
    graph = graph_of(f"{HEAD.format(more)} {{ {body} }}")
    for change in changes or (matmul_transpose_fusion,):
        change(graph)
    return graph


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("t = Transpose<perm=[0,2,1]>(x) o = MatMul(t, y)", Product(trans_a=1)),
        ("t = Transpose<perm=[0,2,1]>(y) s = Transpose<perm=[0,2,1]>(x) o = MatMul(s, y)", Product(trans_a=1)),
        ("t = Transpose<perm=[0,2,1]>(x) o = MatMul(t, w)", Product(trans_a=1)),
        ("t = Transpose<perm=[1,2,0]>(x) s = Transpose<perm=[1,0,2]>(y) o = MatMul(t, s)", Product(1, 1, 0, 1, 1)),
    ],
)
def test_transposes(body, expected):
    (node,) = (node for node in fused(body).nodes if node.op_type == "FusedMatMul")
    assert product_of(node) == expected
    assert not any(value.name in "ts" for value in node.inputs)


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("t = Transpose<perm=[2,0,1]>(x) o = MatMul(t, xw)", ""),
        ("t = Transpose<perm=[2,1,0]>(x) o = MatMul(t, xv)", ""),
        ("t = Transpose<perm=[0,2,1]>(x) o = MatMul(t, y)", ", float[5,3,4] t"),
        ("t = Transpose<perm=[1,2,0]>(x) o = MatMul(t, v)", ""),
    ],
    ids=["last axis first", "reversed", "an output", "other ranks"],
)
def test_what_stays(body, more):
    graph = fused(body, more)
    assert [node.op_type for node in graph.nodes] == ["Transpose", "MatMul"]


def test_a_transpose_that_is_read_elsewhere_stays():
    graph = fused("t = Transpose<perm=[0,2,1]>(x) o = MatMul(t, y) r = Relu(t)", ", float[5,3,4] r")
    assert left(graph) == ["t = Transpose(x)", "o = FusedMatMul(x,y)", "r = Relu(t)"]
    assert graph.nodes[1].origins == (1,)


def test_it_stands_for_the_transpose():
    (node,) = fused("t = Transpose<perm=[0,2,1]>(x) o = MatMul(t, y)").nodes
    assert sorted(node.origins) == [0, 1]


def test_a_factor_behind_a_transpose():
    body = "t = Transpose<perm=[0,2,1]>(x) m = Mul(t, k) p = MatMul(m, y) o = Div(p, two)"
    in_front = "m = Mul(x, k) t = Transpose<perm=[0,2,1]>(m) p = MatMul(t, y) o = Div(p, two)"
    for each in (body, in_front):
        (node,) = fused(each, "", matmul_transpose_fusion, matmul_scale_fusion, later_matmul_fusion).nodes
        assert product_of(node) == Product(alpha=0.25, trans_a=1)


CAST = "(float16[5,4,3] x, float[5,4,2] y) => (float[?,?,?] o{}) {{ {} }}"
TURNED = "t = Transpose<perm=[0,2,1]>(x) c = Cast<to=1>(t) o = MatMul(c, y)"


@pytest.mark.parametrize(
    ("more", "body", "expected"),
    [
        ("", TURNED, ["c/cast = Cast(x)", "o = FusedMatMul(c/cast,y)"]),
        (
            ", float16[5,3,4] r",
            f"{TURNED} r = Relu(t)",
            ["t = Transpose(x)", "c/cast = Cast(x)", "o = FusedMatMul(c/cast,y)", "r = Relu(t)"],
        ),
        (
            ", float[5,3,4] r",
            f"{TURNED} r = Relu(c)",
            ["c = Transpose(c/cast)", "c/cast = Cast(x)", "o = FusedMatMul(c/cast,y)", "r = Relu(c)"],
        ),
    ],
    ids=["alone", "a Transpose that others read", "a Cast that others read"],
)
def test_a_cast_is_made_first(more, body, expected):
    """As ONNX Runtime swaps the two, asked live of 1.18.0 to 1.30.0."""
    graph = graph_of(CAST.format(more, body))
    matmul_transpose_fusion(graph)
    assert left(graph) == expected


def test_a_cast_to_an_output_is_a_doubt():
    graph = graph_of(CAST.format(", float[5,3,4] c", TURNED))
    matmul_transpose_fusion(graph)
    assert [bool(node.doubts) for node in graph.nodes] == [False, False, True]


def test_a_softmax_behind_a_fused_product():
    body = "t = Transpose<perm=[0,2,1]>(x) m = MatMul({}, y) o = Softmax(m)"
    graph = fused(body.format("t"), "", matmul_transpose_fusion, matmul_activation_fusion)
    assert left(graph) == ["o = FusedMatMulActivation(x,y)"]
    graph = fused("m = MatMul(x, u) o = Softmax(m)", "", matmul_transpose_fusion, matmul_activation_fusion)
    assert [node.op_type for node in graph.nodes] == ["MatMul", "Softmax"]


def test_a_softmax_is_fused_before_a_transpose_behind_a_factor():
    """As ONNX Runtime repeats the passes, asked live of 1.18.0 to 1.30.0."""
    graph = fused(
        "t = Transpose<perm=[0,2,1]>(x) m = Mul(t, k) p = MatMul(m, y) o = Softmax(p)",
        "",
        matmul_transpose_fusion,
        matmul_scale_fusion,
        matmul_activation_fusion,
        later_matmul_fusion,
    )
    assert left(graph) == ["t = Transpose(x)", "o = FusedMatMulActivation(t,y)"]
