"""DirectML's operator descriptors as frozen dataclasses.

Building one never judges it: it may have null pointers, unknown enum values, a size of 0 or a count that differs from
its array, which `validate` then reports. Only values that the member's C type cannot hold are refused. Paths and
messages use DirectML.h's names.

`dataclasses.replace` keeps every member that is not named, as an assignment to one member of the C struct would: pass
`total_tensor_size_in_bytes=None, dimension_count=None` along with new sizes to recompute the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from dmlsplit.descriptors import notebook
from dmlsplit.descriptors.enums import UINT64_MAX, UINT_MAX, TensorDataType, TensorFlags, TensorType
from dmlsplit.descriptors.layout import ELEMENT_BITS, implied_size, is_packed
from dmlsplit.system.errors import DescriptorError
from dmlsplit.system.integers import integer, integers
from dmlsplit.system.pickling import pickled_by_slots

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DATA_TYPE_OF_NUMPY: Final[dict[tuple[str, int], TensorDataType]] = {
    (t.name[0].lower(), ELEMENT_BITS[t] // 8): t for t in TensorDataType if ELEMENT_BITS.get(t, 0) >= 8
}
"""Maps numpy's (dtype.kind, dtype.itemsize), in native byte order, to DML_TENSOR_DATA_TYPE."""


_DATA_TYPES = {int(m): m for m in TensorDataType}
_TENSOR_TYPES = {int(m): m for m in TensorType}
_FLAGS = {0: TensorFlags.NONE, 1: TensorFlags.OWNED_BY_DML}


def _uint(value: object, path: str, bits: int = 32) -> int:
    if type(value) is int and 0 <= value <= UINT_MAX:
        return value
    number = integer(value, path)
    if not 0 <= number < 1 << bits:
        kind = "UINT" if bits == 32 else f"UINT{bits}"
        raise DescriptorError(f"{path}: {number} does not fit into a {kind} (0 to {(1 << bits) - 1})")
    return number


def _data_type(value: object) -> TensorDataType | int:
    """Converts the number of a known data type to a TensorDataType; returns other integers unchanged. Raises TypeError
    for a value that is not an integer, DescriptorError for one that does not fit a UINT."""
    if type(value) is TensorDataType:
        return value
    try:
        number = _uint(value, "DataType")
    except TypeError as error:
        name = str(value).strip().upper().removeprefix("DML_TENSOR_DATA_TYPE_") if isinstance(value, str) else ""
        hint = name if name in TensorDataType.__members__ else "FLOAT32"
        raise TypeError(f"{error}; a data type is a TensorDataType: TensorDataType.{hint}") from None
    return _DATA_TYPES.get(number, number)


def _flags(value: object) -> TensorFlags:
    number = _uint(value, "Flags")
    return _FLAGS[number] if number in _FLAGS else TensorFlags(number)


def _uints(values: Iterable[int] | None, path: str) -> tuple[int, ...] | None:
    if values is None:
        return None
    numbers = integers(values, path)
    if numbers and (min(numbers) < 0 or max(numbers) > UINT_MAX):
        for i, number in enumerate(numbers):
            _uint(number, f"{path}[{i}]")
    return numbers


