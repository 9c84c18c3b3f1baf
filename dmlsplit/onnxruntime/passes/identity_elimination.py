"""An Identity does nothing. Source: identity_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Container

from dmlsplit.models.graph import Graph, Node, Value


def identity_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the input of an Identity with one input and one output; else None."""
    return node.inputs[0] if len(node.inputs) == len(node.outputs) == 1 else None


def eliminate_identities(graph: Graph) -> None:
    """Removes, in place, the Identity nodes whose outputs are no graph outputs, unless a graph in a node reads both
    their input and their output. One that computes a branch's output stays until the branch has taken its If's
    place."""
    given = {name for name, _ in graph.facts.branches.given}
    _eliminate(graph, given)


def identities_of_branches(graph: Graph) -> None:
    """Removes, in place, the Identity nodes that compute outputs of branches."""
    if graph.facts.branches.given:
        _eliminate(graph, ())


def _eliminate(graph: Graph, kept: Container[str]) -> None:
    instead: dict[Value, Value] = {}
    inside = {node: set(node.captured) for node in graph.nodes if node.captured}
    for node in graph.nodes:
        source = identity_elimination(graph, node) if node.op_type == "Identity" else None
        if source is None or node.outputs[0].is_output or node.outputs[0].name in kept:
            continue
        source, result = instead.get(source, source), node.outputs[0]
        within = [inside[reader] for reader in result.readers if result in inside.get(reader, ())]
        if any(source in captured for captured in within):
            continue
        for captured in within:
            captured.add(source)
        instead[result] = source
        graph.remove(node)
    graph.redirect_all(instead)
