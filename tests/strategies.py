"""Hypothesis strategies for descriptors: any that can be represented, and valid ones with all kinds of layout."""

from __future__ import annotations

import math

from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.descriptors.layout import packed_strides

UINT = st.one_of(st.integers(0, 20), st.integers(0, 2**32 - 1))
UINT64 = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1))


@st.composite
def any_tensor(draw):
    """A BufferTensorDesc of any content that the C types hold."""
    sizes = draw(st.none() | st.lists(UINT, max_size=9))
    return dml.BufferTensorDesc(
        draw(UINT | st.sampled_from(list(dml.TensorDataType))),
        sizes,
        strides=draw(st.none() | st.lists(UINT, max_size=9)),
        flags=draw(st.sampled_from([0, 1, 2, 2**32 - 1])),
        total_tensor_size_in_bytes=draw(st.none() | UINT64),
        guaranteed_base_offset_alignment=draw(UINT),
        dimension_count=draw(st.none() | UINT),
    )


any_tensor_desc = st.none() | st.builds(dml.TensorDesc, UINT, st.none() | any_tensor())


@st.composite
def any_operator(draw):
    """A Split or Join of any content that the C types hold."""
    array = draw(st.none() | st.lists(any_tensor_desc, max_size=4))
    count = draw(st.none() | UINT)
    if draw(st.booleans()):
        return dml.SplitOperatorDesc(draw(any_tensor_desc), array, draw(UINT), count)
    return dml.JoinOperatorDesc(array, draw(any_tensor_desc), draw(UINT), count)


@st.composite
def strides(draw, sizes, broadcast):
    """Strides that let nothing overlap: dimensions in any order, padded at random; inputs may broadcast too."""
    order = draw(st.permutations(range(len(sizes))))
    result = [0] * len(sizes)
    run = 1
    for d in order:
        result[d] = run
        run = run * max(1, sizes[d]) + draw(st.integers(0, 3))
        if broadcast and draw(st.integers(0, 5)) == 0:
            result[d] = 0
    for d, size in enumerate(sizes):
        if size == 1 and draw(st.booleans()):
            result[d] = draw(UINT)
    return result


@st.composite
def tensor(draw, data_type, sizes, broadcast, alignments=(0, 0, 16, 64)):
    """A valid tensor of given sizes: null or explicit strides, a total that may be larger than needed."""
    own = draw(st.none() | st.just(packed_strides(sizes)) | strides(sizes, broadcast))
    desc = dml.BufferTensorDesc(data_type, sizes, strides=own)
    extra = draw(st.sampled_from([0, 0, 1, 7, 64]))
    alignment = draw(st.sampled_from(alignments))
    return dml.BufferTensorDesc(
        data_type,
        sizes,
        strides=own,
        total_tensor_size_in_bytes=desc.total_tensor_size_in_bytes + extra if 0 not in sizes else extra,
        guaranteed_base_offset_alignment=alignment,
    )


DATA_TYPES = [t for t in dml.TensorDataType if t not in (0, 12, 13)]


def valid_operator(max_elements=400):
    """A Split or Join that the highest feature level takes."""
    return _operator(max_elements, 8, 1, (0, 0, 16, 64))


def faultless_operator(max_elements=400):
    """A Split or Join that is right in itself, whether or not any level takes it."""
    return _operator(max_elements, 10, 0, (0, 0, 8, 64))


@st.composite
def _operator(draw, max_elements, max_rank, least, alignments):
    rank = draw(st.integers(1, max_rank))
    multiple = draw(st.sampled_from([1, 1, 2, 4]))  # so that elements of 8 bits often make larger ones
    sizes = [draw(st.integers(1, 5)) for _ in range(rank)]
    sizes[-1] *= multiple
    axis = draw(st.integers(0, rank - 1))
    lengths = draw(st.lists(st.integers(least, 5), min_size=1, max_size=5))
    if axis == rank - 1:
        lengths = [length * multiple for length in lengths]
    for d in range(rank):  # keeps the examples small
        if d != axis and math.prod(sizes) // sizes[axis] * sum(lengths) > max_elements:
            sizes[d] = 1
    if least == 0 and axis > 0 and draw(st.integers(0, 15)) == 0:
        sizes[draw(st.integers(0, axis - 1))] = 0
    data_type = draw(st.sampled_from(DATA_TYPES))
    is_split = draw(st.booleans())
    sizes[axis] = sum(lengths)
    whole = draw(tensor(data_type, tuple(sizes), is_split, alignments))
    parts = []
    for length in lengths:
        part = (*sizes[:axis], length, *sizes[axis + 1 :])
        parts.append(draw(tensor(data_type, part, not is_split, alignments)))
    if is_split:
        return dml.SplitOperatorDesc(whole, parts, axis)
    return dml.JoinOperatorDesc(parts, whole, axis)
