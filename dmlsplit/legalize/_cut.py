"""Cuts an operator that is too large, or has too many dimensions, into several, each on a sub-range of the buffers.

A buffer is bound at multiples of 16 bytes only. The grain of a loop is the smallest number of its steps that advances
every tensor by such a multiple: a loop is cut at multiples of its grain. On the axis of several parts a cut is also
possible where only a part can be bound. The whole tensor is then bound some steps earlier, and these lead-in steps go
through a temporary buffer: a split writes the elements there that it reads too early; a join reads from there the
elements that it writes too early, a copy of the output's previous content.

For example, a target takes 32 elements at most, and 44 elements of UINT8 are split into 11 and 33:

    Loops(sizes=(44,), strides=((1,), (1,), (1,)), axis=0, lengths=(11, 33))    the whole, then the two parts

The first operator reaches 32 elements at most. The second part begins at element 11 of the whole; it can be bound 16
bytes further on, at element 27, so that this is the cut. The whole cannot be bound at byte 27, but at byte 16, with 11
lead-in steps:

    Loops(sizes=(27,), ..., lengths=(11, 16))    the whole from byte 0 on, the parts 0 and 1 from byte 0 on
    Loops(sizes=(28,), ..., lengths=(11, 17))    the whole from byte 16 on, the temporary buffer, part 1 from byte 16 on
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from dmlsplit.descriptors.enums import MINIMUM_BUFFER_TENSOR_ALIGNMENT, UINT_MAX, OperatorType
from dmlsplit.descriptors.layout import packed_strides
from dmlsplit.legalize._build import BufferSlice
from dmlsplit.legalize._loops import Loops
from dmlsplit.legalize._obstacles import Obstacle, nearest, too_large, too_many, too_many_dimensions
from dmlsplit.rules.operator import INPUT_ELEMENTS_MAX

MOST_OPERATORS: Final = 4096
"""The most operators in a useful rewriting."""
MOST_TENSORS: Final = 2**18
"""The most tensors in all operators together, because one operator may have very many."""
TOO_MANY_OPERATORS: Final = too_many("several operators", MOST_OPERATORS)


class Box(NamedTuple):
    """An operator as loops over elements, and the memory of its tensors, the whole first."""

    kind: OperatorType
    loops: Loops
    operands: tuple[BufferSlice, ...]


class _Way(NamedTuple):
    """A plan to cut loops: loop `loop` is cut at `points`. No points: the target accepts the loops as they are.

    `operators` and `parts` are the totals once everything between the points has been cut further.
    """

    operators: int
    parts: int
    loop: int = 0
    points: tuple[int, ...] = ()


class Cutter:
    """Cuts boxes of elements of `element_bits` bits for a target that accepts these numbers of dimensions.

    `use_temporary`: allows cuts at which the whole tensor cannot be bound, with the help of a temporary buffer.
    """

    def __init__(
        self, kind: OperatorType, element_bits: int, dimension_counts: Sequence[int], *, use_temporary: bool = False
    ) -> None:
        self._kind = kind
        self._bits = element_bits
        self._bytes = element_bits // 8
        self._most_dimensions = max(dimension_counts)
        self._use_temporary = use_temporary
        self._ways: dict[Loops, _Way | Obstacle] = {}
        self._folded: dict[Loops, Loops] = {}

    def operators(self, box: Box) -> int | Obstacle:
        """Returns the number of operators that a box is cut into, or the Obstacle that prevents it."""
        if math.prod(box.loops.sizes) > UINT_MAX * MOST_OPERATORS:
            return TOO_MANY_OPERATORS
        way = self._way(box.loops)
        return way.operators if isinstance(way, _Way) else way

    def boxes(self, box: Box) -> Iterator[Box]:
        """Yields the folded boxes that a box is cut into, in the order to run them; the box must be one that can be
        cut."""
        way = self._way(box.loops)
        assert isinstance(way, _Way)
        if not way.points:
            yield box._replace(loops=self._fold(box.loops))
            return
        edges = box.loops.edges()
        for begin, end in pairwise(way.points):
            part = self._sub_range(box, way.loop, edges, begin, end)
            if box.kind is OperatorType.JOIN and way.loop == box.loops.axis and self._lead_in_steps(box.loops, begin):
                copy = _lead_in_copy(part)
                yield copy._replace(loops=self._fold(copy.loops))
            yield from self.boxes(part)

    def obstacle(self, loops: Loops) -> Obstacle | None:
        """Returns the obstacle if loops exceed the target's number of dimensions, or the numbers that every target
        accepts; else None."""
        few = self._fold(loops)
        if len(few.sizes) > self._most_dimensions:
            return too_many_dimensions(len(few.sizes), self._most_dimensions)
        most_bytes = UINT_MAX * self._bytes
        rows = zip(few.strides, (few.sizes[few.axis], *few.lengths), strict=True)
        for row, length in dict.fromkeys(rows):
            sizes = (*few.sizes[: few.axis], length, *few.sizes[few.axis + 1 :])
            stride, span = 0, 1
            for n, s in zip(sizes, row, strict=True):
                if n > 1 and s is not None:
                    stride, span = max(stride, s), span + (n - 1) * s
            if stride > UINT_MAX:
                return too_large("a stride", stride, UINT_MAX, self._bits)
            if (total := (span * self._bytes + 3) // 4 * 4) > most_bytes:
                return too_large("the bytes of a tensor", total, most_bytes, self._bits)
            if (elements := math.prod(sizes)) > UINT_MAX:
                return too_large("the elements of a tensor", elements, UINT_MAX, self._bits)
        if self._kind is OperatorType.JOIN:
            elements = math.prod(few.sizes) // few.sizes[few.axis] * max(few.lengths)
            if elements > INPUT_ELEMENTS_MAX:
                return too_large("the elements of an input", elements, INPUT_ELEMENTS_MAX, self._bits)
        return None

    def _way(self, loops: Loops) -> _Way | Obstacle:
        if loops not in self._ways:
            own = self.obstacle(loops)
            self._ways[loops] = own or _Way(1, len(loops.lengths))
            if own is not None:
                self._ways[loops] = self._cut(loops, own)
        return self._ways[loops]

    def _cut(self, loops: Loops, own: Obstacle) -> _Way | Obstacle:
        """Returns the plan with the fewest operators: one loop is cut as coarsely as the target allows, or at its
        grain, and its pieces are cut further. Returns the nearest Obstacle if there is no plan; `own` is that of the
        uncut loops."""
        axis = None if loops.single else loops.axis
        few = loops.distinct()
        shared = [i for i, n in enumerate(loops.sizes) if n > 1 and i != axis]
        surplus = len(self._fold(few).sizes) - self._most_dimensions
        if surplus > 0:  # dropping a loop means cutting it at each of its steps, so shorter loops need fewer operators
            shared = sorted((i for i in shared if self._grain_of(few, i) == 1), key=lambda i: loops.sizes[i])
        ways = [self._cut_coarsely(loops, few, i) for i in shared] if surplus <= 1 else []
        if axis is not None:
            ways.append(self._cut_axis(loops))
        if not any(isinstance(way, _Way) for way in ways):
            ways += [self._cut_at_grain(loops, few, i) for i in (shared[:1] if surplus > 0 else shared)]
            if axis is not None:
                ways.append(self._cut_between_parts(loops))
        found = [way for way in ways if isinstance(way, _Way)]
        if found:
            return min(found, key=lambda way: way.operators)
        return nearest([own, *[way for way in ways if isinstance(way, Obstacle)]])

    # Cuts of a loop that all tensors share: None if the loop has no point to cut at

    def _cut_coarsely(self, loops: Loops, few: Loops, i: int) -> _Way | Obstacle | None:
        grain, size = self._grain_of(few, i), loops.sizes[i]
        steps = _largest((size - 1) // grain, lambda steps: not self.obstacle(few.resized(i, steps * grain)))
        if not steps:
            return None
        begins = range(0, size, steps * grain)
        points = (*begins, size) if len(begins) <= MOST_OPERATORS else ()
        return _bounded(_Way(len(begins), len(begins) * len(loops.lengths), i, points))

    def _cut_at_grain(self, loops: Loops, few: Loops, i: int) -> _Way | Obstacle | None:
        grain, size = self._grain_of(few, i), loops.sizes[i]
        if size <= grain:
            return None
        if size > grain * MOST_OPERATORS:
            return TOO_MANY_OPERATORS
        points = (*range(0, size, grain), size)
        lengths = [end - begin for begin, end in pairwise(points)]
        ways = {n: self._way(loops.resized(i, n)) for n in dict.fromkeys(lengths)}
        return _summed([ways[n] for n in lengths], i, points)

    def _grain_of(self, loops: Loops, i: int) -> int:
        return self._grain({row[i] for row in loops.strides})

    # Cuts of the axis of several parts

    def _cut_axis(self, loops: Loops) -> _Way | Obstacle | None:
        """Returns the plan that cuts the axis greedily, each piece as long as the target accepts, which needs the
        fewest operators; None if some piece has no place to end, an Obstacle if there are too many."""
        size = loops.sizes[loops.axis]
        edges = loops.edges()
        ends = edges[1:]
        points, reach = [0], 0
        while points[-1] < size:
            begin = points[-1]
            reach = self._reach(loops, edges, begin, reach - MINIMUM_BUFFER_TENSOR_ALIGNMENT)
            end = self._last_point(loops, ends, begin, begin + reach)
            if end is None:
                return None
            if len(points) > MOST_OPERATORS:
                return TOO_MANY_OPERATORS
            points.append(end)
        is_join = self._kind is OperatorType.JOIN
        copies = sum(self._lead_in_steps(loops, begin) > 0 for begin in points[:-1]) if is_join else 0
        return _Way(len(points) - 1 + copies, len(loops.lengths) + len(points), loops.axis, tuple(points))

    def _cut_between_parts(self, loops: Loops) -> _Way | Obstacle | None:
        """Returns the plan that cuts the axis at all edges between parts (the tensors that are split off or joined) at
        which buffers can be bound, and the pieces further; None if there is no such edge. Returns an Obstacle if the
        plan needs too many operators or a piece can neither be accepted nor cut.

        A split that may use a temporary buffer is cut at every edge; any other operator, only at the edges that need no
        lead-in steps (see `_lead_in_steps`).
        """
        edges = loops.edges()
        anywhere = self._use_temporary and self._kind is OperatorType.SPLIT
        inner = [edge for edge in edges[1:-1] if anywhere or self._lead_in_steps(loops, edge) == 0]
        if not inner:
            return None
        points = (0, *inner, edges[-1])
        if len(points) > MOST_OPERATORS + 1:
            return TOO_MANY_OPERATORS
        ways = (self._way(self._axis_range(loops, edges, *ends)) for ends in pairwise(points))
        return _summed(ways, loops.axis, points)

    def _reach(self, loops: Loops, edges: Sequence[int], begin: int, near: int) -> int:
        """Returns the largest number of steps from `begin` on that the target accepts; `near` is a guess, better too
        small than too large."""

        def fits(steps: int) -> bool:
            return not self.obstacle(self._axis_range(loops, edges, begin, begin + steps))

        return _largest(loops.sizes[loops.axis] - begin, fits, near)

    def _last_point(self, loops: Loops, ends: Sequence[int], begin: int, limit: int) -> int | None:
        """Returns the last point in (begin, limit] at which all buffers can be bound; None if there is none."""
        if limit == ends[-1]:
            return limit
        for part in reversed(range(bisect_right(ends, begin), min(bisect_right(ends, limit) + 1, len(ends)))):
            if ends[part] <= limit and (self._use_temporary or self._lead_in_steps(loops, ends[part]) == 0):
                return ends[part]
            start = ends[part] - loops.lengths[part]
            # Both grains are powers of two: points within a part are those of the coarser grain, or there are none.
            own = self._grain([loops.strides[part + 1][loops.axis]])
            whole = 1 if self._use_temporary else self._grain([loops.strides[0][loops.axis]])
            if start % min(own, whole) == 0:
                first = start if own >= whole else 0
                point = limit - (limit - first) % max(own, whole)
                if max(start, begin) < point < ends[part]:
                    return point
        return None

    # Sub-ranges

    def _sub_range(self, box: Box, i: int, edges: Sequence[int], begin: int, end: int) -> Box:
        """Returns the box from step `begin` to `end` of loop `i`. Lead-in steps (see `_lead_in_steps`) become a part of
        their own, in a temporary buffer."""
        rows, axis = box.loops.strides, box.loops.axis
        if i != axis or box.loops.single:
            moved = [self._moved(x, row[i], begin) for x, row in zip(box.operands, rows, strict=True)]
            return Box(box.kind, box.loops.resized(i, end - begin), tuple(moved))
        lead_in = self._lead_in_steps(box.loops, begin)
        moved = [self._moved(box.operands[0], rows[0][i], begin - lead_in)]
        if lead_in:
            moved.append(BufferSlice("temporary", 0, 0, entire=False))
        for part in _parts_within(edges, begin, end):
            first, last = edges[part], edges[part + 1]
            operand = box.operands[part + 1]
            entire = begin <= first and last <= end
            moved.append(operand if entire else self._moved(operand, rows[part + 1][i], max(begin - first, 0)))
        return Box(box.kind, self._axis_range(box.loops, edges, begin, end), tuple(moved))

    def _moved(self, operand: BufferSlice, stride: int | None, steps: int) -> BufferSlice:
        return operand._replace(offset=operand.offset + steps * (stride or 0) * self._bytes, entire=False)

    def _axis_range(self, loops: Loops, edges: Sequence[int], begin: int, end: int) -> Loops:
        """Returns the loops from step `begin` to `end` of the axis, with the lead-in steps (see `_lead_in_steps`) in
        front."""
        axis = loops.axis
        lead_in = self._lead_in_steps(loops, begin)
        sizes = (*loops.sizes[:axis], end - begin + lead_in, *loops.sizes[axis + 1 :])
        lengths, rows = [], [loops.strides[0]]
        if lead_in:
            lengths.append(lead_in)
            rows.append(packed_strides((*sizes[:axis], lead_in, *sizes[axis + 1 :])))
        for part in _parts_within(edges, begin, end):
            row, length = loops.strides[part + 1], min(end, edges[part + 1]) - max(begin, edges[part])
            lengths.append(length)
            rows.append(row if length > 1 else (*row[:axis], None, *row[axis + 1 :]))
        return Loops(sizes, tuple(rows), axis, tuple(lengths))

    def _lead_in_steps(self, loops: Loops, begin: int) -> int:
        """Returns how many steps before `begin` on the axis the whole tensor has to be bound, since a buffer can be
        bound at multiples of 16 bytes only; 0 if it can be bound at `begin`. An operator copies these lead-in steps
        too: a split writes them into a temporary buffer, a join reads them from there."""
        return begin % self._grain([loops.strides[0][loops.axis]])

    def _grain(self, strides: Iterable[int | None]) -> int:
        """Returns the least number of steps that advances every one of these strides by a multiple of 16 bytes."""
        least = MINIMUM_BUFFER_TENSOR_ALIGNMENT
        return max(least // math.gcd(least, (stride or 0) * self._bytes) for stride in strides)

    def _fold(self, loops: Loops) -> Loops:
        """Returns the folded loops, from a cache: the operators of a rewriting usually share their loops."""
        if loops not in self._folded:
            self._folded[loops] = loops.folded()
        return self._folded[loops]


def _summed(ways: Iterable[_Way | Obstacle], i: int, points: tuple[int, ...]) -> _Way | Obstacle:
    """Returns the plan that cuts loop `i` at these points and the pieces by `ways`, or the first Obstacle among
    them."""
    operators = parts = 0
    for way in ways:
        if isinstance(way, Obstacle):
            return way
        operators += way.operators
        parts += way.parts
    return _bounded(_Way(operators, parts, i, points))


def _bounded(way: _Way) -> _Way | Obstacle:
    if way.operators > MOST_OPERATORS:
        return TOO_MANY_OPERATORS
    return way if way.parts <= MOST_TENSORS else too_many("tensors of several operators", MOST_TENSORS)


def _lead_in_copy(box: Box) -> Box:
    """Returns the operator that copies the lead-in steps of a join's operator from the output to the temporary buffer.
    The join's operator overwrites these elements, and restores them from there."""
    _, loops, (output, temporary, *_) = box
    lead_in = loops.lengths[0]
    sizes = (*loops.sizes[: loops.axis], lead_in, *loops.sizes[loops.axis + 1 :])
    return Box(OperatorType.SPLIT, Loops(sizes, loops.strides[:2], loops.axis, (lead_in,)), (output, temporary))


def _parts_within(edges: Sequence[int], begin: int, end: int) -> range:
    return range(bisect_right(edges, begin) - 1, bisect_left(edges, end))


def _largest(most: int, fits: Callable[[int], bool], near: int = 0) -> int:
    """Returns the largest number up to `most` that fits, 0 if none does; every number below one that fits must fit too.

    Larger numbers are more expensive to try, so the search begins with small steps; `near` is a guess, better too small
    than too large.
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
    """Returns the box of a join with each input that has too many elements bound as several consecutive inputs.

    None if no input has too many, or if a piece cannot begin at a multiple of 16 bytes.
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
