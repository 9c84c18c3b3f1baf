"""Where an array is shorter than is said of it, the HRESULT is known if a release refuses before it reads so far."""

from dataclasses import replace

import pytest

import dmlsplit as dml

SIZES, STRIDES = (1, 1, 6, 2), (12, 12, 2, 1)
WHOLE = dml.BufferTensorDesc(1, SIZES, strides=STRIDES, total_tensor_size_in_bytes=48)
SPLIT = dml.SplitOperatorDesc.from_lengths(WHOLE, 2, (2, 4))
JOIN = dml.JoinOperatorDesc.from_lengths(WHOLE, 2, (2, 4))
SHORT_SIZES = replace(WHOLE, sizes=SIZES[:3])
SHORT_STRIDES = replace(WHOLE, strides=STRIDES[:3])
OLDEST, NEWEST = "1.0.200610", "1.15.4"


def part(desc, index, **members):
    parts = list(desc.output_tensors if isinstance(desc, dml.SplitOperatorDesc) else desc.input_tensors)
    parts[index] = replace(parts[index].desc, total_tensor_size_in_bytes=1000, **members)
    name = "output_tensors" if isinstance(desc, dml.SplitOperatorDesc) else "input_tensors"
    return replace(desc, **{name: parts})


def known(desc, release):
    return dml.validate(desc, directml=release).hresult is not None


@pytest.mark.parametrize(
    ("desc", "releases"),
    [
        # The axis is looked at first, a data type before the arrays of its tensor.
        (replace(SPLIT, output_count=3), ""),
        (replace(SPLIT, output_count=3, axis=4), "all"),
        (replace(SPLIT, input_tensor=SHORT_SIZES), ""),
        (replace(SPLIT, input_tensor=replace(SHORT_SIZES, data_type=13)), "but the oldest"),
        (replace(SPLIT, input_tensor=replace(SHORT_STRIDES, data_type=13)), "all"),
        (replace(SPLIT, input_tensor=dml.TensorDesc(0, SHORT_STRIDES)), "all"),
        # What comes behind the arrays does not help.
        (replace(SPLIT, input_tensor=replace(SHORT_STRIDES, guaranteed_base_offset_alignment=3)), ""),
        # Sizes are multiplied one by one.
        (replace(SPLIT, input_tensor=replace(WHOLE, sizes=(2**16, 2**16), dimension_count=4)), "all"),
        (replace(SPLIT, input_tensor=replace(WHOLE, sizes=(2**16, 2**16 - 1), dimension_count=4)), "the oldest"),
        # The input comes before the outputs, an output before the next one.
        (part(replace(SPLIT, input_tensor=replace(WHOLE, guaranteed_base_offset_alignment=3)), 1, strides=(1,)), "all"),
        (part(part(SPLIT, 0, flags=1), 1, strides=(1,)), "all"),
        (part(part(SPLIT, 0, strides=(1,)), 1, flags=1), ""),
        (part(part(SPLIT, 0, data_type=3), 1, strides=(1,)), ""),
        # A join compares sizes before all, an input with the output before the next input.
        (part(replace(JOIN, axis=3), 1, strides=(1,)), "all"),
        (part(part(JOIN, 0, data_type=3), 1, strides=(1,)), "but the oldest"),
        (replace(part(JOIN, 1, flags=2), output_tensor=SHORT_STRIDES), "the oldest"),
        # Up to level 3_0 the number of dimensions of every tensor comes before their arrays.
        (
            replace(
                part(JOIN, 0, strides=(1,)),
                output_tensor=dml.BufferTensorDesc(1, (*SIZES, 1, 1), strides=(*STRIDES, 1, 1)),
            ),
            "the oldest",
        ),
        (replace(JOIN, input_count=3, axis=3), "all"),
        (replace(JOIN, input_count=3), ""),
    ],
)
def test_what_is_looked_at_first(desc, releases):
    expected = {"all": (True, True), "": (False, False), "the oldest": (True, False), "but the oldest": (False, True)}
    assert (known(desc, OLDEST), known(desc, NEWEST)) == expected[releases]
    assert not dml.validate(desc, directml=NEWEST).ok


def test_an_input_equal_to_one_that_ends_the_process_is_not_taken_for_sound():
    part = replace(WHOLE, sizes=(1,), dimension_count=4)
    report = dml.validate(dml.JoinOperatorDesc([part, part], WHOLE, 2), directml="1.5.0")
    assert {d.rule for d in report.diagnostics} >= {"join/crash", "tensor/sizes-too-few"}
