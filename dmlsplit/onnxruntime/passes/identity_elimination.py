"""An Identity does nothing. Source: identity_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node, Value


def identity_elimination(graph: Graph, node: Node) -> Value | None:
    """The value that the node gives on."""
    return node.inputs[0] if len(node.inputs) == len(node.outputs) == 1 else None
