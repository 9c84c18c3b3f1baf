"""The normal form of a split or join: nested loops over bits, which can be expressed in any data type and any rank.

A tensor of e bits per element and rank n is n + 1 loops: its dimensions, with strides in bits, and an innermost loop
over e contiguous bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from dmlsplit.descriptors.geometry import TensorLayout

Strides: TypeAlias = tuple[int | None, ...]
"""One stride for each loop; None (free) if the tensor takes a single step of the loop."""


class Loops(NamedTuple):
    """Loops that the whole tensor and its parts share; on the loop `axis` a part takes its own number of steps.

    `strides` are those of the whole tensor, then of each part, in the unit of the innermost step: bits, or elements of
    the data type that the loops were divided by. A stride of the whole tensor is free (None) like a part's.
    """

    sizes: tuple[int, ...]
    strides: tuple[Strides, ...]
    axis: int
    lengths: tuple[int, ...]

    @property
    def single(self) -> bool:
        """True if there is one part: a plain copy, in which no loop is special."""
        return len(self.lengths) == 1

    def tensor(self, i: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Returns the sizes and strides (0 if free) of tensor `i`: 0 is the whole, parts count from 1."""
        sizes = self.sizes
        if i > 0:
            sizes = (*sizes[: self.axis], self.lengths[i - 1], *sizes[self.axis + 1 :])
        return sizes, tuple([stride or 0 for stride in self.strides[i]])

    def folded(self) -> Loops:
        """Returns the fewest loops that copy the same elements: no loop has a single step, and no two loops are
        contiguous in memory.

        Two loops fold if, in every tensor, the outer stride equals the inner extent; they need not be adjacent. The
        inner loop cannot be the axis of several parts, whose extents differ.
        """
        parts_axis = None if self.single else self.axis
        columns: dict[int, tuple[int, Strides]] = dict(
            enumerate(zip(self.sizes, zip(*self.strides, strict=True), strict=True))
        )
        left = {i: column for i, column in columns.items() if column[0] > 1 or i == parts_axis} or {0: columns[0]}
        axis, lengths = self.axis, self.lengths
        while (pair := _foldable(left, parts_axis)) is not None:
            outer, inner = pair
            size, strides = left.pop(inner)
            left[outer] = left[outer][0] * size, strides
            if outer == parts_axis:
                lengths = tuple([length * size for length in lengths])
            if inner == axis:
                axis = outer
        place = list(left).index(axis) if axis in left else 0
        sizes = tuple([size for size, _ in left.values()])
        rows = tuple(zip(*[strides for _, strides in left.values()], strict=True))
        return Loops(sizes, rows, place, (sizes[place],) if self.single else lengths)

    def bits_joined(self) -> Loops:
        """Returns the loops with the innermost loop, over bits, merged into the loop over contiguous elements;
        unchanged if there is no such loop."""
        last = len(self.sizes) - 1
        bits = self.sizes[last]
        inner = tuple([row[last] for row in self.strides])
        for i in reversed(range(last)):
            if self.sizes[i] > 1 and _continues(tuple([row[i] for row in self.strides]), bits, inner):
                sizes = (*self.sizes[:i], self.sizes[i] * bits, *self.sizes[i + 1 : last])
                rows = tuple([(*row[:i], row[last], *row[i + 1 : last]) for row in self.strides])
                lengths = tuple([n * bits for n in self.lengths]) if i == self.axis else self.lengths
                return Loops(sizes, rows, self.axis, lengths)
        return self

    def divided(self, bits: int) -> Loops | None:
        """Returns the loops in elements of `bits` bits; None if an element would hold bits that are not contiguous in
        every tensor."""
        inner = next((i for i in range(len(self.sizes)) if all(row[i] == 1 for row in self.strides)), None)
        if inner is None or self.sizes[inner] % bits:
            return None
        if inner == self.axis and any(length % bits for length in self.lengths):
            return None
        rows = []
        for row in self.strides:
            if any(s is not None and s % bits for i, s in enumerate(row) if i != inner):
                return None
            rows.append(tuple([s if s is None else 1 if i == inner else s // bits for i, s in enumerate(row)]))
        sizes = tuple([n // bits if i == inner else n for i, n in enumerate(self.sizes)])
        lengths = tuple([n // bits for n in self.lengths]) if inner == self.axis else self.lengths
        return Loops(sizes, tuple(rows), self.axis, lengths)

    def without(self, i: int) -> Loops:
        """Returns the loops without loop `i`; the loops themselves if it has several steps, is the only one, or is the
        axis of several parts."""
        if self.sizes[i] > 1 or len(self.sizes) == 1 or (self.axis == i and not self.single):
            return self
        sizes = self.sizes[:i] + self.sizes[i + 1 :]
        axis = 0 if self.axis == i else self.axis - (i < self.axis)
        rows = tuple([row[:i] + row[i + 1 :] for row in self.strides])
        return Loops(sizes, rows, axis, (sizes[axis],) if self.single else self.lengths)

    def of_rank(self, counts: Sequence[int]) -> Loops | None:
        """Returns the loops with one-step loops added in front, up to the next number of loops in `counts`; None if
        there are too many loops."""
        count = min((n for n in counts if n >= len(self.sizes)), default=None)
        if count is None:
            return None
        new = count - len(self.sizes)
        rows = tuple([(*(None,) * new, *row) for row in self.strides])
        return Loops((*(1,) * new, *self.sizes), rows, self.axis + new, self.lengths)

    def resized(self, i: int, size: int) -> Loops:
        """Returns the loops with `size` steps in loop `i`."""
        sizes = (*self.sizes[:i], size, *self.sizes[i + 1 :])
        return Loops(sizes, self.strides, self.axis, (size,) if i == self.axis else self.lengths)

    def edges(self) -> list[int]:
        """Returns, in steps of the axis, the beginnings of the parts and the end of the last one."""
        return list(accumulate(self.lengths, initial=0))

    def distinct(self) -> Loops:
        """Returns the loops with duplicate parts removed, which fold and fit alike; the first part is kept even if
        duplicated, so a multi-part loop stays one."""
        first, *parts = zip(self.strides[1:], self.lengths, strict=True)
        rows, lengths = zip(*[first, *dict.fromkeys(parts)], strict=True)
        return Loops(self.sizes, (self.strides[0], *rows), self.axis, lengths)


def loops_of(whole: TensorLayout, parts: Sequence[TensorLayout], axis: int) -> Loops:
    """Returns the loops of an operator without faults and without empty parts: its dimensions unchanged, then the
    bits."""
    bits = whole.bits
    rows: list[Strides] = []
    for tensor in (whole, *parts):
        steps = zip(tensor.sizes, tensor.element_strides, strict=True)
        rows.append((*[None if n == 1 else s * bits for n, s in steps], 1))
    return Loops((*whole.sizes, bits), tuple(rows), axis, tuple([part.sizes[axis] for part in parts]))


def _foldable(columns: dict[int, tuple[int, Strides]], parts_axis: int | None) -> tuple[int, int] | None:
    """Returns the indices of an outer and an inner loop that fold into one, None if no two do; a column holds the
    strides of all tensors in a loop."""
    # the whole tensor's strides usually show that nothing folds
    steps = {strides[0] for _, strides in columns.values()}
    for inner, (size, strides) in reversed(columns.items()):
        extent = None if strides[0] is None else size * strides[0]
        if inner == parts_axis or steps.isdisjoint((extent, None)):
            continue
        for outer, (_, outer_strides) in reversed(columns.items()):
            if outer != inner and _continues(outer_strides, size, strides):
                return outer, inner
    return None


def _continues(outer: Strides, size: int, inner: Strides) -> bool:
    """True if, in every tensor, one step of the outer loop equals the inner loop's extent."""
    return all(o is None or (i is not None and o == size * i) for o, i in zip(outer, inner, strict=True))
