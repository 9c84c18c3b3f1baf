"""x * Sigmoid(x) becomes one node. Source: quick_gelu_fusion.cc of ONNX Runtime.

DirectML still gets two operators where alpha is 1.
"""

from __future__ import annotations

from dmlsplit.models.graph import Graph
from dmlsplit.onnxruntime.operator_traits import QUICK_GELU


def quick_gelu_fusion(graph: Graph) -> None:
    """Fuses each Sigmoid with the Mul of its input and output, if that alone reads it."""
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
