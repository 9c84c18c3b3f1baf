"""A graph walk in the order in which ONNX Runtime visits the nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def depth_first(roots: Iterable[Node], before: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Yields all nodes reachable from the roots, each behind those `before` it; the last root comes first, and of
    several nodes before one the last."""
    todo = [(node, False) for node in roots]
    visited: set[Node] = set()
    while todo:
        node, leaving = todo.pop()
        if leaving:
            yield node
        elif node not in visited:
            visited.add(node)
            todo.append((node, True))
            todo += [(each, False) for each in before(node)]
