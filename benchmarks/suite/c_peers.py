"""The peers that are C libraries, called by way of cffi: MKL, IPP and oneDNN of packages, libyuv of the system."""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import os
from pathlib import Path
from typing import Any, Final

import numpy as np
from cffi import FFI  # type: ignore[import-untyped]

from dmlsplit.native import core
from suite.contest import Buffers, Job, Prepare, Unsupported

_loaded: Final[list[Any]] = []
"""Libraries that others need, so that they stay."""


def _library(package: str, name: str) -> str:
    """The path of a shared library that a package brings; ImportError where it is not installed."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise ImportError(f"package {package} is not installed") from error
    for file in files:
        path = Path(str(file.locate()))
        if path.name.startswith(name) and path.exists():
            return str(path)
    raise ImportError(f"package {package} brings no {name}")


def _system_library(name: str) -> str:
    path = ctypes.util.find_library(name)
    if path is None:
        raise ImportError(f"the system has no lib{name}")
    return path


def _memory(ffi: FFI, array: np.ndarray) -> Any:
    return ffi.cast("void *", array.__array_interface__["data"][0])


def _rows(ffi: FFI, array: np.ndarray) -> tuple[Any, int]:
    """The address, and bytes from row to row."""
    return _memory(ffi, array), array.strides[0]


def _job(calls: list[tuple[Any, tuple[Any, ...]]]) -> Job:
    """Functions with their arguments, one after the other."""

    def run() -> None:
        for function, arguments in calls:
            function(*arguments)

    return Job(run)


def mkl(threads: int) -> Prepare:
    """MKL_Somatcopy and MKL_Domatcopy, an output at a time."""
    path = _library("mkl", "libmkl_rt.so")
    os.environ.setdefault("MKL_NUM_THREADS", str(threads))
    ffi = FFI()
    for letter, kind in (("S", "float"), ("D", "double")):
        ffi.cdef(f"void MKL_{letter}omatcopy(char, char, size_t, size_t, {kind}, void *, size_t, void *, size_t);")
    library = ffi.dlopen(path)
    functions = {4: library.MKL_Somatcopy, 8: library.MKL_Domatcopy}

    def prepare(buffers: Buffers) -> Job:
        calls = []
        for source, target in buffers.turned():
            if source.itemsize not in functions:
                raise Unsupported("elements of 4 and 8 bytes only")
            (a, step_a), (b, step_b) = _rows(ffi, source), _rows(ffi, target)
            size = source.itemsize
            calls.append((functions[size], (b"R", b"T", *source.shape, 1.0, a, step_a // size, b, step_b // size)))
        return _job(calls)

    return prepare


def ipp(threads: int) -> Prepare:
    """ippiCopy between 3 or 4 channels and planes, and ippiTranspose."""
    ffi = FFI()
    ffi.cdef("typedef struct { int width, height; } size;")
    names = {1: "8u", 2: "16s", 4: "32f"}
    for name in names.values():
        ffi.cdef(f"int ippiTranspose_{name}_C1R(const void *, int, void *, int, size);")
        for count in (3, 4):
            ffi.cdef(f"int ippiCopy_{name}_C{count}P{count}R(const void *, int, void *const *, int, size);")
            ffi.cdef(f"int ippiCopy_{name}_P{count}C{count}R(const void *const *, int, void *, int, size);")
    # That of this kind of CPU: the library that chooses one looks for names that the package does not have.
    features = core.cpu_features()
    kind = "k0" if "avx512" in features else "l9" if "avx2" in features else "y8"
    _loaded.append(ffi.dlopen(_library("ipp", "libippcore.so"), ffi.RTLD_GLOBAL))
    library = ffi.dlopen(_library("ipp", f"libippi{kind}.so"))

    def extent(array: np.ndarray) -> Any:
        return ffi.new("size *", {"width": array.shape[1], "height": array.shape[0]})[0]

    def prepare(buffers: Buffers) -> Job:
        if buffers.whole.itemsize not in names:
            raise Unsupported("elements of 1, 2 or 4 bytes only")
        name = names[buffers.whole.itemsize]
        if not buffers.whole.flags.c_contiguous or not buffers.parts[0].flags.c_contiguous:
            turn = getattr(library, f"ippiTranspose_{name}_C1R")
            return _job([(turn, (*_rows(ffi, a), *_rows(ffi, b), extent(a))) for a, b in buffers.turned()])
        image, planes = buffers.channels((3, 4))
        count = len(planes)
        vector = ffi.new("void *[]", [_memory(ffi, plane) for plane in planes])
        ends = [_rows(ffi, image), (vector, planes[0].strides[0])]
        form = f"P{count}C{count}R" if buffers.case.join else f"C{count}P{count}R"
        source, target = reversed(ends) if buffers.case.join else ends
        return _job([(getattr(library, f"ippiCopy_{name}_{form}"), (*source, *target, extent(image)))])

    return prepare


_ONEDNN: Final = """
typedef void *handle;
typedef struct { int argument; handle memory; } argument;
int dnnl_engine_create(handle *, int kind, size_t index);
int dnnl_stream_create(handle *, handle engine, unsigned flags);
int dnnl_memory_desc_create_with_strides(handle *, int rank, const int64_t *sizes, int type, const int64_t *strides);
int dnnl_memory_create(handle *, handle description, handle engine, void *);
int dnnl_reorder_primitive_desc_create(handle *, handle from, handle engine, handle to, handle engine2, handle);
int dnnl_primitive_create(handle *, handle description);
int dnnl_primitive_execute(handle primitive, handle stream, int count, const argument *);
int dnnl_stream_wait(handle stream);
"""


def onednn(threads: int) -> Prepare:
    """dnnl_reorder, an output at a time."""
    cpu, in_order, source_argument, target_argument, most_rank = 1, 1, 1, 17, 12
    types = {1: 5, 2: 2, 4: 4}  # s8, bf16, s32: all moved as they are
    ffi = FFI()
    ffi.cdef(_ONEDNN)
    openmp = FFI()
    openmp.cdef("void omp_set_num_threads(int);")
    _loaded.append(openmp.dlopen(_system_library("gomp")))
    _loaded[-1].omp_set_num_threads(threads)
    library = ffi.dlopen(_library("onednn-cpu-gomp", "libdnnl.so"))

    def made(function: Any, *arguments: Any) -> Any:
        handle = ffi.new("handle *")
        if function(handle, *arguments) != 0:
            raise Unsupported("no such reorder")
        return handle[0]

    engine = made(library.dnnl_engine_create, cpu, 0)
    stream = made(library.dnnl_stream_create, engine, in_order)

    def reorder(source: np.ndarray, target: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        if source.itemsize not in types or source.ndim > most_rank or min(source.strides) <= 0:
            raise Unsupported("elements of 1, 2 or 4 bytes and positive strides only")
        described = [
            made(
                library.dnnl_memory_desc_create_with_strides,
                array.ndim,
                list(array.shape),
                types[array.itemsize],
                [stride // array.itemsize for stride in array.strides],
            )
            for array in (source, target)
        ]
        whole = made(library.dnnl_reorder_primitive_desc_create, described[0], engine, described[1], engine, ffi.NULL)
        ends = zip((source_argument, target_argument), described, (source, target), strict=True)
        arguments = ffi.new(
            "argument[]",
            [(i, made(library.dnnl_memory_create, d, engine, _memory(ffi, array))) for i, d, array in ends],
        )
        return library.dnnl_primitive_execute, (made(library.dnnl_primitive_create, whole), stream, 2, arguments)

    def prepare(buffers: Buffers) -> Job:
        if len(buffers.parts) > 64:
            raise Unsupported("left out above 64 parts: a primitive is made for each")
        calls = [reorder(source, target) for source, target in buffers.pairs()]
        return _job([*calls, (library.dnnl_stream_wait, (stream,))])

    return prepare


def libyuv(threads: int) -> Prepare:
    """SplitUVPlane, SplitRGBPlane, SplitARGBPlane, their inverses, and TransposePlane."""
    ffi = FFI()
    names = {2: "UV", 3: "RGB", 4: "ARGB"}
    for count, name in names.items():
        ffi.cdef(f"void Split{name}Plane(void *, int, {'void *, int, ' * count} int, int);")
        ffi.cdef(f"void Merge{name}Plane({'void *, int, ' * count} void *, int, int, int);")
    ffi.cdef("void TransposePlane(void *, int, void *, int, int, int);")
    library = ffi.dlopen(_system_library("yuv"))

    def prepare(buffers: Buffers) -> Job:
        if buffers.whole.itemsize != 1:
            raise Unsupported("bytes only")
        if not buffers.whole.flags.c_contiguous or not buffers.parts[0].flags.c_contiguous:
            pairs = buffers.turned()
            return _job([(library.TransposePlane, (*_rows(ffi, a), *_rows(ffi, b), *a.shape[::-1])) for a, b in pairs])
        image, planes = buffers.channels((2, 3, 4))
        if len(planes) == 4:  # named in the order of a word's bytes, from the highest: B, G, R and A lie in memory
            planes = [planes[2], planes[1], planes[0], planes[3]]
        separate = [word for plane in planes for word in _rows(ffi, plane)]
        packed, extent = _rows(ffi, image), image.shape[1::-1]
        name = names[len(planes)]
        if buffers.case.join:
            return _job([(getattr(library, f"Merge{name}Plane"), (*separate, *packed, *extent))])
        return _job([(getattr(library, f"Split{name}Plane"), (*packed, *separate, *extent))])

    return prepare
