"""The pass dmlsplit.onnxruntime.passes.div_mul_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.div_mul_fusion import div_mul_fusion
from tests.onnxruntime.passes import after

HEAD = "(float[2,3] x, float[2,3] y) => (float[?,?] o) <float one = {1}, float two = {2}>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("d = Div(one, x) o = Mul(d, y)", ["o = Div(y,x)"]),
        ("d = Div(one, x) o = Mul(y, d)", ["o = Div(y,x)"]),
        ("d = Div(two, x) o = Mul(d, y)", ["d = Div(two,x)", "o = Mul(d,y)"]),
        ("d = Div(x, one) o = Mul(d, y)", ["d = Div(x,one)", "o = Mul(d,y)"]),
        ("d = Div(one, x) o = Mul(d, d)", ["d = Div(one,x)", "o = Mul(d,d)"]),
    ],
    ids=["first", "second", "another dividend", "a divisor", "its square"],
)
def test_a_quotient_of_1_that_is_a_factor(body, expected):
    assert after(div_mul_fusion, f"{HEAD} {{ {body} }}") == expected


def test_other_types():
    body = "(uint8[2,3] x, uint8[2,3] y) => (uint8[2,3] o) <uint8 one = {1}> { d = Div(one, x) o = Mul(d, y) }"
    assert after(div_mul_fusion, body) == ["d = Div(one,x)", "o = Mul(d,y)"]
