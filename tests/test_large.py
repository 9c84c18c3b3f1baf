"""Offsets beyond 4 GiB, in sparse memory: only a few pages of it are touched.

DMLSPLIT_LARGE=1 adds what reads 8 GiB of it, and writes as much to sparse files.
"""

import mmap
import os
from itertools import product

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


@pytest.fixture
def sparse_files(tmp_path):
    """Makes memory maps of files that are holes; what is read of them costs no memory to speak of."""
    maps = {}

    def make(size):
        path = tmp_path / str(len(maps))
        with open(path, "w+b") as file:
            file.truncate(size)
            maps[path] = mmap.mmap(file.fileno(), size)
        return maps[path]

    yield make
    for path, made in maps.items():
        made.close()
        path.unlink()  # gigabytes, if written to


@pytest.mark.skipif(not os.environ.get("DMLSPLIT_LARGE"), reason="DMLSPLIT_LARGE=1 takes 8 GiB of disk and a minute")
@pytest.mark.parametrize("lengths", [(2**15, 2**15 + 7), (2**15 + 3, 2**15 + 4)], ids=["aligned", "at odd bytes"])
def test_more_elements_than_one_operator_may_have(sparse_files, lengths):
    """2^32 + 7 * 65537 bytes in rows of 65537, which no wider element divides."""
    width = 65537
    whole = dml.BufferTensorDesc(dml.TensorDataType.UINT8, (sum(lengths), width))
    d = dml.SplitOperatorDesc.from_lengths(whole, 0, lengths)
    found = dml.legalize(d, feature_level="3_0")
    assert len(found.operators) > 1
    source = sparse_files(whole.total_tensor_size_in_bytes)
    outputs = [sparse_files(part.total_tensor_size_in_bytes) for part in d.output_tensors]
    edges = [region.offset for regions in found.bindings for region in regions if region.buffer == "input"]
    marks = {0: 1, lengths[0] * width - 1: 2, lengths[0] * width: 3, sum(lengths) * width - 1: 4}
    marks |= {edge + by: 5 + i for i, (edge, by) in enumerate(product(edges, (-1, 0, 1))) if edge}
    for place, mark in marks.items():
        source[place] = mark
    found.dispatch(source, outputs)
    edge = lengths[0] * width
    for place, mark in marks.items():
        assert (outputs[0][place] if place < edge else outputs[1][place - edge]) == mark
    counted = sum(_count_of_non_zero(output) for output in outputs)
    assert counted == len(marks)


def _count_of_non_zero(memory):
    block = 2**26
    return sum(len(piece) - piece.count(0) for i in range(0, len(memory), block) for piece in [memory[i : i + block]])
