"""The pass dmlsplit.onnxruntime.passes.where_dummy_dq, as ONNX Runtime does it, asked live."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.where_dummy_dq import where_dummy_dq
from tests.onnxruntime.passes import graph_of

HEAD = (
    "(uint8[2,3] x, bool[2,3] c) => ({}[2,3] y) <float s = {{0.1}}, uint8 z = {{0}}, int8 i = {{0}}, float k = {{1}}, "
    "float[1] v = {{1}}>"
)


@pytest.mark.parametrize(
    ("body", "output", "versions"),
    [
        ("d = DequantizeLinear(x, s, z) w = Where(c, d, k) y = QuantizeLinear(w, s, z)", "uint8", "1.24.4 1.30.0"),
        ("d = DequantizeLinear(x, s, z) w = Where(c, k, d) y = QuantizeLinear(w, s, z)", "uint8", "1.24.4 1.30.0"),
        ("d = DequantizeLinear(x, s, z) w = Where(c, v, d) y = QuantizeLinear(w, s, z)", "uint8", ""),
        ("d = DequantizeLinear(x, s, z) w = Where(c, k, d) y = QuantizeLinear(w, s, i)", "int8", "1.24.4"),
        ("d = DequantizeLinear(x, s, z) y = Where(c, k, d)", "float", "1.24.4"),
    ],
    ids=["second", "first", "a vector", "another type", "no QuantizeLinear"],
)
def test_a_scalar_is_dequantized(body, output, versions):
    for version in ("1.23.2", "1.24.4", "1.30.0"):
        graph = graph_of(f"{HEAD.format(output)} {{ {body} }}", 17, version)
        where_dummy_dq(graph)
        assert sum(node.op_type == "DequantizeLinear" for node in graph.nodes) == 1 + (version in versions)
        assert not graph.failing


def test_a_quantization_without_a_zero_point():
    body = "d = DequantizeLinear(x, s) w = Where(c, k, d) y = QuantizeLinear(w, s)"
    for version, fails in (("1.24.4", True), ("1.30.0", False)):
        graph = graph_of(f"{HEAD.format('uint8')} {{ {body} }}", 17, version)
        where_dummy_dq(graph)
        assert bool(graph.failing) is fails
