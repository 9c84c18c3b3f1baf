"""The header of an .npy file, versions 1.0 to 3.0; nothing is ever unpickled.

Source: NEP 1 and numpy.lib.format, whose header reader limits the text that it evaluates.
"""

from __future__ import annotations

import io
import math
import struct
import warnings
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np

from dmlsplit.formats.limits import Limit
from dmlsplit.system.errors import InputError

MAGIC: Final = b"\x93NUMPY"
_ALIGNMENT: Final = 64
_MAX_HEADER: Final = Limit.NPY_HEADER.most


class Header(NamedTuple):
    """The header of an .npy file; the data start at `data_offset`."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    data_offset: int

    @property
    def data_size(self) -> int:
        """The size of the data in bytes; a Python int, so that it never overflows."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: BinaryIO, file_size: int) -> Header:
    """Returns the header of an .npy file; the stream must be at its start. Raises InputError if it is malformed or
    disagrees with `file_size` (bytes), OSError if reading fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's warnings about Python 2's integers and about escapes
            shape, fortran_order, dtype = _read(stream)
        if any(type(size) is not int or size < 0 for size in shape):
            raise ValueError
    except OSError:
        raise
    except Exception:
        # The header is a Python literal from the file; numpy passes on all errors of its evaluation.
        raise InputError("the file does not have the header of an .npy file") from None
    header = Header(shape, fortran_order, dtype, stream.tell())
    if not dtype.hasobject and header.data_size != file_size - header.data_offset:
        raise InputError(
            f"the header declares {header.data_size} bytes of data, but the file has {file_size - header.data_offset}"
        )
    return header


def _read(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream, _MAX_HEADER)
    if version == (3, 0):
        # 3.0 differs from 2.0 only in the encoding of field names; with escapes, the reader of 2.0 can read them.
        (length,) = struct.unpack("<I", stream.read(4))
        if length > _MAX_HEADER:
            raise ValueError
        text = stream.read(length)
        if len(text) != length:
            raise ValueError
        escaped = text.decode("utf-8").encode("ascii", "backslashreplace")
        return np.lib.format.read_array_header_2_0(
            io.BytesIO(struct.pack("<I", len(escaped)) + escaped), 10 * _MAX_HEADER
        )
    if version != (2, 0):
        raise ValueError
    return np.lib.format.read_array_header_2_0(stream, _MAX_HEADER)


def header_bytes(shape: tuple[int, ...], fortran_order: bool, dtype: np.dtype[Any]) -> bytes:
    """Returns the bytes of an .npy file that precede its data, in the lowest version of the format that can hold the
    header. Raises InputError if no version can."""
    members = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": fortran_order, "shape": shape}
    text = repr(members)
    for major, encoding, length in ((1, "latin-1", "<H"), (2, "latin-1", "<I"), (3, "utf-8", "<I")):
        start = MAGIC + bytes((major, 0))
        try:
            body = text.encode(encoding)
            size = len(start) + struct.calcsize(length) + len(body) + 1
            body += b" " * (-size % _ALIGNMENT) + b"\n"
            return start + struct.pack(length, len(body)) + body
        except (UnicodeEncodeError, struct.error):
            continue
    raise InputError("the data type's description is too long for an .npy file")
