"""Which nodes of a graph become one DirectML graph: ONNX Runtime's partitioner, over names alone.

Source: GraphPartitioner.cpp of ONNX Runtime, BuildPartitions: a node joins the open partitions of its inputs, and
merges them; what feeds a node outside of any fused graph takes no more nodes from then on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node in topological order: the names that it reads and writes, and whether it can be in a fused graph, None
    where that is not known."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    in_graph: bool | None


class _Partition:
    __slots__ = ("final", "merged", "nodes")

    def __init__(self, node: int, final: bool) -> None:
        self.nodes = deque([node])
        self.final = final
        self.merged: _Partition | None = None

    def root(self) -> _Partition:
        found = self
        while found.merged is not None:
            found = found.merged
        each = self
        while each.merged is not None:  # the next one who asks has one step to go
            each.merged, each = found, each.merged
        return found

    def take(self, other: _Partition) -> None:
        """Puts the nodes of another one before its own; only the fewer ones are moved."""
        other.merged = self
        if len(other.nodes) < len(self.nodes):
            self.nodes.extendleft(reversed(other.nodes))
        else:
            other.nodes.extend(self.nodes)
            self.nodes = other.nodes
        other.nodes = deque()


def partitions(nodes: Sequence[PlacedNode], *, unknown: bool = False) -> list[tuple[int, ...]]:
    """The fused graphs, in the order in which they are compiled: the indices of their nodes, in their order there. What
    is merged stands before what it is merged into. `unknown`: whether nodes of which it is not known are in them."""
    by_name: dict[str, _Partition] = {}
    found: list[_Partition] = []
    for index, node in enumerate(nodes):
        feeding = [by_name[name].root() for name in node.inputs if name in by_name]
        if not (unknown if node.in_graph is None else node.in_graph):
            for partition in feeding:
                partition.final = True
            partition = _Partition(index, final=True)
        else:
            still_open = [partition for partition in feeding if not partition.final]
            if still_open:
                partition = still_open[0]
                partition.nodes.append(index)
                for other in still_open[1:]:
                    if other is not partition and other.merged is None:
                        partition.take(other)
            else:
                partition = _Partition(index, final=False)
                found.append(partition)
        by_name.update(dict.fromkeys(filter(None, node.outputs), partition))
    return [tuple(partition.nodes) for partition in found if partition.merged is None]
