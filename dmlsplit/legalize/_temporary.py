"""The last resort: inputs are first packed into a temporary buffer, by copies that the target takes.

A copy moves some outer loops as they are and everything within them as one run of memory, gaps included. So the loops
that were moved lie packed, one after the other, until all do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dmlsplit.enums import OperatorType
from dmlsplit.layout import is_packed, packed_strides
from dmlsplit.legalize._build import TEMPORARY, Operand
from dmlsplit.legalize._cut import Box, Cutter
from dmlsplit.legalize._loops import Loops, Strides, folded

ALIGNMENT = 256
"""DML_TEMPORARY_BUFFER_ALIGNMENT, in bytes."""


class Packer:
    """Packs inputs of elements of `element_bytes`; `copies` are single-output splits, in order."""

    def __init__(self, element_bytes: int, dimension_counts: Sequence[int]) -> None:
        self._bytes = element_bytes
        self._cutter = Cutter(OperatorType.SPLIT, element_bytes, dimension_counts, use_temporary=False)
        self.copies: list[Box] = []
        self.size = 0
        """Bytes of the temporary buffer."""

    def packed(self, box: Box) -> Iterator[Box]:
        """The box with its inputs packed, bit by bit: each result needs the copies made so far."""
        kind = box.kind
        if kind is OperatorType.SPLIT:
            for strides, operand in self._steps(box.loops.sizes, box.loops.strides[0], box.operands[0]):
                loops = box.loops._replace(strides=(strides, *box.loops.strides[1:]))
                yield Box(kind, loops, (operand, *box.operands[1:]))
            return
        axis, rows, operands = box.loops.axis, list(box.loops.strides), list(box.operands)
        for i, length in enumerate(box.loops.lengths, 1):
            sizes = (*box.loops.sizes[:axis], length, *box.loops.sizes[axis + 1 :])
            if is_packed(sizes, [stride or 0 for stride in rows[i]]):
                continue
            done = list(self._steps(sizes, rows[i], operands[i]))
            if not done:
                return
            rows[i], operands[i] = done[-1]
        yield Box(kind, box.loops._replace(strides=tuple(rows)), tuple(operands))

    def _steps(self, sizes: tuple[int, ...], strides: Strides, operand: Operand) -> Iterator[tuple[Strides, Operand]]:
        """Strides and place of a tensor after each copy; ends with the packed one, or early where no copy is taken."""
        count = len(sizes)
        moved = 0
        while moved < count:
            copies = [(n, self._copy(sizes, strides, n)) for n in range(count, moved, -1)]
            found = next(((n, loops) for n, loops in copies if self._cutter.fits(loops)), None)
            if found is None:
                return
            moved, loops = found
            to = Operand("temporary", 0, TEMPORARY, 0, offset=self.size, entire=False)
            self.copies.append(Box(OperatorType.SPLIT, folded(loops), (operand, to)))
            self.size += -(-math.prod(loops.sizes) * self._bytes // ALIGNMENT) * ALIGNMENT
            run = loops.sizes[-1]
            strides = (*[s * run for s in packed_strides(sizes[:moved])], *strides[moved:])
            operand = to
            yield strides, operand

    def _copy(self, sizes: tuple[int, ...], strides: Strides, count: int) -> Loops:
        """The loops of a copy of the first `count` loops with the memory that the others span."""
        run = 1 + sum((n - 1) * (s or 0) for n, s in zip(sizes[count:], strides[count:], strict=True))
        copied = (*sizes[:count], run)
        return Loops(copied, ((*strides[:count], 1), packed_strides(copied)), 0, copied[:1])
