"""Splits of files: blocks cover a tensor once, and what lands in the files is what the reference says."""

import errno
import itertools
import os
import random
import shutil
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlsplit.descriptors.layout import packed_strides
from dmlsplit.native import file_split
from dmlsplit.native.file_split import FileTensor, NewFile, boxes, split_file

Usage = namedtuple("Usage", "total used free")


@given(st.lists(st.integers(0, 6), max_size=5), st.integers(1, 50), st.randoms())
def test_boxes_cover_once_and_in_order(sizes, max_elements, random):
    order = list(range(len(sizes)))
    random.shuffle(order)
    shuffled = packed_strides([sizes[d] for d in order])
    strides = tuple(shuffled[order.index(d)] for d in range(len(sizes)))
    seen = []
    for starts, shape in boxes(tuple(sizes), strides, max_elements):
        assert np.prod(shape, dtype=int) <= max_elements
        ranges = [range(start, start + size) for start, size in zip(starts, shape, strict=True)]
        places = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in itertools.product(*ranges)]
        assert not seen or min(places) > max(seen)
        seen += places
    assert sorted(seen) == list(range(np.prod(sizes, dtype=int)))


def test_boxes_are_large():
    found = list(boxes((4, 3, 1000, 10), packed_strides((4, 3, 1000, 10)), 20_000))
    assert len(found) == 8
    assert len(list(boxes((1, 1, 100_000), packed_strides((1, 1, 100_000)), 10_000))) == 10


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(file_split, "WINDOW_BYTES", 5000)
    monkeypatch.setattr(file_split, "OPEN_FILES", 3)


def split_array(folder, array, axis, lengths, **options):
    """Splits an array of any layout by files of raw memory, and reads them back."""
    base = array if array.base is None else array.base
    base.tofile(folder / "in.bin")
    size = array.itemsize
    source = FileTensor(str(folder / "in.bin"), array.ctypes.data - base.ctypes.data, array.shape, array.strides)
    outputs = []
    for i, length in enumerate(lengths):
        shape = (*array.shape[:axis], length, *array.shape[axis + 1 :])
        strides = tuple(stride * size for stride in packed_strides(shape))
        tensor = FileTensor(str(folder / f"out.{i}"), 7, shape, strides)
        outputs.append(NewFile(tensor, b"header!", 7 + size * int(np.prod(shape))))
    split_file(source, outputs, size, axis, **options)
    return [np.fromfile(o.tensor.path, array.dtype, offset=7).reshape(o.tensor.sizes) for o in outputs]


CASES = [
    ((37, 11, 19), 0, (1, 0, 30, 6)),
    ((37, 11, 19), 1, (4, 7)),
    ((37, 11, 19), 2, (9, 9, 1)),
    ((3, 4000), 1, (1,) * 10 + (3990,)),
    ((5000,), 0, (5,) * 1000),
    ((20, 0, 3), 1, (0, 0)),
    ((2, 1, 5), 1, (1,)),
]


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "V6", "c16"])
@pytest.mark.parametrize(("shape", "axis", "lengths"), CASES)
def test_packed(tmp_path, shape, axis, lengths, dtype, threads):
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array = np.frombuffer(random.Random(1).randbytes(count), dtype).reshape(shape)
    advanced = []
    parts = split_array(tmp_path, array, axis, lengths, threads=threads, advance=advanced.append)
    expected = np.split(array, np.cumsum(lengths)[:-1], axis)
    assert [part.tobytes() for part in parts] == [part.tobytes() for part in expected]
    assert sum(advanced) == array.nbytes
    assert all(0 < count <= 5000 for count in advanced)


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize(("axis", "lengths"), [(0, (10, 30)), (1, (25, 1, 4)), (2, (3, 4))])
def test_strided_input(tmp_path, axis, lengths):
    whole = np.arange(41 * 32 * 8, dtype="i4").reshape(41, 32, 8)
    array = whole[1:, 2:, 1:]
    parts = split_array(tmp_path, array, axis, lengths)
    assert all((p == q).all() for p, q in zip(parts, np.split(array, np.cumsum(lengths)[:-1], axis), strict=True))


