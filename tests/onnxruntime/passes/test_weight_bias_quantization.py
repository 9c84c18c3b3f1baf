"""The pass dmlsplit.onnxruntime.passes.weight_bias_quantization, as ONNX Runtime does it, asked live."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.weight_bias_quantization import weight_bias_quantization
from tests.onnxruntime.passes import graph_of

HEAD = (
    "(float[1,2,3,3] x, float[2] g) => (float[1,2,3,3] y) <float s = {0.1}, uint8 z = {0}, float[2] b = {1,2}, "
    "int8[2,2,1,1] q = {1,2,3,4}, float[2,2,1,1] w = {1,2,3,4}, float[2] c = {1,2}>"
)
READ = "p = QuantizeLinear(x, s, z) d = DequantizeLinear(p, s, z)"
WEIGHTS = "e = DequantizeLinear(q, s)"
CHANNELS = "e = DequantizeLinear<axis={}>(q, c)"
WRITTEN = "o = QuantizeLinear(r, s, z) y = DequantizeLinear(o, s, z)"


@pytest.mark.parametrize(
    ("body", "version", "types"),
    [
        (f"{READ} {WEIGHTS} r = Conv(d, e, b) {WRITTEN}", "1.20.1", {}),
        (f"{READ} {WEIGHTS} r = Conv(d, e, b) {WRITTEN}", "1.22.0", {2: "INT32"}),
        (f"{READ} r = Conv(d, w, b) {WRITTEN}", "1.30.0", {1: "INT8", 2: "INT32"}),
        (f"{READ} r = Conv(d, w) {WRITTEN}", "1.30.0", {1: "INT8"}),
        (f"{READ} r = Conv(d, w, g) {WRITTEN}", "1.30.0", {}),
        (f"{READ} {CHANNELS.format(0)} r = Conv(d, e, b) {WRITTEN}", "1.30.0", {2: "INT32"}),
        (f"{READ} {CHANNELS.format(1)} r = Conv(d, e, b) {WRITTEN}", "1.30.0", {}),
        (f"{READ} {WEIGHTS} k = Conv(d, e, b) r = Relu(k) {WRITTEN}", "1.22.0", {}),
        (f"{READ} {WEIGHTS} k = Conv(d, e, b) r = Relu(k) {WRITTEN}", "1.23.2", {2: "INT32"}),
        (f"{READ} {WEIGHTS} k = Conv(d, e, b) r = Sigmoid(k) {WRITTEN}", "1.30.0", {}),
        (f"{READ} {WEIGHTS} y = Conv(d, e, b)", "1.30.0", {}),
        (f"{WEIGHTS} r = Conv(x, e, b) {WRITTEN}", "1.30.0", {}),
    ],
    ids=[
        "an old version",
        "a bias",
        "weights and a bias",
        "weights",
        "a bias that is given",
        "a scale for each channel",
        "along another axis",
        "a Relu",
        "a Relu in a newer version",
        "a Sigmoid",
        "no QuantizeLinear",
        "no DequantizeLinear",
    ],
)
def test_what_is_quantized(body, version, types):
    graph = graph_of(f"{HEAD} {{ {body} }}", 17, version)
    weight_bias_quantization(graph)
    (conv,) = [node for node in graph.nodes if node.op_type == "Conv"]
    made = {i: value.producer for i, value in enumerate(conv.inputs) if value.producer and value.producer.is_inserted}
    assert {i: graph.facts.data_type(node.inputs[0].name) for i, node in made.items()} == types
    assert all(node.op_type == "DequantizeLinear" for node in made.values())
