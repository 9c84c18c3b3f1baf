"""What callers bind to a tensor: ndarrays that are the tensor itself, and raw memory laid out by the descriptor.

Nothing here reads or writes an element; every check happens before the first one is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from dmlsplit import _native
from dmlsplit.descriptors import DATA_TYPE_OF_NUMPY, BufferTensorDesc
from dmlsplit.errors import BindingError
from dmlsplit.layout import ELEMENT_BITS, packed_strides

NUMPY_DTYPE: Final[dict[int, np.dtype[Any]]] = {
    data_type: np.dtype(f"{kind}{size}") for (kind, size), data_type in DATA_TYPE_OF_NUMPY.items()
}
"""DML_TENSOR_DATA_TYPE -> dtype, native byte order; the 4-bit types have none."""

SHARING_WORK_LIMIT: Final = 1_000_000
"""Candidates after which numpy's exact search for a shared byte gives up."""


class BoundTensor:
    """A tensor of a compiled operator, with what binding needs of its descriptor. Strides are bytes."""

    __slots__ = ("dtype", "is_output", "packed", "path", "sizes", "strides", "total")

    def __init__(self, path: str, desc: BufferTensorDesc, is_output: bool) -> None:
        count = desc.dimension_count
        self.path = path
        self.is_output = is_output
        self.sizes = (desc.sizes or ())[:count]
        self.dtype = NUMPY_DTYPE[desc.data_type]
        packed = packed_strides(self.sizes)
        strides = packed if desc.strides is None else desc.strides[:count]
        # The stride of a size-1 dimension is never used; the packed one compares equal to numpy's.
        strides = tuple(p if n == 1 else s for n, s, p in zip(self.sizes, strides, packed, strict=True))
        self.packed = strides == packed
        size = ELEMENT_BITS[desc.data_type] // 8
        self.strides = tuple(s * size for s in strides)
        self.total = desc.total_tensor_size_in_bytes or 0


class Binding(NamedTuple):
    """Memory bound to a tensor: where its first element lies, in which strides, and what keeps it alive."""

    pointer: Any
    strides: tuple[int, ...]
    owner: object


def bind(tensor: BoundTensor, value: object) -> Binding:
    """Binds an ndarray or raw memory to a tensor; BindingError names the tensor and both sides of a mismatch."""
    if isinstance(value, np.ndarray):
        if value.shape == tensor.sizes:
            return _bind_array(tensor, value)
        if value.ndim != 1 or value.dtype != np.uint8:
            raise BindingError(
                f"{tensor.path}: an array of shape {value.shape} was given, Sizes are {tensor.sizes}; "
                "raw memory is a 1-D uint8 array or another bytes-like object"
            )
    return _bind_raw(tensor, value)


def _bind_array(tensor: BoundTensor, array: np.ndarray) -> Binding:
    if array.dtype != tensor.dtype or isinstance(array, np.ma.MaskedArray):
        raise BindingError(f"{tensor.path}: {_array_fault(array, tensor.dtype)}")
    strides = array.strides
    if strides != tensor.strides:
        # The stride of a size-1 dimension is never used, and without elements none is.
        free = 0 in tensor.sizes
        strides = tuple(
            own if free or n == 1 else s for n, s, own in zip(tensor.sizes, strides, tensor.strides, strict=True)
        )
        if tensor.is_output and strides != tensor.strides:
            raise BindingError(
                f"{tensor.path}: the array's strides are {array.strides} bytes, the descriptor's {tensor.strides}; "
                "an output has to be laid out as the descriptor says"
            )
    if tensor.is_output and not array.flags.writeable:
        raise BindingError(f"{tensor.path}: the array is read-only")
    if array.flags.c_contiguous:
        return Binding(_native.buffer(array, tensor.is_output), strides, array)
    return Binding(_native.address(array.__array_interface__["data"][0]), strides, array)


def _array_fault(array: np.ndarray, expected: np.dtype[Any]) -> str:
    dtype = array.dtype
    if isinstance(array, np.ma.MaskedArray):
        return "a masked array was given; pass its data, or fill it first"
    if not dtype.isnative and dtype.newbyteorder("=") == expected:
        return f"the array is byte-swapped ({dtype.str}); {expected} in native byte order is expected"
    return f"the array has dtype {dtype}, {expected} is expected"


def _bind_raw(tensor: BoundTensor, value: object) -> Binding:
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise BindingError(f"{tensor.path}: {kind} is neither an ndarray nor a bytes-like object") from None
    if not view.c_contiguous:
        raise BindingError(f"{tensor.path}: raw memory has to be contiguous")
    if view.nbytes < tensor.total:
        raise BindingError(
            f"{tensor.path}: {view.nbytes} bytes of raw memory were given, TotalTensorSizeInBytes is {tensor.total}"
        )
    if tensor.is_output and view.readonly:
        raise BindingError(f"{tensor.path}: the memory is read-only")
    return Binding(_native.buffer(view, tensor.is_output), tensor.strides, view)


def check_apart(
    plan: _native.Plan, whole: BoundTensor, whole_binding: Binding, parts: Sequence[tuple[BoundTensor, Binding]]
) -> None:
    """Raises BindingError where a written tensor shares a byte with another one.

    Slow but exact, for buffers whose ranges intersect: two columns of one array are apart.
    """
    operands = [(_range(plan.whole_range, whole_binding), whole, whole_binding)]
    operands += [(_range(plan.part_range(i), binding), part, binding) for i, (part, binding) in enumerate(parts)]
    operands.sort(key=lambda operand: operand[0])
    open_operands: list[tuple[_native.Range, BoundTensor, Binding]] = []
    for operand in operands:
        reach, tensor, binding = operand
        open_operands = [other for other in open_operands if other[0].end > reach.begin]
        for _, other, other_binding in open_operands:
            if tensor.is_output or other.is_output:
                _check_pair(tensor, binding, other, other_binding)
        if reach.end > reach.begin:
            open_operands.append(operand)


def _range(reach: _native.Range, binding: Binding) -> _native.Range:
    base = _native.address_of(binding.pointer)
    return _native.Range(base + reach.begin, base + reach.end)


def _check_pair(a: BoundTensor, a_binding: Binding, b: BoundTensor, b_binding: Binding) -> None:
    first, second = sorted((a.path, b.path))
    try:
        shared = np.shares_memory(_elements(a, a_binding), _elements(b, b_binding), max_work=SHARING_WORK_LIMIT)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        raise BindingError(
            f"{first} and {second}: whether their elements share a byte could not be decided; bind buffers apart"
        ) from None
    if shared:
        raise BindingError(f"{first} and {second} share bytes; what is written may not be shared")


def _elements(tensor: BoundTensor, binding: Binding) -> np.ndarray:
    if isinstance(binding.owner, np.ndarray):
        return binding.owner
    return np.ndarray(tensor.sizes, tensor.dtype, buffer=binding.owner, strides=tensor.strides)  # type: ignore[arg-type]


def new_output(tensor: BoundTensor) -> np.ndarray:
    """A fresh array with the strides of an output that is not packed; bytes between its elements are 0."""
    extent = 1 + sum((n - 1) * s for n, s in zip(tensor.sizes, tensor.strides, strict=True)) // tensor.dtype.itemsize
    return np.ndarray(tensor.sizes, tensor.dtype, buffer=np.zeros(extent, tensor.dtype), strides=tensor.strides)