@pickled_by_slots
@dataclass(frozen=True, slots=True, init=False)
class BufferTensorDesc:
    """DML_BUFFER_TENSOR_DESC. Sizes and strides count elements; `strides` None is a null pointer: packed.

    `sizes` None is a null pointer. `dimension_count` defaults to the length of `sizes`. The total size defaults to the
    exact implied size in bytes: 0 if that is undefined, None (unknown) if it exceeds a UINT64.

    Raises DescriptorError if a value does not fit its C type, TypeError if it is not an integer.
    """

    data_type: TensorDataType | int
    sizes: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    flags: TensorFlags
    total_tensor_size_in_bytes: int | None
    guaranteed_base_offset_alignment: int
    dimension_count: int

    def __init__(
        self,
        data_type: TensorDataType | int,
        sizes: Iterable[int] | None,
        *,
        strides: Iterable[int] | None = None,
        flags: TensorFlags | int = TensorFlags.NONE,
        total_tensor_size_in_bytes: int | None = None,
        guaranteed_base_offset_alignment: int = 0,
        dimension_count: int | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "data_type", _data_type(data_type))
        put(self, "sizes", _uints(sizes, "Sizes"))
        put(self, "strides", _uints(strides, "Strides"))
        put(self, "flags", flags if flags is TensorFlags.NONE else _flags(flags))
        if dimension_count is None:
            dimension_count = len(self.sizes) if self.sizes is not None else 0
        put(self, "dimension_count", _uint(dimension_count, "DimensionCount"))
        total = total_tensor_size_in_bytes
        total = self._implied_total() if total is None else _uint(total, "TotalTensorSizeInBytes", 64)
        put(self, "total_tensor_size_in_bytes", total)
        alignment = _uint(guaranteed_base_offset_alignment, "GuaranteedBaseOffsetAlignment")
        put(self, "guaranteed_base_offset_alignment", alignment)

    def _implied_total(self) -> int | None:
        count = self.dimension_count
        if self.sizes is None or len(self.sizes) < count:
            return 0
        total = implied_size(self.data_type, self.sizes[:count], self.strides[:count] if self.strides else self.strides)
        if total is None:
            return 0
        return total if total <= UINT64_MAX else None

    @classmethod
    def from_array(cls, array: npt.NDArray[np.generic]) -> BufferTensorDesc:
        """Returns the descriptor of an ndarray, or of an object that exports one (DLPack, `__array_interface__`): its
        dtype, shape and strides (None if the array is packed).

        Raises DescriptorError for arrays that DirectML cannot describe: a dtype without a DirectML type (bool and
        bfloat16 among them: view them as an integer type of the same width), byte-swapped data, negative strides,
        strides that are not multiples of the element size. Raises TypeError for anything but an array.
        """
        import numpy as np

        from dmlsplit.system.foreign import as_array, is_foreign

        if is_foreign(array):
            array = as_array(array)
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{type(array).__name__} is not an ndarray")
        if isinstance(array, np.ma.MaskedArray):
            raise DescriptorError("Desc: a masked array has no descriptor; pass its data, or fill it first")
        dtype = array.dtype
        data_type = DATA_TYPE_OF_NUMPY.get((dtype.kind, dtype.itemsize))
        if data_type is None:
            raise DescriptorError(f"DataType: DirectML has no tensor data type for dtype {dtype}")
        if not dtype.isnative:
            raise DescriptorError(f"DataType: dtype {dtype.str} is byte-swapped; DirectML reads native byte order")
        strides = []
        for i, (size, step) in enumerate(zip(array.shape, array.strides, strict=True)):
            if size > 1 and (step < 0 or step % dtype.itemsize):
                raise DescriptorError(
                    f"Strides[{i}]: {step} bytes is not expressible; DirectML's strides are unsigned counts of "
                    f"elements ({dtype.itemsize} bytes each)"
                )
            strides.append(step // dtype.itemsize if size > 1 else 0)
        packed = 0 in array.shape or is_packed(array.shape, strides)
        return cls(data_type, array.shape, strides=None if packed else strides)


@pickled_by_slots
@dataclass(frozen=True, slots=True, init=False)
class TensorDesc:
    """DML_TENSOR_DESC: a type and a pointer to the descriptor of that type; `desc` None is a null pointer.

    The members of a BufferTensorDesc can be read through it; this raises AttributeError if `desc` is None.
    """

    type: TensorType | int
    desc: BufferTensorDesc | None

    def __init__(self, type: TensorType | int, desc: BufferTensorDesc | None) -> None:
        if desc is not None and not isinstance(desc, BufferTensorDesc):
            raise TypeError(f"Desc: {desc!r} is not a BufferTensorDesc")
        if type is not TensorType.BUFFER:
            number = _uint(type, "Type")
            type = _TENSOR_TYPES.get(number, number)
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "desc", desc)

    @property
    def _buffer(self) -> BufferTensorDesc:
        if self.desc is None:
            raise AttributeError("Desc is null: the tensor has no members")
        return self.desc

    @property
    def data_type(self) -> TensorDataType | int:
        return self._buffer.data_type

    @property
    def sizes(self) -> tuple[int, ...] | None:
        return self._buffer.sizes

    @property
    def strides(self) -> tuple[int, ...] | None:
        return self._buffer.strides

    @property
    def flags(self) -> TensorFlags:
        return self._buffer.flags

    @property
    def total_tensor_size_in_bytes(self) -> int | None:
        return self._buffer.total_tensor_size_in_bytes

    @property
    def guaranteed_base_offset_alignment(self) -> int:
        return self._buffer.guaranteed_base_offset_alignment

    @property
    def dimension_count(self) -> int:
        return self._buffer.dimension_count


TensorLike: TypeAlias = TensorDesc | BufferTensorDesc | None


def _tensor(value: TensorLike, path: str) -> TensorDesc | None:
    if isinstance(value, BufferTensorDesc):
        return TensorDesc(TensorType.BUFFER, value)
    if value is None or isinstance(value, TensorDesc):
        return value
    raise TypeError(f"{path}: {value!r} is not a TensorDesc, a BufferTensorDesc or None")


def _tensors(values: Iterable[TensorLike] | None, path: str) -> tuple[TensorDesc | None, ...] | None:
    if values is None:
        return None
    try:
        tensors = list(values)
    except TypeError:
        raise TypeError(f"{path}: {values!r} is not a sequence of tensors") from None
    return tuple(
        [
            TensorDesc(TensorType.BUFFER, tensor)
            if type(tensor) is BufferTensorDesc
            else _tensor(tensor, f"{path}[{i}]")
            for i, tensor in enumerate(tensors)
        ]
    )


