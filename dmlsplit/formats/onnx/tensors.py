"""Types, shapes and values of ONNX tensors in plain Python."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from dmlsplit.descriptors.dims import Dim, Shape
from dmlsplit.formats.element_types import ELEMENT_TYPES, ElementType
from dmlsplit.formats.files import AllowedFolders, reason
from dmlsplit.formats.limits import Limit, LimitError
from dmlsplit.formats.onnx.protobuf import text
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

_DECIMAL: Final = re.compile("[+-]?[0-9]{1,40}")
_TYPED: Final[Mapping[str, str]] = {
    "FLOAT": "float_data",
    "DOUBLE": "double_data",
    "INT64": "int64_data",
    **dict.fromkeys(("UINT32", "UINT64"), "uint64_data"),
    **dict.fromkeys(("BOOL", "INT8", "UINT8", "INT16", "UINT16", "INT32", "FLOAT16", "BFLOAT16"), "int32_data"),
    **dict.fromkeys(("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"), "int32_data"),
}
"""The fields that hold the elements of a tensor without raw data, one number for each, by type."""
MAX_RANK: Final = Limit.ONNX_RANK.most
MAX_ELEMENTS: Final = Limit.ONNX_ELEMENTS.most
"""The most elements of a value that is read; there are never more lengths than outputs."""

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
ReadExternal: TypeAlias = Callable[[str, int, int], bytes]
"""Reads from an external file, given its location in the model, an offset and a length. Raises InputError if it
cannot."""

_NAMES: Final[Mapping[str, str]] = {
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "FLOAT8E4M3FN": "float8_e4m3fn",
    "FLOAT8E4M3FNUZ": "float8_e4m3fnuz",
    "FLOAT8E5M2": "float8_e5m2",
    "FLOAT8E5M2FNUZ": "float8_e5m2fnuz",
    "FLOAT8E8M0": "float8_e8m0fnu",
    "FLOAT4E2M1": "float4_e2m1fn",
}
"""Element types whose names are not numpy's in upper case."""


def element_type(name: str | None) -> ElementType | None:
    """Returns the ElementType for the name of an ONNX type ("FLOAT16"); None for None and for a name without an
    ElementType."""
    return None if name is None else ELEMENT_TYPES.get(_NAMES.get(name, name.lower()))


def type_name(data_type: int) -> str | None:
    """Returns the name of a TensorProto.DataType: "FLOAT" for 1, "type N" for an unknown N; None for UNDEFINED."""
    if data_type == TensorProto.UNDEFINED:
        return None
    try:
        return str(TensorProto.DataType.Name(data_type))
    except ValueError:
        return f"type {data_type}"


def check_rank(rank: int) -> None:
    """Raises LimitError if a tensor of `rank` dimensions exceeds MAX_RANK."""
    if rank > MAX_RANK:
        raise LimitError(Limit.ONNX_RANK, MAX_RANK)


def type_of(proto: onnx.TypeProto) -> tuple[str | None, Shape | None]:
    """Returns the element type's name and the shape of a tensor type, each None if it is not declared. For any other
    type, such as a sequence, returns its kind in upper case ("SEQUENCE") and None. Raises LimitError if a tensor has
    more than MAX_RANK dimensions."""
    kind = proto.WhichOneof("value")
    if kind != "tensor_type":
        return (None if kind is None else kind.removesuffix("_type").upper()), None
    tensor = proto.tensor_type
    check_rank(len(tensor.shape.dim))
    shape = tuple(map(_dim, tensor.shape.dim)) if tensor.HasField("shape") else None
    return type_name(tensor.elem_type), shape


def _dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    kind = dim.WhichOneof("value")
    if kind == "dim_value":
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    # Some exporters write an empty name for an unknown size.
    return (text(dim.dim_param) or None) if kind == "dim_param" else None


class NoDataError(InputError):
    """The file of external data does not exist, or ends before the data."""


