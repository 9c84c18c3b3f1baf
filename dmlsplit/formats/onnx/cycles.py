"""Nodes that need their own outputs: such a graph has no order of computation, and no runtime loads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

import onnx

from dmlsplit.formats.onnx.protobuf import subgraphs
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable


def check_cycles(model: onnx.ModelProto) -> None:
    """Raises InputError if nodes of a graph, a subgraph or a function depend on each other in a cycle.

    Nodes listed before their inputs' producers are no fault: ONNX Runtime sorts them.
    """
    _names_read(model.graph.node)
    for function in model.functions:
        _names_read(function.node)


def _names_read(nodes: Sequence[onnx.NodeProto]) -> set[str]:
    """Returns the tensor names that nodes and their subgraphs read, except those defined inside these subgraphs.
    Raises InputError if the nodes depend on each other in a cycle."""
    found: set[str] = set()
    needs: list[set[str]] = []
    producers: dict[str, int] = {}
    behind = False
    for index, node in enumerate(nodes):
        read = set(node.input)
        for graph in subgraphs(node) if node.attribute else ():
            read |= _names_from_outside(graph)
        read.discard("")
        needs.append(read)
        found |= read
        producers.update(dict.fromkeys(node.output, index))
        behind = behind or not found.isdisjoint(node.output)
    if behind:  # an input is read before its producer, or by the producer itself
        _check_order(nodes, needs, producers)
    return found


def _names_from_outside(graph: onnx.GraphProto) -> set[str]:
    """Returns the tensor names that a subgraph reads from the graphs around it."""
    read = _names_read(graph.node) | {value.name for value in graph.output}
    read.difference_update(
        (value.name for value in (*graph.input, *graph.initializer)),
        (tensor.values.name for tensor in graph.sparse_initializer),
        (name for node in graph.node for name in node.output),
    )
    return read


def _check_order(nodes: Sequence[onnx.NodeProto], needs: Iterable[set[str]], producers: dict[str, int]) -> None:
    order: TopologicalSorter[int] = TopologicalSorter()
    for index, names in enumerate(needs):
        order.add(index, *(producers[name] for name in names if name in producers))
    try:
        order.prepare()
    except CycleError as error:
        first = min(error.args[1])
        what = printable(nodes[first].name or next(iter(nodes[first].output), ""), 60)
        raise InputError(
            f"its nodes have a cycle: {printable(nodes[first].op_type, 60)} '{what}' needs its own output"
        ) from None