def test_passing_files_are_the_same(tmp_path, monkeypatch, small_windows):
    monkeypatch.setattr(file_split, "KEPT_BYTES", 0)
    array = np.arange(60_000, dtype="u2").reshape(60, 1000)
    left, right = split_array(tmp_path, array, 1, (1, 999))
    assert (left == array[:, :1]).all()
    assert (right == array[:, 1:]).all()


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


ARRAY = np.arange(6000, dtype="f4").reshape(6, 1000)


def test_existing_files_are_kept(tmp_path):
    (tmp_path / "out.1").write_text("old")
    with pytest.raises(FileExistsError):
        split_array(tmp_path, ARRAY, 0, (1, 5))
    assert entries(tmp_path) == ["in.bin", "out.1"]
    assert (tmp_path / "out.1").read_text() == "old"
    assert (split_array(tmp_path, ARRAY, 0, (1, 5), replace=True)[1] == ARRAY[1:]).all()


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    with pytest.raises(FileExistsError):
        split_array(tmp_path, ARRAY, 0, (1, 5), advance=lambda count: (tmp_path / "out.0").write_text("new"))
    assert entries(tmp_path) == ["in.bin", "out.0"]
    assert (tmp_path / "out.0").read_text() == "new"


def test_folder_in_the_way(tmp_path):
    (tmp_path / "out.0").mkdir()
    with pytest.raises(IsADirectoryError):
        split_array(tmp_path, ARRAY, 0, (1, 5), replace=True)
    assert entries(tmp_path) == ["in.bin", "out.0"]


def test_disk_too_small(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(30_000, 6000, 24_000))
    with pytest.raises(OSError, match="24014 bytes are needed, but only 24000 bytes are free") as info:
        split_array(tmp_path, ARRAY, 0, (1, 5))
    assert info.value.errno == errno.ENOSPC
    assert entries(tmp_path) == ["in.bin"]


def test_disk_that_has_less_than_it_says(tmp_path, monkeypatch):
    """A quota, or somebody who writes at the same time: the room is asked for before anything is copied."""

    def refuse(descriptor, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    with pytest.raises(OSError, match="No space left") as info:
        split_array(tmp_path, ARRAY, 0, (1, 5), advance=pytest.fail)
    assert info.value.filename == str(tmp_path / "out.0")
    assert entries(tmp_path) == ["in.bin"]


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, None], ids=["file system", "platform"])
def test_without_fallocate(tmp_path, monkeypatch, code):
    def refuse(descriptor, start, size):
        raise OSError(code, os.strerror(code))

    if code is None:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    else:
        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    array = np.arange(700_000, dtype="f4").reshape(7, -1)
    parts = split_array(tmp_path, array, 0, (1, 6))
    assert (parts[1] == array[1:]).all()


def test_room_that_is_written_in_pieces(tmp_path, monkeypatch):
    """A write may be shorter than asked: the file has its whole size all the same."""
    written, write = [], os.write

    def short(descriptor, content):
        written.append(write(descriptor, content[: len(content) // 2 + 1]))
        return written[-1]

    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(os, "write", short)
    array = np.arange(700_000, dtype="f4").reshape(7, -1)
    parts = split_array(tmp_path, array, 0, (1, 6))
    assert (parts[1] == array[1:]).all()
    assert sum(written) == array.nbytes


def test_anything_raised_leaves_nothing(tmp_path):
    class Stop(BaseException):
        pass

    def stop(count):
        assert len(entries(tmp_path)) == 3
        raise Stop

    with pytest.raises(Stop):
        split_array(tmp_path, ARRAY, 0, (1, 5), advance=stop)
    assert entries(tmp_path) == ["in.bin"]
