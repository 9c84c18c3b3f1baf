"""Fresh output arrays. Their cost is page faults, so the pages should be large.

numpy requests huge pages for arrays of 4 MB and more, if the system has them. Several smaller outputs share one such
allocation, bounded so that one surviving output never pins a large block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np

HUGE_PAGE_ARRAY: Final = 4 << 20
"""Bytes from which numpy advises the kernel to use huge pages (numpy/_core/src/multiarray/alloc.c)."""
ARENA_LIMIT: Final = 32 << 20
LINE: Final = 64


class FreshArrays:
    """Makes packed arrays of given shapes again and again; thread-safe."""

    __slots__ = ("_dtype", "_offsets", "_shapes", "_size", "calls")

    def __init__(self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype[Any]) -> None:
        self._shapes = list(shapes)
        self._dtype = dtype
        sizes = [math.prod(shape) * dtype.itemsize for shape in shapes]
        *offsets, total = accumulate([(size + LINE - 1) // LINE * LINE for size in sizes], initial=0)
        one_block = max(sizes, default=0) < HUGE_PAGE_ARRAY <= total <= ARENA_LIMIT
        self._offsets = offsets if one_block else None
        self._size = total + LINE
        self.calls = None if one_block else tuple([(shape, dtype) for shape in shapes])
        """The arguments of numpy.empty for each array; None where they share an allocation."""

    def make(self) -> list[np.ndarray]:
        """Returns new arrays, their contents undefined. Raises MemoryError if there is no room."""
        if self._offsets is None:
            return [np.empty(shape, self._dtype) for shape in self._shapes]
        dtype = self._dtype
        block = np.empty(self._size, np.uint8)
        start = -block.__array_interface__["data"][0] % LINE
        return [
            np.ndarray(shape, dtype, block, start + offset)
            for shape, offset in zip(self._shapes, self._offsets, strict=True)
        ]
