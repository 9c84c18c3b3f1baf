"""Constants that are computed of others."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.models import folding
from dmlsplit.models.folding import Constant, fold


def folded(op, *arrays, opset=17, **attributes):
    node = helper.make_node(op, [f"i{i}" for i in range(len(arrays))], ["o"], **attributes)
    found = fold(node, [Constant.of(np.asarray(array)) for array in arrays], opset, no_external_data)
    return None if found is None else (found.array.dtype.name, found.array.shape, found.array.tolist())


@pytest.mark.parametrize(
    ("op", "numbers", "expected"),
    [
        ("Sqrt", [np.float32(16)], 4),
        ("Reciprocal", [np.float32(4)], 0.25),
        ("Pow", [np.float32(4), np.float32(-0.5)], 0.5),
    ],
)
def test_the_numbers_that_scale_an_attention(op, numbers, expected):
    assert folded(op, *numbers) == ("float32", (), expected)


def test_equal_nodes_are_computed_once(monkeypatch):
    computed = []
    monkeypatch.setattr(folding, "_computed", lambda *given: computed.append(given) or np.zeros(1, np.int64))
    folding._kept.cache_clear()
    for _ in range(3):
        folded("Add", [1, 2], [3, 4])
    assert len(computed) == 1
    folding._kept.cache_clear()


@pytest.mark.parametrize(
    ("op", "first", "second"),
    [
        ("Add", ([1, 2], [3, 4]), ([1, 2], [3, 5])),
        ("Neg", (np.int32([1]),), (np.int64([1]),)),
        ("Neg", (np.zeros((1, 2), np.int64),), (np.zeros((2, 1), np.int64),)),
        ("Neg", (np.zeros(0, np.int64),), (np.zeros((0, 1), np.int64),)),
    ],
    ids=["elements", "types", "shapes", "no elements"],
)
def test_nodes_of_other_inputs_are_not_equal(op, first, second):
    assert folded(op, *first) is not None
    assert folded(op, *first) == folded(op, *first)
    assert folded(op, *first) != folded(op, *second)


def test_nodes_of_other_attributes_or_opsets_are_not_equal():
    data = np.arange(4).reshape(1, 2, 2)
    assert folded("Transpose", data, perm=[0, 2, 1]) != folded("Transpose", data, perm=[2, 1, 0])
    assert folded("Squeeze", data, opset=11, axes=[0]) == ("int64", (2, 2), [[0, 1], [2, 3]])
    assert folded("Squeeze", data, opset=17, axes=[0]) != folded("Unsqueeze", data, opset=11, axes=[0])
