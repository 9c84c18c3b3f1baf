"""What a split is measured against: plain copies of the same bytes."""

from __future__ import annotations

import ctypes
import functools
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from cffi import FFI  # type: ignore[import-untyped]

from suite.contest import Buffers, Job, Prepare, Unsupported
from suite.layouts import allocate, fill

_SIGNATURE: Final = "void {}(char *, const char *, size_t);"


def _function(name: str, library: str | None) -> Any:
    ffi = FFI()
    ffi.cdef(_SIGNATURE.format(name))
    loaded = ffi.dlopen(library)
    function = getattr(loaded, name)

    def prepared(to: np.ndarray, source: np.ndarray) -> Callable[[], None]:
        keep = loaded, ffi.from_buffer("char[]", to), ffi.from_buffer("char[]", source)
        return functools.partial(function, keep[1], keep[2], len(source))

    return prepared


@functools.cache
def _compiled(name: str) -> Any:
    """A function of stream_copy.c, compiled now; ImportError where that cannot be done."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise ImportError("no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "stream_copy.so")
        source = Path(__file__).with_name("stream_copy.c")
        command = [compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ImportError(f"stream_copy.c does not compile: {done.stderr.strip()[:200]}")
        try:
            return _function(name, str(library))
        except AttributeError as error:
            raise ImportError("no such stores on this architecture") from error


@functools.lru_cache(maxsize=1)
def _pair(buffers: Buffers) -> tuple[np.ndarray, np.ndarray]:
    """Two blocks of as many bytes as the case copies; one pair for all references of a case."""
    source, to = allocate(buffers.case.bytes), allocate(buffers.case.bytes)
    fill(source)
    return to, source


def forget_buffers() -> None:
    _pair.cache_clear()


def _copy(function: Any, threads: int) -> Prepare:
    pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def prepare(buffers: Buffers) -> Job:
        to, source = _pair(buffers)
        if pool is None:
            return Job(function(to, source), lambda _: _checked(to, source))
        if len(to) < 1 << 20:
            raise Unsupported("too small to share")
        cuts = [len(to) * i // threads // 4096 * 4096 for i in range(threads)] + [len(to)]
        shares = [function(to[a:b], source[a:b]) for a, b in itertools.pairwise(cuts)]

        def run() -> None:
            for future in [pool.submit(share) for share in shares]:
                future.result()

        return Job(run, lambda _: _checked(to, source))

    def _checked(to: np.ndarray, source: np.ndarray) -> list[np.ndarray]:
        if not np.array_equal(to, source):
            raise AssertionError("a reference copy is wrong")
        return []

    return prepare


def memcpy(threads: int) -> Prepare:
    """The C library's, on blocks that begin on a cache line."""
    return _copy(_function("memcpy", None), 1)


def memcpy_threads(threads: int) -> Prepare:
    return _copy(_function("memcpy", None), threads)


def stream(threads: int) -> Prepare:
    return _copy(_compiled("stream_copy"), 1)


def stream_threads(threads: int) -> Prepare:
    return _copy(_compiled("stream_copy"), threads)


def page_copy(threads: int) -> Prepare:
    return _copy(_compiled("page_copy"), 1)


def page_copy_threads(threads: int) -> Prepare:
    return _copy(_compiled("page_copy"), threads)


FLOOR: Final = ("memcpy", "stream copy", "page copy")
"""The fastest of these is the least that a copy takes on a machine, at a size."""


def then_read(prepare: Prepare, is_reference: bool) -> Prepare:
    """The same job, after which its outputs are read once, as somebody will."""
    read = _compiled("read_lines")

    def prepared(buffers: Buffers) -> Job:
        job = prepare(buffers)
        outputs = [_pair(buffers)[0]] if is_reference else [_memory_of(output) for output in buffers.outputs]
        seen = np.zeros(1, np.uint8)
        reads = [read(seen, output) for output in outputs]

        def run() -> None:
            job.run()
            for each in reads:
                each()

        return Job(run, job.results)

    return prepared


def _memory_of(array: np.ndarray) -> np.ndarray:
    """The bytes from an array's first to its last element, as far as it says."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return np.frombuffer((ctypes.c_char * (high - low)).from_address(low), np.uint8)


def references(threads: int) -> dict[str, Callable[[int], Prepare]]:
    table: dict[str, Callable[[int], Prepare]] = {"memcpy": memcpy, "stream copy": stream, "page copy": page_copy}
    if threads > 1:
        table |= {
            f"memcpy x{threads}": memcpy_threads,
            f"stream copy x{threads}": stream_threads,
            f"page copy x{threads}": page_copy_threads,
        }
    return table
