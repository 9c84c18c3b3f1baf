"""Splits arrays in files, even files larger than memory: mapped a window at a time, read front to back.

Outputs get their final names only once all are complete; after a failure no output is left, and older files are
unchanged.
"""

from __future__ import annotations

import bisect
import errno
import itertools
import math
import mmap
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from dmlsplit.native import core
from dmlsplit.system.atomic_files import atomic_files
from dmlsplit.system.errors import naming
from dmlsplit.system.input_files import open_input

WINDOW_BYTES: Final = 64 << 20
"""Bytes copied between two reports of progress; also the size of the windows of the input and of the outputs that are
mapped at a time."""
OPEN_FILES: Final = 64
"""The most outputs mapped at once, with two file descriptors each; processes may have at least 256."""
KEPT_BYTES: Final = 4 << 30
"""Files below this size stay in the page cache for their next reader; larger ones would only evict others."""

Shape: TypeAlias = tuple[int, ...]
Advance: TypeAlias = Callable[[int], object]
"""Called after every window with the number of bytes copied."""


class FileTensor(NamedTuple):
    """A tensor in a file: its first element lies `offset` bytes in; strides are bytes and never negative."""

    path: str
    offset: int
    sizes: Shape
    strides: Shape


class NewFile(NamedTuple):
    """An output file: `tensor.path` is its final path, `head` its first bytes, `size` the size of the whole file."""

    tensor: FileTensor
    head: bytes
    size: int


def split_file(
    source: FileTensor,
    outputs: Sequence[NewFile],
    element_size: int,
    axis: int,
    *,
    replace: bool = False,
    surplus: Sequence[str] = (),
    threads: int = 1,
    advance: Advance = lambda count: None,
) -> None:
    """Copies the tensor `source`, cut along `axis`, into new files; gaps between their elements are 0.

    `surplus` are files left by an older split that would be mistaken for outputs of this one: they are removed when the
    outputs get their names. `advance` is called with numbers of bytes copied.

    Raises FileExistsError, unless `replace`, and OSError if the disk is too small, both before anything is copied; if
    another process truncates a file meanwhile, this process ends, as with all mapped files.
    """
    with atomic_files(replace=replace) as files:
        for output in outputs:
            files.check(output.tensor.path)
        for path in surplus:
            files.discard(path)
        for folder in {os.path.dirname(output.tensor.path) for output in outputs}:
            files.make_folder(folder)
        _check_space(outputs)
        parts = []
        # The last file is renamed last: if it exists, all pieces do.
        paths = [files.create(output.tensor.path) for output in reversed(outputs)]
        for output, path in zip(outputs, reversed(paths), strict=True):
            with naming(output.tensor.path):
                _fill(path, output)
            parts.append(output.tensor._replace(path=path))
        _copy(source, parts, element_size, axis, threads, advance)


def _check_space(outputs: Sequence[NewFile]) -> None:
    """Raises OSError if the disk has too little room for the outputs, which are all in one folder."""
    folder = os.path.dirname(outputs[0].tensor.path) or "."
    needed, free = sum(output.size for output in outputs), shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(errno.ENOSPC, f"{_amount(needed)} are needed, but only {_amount(free)} are free", folder)


def _amount(count: int) -> str:
    if count < 10**6:
        return f"{count} bytes"
    return f"{count / 10**9:.3g} GB" if count >= 10**9 else f"{count / 10**6:.3g} MB"


def _fill(path: str, output: NewFile) -> None:
    """Writes an output's head to `path` and reserves room for the rest."""
    with open(path, "r+b") as stream:
        stream.write(output.head)
        stream.flush()
        _reserve(stream.fileno(), len(output.head), output.size)


def _reserve(descriptor: int, start: int, size: int) -> None:
    """Extends the file to `size` bytes and reserves the disk space: a write into a mapped file must not find the disk
    full. Raises OSError if it is full."""
    if size == start:
        return
    try:
        os.posix_fallocate(descriptor, start, size - start)
        return
    except AttributeError:  # macOS, Windows
        pass
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
    zeros = bytes(1 << 20)
    position = start
    while position < size:
        position += os.write(descriptor, zeros[: size - position])


