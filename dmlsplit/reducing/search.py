"""The smallest list of items that is still wrong: a scan for the first and the last one that matter, then removal of
ever smaller runs of items (delta debugging; Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")
IsWrong: TypeAlias = Callable[[Sequence[T]], bool]


def first_part(items: Sequence[T], is_wrong: IsWrong[T], first: int = 0) -> Sequence[T]:
    """A head of `items` that is wrong, and right without its last item. `items` itself is wrong.

    The part is looked for from `first` items on, at double that size while it is right, then by bisection.
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
    """A tail of `items` that is wrong, and right without its first item. `items` itself is wrong."""
    found = first_part(items[::-1], lambda part: is_wrong(part[::-1]))
    return found[::-1]


def without_needless(items: Sequence[T], is_wrong: IsWrong[T]) -> Sequence[T]:
    """The items without any that can be removed: first runs of half of them, at last single ones. `items` is wrong, and
    so is the result; without any one of its items it is right."""
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
