"""A Cast to its input's type does nothing. Source: cast_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node, Value


def cast_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the input of a Cast if the input is known to have the type of the output; else None."""
    before, after = (graph.facts.data_type(value.name) for value in (node.inputs[0], node.outputs[0]))
    return node.inputs[0] if before is not None and before == after else None
