"""A Where behind a Not reads the Not's input instead, with its other two inputs swapped.

Source: not_where_fusion.cc of ONNX Runtime: all readers of the Not must be Wheres. The source assumes that they read it
only as their condition. If the Not's input is not computed by a node, a Where that also reads the Not as a value keeps
the name of the removed tensor; observed to fail session creation only in the model's own graph.
"""

from __future__ import annotations

from collections.abc import Container

from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.passes.patterns import ROUNDS


def not_where_fusion(graph: Graph) -> None:
    """Fuses, in place, each Where with the Not in front of it, once, unless the Not's output is a branch's output or
    the two are in different branches."""
    _fuse_all(graph, graph.facts.branches.given, apart=True)


def later_not_where_fusion(graph: Graph) -> None:
    """Fuses, in place, each Where with the Not in front of it, including further Nots and those of branches that have
    taken the places of their Ifs, as often as ONNX Runtime repeats it after `not_where_fusion`."""
    for _ in range(ROUNDS - 1):
        if not _fuse_all(graph, (), apart=False):
            break


def _fuse_all(graph: Graph, kept: Container[str], *, apart: bool) -> bool:
    """Fuses, in place, each Where once, in the order of the walk, except with a Not whose output is in `kept`; returns
    True if any was fused. If `apart`, a Where and a Not in different branches are not fused."""
    if not graph.facts.fuses_wheres:
        return False
    chain, found = graph.facts.branches.chain, False
    for node in graph.walk():
        before = node.inputs[0].producer if node.op_type == "Where" else None
        if before is None or before.op_type != "Not" or before.name in kept or not _can_be_fused(before):
            continue
        if not (apart and chain(node.name) != chain(before.name)):
            found = True
            _fuse(graph, before)
    return found


def _can_be_fused(node: Node) -> bool:
    """True for a Not whose output is not a graph output and is read only by Wheres."""
    (value,) = node.outputs
    return not value.is_output and all(reader.op_type == "Where" for reader in value.readers)


def _fuse(graph: Graph, node: Node) -> None:
    """Removes a Not, in place; the Wheres behind it read its input instead. A Where that reads the Not an odd number of
    times swaps its other two inputs; one that still reads the Not's output is recorded as unresolved."""
    (value,), source = node.outputs, node.inputs[0]
    for where in list(value.readers):
        inputs, times = list(where.inputs), where.inputs.count(value)
        if source.producer is None:
            inputs[0] = source
        else:
            inputs = [source if each is value else each for each in inputs]
        if times % 2:
            inputs[1], inputs[2] = inputs[2], inputs[1]
        graph.read(where, inputs)
        if value in inputs:
            graph.unresolved.setdefault(where, value.name)
    graph.remove(node)
