"""A process that runs onnx's shape inference in isolation: a hostile model can end only this process.

A request or answer is its length in 8 bytes, little endian, followed by that many bytes. A request is one byte, the
sum of PROPAGATES and STRICT, and a model. An answer is one byte and what it announces: FAILED and the error message;
INFERRED and the inferred model; FAULTY, the length of a text in 8 bytes, the text, which says why inference failed for
some nodes, and the inferred model. The arguments are the number of bytes of memory that the process may use, and the
number of further bytes for each byte of the largest request so far.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

PROPAGATES = 1
"""Sizes that the model computes are tracked."""
STRICT = 2
"""The answer says why inference failed for some nodes."""
FAILED, INFERRED, FAULTY = b"\0", b"\1", b"\2"
MOST_TEXT = 1 << 16
"""The most bytes of a text about nodes; the rest is left out."""


def memory_limits() -> Callable[[int], None]:
    """Returns a function that limits the memory of this process to a number of bytes, or does nothing on a system
    without such limits. A lower limit that is already set is kept.

    From now on the process leaves no core file.
    """
    try:
        import resource
    except ImportError:
        return lambda most: None
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)

    def limit(most: int) -> None:
        limits = [known for known in (soft, hard, most) if known != resource.RLIM_INFINITY]
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return limit


def inference() -> Callable[[bytes, bool, bool, bool], bytes]:
    """Returns the function of onnx's extension module that maps a serialized model, check_type, strict_mode and
    data_prop to the serialized model with inferred shapes.

    The package around the module imports numpy and 250 other modules, which takes longer than all else that the process
    does for a small model. Raises ImportError or AttributeError if this version of onnx has no such function.
    """
    package = find_spec("onnx")
    extension = package and PathFinder.find_spec("onnx.onnx_cpp2py_export", package.submodule_search_locations)
    if not (extension and extension.loader):
        raise ImportError("onnx has no extension module")
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    infer: Callable[[bytes, bool, bool, bool], bytes] = module.shape_inference.infer_shapes
    return infer


def inference_of_package() -> Callable[[bytes, bool, bool, bool], bytes]:
    """As `inference`, through onnx's documented interface."""
    import site

    site.main()  # -S leaves site out, but onnx may be found only through a .pth file
    from onnx import shape_inference

    return lambda model, *options: shape_inference.infer_shapes(model, *options).SerializeToString()


def answered(infer: Callable[[bytes, bool, bool, bool], bytes], model: bytes, way: int) -> bytes:
    """Returns the answer to a request."""
    propagates = bool(way & PROPAGATES)
    faults = b""
    try:
        if way & STRICT:
            try:
                return INFERRED + infer(model, False, True, propagates)
            except MemoryError:
                raise
            except Exception as error:
                faults = text_of(error)[:MOST_TEXT]
        inferred = infer(model, False, False, propagates)
    except MemoryError:
        return FAILED + b"takes too much memory"
    except Exception as error:
        return FAILED + text_of(error)
    return FAULTY + len(faults).to_bytes(8, "little") + faults + inferred if faults else INFERRED + inferred


def text_of(error: Exception) -> bytes:
    return str(error).encode("utf-8", "backslashreplace")


def main() -> None:
    most, a_byte = map(float, sys.argv[1:])
    limit_memory = memory_limits()
    limit_memory(int(most))
    try:
        infer = inference()
    except (ImportError, AttributeError):
        infer = inference_of_package()

    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    largest = 0
    while len(head := requests.read(8)) == 8:
        size = int.from_bytes(head, "little")
        largest = max(largest, size)  # A process does not return all of its memory.
        limit_memory(int(most + a_byte * largest))
        way = requests.read(1)[0]
        answer = answered(infer, requests.read(size - 1), way)
        answers.write(len(answer).to_bytes(8, "little") + answer)
        answers.flush()


if __name__ == "__main__":
    main()
