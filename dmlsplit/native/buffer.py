"""The stand-in for a Direct3D 12 buffer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dmlsplit.system.integers import integer


class Buffer:
    """A zero-filled buffer of the given size in bytes, the counterpart of an ID3D12Resource of dimension BUFFER.

    `array` is its memory as a writable 1-D uint8 array, without a copy; `buffer.array[offset:end].view(np.float32)` are
    its elements; views stay valid as long as they are referenced. A compiled operator reads a Buffer as raw memory,
    laid out by the descriptor, whatever the tensor's sizes are.

    Raises TypeError for a size that is not an integer, ValueError for a negative size, MemoryError if there is not
    enough memory.
    """

    __slots__ = ("_memory", "address")

    def __init__(self, size_in_bytes: int) -> None:
        size = integer(size_in_bytes, "size_in_bytes")
        if size < 0:
            raise ValueError(f"a buffer cannot have {size} bytes")
        try:
            self._memory: npt.NDArray[np.uint8] = np.zeros(size, np.uint8)
        # ValueError and OverflowError: more bytes than an address can count
        except (MemoryError, ValueError, OverflowError):
            raise MemoryError(f"there is not enough memory for a buffer of {size} bytes") from None
        self.address: int = self._memory.__array_interface__["data"][0]

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        # Each caller gets a view of its own: resizing or reshaping one must not affect the memory.
        return self._memory.view()

    @property
    def size_in_bytes(self) -> int:
        return int(self._memory.size)

    def __buffer__(self, flags: int) -> memoryview:
        """Returns a view of the memory: the buffer protocol of Python 3.12 and newer."""
        return self.array.data

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[np.generic]:
        # The oldest supported numpy releases neither pass `copy` nor accept None for it.
        return np.asarray(self.array, dtype) if copy is None else np.array(self.array, dtype, copy=copy)

    def __reduce__(self) -> tuple[Callable[[npt.NDArray[np.uint8]], Buffer], tuple[npt.NDArray[np.uint8]]]:
        """Returns a function and its arguments, with which copy and pickle make a new buffer with the same content."""
        return _filled, (self._memory,)

    def __repr__(self) -> str:
        return f"Buffer({self.size_in_bytes})"


def _filled(content: npt.NDArray[np.uint8]) -> Buffer:
    buffer = Buffer(content.size)
    buffer.array[:] = content
    return buffer
