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


COPIES: Final[dict[str, Callable[[], Any]]] = {
    "memcpy": lambda: _function("memcpy", None),
    "stream copy": lambda: _compiled("stream_copy"),
    "page copy": lambda: _compiled("page_copy"),
}
"""The C library's copy and those of stream_copy.c, on blocks that begin on a cache line."""


FLOOR: Final = tuple(COPIES)
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
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))


def references(threads: int) -> dict[str, Callable[[int], Prepare]]:
    """Each copy on one thread, and on several where these are asked for."""
    table = {name: functools.partial(_load, name, 1) for name in COPIES}
    several = {f"{name} x{threads}": functools.partial(_load, name, threads) for name in COPIES} if threads > 1 else {}
    return {**table, **several}


def _load(name: str, threads: int, _: int) -> Prepare:
    return _copy(COPIES[name](), threads)


def memcpy() -> Prepare:
    return _load("memcpy", 1, 1)
