"""Integers of callers and of users: what is none is refused by name."""

import numpy as np
import pytest

import dmlsplit as dml
from dmlsplit.native.threads import thread_count
from dmlsplit.system.integers import parsed_integer

X = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2))
ARRAY = np.arange(12).reshape(6, 2)


@pytest.mark.parametrize("one", [1, np.int64(1), np.array(1), np.array(1, np.uint8), True], ids=repr)
def test_what_is_an_index_is_an_integer(one):
    halves = [ARRAY[:, :1].tolist(), ARRAY[:, 1:].tolist()]
    assert [part.tolist() for part in dml.split(ARRAY, one, [one, one])] == halves
    assert [part.tolist() for part in dml.split(ARRAY, 1, sections=one + one)] == halves
    assert dml.join(dml.split(ARRAY, 1, sections=2), one).tolist() == ARRAY.tolist()
    assert dml.split(ARRAY.T, one, np.array([2, 4]))[0].shape == (2, 2)
    assert dml.SplitOperatorDesc.from_lengths(X, np.array(3), [one, one]).axis == 3
    assert dml.calc_buffer_tensor_size(one, [one, one]) == 4
    assert thread_count(one, 1) == 1


NO_INTEGERS = [np.array([0]), np.array([[1]]), 1.0, np.float32(1), np.array(1.0), "1", [1], {}]
if not hasattr(np.True_, "__index__"):  # it was an index to numpy 1
    NO_INTEGERS.append(np.True_)


@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("axis", lambda value: dml.split(ARRAY, value, [1, 5])),
        ("sections", lambda value: dml.split(ARRAY, 0, sections=value)),
        ("lengths[1]", lambda value: dml.split(ARRAY, 0, [1, value])),
        ("axis", lambda value: dml.join([ARRAY], value)),
        ("Axis", lambda value: dml.SplitOperatorDesc.from_lengths(X, value, [1])),
        ("lengths[0]", lambda value: dml.JoinOperatorDesc.from_lengths(X, 2, [value])),
        ("Axis", lambda value: dml.SplitOperatorDesc(X, [X], value)),
        ("Sizes[0]", lambda value: dml.BufferTensorDesc(1, [value])),
        ("sizes[0]", lambda value: dml.calc_buffer_tensor_size(1, [value])),
        ("data_type", lambda value: dml.calc_buffer_tensor_size(value, [1])),
        ("size_in_bytes", dml.Buffer),
    ],
)
def test_what_is_no_integer_is_named(name, call, value):
    with pytest.raises(TypeError) as info:
        call(value)
    assert str(info.value).startswith(f"{name}: ")
    assert "is not an integer" in str(info.value)


@pytest.mark.parametrize("value", [np.array(3), 3, 1.5, "12", b"12", {1, 2}, frozenset([3])], ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("lengths", lambda value: dml.split(ARRAY, 0, value)),
        ("lengths", lambda value: dml.SplitOperatorDesc.from_lengths(X, 2, value)),
        ("Sizes", lambda value: dml.BufferTensorDesc(1, value)),
        ("Strides", lambda value: dml.BufferTensorDesc(1, [1], strides=value)),
        ("sizes", lambda value: dml.calc_buffer_tensor_size(1, value)),
        ("strides", lambda value: dml.calc_buffer_tensor_size(1, [1], value)),
    ],
)
def test_what_is_no_sequence_is_named(name, call, value):
    with pytest.raises(TypeError) as info:
        call(value)
    assert str(info.value).startswith(f"{name}: ")
    assert str(info.value).endswith("is not a sequence of integers")


@pytest.mark.parametrize("value", [np.array(3), 3, 1.5], ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [("arrays", lambda value: dml.join(value, 0)), ("OutputTensors", lambda value: dml.SplitOperatorDesc(X, value, 2))],
)
def test_what_is_no_sequence_of_tensors_is_named(name, call, value):
    with pytest.raises(TypeError, match=f"^{name}: .* is not a sequence of "):
        call(value)


@pytest.mark.parametrize("value", [np.array([[1, 2], [3, 4]]), np.float32(2.5), "4_0", "\u0664", "+4"], ids=repr)
def test_numbers_of_threads(value):
    with pytest.raises(ValueError, match="is neither a positive number nor 'auto'"):
        thread_count(value, 1)


def test_an_array_names_no_operator():
    with pytest.raises(ValueError, match="is not an operator"):
        dml.tensor_support(np.array(62), "3_0")


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("-3", -3), (" 12 ", 12), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_typed(text, number):
    assert parsed_integer(text) == number


@pytest.mark.parametrize(
    "text",
    ["", " ", "-", "--1", "+4", "4_0", "4 0", "1.0", "1e3", "0x10", "\u0664", "\uff14", "\u00b2", "4\n", "9" * 19],
)
def test_not_an_integer(text):
    with pytest.raises(ValueError, match="is not an integer"):
        parsed_integer(text)
