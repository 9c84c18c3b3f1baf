"""The pass dmlsplit.onnxruntime.passes.conv_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.conv_fusion import conv_fusion
from tests.onnxruntime.passes import after

HEAD = (
    "(float[1,2,4,4] x, float[2,2,1,1] v) => (float[?,?,?,?] o) <float[2,2,1,1] w = {1,2,3,4}, float[2] s = {1,2}, "
    "float[2,1,1] c = {1,2}, float[1,2,1,1] d = {1,2}, float[4] r = {1,2,3,4}, float two = {2}, "
    "float[1,1,1] one = {2}>"
)
GONE = ["o = Conv(x,w)"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Conv(x, w) o = BatchNormalization(a, s, s, s, s)", GONE),
        ("a = Conv(x, w) o = Mul(a, c)", GONE),
        ("a = Conv(x, w) o = Add(a, d)", GONE),
        ("a = Conv(x, w) o = Add(d, a)", ["a = Conv(x,w)", "o = Add(d,a)"]),
        ("a = Conv(x, w) o = Mul(a, two)", GONE),
        ("a = Conv(x, w) b = BatchNormalization(a, s, s, s, s) d2 = Mul(b, c) o = Add(d2, c)", GONE),
        ("a = Conv(x, w) o = Add(a, r)", ["a = Conv(x,w)", "o = Add(a,r)"]),
        ("a = Conv(x, w) o = Add(a, two)", ["a = Conv(x,w)", "o = Add(a,two)"]),
        ("a = Conv(x, w) o = Mul(a, one)", ["a = Conv(x,w)", "o = Mul(a,one)"]),
        ("a = Conv(x, v) o = Mul(a, c)", ["a = Conv(x,v)", "o = Mul(a,c)"]),
        ("a = Conv(x, w) o = Mul(a, a)", ["a = Conv(x,w)", "o = Mul(a,a)"]),
        ("a = Conv(x, w) b = Mul(a, c) o = Add(b, a)", ["a = Conv(x,w)", "b = Mul(a,c)", "o = Add(b,a)"]),
    ],
    ids=[
        "BatchNormalization",
        "scale",
        "shift",
        "a shift in front",
        "scalar",
        "all of them",
        "a row",
        "plus a scalar",
        "one factor in three dimensions",
        "weights that are given",
        "its square",
        "another reader",
    ],
)
def test_what_weights_can_hold(body, expected):
    assert after(conv_fusion, f"{HEAD} {{ {body} }}") == expected
