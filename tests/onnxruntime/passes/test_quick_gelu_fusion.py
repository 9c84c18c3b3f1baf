"""The pass dmlsplit.onnxruntime.passes.quick_gelu_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.quick_gelu_fusion import quick_gelu_fusion
from dmlsplit.targets.runtime_versions import find_runtime
from tests.models import text
from tests.onnxruntime.passes import after, graph_of
from tests.onnxruntime.whole_models import predicted

HEAD = "(float[2,6] x, float[2,6] y) => (float[2,6] o) <float k = {1.5}, float[6] many = {1,1,1,1,1,1}>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("s = Sigmoid(x) o = Mul(x, s)", ["o = QuickGelu(x)"]),
        ("s = Sigmoid(x) o = Mul(s, x)", ["o = QuickGelu(x)"]),
        ("s = Sigmoid(x) o = Mul(s, y)", ["s = Sigmoid(x)", "o = Mul(s,y)"]),
        ("s = Sigmoid(x) m = Mul(x, s) o = Add(m, s)", ["s = Sigmoid(x)", "m = Mul(x,s)", "o = Add(m,s)"]),
        ("s = Sigmoid(x) o = Mul(s, s)", ["s = Sigmoid(x)", "o = Mul(s,s)"]),
        ("m = Mul(x, k) s = Sigmoid(m) o = Mul(x, s)", ["o = QuickGelu(x)"]),
        ("m = Mul(k, x) s = Sigmoid(m) o = Mul(s, x)", ["o = QuickGelu(x)"]),
        ("m = Mul(x, k) s = Sigmoid(m) o = Mul(m, s)", ["m = Mul(x,k)", "o = QuickGelu(m)"]),
        ("m = Mul(x, many) s = Sigmoid(m) o = Mul(x, s)", ["m = Mul(x,many)", "s = Sigmoid(m)", "o = Mul(x,s)"]),
    ],
    ids=[
        *("in front", "behind", "another tensor", "another reader", "its square"),
        *("a factor", "a factor in front", "what is multiplied", "factors"),
    ],
)
def test_a_tensor_by_its_own_sigmoid(body, expected):
    assert after(quick_gelu_fusion, f"{HEAD} {{ {body} }}") == expected


@pytest.mark.parametrize(("body", "alpha"), [("s = Sigmoid(x)", 1.0), ("m = Mul(x, k) s = Sigmoid(m)", 1.5)])
def test_its_factor(body, alpha):
    graph = graph_of(f"{HEAD} {{ {body} o = Mul(x, s) }}")
    quick_gelu_fusion(graph)
    (node,) = graph.nodes
    assert [each.f for each in node.proto.attribute] == [alpha]


@pytest.mark.parametrize(("data_type", "created"), [("double", False), ("float", True)])
def test_other_types_on_the_cpu(data_type, created):
    """As ONNX Runtime fails, asked live of 1.18.0 to 1.30.0."""
    body = f"({data_type}[2,3] x) => ({data_type}[2,3] o) {{ s = Sigmoid(x) o = Mul(x, s) }}"
    found = predicted(text(body), find_runtime("1.30.0"))
    assert found.created is created
    assert created or found.failure.message == "o becomes a QuickGelu on the CPU, which has no kernel for DOUBLE"