def boxes(sizes: Shape, strides: Shape, max_elements: int) -> Iterator[tuple[Shape, Shape]]:
    """Yields (starts, sizes) of blocks of at most `max_elements` elements that together cover a tensor, in the order of
    its memory."""
    order = sorted(range(len(sizes)), key=lambda dimension: (-strides[dimension], dimension))

    def blocks(depth: int, starts: Shape, left: Shape) -> Iterator[tuple[Shape, Shape]]:
        count = math.prod(left)
        if count <= max_elements:
            yield starts, left
            return
        d = order[depth]
        step = max(1, max_elements // (count // left[d]))
        for start in range(0, left[d], step):
            size = min(step, left[d] - start)
            yield from blocks(depth + 1, _with(starts, d, start), _with(left, d, size))

    if 0 not in sizes:
        yield from blocks(0, (0,) * len(sizes), sizes)


def _with(numbers: Shape, index: int, number: int) -> Shape:
    return (*numbers[:index], number, *numbers[index + 1 :])


class Slab(NamedTuple):
    """The part of an output in a block: from `start` to `stop` along the axis."""

    tensor: FileTensor
    start: int
    stop: int


def _copy(
    source: FileTensor, parts: Sequence[FileTensor], element_size: int, axis: int, threads: int, advance: Advance
) -> None:
    if element_size == 0:
        return
    passing = math.prod(source.sizes) * element_size > KEPT_BYTES
    parts = [part for part in parts if part.sizes[axis]]
    ends = list(itertools.accumulate([part.sizes[axis] for part in parts]))
    for starts, sizes in boxes(source.sizes, source.strides, max(1, WINDOW_BYTES // element_size)):
        begin, end = starts[axis], starts[axis] + sizes[axis]
        while begin < end:
            first = bisect.bisect_right(ends, begin)
            slabs = []
            for part, part_end in zip(parts[first : first + OPEN_FILES], ends[first:], strict=False):
                part_begin = part_end - part.sizes[axis]
                if part_begin >= end:
                    break
                slabs.append(Slab(part, max(begin, part_begin) - part_begin, min(end, part_end) - part_begin))
            stop = begin + sum(slab.stop - slab.start for slab in slabs)
            block = _with(sizes, axis, stop - begin)
            blocks = [_with(sizes, axis, slab.stop - slab.start) for slab in slabs]
            layouts = [(own, slab.tensor.strides) for own, slab in zip(blocks, slabs, strict=True)]
            plan = _plan(element_size, axis, (block, source.strides), tuple(layouts))
            windows = [_window(source, _with(starts, axis, begin), block, element_size, False, passing)]
            for own, slab in zip(blocks, slabs, strict=True):
                windows.append(_window(slab.tensor, _with(starts, axis, slab.start), own, element_size, True, passing))
            with ExitStack() as stack:
                pointer, *pointers = [stack.enter_context(window) for window in windows]
                plan.run(pointer, core.pointers(pointers), threads)
            advance(math.prod(block) * element_size)
            begin = stop


@lru_cache(16)
def _plan(element_size: int, axis: int, whole: core.Layout, parts: tuple[core.Layout, ...]) -> core.Plan:
    return core.Plan.of(core.SPLIT, element_size, axis, whole, parts, overlap_allowed=True)


@contextmanager
def _window(
    tensor: FileTensor, starts: Shape, sizes: Shape, element_size: int, writable: bool, passing: bool
) -> Iterator[Any]:
    """Context manager that maps a block of the file, `sizes` from index `starts` on, and gives a pointer to its first
    element; `writable`: the block may be written.

    `passing`: releases the pages afterwards, written ones as soon as they are on disk.
    """
    begin = tensor.offset + sum(start * stride for start, stride in zip(starts, tensor.strides, strict=True))
    end = begin + sum((size - 1) * stride for size, stride in zip(sizes, tensor.strides, strict=True)) + element_size
    slack = begin % mmap.ALLOCATIONGRANULARITY
    with open(tensor.path, "r+b", buffering=0) if writable else open_input(tensor.path) as stream:
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        with mmap.mmap(stream.fileno(), end - begin + slack, access=access, offset=begin - slack) as mapped:
            if not writable and hasattr(mmap, "MADV_SEQUENTIAL"):
                mapped.madvise(mmap.MADV_SEQUENTIAL)
            with core.buffer(mapped, writable) as memory:
                yield memory + slack
        if passing and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(stream.fileno(), 0, end, os.POSIX_FADV_DONTNEED)
