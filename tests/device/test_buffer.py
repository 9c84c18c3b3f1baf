"""dml.Buffer: memory that a program owns, and what numpy sees of it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import dmlsplit as dml
from tests.device.conftest import filled, vector


def test_a_buffer_is_raw_memory_of_the_direct_path():
    desc = dml.SplitOperatorDesc.from_lengths(vector(8), 0, (4, 4))
    source, a, b = filled(8), dml.Buffer(4), dml.Buffer(5)
    dml.compile(desc).dispatch(source, out=[a, b])
    assert bytes(a.array) + bytes(b.array[:4]) == bytes(source.array)
    # Raw even where the array would be the tensor itself: four elements broadcast from one.
    wide = dml.SplitOperatorDesc(vector(4, strides=(0,)), [vector(4)], 0)
    dml.compile(wide).dispatch(source, out=[a])
    assert bytes(a.array) == bytes(source.array[:1]) * 4


def test_buffers():
    buffer = dml.Buffer(16)
    assert repr(buffer) == "Buffer(16)"
    assert buffer.array.shape == (16,)
    assert not buffer.array.any()
    assert np.shares_memory(np.asarray(buffer), buffer.array)
    assert not np.shares_memory(np.array(buffer), buffer.array)
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        with pytest.raises(ValueError, match="copy"):
            np.asarray(buffer, np.float32, copy=False)
    with pytest.raises(ValueError, match="-1 bytes"):
        dml.Buffer(-1)
    for size in (2**63, 2**64, 2**70):
        with pytest.raises(MemoryError, match=str(size)):
            dml.Buffer(size)
    for size in (None, 1.0, "4", [4]):
        with pytest.raises(TypeError, match="size_in_bytes"):
            dml.Buffer(size)
    assert dml.Buffer(0).size_in_bytes == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda buffer: pickle.loads(pickle.dumps(buffer))])
def test_a_copied_buffer_has_an_address_of_its_own(program, copied):
    source = filled(16)
    before = bytes(source.array)
    out = copied(source)
    assert bytes(out.array) == before
    program.run(dml.SplitOperatorDesc.from_lengths(vector(16), 0, (16,)), [filled(16, 2)], [out])
    assert bytes(source.array) == before
    assert bytes(out.array) == bytes(filled(16, 2).array)


def test_what_is_done_to_an_array_of_a_buffer_leaves_its_memory(program):
    """The address is what is dispatched to: the memory may not move away from under it."""
    source, out = filled(16), dml.Buffer(16)
    elements = out.array[4:].view(np.uint32)
    with pytest.raises(AttributeError):
        out.array = np.ones(16, np.uint8)
    with pytest.raises(ValueError, match="resize"):
        out.array.resize(1 << 20)
    shaped = out.array
    shaped.shape = (4, 4)
    assert (out.size_in_bytes, out.array.shape) == (16, (16,))
    program.run(dml.SplitOperatorDesc.from_lengths(vector(16), 0, (16,)), [source], [out])
    assert bytes(shaped) == bytes(source.array)
    del out, shaped
    assert bytes(elements) == bytes(source.array[4:])
