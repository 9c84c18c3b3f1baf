"""Descriptors for the rules' examples: variations of the documented split of {1,1,6,2} on axis 2 into 2+1+3."""

from __future__ import annotations

from typing import Any

from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, SplitOperatorDesc, TensorDesc, TensorLike
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.descriptors.geometry import descriptor_of, members_of

F32 = TensorDataType.FLOAT32
WHOLE = (1, 1, 6, 2)
LENGTHS = (2, 1, 3)


def tensor(sizes: tuple[int, ...], data_type: int = F32, **members: Any) -> BufferTensorDesc:
    return BufferTensorDesc(data_type, sizes, **members)


def split(
    sizes: tuple[int, ...] = WHOLE,
    axis: int = 2,
    lengths: tuple[int, ...] = LENGTHS,
    data_type: int = F32,
    **members: Any,
) -> SplitOperatorDesc:
    """Returns the descriptor of a split; `members` are the input tensor's."""
    return SplitOperatorDesc.from_lengths(tensor(sizes, data_type, **members), axis, lengths)


def join(
    sizes: tuple[int, ...] = WHOLE,
    axis: int = 2,
    lengths: tuple[int, ...] = LENGTHS,
    data_type: int = F32,
    **members: Any,
) -> JoinOperatorDesc:
    """Returns the descriptor of a join; `members` are the output tensor's."""
    return JoinOperatorDesc.from_lengths(tensor(sizes, data_type, **members), axis, lengths)


def copy_to(sizes: tuple[int, ...], data_type: int = F32, **members: Any) -> SplitOperatorDesc:
    """Returns the descriptor of a split into one output, whose members are `members`."""
    return SplitOperatorDesc(tensor(sizes, data_type), [tensor(sizes, data_type, **members)], len(sizes) - 1)


def with_input(tensor: TensorLike) -> SplitOperatorDesc:
    """Returns the documented split with another input tensor."""
    return SplitOperatorDesc(tensor, split().output_tensors, 2)


def with_part(desc: Any, index: int, part: BufferTensorDesc | TensorDesc | None) -> Any:
    """Returns the descriptor with output number `index` (of a split) or input number `index` (of a join) replaced."""
    parts: list[TensorLike] = list(members_of(desc).array or ())
    parts[index] = part
    return with_parts(desc, parts)


def with_parts(desc: Any, parts: Any, count: int | None = None) -> Any:
    """Returns the descriptor with another array of outputs (of a split) or inputs (of a join); the count defaults to
    its length."""
    kind, whole, _, _, axis = members_of(desc)
    return descriptor_of(kind, whole, parts, count, axis)


def with_count(desc: Any, count: int) -> Any:
    """Returns the descriptor with another OutputCount (of a split) or InputCount (of a join)."""
    return descriptor_of(*members_of(desc)._replace(part_count=count))


def with_whole(desc: Any, tensor: TensorLike) -> Any:
    """Returns the descriptor with another input (of a split) or output (of a join)."""
    kind, _, parts, count, axis = members_of(desc)
    return descriptor_of(kind, tensor, parts, count, axis)
