"""x * Sigmoid(x) becomes one node. Source: quick_gelu_fusion.cc of ONNX Runtime.

With an alpha of 1 it is two of DirectML's operators, as before.
"""

from __future__ import annotations

from typing import Final

from dmlsplit.models.graph import Graph

QUICK_GELU: Final = "QuickGelu"
"""The operator of com.microsoft."""


def quick_gelu_fusion(graph: Graph) -> None:
    """Makes one node of each Mul by a Sigmoid that nothing else reads, of the tensor that the Sigmoid reads."""
    for node in graph.nodes:
        if node.op_type != "Mul" or len(node.inputs) != 2:
            continue
        for value, other in (node.inputs, node.inputs[::-1]):
            sigmoid = value.producer
            if sigmoid is None or sigmoid.op_type != "Sigmoid" or sigmoid.inputs != [other]:
                continue
            if sigmoid.only_reader is node:
                graph.read(node, [other])
                graph.remove(sigmoid)
                node.op_type = QUICK_GELU
                node.absorbed.append(sigmoid.index)
                node.number = graph.new_number()
                break
