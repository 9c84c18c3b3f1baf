"""Resources of DxDispatch models: every form of initial values, how they print, and what is refused."""

import numpy as np
import pytest

from dmlsplit.formats import files
from dmlsplit.formats.dxdispatch import read, run
from dmlsplit.system.errors import InputError
from tests.formats.models import printed, values


@pytest.mark.parametrize(
    ("data_type", "initial", "text"),
    [
        ("FLOAT32", [1, 2.5, -0.0, 1e6, 123456789, 1e-5, 3.14159265], "1, 2.5, -0, 1e+06, 1.23457e+08, 1e-05, 3.14159"),
        ("FLOAT32", ["nan", "inf", "-Inf", "NaN"], "nan, inf, -inf, nan"),
        ("FLOAT64", [0.1, 1e300, 100000, 1000000], "0.1, 1e+300, 100000, 1e+06"),
        ("FLOAT16", [0.1, 65504, 65520, "inf"], "0.0999756, 65504, inf, inf"),
        ("FLOAT16", [1.00048828225], "1"),  # by way of float, hence a tie; 1.00098 if rounded once
        ("FLOAT32", [1e300], "inf"),
        ("UINT8", [0, 65, 255], "0, 65, 255"),
        ("INT8", [-128, 65, 127], "-128, 65, 127"),
        ("DML_TENSOR_DATA_TYPE_INT16", [-1, 32767], "-1, 32767"),
        ("UINT64", [18446744073709551615], "18446744073709551615"),
        ("INT64", [-9223372036854775808, 1], "-9223372036854775808, 1"),
        ("INT32", {"valueCount": 3, "value": -7}, "-7, -7, -7"),
        ("FLOAT16", {"valueCount": 2, "value": "nan"}, "nan, nan"),
        ("FLOAT32", {"valueCount": 4, "valueStart": 1, "valueDelta": 0.5}, "1, 1.5, 2, 2.5"),
        ("UINT8", {"valueCount": 4, "valueStart": 254, "valueDelta": 1}, "254, 255, 0, 1"),
        ("INT32", {"valueCount": 2, "valueStart": 2147483647, "valueDelta": 1}, "2147483647, -2147483648"),
        ("FLOAT16", {"valueCount": 3, "valueStart": 2047, "valueDelta": 1}, "2047, 2048, 2048"),
    ],
)
def test_initial_values(show, data_type, initial, text):
    assert show(initialValuesDataType=data_type, initialValues=initial) == text


def test_negative_nan_is_spelled_as_by_libstdcxx(show, tmp_path):
    np.save(tmp_path / "nan.npy", np.array([-np.nan, np.nan, -np.inf], np.float32))
    assert show(initialValues={"sourcePath": "nan.npy"}) == "-nan, nan, -inf"


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", ">f4", ">i8"])
def test_npy(show, tmp_path, dtype):
    np.save(tmp_path / "x.npy", np.arange(6).astype(dtype).reshape(2, 3))
    assert show(initialValues={"sourcePath": "x.npy"}) == "0, 1, 2, 3, 4, 5"


def test_npy_of_bool_is_a_signed_byte_as_in_dxdispatch(show, tmp_path):
    np.save(tmp_path / "x.npy", np.array([True, False]))
    assert show(initialValuesDataType="INT8", initialValues={"sourcePath": "x.npy"}) == "1, 0"


