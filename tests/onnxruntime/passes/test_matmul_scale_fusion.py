"""The pass dmlsplit.onnxruntime.passes.matmul_scale_fusion: as ONNX Runtime 1.24.4 answers, asked live."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.matmul_scale_fusion import matmul_scale_fusion
from tests.onnxruntime.passes import after

HEAD = (
    "(float[4,8] x, float[8,8] w) => (float[4,8] o{}) <float k = {{0.5}}, float[1] l = {{2}}, float[8] many = {{2, 3}}>"
)


@pytest.mark.parametrize(
    ("body", "outputs", "expected"),
    [
        ("m = Mul(x, k) o = MatMul(m, w)", "", ["o = FusedMatMul(x,w)"]),
        ("m = Mul(l, x) o = MatMul(m, w)", "", ["o = FusedMatMul(x,w)"]),
        ("m = Div(w, k) o = MatMul(x, m)", "", ["o = FusedMatMul(x,w)"]),
        ("m = MatMul(x, w) o = Div(m, k)", "", ["o = FusedMatMul(x,w)"]),
        ("m = Mul(x, k) o = MatMul(m, w)", ", float[4,8] m", ["m = Mul(x,k)", "o = FusedMatMul(x,w)"]),
        ("m = Div(k, x) o = MatMul(m, w)", "", ["m = Div(k,x)", "o = MatMul(m,w)"]),
        ("m = Mul(x, many) o = MatMul(m, w)", "", ["m = Mul(x,many)", "o = MatMul(m,w)"]),
        ("m = MatMul(x, w) o = Mul(m, k)", ", float[4,8] m", ["m = MatMul(x,w)", "o = Mul(m,k)"]),
    ],
)
def test_a_factor_of_a_matmul(body, outputs, expected):
    assert after(matmul_scale_fusion, f"{HEAD.format(outputs)} {{ {body} }}") == expected


@pytest.mark.parametrize(
    ("body", "version", "fused"),
    [
        ("m = Mul(x, k4) o = MatMul(m, w)", "1.22.0", True),
        ("m = Mul(x, k4) o = MatMul(m, w)", "1.23.2", False),
        ("m = MatMul(x, w) o = Div(m, k4)", "1.22.0", True),
        ("m = MatMul(x, w) o = Div(m, k4)", "1.23.2", False),
        ("r = Reshape(x, s) m = Mul(r, k) o = MatMul(m, w)", "1.18.0", False),
        ("r = Reshape(x, s) m = MatMul(r, w) o = Mul(m, k)", "1.30.0", True),
    ],
)
def test_dimensions(body, version, fused):
    """As ONNX Runtime fuses them, asked live."""
    head = "(float[4,8] x, float[8,8] w, int64[R] s) => (float[?,?,?] o) <float k = {0.5}, float[1,1,1] k4 = {0.5}>"
    head = head.replace("float[?,?,?] o", "float[?,?] o") if "Reshape" in body else head
    assert (
        any("FusedMatMul" in each for each in after(matmul_scale_fusion, f"{head} {{ {body} }}", version=version))
        is fused
    )
