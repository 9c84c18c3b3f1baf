"""Operators without a kernel that ONNX defines by others: these take their place.

Source: graph_partitioner.cc (InlineNodes) of ONNX Runtime, and the function bodies of onnx; observed.
"""

from __future__ import annotations

from dmlsplit.models.graph import Graph


def function_expansion(graph: Graph) -> None:
    """Makes x * HardSigmoid(x) of each HardSwish."""
    for node in graph.nodes:
        if node.op_type == "HardSwish":
            sigmoid = graph.insert(node, "HardSigmoid", node.inputs)
            graph.read(node, [*node.inputs, *sigmoid.outputs])
            node.op_type = "Mul"
            node.number = graph.new_number()