@dataclass(frozen=True, slots=True, init=False)
class SplitOperatorDesc:
    """DML_SPLIT_OPERATOR_DESC: one input cut along `axis` into outputs, in order.

    `input_tensor` None and `output_tensors` None are null pointers; `output_count` defaults to the length of the array.
    A BufferTensorDesc is wrapped in a TensorDesc.
    """

    input_tensor: TensorDesc | None
    output_tensors: tuple[TensorDesc | None, ...] | None
    axis: int
    output_count: int

    def __init__(
        self,
        input_tensor: TensorLike,
        output_tensors: Iterable[TensorLike] | None,
        axis: int,
        output_count: int | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "input_tensor", _tensor(input_tensor, "InputTensor"))
        put(self, "output_tensors", _tensors(output_tensors, "OutputTensors"))
        put(self, "axis", _uint(axis, "Axis"))
        if output_count is None:
            output_count = len(self.output_tensors or ())
        put(self, "output_count", _uint(output_count, "OutputCount"))

    @classmethod
    def from_lengths(
        cls, input_tensor: TensorDesc | BufferTensorDesc, axis: int, lengths: Sequence[int]
    ) -> SplitOperatorDesc:
        """Returns the descriptor of a split of `input_tensor` into packed outputs of the given lengths along `axis`.

        A negative axis counts from the end. Flags and alignment are not inherited. Lengths that do not add up to the
        input's size are allowed here; `validate` reports them.
        """
        axis, parts = _packed_parts(input_tensor, axis, lengths, "OutputTensors")
        return cls(input_tensor, parts, axis)

    def _repr_svg_(self) -> str | None:
        return notebook.picture(self)


@dataclass(frozen=True, slots=True, init=False)
class JoinOperatorDesc:
    """DML_JOIN_OPERATOR_DESC: concatenates inputs along `axis` into one output; the inverse of a split."""

    input_tensors: tuple[TensorDesc | None, ...] | None
    output_tensor: TensorDesc | None
    axis: int
    input_count: int

    def __init__(
        self,
        input_tensors: Iterable[TensorLike] | None,
        output_tensor: TensorLike,
        axis: int,
        input_count: int | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "input_tensors", _tensors(input_tensors, "InputTensors"))
        put(self, "output_tensor", _tensor(output_tensor, "OutputTensor"))
        put(self, "axis", _uint(axis, "Axis"))
        if input_count is None:
            input_count = len(self.input_tensors or ())
        put(self, "input_count", _uint(input_count, "InputCount"))

    @classmethod
    def from_lengths(
        cls, output_tensor: TensorDesc | BufferTensorDesc, axis: int, lengths: Sequence[int]
    ) -> JoinOperatorDesc:
        """Returns the descriptor of a join of packed inputs of the given lengths along `axis` into `output_tensor`.

        As SplitOperatorDesc.from_lengths, with the roles exchanged.
        """
        axis, parts = _packed_parts(output_tensor, axis, lengths, "InputTensors")
        return cls(parts, output_tensor, axis)

    def _repr_svg_(self) -> str | None:
        return notebook.picture(self)


OperatorDesc: TypeAlias = SplitOperatorDesc | JoinOperatorDesc


def _packed_parts(
    whole: TensorDesc | BufferTensorDesc, axis: int, lengths: Sequence[int], path: str
) -> tuple[int, list[BufferTensorDesc]]:
    """Returns the axis, counted from 0, and the packed descriptors of the parts. Raises TypeError or DescriptorError,
    whose message names the member under `path`, for a wrong argument."""
    if not isinstance(whole, (TensorDesc, BufferTensorDesc)):
        raise TypeError(f"{whole!r} is not a TensorDesc or BufferTensorDesc")
    if whole.sizes is None:
        raise DescriptorError("Sizes: null; there is nothing to cut")
    sizes = whole.sizes[: whole.dimension_count]
    axis = integer(axis, "Axis")
    if axis < 0:
        if axis < -len(sizes):
            raise DescriptorError(f"Axis: {axis} is out of range for {len(sizes)} dimensions")
        axis += len(sizes)
    pieces = integers(lengths, "lengths")
    for i, length in enumerate(pieces):
        _uint(length, f"{path}[{i}].Sizes[{axis}]")
    # An axis out of range leaves the sizes alone: the axis is then the fault to be reported.
    before, after = sizes[:axis], sizes[axis + 1 :]
    parts = {
        n: BufferTensorDesc(whole.data_type, (*before, n, *after) if axis < len(sizes) else sizes) for n in set(pieces)
    }
    return axis, [parts[length] for length in pieces]
