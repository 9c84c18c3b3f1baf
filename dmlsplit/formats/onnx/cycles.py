"""Finds nodes that depend on their own outputs: such a graph has no order of computation, and no runtime loads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import onnx

from dmlsplit.formats.onnx.protobuf import subgraphs
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable


def check_cycles(model: onnx.ModelProto) -> None:
    """Raises InputError if nodes of a graph, a subgraph or a function depend on each other in a cycle.

    Nodes that are listed before the producers of their inputs are valid: ONNX Runtime sorts them.
    """
    _names_read(model.graph.node)
    for function in model.functions:
        _names_read(function.node)


def _names_read(nodes: Sequence[onnx.NodeProto]) -> set[str]:
    """Returns the tensor names that nodes and their subgraphs read, except those defined inside these subgraphs.
    Raises InputError if the nodes depend on each other in a cycle."""
    found: set[str] = set()
    inside: dict[int, set[str]] = {}
    behind = False
    for index, node in enumerate(nodes):
        found.update(node.input[:])
        for graph in subgraphs(node) if node.attribute else ():
            read = inside.setdefault(index, set())
            read |= _names_from_outside(graph)
            found |= read
        found.discard("")
        behind = behind or not found.isdisjoint(node.output[:])
    if behind:  # an input is read before its producer, or by the producer itself
        _check_order(nodes, inside)
    return found


def _names_from_outside(graph: onnx.GraphProto) -> set[str]:
    """Returns the tensor names that a subgraph reads from the graphs around it."""
    read = _names_read(graph.node) | {value.name for value in graph.output}
    read.difference_update(
        (value.name for value in (*graph.input, *graph.initializer)),
        (tensor.values.name for tensor in graph.sparse_initializer),
        (name for node in graph.node for name in node.output[:]),
    )
    return read


def _check_order(nodes: Sequence[onnx.NodeProto], inside: Mapping[int, set[str]]) -> None:
    """Raises InputError, which names a node, if the nodes depend on each other in a cycle. `inside` maps the index of a
    node to the names that the graphs inside it read."""
    producers = {name: index for index, node in enumerate(nodes) for name in node.output[:] if name}
    order: TopologicalSorter[int] = TopologicalSorter()
    for index, node in enumerate(nodes):
        names = inside.get(index, set()).union(node.input[:])
        order.add(index, *(producers[name] for name in names if name in producers))
    try:
        order.prepare()
    except CycleError as error:
        first = min(error.args[1])
        what = printable(nodes[first].name or next(iter(nodes[first].output), ""), 60)
        raise InputError(
            f"its nodes form a cycle: {printable(nodes[first].op_type, 60)} '{what}' needs its own output"
        ) from None
