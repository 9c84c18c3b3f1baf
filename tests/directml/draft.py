"""Descriptors that can still be changed: what the generator and the shrinker work on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dmlsplit import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.descriptors.enums import UINT64_MAX, UINT_MAX, TensorDataType, TensorType
from dmlsplit.descriptors.layout import ELEMENT_BITS, extent

MOST_DIMENSIONS = 8
LONGEST_ARRAY = 16
"""Of sizes or strides, where DimensionCount exceeds what any build takes."""


@dataclass
class Tensor:
    """A DML_TENSOR_DESC with its DML_BUFFER_TENSOR_DESC; None is a null pointer, except where it is said."""

    sizes: list[int] | None
    strides: list[int] | None = None
    data_type: int = TensorDataType.FLOAT32
    flags: int = 0
    total: int | None = None
    """None: the implied size, modulo 2^64."""
    alignment: int = 0
    dimension_count: int | None = None
    """None: the length of sizes."""
    type: int = TensorType.BUFFER
    null_desc: bool = False

    @classmethod
    def of(cls, tensor: TensorDesc) -> Tensor:
        desc = tensor.desc
        if desc is None:
            return cls(None, type=tensor.type, null_desc=True)
        return cls(
            None if desc.sizes is None else list(desc.sizes),
            None if desc.strides is None else list(desc.strides),
            desc.data_type,
            desc.flags,
            desc.total_tensor_size_in_bytes,
            desc.guaranteed_base_offset_alignment,
            None if desc.sizes is not None and desc.dimension_count == len(desc.sizes) else desc.dimension_count,
            tensor.type,
        )

    @property
    def bits(self) -> int:
        """Bits per element; of a data type without a size, those of FLOAT32."""
        return ELEMENT_BITS.get(self.data_type, 32)

    @property
    def extent(self) -> int:
        """Elements from the first to the last, for sizes and strides of any content."""
        sizes = self.sizes or [1]
        strides = self.strides
        if strides is not None:
            length = min(len(sizes), len(strides))
            sizes, strides = sizes[:length], strides[:length]
        return max(0, extent(sizes, strides))

    @property
    def implied_size(self) -> int:
        """Bytes, rounded up to 4; not limited to 64 bits."""
        return (self.extent * self.bits + 31) // 32 * 4

    def copy(self) -> Tensor:
        return replace(
            self,
            sizes=None if self.sizes is None else list(self.sizes),
            strides=None if self.strides is None else list(self.strides),
        )

    def build(self) -> TensorDesc:
        if self.null_desc:
            return TensorDesc(self.type, None)
        total = self.implied_size if self.total is None else self.total
        return TensorDesc(
            self.type,
            BufferTensorDesc(
                self.data_type,
                self.sizes,
                strides=self.strides,
                flags=self.flags,
                total_tensor_size_in_bytes=total & UINT64_MAX,
                guaranteed_base_offset_alignment=self.alignment,
                dimension_count=self.dimension_count,
            ),
        )


@dataclass
class Operator:
    """A Split (`whole` is its input) or Join (`whole` is its output)."""

    is_split: bool
    whole: Tensor | None
    parts: list[Tensor] | None
    axis: int
    count: int | None = None
    """None: the length of parts."""
    note: str = field(default="", compare=False)
    """How the generator made it."""

    @classmethod
    def of(cls, desc: OperatorDesc) -> Operator:
        is_split = isinstance(desc, SplitOperatorDesc)
        if isinstance(desc, SplitOperatorDesc):
            whole, parts, count = desc.input_tensor, desc.output_tensors, desc.output_count
        else:
            whole, parts, count = desc.output_tensor, desc.input_tensors, desc.input_count
        return cls(
            is_split,
            None if whole is None else Tensor.of(whole),
            None if parts is None else [Tensor.of(part) for part in parts if part is not None],
            desc.axis,
            None if parts is not None and count == len(parts) else count,
        )

    @property
    def tensors(self) -> list[Tensor]:
        return ([] if self.whole is None else [self.whole]) + list(self.parts or ())

    def is_output(self, tensor: Tensor) -> bool:
        return (tensor is self.whole) != self.is_split

    def copy(self) -> Operator:
        return replace(
            self,
            whole=None if self.whole is None else self.whole.copy(),
            parts=None if self.parts is None else [part.copy() for part in self.parts],
        )

    def build(self) -> OperatorDesc:
        whole = None if self.whole is None else self.whole.build()
        parts = None if self.parts is None else [part.build() for part in self.parts]
        if self.is_split:
            return SplitOperatorDesc(whole, parts, self.axis, self.count)
        return JoinOperatorDesc(parts, whole, self.axis, self.count)


def make_pointer_safe(operator: Operator) -> None:
    """Changes what could have the library read past an array that the caller says is longer.

    * A count larger than the array of tensors.
    * Sizes or Strides shorter than DimensionCount. A DimensionCount that no array can follow is left to Splits, where
      every build refuses it before it reads: Joins read first.

    Values are brought into the range of their members, so that every draft can be built.
    """
    if operator.parts is not None and operator.count is not None:
        operator.count = min(operator.count, len(operator.parts))
    for tensor in operator.tensors:
        if tensor.dimension_count is not None and tensor.dimension_count > LONGEST_ARRAY and not operator.is_split:
            tensor.dimension_count = LONGEST_ARRAY
        count = len(tensor.sizes or ()) if tensor.dimension_count is None else tensor.dimension_count
        for numbers in (tensor.sizes, tensor.strides):
            if numbers is not None:
                numbers[:] = [_clamped(number, UINT_MAX) for number in numbers]
                if count <= LONGEST_ARRAY:
                    numbers += [1] * (count - len(numbers))
        if tensor.total is not None:
            tensor.total = _clamped(tensor.total, UINT64_MAX)
        tensor.alignment = _clamped(tensor.alignment, UINT_MAX)
    operator.axis = _clamped(operator.axis, UINT_MAX)


def _clamped(number: int, most: int) -> int:
    return min(max(0, number), most)


def part_tensors(desc: OperatorDesc) -> tuple[TensorDesc | None, ...] | None:
    """OutputTensors of a Split, InputTensors of a Join."""
    return desc.output_tensors if isinstance(desc, SplitOperatorDesc) else desc.input_tensors
