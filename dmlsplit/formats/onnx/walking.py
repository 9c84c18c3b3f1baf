"""A graph walk in the order in which ONNX Runtime visits the nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def depth_first(roots: Iterable[Node], before: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Yields each node reachable from the roots once, after all nodes that `before` returns for it. The last root is
    visited first, and so is the last of the nodes that `before` returns."""
    todo: list[Node | None] = list(roots)
    visited: set[Node] = set()
    while todo:
        node = todo.pop()
        if node is None:  # all nodes before the node below the marker have been yielded
            node = todo.pop()
            assert node is not None
            yield node
        elif node not in visited:
            visited.add(node)
            todo += (node, None)
            todo += before(node)
