"""What Split and Join have in common: a whole tensor, and parts of it along an axis.

Members holds a descriptor's members by role, including null pointers and faults. Geometry requires a descriptor without
null pointers; it does not depend on whether the parts are written or read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from dmlsplit.descriptors.descs import (
    BufferTensorDesc,
    JoinOperatorDesc,
    OperatorDesc,
    SplitOperatorDesc,
    TensorDesc,
    TensorLike,
)
from dmlsplit.descriptors.enums import OperatorType, TensorDataType, TensorFlags
from dmlsplit.descriptors.layout import ELEMENT_BITS, extent, packed_strides
from dmlsplit.descriptors.location import Step, steps_text

T = TypeVar("T")
Side: TypeAlias = Literal["input", "output"]


class Roles(NamedTuple):
    """Names the struct members that hold the whole tensor, its parts and their number."""

    whole: str
    parts: str
    part_count: str
    whole_side: Side
    part_side: Side

    def sides(self, whole: T, parts: T) -> tuple[T, T]:
        """Returns (whole, parts) for a Split and (parts, whole) for a Join. So it turns (whole, parts) into (inputs,
        outputs), and (inputs, outputs) into (whole, parts)."""
        return (whole, parts) if self.whole_side == "input" else (parts, whole)

    def in_order(self, whole: T, parts: Sequence[T]) -> list[T]:
        """Returns the value of the whole tensor and the values of the parts in one list, inputs before outputs."""
        return [whole, *parts] if self.whole_side == "input" else [*parts, whole]

    def whole_and_parts(self, tensors: Sequence[T]) -> tuple[T, Sequence[T]]:
        """Returns the value of the whole tensor and the values of the parts from one list, inputs before outputs; the
        inverse of `in_order`."""
        return (tensors[0], tensors[1:]) if self.whole_side == "input" else (tensors[-1], tensors[:-1])


ROLES: Final[Mapping[OperatorType, Roles]] = {
    OperatorType.SPLIT: Roles("InputTensor", "OutputTensors", "OutputCount", "input", "output"),
    OperatorType.JOIN: Roles("OutputTensor", "InputTensors", "InputCount", "output", "input"),
}


class Members(NamedTuple):
    """The members of a descriptor, valid or not."""

    kind: OperatorType
    whole: TensorDesc | None
    array: tuple[TensorDesc | None, ...] | None
    """All entries of the array; `part_count` is the number of entries that belong to the operator."""
    part_count: int
    axis: int

    @property
    def roles(self) -> Roles:
        return ROLES[self.kind]

    @property
    def parts(self) -> tuple[TensorDesc | None, ...]:
        """The first `part_count` tensors of the array; fewer if the array is shorter."""
        return (self.array or ())[: self.part_count]


def members_of(desc: OperatorDesc) -> Members:
    """Returns the members of a Split or Join by role. Raises TypeError for anything else."""
    if isinstance(desc, SplitOperatorDesc):
        return Members(OperatorType.SPLIT, desc.input_tensor, desc.output_tensors, desc.output_count, desc.axis)
    if isinstance(desc, JoinOperatorDesc):
        return Members(OperatorType.JOIN, desc.output_tensor, desc.input_tensors, desc.input_count, desc.axis)
    raise TypeError(f"{type(desc).__name__} is not a SplitOperatorDesc or JoinOperatorDesc")


def descriptor_of(
    kind: OperatorType, whole: TensorLike, array: Iterable[TensorLike] | None, part_count: int | None, axis: int
) -> OperatorDesc:
    """Returns the Split or Join descriptor with these members; a count of None is the length of the array."""
    if kind is OperatorType.SPLIT:
        return SplitOperatorDesc(whole, array, axis, part_count)
    return JoinOperatorDesc(array, whole, axis, part_count)


Dimensions: TypeAlias = tuple[int, ...]


def dimensions_read(desc: BufferTensorDesc) -> tuple[Dimensions | None, Dimensions | None]:
    """Returns the first DimensionCount entries of a tensor's sizes and of its strides, each None for a null pointer."""
    count = desc.dimension_count
    return (None if desc.sizes is None else desc.sizes[:count], None if desc.strides is None else desc.strides[:count])


