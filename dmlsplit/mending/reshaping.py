"""Reduces the dimensions of a Split or Concat: chooses neighbouring ones to merge, so that a Reshape can merge and
restore them.

A Reshape gives each size as a number, copies the size of the same index (0), or computes one size (-1). So unknown
sizes can be merged if there is only one such group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import TypeAlias

from dmlsplit.descriptors.dims import Dim, Shape

Group: TypeAlias = tuple[int, int]
"""The range of dimensions from the first to before the second."""


def groups_of(shapes: Sequence[Shape], axis: int, most: int) -> tuple[Group, ...] | None:
    """Returns groups of neighbouring dimensions, at most `most` groups, with the axis in a group of its own, for
    shapes that are equal except on the axis. None if no grouping can be written as a Reshape of every shape."""
    for groups in _groupings(len(shapes[0]), axis, most):
        if all(merged(shape, groups) is not None and restored(shape, groups) is not None for shape in shapes):
            return groups
    return None


def merged(shape: Shape, groups: Sequence[Group]) -> tuple[int, ...] | None:
    """Returns the shape argument of the Reshape that merges each group into one dimension: a size, 0 for one that is
    copied, -1 for one that is not known. None if it would need more than one -1."""
    return _written([_product(shape[start:end]) for start, end in groups], _copies(groups))


def restored(shape: Shape, groups: Sequence[Group]) -> tuple[int, ...] | None:
    """Returns the shape argument of the Reshape that restores `shape` after `merged`; None if it cannot be written."""
    kept = {start for start, index in _copies(groups) if start == index}
    return _written(list(shape), [(index, index) for index in kept])


def _copies(groups: Sequence[Group]) -> list[tuple[int, int]]:
    """Returns the dimensions that are a group of one and keep their index, as pairs (before, after)."""
    return [(start, index) for index, (start, end) in enumerate(groups) if start == index and end == start + 1]


def _written(sizes: Sequence[Dim], copies: Sequence[tuple[int, int]]) -> tuple[int, ...] | None:
    copied = {index for _, index in copies}
    found = [size if isinstance(size, int) else 0 if i in copied else -1 for i, size in enumerate(sizes)]
    return tuple(found) if found.count(-1) <= 1 else None


def _product(sizes: Sequence[Dim]) -> Dim:
    product = 1
    for size in sizes:
        if not isinstance(size, int):
            return None
        product *= size
    return product


def _groupings(rank: int, axis: int, most: int) -> Iterator[tuple[Group, ...]]:
    """Yields all groupings of `rank` dimensions into at most `most` groups with the axis in a group of its own; those
    with the fewest groups come first."""
    needed = {edge for edge in (axis, axis + 1) if 0 < edge < rank}
    others = [edge for edge in range(1, rank) if edge not in needed]
    for more in range(min(most - 1, rank - 1) - len(needed) + 1):
        for chosen in combinations(others, more):
            edges = sorted({0, rank, *needed, *chosen})
            yield tuple(pairwise(edges))