def size_of(tensor: onnx.TensorProto) -> int | None:
    """Returns the number of bytes that the elements of a tensor need by its type and dimensions; None if the type is
    not known, has no fixed size or packs several elements into a byte, or a dimension is negative."""
    element = element_type(type_name(tensor.data_type))
    if element is None or element.refusal:
        return None
    return math.prod(tensor.dims) * element.itemsize if min(tensor.dims, default=0) >= 0 else None


def holds_its_elements(tensor: onnx.TensorProto) -> bool:
    """True if the data in the tensor itself, raw or typed, are as many as its type and dimensions say, or it is not
    known how many that are. Raw data count if there are any, as in ONNX Runtime."""
    if tensor.data_type == TensorProto.STRING:
        return not tensor.raw_data and len(tensor.string_data) == math.prod(tensor.dims)
    size = size_of(tensor)
    if size is None:
        return True
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data) == size
    field = _TYPED.get(type_name(tensor.data_type) or "")
    return field is None or len(getattr(tensor, field)) == math.prod(tensor.dims)


def value_of(tensor: onnx.TensorProto, read_external: ReadExternal) -> Array | None:
    """Returns the elements of a tensor as a numpy array; None if there are more than MAX_ELEMENTS. `read_external`
    fetches external data. Raises InputError if data and dimensions disagree or the data cannot be read."""
    dims = tuple(tensor.dims)
    if any(dim < 0 for dim in dims):
        raise InputError(f"has negative dimensions {list(dims)}")
    count = math.prod(dims)
    if count > MAX_ELEMENTS:
        return None
    if tensor.data_location == TensorProto.EXTERNAL:
        tensor = _with_external_data(tensor, count, read_external)
    try:
        array = numpy_helper.to_array(tensor)
    except Exception as error:
        # onnx raises any of numpy's exceptions if data and dimensions disagree.
        raise InputError(f"is malformed: {printable(str(error))}") from None
    if array.shape != dims:
        raise InputError(f"has dimensions {list(dims)} but data for {list(array.shape)}")
    return array


def _with_external_data(tensor: onnx.TensorProto, count: int, read_external: ReadExternal) -> onnx.TensorProto:
    keys = {text(entry.key): text(entry.value) for entry in tensor.external_data}
    name = type_name(tensor.data_type)
    element = element_type(name)
    if element is None or element.itemsize == 0 or element.refusal:
        raise InputError(f"has external data of type {name}, which is not read")
    size = count * element.itemsize
    given = keys.get("offset", "0"), keys.get("length", str(size))
    if not all(_DECIMAL.fullmatch(each) for each in given):
        raise InputError("has external data whose offset or length is not a number")
    offset, length = map(int, given)
    if not keys.get("location"):
        raise InputError("has external data without a location")
    if length != size or offset < 0:
        raise InputError(f"has {length} bytes of external data at offset {offset}; its dimensions need {size}")
    copy = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
    copy.raw_data = read_external(keys["location"], offset, length)
    return copy


def external_reader(folders: AllowedFolders) -> ReadExternal:
    """Returns a function (location, offset, length) that returns bytes of an external data file in the allowed
    folders, links resolved, and raises InputError if it cannot, NoDataError if they are not there, not even for
    Windows, on which DirectML runs."""

    def read(location: str, offset: int, length: int) -> bytes:
        shown = printable(location)
        try:
            data, _ = folders.read(location, offset, length)
        except FileNotFoundError as error:
            why = f"has external data in '{shown}': {reason(error)}"
            if folders.is_there_on_windows(location):
                raise InputError(f"{why}; only Windows finds it") from None
            raise NoDataError(why) from None
        except (InputError, OSError) as error:
            raise InputError(f"has external data in '{shown}': {reason(error)}") from None
        if len(data) != length:
            raise NoDataError(f"has external data in '{shown}', which ends before offset {offset} + {length} bytes")
        return data

    return read


def no_external_data(location: str, offset: int, length: int) -> bytes:
    """Always raises InputError: the external data reader of a model in memory, which has no files."""
    raise InputError(f"has external data in '{printable(location)}', and the model is not from a file")
