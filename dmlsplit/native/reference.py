"""A split and a join in the simplest form, the reference in the kernels' tests.

It uses neither numpy nor the C core. Memory is a bytes-like object and an offset; the element at coordinates c of a
tensor lies at offset + sum(c[i] * strides[i]) * element size. Slow on purpose: one element at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.geometry import Geometry, TensorLayout


class Memory(NamedTuple):
    """A binding: `data` holds the tensor from byte `offset` on, and is written to if the tensor is an output."""

    data: bytearray
    offset: int = 0


def split(desc: SplitOperatorDesc, source: Memory, outputs: Sequence[Memory]) -> None:
    """Copies the elements of `source` into the outputs, in place, one output after another in row-major order, as a
    split does that `validate` accepts."""
    for size, at_whole, at_part, part in _places(desc, source, outputs):
        part.data[at_part : at_part + size] = source.data[at_whole : at_whole + size]


def join(desc: JoinOperatorDesc, inputs: Sequence[Memory], output: Memory) -> None:
    """Copies the elements of the inputs into `output`, in place, one input after another in row-major order, as a join
    does that `validate` accepts."""
    for size, at_whole, at_part, part in _places(desc, output, inputs):
        output.data[at_whole : at_whole + size] = part.data[at_part : at_part + size]


def _places(desc: OperatorDesc, whole: Memory, parts: Sequence[Memory]) -> Iterator[tuple[int, int, int, Memory]]:
    """Yields for each element: its size in bytes, its byte offsets in the whole's memory and in the part's, and the
    part's memory."""
    geometry = Geometry.of(desc)
    size = geometry.whole.bits // 8
    start = 0
    for part, memory in zip(geometry.parts, parts, strict=True):
        for coordinates in itertools.product(*map(range, part.sizes)):
            shifted = [c + start if d == geometry.axis else c for d, c in enumerate(coordinates)]
            yield (
                size,
                whole.offset + _index(geometry.whole, shifted) * size,
                memory.offset + _index(part, coordinates) * size,
                memory,
            )
        start += part.sizes[geometry.axis]


def _index(tensor: TensorLayout, coordinates: Sequence[int]) -> int:
    return sum(c * stride for c, stride in zip(coordinates, tensor.element_strides, strict=True))
