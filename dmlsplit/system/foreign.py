"""Tensors of other libraries as numpy arrays of the same memory, and arrays as tensors of those libraries.

Memory that a library exports by DLPack (torch, jax, and all others with `__dlpack__`) or by `__array_interface__` is
viewed and never copied. numpy.from_dlpack does the former, but knows no bfloat16, and takes every tensor for read-only
whose exporter cannot say whether it is; so the capsule is read here.

Source: https://dmlc.github.io/dlpack/latest/c_api.html (versions 0 and 1) and the array API standard.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

CPU: Final = 1
_DEVICES: Final = {2: "CUDA", 3: "CUDA pinned", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}
_KINDS: Final = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
"""DLDataTypeCode -> kind of a numpy dtype; elements that numpy has no type for, bfloat16 among them, are raw bytes."""
_READ_ONLY: Final = 1
_NAMES: Final = {b"dltensor": False, b"dltensor_versioned": True}
"""Of capsules that nobody has taken over -> whether there is a version in front."""


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # elements; null: packed
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


def is_foreign(value: object) -> bool:
    """Whether a value is no ndarray, and exports its memory by DLPack or as __array_interface__."""
    if not (hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__")):
        return False
    import numpy as np

    return not isinstance(value, np.ndarray | np.generic)


def as_array(value: Any) -> np.ndarray:
    """The same memory as an ndarray; it keeps the exporter's tensor alive. Elements that numpy has no type for are raw
    bytes (V2 for bfloat16). Read-only where the exporter says so, or knows how to say and does not.

    TypeError for a tensor that lies on a device, or that its library does not export, with what it says.
    """
    import numpy as np

    name = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    device, number = CPU, 0
    try:
        if not hasattr(value, "__dlpack__"):
            array: np.ndarray = np.asarray(value)
            return array
        if hasattr(value, "__dlpack_device__"):
            device, number = value.__dlpack_device__()
        if device == CPU:
            if _is_negated(value):
                raise BufferError("its elements are negated when they are read, use tensor.resolve_neg()")
            return _of_capsule(*_exported(value))
    except (BufferError, RuntimeError, ValueError, AttributeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise TypeError(f"a {name} that its library does not export: {reason}") from None
    where = f"{_DEVICES.get(int(device), f'DLPack device type {int(device)}')} device {number}"
    raise TypeError(f"a {name} on {where}; only memory of the CPU is read and written: copy it there first")


def _is_negated(value: Any) -> bool:
    """Whether a tensor of torch has the negative bit set: unlike a conjugated one it is exported, as if it had not."""
    is_neg = getattr(value, "is_neg", None)
    return is_neg is not None and bool(is_neg())


def _exported(value: Any) -> tuple[object, bool]:
    """The capsule, and whether its exporter knows DLPack 1.0, in which a tensor can be read-only."""
    try:
        return value.__dlpack__(max_version=(1, 0)), True
    except TypeError:  # of before DLPack 1.0, which has no such argument
        return value.__dlpack__(), False


def _of_capsule(capsule: object, knows_read_only: bool) -> np.ndarray:
    """A view of what the capsule exports. It stays ours: as long as nobody takes it over, its own end releases it.

    A capsule of version 0 from an exporter that was asked for 1.0, and knows it, is not to be written: so jax exports
    its arrays, which never change.
    """
    import numpy as np

    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    label = api.PyCapsule_GetName(capsule)
    if label not in _NAMES:
        raise BufferError(f"its capsule is named {label!r}")
    address = api.PyCapsule_GetPointer(capsule, label)
    if _NAMES[label]:
        versioned = ctypes.cast(address, ctypes.POINTER(_Versioned)).contents
        if versioned.major != 1:
            raise BufferError(f"DLPack {versioned.major}.{versioned.minor} is not known")
        tensor, writable = versioned.tensor, not versioned.flags & _READ_ONLY
    else:
        tensor, writable = ctypes.cast(address, ctypes.POINTER(_DLTensor)).contents, not knows_read_only
    if tensor.lanes != 1 or tensor.bits % 8 or not tensor.bits:
        raise BufferError(f"its elements have {tensor.bits} bits and {tensor.lanes} lanes")
    size = tensor.bits // 8
    try:
        dtype = np.dtype(f"{_KINDS.get(tensor.code, 'V')}{size}")
    except TypeError:  # complex numbers of two halves
        dtype = np.dtype(f"V{size}")
    shape = tuple(tensor.shape[: tensor.ndim])
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = [size] * tensor.ndim
    for i in range(tensor.ndim - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    if tensor.strides:
        strides = [stride * size for stride in tensor.strides[: tensor.ndim]]
    spans = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    before = -sum(span for span in spans if span < 0)
    length = before + sum(span for span in spans if span > 0) + size
    memory = (ctypes.c_char * length).from_address(tensor.data + tensor.byte_offset - before)
    memory.exporter = capsule  # the array refers to the memory, and this to what it belongs to
    array = np.ndarray(shape, dtype, buffer=memory, offset=before, strides=strides)
    array.flags.writeable = writable
    return array


def tensor_maker(value: Any) -> Callable[[np.ndarray], Any]:
    """Makes tensors of the library of `value`, of the type of its elements, from fresh arrays, without a copy.

    They stay arrays where `value` is no tensor of another library, or of one that has no from_dlpack.
    """
    from_dlpack = _from_dlpack(value) if is_foreign(value) else None
    if from_dlpack is None:
        return lambda array: array

    def make(array: np.ndarray) -> Any:
        tensor = from_dlpack(array.view(f"i{array.itemsize}") if array.dtype.kind == "V" else array)
        return tensor if tensor.dtype == value.dtype else tensor.view(value.dtype)

    return make


def _from_dlpack(value: Any) -> Callable[[Any], Any] | None:
    namespace = getattr(value, "__array_namespace__", None)
    library = namespace() if namespace is not None else sys.modules.get(type(value).__module__.partition(".")[0])
    found: Callable[[Any], Any] | None = getattr(library, "from_dlpack", None)
    return found
