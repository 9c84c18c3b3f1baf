"""Fresh outputs: one block between several of middling size, and nothing large that a survivor would pin."""

import itertools

import numpy as np
import pytest

import dmlsplit as dml
from dmlsplit.native.fresh import ARENA_LIMIT, HUGE_PAGE_ARRAY, FreshArrays

MB = 1 << 20


def block_of(array):
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base


@pytest.mark.parametrize(
    ("sizes", "shared"),
    [
        ([MB] * 3, False),  # below what numpy asks huge pages for
        ([MB] * 4, True),
        ([HUGE_PAGE_ARRAY - 64] * 2, True),
        ([HUGE_PAGE_ARRAY, MB], False),  # one is large enough by itself
        ([MB] * 32, True),
        ([MB] * 33, False),  # a survivor would pin too much
        ([3], False),
        ([], False),
    ],
)
def test_which_outputs_share_a_block(sizes, shared):
    arrays = FreshArrays([(size,) for size in sizes], np.dtype("u1")).make()
    assert [a.size for a in arrays] == sizes
    assert (len({id(block_of(a)) for a in arrays}) == 1 < len(arrays)) is shared
    if shared:
        assert block_of(arrays[0]).nbytes <= ARENA_LIMIT + 64
        assert all(a.__array_interface__["data"][0] % 64 == 0 for a in arrays)
        assert not any(np.shares_memory(a, b) for a, b in itertools.pairwise(arrays))


def test_blocks_are_not_shared_between_calls():
    maker = FreshArrays([(2 * MB,), (3 * MB,)], np.dtype("u1"))
    assert block_of(maker.make()[0]) is not block_of(maker.make()[0])


@pytest.mark.parametrize("odd", [0, 1, 13])
def test_results_in_a_block_are_right(odd):
    array = np.arange((5 * MB + odd) * 1, dtype="u1").reshape(1, -1)
    lengths = (MB + 3, 2 * MB, 2 * MB - 3 + odd)
    for parts in (
        dml.split(array, 1, lengths),
        dml.compile(dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(5, array.shape), 1, lengths))(array),
    ):
        assert all((p == q).all() for p, q in zip(parts, np.split(array, np.cumsum(lengths)[:-1], 1), strict=True))
        assert (dml.join(parts, 1) == array).all()
