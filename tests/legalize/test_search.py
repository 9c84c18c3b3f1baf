"""A search over all single operators finds none that legalize missed."""

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.layout import ELEMENT_BITS
from tests.legalize.search import byte_pairs, fewest_dimensions
from tests.strategies import faultless_operator

T = dml.TensorDataType


def single_operator_exists(d, level):
    kind = dml.OperatorType.SPLIT if isinstance(d, dml.SplitOperatorDesc) else dml.OperatorType.JOIN
    row = dml.tensor_support(kind, level)[0]
    found = [fewest_dimensions(d, size) for size in {ELEMENT_BITS[t] // 8 for t in row.data_types}]
    return any(rank is not None and rank <= max(row.dimension_counts) for rank in found)


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
