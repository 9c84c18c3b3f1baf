"""Nodes that need their own outputs: such a graph is computed in no order, and no runtime loads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

import onnx

from dmlsplit.formats.onnx.protobuf import subgraphs
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable


def check_cycles(model: onnx.ModelProto) -> None:
    """InputError where nodes of a graph, of a graph in a node or of a function need one another's outputs in a circle.

    Nodes that stand in front of what they read are no fault: ONNX Runtime sorts them.
    """
    _names_read(model.graph.node)
    for function in model.functions:
        _names_read(function.node)


def _names_read(nodes: Sequence[onnx.NodeProto]) -> set[str]:
    """The names that nodes and the graphs in them read, but for those that are known within these graphs only."""
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
    if behind:  # something is read in front of what computes it, or by that itself
        _check_order(nodes, needs, producers)
    return found


def _names_from_outside(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph in a node has from the graphs around it."""
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
        raise InputError(f"its nodes have a cycle: {nodes[first].op_type} '{what}' needs its own output") from None
