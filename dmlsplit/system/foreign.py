"""Converts tensors of other libraries to numpy arrays of the same memory, and arrays to tensors of those libraries.

Memory that a library exports by DLPack (torch, jax, and all others with `__dlpack__`), by `__array_interface__` or by
`__array_struct__` is viewed and never copied. An exporter's description is checked, as far as possible, before an array
is made: numpy's own readers accept elements that are Python objects, and substitute fresh memory for a null pointer.
Moreover, numpy.from_dlpack does not support bfloat16, and treats a tensor as read-only if its exporter cannot report
whether it is.

Source: https://dmlc.github.io/dlpack/latest/c_api.html (versions 0 and 1), the array API standard, and
https://numpy.org/doc/stable/reference/arrays.interface.html (version 3).
"""

from __future__ import annotations

import ctypes
import operator
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np

CPU: Final = 1
_DEVICES: Final = {2: "CUDA", 3: "CUDA pinned", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}
_KINDS: Final = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
"""DLDataTypeCode -> kind of a numpy dtype; elements without a numpy type, such as bfloat16, are raw bytes."""
_HANDLE: Final = 3
"""DLDataTypeCode of pointers that only the exporter can follow."""
_READ_ONLY: Final = 1
_NAMES: Final = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}
"""Maps the name of an unconsumed capsule to its name once consumed."""
_MOST_DIMENSIONS: Final = 64
"""numpy's own limit."""
_FIRST_PAGE: Final = 4096
"""No system has memory at lower addresses: such pointers are null, or null plus an offset."""
_TYPE: Final = re.compile(r"[<>|=][biufcmMSUV]([0-9]+)(\[[^\]]*\])?")
"""typestr of __array_interface__, without objects (O) and bits (t)."""
_FIELD_NAME: Final = re.compile(":[^:]*:")
"""The letter O in a buffer's format stands for an object."""
_NOT_SWAPPED, _WRITEABLE, _HAS_DESCR = 0x200, 0x400, 0x800
"""Flags of __array_struct__."""


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


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


class _ArrayStruct(ctypes.Structure):
    _fields_ = (
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),  # bytes; null: packed
        ("data", ctypes.c_void_p),
        ("descr", ctypes.py_object),
    )


class _Exported(NamedTuple):
    """An exporter's description of its memory."""

    address: int
    """The address of element (0, 0, ...), even if strides are negative."""
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """Bytes; None: packed."""
    dtype: np.dtype[Any]
    writable: bool
    owner: object
    """Keeps the memory alive."""


def is_foreign(value: object) -> bool:
    """True if `value` exports memory by DLPack, __array_interface__ or __array_struct__ and is neither an ndarray (of
    any subclass) nor a numpy scalar."""
    if not any(_has(value, name) for name in ("__dlpack__", "__array_interface__", "__array_struct__")):
        return False
    import numpy as np

    return not isinstance(value, np.ndarray | np.generic)


def _has(value: object, name: str) -> bool:
    try:
        return hasattr(value, name)
    except Exception:
        return True  # its message is reported when the tensor is exported


def as_array(value: Any) -> np.ndarray:
    """Returns the exporter's memory as an ndarray, which keeps the exporter's tensor alive. Elements without a numpy
    type are raw bytes (V2 for bfloat16). The array is read-only if the exporter says so, or if it could have declared
    write access and did not.

    Raises TypeError for a tensor on another device, for one that its library refuses to export (with the library's
    message), and for a wrong description: a null pointer, impossible sizes or strides, elements of Python objects.
    """
    name = f"{str(type(value).__module__).partition('.')[0]}.{type(value).__name__}"
    device, number = CPU, 0
    try:
        if not _has(value, "__dlpack__"):
            exported = _of_interface(value) if _has(value, "__array_interface__") else _of_struct(value)
            return _view(exported, value)
        if _has(value, "__dlpack_device__"):
            device, number = map(int, value.__dlpack_device__())
        if device == CPU:
            if _is_negated(value):
                raise BufferError("its elements are negated when they are read; use tensor.resolve_neg()")
            return _view(_of_capsule(*_capsule(value)), value)
    except MemoryError:
        raise
    except Exception as error:  # any exception of the library
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise TypeError(f"a {name} that its library does not export: {reason}") from None
    where = f"{_DEVICES.get(device, f'DLPack device type {device}')} device {number}"
    raise TypeError(f"a {name} on {where}; only CPU memory is supported; copy it there first")


