"""Packs tensors through a temporary buffer, the last resort: copies pack tensors of too many dimensions.

An input is packed before it is used. A copy moves some outer loops unchanged and everything inside them as one run of
memory, gaps included, so that these loops are then packed; the next copy moves more loops, until all are packed. If
their order in memory is not the required one, copies of four loops each transpose one loop to its place.

For example, a target takes 3 dimensions, and an input has these loops (sizes and strides in elements):

    (2, 2, 2, 2), (50, 20, 7, 2)    no two fold: 4 dimensions
    (2, 2, 10), (50, 20, 1)         the first copy: two loops, and a run of 1 + 1*7 + 1*2 elements within them
    (2, 2, 2, 2), (20, 10, 7, 2)    the input as it then lies in the temporary buffer; the outer two loops fold
    (4, 2, 2), (10, 7, 2)           the second copy, of 3 dimensions, after which the input is packed

An output is written packed and moved to its place afterwards. The bytes between its elements must not change: the
output's previous content is packed as an input would be, the elements are written into the packed copy, and the same
copies in the opposite direction lead back. This does not work if elements of the output interleave.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from typing import TypeAlias

from dmlsplit.descriptors.enums import TEMPORARY_BUFFER_ALIGNMENT, OperatorType
from dmlsplit.descriptors.layout import is_packed, packed_strides
from dmlsplit.legalize._build import BufferSlice
from dmlsplit.legalize._cut import Box, Cutter
from dmlsplit.legalize._loops import Loops
from dmlsplit.legalize._obstacles import Obstacle, interleaving

Sizes: TypeAlias = tuple[int, ...]
Steps: TypeAlias = tuple[int, ...]
"""Strides of a tensor, one for each loop: 0 if it is broadcast in the loop, or if the loop has one step."""


class TemporaryPacking:
    """Packs the tensors of a box, whose elements have `element_bits` bits.

    `before` and `after` are the copies so far, to be run before and after the box; `obstacles` says why tensors were
    left unpacked.
    """

    def __init__(self, element_bits: int, dimension_counts: Sequence[int]) -> None:
        self._bytes = element_bits // 8
        self._cutter = Cutter(OperatorType.SPLIT, element_bits, dimension_counts)
        self._size = 0
        self.before: list[Box] = []
        self.after: list[Box] = []
        self.obstacles: list[Obstacle] = []

    def inputs_packed(self, box: Box) -> Iterator[Box]:
        """Yields the box with more and more inputs packed; in a split each yielded box has one more copy. Every box
        requires the copies in `before` so far."""
        is_split = box.kind is OperatorType.SPLIT
        for i in range(1) if is_split else range(1, len(box.operands)):
            sizes, strides = box.loops.tensor(i)
            if not is_packed(sizes, strides):
                for packed, operand in self._packed_input(sizes, strides, box.operands[i]):
                    box = _replaced(box, i, packed, operand)
                    if is_split:
                        yield box
        if not is_split:
            yield box

    def outputs_packed(self, box: Box) -> Box:
        """Returns the box with every output packed for which copies back to its place exist; the copies are added to
        `after`."""
        is_join = box.kind is OperatorType.JOIN
        for i in range(1) if is_join else range(1, len(box.operands)):
            sizes, strides = box.loops.tensor(i)
            if is_packed(sizes, strides):
                continue
            if not _is_nested(sizes, strides):
                index = box.operands[i].buffer_index
                self.obstacles.append(interleaving("OutputTensor" if is_join else f"OutputTensors[{index}]"))
                continue
            operand = self._packed_output(sizes, strides, box.operands[i])
            if operand is not None:
                box = _replaced(box, i, packed_strides(sizes), operand)
        return box

    def _packed_input(self, sizes: Sizes, strides: Steps, operand: BufferSlice) -> Iterator[tuple[Steps, BufferSlice]]:
        """Yields the strides and the memory of an input after each further copy; ends early if the target accepts no
        copy."""
        order = _memory_order(sizes, strides)
        lying = strides
        for copy, lying in self._compaction(sizes, strides, order, self.obstacles):
            operand = self._copied(copy, operand)
            yield lying, operand
        if not _lie_packed(sizes, lying, order):
            return
        for copy, lying in _transpositions(sizes, order, [i for i, size in enumerate(sizes) if size > 1]):
            obstacle = self._cutter.obstacle(copy)
            if obstacle is not None:
                self.obstacles.append(obstacle)
                return
            operand = self._copied(copy, operand)
            yield lying, operand

    def _copied(self, copy: Loops, source: BufferSlice) -> BufferSlice:
        place = self._place(copy)
        self.before.append(_box(copy, source, place))
        return place

    def _packed_output(self, sizes: Sizes, strides: Steps, operand: BufferSlice) -> BufferSlice | None:
        """Returns packed memory for an output, and adds to `after` the copies from there to the output's layout; None
        if no such copies exist.

        The elements are transposed by `t` copies, the output's previous content is packed by `i` copies, and one more
        copy writes the elements into it. Of all choices whose last copy the target accepts, the one with the fewest
        copies is taken. Each of the `i` copies is also run backwards.
        """
        order = _memory_order(sizes, strides)
        obstacles: list[Obstacle] = []
        inward = list(self._compaction(sizes, strides, order, obstacles))
        turns = list(_transpositions(sizes, sorted(order), order))
        sources = [packed_strides(sizes), *[after for _, after in turns]]
        targets = [strides, *[after for _, after in inward]]
        for t, i in sorted(product(range(len(sources)), range(len(targets))), key=lambda ti: ti[0] + 2 * ti[1]):
            put = _copy(sizes, sources[t], targets[i])
            obstacle = self._cutter.obstacle(put)
            if obstacle is None:
                return self._put(put, [copy for copy, _ in turns[:t]], [copy for copy, _ in inward[:i]], operand)
            obstacles.append(obstacle)
        self.obstacles += obstacles
        return None

    def _put(self, put: Loops, turns: Sequence[Loops], inward: Sequence[Loops], operand: BufferSlice) -> BufferSlice:
        """Appends to `after` the copies of `_packed_output` (transpose, pack the output, write the elements into it,
        copy it back), and returns the memory that the first one reads."""
        first = place = self._place(put)
        for copy in turns:
            turned = self._place(copy)
            self.after.append(_box(copy, place, turned))
            place = turned
        back = []
        for copy in inward:
            inner = self._place(copy)
            self.after.append(_box(copy, operand, inner))
            back.append(_box(copy._replace(strides=copy.strides[::-1]), inner, operand))
            operand = inner
        self.after += [_box(put, place, operand), *reversed(back)]
        return first

    def _compaction(
        self, sizes: Sizes, strides: Steps, order: Sequence[int], obstacles: list[Obstacle]
    ) -> Iterator[tuple[Loops, Steps]]:
        """Yields copies that leave more and more loops of `order` packed, each with the resulting strides.

        Ends early, and appends the obstacle, if the target accepts no copy of one more loop.
        """
        moved = len(order) if _lie_packed(sizes, strides, order) else 0
        while moved < len(order):
            for count in range(len(order), moved, -1):
                copy = _outer_copy(sizes, strides, order, count)
                obstacle = self._cutter.obstacle(copy)
                if obstacle is None:
                    break
            if obstacle is not None:
                obstacles.append(obstacle)
                return
            moved = count
            after = dict(zip(order[:moved], copy.strides[1], strict=False))
            strides = tuple([after.get(i, stride) or 0 for i, stride in enumerate(strides)])
            yield copy, strides

    def _place(self, copy: Loops) -> BufferSlice:
        """Returns a new range of the temporary buffer for a copy's packed output."""
        place = BufferSlice("temporary", 0, 0, offset=self._size, entire=False)
        used = math.prod(copy.sizes) * self._bytes
        self._size += -(-used // TEMPORARY_BUFFER_ALIGNMENT) * TEMPORARY_BUFFER_ALIGNMENT
        return place


def _is_nested(sizes: Sizes, strides: Steps) -> bool:
    """True if each loop's stride exceeds the span of the loops within it, so that runs of memory do not interleave."""
    order = _memory_order(sizes, strides)
    if len(order) < sum(n > 1 for n in sizes):
        return False
    spans = accumulate([(sizes[i] - 1) * strides[i] for i in reversed(order)], initial=0)
    return all(strides[i] > span for i, span in zip(reversed(order), spans, strict=False))


def _transpositions(sizes: Sizes, lying: Sequence[int], wanted: Sequence[int]) -> Iterator[tuple[Loops, Steps]]:
    """Yields copies that bring packed loops from the order `lying` into the order `wanted`, each with the resulting
    strides; new loops are broadcast.

    Each copy moves a group of loops that are already in the wanted order to their place, past the loops before them.
    """
    lying = list(lying)
    for at, loop in enumerate(wanted):
        if lying[at : at + 1] == [loop]:
            continue
        outer, rest = lying[:at], lying[at:]
        if loop in rest:
            begin = rest.index(loop)
            end = begin + 1
            while rest[end : end + 1] and rest[end] == wanted[at + end - begin]:
                end += 1
            skipped, moved, inner = rest[:begin], rest[begin:end], rest[end:]
            counts = tuple([math.prod(sizes[i] for i in block) for block in (outer, skipped, moved, inner)])
            _, s, m, n = counts
            copy = _copy(counts, packed_strides(counts), (s * m * n, n, s * n, 1))
            lying = [*outer, *moved, *skipped, *inner]
        else:
            counts = (math.prod(sizes[i] for i in outer), sizes[loop], math.prod(sizes[i] for i in rest))
            copy = _copy(counts, (counts[2], 0, 1), packed_strides(counts))
            lying = [*outer, loop, *rest]
        after = dict(zip(lying, packed_strides([sizes[i] for i in lying]), strict=True))
        yield copy, tuple([after.get(i, 0) for i in range(len(sizes))])


def _outer_copy(sizes: Sizes, strides: Steps, order: Sequence[int], count: int) -> Loops:
    """Returns the loops of a copy: the first `count` of the loops in `order`, and inside them one run over the memory
    that the others span."""
    run = 1 + sum((sizes[i] - 1) * strides[i] for i in order[count:])
    copied = (*[sizes[i] for i in order[:count]], run)
    return _copy(copied, (*[strides[i] for i in order[:count]], 1), packed_strides(copied))


def _lie_packed(sizes: Sizes, strides: Steps, order: Sequence[int]) -> bool:
    return is_packed([sizes[i] for i in order], [strides[i] for i in order])


def _memory_order(sizes: Sizes, strides: Steps) -> list[int]:
    """Returns the indices of the loops with more than one step and a stride, the largest stride first."""
    return sorted((i for i, n in enumerate(sizes) if n > 1 and strides[i]), key=lambda i: -strides[i])


def _replaced(box: Box, i: int, strides: Steps, operand: BufferSlice) -> Box:
    free = tuple([stride if n > 1 else None for n, stride in zip(box.loops.tensor(i)[0], strides, strict=True)])
    rows = (*box.loops.strides[:i], free, *box.loops.strides[i + 1 :])
    return Box(box.kind, box.loops._replace(strides=rows), (*box.operands[:i], operand, *box.operands[i + 1 :]))


def _copy(sizes: Sizes, source: Steps, target: Steps) -> Loops:
    return Loops(sizes, (source, target), 0, sizes[:1])


def _box(copy: Loops, source: BufferSlice, target: BufferSlice) -> Box:
    return Box(OperatorType.SPLIT, copy.folded(), (source, target))
