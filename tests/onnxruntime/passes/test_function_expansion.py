"""The pass dmlsplit.onnxruntime.passes.function_expansion."""

from __future__ import annotations

from dmlsplit.onnxruntime.passes.function_expansion import function_expansion
from tests.onnxruntime.passes import after, graph_of


def test_a_hard_swish_becomes_two_nodes():
    body = "(float[2,6] x) => (float[2,6] o) { a = Neg(x) o = HardSwish(a) }"
    assert after(function_expansion, body) == [
        "a = Neg(x)",
        "o = Mul(a,o/HardSigmoid)",
        "o/HardSigmoid = HardSigmoid(a)",
    ]
    graph = graph_of(body)
    function_expansion(graph)
    assert [node.op_type for node in graph.walk()] == ["Neg", "HardSigmoid", "Mul"]
    assert graph.nodes[2].outputs[0].known == "o"
