"""A process that runs onnx's shape inference: hostile models end it, and nothing else.

Requests and answers are 8 bytes of length, little endian, and that many bytes. A request is a byte, 1 where sizes that
the model computes are followed, and a model; an answer is a byte, 1 for the inferred model and 0 for the message of the
error, and then that. The arguments are how many bytes of
memory the process may take, and how many more for each byte of the largest request so far.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable


def memory_limits() -> Callable[[int], None]:
    """Returns a function that limits the memory of this process to a number of bytes, or does nothing on a system
    without such limits. A lower limit that the process was started with stays.

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


def main() -> None:
    most, a_byte = map(float, sys.argv[1:])
    limit_memory = memory_limits()
    limit_memory(int(most))
    from onnx import shape_inference

    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    largest = 0
    while len(head := requests.read(8)) == 8:
        size = int.from_bytes(head, "little")
        largest = max(largest, size)  # A process does not give all of its memory back.
        limit_memory(int(most + a_byte * largest))
        data_prop = requests.read(1) == b"\1"
        model = requests.read(size - 1)
        try:
            answer = b"\1" + shape_inference.infer_shapes(model, data_prop=data_prop).SerializeToString()
        except MemoryError:
            answer = b"\0takes too much memory"
        except Exception as error:
            answer = b"\0" + str(error).encode("utf-8", "backslashreplace")
        answers.write(len(answer).to_bytes(8, "little") + answer)
        answers.flush()


if __name__ == "__main__":
    main()
