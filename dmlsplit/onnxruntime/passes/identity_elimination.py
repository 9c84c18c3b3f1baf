"""An Identity does nothing. Source: identity_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Container

from dmlsplit.models.graph import Graph, Node, Value


def identity_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the input of an Identity with one input and one output; else None."""
    return node.inputs[0] if len(node.inputs) == len(node.outputs) == 1 else None


def eliminate_identities(graph: Graph) -> None:
    """Removes, in place, the Identity nodes whose outputs are no graph outputs, unless a graph in a node reads both
    their input and their output, and those that `write_directly` removes. One that computes a branch's output stays
    until the branch has taken its If's place, and an If that reads a tensor counts as a reader until then."""
    branches = graph.facts.branches
    given = {name for name, _ in branches.given}
    _eliminate(graph, given, {*given, *branches.readers})


def identities_of_branches(graph: Graph) -> None:
    """Removes, in place, the Identity nodes that compute outputs of branches."""
    if graph.facts.branches.given:
        _eliminate(graph, (), ())


def write_directly(graph: Graph, node: Node) -> None:
    """Removes, in place, an Identity of a graph output that nothing else reads, if it alone reads its input: the node
    in front of it computes the graph output then."""
    source, result = node.inputs[0], node.outputs[0]
    before = source.producer
    if before is None or source.is_output or len(source.readers) > 1 or result.readers:
        return
    graph.remove(node)
    graph.write(before, [result if value is source else value for value in before.outputs])


def _eliminate(graph: Graph, kept: Container[str], read: Container[str]) -> None:
    """Removes Identity nodes, in place, but none whose output is in `kept`. Tensors in `read` have a reader more than
    the graph says."""
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
    for node in graph.nodes:
        of_output = node.op_type == "Identity" and identity_elimination(graph, node) and node.outputs[0].is_output
        if of_output and node.inputs[0].name not in read and node.outputs[0].name not in read:
            write_directly(graph, node)
