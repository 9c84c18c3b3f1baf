"""Reading what may have no end."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from dmlsplit.formats.jsontext import JsonText
from dmlsplit.system.input_files import read_at_most


class Trickle(io.RawIOBase):
    """A pipe: it gives less than it is asked for, and no end."""

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), 3)
        buffer[:count] = bytes(count)
        return count


@pytest.mark.parametrize("size", [0, 1, 5, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (2 << 20) + 7])
def test_all_or_none(size):
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert read_at_most(io.BytesIO(data), size) == data
    assert read_at_most(io.BytesIO(data), size + 1) == data
    assert read_at_most(io.BytesIO(data), size - 1) is None


def test_no_end():
    assert read_at_most(Trickle(), 100) is None


def _json(path):
    return JsonText.of_file(str(path)).value


def _onnx(path):
    onnx = pytest.importorskip("onnx")
    from dmlsplit.formats.onnx import loading

    path.write_bytes(onnx.ModelProto(graph=onnx.GraphProto(name="g")).SerializeToString())
    return loading.load(path)


def _read(path):
    with open(path, "rb") as stream:
        return read_at_most(stream, 2**31)


@pytest.mark.parametrize("read", [_read, _json, _onnx])
def test_memory_is_taken_for_what_there_is(tmp_path, read):
    """Python's own read(2**31) takes 2 GiB at once."""
    (tmp_path / "small").write_bytes(b"[1]")
    read(tmp_path / "small")  # imports
    tracemalloc.start()
    assert read(tmp_path / "small")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 << 20
