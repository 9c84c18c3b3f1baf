"""Converts loops to descriptors: sizes and strides in a data type, total sizes, alignments, and the bytes that are
bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dmlsplit.descriptors.descs import BufferTensorDesc, OperatorDesc
from dmlsplit.descriptors.enums import (
    MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    UINT_MAX,
    OperatorType,
    TensorDataType,
    TensorFlags,
)
from dmlsplit.descriptors.geometry import Geometry, TensorLayout, descriptor_of
from dmlsplit.descriptors.layout import ELEMENT_BITS, implied_size, is_packed
from dmlsplit.legalize._loops import Loops
from dmlsplit.legalize._obstacles import Obstacle, too_large
from dmlsplit.legalize.regions import BufferKind, Region


class BufferSlice(NamedTuple):
    """The memory of a tensor: it begins `offset` bytes into a buffer of the original operator, or into the temporary
    buffer.

    The other members are the original tensor's: its total size in bytes, its strides, its flags, and the alignment that
    it guarantees for the buffer.
    """

    buffer: BufferKind
    buffer_index: int
    total: int
    strides: tuple[int, ...] | None = None
    flags: TensorFlags = TensorFlags.NONE
    alignment: int = 0
    offset: int = 0
    entire: bool = True
    """True if this is the whole original tensor, whose total size can then be kept."""

    @classmethod
    def of(cls, buffer: BufferKind, index: int, tensor: TensorLayout) -> BufferSlice:
        """Returns the memory of a whole tensor of the original operator, which is buffer number `index` of this
        kind."""
        return cls(buffer, index, tensor.total, tensor.strides, tensor.flags, tensor.alignment)

    @property
    def described(self) -> tuple[object, ...]:
        """A key of what its descriptor has besides sizes and strides: total size (None if it is to be computed), flags
        and alignment."""
        return self.total if self.entire else None, self.flags, _promise(self)


def build(
    kind: OperatorType,
    loops: Loops,
    data_type: TensorDataType,
    memory: Sequence[BufferSlice],
    *,
    keep_strides: bool = False,
) -> OperatorDesc | Obstacle:
    """Returns the operator for loops that count elements of `data_type`; `memory` has the memory of the whole, then of
    the parts.

    Returns an Obstacle if a number does not fit its member. `keep_strides`: the loops are the original's dimensions,
    whose strides are kept.
    """
    known: dict[tuple[object, ...], BufferTensorDesc] = {}
    tensors = []
    for i, operand in enumerate(memory):
        sizes, steps = loops.tensor(i)
        own = operand.strides if keep_strides else None
        key = (sizes, steps, own, operand.described)
        tensor = known.get(key)
        if tensor is None:
            found = _tensor(sizes, steps, data_type, operand, own)
            if isinstance(found, Obstacle):
                return found
            tensor = known[key] = found
        tensors.append(tensor)
    whole, *parts = tensors
    return descriptor_of(kind, whole, parts, len(parts), loops.axis)


def regions(operator: Geometry, memory: Sequence[BufferSlice]) -> tuple[Region, ...]:
    """Returns the Regions of the tensors of an operator that was built, inputs before outputs; `memory` is that of the
    whole, then of the parts."""
    return tuple(
        [
            Region(operand.buffer, operand.buffer_index, operand.offset, tensor.total)
            for operand, tensor in zip(operator.roles.in_order(memory[0], memory[1:]), operator.tensors, strict=True)
        ]
    )


def _tensor(
    sizes: tuple[int, ...],
    steps: tuple[int, ...],
    data_type: TensorDataType,
    operand: BufferSlice,
    own: tuple[int, ...] | None,
) -> BufferTensorDesc | Obstacle:
    bits = ELEMENT_BITS[data_type]
    given = own
    if own is None and not is_packed(sizes, steps):
        given = steps
    if max(sizes) > UINT_MAX:
        return too_large("a size", max(sizes), UINT_MAX, bits)
    if given is not None and max(given) > UINT_MAX:
        return too_large("a stride", max(given), UINT_MAX, bits)
    total = implied_size(data_type, sizes, given)
    assert total is not None  # there is a total: all sizes are at least 1
    limit = UINT_MAX * bits // 8
    if total > limit:
        return too_large("the bytes of a tensor", total, limit, bits)
    if operand.entire and operand.total <= limit:
        total = operand.total
    return BufferTensorDesc(
        data_type,
        sizes,
        strides=given,
        flags=operand.flags,
        total_tensor_size_in_bytes=total,
        guaranteed_base_offset_alignment=_promise(operand),
    )


def _promise(operand: BufferSlice) -> int:
    """Returns the GuaranteedBaseOffsetAlignment that holds at the bound offset; below 16 bytes 0, which promises the
    same."""
    promised = operand.alignment
    if operand.offset:
        promised = min(promised, operand.offset & -operand.offset)
    return promised if promised >= MINIMUM_BUFFER_TENSOR_ALIGNMENT else 0
