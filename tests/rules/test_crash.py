"""What ends the process of a release, before it has looked at anything else.

Plan: each null pointer that a build follows, by the newest build and, where the oldest follows more, by that one.
"""

from dataclasses import replace

import pytest

import dmlsplit as dml
from dmlsplit.rules import crash
from tests.rules.judging import buf, case, check, cut, each, glue, rules_in, with_part, with_whole

NEWEST = {"directml": "1.15.4"}
OLDEST = {"directml": "tensorflow-directml-1.15.3.dev200619"}
NO_DESC = dml.TensorDesc(1, None)
NO_SIZES = buf(None, dimension_count=4)

CASES = {
    "split/crash": {
        "no input": case(with_whole(cut(), None), cut(), **NEWEST),
        "no description of the input": case(with_whole(cut(), NO_DESC), cut(), **NEWEST),
        "no outputs": case(dml.SplitOperatorDesc(buf(), None, 1, output_count=2), cut(), **OLDEST),
        "no description of an output": case(with_part(cut(), 1, NO_DESC), cut(), **OLDEST),
        "no sizes of an output": case(with_part(cut(), 1, NO_SIZES), cut(), **OLDEST),
        "no sizes of the input": case(with_whole(cut(), NO_SIZES), cut(), **OLDEST),
    },
    "join/crash": {
        "no output": case(with_whole(glue(), None), glue(), **NEWEST),
        "no inputs": case(dml.JoinOperatorDesc(None, buf(), 1, input_count=2), glue(), **NEWEST),
        "no inputs of a count of 1": case(dml.JoinOperatorDesc(None, buf(), 1, input_count=1), glue(), **NEWEST),
        "no description of an input": case(with_part(glue(), 0, NO_DESC), glue(), **NEWEST),
        "no sizes of an input": case(with_part(glue(), 0, NO_SIZES), glue(), **NEWEST),
        "no sizes of the output": case(with_whole(glue(), NO_SIZES), glue(), **NEWEST),
    },
}


@each(CASES)
def test_a_fault_is_found_alone_and_its_twin_is_legal(rule, case):
    check(rule, case)


def test_every_rule_of_the_module_has_cases():
    assert set(CASES) == rules_in(crash)


SHORT = buf((2, 1, 4, 5), strides=(1, 1), dimension_count=4, total_tensor_size_in_bytes=80)
JOINED, CUT = with_part(glue(), 0, SHORT), with_part(cut(), 0, SHORT)
REFUSED_FIRST = {
    "a join's axis is beyond": replace(JOINED, axis=4),
    "a join's sizes differ": with_whole(JOINED, buf((2, 3, 4, 6))),
    "a join's sum differs": with_whole(JOINED, buf((2, 4, 4, 5))),
    "a join has no inputs": replace(glue(), input_count=0, output_tensor=SHORT),
    "a join has no inputs and no output": replace(glue(), input_count=0, output_tensor=None),
    "a split's axis is beyond": replace(CUT, axis=8),
    "a split has no outputs": replace(cut(), output_count=0, input_tensor=SHORT),
}


@pytest.mark.parametrize("desc", REFUSED_FIRST.values(), ids=REFUSED_FIRST)
def test_what_is_refused_before_arrays_are_read_has_its_hresult(desc):
    """Of an array that ends too early nothing else is known: a build that reads past it may do anything."""
    assert dml.validate(desc, **NEWEST).hresult == dml.HResult.E_INVALIDARG


@pytest.mark.parametrize("desc", [JOINED, CUT, with_whole(CUT, buf((2, 4, 4, 5)))])
def test_what_is_refused_behind_them_has_none(desc):
    assert dml.validate(desc, **NEWEST).hresult is None


@pytest.mark.parametrize(("elements", "hresult"), [(2**31 - 1, None), (2**31, dml.HResult.E_INVALIDARG)])
def test_a_join_is_refused_by_an_inputs_elements_before_the_next_is_read(elements, hresult):
    """The builds' bound: as a signed number of 32 bits, 2^31 is below 0."""
    large = buf((elements, 1, 1, 1), dml.TensorDataType.UINT8)
    desc = dml.JoinOperatorDesc([large, NO_DESC], buf((elements, 2, 1, 1), dml.TensorDataType.UINT8), 1)
    assert dml.validate(desc, **NEWEST).hresult == hresult


@pytest.mark.parametrize(
    ("part", "inputs", "hresult"),
    [((2**30, 1), 3, None), ((2**16 + 1, 2**16 // 3), 3, None), ((2**30, 1), 4, dml.HResult.E_INVALIDARG)],
)
def test_a_joins_output_is_refused_by_its_sizes_before_its_strides_are_read(part, inputs, hresult):
    """2^32 elements are too many, 2^32-1 are not, and the strides end too early; by a build that looks at the output
    last, and by one that looks at it first."""
    rows, columns = part
    parts = [buf((rows, columns, 1, 1), dml.TensorDataType.UINT8)] * inputs
    sizes = rows, columns * inputs, 1, 1
    output = buf(sizes, dml.TensorDataType.UINT8, strides=(sizes[1], 1), dimension_count=4)
    desc = dml.JoinOperatorDesc(parts, output, 1)
    assert [dml.validate(desc, directml=release).hresult for release in ("1.4.0", "1.15.4")] == [hresult] * 2


@pytest.mark.parametrize(
    ("differs", "release", "hresult"),
    [
        ({"data_type": dml.TensorDataType.FLOAT32}, "1.15.4", dml.HResult.E_INVALIDARG),
        ({"sizes": (2, 1, 4)}, "1.15.4", dml.HResult.E_INVALIDARG),
        ({"data_type": dml.TensorDataType.FLOAT32}, "1.4.0", None),
    ],
)
def test_a_join_is_refused_by_an_input_that_is_unlike_the_output_before_the_next_is_read(differs, release, hresult):
    """By its type alone, or by its number of dimensions alone; a build that looks at the output last reads all."""
    unlike = buf(**{"sizes": (2, 1, 4, 5), **differs})
    short = buf((2, 2, 4, 5), strides=(1, 1), dimension_count=4, total_tensor_size_in_bytes=160)
    desc = with_part(with_part(glue(), 0, unlike), 1, short)
    assert dml.validate(desc, directml=release).hresult == hresult


def test_a_join_is_refused_by_a_sum_of_more_than_32_bits_before_arrays_are_read():
    byte = dml.TensorDataType.UINT8
    parts = [buf((length, 1, 1, 1), byte) for length in (2**31 - 1, 2**31 - 1, 2)]
    short = buf((1, 1, 1, 1), byte, strides=(1, 1), dimension_count=4, total_tensor_size_in_bytes=4)
    desc = dml.JoinOperatorDesc([*parts, short], buf((1, 1, 1, 1), byte), 0)
    assert dml.validate(desc, **NEWEST).hresult == dml.HResult.E_INVALIDARG
