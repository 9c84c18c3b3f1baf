"""dml.split and dml.join: any layout, any dtype without objects, none of DirectML's rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlsplit as dml

DTYPES = [
    "f2",
    "f4",
    "f8",
    "?",
    "c8",
    "c16",
    "M8[s]",
    "m8[ns]",
    "U3",
    "S5",
    "V0",
    "V3",
    ">f4",
    "g",
    [("a", "i1"), ("b", "f8")],
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype):
    dtype = np.dtype(dtype)
    bits = np.random.default_rng(0).integers(0, 256, (6, 4, max(1, dtype.itemsize)), np.uint8)
    array = bits.view(dtype)[..., 0] if dtype.itemsize else np.zeros((6, 4), dtype)
    parts = dml.split(array, 0, (1, 2, 3))
    assert [p.shape for p in parts] == [(1, 4), (2, 4), (3, 4)]
    assert {p.dtype for p in parts} == {dtype}
    assert [p.tobytes() for p in parts] == [array[:1].tobytes(), array[1:3].tobytes(), array[3:].tobytes()]
    assert dml.join(parts, 0).tobytes() == array.tobytes()


@st.composite
def arrays(draw):
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    array = np.arange(np.prod(shape), dtype=draw(st.sampled_from(["u1", "u2", "f4", "f8", "c16"]))).reshape(shape)
    array = array.transpose(draw(st.permutations(range(len(shape)))))
    steps = draw(st.lists(st.sampled_from([1, -1, 2, -2]), min_size=len(shape), max_size=len(shape)))
    return array[tuple(slice(None, None, step) for step in steps)]


@given(arrays(), st.data())
def test_against_numpy(array, data):
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, array.shape[axis]), max_size=4)))
    lengths = np.diff([0, *cuts, array.shape[axis]]).tolist()
    parts = dml.split(array, axis, lengths)
    for ours, theirs in zip(parts, np.split(array, cuts, axis), strict=True):
        assert ours.shape == theirs.shape
        assert ours.flags.c_contiguous
        assert (ours == theirs).all()
    assert (dml.join(parts, axis) == array).all()
    assert (dml.join(np.split(array, cuts, axis), axis) == array).all()


def test_sections():
    a = np.arange(12).reshape(2, 6)
    assert [p.tolist() for p in dml.split(a, -1, sections=3)] == [
        [[0, 1], [6, 7]],
        [[2, 3], [8, 9]],
        [[4, 5], [10, 11]],
    ]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a: dml.split(a, 2, (4,)), ValueError, "axis 2 is out of range for 2 dimensions"),
        (lambda a: dml.split(a, -3, (4,)), ValueError, "axis -3"),
        (lambda a: dml.split(a, 1.0, (4,)), TypeError, "integer"),
        (lambda a: dml.split(a, 1, (1, 2)), ValueError, r"lengths \(1, 2\) add up to 3, but axis 1 has size 4"),
        (lambda a: dml.split(a, 1, (5, -1)), ValueError, "negative"),
        (lambda a: dml.split(a, 1, (2**63, 2**63, 4)), ValueError, f"add up to {2**64 + 4}"),
        (lambda a: dml.split(a, 1, ()), ValueError, "add up to 0"),
        (lambda a: dml.split(a, 1, sections=3), ValueError, "axis 1 of size 4 cannot be divided into 3 equal sections"),
        (lambda a: dml.split(a, 1, sections=0), ValueError, "0 equal sections"),
        (lambda a: dml.split(a, 1), ValueError, "exactly one of lengths and sections"),
        (lambda a: dml.split(a, 1, (4,), sections=1), ValueError, "exactly one"),
        (lambda a: dml.split(a[0, 0], 0, (1,)), ValueError, "out of range for 0 dimensions"),
        (lambda a: dml.split(np.ma.array(a), 0, (3,)), TypeError, "masked"),
        (lambda a: dml.split(a.astype(object), 0, (3,)), TypeError, "Python objects"),
        (lambda a: dml.join([], 0), ValueError, "at least one"),
        (lambda a: dml.join([a, a.astype("f8")], 0), ValueError, r"arrays\[1\] has dtype float64, arrays\[0\] float32"),
        (lambda a: dml.join([a, a.T], 0), ValueError, r"arrays\[1\] has shape \(4, 3\)"),
        (lambda a: dml.join([a, a[0]], 0), ValueError, r"arrays\[1\] has shape \(4,\)"),
        (lambda a: dml.split(a[:, :0], 1, sections=10**30), ValueError, "axis 1 of size 0 cannot be divided into 10"),
        (lambda a: dml.join([np.empty((2**62, 0), "i1")] * 4, 0), ValueError, f"size {2**64} together on axis 0"),
        (lambda a: dml.join([np.broadcast_to(a[0, 0], 2**60)] * 16, 0), ValueError, f"size {2**64} together"),
        (lambda a: dml.join([a, np.ma.array(a)], 0), TypeError, r"arrays\[1\] is a masked array"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call(np.zeros((3, 4), "f4"))


def test_numbers_are_whatever_counts_as_an_integer():
    a = np.arange(12).reshape(3, 4)
    expected = [p.tolist() for p in dml.split(a, 1, (1, 3))]
    assert [p.tolist() for p in dml.split(a, np.array(1), np.array([1, 3]))] == expected
    assert [p.tolist() for p in dml.split(a, np.int8(-1), (np.uint64(1), 3))] == expected
    assert dml.join([np.array(e) for e in expected], np.array(1)).tolist() == a.tolist()
    assert len(dml.split(a, 0, sections=np.array(3))) == 3
    with pytest.raises(TypeError, match="integer"):
        dml.split(a, np.array([0, 1]), (3,))


def test_more_dimensions_than_directml_has():
    a = np.arange(2**12).reshape((2,) * 12)
    parts = dml.split(a, 11, (1, 1))
    assert (parts[1] == a[..., 1:]).all()


def test_joins_that_begin_alike():
    first = np.arange(12, dtype="f4").reshape(3, 4)
    seconds = [
        first + 12,
        first[:, :2] + 20,
        (first + 40)[:, ::-1],
        np.asfortranarray(first + 60),
        np.arange(80, 86, dtype="f4").reshape(3, 2),
        np.ma.masked_array(first)[:, :0].data,
    ]
    for second in (*seconds, *reversed(seconds)):
        assert (dml.join([first, second], 1) == np.concatenate([first, second], 1)).all()
    for wrong in (first.astype("i4"), first[:2], first[0], None):
        with pytest.raises((TypeError, ValueError)):
            dml.join([first, wrong], 1)
    for axis in (1.0, np.float64(1)):
        with pytest.raises(TypeError, match="axis"):
            dml.join([first, seconds[0]], axis)
    assert (dml.join([first, seconds[0]], True) == np.concatenate([first, seconds[0]], 1)).all()


def test_layouts_that_come_again_are_not_looked_up(monkeypatch):
    parts = [np.arange(i, i + 6, dtype="f4").reshape(1, 6, 1) for i in range(3)]
    joined = dml.join(parts, -3)
    monkeypatch.setattr("dmlsplit.native.arrays._join_recipe", None)
    again = dml.join([part + 1 for part in parts], -3)
    assert (again == joined + 1).all()
    assert again is not joined


def test_lengths_equal_to_those_that_were_taken():
    array = np.arange(6)
    assert [part.tolist() for part in dml.split(array, 0, (1, 5))] == [[0], [1, 2, 3, 4, 5]]
    for lengths in ((1.0, 5.0), (1, 5.0), "15", b"\1\5"):
        with pytest.raises(TypeError, match="lengths"):
            dml.split(array, 0, lengths)
    assert [part.tolist() for part in dml.split(array, 0, (True, np.int8(5)))] == [[0], [1, 2, 3, 4, 5]]
