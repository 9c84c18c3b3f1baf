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
