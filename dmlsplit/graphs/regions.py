"""Tests whether regions of memory share elements, by comparing strided rows without visiting each element."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from typing import Final

from dmlsplit.graphs.program import BufferView, Unmodelled

MOST_RUNS: Final = 4096
"""The most runs of a region that are compared one by one."""


def at_first_index(region: BufferView) -> tuple[BufferView, BufferView]:
    """Returns two parts of a region: its elements at the first index of the outermost dimension, and all others; if
    that dimension has one index, the whole region twice."""
    count = region.sizes[0]
    first = replace(region, sizes=(1, *region.sizes[1:]))
    if count == 1:
        return first, first
    return first, replace(region, offset=region.offset + region.steps[0], sizes=(count - 1, *region.sizes[1:]))


def overlap(one: BufferView, other: BufferView) -> bool:
    """True if two regions share a byte, False if not. Raises Unmodelled if the test would take too long."""
    if one.buffer != other.buffer or one.end <= other.offset or other.end <= one.offset:
        return False
    first, second = _rows(one), _rows(other)
    if first.count == 1 and second.count == 1:
        return True
    if len(first.outer) <= 1 and len(second.outer) <= 1:
        return _rows_meet(first, second)
    return _runs_meet(first, second)


@dataclass(slots=True, eq=False, repr=False)
class _Rows:
    """A region as runs of `run` contiguous bytes, the first at byte `offset` of the buffer; `outer` has the (count,
    step in bytes) of each dimension around a run."""

    offset: int
    run: int
    outer: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        return math.prod(count for count, _ in self.outer)

    def starts(self) -> list[int]:
        found = [self.offset]
        for count, step in self.outer:
            found = [start + i * step for start in found for i in range(count)]
        return sorted(found)


def _rows(region: BufferView) -> _Rows:
    return _Rows(region.offset, *_runs(region.sizes, region.steps, region.element_bytes))


@lru_cache(maxsize=1024)
def _runs(
    sizes: tuple[int, ...], steps: tuple[int, ...], element_bytes: int
) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Returns the bytes of a contiguous run, and the (count, step in bytes) pairs of the dimensions around it,
    outermost first; `steps` are strides in bytes. Cached: many regions share these."""
    run = element_bytes
    outer: list[tuple[int, int]] = []
    dimensions = [(size, step) for size, step in zip(sizes, steps, strict=True) if size > 1]
    for size, step in sorted(dimensions, key=itemgetter(1)):
        if step == run and not outer:
            run *= size
        elif outer and step == outer[-1][0] * outer[-1][1]:
            outer[-1] = (outer[-1][0] * size, outer[-1][1])
        else:
            outer.append((size, step))
    return run, tuple(reversed(outer))


def _rows_meet(one: _Rows, other: _Rows) -> bool:
    """True if two regions share a byte; each has at most one step between its rows."""
    (count, step), (count2, step2) = (*one.outer, (1, 0))[0], (*other.outer, (1, 0))[0]
    if count > count2:
        return _rows_meet(other, one)
    if count > 2 and step == step2:
        first, shift = divmod(one.offset - other.offset, step)
        meets = shift < other.run or shift + one.run > step
        return meets and first < count2 and first + count >= 0
    if count == 1 or step == step2:
        return any(_row_meets(one.offset + i * step, one.run, other, count2, step2) for i in range(count))
    return _runs_meet(one, other)


def _row_meets(start: int, run: int, rows: _Rows, count: int, step: int) -> bool:
    if count == 1:
        return start < rows.offset + rows.run and rows.offset < start + run
    first = max(0, -(-(start - rows.run - rows.offset + 1) // step))
    return first < count and rows.offset + first * step < start + run


def _runs_meet(one: _Rows, other: _Rows) -> bool:
    if one.count > MOST_RUNS or other.count > MOST_RUNS:
        raise Unmodelled("parts of several Joins are interleaved")
    starts = other.starts()
    for start in one.starts():
        i = bisect.bisect_left(starts, start - other.run + 1)
        if i < len(starts) and starts[i] < start + one.run:
            return True
    return False
