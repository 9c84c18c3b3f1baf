"""Descriptors: everything is representable, nothing is judged, and only what a C type cannot hold is refused."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given

import dmlsplit as dml
from tests.strategies import any_operator

F32 = dml.TensorDataType.FLOAT32


def test_defaults():
    x = dml.BufferTensorDesc(F32, (1, 1, 6, 2))
    assert (x.strides, x.flags, x.total_tensor_size_in_bytes) == (None, 0, 48)
    assert (x.guaranteed_base_offset_alignment, x.dimension_count) == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "total"),
    [
        ({"sizes": None}, 0),
        ({"sizes": ()}, 0),
        ({"sizes": (4, 0)}, 0),
        ({"sizes": (4,), "data_type": 0}, 0),
        ({"sizes": (4,), "dimension_count": 5}, 0),
        ({"sizes": (4, 4), "strides": (1,)}, 0),
        ({"sizes": (4, 4), "dimension_count": 1}, 16),
        ({"sizes": (2**32 - 1, 2**32 - 1), "data_type": dml.TensorDataType.FLOAT64}, None),
        ({"sizes": (4,), "total_tensor_size_in_bytes": 0}, 0),
    ],
)
def test_total_left_out(arguments, total):
    assert dml.BufferTensorDesc(**{"data_type": F32, **arguments}).total_tensor_size_in_bytes == total


def test_faults_are_representable():
    t = dml.TensorDesc(7, dml.BufferTensorDesc(99, None, strides=(), flags=0xFFFFFFFF, dimension_count=2**32 - 1))
    d = dml.SplitOperatorDesc(None, [t, None], 2**32 - 1, output_count=2**32 - 1)
    assert d.output_tensors == (t, None)
    assert t.flags == 0xFFFFFFFF
    assert dml.SplitOperatorDesc(None, None, 0).output_count == 0
    assert not dml.validate(d).ok


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: dml.BufferTensorDesc(F32, (1, -1)), dml.DescriptorError, r"^Sizes\[1\]: -1 does not fit into a UINT"),
        (lambda: dml.BufferTensorDesc(F32, (2**32,)), dml.DescriptorError, r"^Sizes\[0\]: 4294967296"),
        (lambda: dml.BufferTensorDesc(F32, (1.5,)), TypeError, r"^Sizes\[0\]: 1\.5 is not an integer"),
        (lambda: dml.BufferTensorDesc(F32, "12"), TypeError, "^Sizes"),
        (lambda: dml.BufferTensorDesc("INT64", (1,)), TypeError, r"^DataType: 'INT64' .* TensorDataType\.INT64$"),
        (lambda: dml.BufferTensorDesc("float", (1,)), TypeError, r"^DataType: 'float' .* TensorDataType\.FLOAT32$"),
        (lambda: dml.BufferTensorDesc(None, (1,)), TypeError, r"^DataType: None .* TensorDataType\.FLOAT32$"),
        (lambda: dml.BufferTensorDesc(F32, (1,), strides=(-4,)), dml.DescriptorError, r"^Strides\[0\]"),
        (lambda: dml.BufferTensorDesc(-1, (1,)), dml.DescriptorError, "^DataType"),
        (lambda: dml.BufferTensorDesc(F32, (1,), flags=-1), dml.DescriptorError, "^Flags"),
        (
            lambda: dml.BufferTensorDesc(F32, (1,), total_tensor_size_in_bytes=2**64),
            dml.DescriptorError,
            "^TotalTensorSizeInBytes: 18446744073709551616 does not fit into a UINT64",
        ),
        (lambda: dml.SplitOperatorDesc(None, None, -1), dml.DescriptorError, "^Axis: -1"),
        (lambda: dml.SplitOperatorDesc(None, ["x"], 0), TypeError, r"^OutputTensors\[0\]"),
        (lambda: dml.JoinOperatorDesc(None, 3, 0), TypeError, "^OutputTensor"),
        (lambda: dml.TensorDesc(1, "x"), TypeError, "^Desc"),
    ],
)
def test_what_a_c_type_cannot_hold_is_refused_with_its_path(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_wrapping_and_forwarding():
    x = dml.BufferTensorDesc(F32, (6, 2), strides=(2, 1), guaranteed_base_offset_alignment=64)
    d = dml.SplitOperatorDesc(x, [x], 0)
    assert d.input_tensor == dml.TensorDesc(dml.TensorType.BUFFER, x)
    for field in dataclasses.fields(x):
        assert getattr(d.input_tensor, field.name) == getattr(x, field.name)
    with pytest.raises(AttributeError, match="Desc is null"):
        _ = dml.TensorDesc(1, None).sizes


@pytest.mark.parametrize("make", [dml.SplitOperatorDesc, dml.JoinOperatorDesc])
def test_from_lengths(make):
    x = dml.BufferTensorDesc(F32, (1, 1, 6, 2), flags=1, guaranteed_base_offset_alignment=64, strides=(0, 0, 4, 1))
    d = make.from_lengths(x, axis=-2, lengths=(2, 1, 3))
    parts = d.output_tensors if make is dml.SplitOperatorDesc else d.input_tensors
    assert d.axis == 2
    assert [part.sizes for part in parts] == [(1, 1, 2, 2), (1, 1, 1, 2), (1, 1, 3, 2)]
    assert {(part.flags, part.strides, part.guaranteed_base_offset_alignment) for part in parts} == {(0, None, 0)}


def test_from_lengths_represents_faults():
    x = dml.BufferTensorDesc(F32, (6, 2))
    assert {f.rule for f in dml.validate(dml.SplitOperatorDesc.from_lengths(x, 4, (6,))).errors} == {
        "split/axis-out-of-range"
    }
    assert dml.SplitOperatorDesc.from_lengths(x, 0, ()).output_count == 0
    with pytest.raises(dml.DescriptorError, match="Axis: -3"):
        dml.SplitOperatorDesc.from_lengths(x, -3, (6,))
    with pytest.raises(dml.DescriptorError, match=r"OutputTensors\[1\].Sizes\[0\]: -1"):
        dml.SplitOperatorDesc.from_lengths(x, 0, (7, -1))
    with pytest.raises(dml.DescriptorError, match="Sizes: null"):
        dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(F32, None), 0, (7,))


@given(any_operator())
def test_pickling_hashing_and_replace(d):
    again = pickle.loads(pickle.dumps(d))
    assert again == d
    assert hash(again) == hash(d)
    assert dataclasses.replace(d) == d
    assert dataclasses.replace(d, axis=5).axis == 5


def test_replace_keeps_members_as_the_c_struct_does():
    x = dml.BufferTensorDesc(F32, (6, 2))
    assert dataclasses.replace(x, sizes=(6, 3)).total_tensor_size_in_bytes == 48
    anew = dataclasses.replace(x, sizes=(6, 3, 1), total_tensor_size_in_bytes=None, dimension_count=None)
    assert (anew.total_tensor_size_in_bytes, anew.dimension_count) == (72, 3)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        dml.BufferTensorDesc(F32, (1,)).flags = 1


@pytest.mark.parametrize("name", ["f2", "f4", "f8", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"])
def test_from_array(name):
    a = np.zeros((2, 3, 4), name)
    x = dml.BufferTensorDesc.from_array(a)
    kind = {"f": "FLOAT", "u": "UINT", "i": "INT"}[name[0]]
    assert x.data_type.name == f"{kind}{8 * int(name[1])}"
    assert (x.sizes, x.strides) == ((2, 3, 4), None)
    assert dml.BufferTensorDesc.from_array(a.transpose(2, 0, 1)).strides == (1, 12, 4)
    assert dml.BufferTensorDesc.from_array(a[:, :2]).strides == (12, 4, 1)
    assert dml.BufferTensorDesc.from_array(np.broadcast_to(a[:1], (2, 3, 4))).strides == (0, 4, 1)
    assert dml.BufferTensorDesc.from_array(a[:, :, :1]).strides == (12, 4, 0)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(4, "?"), "DataType: DirectML has no tensor data type for dtype bool"),
        (np.zeros(4, "c8"), "DataType: .*complex64"),
        (np.ma.array([1.0], mask=True), "Desc: a masked array"),
        (np.zeros(4, object), "DataType: .*object"),
        (np.zeros(4, "M8[s]"), "DataType: .*datetime64"),
        (np.zeros(4, ">f4"), "DataType: .*byte-swapped"),
        (np.zeros(4, "f4")[::-1], r"Strides\[0\]: -4 bytes"),
        (np.zeros(4, [("a", "f4"), ("b", "u1")])["a"], r"Strides\[0\]: 5 bytes"),
    ],
)
def test_from_array_refuses(array, message):
    with pytest.raises(dml.DescriptorError, match=message):
        dml.BufferTensorDesc.from_array(array)


def test_from_array_takes_arrays_only():
    with pytest.raises(TypeError, match="list is not an ndarray"):
        dml.BufferTensorDesc.from_array([1, 2])
    with pytest.raises(TypeError, match="None is not a TensorDesc"):
        dml.SplitOperatorDesc.from_lengths(None, 0, (1,))


def test_from_lengths_counts_an_axis_from_the_end_of_what_counts():
    x = dml.BufferTensorDesc(F32, (6, 2, 9), dimension_count=2)
    d = dml.SplitOperatorDesc.from_lengths(x, -1, (1, 1))
    assert (d.axis, d.output_tensors[0].sizes) == (1, (6, 1))


def test_from_array_represents_empty_arrays():
    assert dml.BufferTensorDesc.from_array(np.zeros((2, 0, 3), "f4")).sizes == (2, 0, 3)
    assert dml.BufferTensorDesc.from_array(np.zeros((), "f4")).sizes == ()
