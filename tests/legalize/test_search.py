"""Searches over all single operators, and over all ways to cut, find nothing that legalize missed."""

import math

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.descriptors.layout import ELEMENT_BITS
from dmlsplit.legalize.search import rewritten
from tests.legalize.proof import check_bytes, tensors
from tests.legalize.search import byte_pairs, cut_everywhere, fewest_dimensions, narrow_judge
from tests.strategies import faultless_operator

T = dml.TensorDataType


def single_operator_exists(d, level):
    kind = dml.OperatorType.SPLIT if isinstance(d, dml.SplitOperatorDesc) else dml.OperatorType.JOIN
    row = dml.tensor_support(kind, level)[0]
    found = [fewest_dimensions(d, size) for size in {ELEMENT_BITS[t] // 8 for t in row.data_types}]
    return any(rank is not None and rank <= max(row.dimension_counts) for rank in found)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(faultless_operator(max_elements=24), st.sampled_from(["1_0", "2_1", "3_0", "4_1"]))
def test_no_single_operator_is_missed(d, level):
    if not byte_pairs(d):
        assert dml.legalize(d, feature_level=level).operators == ()
        return
    found = dml.legalize(d, feature_level=level)
    single = len(found.operators) == 1
    event(f"{level}: single {single}")
    assert single == single_operator_exists(d, level)
    if single:
        assert found.temporary_bytes == 0


TYPES = st.sampled_from([(T.UINT32,), (T.UINT16, T.UINT32), (T.UINT8, T.UINT16), (T.UINT8, T.UINT16, T.UINT64)])


def sizes_of_elements(data_types):
    return {ELEMENT_BITS[t] // 8 for t in data_types}


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(faultless_operator(max_elements=24), st.integers(1, 3), TYPES)
def test_no_single_operator_of_few_dimensions_is_missed(d, most, data_types):
    if not byte_pairs(d):
        return
    found = rewritten(d, narrow_judge(most, data_types))
    ranks = [fewest_dimensions(d, size) for size in sizes_of_elements(data_types)]
    exists = any(rank is not None and rank <= most for rank in ranks)
    event(f"of {most}: single {exists}, ok {found.ok}")
    assert (len(found.operators) == 1) == exists
    if found.ok and ELEMENT_BITS[tensors(d)[0][0].data_type] >= 8:
        check_bytes(found)


@st.composite
def spaced_operator(draw):
    """Strides that are often multiples of 16 bytes, with gaps that keep dimensions from folding."""
    data_type = draw(st.sampled_from([T.FLOAT32, T.INT64, T.FLOAT16]))
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    axis = draw(st.integers(0, len(sizes) - 1))
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    for i in range(len(sizes)):
        if i != axis and math.prod(sizes) // sizes[axis] * sum(lengths) > 24:
            sizes[i] = 1

    def tensor(length):
        own, apart = (*sizes[:axis], length, *sizes[axis + 1 :]), 128 // ELEMENT_BITS[data_type]
        strides, run = [0] * len(own), 1
        for i in draw(st.permutations(range(len(own)))):
            strides[i] = run
            run *= own[i]
            run = -(-run // apart) * apart + draw(st.sampled_from([0, apart, apart, apart, 1]))
        return dml.BufferTensorDesc(data_type, own, strides=strides)

    whole, parts = tensor(sum(lengths)), [tensor(length) for length in lengths]
    if draw(st.booleans()):
        return dml.SplitOperatorDesc(whole, parts, axis)
    return dml.JoinOperatorDesc(parts, whole, axis)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(spaced_operator(), st.integers(1, 2))
def test_no_way_to_cut_is_missed(d, most):
    data_types = (T.UINT16, T.UINT32)
    ranks = [[fewest_dimensions(x, size) for x in cut_everywhere(d)] for size in sizes_of_elements(data_types)]
    exists = any(all(rank is not None and rank <= most for rank in of_type) for of_type in ranks)
    found = rewritten(d, narrow_judge(most, data_types))
    event(f"a way {exists}, operators {min(len(found.operators), 3)}, temporary: {found.temporary_bytes > 0}")
    if exists:
        assert found.ok
        assert not found.temporary_bytes
    if found.ok:
        check_bytes(found)


@pytest.mark.parametrize(
    ("d", "size", "rank"),
    [
        (dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(T.INT64, (2, 3, 2)), 1, (1, 2)), 4, 2),
        (dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(T.UINT8, (2, 3, 2)), 1, (1, 2)), 2, 2),
        (dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(T.UINT8, (2, 3, 2)), 1, (1, 2)), 4, None),
        (
            dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(T.INT64, (2, 3), strides=(1, 2)), 1, (1, 2)),
            4,
            3,
        ),
        (dml.JoinOperatorDesc.from_lengths(dml.BufferTensorDesc(T.FLOAT16, (3, 4)), 0, (1, 2)), 4, 1),
        (
            dml.SplitOperatorDesc(
                dml.BufferTensorDesc(T.UINT8, (2, 3, 2), strides=(0, 2, 1)),
                [dml.BufferTensorDesc(T.UINT8, (2, 3, 2))],
                0,
            ),
            1,
            2,
        ),
    ],
    ids=str,
)
def test_the_search_finds_what_a_person_finds(d, size, rank):
    assert fewest_dimensions(d, size) == rank
