"""An Identity does nothing. Source: identity_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node, Value


def identity_elimination(graph: Graph, node: Node) -> Value | None:
    """The input of an Identity; None for any other node."""
    return node.inputs[0] if len(node.inputs) == len(node.outputs) == 1 else None


def eliminate_identities(graph: Graph) -> None:
    """Removes the Identities whose outputs are no graph outputs."""
    instead: dict[Value, Value] = {}
    for node in graph.nodes:
        source = identity_elimination(graph, node) if node.op_type == "Identity" else None
        if source is not None and not node.outputs[0].is_output:
            instead[node.outputs[0]] = source
            graph.remove(node)
    graph.redirect_all(instead)
