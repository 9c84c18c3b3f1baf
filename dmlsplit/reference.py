"""A split and a join written down as directly as possible: the oracle of the kernels' tests.

It knows neither numpy nor the C core. Memory is a bytes-like object and an offset; the element at coordinates c of a
tensor lies at offset + sum(c[i] * strides[i]) * element size. Slow on purpose: one element at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dmlsplit.descriptors import BufferTensorDesc, JoinOperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.layout import ELEMENT_BITS, packed_strides


class Memory(NamedTuple):
    """A binding: `data` is written to where the tensor is an output; `offset` in bytes."""

    data: bytearray
    offset: int = 0


def split(desc: SplitOperatorDesc, source: Memory, outputs: Sequence[Memory]) -> None:
    """Executes a split that `validate` accepts, one output after another in row-major order."""
    parts = [_buffer(part) for part in (desc.output_tensors or ())[: desc.output_count]]
    start = 0
    for part, memory in zip(parts, outputs, strict=True):
        _copy(_buffer(desc.input_tensor), source, part, memory, desc.axis, start, into_part=True)
        start += (part.sizes or ())[desc.axis]


def join(desc: JoinOperatorDesc, inputs: Sequence[Memory], output: Memory) -> None:
    """Executes a join that `validate` accepts, one input after another in row-major order."""
    parts = [_buffer(part) for part in (desc.input_tensors or ())[: desc.input_count]]
    start = 0
    for part, memory in zip(parts, inputs, strict=True):
        _copy(_buffer(desc.output_tensor), output, part, memory, desc.axis, start, into_part=False)
        start += (part.sizes or ())[desc.axis]


def _buffer(tensor: TensorDesc | None) -> BufferTensorDesc:
    if tensor is None or tensor.desc is None or tensor.desc.sizes is None:
        raise ValueError("the reference executes valid descriptors only")
    return tensor.desc


def _copy(
    whole: BufferTensorDesc,
    whole_memory: Memory,
    part: BufferTensorDesc,
    part_memory: Memory,
    axis: int,
    start: int,
    into_part: bool,
) -> None:
    size = ELEMENT_BITS[part.data_type] // 8
    sizes = (part.sizes or ())[: part.dimension_count]
    for coordinates in _coordinates(sizes):
        shifted = [c + start if d == axis else c for d, c in enumerate(coordinates)]
        at_part = part_memory.offset + _index(part, coordinates) * size
        at_whole = whole_memory.offset + _index(whole, shifted) * size
        if into_part:
            part_memory.data[at_part : at_part + size] = whole_memory.data[at_whole : at_whole + size]
        else:
            whole_memory.data[at_whole : at_whole + size] = part_memory.data[at_part : at_part + size]


def _coordinates(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(size) for size in sizes))


def _index(tensor: BufferTensorDesc, coordinates: Sequence[int]) -> int:
    strides = tensor.strides if tensor.strides is not None else packed_strides(tensor.sizes or ())
    return sum(c * stride for c, stride in zip(coordinates, strides, strict=False))