def _is_negated(value: Any) -> bool:
    """True for a torch tensor with the negative bit set, which, unlike a conjugated one, is exported without it."""
    is_neg = getattr(value, "is_neg", None)
    return is_neg is not None and bool(is_neg())


def _capsule(value: Any) -> tuple[object, bool]:
    """Returns the tensor's DLPack capsule, and True if its exporter supports DLPack 1.0, in which a tensor can be
    read-only."""
    try:
        return value.__dlpack__(max_version=(1, 0)), True
    except TypeError:  # before DLPack 1.0 this argument did not exist
        return value.__dlpack__(), False


class _Taken:
    """Owns a consumed DLPack tensor: calls its deleter once, when the last reference to this object is dropped."""

    def __init__(self, capsule: object) -> None:
        self._delete: Callable[[], object] = lambda: None
        api = ctypes.pythonapi
        api.PyCapsule_GetName.restype = ctypes.c_char_p
        api.PyCapsule_GetName.argtypes = [ctypes.py_object]
        label = api.PyCapsule_GetName(capsule)
        if label not in _NAMES:
            raise BufferError(f"its capsule is named {label!r}")
        address = _pointer_of(capsule, label)
        kind = _Versioned if label == b"dltensor_versioned" else _Managed
        self.managed: Any = ctypes.cast(address, ctypes.POINTER(kind)).contents
        api.PyCapsule_SetName.restype = ctypes.c_int
        api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_SetName(capsule, _NAMES[label])  # not copied by CPython; the literal lives as long as the module
        if self.managed.deleter:
            # Not CFUNCTYPE, which releases the GIL: deleters drop references.
            deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.managed.deleter)
            self._delete = lambda: deleter(address)

    def __del__(self) -> None:
        self._delete()


def _pointer_of(capsule: object, name: bytes | None) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = get(capsule, name)
    return address


def _of_capsule(capsule: object, knows_read_only: bool) -> _Exported:
    """Consumes a DLPack capsule and returns its description. Raises BufferError for one that cannot be viewed.

    `knows_read_only`: the exporter supports DLPack 1.0 and was asked for it. A capsule of version 0 from such an
    exporter is read-only: jax exports its immutable arrays this way.
    """
    import numpy as np

    taken = _Taken(capsule)
    managed = taken.managed
    writable = not knows_read_only
    if isinstance(managed, _Versioned):
        if managed.major != 1:
            raise BufferError(f"DLPack {managed.major}.{managed.minor} is not known")
        writable = not managed.flags & _READ_ONLY
    tensor: _DLTensor = managed.tensor
    if tensor.device_type != CPU:
        raise BufferError(f"its tensor is on DLPack device type {tensor.device_type}")
    if tensor.lanes != 1 or tensor.bits % 8 or not tensor.bits:
        raise BufferError(f"its elements have {tensor.bits} bits and {tensor.lanes} lanes")
    if tensor.code == _HANDLE:
        raise BufferError("its elements are handles")
    size = tensor.bits // 8
    try:
        dtype = np.dtype(f"{_KINDS.get(tensor.code, 'V')}{size}")
    except TypeError:  # complex numbers with parts of two bytes
        dtype = np.dtype(f"V{size}")
    shape = _numbers(tensor.shape, tensor.ndim)
    strides = tuple(stride * size for stride in _numbers(tensor.strides, tensor.ndim)) if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset if tensor.data else 0
    return _Exported(address, shape, strides, dtype, writable, taken)


