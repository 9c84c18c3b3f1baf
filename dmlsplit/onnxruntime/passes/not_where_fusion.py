"""A Where behind a Not reads what the Not reads, and its other inputs the other way round.

Source: not_where_fusion.cc of ONNX Runtime: all readers of the Not have to be Wheres, which read the condition from it
as if none read anything else. Where no node computes what the Not reads, a Where that does keeps the name of a tensor
that is gone; observed to fail the session in the model's own graph alone.
"""

from __future__ import annotations

from collections.abc import Container

from dmlsplit.models.graph import Graph, Node

_MOST_STEPS = 9
"""How often ONNX Runtime follows its rules again."""


def not_where_fusion(graph: Graph) -> None:
    """Fuses, in place, each Where with the Not in front of it, once, unless a branch gives the Not's output or only one
    of the two is in it."""
    _fuse_all(graph, {name for name, _ in graph.facts.branches.given}, apart=True)


def later_not_where_fusion(graph: Graph) -> None:
    """Fuses, in place, each Where with the Not in front of it, again and again: that of a further Not, or of a branch
    that has taken its If's place."""
    for _ in range(_MOST_STEPS):
        if not _fuse_all(graph, (), apart=False):
            break


def _fuse_all(graph: Graph, kept: Container[str], *, apart: bool) -> bool:
    """Fuses, in place, each Where once, in the order of the walk, but with no Not whose output is in `kept`; returns
    True if there was any. `apart`: nor with one in another branch."""
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
    """True for a Not that is no output of the graph, and that Wheres alone read."""
    (value,) = node.outputs
    return not value.is_output and all(reader.op_type == "Where" for reader in value.readers)


def _fuse(graph: Graph, node: Node) -> None:
    """Removes a Not, in place, and lets the Wheres behind it read what it reads. Each swaps its other inputs as often
    as it reads the Not; one that is left with the Not's output is marked as unresolved."""
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
