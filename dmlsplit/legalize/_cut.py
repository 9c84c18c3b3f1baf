"""One operator into several, each on a sub-range of the buffers: for what is too large, or has too many dimensions.

Every sub-range begins at a multiple of 16 bytes in every buffer. Where the whole tensor would have to be bound from
another place on, the operator begins earlier: what a split reads too early goes to a temporary buffer, and what a join
writes too early is what stands there already, copied to a temporary buffer before.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from dmlsplit.enums import MINIMUM_BUFFER_TENSOR_ALIGNMENT, UINT_MAX, OperatorType
from dmlsplit.layout import packed_strides
from dmlsplit.legalize._build import Operand
from dmlsplit.legalize._loops import Loops, folded
from dmlsplit.rules.operator import INPUT_ELEMENTS_MAX

MOST_OPERATORS: Final = 4096
"""A rewriting into more is none that anyone wants."""
MOST_TENSORS: Final = 2**18
"""Of all operators of a rewriting into several: each may have very many."""


class Box(NamedTuple):
    """Loops in elements over sub-ranges of the tensors, the whole first."""

    kind: OperatorType
    loops: Loops
    operands: tuple[Operand, ...]


class _Way(NamedTuple):
    """How a box is cut: into how many operators in the end, of how many parts together; the loop, and where.

    No points: it is taken as it is.
    """

    operators: int
    parts: int
    loop: int = 0
    points: tuple[int, ...] = ()


class Cutter:
    """Cuts boxes whose elements are `element_bytes` large for a target that takes these numbers of dimensions."""

    def __init__(
        self, kind: OperatorType, element_bytes: int, dimension_counts: Sequence[int], *, use_temporary: bool
    ) -> None:
        self._kind = kind
        self._bytes = element_bytes
        self._most_dimensions = max(dimension_counts)
        self._use_temporary = use_temporary
        self._ways: dict[Loops, _Way | None] = {}
        self._folded: dict[Loops, Loops] = {}
        self.exceeded = False
        """Whether a way was left because of its many operators."""

    def operators(self, box: Box) -> int | None:
        """How many operators a box becomes; None where there is no way."""
        if math.prod(box.loops.sizes) > UINT_MAX * MOST_OPERATORS:
            self.exceeded = True
            return None
        way = self._way(box.loops)
        return None if way is None else way.operators

    def boxes(self, box: Box) -> Iterator[Box]:
        """The boxes that the target takes, folded, if there is a way."""
        way = self._way(box.loops)
        if way is not None and not way.points:
            yield box._replace(loops=self._fold(box.loops))
        elif way is not None:
            edges = _edges(box.loops)
            for begin, end in pairwise(way.points):
                part = self._part_of(box, way.loop, edges, begin, end)
                if box.kind is OperatorType.JOIN and way.loop == box.loops.axis and self._early(box.loops, begin):
                    copy = _read_back(part)
                    yield copy._replace(loops=self._fold(copy.loops))
                yield from self.boxes(part)

    def _way(self, loops: Loops) -> _Way | None:
        if loops not in self._ways:
            self._ways[loops] = None  # while it is being found
            self._ways[loops] = _Way(1, len(loops.lengths)) if self.fits(loops) else self._find(loops)
        return self._ways[loops]

    def _find(self, loops: Loops) -> _Way | None:
        """Cutting one loop as coarsely as it fits, else finely, so that others are cut as well."""
        axis = None if loops.single else loops.axis
        few = _distinct(loops)
        shared = [i for i, n in enumerate(loops.sizes) if n > 1 and i != axis]
        too_many = len(self._fold(few).sizes) - self._most_dimensions
        if too_many > 0:  # only a loop of which every step can be bound goes away; the shorter, the fewer operators
            shared = sorted((i for i in shared if self._grain_of(few, i) == 1), key=lambda i: loops.sizes[i])
        ways = [self._along(loops, few, i) for i in shared] if too_many <= 1 else []
        if axis is not None:
            ways.append(self._along_axis(loops))
        if not any(ways):
            ways = [self._finely(loops, few, i) for i in (shared[:1] if too_many > 0 else shared)]
            if axis is not None:
                ways.append(self._finely_along_axis(loops))
        return min([way for way in ways if way is not None], key=lambda way: way.operators, default=None)

    # A loop that all tensors share

    def _along(self, loops: Loops, few: Loops, i: int) -> _Way | None:
        grain, size = self._grain_of(few, i), loops.sizes[i]
        steps = _largest((size - 1) // grain, lambda steps: self.fits(_sized(few, i, steps * grain)))
        if not steps:
            return None
        begins = range(0, size, steps * grain)
        points = (*begins, size) if len(begins) <= MOST_OPERATORS else ()
        return self._within_bounds(_Way(len(begins), len(begins) * len(loops.lengths), i, points))

    def _finely(self, loops: Loops, few: Loops, i: int) -> _Way | None:
        grain, size = self._grain_of(few, i), loops.sizes[i]
        if size <= grain:
            return None
        if size > grain * MOST_OPERATORS:
            self.exceeded = True
            return None
        points = (*range(0, size, grain), size)
        ways = {n: self._way(_sized(loops, i, n)) for n in {end - begin for begin, end in pairwise(points)}}
        return self._summed([ways[end - begin] for begin, end in pairwise(points)], i, points)

    def _grain_of(self, loops: Loops, i: int) -> int:
        return self._grain({row[i] for row in loops.strides})

    # The axis of several parts

    def _along_axis(self, loops: Loops) -> _Way | None:
        """From each point as far as it fits: no other choice of points leads to fewer operators."""
        size = loops.sizes[loops.axis]
        edges = _edges(loops)
        ends = edges[1:]
        points, reach = [0], 0
        while points[-1] < size:
            begin = points[-1]
            reach = self._reach(loops, edges, begin, reach - MINIMUM_BUFFER_TENSOR_ALIGNMENT)
            end = self._last_point(loops, ends, begin, begin + reach)
            if end is None:
                return None
            if len(points) > MOST_OPERATORS:
                self.exceeded = True
                return None
            points.append(end)
        copies = sum(self._early(loops, begin) > 0 for begin in points[:-1]) if self._kind is OperatorType.JOIN else 0
        return _Way(len(points) - 1 + copies, len(loops.lengths) + len(points), loops.axis, tuple(points))

    def _finely_along_axis(self, loops: Loops) -> _Way | None:
        """Between parts. There is one place for what a join reads back, so that it has to be used at once."""
        edges = _edges(loops)
        anywhere = self._use_temporary and self._kind is OperatorType.SPLIT
        points = (0, *[edge for edge in edges[1:-1] if anywhere or self._early(loops, edge) == 0], edges[-1])
        if len(points) < 3:
            return None
        if len(points) > MOST_OPERATORS + 1:
            self.exceeded = True
            return None
        ways = (self._way(self._of_axis(loops, edges, *ends)) for ends in pairwise(points))
        return self._summed(ways, loops.axis, points)

    def _reach(self, loops: Loops, edges: Sequence[int], begin: int, near: int) -> int:
        """How many steps from a point on fit."""
        most = loops.sizes[loops.axis] - begin
        return _largest(most, lambda steps: self.fits(self._of_axis(loops, edges, begin, begin + steps)), near)

    def _last_point(self, loops: Loops, ends: Sequence[int], begin: int, limit: int) -> int | None:
        """The last place in (begin, limit] where all buffers may be bound anew."""
        if limit == ends[-1]:
            return limit
        for part in reversed(range(bisect_right(ends, begin), min(bisect_right(ends, limit) + 1, len(ends)))):
            if ends[part] <= limit and self._begins(loops, ends[part]):
                return ends[part]
            start = ends[part] - loops.lengths[part]
            # Both grains are powers of two: the points within a part are those of the coarser one, or there are none.
            own = self._grain([loops.strides[part + 1][loops.axis]])
            whole = 1 if self._use_temporary else self._grain([loops.strides[0][loops.axis]])
            if start % min(own, whole) == 0:
                first = start if own >= whole else 0
                point = limit - (limit - first) % max(own, whole)
                if max(start, begin) < point < ends[part]:
                    return point
        return None

    def _begins(self, loops: Loops, point: int) -> bool:
        """Whether the whole tensor may be bound at a point of the axis where a part begins."""
        return self._use_temporary or self._early(loops, point) == 0

    def _summed(self, ways: Iterable[_Way | None], i: int, points: Sequence[int]) -> _Way | None:
        """The way that cuts loop `i` at these points, and what is between them in these ways."""
        operators = parts = 0
        for way in ways:
            if way is None:
                return None
            operators += way.operators
            parts += way.parts
        return self._within_bounds(_Way(operators, parts, i, tuple(points)))

    def _within_bounds(self, way: _Way) -> _Way | None:
        if way.operators <= MOST_OPERATORS and way.parts <= MOST_TENSORS:
            return way
        self.exceeded = True
        return None

    # Parts of boxes

    def _part_of(self, box: Box, i: int, edges: Sequence[int], begin: int, end: int) -> Box:
        """The box from one step of a loop to another; a temporary stands for what is bound too early."""
        rows, axis = box.loops.strides, box.loops.axis
        if i != axis or box.loops.single:
            moved = [self._moved(x, row[i], begin) for x, row in zip(box.operands, rows, strict=True)]
            return Box(box.kind, _sized(box.loops, i, end - begin), tuple(moved))
        early = self._early(box.loops, begin)
        moved = [self._moved(box.operands[0], rows[0][i], begin - early)]
        if early:
            moved.append(Operand("temporary", 0, 0, entire=False))
        for part in _parts_within(edges, begin, end):
            first, last = edges[part], edges[part + 1]
            operand = box.operands[part + 1]
            entire = begin <= first and last <= end
            moved.append(operand if entire else self._moved(operand, rows[part + 1][i], max(begin - first, 0)))
        return Box(box.kind, self._of_axis(box.loops, edges, begin, end), tuple(moved))

    def _moved(self, operand: Operand, stride: int | None, steps: int) -> Operand:
        return operand._replace(offset=operand.offset + steps * (stride or 0) * self._bytes, entire=False)

    def _of_axis(self, loops: Loops, edges: Sequence[int], begin: int, end: int) -> Loops:
        axis = loops.axis
        early = self._early(loops, begin)
        sizes = (*loops.sizes[:axis], end - begin + early, *loops.sizes[axis + 1 :])
        lengths, rows = [], [loops.strides[0]]
        if early:
            lengths.append(early)
            rows.append(packed_strides((*sizes[:axis], early, *sizes[axis + 1 :])))
        for part in _parts_within(edges, begin, end):
            row, length = loops.strides[part + 1], min(end, edges[part + 1]) - max(begin, edges[part])
            lengths.append(length)
            rows.append(row if length > 1 else (*row[:axis], None, *row[axis + 1 :]))
        return Loops(sizes, tuple(rows), axis, tuple(lengths))

    def _early(self, loops: Loops, begin: int) -> int:
        """How many steps before `begin` the whole tensor has to be bound."""
        return begin % self._grain([loops.strides[0][loops.axis]])

    def _grain(self, strides: Iterable[int | None]) -> int:
        """The least number of steps that leads to a multiple of 16 bytes in every tensor."""
        least = MINIMUM_BUFFER_TENSOR_ALIGNMENT
        return max(least // math.gcd(least, (stride or 0) * self._bytes) for stride in strides)

    def _fold(self, loops: Loops) -> Loops:
        """The loops folded; operators of a rewriting mostly have the same ones."""
        if loops not in self._folded:
            self._folded[loops] = folded(loops)
        return self._folded[loops]

    def fits(self, loops: Loops) -> bool:
        """Whether the numbers are within what every target takes, and the loops within its dimensions."""
        few = self._fold(loops)
        if len(few.sizes) > self._most_dimensions:
            return False
        most_bytes = UINT_MAX * self._bytes
        for row, length in {(row, n) for row, n in zip(few.strides, (few.sizes[few.axis], *few.lengths), strict=True)}:
            sizes = (*few.sizes[: few.axis], length, *few.sizes[few.axis + 1 :])
            steps = [(n, s) for n, s in zip(sizes, row, strict=True) if n > 1 and s is not None]
            span = (1 + sum((n - 1) * s for n, s in steps)) * self._bytes
            if any(s > UINT_MAX for _, s in steps) or (span + 3) // 4 * 4 > most_bytes or math.prod(sizes) > UINT_MAX:
                return False
        if self._kind is OperatorType.JOIN:
            return math.prod(few.sizes) // few.sizes[few.axis] * max(few.lengths) <= INPUT_ELEMENTS_MAX
        return True


def _read_back(box: Box) -> Box:
    """The copy of what a box of a join, its first input a temporary, would write too early."""
    _, loops, (output, temporary, *_) = box
    early = loops.lengths[0]
    sizes = (*loops.sizes[: loops.axis], early, *loops.sizes[loops.axis + 1 :])
    return Box(OperatorType.SPLIT, Loops(sizes, loops.strides[:2], loops.axis, (early,)), (output, temporary))


def _sized(loops: Loops, i: int, size: int) -> Loops:
    sizes = (*loops.sizes[:i], size, *loops.sizes[i + 1 :])
    return Loops(sizes, loops.strides, loops.axis, (size,) if i == loops.axis else loops.lengths)


def _edges(loops: Loops) -> list[int]:
    """Where the parts begin on the axis, and the end of the last one."""
    return list(accumulate(loops.lengths, initial=0))


def _parts_within(edges: Sequence[int], begin: int, end: int) -> range:
    return range(bisect_right(edges, begin) - 1, bisect_left(edges, end))


def _distinct(loops: Loops) -> Loops:
    """The loops with parts that differ: they fold and fit as all do. Several parts remain several."""
    first, *parts = zip(loops.strides[1:], loops.lengths, strict=True)
    rows, lengths = zip(*[first, *dict.fromkeys(parts)], strict=True)
    return Loops(loops.sizes, (loops.strides[0], *rows), loops.axis, lengths)


def _largest(most: int, fits: Callable[[int], bool], near: int = 0) -> int:
    """The largest number up to `most` that fits, where every smaller one fits too; 0 if none does.

    Larger numbers cost more to try, so that steps begin small; `near`: a guess, better below than above.
    """
    low, step = near if 0 < near <= most and fits(near) else 0, 1
    while low + step <= most and fits(low + step):
        low, step = low + step, 2 * step
    high = min(low + step - 1, most)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def inputs_cut(box: Box, element_bytes: int) -> Box | None:
    """The box of a join with each input that has too many elements bound as several inputs in a row.

    None where none has, or where one cannot be bound from a multiple of 16 bytes on.
    """
    kind, loops, (output, *operands) = box
    axis, per_step = loops.axis, math.prod(loops.sizes) // loops.sizes[loops.axis]
    most = INPUT_ELEMENTS_MAX // per_step
    if max(loops.lengths) <= most or math.prod(loops.sizes) > UINT_MAX:
        return None
    lengths, rows, inputs = [], [loops.strides[0]], [output]
    for length, row, operand in zip(loops.lengths, loops.strides[1:], operands, strict=True):
        stride = (row[axis] or 0) * element_bytes
        grain = MINIMUM_BUFFER_TENSOR_ALIGNMENT // math.gcd(MINIMUM_BUFFER_TENSOR_ALIGNMENT, stride)
        step = length if length <= most else most // grain * grain
        if step == 0 or length > step * MOST_OPERATORS:
            return None
        for begin in range(0, length, step):
            lengths.append(min(step, length - begin))
            rows.append(row)
            inputs.append(operand._replace(offset=operand.offset + begin * stride, entire=step == length))
    return Box(kind, Loops(loops.sizes, tuple(rows), axis, tuple(lengths)), tuple(inputs))
