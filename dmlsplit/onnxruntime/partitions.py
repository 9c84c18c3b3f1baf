"""ONNX Runtime's partitioner: the nodes of a graph that become one DirectML graph.

Source: GraphPartitioner.cpp of ONNX Runtime, BuildPartitions. A node joins the open partitions of its inputs, and
merges them; a partition that feeds a node outside fused graphs takes no further nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from dmlsplit.models.graph import Node, Value


class _Partition:
    __slots__ = ("final", "merged", "nodes")

    def __init__(self, node: Node, final: bool) -> None:
        self.nodes = deque([node])
        self.final = final
        self.merged: _Partition | None = None

    def root(self) -> _Partition:
        found = self
        while found.merged is not None:
            found = found.merged
        each = self
        while each.merged is not None:  # shortens the chain for the next lookup
            each.merged, each = found, each.merged
        return found

    def take(self, other: _Partition) -> None:
        """Inserts the nodes of another partition in front of this one's; the other one is then empty and merged into
        this one."""
        other.merged = self
        if len(other.nodes) < len(self.nodes):
            self.nodes.extendleft(reversed(other.nodes))
        else:
            other.nodes.extend(self.nodes)
            self.nodes = other.nodes
        other.nodes = deque()


def partitions(
    nodes: Sequence[Node], in_graph: Sequence[bool], ends: Mapping[Node, Collection[Value]]
) -> list[tuple[Node, ...]]:
    """Returns the fused graphs, as tuples of nodes in order, in the order in which they are compiled.

    `nodes` are in topological order; `in_graph` has True for each that can be in a fused graph. A node that reads
    several open partitions joins the first one and merges the others into it, their nodes in front. `ends` has nodes
    that cannot be fused themselves but are replaced with others: the last of these, which compute the given outputs,
    begin a partition.
    """
    having: dict[Node, _Partition] = {}
    found: list[_Partition] = []
    for node, fits in zip(nodes, in_graph, strict=True):
        feeding = [
            having[value.producer].root()
            for value in node.inputs
            if value.producer in having and value in ends.get(value.producer, (value,))
        ]
        still_open = [partition for partition in feeding if not partition.final]
        if not fits:
            for partition in feeding:
                partition.final = True
            having[node] = _Partition(node, final=node not in ends)
            found += [having[node]] if node in ends else []
        elif still_open:
            partition = having[node] = still_open[0]
            partition.nodes.append(node)
            for other in still_open[1:]:
                if other is not partition and other.merged is None:
                    partition.take(other)
        else:
            having[node] = _Partition(node, final=False)
            found.append(having[node])
    return [tuple(partition.nodes) for partition in found if partition.merged is None]
