"""An Expand to its input's shape does nothing. Source: expand_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.descriptors.dims import is_static
from dmlsplit.models.graph import Graph, Node, Value


def expand_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the first input of an Expand by a constant shape if input and output have the same static shape; else
    None."""
    before, after = (graph.facts.shape(value.name) for value in (node.inputs[0], node.outputs[0]))
    same = is_static(before) and before == after and graph.facts.is_constant(node.inputs[1].name)
    return node.inputs[0] if same else None