def test_dat(show, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/x.dat").write_bytes(np.arange(3, dtype=np.int16).tobytes())
    assert show(initialValuesDataType="INT16", initialValues={"sourcePath": "sub/x.dat"}) == "0, 1, 2"


def test_typed_list_is_bytes_in_order(write_model, tmp_path):
    mixed = [{"type": "UINT32", "value": 42}, {"type": "FLOAT32", "value": 0.5}, {"type": "INT8", "value": -1}]
    command = {"type": "writeFile", "resource": "R", "targetPath": "r.bin"}
    path = write_model({"R": {"initialValues": mixed}}, {}, [command])
    assert printed(read(path))[1].failures == ()
    expected = np.uint32(42).tobytes() + np.float32(0.5).tobytes() + b"\xff"
    assert (tmp_path / "r.bin").read_bytes() == expected + b"\0\0\0"  # sizeInBytes is rounded up to 4


def test_size_in_bytes(write_model):
    resource = {**values(3, data_type="FLOAT16"), "sizeInBytes": 64, "initialValuesOffsetInBytes": 4}
    path = write_model({"R": resource, "S": values(3, data_type="UINT8")}, {}, [{"type": "print", "resource": "R"}])
    model = read(path)
    assert (model.resources["R"].size_in_bytes, model.resources["S"].size_in_bytes) == (64, 4)
    assert printed(model)[0] == "Resource 'R': 0, 1, 2\n"  # trimmed to the initial values, which start at 0


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ({"initialValuesDataType": "FLOAT32"}, "Field 'initialValues' is required."),
        ({"initialValues": {"valueCount": 1, "value": 1}}, "Field 'initialValuesDataType' is required."),
        ({"initialValuesDataType": "INT4", "initialValues": [1]}, "cannot have this data type"),
        ({"initialValuesDataType": 99, "initialValues": [1]}, "cannot have this data type"),
        ({"initialValuesDataType": "FLOAT31", "initialValues": [1]}, "did you mean"),
        ({"initialValuesDataType": "INT32", "initialValues": []}, "'initialValues' must be non-empty."),
        ({"initialValuesDataType": "INT32", "initialValues": {"valueCount": 0, "value": 1}}, "must be non-empty."),
        ({"initialValuesDataType": "INT32", "initialValues": "later"}, "an object or 'deferred', not 'later'"),
        ({"initialValuesDataType": "INT32", "initialValues": {"valueCount": 1}}, "exactly one of"),
        ({"initialValuesDataType": "INT32", "initialValues": {"value": 1, "valueStart": 1}}, "exactly one of"),
        ({"initialValuesDataType": "INT32", "initialValues": {"value": 1, "sourcePath": "a.dat"}}, "exactly one of"),
        ({"initialValuesDataType": "INT32", "initialValues": {"value": 1}}, "Field 'valueCount' is required."),
        ({"initialValuesDataType": "INT32", "initialValues": {"valueStart": 1, "valueCount": 2}}, "'valueDelta'"),
        ({"initialValuesDataType": "INT32", "initialValues": [1, 1.5]}, "initialValues[1]: expected an integer"),
        ({"initialValuesDataType": "UINT8", "initialValues": [256]}, "expected an integer from 0 to 255, not 256"),
        ({"initialValuesDataType": "INT8", "initialValues": [True]}, "not true"),
        ({"initialValuesDataType": "FLOAT32", "initialValues": [1, "infinite"]}, "'nan', 'inf' or '-inf'"),
        ({"initialValuesDataType": "FLOAT32", "initialValues": [None]}, "not null"),
        ({"initialValuesDataType": "FLOAT32", "initialValues": [10**400]}, "more than 40 digits"),
        ({"initialValues": [{"type": "FLOAT16", "value": 1}]}, "cannot hold this data type"),
        ({"initialValues": [{"type": "INT8"}]}, "Field 'value' is required."),
        ({"initialValues": [1]}, "expected an object, not 1"),
        ({"initialValuesDataType": "INT32", "initialValues": [1], "sizeInBytes": 3}, "too small"),
        ({"initialValuesDataType": "INT32", "initialValues": [1], "initialValuesOffsetInBytes": 1}, "too small"),
        ({"initialValuesDataType": "INT32", "initialValues": [1], "sizeInBytes": 2**60}, "the limit is"),
        ({"initialValuesDataType": "INT32", "initialValues": [1], "sizeInBytes": -1}, "expected an unsigned integer"),
        ({"initialValues": {"sourcePath": "a.jpg"}}, "images (.jpg) are not supported"),
        ({"initialValues": {"sourcePath": "none.npy"}}, "cannot read 'none.npy': No such file or directory"),
        ({"initialValuesDataType": "INT8", "initialValues": {"sourcePath": "."}}, "Is a directory"),
        ({"initialValues": {"sourcePath": 3}}, "sourcePath: expected a string, not 3"),
        ({"initialValues": {"sourcePath": "a\0b.npy"}}, "'a\\x00b.npy' is not a file name"),
        ({"initialValues": {"sourcePath": "\ud800.npy"}}, "'\\ud800.npy'"),
        ("x", "expected an object, not 'x'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_faulty_resources(write_model, resource, message):
    path = write_model({"R": resource}, {}, [])
    with pytest.raises(InputError) as caught:
        read(path)
    assert message in caught.value.message
    assert caught.value.file == str(path)
    assert caught.value.line >= 3
    str(caught.value).encode()


@pytest.mark.parametrize("spelled", ["1e999", "1e999e99", "1e999.5", "1e999-1"])
def test_number_beyond_double(write_model, spelled):
    text = f'{{"resources": {{"R": {{"initialValuesDataType": "FLOAT32", "initialValues": [-1e99, {spelled}]}}}}}}'
    with pytest.raises(InputError, match="the number 1e999 is out of the range of a double") as caught:
        read(write_model(text=text))
    assert caught.value.column == text.index("1e999") + 1


def npy(header, data=b""):
    encoded = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(encoded).to_bytes(2, "little") + encoded + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not have the header of an .npy file"),
        (b"\x93NUMPY\x09\x00\x00\x00", "does not have the header of an .npy file"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", b"\0" * 12), "declares 16 bytes"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", b"\0" * 20), "the file has 20"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"), "declares 3999999"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "does not have the header"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4.0,), }"), "does not have the header"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\0" * 8), "no DirectML tensor data type"),
        (npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", b"\0" * 8), "no DirectML tensor data type"),
        (npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", b"\0" * 4), "no DirectML"),
        (npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", b"\0" * 4), "Fortran order"),
        (npy("(" * 90), "does not have the header"),
        (npy("__import__('os')"), "does not have the header"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }"), "must be non-empty"),
        (npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }", b"\0" * 4), "has INT32"),
    ],
)
def test_faulty_npy(write_model, tmp_path, content, message):
    (tmp_path / "x.npy").write_bytes(content)
    path = write_model({"R": {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "x.npy"}}}, {}, [])
    with pytest.raises(InputError) as caught:
        read(path)
    assert message in caught.value.message
    assert caught.value.line == 6 or "non-empty" in message


def test_memory_that_cannot_be_had(write_model, monkeypatch):
    path = write_model()
    model = read(path)

    def refuse(*arguments, **keywords):
        raise MemoryError

    monkeypatch.setattr(np, "zeros", refuse)
    with pytest.raises(InputError, match="not enough memory for 16 bytes"):
        run(model, print)
    monkeypatch.setattr(files, "_physical_memory", lambda: 32)
    with pytest.raises(InputError, match="valueCount needs 16 bytes of memory; the limit is 8"):
        read(path)


def test_resources_are_bounded_together(write_model, monkeypatch):
    """Twelve of 60 MiB where 400 MiB of memory allow 100 MiB: the second one is refused before it is made."""
    monkeypatch.setattr("dmlsplit.formats.files._physical_memory", lambda: 400 << 20)
    megabytes = {"initialValuesDataType": "UINT8", "initialValues": {"valueCount": 60 << 20, "value": 0}}
    path = write_model({f"X{i}": megabytes for i in range(12)}, {}, [])
    message = "valueCount, with the resources before it, needs 125829120 bytes"
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert caught.value.line is not None
