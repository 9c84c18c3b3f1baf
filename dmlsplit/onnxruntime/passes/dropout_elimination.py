"""A Dropout does nothing at inference. Source: dropout_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node, Value


def dropout_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the first input of a Dropout whose mask is unused and which is not in training mode, if the version
    removes it (old versions keep a Dropout of version 22); else None."""
    has_mask = len(node.outputs) > 1 and bool(node.outputs[1].name)
    if has_mask or not graph.facts.removes_dropouts:
        return None
    if len(node.inputs) > 2:
        training = graph.facts.elements(node.inputs[2].name)
        if training is None or training.any():
            return None
    return node.inputs[0]
