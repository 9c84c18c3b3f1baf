"""Whether bound tensors share bytes: exact, and quick for thousands of columns of one array."""

import re
from unittest import mock

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.descriptors.geometry import TensorLayout
from dmlsplit.native import binding, core
from dmlsplit.native.binding import BoundMemory, BoundTensor
from tests.effort import calls

MEMORY = 600
TYPES = {1: dml.TensorDataType.UINT8, 2: dml.TensorDataType.UINT16, 8: dml.TensorDataType.FLOAT64}


def bound(i, view, is_output):
    desc = dml.BufferTensorDesc(TYPES[view.itemsize], view.shape)
    tensor = BoundTensor(TensorLayout.of((f"Tensors[{i:02}]",), desc, is_output))
    return tensor, BoundMemory(core.address(view.__array_interface__["data"][0]), view.strides, view)


def bytes_of(view, memory):
    """Each byte's place in the memory, as often as an element has it."""
    first = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    places = np.ndarray(view.shape, "i8", np.arange(MEMORY), first * 8, [s * 8 for s in view.strides])
    return (places[..., np.newaxis] + np.arange(view.itemsize)).ravel().tolist()


@st.composite
def views(draw, memory):
    """Some are rows and columns of one matrix, some lie anywhere."""
    itemsize = draw(st.sampled_from(sorted(TYPES)))
    dtype = np.dtype(f"u{itemsize}")
    pitch = draw(st.integers(1, 24)) * itemsize
    count = draw(st.integers(2, 18))
    made = []
    for _ in range(count):
        shape = draw(st.tuples(st.integers(0, 4) | st.just(1), st.integers(1, 5), st.integers(1, 3)))
        if draw(st.booleans()):
            strides = (draw(st.sampled_from([3, 5])) * pitch, pitch, itemsize)
        else:
            strides = draw(st.tuples(*[st.integers(-5, 5).map(lambda s: s * itemsize)] * 3))
        spans = [(max(n, 1) - 1) * s for n, s in zip(shape, strides, strict=True)]
        low, high = -sum(s for s in spans if s < 0), sum(s for s in spans if s > 0) + itemsize
        if low + high > MEMORY:
            continue
        place = draw(st.integers(0, min(MEMORY - low - high, 4 * pitch)))
        made.append(np.ndarray(shape, dtype, memory, place + low, strides))
    return made


def model(operands, memory):
    """The pairs that share a byte that is written."""
    sets = [set(bytes_of(view, memory)) for view, _ in operands]
    return {
        (i, j)
        for i in range(len(operands))
        for j in range(i + 1, len(operands))
        if (operands[i][1] or operands[j][1]) and sets[i] & sets[j]
    }


@pytest.mark.slow
@pytest.mark.parametrize("few", [binding.FEW_OPERANDS, 1], ids=["in pairs", "painted"])
@given(data=st.data())
def test_every_shared_byte_is_found(few, data):
    memory = np.zeros(MEMORY, "u1")
    operands = []
    taken: set[int] = set()
    apart = data.draw(st.booleans(), label="apart")
    for view in data.draw(views(memory)):
        occupied = bytes_of(view, memory)
        written = len(set(occupied)) == len(occupied) and data.draw(st.booleans())
        if apart and taken & set(occupied):
            continue
        taken.update(occupied)
        operands.append((view, written))
    expected = model(operands, memory)
    event(f"shared: {bool(expected)}")
    with mock.patch.object(binding, "FEW_OPERANDS", few):
        if not expected:
            binding.check_apart([bound(i, *operand) for i, operand in enumerate(operands)])
        else:
            with pytest.raises(dml.BindingError, match="share bytes") as caught:
                binding.check_apart([bound(i, *operand) for i, operand in enumerate(operands)])
            named = [int(number) for number in re.findall(r"Tensors\[(\d+)\]", str(caught.value))]
            assert tuple(named) in expected


def columns(rows, count):
    table = np.zeros((rows, count), "u2")
    return table, [bound(i, table[:, i : i + 1], True) for i in range(count)]


def test_thousands_of_columns():
    _, operands = columns(64, 4096)
    assert calls(lambda: binding.check_apart(operands)) < 100 * len(operands), "in pairs there are millions"


@pytest.mark.parametrize("i", [0, 2000, 4094])
def test_one_byte_among_thousands_of_columns(i):
    table, operands = columns(3, 4096)
    byte = table.view("u1").reshape(-1)[2 * i + 3 : 2 * i + 4]
    with pytest.raises(dml.BindingError, match=rf"Tensors\[{i + 1:02}\] and Tensors\[9999\] share bytes"):
        binding.check_apart([*operands, bound(9999, byte, False)])
    operands[i] = bound(i, table[:, i : i + 2], True)
    with pytest.raises(dml.BindingError, match=rf"Tensors\[{i:02}\] and Tensors\[{i + 1:02}\] share bytes"):
        binding.check_apart(operands)


@pytest.mark.parametrize("few", [binding.FEW_OPERANDS, 1], ids=["in pairs", "painted"])
def test_a_column_and_the_same_one_a_row_below(few, monkeypatch):
    monkeypatch.setattr(binding, "FEW_OPERANDS", few)
    table = np.zeros((4, 7), "u1")
    binding.check_apart([bound(0, table[:3, :1], True), bound(1, table[1:, 1:2], True), bound(2, table[:3, 6:], True)])
    with pytest.raises(dml.BindingError, match=r"Tensors\[00\] and Tensors\[01\] share bytes"):
        binding.check_apart([bound(0, table[:3, :1], True), bound(1, table[1:, :1], True)])


def test_a_canvas_that_does_not_fit_memory(monkeypatch):
    """Interleaved without a pattern, so that nothing but their elements tells."""
    memory = np.zeros(4000, "u1")
    operands = [bound(i, np.ndarray((20, 2), "u1", memory, i, (100, 30 + i)), True) for i in range(20)]

    def no_memory(*arguments):
        raise MemoryError

    monkeypatch.setattr(binding.np, "zeros", no_memory)
    with pytest.raises(dml.BindingError, match="could not be decided; bind separate buffers"):
        binding.check_apart(operands)
