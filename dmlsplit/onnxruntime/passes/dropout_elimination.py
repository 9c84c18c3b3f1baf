"""A Dropout does nothing at inference. Source: dropout_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node, Value


def dropout_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the first input of a Dropout whose mask nothing uses, if the version removes it (old versions keep a
    Dropout of version 22); else None. ONNX Runtime looks at the training mode only in builds for training."""
    if not graph.facts.removes_dropouts or any(value.is_output or value.readers for value in node.outputs[1:]):
        return None
    return node.inputs[0]
