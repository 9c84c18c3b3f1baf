"""Arrays in the layouts of the cases."""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from typing import Final

import numpy as np

LINE: Final = 64
PERIOD: Final = 251
"""Inputs repeat after so many bytes: a prime, so that no misplaced run of bytes looks right."""


@dataclass(frozen=True)
class Layout:
    """How an array of given shape lies in memory; the default is packed on a cache line."""

    order: tuple[int, ...] = ()
    """Dimensions from the outermost in memory to the innermost; empty: as they are."""
    pad: int = 0
    """Elements left out after each innermost row."""
    broadcast: tuple[int, ...] = ()
    """Dimensions with stride 0."""
    reverse: tuple[int, ...] = ()
    """Dimensions with a negative stride."""
    offset: int = 0
    """Bytes between a cache line and the first byte."""

    def __str__(self) -> str:
        words = {"order": self.order, "padded by": self.pad, "broadcast": self.broadcast, "reversed": self.reverse}
        shown = [f"{word} {value}" for word, value in words.items() if value]
        return " and ".join(shown + [f"at line + {self.offset}"] * bool(self.offset))


PACKED: Final = Layout()


LEAST_MAPPED: Final = 128 << 10
LEAST_HUGE: Final = 4 << 20


def own_pages(size: int) -> np.ndarray:
    """Bytes of a new mapping, in huge pages where numpy would ask for them."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= LEAST_HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def allocate(size: int, offset: int = 0) -> np.ndarray:
    """Bytes that begin `offset` past a cache line.

    Large ones are pages of their own: the C library would take them from its heap or map them, depending on the largest
    block that was freed before, so processes that run different packages would get memory of different kinds.
    """
    needed = size + 2 * LINE + offset
    is_mapped = needed >= LEAST_MAPPED and hasattr(mmap, "MAP_ANONYMOUS")
    raw = own_pages(needed) if is_mapped else np.empty(needed, np.uint8)
    start = -raw.ctypes.data % LINE + offset
    return raw[start : start + size]


def fill(memory: np.ndarray, seed: int = 0) -> None:
    """Bytes 0 to 250, over and over."""
    block = np.arange(PERIOD * 4096, dtype=np.uint32)
    pattern = ((block + seed) % PERIOD).astype(np.uint8)
    for start in range(0, len(memory), len(pattern)):
        target = memory[start : start + len(pattern)]
        target[...] = pattern[: len(target)]


def build(layout: Layout, shape: tuple[int, ...], dtype: str, seed: int | None) -> np.ndarray:
    """An array of `shape` in this layout, filled from `seed`, or with 0xFF where that is None."""
    order = layout.order or tuple(range(len(shape)))
    sizes = [1 if d in layout.broadcast else shape[d] for d in order]
    stored = [*sizes[:-1], sizes[-1] + layout.pad]
    memory = allocate(math.prod(stored) * np.dtype(dtype).itemsize, layout.offset)
    if seed is None:
        memory.fill(0xFF)
    else:
        fill(memory, seed)
    array = memory.view(dtype).reshape(stored)[..., : sizes[-1]]
    array = array.transpose(np.argsort(order))
    array = array[tuple(slice(None, None, -1 if d in layout.reverse else 1) for d in range(len(shape)))]
    return np.broadcast_to(array, shape) if layout.broadcast else array


def slices(whole: np.ndarray, axis: int, lengths: tuple[int, ...]) -> list[np.ndarray]:
    """Views of the parts within the whole."""
    ends = np.cumsum(lengths)
    return [
        whole[(slice(None),) * axis + (slice(end - n, end),)] for n, end in zip(lengths, ends.tolist(), strict=True)
    ]


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays hold the same elements, compared as integers: a NaN equals itself."""
    if a.shape != b.shape or a.dtype.itemsize != b.dtype.itemsize:
        return False
    integer = np.dtype(f"u{a.dtype.itemsize}")
    return bool(np.array_equal(a.view(integer), b.view(integer)))
