"""Nodes of a session's optimized graphs that make session creation or a Run fail, or the result wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from dmlsplit.models.graph import Node
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.records import entity


@entity
class NodeFault:
    """A fault of one node."""

    graph: SessionGraph
    node: Node
    """The node of the optimized graph."""

    @property
    def index(self) -> int:
        """The index of the node in the model's graph."""
        return self.node.index

    @property
    def path(self) -> str:
        return self.graph.path(self.node.index)


F = TypeVar("F", bound=NodeFault)


def faults_in(graphs: Sequence[SessionGraph], of_graph: Callable[[SessionGraph], Iterable[F]]) -> Iterator[F]:
    """Yields the faults that `of_graph` returns for each graph of a session; graphs that optimization removes are left
    out."""
    for graph in graphs:
        if not graph.is_removed:
            yield from of_graph(graph)
