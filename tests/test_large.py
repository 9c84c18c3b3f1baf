"""Offsets beyond 4 GiB, in sparse memory: only a few pages of it are touched."""

import mmap

import pytest

import dmlsplit as dml

F32 = dml.TensorDataType.FLOAT32
FAR = dml.BufferTensorDesc(F32, (3, 4), strides=(2**29 + 3, 1))  # the last row starts 4 GiB and 24 bytes in
NEAR = dml.BufferTensorDesc(F32, (3, 4))
ROWS = [bytes(range(16 * row, 16 * row + 16)) for row in range(3)]


@pytest.fixture
def sparse():
    assert FAR.total_tensor_size_in_bytes > 2**32
    try:
        memory = mmap.mmap(-1, FAR.total_tensor_size_in_bytes)
    except (OSError, OverflowError, ValueError) as error:
        pytest.skip(f"no address space for a sparse map of 4 GiB: {error}")
    with memory:
        yield memory


def place(row):
    start = row * (2**29 + 3) * 4
    return slice(start, start + 16)


def test_input_beyond_4_gib(sparse):
    for row in range(3):
        sparse[place(row)] = ROWS[row]
    left, right = dml.compile(dml.SplitOperatorDesc.from_lengths(FAR, 1, (1, 3)))(sparse)
    assert left.tobytes() == b"".join(row[:4] for row in ROWS)
    assert right.tobytes() == b"".join(row[4:] for row in ROWS)


def test_output_beyond_4_gib(sparse):
    source = b"".join(ROWS)
    dml.compile(dml.SplitOperatorDesc(NEAR, [FAR], 0)).dispatch(source, out=[sparse])
    assert [sparse[place(row)] for row in range(3)] == ROWS
    parts = dml.JoinOperatorDesc.from_lengths(FAR, 1, (1, 3))
    dml.compile(parts).dispatch([bytes(12), bytes(36)], out=sparse)
    assert [sparse[place(row)] for row in range(3)] == [bytes(16)] * 3
