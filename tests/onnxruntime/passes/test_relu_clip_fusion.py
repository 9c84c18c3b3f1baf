"""The pass dmlsplit.onnxruntime.passes.relu_clip_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.relu_clip_fusion import relu_clip_fusion
from tests.onnxruntime.passes import after

HEAD = "(float[2,6] x, float m) => (float[2,6] o) <float l = {0}, float h = {6}>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Relu(x) o = Clip(a, l, h)", ["o = Clip(x,l,h)"]),
        ("a = Relu(x) o = Clip(a)", ["o = Clip(x)"]),
        ("a = Relu(x) o = Clip(a, l, m)", ["a = Relu(x)", "o = Clip(a,l,m)"]),
        ("a = Relu(x) b = Clip(a, l, h) o = Add(a, b)", ["a = Relu(x)", "b = Clip(a,l,h)", "o = Add(a,b)"]),
        ("a = Clip(x, l, h) o = Relu(a)", ["a = Clip(x,l,h)", "o = Relu(a)"]),
    ],
    ids=["limits", "no limits", "a limit that is given", "another reader", "the other way round"],
)
def test_a_relu_in_front_of_a_clip(body, expected):
    assert after(relu_clip_fusion, f"{HEAD} {{ {body} }}") == expected


def test_limits_that_are_attributes():
    body = "(float[2,6] x) => (float[2,6] o) { a = Relu(x) o = Clip<min=0.0, max=6.0>(a) }"
    assert after(relu_clip_fusion, body, 6) == ["o = Clip(x)"]