def _numbers(pointer: Any, count: int) -> tuple[int, ...]:
    if not 0 <= count <= _MOST_DIMENSIONS:
        raise BufferError(f"it has {count} dimensions")
    if count and not pointer:
        raise BufferError(f"it has {count} dimensions and no shape")
    return tuple(pointer[:count]) if count else ()


def _of_interface(value: Any) -> _Exported:
    """Returns the description in `__array_interface__`; its data may be an address or a buffer; if it is missing, the
    value itself is the buffer. Raises BufferError for one that cannot be viewed, and any other exception for one that
    is malformed; the caller translates all of them."""
    interface = value.__array_interface__
    if not isinstance(interface, dict):
        raise BufferError(f"its __array_interface__ is {type(interface).__name__}, not a dict")
    if interface.get("mask") is not None:
        raise BufferError("it is masked")
    shape = tuple(map(operator.index, interface["shape"]))
    given = interface.get("strides")
    strides = None if given is None else tuple(map(operator.index, given))
    dtype = _dtype(interface["typestr"], interface.get("descr"))
    data = interface.get("data")
    if isinstance(data, tuple):
        address, read_only = data
        return _Exported(operator.index(address), shape, strides, dtype, not read_only, value)
    view = memoryview(value if data is None else data)
    if holds_objects(view):
        raise BufferError("its memory has references to Python objects")
    begin, end = _bounds(view)
    exported = _Exported(
        begin + operator.index(interface.get("offset", 0)), shape, strides, dtype, not view.readonly, view
    )
    _check_within(exported, begin, end)
    return exported


def _of_struct(value: Any) -> _Exported:
    """Returns the description in the C struct that `__array_struct__` points to. Raises BufferError for one that cannot
    be viewed."""
    capsule = value.__array_struct__
    struct = ctypes.cast(_pointer_of(capsule, None), ctypes.POINTER(_ArrayStruct)).contents
    if struct.two != 2:
        raise BufferError("its __array_struct__ is not one")
    kind = struct.typekind.decode("latin-1")
    size = struct.itemsize // 4 if kind == "U" else struct.itemsize
    order = "=" if struct.flags & _NOT_SWAPPED else (">" if sys.byteorder == "little" else "<")
    dtype = _dtype(f"{order}{kind}{size}", struct.descr if struct.flags & _HAS_DESCR else None)
    if dtype.itemsize != struct.itemsize:
        raise BufferError(f"its elements of {struct.itemsize} bytes are of kind {kind}")
    shape = _numbers(struct.shape, struct.nd)
    strides = _numbers(struct.strides, struct.nd) if struct.strides else None
    return _Exported(struct.data or 0, shape, strides, dtype, bool(struct.flags & _WRITEABLE), (capsule, value))


def _dtype(text: object, fields: object) -> np.dtype[Any]:
    """Returns the dtype of a typestr; for a void type with a list of `fields`, the structured dtype.

    Raises BufferError for Python objects, bits, a malformed typestr, and fields with another size than the typestr;
    TypeError or ValueError, as numpy does, for malformed fields.
    """
    import numpy as np

    text = text.decode("latin-1") if isinstance(text, bytes) else text
    match = _TYPE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise BufferError(f"its typestr is {text!r}; elements that are Python objects or bits are not copied")
    dtype: np.dtype[Any] = np.dtype(match[0])
    if dtype.itemsize != int(match[1]) * (4 if dtype.kind == "U" else 1):
        raise BufferError(f"its typestr is {text!r}")
    if dtype.kind == "V" and isinstance(fields, list) and fields != [("", text)]:
        structured: np.dtype[Any] = np.dtype(fields)
        if structured.itemsize != dtype.itemsize:
            raise BufferError(f"its descr has {structured.itemsize} bytes, its typestr is {text!r}")
        dtype = structured
    if dtype.hasobject:
        raise BufferError(f"its dtype is {dtype}, which holds Python objects")
    return dtype


