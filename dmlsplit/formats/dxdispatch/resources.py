"""The `resources` of a DxDispatch model: buffers and their initial values.

Source of the forms, their names and defaults: DxDispatch, src/model/JsonParsers.cpp (ParseModelBufferDesc).
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from functools import partial
from typing import Any, Final

import numpy as np

from dmlsplit.descriptors.descs import DATA_TYPE_OF_NUMPY
from dmlsplit.descriptors.diagnostics import Position
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.formats.files import AllowedFolders, Bytes, check_size, read_npy, read_raw, reason
from dmlsplit.formats.json import FieldReader
from dmlsplit.formats.jsontext import JsonText, KeyPath, shown
from dmlsplit.native.binding import NUMPY_DTYPE
from dmlsplit.system.atomic_files import file_key
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable
from dmlsplit.system.records import entity

_IMAGES: Final = (".jpg", ".jpeg", ".png")
_SPECIAL: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@entity
class Resource:
    """A buffer of `size_in_bytes` that starts with `initial_values` (bytes, read-only), followed by zeros.

    `data_type` is the type that it is printed as; UNKNOWN for a list of typed values. `initial_values` None: the buffer
    is "deferred", that is, created by the dispatchable that writes it, which only ONNX models support.
    """

    name: str
    data_type: TensorDataType
    initial_values: Bytes | None
    size_in_bytes: int
    position: Position


class ResourceReader(FieldReader):
    """Reads the resources of a model."""

    def __init__(self, text: JsonText, folders: AllowedFolders) -> None:
        super().__init__(text)
        self._folders = folders
        self._total = 0
        """Bytes of the resources read so far: the limit of one resource also limits their total."""
        self._inputs = {file_key(text.file or "")}
        """The files that are read."""

    def resource(self, name: str, path: KeyPath) -> Resource:
        """Returns the resource at `path`, with its initial values. Raises InputError, with the place, if it is
        malformed or its file cannot be read."""
        members = self.members_of(self.text.get(path), path)
        position = self.text.position(path)
        declared = self.optional(members, path, "initialValuesDataType", self.data_type, int(TensorDataType.UNKNOWN))
        values, path_of_values = self.field(members, path, "initialValues", lambda value, at: (value, at))
        if values == "deferred":
            return Resource(name, TensorDataType.UNKNOWN, None, 0, position)
        try:
            data_type, data = self._values(declared, values, path_of_values)
        except MemoryError:
            raise self.text.error(path_of_values, "there is not enough memory for the initial values") from None
        if data.size == 0:
            raise self.text.error(path_of_values, "'initialValues' must be non-empty.")
        size = self._size(members, data.nbytes, path)
        self._total += size
        initial_values = data.view(np.uint8)
        initial_values.flags.writeable = False
        return Resource(name, data_type, initial_values, size, position)

    def _size(self, members: dict[str, object], data_size: int, path: KeyPath) -> int:
        size = self.optional(members, path, "sizeInBytes", self.uint64, (data_size + 3) // 4 * 4)
        # DxDispatch checks the offset against the size, but always copies the values to the beginning.
        offset = self.optional(members, path, "initialValuesOffsetInBytes", self.uint64, 0)
        if offset + data_size > size:
            message = f"a buffer of {size} bytes is too small for {data_size} bytes of initialValues at offset {offset}"
            raise self.text.error((*path, "sizeInBytes"), message)
        self._check_size(size, "sizeInBytes", (*path, "sizeInBytes"))
        return size

    def _check_size(self, size: int, what: str, path: KeyPath) -> None:
        try:
            check_size(self._total + size, what if self._total == 0 else f"{what}, with the resources before it,")
        except InputError as error:
            raise self.text.error(path, error.message) from None

    def _values(self, declared: int, values: object, path: KeyPath) -> tuple[TensorDataType, np.ndarray]:
        if isinstance(values, list) and declared == TensorDataType.UNKNOWN:
            return TensorDataType.UNKNOWN, self._typed_list(values, path)
        if isinstance(values, dict) and "sourcePath" in values:
            return self._file(declared, values, path)
        dtype = self._dtype(declared, path)
        if isinstance(values, list):
            return TensorDataType(declared), self._list(values, dtype, path)
        if not isinstance(values, dict):
            raise self.text.error(path, f"expected an array, an object or 'deferred', not {shown(values)}")
        return TensorDataType(declared), self._generated(values, dtype, path)

    def _generated(self, values: dict[str, object], dtype: np.dtype, path: KeyPath) -> np.ndarray:
        """Returns `valueCount` elements of `dtype`: all equal to `value`, or a sequence from valueStart in steps of
        valueDelta. Raises InputError if the object `values` gives neither or both of these forms, or too many
        elements."""
        if ("value" in values) == ("valueStart" in values):
            raise self.text.error(path, "expected exactly one of 'value', 'valueStart' and 'sourcePath'")
        count = self.field(values, path, "valueCount", self.uint32)
        self._check_size(count * dtype.itemsize, "valueCount", (*path, "valueCount"))
        number = partial(self._number, dtype)
        if "value" in values:
            return np.full(count, self.field(values, path, "value", number), dtype)
        start = self.field(values, path, "valueStart", number)
        terms = np.full(count, self.field(values, path, "valueDelta", number), dtype)
        terms[:1] = start
        with np.errstate(all="ignore"):
            # As in DxDispatch, every sum is rounded to the resource's own type, or wraps in it.
            return np.add.accumulate(terms, dtype=dtype)

    def _dtype(self, data_type: int, path: KeyPath) -> np.dtype:
        dtype = NUMPY_DTYPE.get(data_type)
        if dtype is not None:
            return dtype
        if data_type == TensorDataType.UNKNOWN:
            raise self.text.error(path[:-1], "Field 'initialValuesDataType' is required.")
        raise self.text.error((*path[:-1], "initialValuesDataType"), "initial values cannot have this data type")

    def _file(self, declared: int, values: dict[str, object], path: KeyPath) -> tuple[TensorDataType, np.ndarray]:
        if "value" in values or "valueStart" in values:
            raise self.text.error(path, "expected exactly one of 'value', 'valueStart' and 'sourcePath'")
        path = (*path, "sourcePath")
        name = self.string(values["sourcePath"], path)
        suffix = os.path.splitext(name)[1].lower()
        if suffix in _IMAGES:
            raise self.text.error(path, f"images ({suffix}) are not supported; save the pixels as .npy")
        if suffix != ".npy" or declared != TensorDataType.UNKNOWN:
            self._dtype(declared, path[:-1])
        try:
            file = self._folders.source(name)
            data = read_npy(file) if suffix == ".npy" else read_raw(file)
            self._inputs.add(file_key(file))
        except (OSError, InputError) as error:
            raise self.text.error(path, f"cannot read '{printable(name)}': {reason(error)}") from None
        if suffix != ".npy":
            return TensorDataType(declared), data
        if data.dtype == np.bool_:
            data = data.view(np.int8)  # DxDispatch reads the `b` of `|b1` as a signed byte
        found = DATA_TYPE_OF_NUMPY[data.dtype.kind, data.itemsize]
        if declared not in (TensorDataType.UNKNOWN, found):
            wanted = TensorDataType(declared).name
            raise self.text.error(path, f"'{printable(name)}' has {found.name}, but initialValuesDataType is {wanted}")
        return found, data.reshape(-1)

    def _typed_list(self, values: list[object], path: KeyPath) -> np.ndarray:
        """Returns the concatenated bytes of typed values such as [{"type": "UINT32", "value": 42}, ...] as an array of
        uint8. Raises InputError for a type that DxDispatch does not accept here."""
        data = bytearray()
        for i, item in enumerate(values):
            members = self.members_of(item, (*path, i))
            data_type = self.field(members, (*path, i), "type", self.data_type)
            dtype = NUMPY_DTYPE.get(data_type)
            if dtype is None or data_type == TensorDataType.FLOAT16:
                message = "a list of typed values cannot hold this data type in DxDispatch"
                raise self.text.error((*path, i, "type"), message)
            data += self.field(members, (*path, i), "value", partial(self._number, dtype)).tobytes()
        return np.frombuffer(bytes(data), np.uint8).copy()

    def _list(self, values: list[Any], dtype: np.dtype, path: KeyPath) -> np.ndarray:
        types = set(map(type, values))
        if dtype.kind != "f" and types == {int}:
            limits = np.iinfo(dtype)
            if limits.min <= min(values) and max(values) <= limits.max:
                return np.array(values, dtype)
        elif dtype.kind == "f" and types == {float}:
            numbers = np.array(values, np.float64)
            if np.isfinite(numbers).all():
                return _rounded(numbers, dtype)
        return np.array([self._number(dtype, value, (*path, i)) for i, value in enumerate(values)], dtype)

    def _number(self, dtype: np.dtype, value: Any, path: KeyPath) -> Any:
        """Returns a JSON value as a numpy scalar of `dtype`; if that is a float type, also "nan", "inf" and "-inf".
        Raises InputError for a value of another kind or out of range."""
        name = f"{path[-2]}[{path[-1]}]" if isinstance(path[-1], int) else path[-1]
        if dtype.kind != "f":
            limits = np.iinfo(dtype)
            if type(value) is not int or not limits.min <= value <= limits.max:
                message = f"{name}: expected an integer from {limits.min} to {limits.max}, not {shown(value)}"
                raise self.text.error(path, message)
            return dtype.type(value)
        if isinstance(value, str) and value.lower() in _SPECIAL:
            return dtype.type(_SPECIAL[value.lower()])
        number = math.inf
        if type(value) in (int, float):
            with suppress(OverflowError):
                number = float(value)
        if math.isinf(number):  # RapidJSON refuses a number that is not a finite double
            raise self.text.error(path, f"{name}: expected a number, 'nan', 'inf' or '-inf', not {shown(value)}")
        return _rounded(np.array(number), dtype)[()]


def _rounded(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns doubles converted to `dtype`. A FLOAT16 is rounded twice, first to float32, as in DxDispatch."""
    with np.errstate(all="ignore"):
        return (numbers.astype(np.float32) if dtype == np.float16 else numbers).astype(dtype)
