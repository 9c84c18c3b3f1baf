"""The smallest list of items that is still wrong: a scan for the first and the last one that matter, then removal of
ever smaller runs of items (delta debugging; Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")
IsWrong: TypeAlias = Callable[[Sequence[T]], bool]


def first_part(items: Sequence[T], is_wrong: IsWrong[T], first: int = 0) -> Sequence[T]:
    """Returns the shortest found head of `items` that is wrong and, without its last item, right. `items` itself must
    be wrong.

    The head is looked for from `first` items on, at double that size while it is right, then by bisection.
    """
    right, wrong = 0, len(items)
    size = first
    while 0 < size < wrong:
        if is_wrong(items[:size]):
            wrong = size
        else:
            right, size = size, size * 2
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_wrong(items[:middle]):
            wrong = middle
        else:
            right = middle
    return items[:wrong]


def last_part(items: Sequence[T], is_wrong: IsWrong[T]) -> Sequence[T]:
    """Returns the shortest found tail of `items` that is wrong and, without its first item, right. `items` itself must
    be wrong."""
    found = first_part(items[::-1], lambda part: is_wrong(part[::-1]))
    return found[::-1]


def without_needless(items: Sequence[T], is_wrong: IsWrong[T]) -> Sequence[T]:
    """Returns the items, in order, without items that can be removed: runs of half of the items are tried first, single
    items last. `items` must be wrong; the result is wrong too, and right if any one item is removed from it."""
    size = max(len(items) // 2, 1)
    while True:
        start, removed = 0, False
        while start < len(items):
            rest = [*items[:start], *items[start + size :]]
            if rest and is_wrong(rest):
                items, removed = rest, True
            else:
                start += size
        if size == 1 and not removed:
            return items
        if size > 1:
            size = max(min(size, len(items)) // 2, 1)
