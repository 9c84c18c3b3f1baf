"""Binds buffers to tensors: an ndarray that is the tensor itself, or raw memory laid out by the descriptor.

Nothing here reads or writes an element; all checks are done before the first element is copied.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np

from dmlsplit.descriptors.descs import DATA_TYPE_OF_NUMPY
from dmlsplit.descriptors.geometry import TensorLayout
from dmlsplit.descriptors.layout import extent, is_packed
from dmlsplit.native import core
from dmlsplit.native.buffer import Buffer
from dmlsplit.system.errors import BindingError
from dmlsplit.system.foreign import as_array, holds_objects, is_foreign

NUMPY_DTYPE: Final[dict[int, np.dtype[Any]]] = {
    data_type: np.dtype(f"{kind}{size}") for (kind, size), data_type in DATA_TYPE_OF_NUMPY.items()
}
"""DML_TENSOR_DATA_TYPE -> dtype, native byte order; without the 4-bit types, which have no dtype."""

FEW_OPERANDS: Final = 16
"""Up to this many operands whose bytes interleave irregularly are compared pair by pair."""
SHARING_WORK_LIMIT: Final = 1_000_000
"""Candidates after which numpy's exact search for a shared byte gives up."""


class BoundTensor:
    """A tensor of a compiled operator as numpy sees it; strides are bytes."""

    __slots__ = ("dtype", "is_output", "packed", "path", "sizes", "strides", "total")

    def __init__(self, layout: TensorLayout) -> None:
        self.path = layout.name
        self.is_output = layout.is_output
        self.sizes = layout.sizes
        self.dtype = NUMPY_DTYPE[layout.data_type]
        self.packed = is_packed(layout.sizes, layout.strides)
        self.strides = layout.byte_strides
        self.total = layout.total

    @property
    def extent(self) -> int:
        """The distance in elements from the lowest address to the highest, both included."""
        return extent(self.sizes, [stride // self.dtype.itemsize for stride in self.strides])


class BoundMemory(NamedTuple):
    """Memory bound to a tensor: the address of the first element, its strides, and the object that keeps it alive."""

    pointer: Any
    strides: tuple[int, ...]
    owner: object


def bind(tensor: BoundTensor, value: object) -> BoundMemory:
    """Returns the memory of a tensor for an ndarray or raw memory. Raises BindingError, which names the tensor and both
    sides of a mismatch, if it does not fit.

    An ndarray of the tensor's shape and dtype binds by its own strides; so does a tensor of another library, exported
    by DLPack or __array_interface__. Any other contiguous bytes-like object of at least the tensor's total size,
    including a 1-D uint8 array, is raw memory: the descriptor's strides say where each element lies. A 1-D uint8 array
    of the tensor's shape that is large enough for raw memory is refused if the two readings name different bytes.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise BindingError(f"{tensor.path}: {_array_fault(value, tensor.dtype)}")
    if is_foreign(value) and not isinstance(value, Buffer):
        value = _foreign_array(tensor, value)
    if not isinstance(value, np.ndarray):
        return _bind_raw(tensor, value.array if isinstance(value, Buffer) else value)
    value = np.asarray(value)  # a subclass may override what it reports about its memory
    is_bytes = value.ndim == 1 and value.dtype == np.uint8
    if value.shape != tensor.sizes:
        if is_bytes:
            return _bind_raw(tensor, value)
        raise BindingError(
            f"{tensor.path}: an array of shape {value.shape} was given, but Sizes are {tensor.sizes}; "
            "raw memory is a 1-D uint8 array or another bytes-like object"
        )
    if is_bytes and value.flags.c_contiguous and value.nbytes >= tensor.total:
        # The array holds one byte per element. Packed elements of one byte have the same addresses in both readings, so
        # the readings agree; any other tensor that needs so few bytes is a broadcast one, of a single element.
        if tensor.strides == (0,) and value.size > 0:
            raise BindingError(
                f"{tensor.path}: a uint8 array of shape {value.shape} may be the tensor's elements, or raw memory of "
                "which Strides {0} read the first element only; pass raw memory as a memoryview or a dml.Buffer, "
                f"elements as numpy.broadcast_to(element, {tensor.sizes}), of dtype {tensor.dtype}"
            )
        if value.dtype != tensor.dtype:
            return _bind_raw(tensor, value)
    return _bind_array(tensor, value)


def _foreign_array(tensor: BoundTensor, value: object) -> np.ndarray:
    try:
        array = as_array(value)
    except TypeError as error:
        raise BindingError(f"{tensor.path}: {error}") from None
    # Elements without a numpy type are copied as bits.
    same_width = array.dtype.kind == "V" and array.itemsize == tensor.dtype.itemsize
    return array.view(tensor.dtype) if same_width else array


def _bind_array(tensor: BoundTensor, array: np.ndarray) -> BoundMemory:
    if array.dtype != tensor.dtype:
        raise BindingError(f"{tensor.path}: {_array_fault(array, tensor.dtype)}")
    strides = array.strides
    if strides != tensor.strides:
        # The stride of a size-1 dimension is never used, and a tensor without elements uses none.
        free = 0 in tensor.sizes
        strides = tuple(
            own if free or n == 1 else s for n, s, own in zip(tensor.sizes, strides, tensor.strides, strict=True)
        )
        if tensor.is_output and strides != tensor.strides:
            raise BindingError(
                f"{tensor.path}: the array's strides are {array.strides} bytes, the descriptor's {tensor.strides}; "
                "an output must have the layout of the descriptor"
            )
    if tensor.is_output and not array.flags.writeable:
        raise BindingError(f"{tensor.path}: the array is read-only")
    if array.flags.c_contiguous:
        return BoundMemory(core.buffer(array, tensor.is_output), strides, array)
    return BoundMemory(core.address(array.__array_interface__["data"][0]), strides, array)


def _array_fault(array: np.ndarray, expected: np.dtype[Any]) -> str:
    dtype = array.dtype
    if isinstance(array, np.ma.MaskedArray):
        return "a masked array was given; pass its data, or fill it first"
    if not dtype.isnative and dtype.newbyteorder("=") == expected:
        return f"the array is byte-swapped ({dtype.str}); {expected} in native byte order is expected"
    return f"the array has dtype {dtype}, {expected} is expected"


def _bind_raw(tensor: BoundTensor, value: object) -> BoundMemory:
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise BindingError(f"{tensor.path}: {kind} is neither an ndarray nor a bytes-like object") from None
    if not view.c_contiguous:
        raise BindingError(f"{tensor.path}: raw memory must be contiguous")
    if holds_objects(view):
        raise BindingError(f"{tensor.path}: the memory has references to Python objects")
    if view.nbytes < tensor.total:
        raise BindingError(
            f"{tensor.path}: {view.nbytes} bytes of raw memory were given, but TotalTensorSizeInBytes is {tensor.total}"
        )
    if tensor.is_output and view.readonly:
        raise BindingError(f"{tensor.path}: the memory is read-only")
    return BoundMemory(core.buffer(view, tensor.is_output), tensor.strides, view)


class _Operand(NamedTuple):
    """The bytes that a bound tensor touches: an element at `begin`, repeated by loops; all addresses are below
    `end`."""

    begin: int
    end: int
    loops: tuple[tuple[int, int], ...]
    """(stride, size), the largest stride first; strides are above 0, sizes above 1."""
    tensor: BoundTensor
    binding: BoundMemory


def check_apart(operands: Iterable[tuple[BoundTensor, BoundMemory]]) -> None:
    """Raises BindingError if a written tensor shares a byte with another one.

    The test is exact even if the byte ranges intersect: two columns of one array share no byte.
    """
    _check_operands([_operand(*pair) for pair in operands if 0 not in pair[0].sizes])


def _operand(tensor: BoundTensor, binding: BoundMemory) -> _Operand:
    spans = [(n - 1) * s for n, s in zip(tensor.sizes, binding.strides, strict=True)]
    address = core.address_of(binding.pointer)
    end = address + sum([span for span in spans if span > 0]) + tensor.dtype.itemsize
    loops = [(abs(s), n) for n, s in zip(tensor.sizes, binding.strides, strict=True) if n > 1 and s != 0]
    loops.sort(reverse=True)
    return _Operand(address + sum([span for span in spans if span < 0]), end, tuple(loops), tensor, binding)


def _check_operands(operands: list[_Operand]) -> None:
    for group in _intersecting(operands):
        if len(group) == 1 or not any(operand.tensor.is_output for operand in group):
            continue
        simpler = _without_common_loop(group)
        if simpler is not None:
            _check_operands(simpler)
        elif len(group) <= FEW_OPERANDS:
            for a, b in combinations(group, 2):
                if a.tensor.is_output or b.tensor.is_output:
                    _check_pair(a.tensor, a.binding, b.tensor, b.binding)
        else:
            _check_painted(group)


def _intersecting(operands: list[_Operand]) -> list[list[_Operand]]:
    """Returns the operands, sorted by address, in as many groups as possible such that byte ranges of operands in
    different groups do not intersect; [] if there are no operands."""
    groups: list[list[_Operand]] = []
    end = -1
    for operand in sorted(operands, key=lambda operand: operand.begin):
        if operand.begin >= end:
            groups.append([])
        groups[-1].append(operand)
        end = max(end, operand.end)
    return groups


def _without_common_loop(group: list[_Operand]) -> list[_Operand] | None:
    """Returns the operands without the loop of the largest stride; None if that would make others share bytes.

    If all operands, without that loop, fit into one period of its stride, iterations of the loop never share bytes and
    every iteration repeats the first. Columns of a matrix reduce to neighbouring elements.
    """
    stride = max([operand.loops[0][0] for operand in group if operand.loops], default=0)
    first_turns = []
    for operand in group:
        begin, end, loops, tensor, binding = operand
        if loops and loops[0][0] == stride:
            operand = _Operand(begin, end - stride * (loops[0][1] - 1), loops[1:], tensor, binding)
        first_turns.append(operand)
    reach = max([operand.end for operand in first_turns]) - min([operand.begin for operand in first_turns])
    return first_turns if reach <= stride else None


def _check_painted(group: list[_Operand]) -> None:
    """Marks each operand's bytes with its number on a canvas. Raises BindingError if bytes already have another number
    and one of the two is written."""
    group.sort(key=lambda operand: operand.tensor.is_output)  # tensors that are only read may share bytes
    origin = min([operand.begin for operand in group])
    numbers = {operand.tensor.dtype.itemsize for operand in group}
    numbers.update(operand.begin - origin for operand in group)
    numbers.update(stride for operand in group for stride, _ in operand.loops)
    unit = math.gcd(*numbers)
    try:
        canvas = np.zeros((max([operand.end for operand in group]) - origin) // unit, np.uint32)
    except MemoryError:
        raise _fault_of_pair(group[0].tensor, group[-1].tensor, _UNDECIDED) from None
    for i, (begin, _, loops, tensor, _) in enumerate(group):
        shape = (*[size for _, size in loops], tensor.dtype.itemsize // unit)
        strides = (*[stride // unit * 4 for stride, _ in loops], 4)
        cells = np.ndarray(shape, np.uint32, canvas, (begin - origin) // unit * 4, strides)
        if tensor.is_output and (other := int(cells.max())) > 0:
            raise _fault_of_pair(tensor, group[other - 1].tensor, _SHARED)
        cells[...] = i + 1


def _check_pair(a: BoundTensor, a_binding: BoundMemory, b: BoundTensor, b_binding: BoundMemory) -> None:
    try:
        shared = np.shares_memory(_elements(a, a_binding), _elements(b, b_binding), max_work=SHARING_WORK_LIMIT)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        raise _fault_of_pair(a, b, _UNDECIDED) from None
    if shared:
        raise _fault_of_pair(a, b, _SHARED)


_SHARED: Final = " share bytes; memory that is written must not be shared"
_UNDECIDED: Final = ": whether their elements share a byte could not be decided; bind separate buffers"


def _fault_of_pair(a: BoundTensor, b: BoundTensor, what: str) -> BindingError:
    return BindingError(f"{' and '.join(sorted((a.path, b.path)))}{what}")


def _elements(tensor: BoundTensor, binding: BoundMemory) -> np.ndarray:
    if isinstance(binding.owner, np.ndarray):
        return binding.owner
    return np.ndarray(tensor.sizes, tensor.dtype, buffer=binding.owner, strides=tensor.strides)  # type: ignore[arg-type]


def new_output(tensor: BoundTensor) -> np.ndarray:
    """Returns a new array, filled with zeros, for an output that is not packed: of the tensor's sizes, data type and
    strides in bytes."""
    memory = np.zeros(tensor.extent, tensor.dtype)
    return np.ndarray(tensor.sizes, tensor.dtype, buffer=memory, strides=tensor.strides)
