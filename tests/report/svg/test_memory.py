"""The cells of a strip against every element put at its place one by one."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.descriptors.layout import extent, packed_strides
from dmlsplit.report.svg import strips
from dmlsplit.report.svg.subject import subject

X = dml.TensorDataType.FLOAT32


def shown(desc, which):
    found = subject(desc, dml.validate(desc))
    part = None if which is None else which
    return strips.strip(found, found.whole if part is None else found.parts[part], part)


def by_hand(sizes, strides, number, part, limit):
    """place -> (count, least number, the part if it is one)."""
    cells = {}
    for index in itertools.product(*map(range, sizes)):
        place = sum(i * s for i, s in zip(index, strides, strict=True))
        if place < limit:
            cells.setdefault(place, []).append((number(index), part(index)))
    return {
        place: (
            len(found),
            min(n for n, _ in found),
            next(iter(parts)) if len(parts := {p for _, p in found}) == 1 else strips.SEVERAL,
        )
        for place, found in cells.items()
    }


@st.composite
def split(draw):
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    axis = draw(st.integers(0, len(sizes) - 1))
    sizes[axis] = sum(lengths) + draw(st.integers(0, 2))  # what is left belongs to no part
    strides = draw(st.none() | st.lists(st.integers(0, 40), min_size=len(sizes), max_size=len(sizes)))
    whole = dml.BufferTensorDesc(X, sizes, strides=strides)
    parts = []
    for length in lengths:
        own = [length if d == axis else size for d, size in enumerate(sizes)]
        steps = draw(st.none() | st.lists(st.integers(0, 40), min_size=len(sizes), max_size=len(sizes)))
        parts.append(dml.BufferTensorDesc(X, own, strides=steps))
    return dml.SplitOperatorDesc(whole, parts, axis)


@given(split())
def test_every_cell(desc):
    sizes, axis = desc.input_tensor.sizes, desc.axis
    packed = packed_strides(sizes)
    starts = list(itertools.accumulate((t.sizes[axis] for t in desc.output_tensors), initial=0))

    def part_of(index):
        return next((i for i in range(len(starts) - 1) if starts[i] <= index[axis] < starts[i + 1]), None)

    for which, tensor in [(None, desc.input_tensor), *enumerate(desc.output_tensors)]:
        start = 0 if which is None else starts[which]
        strides = tensor.strides or packed_strides(tensor.sizes)
        rows = strips.WHOLE_ROWS if which is None else strips.PART_ROWS
        expected = by_hand(
            tensor.sizes,
            strides,
            lambda index, start=start: sum(
                (i + start * (d == axis)) * p for d, (i, p) in enumerate(zip(index, packed, strict=True))
            ),
            part_of if which is None else lambda index, which=which: which,
            min(extent(tensor.sizes, strides), rows * strips.CELLS_IN_ROW),
        )
        strip = shown(desc, which)
        assert strip.places == extent(tensor.sizes, strides)
        found = {place: (c.elements, c.number, c.part) for place, c in strip.cells.items()}
        # Between the least and the largest part that share a cell, only that they differ is said.
        assert found == expected


def test_padding_and_broadcast():
    whole = dml.BufferTensorDesc(X, (2, 3, 2), strides=(0, 3, 1))
    desc = dml.SplitOperatorDesc.from_lengths(whole, 1, (1, 2))
    strip = shown(desc, None)
    assert strip.places == 8
    assert sorted(strip.cells) == [0, 1, 3, 4, 6, 7]  # 2 and 5 are padding
    assert {cell.elements for cell in strip.cells.values()} == {2}
    assert [strip.cells[p].part for p in (0, 1, 3, 4, 6, 7)] == [0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("tensor", "obstacle"),
    [
        (None, "null"),
        (dml.TensorDesc(1, None), "Desc is null"),
        (dml.BufferTensorDesc(X, None), "Sizes is null"),
        (dml.BufferTensorDesc(X, ()), "no dimensions"),
        (dml.BufferTensorDesc(X, (2, 0)), "no elements: Sizes[1] is 0"),
        (dml.BufferTensorDesc(X, (2,), dimension_count=4), "Sizes has 1 entries, DimensionCount is 4"),
        (dml.BufferTensorDesc(X, (2, 2), strides=(1,)), "Strides has 1 entries, DimensionCount is 2"),
        (dml.BufferTensorDesc(X, (1,) * 40), "40 dimensions are too many to draw"),
    ],
)
def test_what_has_no_places(tensor, obstacle):
    strip = shown(dml.SplitOperatorDesc(tensor, [], 0), None)
    assert (strip.places, strip.cells, strip.tensor.obstacle) == (0, {}, obstacle)
