"""Operators without a kernel are replaced by the operators that ONNX defines them by.

Source: graph_partitioner.cc (InlineNodes) of ONNX Runtime, and the function bodies of onnx; observed.
"""

from __future__ import annotations

from dmlsplit.models.graph import Graph


def function_expansion(graph: Graph) -> None:
    """Replaces, in place, each HardSwish on DirectML by x * HardSigmoid(x), and lets a CastLike for which a Cast stands
    read only what that reads."""
    for node in graph.nodes:
        if node.op_type == "CastLike" and graph.facts.is_expanded(node.index):
            graph.read(node, node.inputs[:1])
        if node.op_type == "HardSwish" and graph.facts.on_dml(node.index):
            sigmoid = graph.insert(node, "HardSigmoid", node.inputs)
            graph.read(node, [*node.inputs, *sigmoid.outputs])
            node.op_type = "Mul"
            graph.renumber(node)