class TensorLayout(NamedTuple):
    """A tensor of an operator. Sizes and strides count elements and have DimensionCount entries; `total` is in
    bytes."""

    steps: tuple[Step, ...]
    """The location in the descriptor: ("OutputTensors", 1)."""
    is_output: bool
    data_type: TensorDataType | int
    sizes: Dimensions
    strides: Dimensions | None
    """None: packed."""
    total: int
    """TotalTensorSizeInBytes; 0 if it exceeds a UINT64."""
    flags: TensorFlags
    alignment: int
    """GuaranteedBaseOffsetAlignment."""

    @classmethod
    def of(cls, steps: tuple[Step, ...], desc: BufferTensorDesc, is_output: bool) -> TensorLayout:
        """Returns the layout of a tensor, whose sizes must not be null; `steps` lead to it from the operator."""
        sizes, strides = dimensions_read(desc)
        assert sizes is not None
        total, alignment = desc.total_tensor_size_in_bytes or 0, desc.guaranteed_base_offset_alignment
        return cls(steps, is_output, desc.data_type, sizes, strides, total, desc.flags, alignment)

    @property
    def name(self) -> str:
        """The tensor's name in messages, such as "OutputTensors[1]"."""
        return steps_text(self.steps)

    @property
    def bits(self) -> int:
        """The size of an element in bits."""
        return ELEMENT_BITS[self.data_type]

    @property
    def is_empty(self) -> bool:
        return 0 in self.sizes

    @property
    def element_strides(self) -> Dimensions:
        """The strides in elements; those of a packed tensor if none are given."""
        return packed_strides(self.sizes) if self.strides is None else self.strides

    @property
    def byte_strides(self) -> Dimensions:
        """The strides in bytes; the element size must be whole bytes.

        The stride of a dimension of size 1 is never used: it is the packed stride, which compares equal to numpy's.
        """
        size = self.bits // 8
        strides = packed = packed_strides(self.sizes)
        if self.strides is not None:
            strides = tuple([p if n == 1 else s for n, s, p in zip(self.sizes, self.strides, packed, strict=True)])
        return tuple([stride * size for stride in strides])

    @property
    def extent(self) -> int:
        """The distance in elements from the lowest address to the highest, both included."""
        return extent(self.sizes, self.strides)


class Geometry(NamedTuple):
    """An operator without null pointers: the whole tensor and its parts along `axis`, as many as the count says."""

    kind: OperatorType
    axis: int
    whole: TensorLayout
    parts: tuple[TensorLayout, ...]

    @classmethod
    def of(cls, desc: OperatorDesc) -> Geometry:
        """Returns the geometry of a descriptor in which no pointer to a tensor or to sizes is null."""
        members = members_of(desc)
        roles = members.roles
        whole = TensorLayout.of((roles.whole,), _present(members.whole), roles.whole_side == "output")
        written = roles.part_side == "output"
        parts = [TensorLayout.of((roles.parts, i), _present(part), written) for i, part in enumerate(members.parts)]
        return cls(members.kind, members.axis, whole, tuple(parts))

    @property
    def roles(self) -> Roles:
        return ROLES[self.kind]

    @property
    def inputs(self) -> tuple[TensorLayout, ...]:
        return self.roles.sides((self.whole,), self.parts)[0]

    @property
    def outputs(self) -> tuple[TensorLayout, ...]:
        return self.roles.sides((self.whole,), self.parts)[1]

    @property
    def tensors(self) -> list[TensorLayout]:
        """The layouts of all tensors, inputs before outputs."""
        return self.roles.in_order(self.whole, self.parts)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The size of each part along the axis, in order."""
        return tuple([part.sizes[self.axis] for part in self.parts])

    def of_part(self, i: int) -> Geometry:
        """Returns the geometry of copying only part number `i` (from 0): the whole has the part's sizes and keeps its
        own strides."""
        whole, part = self.whole, self.parts[i]
        copied = whole._replace(sizes=part.sizes, strides=whole.element_strides)
        return Geometry(self.kind, self.axis, copied, (part,))


def _present(tensor: TensorDesc | None) -> BufferTensorDesc:
    assert tensor is not None
    assert tensor.desc is not None
    return tensor.desc
