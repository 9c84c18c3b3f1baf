"""Several operators: where sizes exceed what one may have, and where a level takes too few dimensions."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.descriptors.layout import ELEMENT_BITS, packed_strides
from dmlsplit.legalize import _cut, search
from tests.legalize.proof import check_bytes, check_regions, prove, tensors
from tests.strategies import faultless_operator

T = dml.TensorDataType
LIMIT = 2**32 - 1


def split(data_type, sizes, axis, lengths, **members):
    return dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(data_type, sizes, **members), axis, lengths)


def join(data_type, sizes, axis, lengths):
    return dml.JoinOperatorDesc.from_lengths(dml.BufferTensorDesc(data_type, sizes), axis, lengths)


def spans(d, found):
    """For each operator and part: the bytes of the whole that it covers, those of the part, and which part it is.

    For operators that are one run of memory in every tensor: sizes of one loop, packed.
    """
    is_split = isinstance(d, dml.SplitOperatorDesc)
    for operator, regions, parts in zip(found.operators, found.bindings, found.output_map, strict=True):
        if parts == (-1,):  # what a join reads back
            continue
        inputs, outputs = tensors(operator)
        whole_region, part_regions = (regions[0], regions[1:]) if is_split else (regions[-1], regions[:-1])
        position = whole_region.offset
        for tensor, region, part in zip(outputs if is_split else inputs, part_regions, parts, strict=True):
            assert tensor.strides is None
            assert math.prod(tensor.sizes[: operator.axis]) == 1
            size = math.prod(tensor.sizes) * {T.UINT8: 1, T.UINT16: 2, T.FLOAT32: 4, T.UINT32: 4}[tensor.data_type]
            if part >= 0:
                yield part, position, region.offset, size
            position += size


def check_arithmetic(d, element_size):
    """Every byte of every part is moved exactly once, from where the original has it."""
    found = dml.legalize(d, feature_level="3_0")
    assert found.ok
    check_regions(found, feature_level="3_0")
    inputs, outputs = tensors(d)
    parts = outputs if isinstance(d, dml.SplitOperatorDesc) else inputs
    begin = 0
    pieces = sorted(spans(d, found))
    for i, part in enumerate(parts):
        own = [piece for piece in pieces if piece[0] == i]
        position = 0
        for _, in_whole, in_part, size in own:
            assert (in_whole, in_part) == (begin + position, position)
            position += size
        assert position == math.prod(part.sizes) * element_size
        begin += position
    return found


@pytest.mark.parametrize(
    ("d", "element_size", "operators"),
    [
        (split(T.FLOAT32, (1, 1, 2**17, 2**16), 2, (2**16, 2**16)), 4, 3),
        (split(T.FLOAT32, (2**17, 2**16), 0, (1, 2**17 - 1)), 4, 3),
        (split(T.UINT8, (2**30 + 3, 11), 0, (2**29 + 1, 2**29 + 2)), 1, 3),
        (split(T.UINT8, (2**20, 2**14), 0, (2**19, 2**19)), 1, 2),  # 2^34 bytes: 2^32 elements of UINT32
        (split(T.UINT8, (2**20, 2**13), 0, (2**19, 2**19)), 1, 1),  # 2^33 bytes: UINT32 makes one of it
        (split(T.FLOAT32, (3, 2**31), 0, (1, 1, 1)), 4, 2),
        (join(T.FLOAT32, (4, 2**30), 0, (1, 3)), 4, 2),
        (join(T.UINT8, (2**32 - 4,), 0, (2**32 - 7, 3)), 1, 1),  # one input bound as three
        (join(T.FLOAT32, (2**32 - 1,), 0, (2**31, 2**31 - 1)), 4, 1),
        (join(T.UINT8, (3, 2**31 - 3), 0, (1, 1, 1)), 1, 3),  # one of them reads back
    ],
    ids=str,
)
def test_beyond_the_bounds(d, element_size, operators):
    assert not dml.validate(d, feature_level="3_0").ok
    assert len(check_arithmetic(d, element_size).operators) == operators


def refused(d):
    """The same operator with a promise that no build takes, so that every level has to rewrite it."""
    name = "input_tensor" if isinstance(d, dml.SplitOperatorDesc) else "output_tensor"
    tensor = replace(getattr(d, name).desc, guaranteed_base_offset_alignment=8)
    return replace(d, **{name: tensor})


@st.composite
def packed_operator(draw):
    """Packed, of sizes that few starts are multiples of 16 bytes with."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 5, 7, 13, 16, 17, 32]), min_size=1, max_size=3))
    axis = draw(st.integers(0, len(sizes) - 1))
    edges = sorted(draw(st.sets(st.integers(1, max(1, sizes[axis] - 1)), max_size=3)) & set(range(1, sizes[axis])))
    lengths = [b - a for a, b in pairwise([0, *edges, sizes[axis]])]
    make = draw(st.sampled_from([split, join]))
    return make(draw(st.sampled_from([T.UINT8, T.UINT8, T.FLOAT16, T.INT64])), sizes, axis, lengths)


