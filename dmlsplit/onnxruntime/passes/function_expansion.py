"""Operators without a kernel are replaced with the operators of their definition in ONNX.

Source: graph_partitioner.cc (InlineNodes) of ONNX Runtime, and the function bodies of onnx; observed.
"""

from __future__ import annotations

from onnx import helper

from dmlsplit.models.graph import Graph


def function_expansion(graph: Graph) -> None:
    """Replaces, in place, each HardSwish on DirectML with x * HardSigmoid(x), and removes the second input of each
    CastLike that becomes a Cast."""
    for node in graph.nodes:
        if node.op_type == "CastLike" and graph.facts.is_expanded(node.index):
            graph.read(node, node.inputs[:1])
        if node.op_type == "HardSwish" and graph.facts.on_dml(node.index):
            sigmoid = graph.insert(node, "HardSigmoid", node.inputs)
            sigmoid.proto = helper.make_node("HardSigmoid", [], [], alpha=1 / 6, beta=0.5)
            graph.read(node, [*node.inputs, *sigmoid.outputs])
            node.op_type = "Mul"
            graph.renumber(node)
