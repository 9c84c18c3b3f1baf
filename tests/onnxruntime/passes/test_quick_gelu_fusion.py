"""The pass dmlsplit.onnxruntime.passes.quick_gelu_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.quick_gelu_fusion import quick_gelu_fusion
from tests.onnxruntime.passes import after

HEAD = "(float[2,6] x, float[2,6] y) => (float[2,6] o)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("s = Sigmoid(x) o = Mul(x, s)", ["o = QuickGelu(x)"]),
        ("s = Sigmoid(x) o = Mul(s, x)", ["o = QuickGelu(x)"]),
        ("s = Sigmoid(x) o = Mul(s, y)", ["s = Sigmoid(x)", "o = Mul(s,y)"]),
        ("s = Sigmoid(x) m = Mul(x, s) o = Add(m, s)", ["s = Sigmoid(x)", "m = Mul(x,s)", "o = Add(m,s)"]),
        ("s = Sigmoid(x) o = Mul(s, s)", ["s = Sigmoid(x)", "o = Mul(s,s)"]),
    ],
    ids=["in front", "behind", "another tensor", "another reader", "its square"],
)
def test_a_tensor_by_its_own_sigmoid(body, expected):
    assert after(quick_gelu_fusion, f"{HEAD} {{ {body} }}") == expected
