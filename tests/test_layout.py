"""Sizes, strides and overlap against brute force."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.descriptors import layout


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "expected"),
    [
        (1, (1, 1, 6, 2), None, 48),
        (2, (1, 1, 3, 3), None, 20),  # 18 rounded up to 4
        (5, (1, 1, 3, 3), None, 12),
        (9, (3,), None, 24),
        (13, (5,), None, 4),  # 20 bits
        (12, (9,), None, 8),  # 36 bits
        (1, (2, 3), (8, 1), 44),
        (1, (2, 3), (0, 1), 12),  # broadcast
        (1, (1, 3), (2**32 - 1, 1), 12),  # stride of a size-1 dimension
        (1, (2**32 - 1,) * 8, None, 4 * (2**32 - 1) ** 8),  # exact
        (11, (2, 2**31 + 1), (2**32 - 1, 2**32 - 1), 8 * (1 + (2**31 + 1) * (2**32 - 1))),
        (0, (4,), None, 0),
        (14, (4,), None, 0),
        (1, (), None, 0),
        (1, (4, 0), None, 0),
        (1, (4, 0), (1, 1), 0),
    ],
)
def test_calc_buffer_tensor_size(data_type, sizes, strides, expected):
    assert dml.calc_buffer_tensor_size(data_type, sizes, strides) == expected


def test_calc_buffer_tensor_size_refuses_nonsense():
    with pytest.raises(ValueError, match="2 strides for 1 sizes"):
        dml.calc_buffer_tensor_size(1, (4,), (1, 1))
    with pytest.raises(ValueError, match="unsigned"):
        dml.calc_buffer_tensor_size(1, (4,), (-1,))


def brute_force_overlap(sizes, strides):
    places = [
        sum(c * s for c, s in zip(index, strides, strict=True))
        for index in itertools.product(*(range(n) for n in sizes))
    ]
    return len(set(places)) < len(places)


dimensions = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 12)), min_size=1, max_size=4)


@given(dimensions)
def test_elements_overlap_is_exact_for_small_layouts(dims):
    sizes, strides = zip(*dims, strict=True)
    assert layout.elements_overlap(sizes, strides) is brute_force_overlap(sizes, strides)


def test_elements_overlap_decides_nested_layouts_of_any_magnitude():
    assert layout.elements_overlap((2**32 - 1, 2**32 - 1), (2**32, 1)) is False
    assert layout.elements_overlap((2**32 - 1, 2**32 - 1), (2**32 - 3, 1)) is True
    assert layout.elements_overlap((7, 1), None) is False
    assert layout.elements_overlap((1, 1), (0, 0)) is False


def test_elements_overlap_gives_up_after_a_bound():
    sizes = (8, 7, 8, 10, 10, 12)
    strides = (71189247, 86866478, 130923340, 126580591, 107794138, 14629924)
    assert layout.elements_overlap(sizes, strides) is None


@given(st.integers(-9, 9), st.integers(0, 9))
def test_outward_visits_every_integer_once(low, width):
    assert sorted(layout._outward(low, low + width)) == list(range(low, low + width + 1))


def test_packed():
    assert layout.packed_strides((2, 3, 4)) == (12, 4, 1)
    assert layout.packed_strides(()) == ()
    assert layout.is_packed((2, 1, 4), (4, 99, 1))
    assert not layout.is_packed((2, 3), (4, 1))


def test_calc_buffer_tensor_size_takes_any_integers():
    np = pytest.importorskip("numpy")
    assert dml.calc_buffer_tensor_size(1, (n for n in (2, 3))) == 24
    assert dml.calc_buffer_tensor_size(1, np.array([65536, 65536], "i4")) == 2**34
    for wrong in ((1, (1.5, 2)), ("FLOAT32", (2, 3)), (1, (2,), (1.0,))):
        with pytest.raises(TypeError):
            dml.calc_buffer_tensor_size(*wrong)


def test_sizes_far_beyond_any_tensor_take_no_time():
    assert dml.BufferTensorDesc(1, (2**32 - 1,) * 65536).total_tensor_size_in_bytes is None
