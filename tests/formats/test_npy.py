"""Headers of .npy files: read as numpy reads them, written so that numpy reads them."""

import io
import struct

import numpy as np
import pytest

from dmlsplit.formats import npy
from dmlsplit.system.errors import InputError

DTYPES = [
    np.dtype("<f4"),
    np.dtype(">u2"),
    np.dtype("?"),
    np.dtype("c16"),
    np.dtype("M8[ns]"),
    np.dtype("S3"),
    np.dtype("U5"),
    np.dtype("V7"),
    np.dtype([("a", "<i2"), ("b", ">f8", (2, 3))]),
    np.dtype([("a", "u1"), ("b", "f8")], align=True),
    np.dtype([("名前", "f4")]),
    np.dtype([(f"field {i:04}", "f4") for i in range(300)]),
]


def written(array, version=None):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version)
    return stream.getvalue()


def read(data):
    return npy.read_header(io.BytesIO(data), len(data))


@pytest.mark.filterwarnings("ignore:Stored array in format")
@pytest.mark.parametrize("fortran_order", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype)[:40])
def test_what_numpy_writes(dtype, fortran_order):
    array = np.zeros((2, 0, 3) if dtype.kind == "V" else (2, 5, 3), dtype, order="F" if fortran_order else "C")
    for version in (None, (1, 0), (2, 0), (3, 0)):
        try:
            data = written(array, version)
        except (ValueError, UnicodeEncodeError):
            continue  # too long, or names that the version cannot hold
        header = read(data)
        assert header[:3] == (array.shape, np.isfortran(array), dtype)
        assert header.data_offset + header.data_size == len(data)


@pytest.mark.filterwarnings("ignore:Stored array in format")
@pytest.mark.parametrize("fortran_order", [False, True])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (3, 2)])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype)[:40])
def test_what_numpy_reads(dtype, shape, fortran_order):
    head = npy.header_bytes(shape, fortran_order, dtype)
    assert len(head) % 64 == 0
    header = npy.Header(shape, fortran_order, dtype, len(head))
    data = head + bytes(header.data_size)
    array = np.load(io.BytesIO(data))
    assert (array.shape, array.dtype) == (shape, dtype)
    if len(shape) > 1 and array.size:
        assert array.flags.f_contiguous is fortran_order
    assert read(data) == header


def test_the_lowest_version_is_written():
    versions = [npy.header_bytes((1,), False, dtype)[6] for dtype in DTYPES]
    assert versions == [1] * (len(DTYPES) - 2) + [3, 1]
    assert npy.header_bytes((1,), False, np.dtype([(f"{i:01000}", "f4") for i in range(80)]))[6] == 2


def file(text, version=1, data=b"", length=None):
    encoded = text.encode()
    length = len(encoded) if length is None else length
    return b"\x93NUMPY" + bytes((version, 0)) + struct.pack("<H" if version == 1 else "<I", length) + encoded + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions(version):
    assert read(file(GOOD, version, bytes(8)))[:3] == ((2,), False, np.dtype("f4"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not have the header of an .npy file"),
        (b"PK\x03\x04 an npz", "does not have the header of an .npy file"),
        (file(GOOD, 4, bytes(8)), "does not have the header of an .npy file"),
        *[(file(GOOD, version, b"", 0xFFFF), "does not have the header of an .npy file") for version in (1, 2, 3)],
        *[(file(GOOD, version, b"", 0xFFFF_FFFF), "does not have the header of an .npy file") for version in (2, 3)],
        *[(file("[" * 9000, version), "does not have the header of an .npy file") for version in (1, 2, 3)],
        *[(file("-" * 9000 + "1", version), "does not have the header of an .npy file") for version in (1, 2, 3)],
        (file(GOOD.replace("(2,)", "(True,)"), 1, bytes(4)), "does not have the header of an .npy file"),
        (file(GOOD.replace("(2,)", "(-2,)"), 1, bytes(8)), "does not have the header of an .npy file"),
        (file(GOOD.replace("(2,)", "(2**64,)"), 1, bytes(8)), "does not have the header of an .npy file"),
        (file(GOOD.replace("(2,)", f"({2**64},)"), 1, bytes(8)), f"declares {2**66} bytes of data, but the file has 8"),
        (file(GOOD.replace("(2,)", f"({2**63}, 0)"), 1, bytes(8)), "declares 0 bytes of data, but the file has 8"),
        (file(GOOD, 1, bytes(7)), "declares 8 bytes of data, but the file has 7"),
        (file(GOOD, 1, bytes(9)), "declares 8 bytes of data, but the file has 9"),
        (file(GOOD, 3, bytes(8)).replace(b"<f4", b"<\xff4"), "does not have the header of an .npy file"),
    ],
)
def test_hostile(data, message):
    with pytest.raises(InputError, match=message):
        read(data)


def test_objects_are_told_and_not_unpickled():
    assert read(file(GOOD.replace("<f4", "|O"), 1, b"cos\nsystem\n")).dtype.hasobject


@pytest.mark.filterwarnings("error")
def test_nothing_is_warned():
    """Numpy warns of integers as Python 2 wrote them, and Python of escapes that there are not."""
    for text, data in (
        (b"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}\n", bytes(24)),
        (b"{'descr': '\\d', 'fortran_order': False, 'shape': (2, 3)}\n", b""),
    ):
        file = npy.MAGIC + bytes((1, 0)) + struct.pack("<H", len(text)) + text + data
        if data:
            assert read(file).shape == (2, 3)
        else:
            with pytest.raises(InputError, match="the file does not have the header"):
                read(file)
