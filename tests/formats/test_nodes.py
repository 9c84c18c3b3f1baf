"""SplitNode: the way from a framework's node to a descriptor and to arrays, whatever framework it came from."""

import numpy as np
import pytest

import dmlsplit as dml
from dmlsplit.formats.element_types import ELEMENT_TYPES
from dmlsplit.rules import RULES
from dmlsplit.system.errors import InputError
from tests.formats.split_nodes import split_node


def test_the_descriptor_is_packed_and_unlimited():
    d = split_node((1,) * 9 + (6,), 9, (0, 6)).descriptor()
    assert d.input_tensor.sizes == (1,) * 9 + (6,)
    assert [t.sizes[-1] for t in d.output_tensors] == [0, 6]


@pytest.mark.parametrize(("element", "count"), [("complex64", 2), ("complex128", 4)])
def test_a_complex_element_is_an_innermost_dimension(element, count):
    d = split_node(element=element).descriptor()
    assert d.input_tensor.sizes == (2, 6, count)
    assert d.input_tensor.data_type == dml.TensorDataType.UINT32
    assert d.axis == 1


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"element": "string"}, "node/type-not-lowered"),
        ({"element": "int4"}, "node/type-not-lowered"),
        ({"element": "unheard"}, "node/shape-unknown"),
        ({"shape": None}, "node/shape-unknown"),
        ({"shape": ("batch", 6)}, "node/shape-unknown"),
        ({"lengths": (1, None, 3)}, "node/shape-unknown"),
        ({"shape": (2, 2**32), "lengths": (2**31, 2**31)}, "node/not-lowered"),
        ({"diagnostics": [RULES["input/malformed"].diagnostic("", "wrong")]}, "node/not-lowered"),
    ],
)
def test_what_stands_in_the_way_has_a_rule(changed, rule):
    assert split_node(**changed).obstacle().rule == rule
    with pytest.raises(InputError, match=r"^n: "):
        split_node(**changed).descriptor()
    assert not split_node(**changed).legalize("6_4").ok


def test_execution_takes_any_fixed_size_type():
    for element in ELEMENT_TYPES.values():
        if element.itemsize == 0 or not hasattr(np, element.name):
            continue
        array = np.arange(12 * element.itemsize, dtype=np.uint8).view(element.dtype()).reshape(2, 6)[:, ::-1]
        parts = split_node(element=element.name).execute(array)
        assert [part.dtype for part in parts] == [array.dtype] * 3
        expected = np.split(array.copy().view(f"V{element.itemsize}"), (1, 3), axis=1)
        assert [part.tobytes() for part in parts] == [part.tobytes() for part in expected]


def test_execution_fills_in_what_the_array_says():
    array = np.arange(12, dtype=np.float32).reshape(2, 6)
    parts = split_node(shape=("batch", "width"), lengths=(1, 2, None)).execute(array)
    assert [part.shape for part in parts] == [(2, 1), (2, 2), (2, 3)]
    with pytest.raises(InputError, match="do not add up"):
        split_node(shape=(2, None), lengths=(5, 4, None)).execute(array)


@pytest.mark.parametrize(
    ("changed", "array", "message"),
    [
        ({}, np.zeros((2, 6), np.float16), "float16"),
        ({}, np.zeros((2, 5), np.float32), r"\[2, 6\]"),
        ({}, np.zeros(6, np.float32), r"\[2, 6\]"),
        ({"element": "string"}, np.zeros((2, 6), np.float32), "string"),
        ({"lengths": None}, np.zeros((2, 6), np.float32), "lengths"),
    ],
)
def test_execution_refuses_what_does_not_fit(changed, array, message):
    with pytest.raises(InputError, match=message):
        split_node(**changed).execute(array)