def _view(exported: _Exported, value: object) -> np.ndarray:
    """Returns an array over the memory that `value` exported, without a copy, writable if it was exported so; the array
    keeps the memory's owner alive. An array without bytes is a new one.

    Raises BufferError if sizes, strides or the address are impossible or reach outside the buffers of `value` or of its
    `base` (if these export buffers), or if the memory holds references to Python objects.
    """
    import numpy as np

    shape, dtype = exported.shape, exported.dtype
    if len(shape) > _MOST_DIMENSIONS or (exported.strides is not None and len(exported.strides) != len(shape)):
        raise BufferError(f"it has {len(shape)} sizes and {len(exported.strides or ())} strides")
    if any(not 0 <= n <= sys.maxsize for n in shape):
        raise BufferError(f"its shape is {shape}")
    if 0 in shape or dtype.itemsize == 0:
        return np.empty(shape, dtype)
    strides = exported.strides
    if strides is None:
        strides = _packed(shape, dtype.itemsize)
    exported = exported._replace(strides=strides)
    begin, end = _extent(exported)
    if begin < _FIRST_PAGE:
        raise BufferError(f"its data pointer is null, or its strides lead there; its shape is {shape}")
    if end > 1 << 8 * ctypes.sizeof(ctypes.c_void_p) or end - begin > sys.maxsize:
        raise BufferError(f"its shape is {shape}, its strides are {strides} bytes: more than the address space")
    for low, high, has_objects in _known_memory(value):
        if begin < high and end > low:
            _check_within(exported, low, high)
            if has_objects:
                raise BufferError("its memory has references to Python objects")
    memory: Any = (ctypes.c_char * (end - begin)).from_address(begin)
    memory.exporter = exported.owner  # the array references the memory, and the memory references its owner
    array = np.ndarray(shape, dtype, buffer=memory, offset=exported.address - begin, strides=strides)
    array.flags.writeable = exported.writable
    return array


def _packed(shape: Sequence[int], size: int) -> tuple[int, ...]:
    strides = [size] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def _extent(exported: _Exported) -> tuple[int, int]:
    """Returns the lowest address of the elements' bytes and the address after the highest; every size is at least 1.
    `strides` None means packed, row-major."""
    strides = exported.strides if exported.strides is not None else _packed(exported.shape, exported.dtype.itemsize)
    spans = [(n - 1) * stride for n, stride in zip(exported.shape, strides, strict=True)]
    begin = exported.address + sum(span for span in spans if span < 0)
    return begin, exported.address + sum(span for span in spans if span > 0) + exported.dtype.itemsize


def _check_within(exported: _Exported, low: int, high: int) -> None:
    if 0 in exported.shape:
        return
    begin, end = _extent(exported)
    if begin < low or end > high:
        raise BufferError(f"its elements are at bytes {begin - low} to {end - low} of a memory of {high - low} bytes")


def _known_memory(value: object) -> Iterator[tuple[int, int, bool]]:
    """Yields (begin, end, holds objects) of the memory that a value, and its `base` as for numpy's views, exports as a
    buffer; nothing for one that exports none."""
    for owner in (value, getattr(value, "base", None)):
        with suppress(TypeError, ValueError, BufferError, NotImplementedError):
            view = memoryview(owner)  # type: ignore[arg-type]
            yield *_bounds(view), holds_objects(view)


def _bounds(view: memoryview) -> tuple[int, int]:
    """Returns the lowest address of a buffer's bytes and the address after the highest; (0, 0) if it is empty."""
    import numpy as np

    if not view.nbytes:
        return 0, 0
    array = np.asarray(view)
    spans = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    address = array.__array_interface__["data"][0]
    low = address + sum(span for span in spans if span < 0)
    return low, address + sum(span for span in spans if span > 0) + array.itemsize


def holds_objects(view: memoryview) -> bool:
    """True if the elements of a buffer hold references to Python objects."""
    return "O" in _FIELD_NAME.sub("", view.format)


def tensor_maker(value: Any) -> Callable[[np.ndarray], Any]:
    """Returns a function that makes a tensor of the library and element type of `value` from a fresh array, without a
    copy.

    The function returns the array unchanged if `value` is not a foreign tensor, or its library has no from_dlpack.
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
