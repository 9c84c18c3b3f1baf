"""How a buffer is read: as the tensor itself, or as raw memory that the descriptor lays out.

Plan: each row is a tensor, a buffer and the reading of it; rows of one tensor stand on both sides of each boundary
(shape, dtype, bytes, contiguity, strides of 0). Readings: ELEMENTS, each where the array has it; RAW, each where the
strides lead; SAME, where both name the same bytes; else the words of the refusal. Each row is tried as an input, and as
an output where a descriptor may write it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import dmlsplit as dml

T = dml.TensorDataType
ELEMENTS, RAW, SAME = "elements", "raw memory", "the same"
AMBIGUOUS = "may be the tensor's elements, or raw memory"


def array(count, dtype="u1", shape=None):
    """An array of elements that are all different."""
    return np.arange(1, count + 1, dtype="u1").astype(dtype).reshape(shape or (count,))


def view(count):
    return memoryview(bytearray(range(1, count + 1)))


def buffer(count):
    made = dml.Buffer(count)
    made.array[:] = array(count)
    return made


@dataclass
class Case:
    tensor: tuple[T, tuple[int, ...], tuple[int, ...] | None]
    name: str
    make: Callable[[], object]
    reading: str

    def __str__(self):
        data_type, sizes, strides = self.tensor
        return f"{data_type.name} {sizes} {strides}, {self.name}"


def cases(tensor, **rows):
    return [Case(tensor, name.replace("_", " "), *row) for name, row in rows.items()]


CASES = [
    *cases(
        (T.UINT8, (8,), None),
        array_of_8=(lambda: array(8), SAME),
        array_of_7=(lambda: array(7), "7 bytes of raw memory were given, but TotalTensorSizeInBytes is 8"),
        array_of_9=(lambda: array(9), RAW),
        memory_of_8=(lambda: view(8), RAW),
        memory_of_7=(lambda: view(7), "7 bytes of raw memory"),
        buffer_of_8=(lambda: buffer(8), RAW),
        every_other_byte_of_16=(lambda: array(16)[::2], ELEMENTS),
        every_other_byte_of_18=(lambda: array(18)[::2], "raw memory must be contiguous"),
        int8_array_of_8=(lambda: array(8, "i1"), "the array has dtype int8, uint8 is expected"),
        int8_array_of_9=(lambda: array(9, "i1"), r"an array of shape \(9,\) was given, but Sizes are \(8,\)"),
        masked_array=(lambda: np.ma.masked_array(array(8)), "a masked array"),
    ),
    *cases(
        (T.UINT8, (9,), None),
        array_of_9=(lambda: array(9), ELEMENTS),
        memory_of_9=(lambda: view(9), "9 bytes of raw memory were given, but TotalTensorSizeInBytes is 12"),
        array_of_11=(lambda: array(11), "11 bytes of raw memory"),
        array_of_12=(lambda: array(12), RAW),
    ),
    *cases(
        (T.UINT8, (8,), (0,)),
        array_of_8=(lambda: array(8), AMBIGUOUS),
        array_of_7=(lambda: array(7), RAW),
        array_of_9=(lambda: array(9), RAW),
        array_of_3=(lambda: array(3), "3 bytes of raw memory"),
        memory_of_8=(lambda: view(8), RAW),
        buffer_of_8=(lambda: buffer(8), RAW),
        every_other_byte_of_16=(lambda: array(16)[::2], ELEMENTS),
        broadcast=(lambda: np.broadcast_to(array(1), (8,)), ELEMENTS),
    ),
    *cases((T.UINT8, (4,), (0,)), array_of_4=(lambda: array(4), AMBIGUOUS), memory_of_4=(lambda: view(4), RAW)),
    *cases((T.UINT8, (3,), (0,)), array_of_3=(lambda: array(3), ELEMENTS), array_of_4=(lambda: array(4), RAW)),
    *cases((T.UINT8, (1,), (0,)), array_of_1=(lambda: array(1), ELEMENTS), array_of_4=(lambda: array(4), RAW)),
    *cases(
        (T.UINT8, (8,), (2,)),
        every_other_byte_of_16=(lambda: array(16)[::2], ELEMENTS),
        array_of_15=(lambda: array(15), "15 bytes of raw memory"),
        array_of_16=(lambda: array(16), RAW),
    ),
    *cases(
        (T.INT8, (8,), None),
        array_of_8=(lambda: array(8), RAW),
        array_of_7=(lambda: array(7), "7 bytes of raw memory"),
        array_of_9=(lambda: array(9), RAW),
        int8_array_of_8=(lambda: array(8, "i1"), SAME),
        every_other_byte_of_16=(lambda: array(16)[::2], "the array has dtype uint8, int8 is expected"),
    ),
    *cases(
        (T.INT8, (9,), None),
        array_of_9=(lambda: array(9), "the array has dtype uint8, int8 is expected"),
        array_of_12=(lambda: array(12), RAW),
        int8_array_of_9=(lambda: array(9, "i1"), ELEMENTS),
    ),
    *cases(
        (T.INT8, (8,), (0,)),
        array_of_8=(lambda: array(8), AMBIGUOUS),
        array_of_9=(lambda: array(9), RAW),
        int8_array_of_8=(lambda: array(8, "i1"), ELEMENTS),
    ),
    *cases(
        (T.FLOAT32, (8,), None),
        array_of_8=(lambda: array(8), "the array has dtype uint8, float32 is expected"),
        array_of_31=(lambda: array(31), "31 bytes of raw memory"),
        array_of_32=(lambda: array(32), RAW),
        float_array_of_8=(lambda: array(8, "f4"), SAME),
        integer_array_of_8=(lambda: array(8, "u4"), "the array has dtype uint32"),
    ),
    *cases(
        (T.FLOAT32, (4,), (0,)),
        array_of_4=(lambda: array(4), AMBIGUOUS),
        array_of_5=(lambda: array(5), RAW),
        float_array_of_4=(lambda: array(4, "f4"), ELEMENTS),
    ),
    *cases(
        (T.UINT8, (2, 4), None),
        array_of_8=(lambda: array(8), RAW),
        array_of_the_shape=(lambda: array(8, shape=(2, 4)), SAME),
        array_of_another_shape=(lambda: array(8, shape=(4, 2)), r"shape \(4, 2\) was given, but Sizes are \(2, 4\)"),
    ),
    *cases(
        (T.UINT8, (2, 4), (0, 1)),
        array_of_8=(lambda: array(8), RAW),
        array_of_the_shape=(lambda: array(8, shape=(2, 4)), ELEMENTS),
    ),
]


def readings(case, value):
    """The elements of the tensor, by each reading that the case names."""
    data_type, sizes, strides = case.tensor
    dtype = np.dtype(data_type.name.lower())
    if case.reading in (ELEMENTS, SAME):
        yield np.array(value).tolist()
    if case.reading in (RAW, SAME):
        steps = None if strides is None else [step * dtype.itemsize for step in strides]
        yield np.ndarray(sizes, dtype, bytes(np.asarray(value)), strides=steps).tolist()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_as_an_input(case):
    data_type, sizes, strides = case.tensor
    whole = dml.BufferTensorDesc(data_type, sizes, strides=strides)
    op = dml.compile(dml.SplitOperatorDesc(whole, [dml.BufferTensorDesc(data_type, sizes)], 0))
    value = case.make()
    if case.reading in (ELEMENTS, RAW, SAME):
        (out,) = op(value)
        assert all(out.tolist() == expected for expected in readings(case, value))
    else:
        with pytest.raises(dml.BindingError, match=f"^InputTensor: .*{case.reading}"):
            op(value)


@pytest.mark.parametrize("case", [case for case in CASES if 0 not in (case.tensor[2] or ())], ids=str)
def test_as_an_output(case):
    data_type, sizes, strides = case.tensor
    part = dml.BufferTensorDesc(data_type, sizes, strides=strides)
    op = dml.compile(dml.SplitOperatorDesc(dml.BufferTensorDesc(data_type, sizes), [part], 0))
    source = np.arange(101, 101 + np.prod(sizes), dtype="u1").astype(data_type.name.lower()).reshape(sizes)
    value = case.make()
    refusal = case.reading
    if case.reading == ELEMENTS and value.strides != (strides or (1,)):
        refusal = "an output must have the layout of the descriptor"
    if refusal in (ELEMENTS, RAW, SAME):
        op.dispatch(source, [value])
        assert all(written == source.tolist() for written in readings(case, value))
    else:
        with pytest.raises(dml.BindingError, match=rf"^OutputTensors\[0\]: .*{refusal}"):
            op.dispatch(source, [value])


def test_the_refusal_says_how_to_state_each_reading():
    whole = dml.BufferTensorDesc(T.UINT8, (8,), strides=(0,))
    op = dml.compile(dml.SplitOperatorDesc(whole, [dml.BufferTensorDesc(T.UINT8, (8,))], 0))
    with pytest.raises(dml.BindingError) as refused:
        op(array(8))
    assert "raw memory as a memoryview or a dml.Buffer" in str(refused.value)
    assert "elements as numpy.broadcast_to(element, (8,)), of dtype uint8" in str(refused.value)
    assert op(memoryview(array(8)))[0].tolist() == [1] * 8
    assert op(np.broadcast_to(np.uint8(5), (8,)))[0].tolist() == [5] * 8


def test_an_array_without_elements_is_read_either_way():
    d = dml.SplitOperatorDesc(dml.BufferTensorDesc(T.INT8, (0,), strides=(0,)), [dml.BufferTensorDesc(T.INT8, (0,))], 0)
    found = dml.legalize(d)
    assert found.execute(array(0))[0].shape == (0,)