@pytest.mark.slow
@settings(max_examples=500)
@given((faultless_operator() | packed_operator()).map(refused), st.integers(16, 300))
def test_the_same_with_bounds_that_are_reached_soon(d, bound):
    """Bytes prove what arithmetic proves above: at most `bound` elements in an operator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search.Search, "_single_operators", lambda search: iter([_cut.TOO_MANY_OPERATORS]))
        patch.setattr(_cut, "UINT_MAX", bound)
        patch.setattr(_cut, "INPUT_ELEMENTS_MAX", bound)
        found = dml.legalize(d, feature_level="4_1")
    event(f"ok: {found.ok}")
    if found.ok:
        event(f"{min(len(found.operators), 5)} operators, temporary: {found.temporary_bytes > 0}")
        check_regions(found, feature_level="4_1")
        check_bytes(found)
        elements = [math.prod(x.sizes) for operator in found.operators for side in tensors(operator) for x in side]
        assert max(elements, default=0) <= bound


def test_an_unaligned_start_is_read_earlier():
    found = check_arithmetic(split(T.UINT8, (2**30 + 3, 11), 0, (2**29 + 1, 2**29 + 2)), 1)
    assert found.output_map[-1] == (-1, 1)
    assert 0 < found.temporary_bytes < 64
    assert "a temporary buffer of" in found.steps[-1]


def test_a_join_writes_what_stands_there_once_more():
    """The second operator begins at a multiple of 16 bytes before its first new byte, and reads back what is there."""
    d = join(T.UINT8, (3, 2**31 - 3), 0, (1, 1, 1))
    found = dml.legalize(d, feature_level="3_0")
    check_regions(found, feature_level="3_0")
    kinds = [type(operator).__name__ for operator in found.operators]
    assert kinds == ["JoinOperatorDesc", "SplitOperatorDesc", "JoinOperatorDesc"]
    assert found.output_map == ((0, 1), (-1,), (-1, 2))
    (_, copy, last) = found.bindings
    end = 2 * (2**31 - 3)
    early = end - copy[0].offset
    assert copy[0].buffer == last[-1].buffer == "output"
    assert copy[0].offset == last[-1].offset == end // 16 * 16
    assert found.operators[1].input_tensor.sizes[-1] == early == found.operators[2].input_tensors[0].sizes[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "operators"), [(split, 1251), (join, 2501)], ids=["split", "join"]
)  # every other operator of a join reads back
def test_thousands_of_operators_of_thousands_of_parts(make, operators):
    """Looking at every part for every operator would take minutes."""
    d = make(T.UINT8, (5000, 2**30 + 1), 0, (1,) * 5000)
    assert len(check_arithmetic(d, 1).operators) == operators


@pytest.mark.parametrize(
    ("d", "words"),
    [
        (split(T.UINT8, (2**16, 2**16, 2**16 + 1), 0, (1, 2**16 - 1)), "several operators would be more than 4096"),
        (split(T.FLOAT32, (2**13, 2**32 - 1), 0, (2**13,)), "several operators would be more than 4096"),
        (join(T.FLOAT32, (2**13, 2**32 - 1), 0, (1,) * 2**13), "several operators would be more than 4096"),
        # 257 operators of 1,025 tensors each
        (
            split(T.FLOAT32, (2**20, 2**20), 1, (2**10,) * 2**10),
            "tensors of several operators would be more than 262144",
        ),
    ],
    ids=["elements", "copy", "join", "tensors"],
)
def test_more_operators_than_anyone_wants(d, words):
    found = dml.legalize(d, feature_level="3_0")
    assert not found.ok
    assert f"; {words}" in found.report.diagnostics[-1].message


def test_a_broadcast_input_of_many_elements():
    whole = dml.BufferTensorDesc(T.UINT8, (65536, 65536), strides=(0, 1))
    parts = [dml.BufferTensorDesc(T.UINT8, (65536, n)) for n in (65533, 3)]
    found = dml.legalize(dml.SplitOperatorDesc(whole, parts, 1), feature_level="3_0")
    check_regions(found, feature_level="3_0")
    assert [regions[0].offset for regions in found.bindings] == [0, 0]
    assert [tensors(operator)[0][0].sizes for operator in found.operators] == [(65520, 65536), (16, 65536)]


def test_a_total_beyond_the_bound_shrinks():
    d = split(T.FLOAT32, (1, 1, 6, 2), 2, (2, 4), total_tensor_size_in_bytes=2**35)
    found = prove_arithmetic(d)
    assert found.operators[0].input_tensor.total_tensor_size_in_bytes == 48
    assert found.steps == ("TotalTensorSizeInBytes becomes the implied size if it was too large",)


def prove_arithmetic(d):
    found = dml.legalize(d, feature_level="2_1")
    check_regions(found, feature_level="2_1")
    return found


STRIDED = (3000, 900, 252, 72, 20, 3)
"""Of (2, 3, 2, 3, 2, 3): no two dimensions fold; steps of the outer four are multiples of 16 bytes."""
ODD = (3001, 901, 253, 73, 21, 3)


def copy_of(strides, axis, lengths):
    sizes = (2, 3, 2, 3, 2, 3)
    whole = dml.BufferTensorDesc(T.FLOAT32, sizes, strides=strides)
    return dml.SplitOperatorDesc(
        whole, [dml.BufferTensorDesc(T.FLOAT32, (*sizes[:axis], n, *sizes[axis + 1 :])) for n in lengths], axis
    )


def test_too_many_dimensions_with_aligned_steps():
    found = prove(copy_of(STRIDED, 1, (1, 2)), feature_level="2_1")
    assert found.temporary_bytes == 0
    assert len(found.operators) > 1
    assert "operators one after another" in found.steps[0]


@pytest.mark.parametrize(("axis", "lengths"), [(0, (1, 1)), (2, (2,)), (4, (1, 1)), (5, (1, 2))])
def test_too_many_dimensions_without(axis, lengths):
    found = prove(copy_of(ODD, axis, lengths), feature_level="2_1")
    assert found.temporary_bytes > 0
    assert 2 <= len(found.operators) <= 3


def test_inputs_of_a_join_are_packed_too():
    part = dml.BufferTensorDesc(T.FLOAT32, (2, 3, 2, 3, 2, 3), strides=ODD)
    d = dml.JoinOperatorDesc([part, part], dml.BufferTensorDesc(T.FLOAT32, (2, 3, 2, 3, 2, 6)), 5)
    found = prove(d, feature_level="2_1")
    assert found.temporary_bytes > 0
    assert isinstance(found.operators[0], dml.SplitOperatorDesc)
    assert isinstance(found.operators[-1], dml.JoinOperatorDesc)
    assert found.output_map[-1] == (-1, -1)


SIX = (2, 3, 2, 3, 2, 3)


def strided(strides, sizes=SIX):
    return dml.BufferTensorDesc(T.FLOAT32, sizes, strides=strides)


@pytest.mark.parametrize("level", ["1_0", "2_1"])
@pytest.mark.parametrize(
    ("d", "operators"),
    [
        (dml.SplitOperatorDesc(strided(None), [strided(ODD)], 0), 4),
        (dml.SplitOperatorDesc(strided(ODD), [strided((1, 3, 11, 37, 120, 351))], 0), 8),
        (dml.SplitOperatorDesc(strided(None), [strided((1, 2, 6, 12, 36, 72))], 0), 5),
        (dml.SplitOperatorDesc(strided(None, (*SIX[:5], 6)), [strided(ODD)] * 2, 5), 7),
        (dml.SplitOperatorDesc(strided((0, 9, 0, 3, 0, 1)), [strided(None)], 5), 3),
        (dml.JoinOperatorDesc([strided(None)] * 2, strided((3001, 901, 400, 150, 43, 7), (*SIX[:5], 6)), 5), 4),
        (dml.JoinOperatorDesc([strided(ODD), strided(None)], strided(ODD, (4, *SIX[1:])), 0), 6),
    ],
    ids=["gaps", "both", "turned", "two", "broadcast", "join", "join-both"],
)
def test_outputs_are_brought_to_their_place(d, operators, level):
    """The bytes between their elements stay: `prove` has sentinels there."""
    found = prove(d, feature_level=level)
    assert found.ok
    assert found.temporary_bytes > 0
    assert len(found.operators) == operators


@pytest.mark.slow
@settings(max_examples=300)
@given(faultless_operator(), st.sampled_from(["2_1", "3_0", "3_1"]))
def test_every_layout_has_a_rewriting(d, level):
    """Elements of 8 bits and more, in outputs that do not interleave: whatever the dimensions and strides."""
    assume(ELEMENT_BITS[tensors(d)[0][0].data_type] >= 8)
    found = prove(d, feature_level=level)
    event(f"{min(len(found.operators), 5)} operators, temporary: {found.temporary_bytes > 0}")
    assert found.ok


def test_outputs_in_each_others_gaps():
    """Two outputs whose elements alternate: what is written last must not bring back what stood there before."""
    sizes = (*SIX[:5], 2)
    steps = (3001, 901, 253, 73, 21, 4)
    d = dml.SplitOperatorDesc(strided(None, (*SIX[:5], 4)), [strided(steps, sizes)] * 2, 5)
    found = prove(d, feature_level="2_1")
    assert found.temporary_bytes > 0
    data = np.arange(math.prod(SIX[:5]) * 4, dtype=np.float32).reshape(*SIX[:5], 4)
    block = np.full(8000, -1, np.float32)
    strides = [4 * step for step in steps]
    out = [np.ndarray(sizes, np.float32, block, 8 * i, strides) for i in range(2)]
    found.dispatch(data, out)
    assert (out[0] == data[..., :2]).all()
    assert (out[1] == data[..., 2:]).all()
    assert (block >= 0).sum() == data.size


def test_an_output_whose_elements_interleave():
    d = dml.SplitOperatorDesc(strided(None), [strided((3001, 901, 253, 73, 3, 2))], 0)
    found = prove(d, feature_level="2_1")
    assert not found.ok
    message = found.report.diagnostics[-1].message
    assert "6 dimensions are left after folding, but it accepts 4" in message
    assert message.endswith("; a temporary buffer does not help, because the elements of OutputTensors[0] interleave")


def test_an_output_that_interleaves_beside_one_that_does_not():
    """The first one's first four dimensions fold, so that it can be written as it is; the second one has six."""
    parts = [strided((162, 54, 27, 9, 3, 2)), strided(ODD)]
    found = prove(dml.SplitOperatorDesc(strided(None, (*SIX[:5], 6)), parts, 5), feature_level="2_1")
    assert found.ok
    assert found.temporary_bytes > 0


def test_a_temporary_buffer_rather_than_hundreds_of_operators():
    """Each of the first dimension's steps could be bound by itself."""
    whole = strided((3000, 900, 252, 72, 20, 3), (500, *SIX[1:]))
    d = dml.SplitOperatorDesc(whole, [strided(None, (500, *SIX[1:]))], 0)
    found = prove(d, feature_level="2_1")
    assert len(found.operators) == 2
    assert found.temporary_bytes > 0


def test_a_stride_that_fits_no_member_after_doubling():
    """2^31 + 4 elements of 8 bytes are 2^32 + 8 elements of 4: the dimension is cut where it can be bound."""
    stride = 2**31 + 4
    whole = dml.BufferTensorDesc(T.INT64, (2, 4), strides=(stride, 1))
    d = dml.SplitOperatorDesc(whole, [dml.BufferTensorDesc(T.INT64, (2, 2))] * 2, 1)
    assert dml.validate(d, feature_level="4_1").ok
    found = dml.legalize(d, feature_level="3_0")
    check_regions(found, feature_level="3_0")
    assert [regions[0].offset for regions in found.bindings] == [0, stride * 8]
    assert packed_strides((2, 4)) == (4, 1)
