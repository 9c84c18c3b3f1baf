"""The pass dmlsplit.onnxruntime.passes.gemm_sum_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.gemm_sum_fusion import gemm_sum_fusion
from tests.onnxruntime.passes import after

HEAD = "(float[2,3] x, float[2,3] y, float[1,3] r, float[3] v, float[1,1] e, float[3,3] w) => (float[?,?] o)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("g = Gemm(x, w) o = Sum(g, y)", ["o = Gemm(x,w,y)"]),
        ("g = Gemm(x, w) o = Sum(y, g)", ["o = Gemm(x,w,y)"]),
        ("g = Gemm(x, w) o = Sum(g, r)", ["o = Gemm(x,w,r)"]),
        ("g = Gemm(x, w) o = Sum(v, g)", ["o = Gemm(x,w,v)"]),
        ("g = Gemm(x, w) o = Sum(g, e)", ["g = Gemm(x,w)", "o = Sum(g,e)"]),
        ("g = Gemm(x, w, r) o = Sum(g, y)", ["g = Gemm(x,w,r)", "o = Sum(g,y)"]),
        ("g = Gemm(x, w) o = Sum(g, y, y)", ["g = Gemm(x,w)", "o = Sum(g,y,y)"]),
        ("g = Gemm(x, w) o = Add(g, y)", ["g = Gemm(x,w)", "o = Add(g,y)"]),
        ("g = Gemm(x, w) s = Sum(g, y) o = Mul(g, s)", ["g = Gemm(x,w)", "s = Sum(g,y)", "o = Mul(g,s)"]),
    ],
    ids=[
        "first",
        "second",
        "a row",
        "a vector",
        "another shape",
        "three inputs",
        "a sum of three",
        "an Add",
        "another reader",
    ],
)
def test_a_sum_becomes_the_third_input(body, expected):
    assert after(gemm_sum_fusion, f"{HEAD} {{ {body} }}") == expected
