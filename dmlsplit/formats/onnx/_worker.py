"""A process that runs onnx's shape inference: hostile models end it, and nothing else.

Requests and answers are 8 bytes of length, little endian, and that many bytes. A request is a model; an answer is a
byte, 1 for the inferred model and 0 for the message of the error, and then that. The argument is the most memory that
the process may take, in bytes.
"""

from __future__ import annotations

import contextlib
import sys


def main() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from onnx import shape_inference

    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(head := requests.read(8)) == 8:
        model = requests.read(int.from_bytes(head, "little"))
        try:
            answer = b"\1" + shape_inference.infer_shapes(model, data_prop=True).SerializeToString()
        except Exception as error:
            answer = b"\0" + str(error).encode("utf-8", "backslashreplace")
        answers.write(len(answer).to_bytes(8, "little") + answer)
        answers.flush()


if __name__ == "__main__":
    main()
