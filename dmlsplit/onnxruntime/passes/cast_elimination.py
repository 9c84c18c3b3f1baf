"""A Cast to the type that its input has does nothing. Source: cast_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node, Value


def cast_elimination(graph: Graph, node: Node) -> Value | None:
    """The input, where it is known to have the type of the output."""
    before, after = (graph.facts.data_type(value.name) for value in (node.inputs[0], node.outputs[0]))
    return node.inputs[0] if before is not None and before == after else None
