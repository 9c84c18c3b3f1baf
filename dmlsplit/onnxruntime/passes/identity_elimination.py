"""An Identity does nothing. Source: identity_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Container

from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.models.taken_branches import UntakenIfs
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import UNMERGED


def identity_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the input of an Identity with one input and one output; else None."""
    return node.inputs[0] if len(node.inputs) == len(node.outputs) == 1 else None


def eliminate_identities(graph: Graph) -> None:
    """Removes, in place, the Identity nodes whose outputs are not graph outputs. An Identity stays if a graph in a node
    reads its output and uses the name of its input for another tensor. One that computes a branch's output stays until
    the branch has taken its If's place."""
    _eliminate(graph, graph.facts.branches.given, graph.untaken_ifs)


def identities_of_branches(graph: Graph) -> None:
    """Removes, in place, the Identity nodes that compute outputs of branches."""
    if graph.facts.branches.given:
        _eliminate(graph, (), None)


def write_outputs(graph: Graph) -> None:
    """Removes, in place, the Identity nodes of outputs that `write_directly` can remove.

    Until a branch has taken its If's place, an output of the branch counts as a graph output whose readers are outside
    the branch, and an If reads whatever its two branches read.
    """
    branches = graph.facts.branches
    given = branches.given
    for node in _of_outputs(graph, given):
        source, result = node.inputs[0].name, node.outputs[0].name
        chain = branches.chain(result)
        beside = branches.chain(source) == chain and source not in given
        readers = [reader for reader in node.readers if branches.chain(reader.name)[: len(chain)] == chain]
        names = (result,) if _has_own(node) else (source, result)
        ifs = [number for name in names for number in branches.readers.get(name, ())]
        if beside and not readers and not branches.within(ifs, chain):
            write_directly(graph, node)


def write_outputs_of_branches(graph: Graph) -> None:
    """Removes, in place, the Identity nodes of graph outputs that `write_directly` can remove. It runs after branches
    have taken the places of their Ifs: outputs of branches are then tensors like others."""
    for node in _of_outputs(graph, ()):
        write_directly(graph, node)


def write_directly(graph: Graph, node: Node) -> None:
    """Removes, in place, an Identity of a graph output if it is the only reader of its input, which a node of the graph
    computes: this node then computes the graph output. An Identity of a DequantizeLinear has one of its own."""
    source, result = node.inputs[0], node.outputs[0]
    before, is_shared = source.producer, source.is_output or len(source.readers) > 1
    if before is None or (is_shared and not _has_own(node)):
        return
    graph.remove(node)
    if is_shared:
        graph.write(graph.insert(before, UNMERGED, before.inputs), [result])
    else:
        graph.write(before, [result if value is source else value for value in before.outputs])


def _has_own(node: Node) -> bool:
    """True for an Identity of a DequantizeLinear, which each reader has for itself."""
    before = node.inputs[0].producer
    return before is not None and before.op_type == UNMERGED


def _of_outputs(graph: Graph, given: Container[str]) -> list[Node]:
    """Returns the Identity nodes of branch outputs, whose names `given` lists, and those of graph outputs without other
    readers."""
    found = [node for node in graph.nodes if node.op_type == "Identity" and identity_elimination(graph, node)]
    outputs = [(node, node.outputs[0]) for node in found]
    return [node for node, value in outputs if value.name in given or (value.is_output and not value.readers)]


def _eliminate(graph: Graph, kept: Container[str], ifs: UntakenIfs | None) -> None:
    """Removes Identity nodes, in place, except those whose output is in `kept` or is a graph output. `ifs` are those
    whose branches have yet to take their places, None if there are none."""
    instead: dict[Value, Value] = {}
    inside = {node: set(node.captured) for node in graph.nodes if node.captured}
    for node in graph.nodes:
        source = identity_elimination(graph, node) if node.op_type == "Identity" else None
        if source is None or node.outputs[0].is_output or node.outputs[0].name in kept:
            continue
        source, result = instead.get(source, source), node.outputs[0]
        within = [reader for reader in result.readers if result in inside.get(reader, ())]
        if not all(reader.names_inside.can_rename(result.name, source.name) for reader in within):
            continue
        if ifs is not None:
            if not ifs.can_rename(result.name, source.name, graph.facts.branches.chain(result.name)):
                continue
            ifs.rename(result.name, source.name)
        for reader in within:
            inside[reader].add(source)
            reader.names_inside = reader.names_inside.renamed(result.name, source.name)
        instead[result] = source
        graph.remove(node)
    graph.redirect_all(instead)
