"""Walks over what leads from one to another: the order of ONNX Runtime's walk over the nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def depth_first(roots: Iterable[Node], before: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """All that the roots lead to, each behind those `before` it: from the last root on, and among the nodes before one
    the last one first."""
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
