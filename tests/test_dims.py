"""Sizes of models: what fits, and how they are written."""

import pickle

import pytest

from dmlsplit.descriptors.dims import Interval, agrees, bounds, compatible, interval, is_name, overlap, shape_text


@pytest.mark.parametrize(
    ("sizes", "declared", "expected"),
    [
        ((2, 3), (2, 3), True),
        ((2, 3), (2, 4), False),
        ((2, 3), (2,), False),
        ((2, 3), (None, None), True),
        ((2, 3, 2), ("n", None, "n"), True),
        ((2, 3, 4), ("n", None, "n"), False),
        ((2, 3), (Interval(2, 3), Interval(2, 3)), True),
        ((1,), (Interval(2, 3),), False),
        ((4,), (Interval(2, 3),), False),
        ((9, 0), (Interval(2, None), Interval(0, 7)), True),
        ((8,), (Interval(0, 7),), False),
    ],
)
def test_agrees(sizes, declared, expected):
    assert agrees(sizes, declared) is expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (2, 2, True),
        (2, 3, False),
        (2, "n", True),
        (None, 3, True),
        (Interval(2, 5), 5, True),
        (Interval(2, 5), 6, False),
        (Interval(2, 5), Interval(6, None), False),
        (Interval(2, 5), Interval(5, None), True),
    ],
)
def test_overlap(a, b, expected):
    assert overlap(a, b) is expected
    assert overlap(b, a) is expected
    assert compatible((a, 1), (b, 1)) is expected


def test_an_interval_is_its_text_and_knows_its_bounds():
    found = Interval(2, 10)
    assert found == "2..10"
    assert pickle.loads(pickle.dumps(found)).bounds == (2, 10)
    assert not is_name(found)
    assert is_name("batch")


def test_an_unknown_rank_fits_any():
    assert compatible(None, (1, 2))
    assert compatible((1, 2), None)
    assert not compatible((1,), (1, 1))


def test_intervals_take_their_simplest_form():
    assert (interval(3, 3), interval(0, None), interval(0, 4)) == (3, None, Interval(0, 4))
    assert [bounds(dim) for dim in (3, "n", None)] == [(3, 3), (0, None), (0, None)]


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((1, "batch", None), "[1, batch, ?]"),
        ((Interval(2, 10), Interval(3, None), Interval(0, 7)), "[2..10, 3.., ..7]"),
        ((), "[]"),
        (None, "unknown"),
        (("\x1b[31m\u202e",), r"[\x1b[31m\u202e]"),
    ],
    ids=["names", "intervals", "scalar", "unknown rank", "hostile"],
)
def test_text(shape, text):
    assert shape_text(shape) == text
