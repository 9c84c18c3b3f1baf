"""The pass dmlsplit.onnxruntime.passes.relu_clip_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.relu_clip_fusion import relu_clip_fusion
from dmlsplit.targets.runtime_versions import find_runtime
from tests.models import text
from tests.onnxruntime.passes import after
from tests.onnxruntime.whole_models import predicted

HEAD = "(float[2,6] x, float m) => (float[2,6] o) <float l = {0}, float h = {6}>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Relu(x) o = Clip(a, l, h)", ["o = Clip(x,l,h)"]),
        ("a = Relu(x) o = Clip(a)", ["o = Clip(x)"]),
        ("a = Relu(x) o = Clip(a, l, m)", ["o = Clip(x,l,m)"]),
        ("a = Relu(x) o = Clip(a, m, h)", ["a = Relu(x)", "o = Clip(a,m,h)"]),
        ("a = Relu(x) b = Clip(a, l, h) o = Add(a, b)", ["a = Relu(x)", "b = Clip(a,l,h)", "o = Add(a,b)"]),
        ("a = Clip(x, l, h) o = Relu(a)", ["a = Clip(x,l,h)", "o = Relu(a)"]),
    ],
    ids=[
        "limits",
        "no limits",
        "an upper limit that is given",
        "a lower limit that is given",
        "another reader",
        "the other way round",
    ],
)
def test_a_relu_in_front_of_a_clip(body, expected):
    assert after(relu_clip_fusion, f"{HEAD} {{ {body} }}") == expected


def test_limits_that_are_attributes():
    body = "(float[2,6] x) => (float[2,6] o) { a = Relu(x) o = Clip<min=0.0, max=6.0>(a) }"
    assert after(relu_clip_fusion, body, 6) == ["o = Clip(x)"]


@pytest.mark.parametrize(
    ("data_type", "limits", "created"), [("double", "l", False), ("double", ",l", True), ("float", "l", True)]
)
def test_limits_of_another_type(data_type, limits, created):
    """As ONNX Runtime fails, asked live of 1.18.0 to 1.30.0."""
    head = f"({data_type}[2,6] x) => ({data_type}[2,6] o) <{data_type} l = {{0}}>"
    found = predicted(text(f"{head} {{ a = Relu(x) o = Clip(a, {limits}) }}"), find_runtime("1.30.0"))
    assert found.created is created
    assert created or found.failure.message == "o is fused with the Relu before it, which fails for a limit of DOUBLE"
