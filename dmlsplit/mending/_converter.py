"""A process that converts models to another opset, because onnx's C++ converter crashes on hostile models.

The argument is the opset. Models are read from standard input and written to standard output, each after its length. An
error is written to standard error, and the exit status is 1.
"""

from __future__ import annotations

import sys

LENGTH = 8
"""The number of bytes of a length, which is little endian."""


def main() -> None:
    import onnx
    from onnx import version_converter

    while length := sys.stdin.buffer.read(LENGTH):
        model = onnx.ModelProto()
        model.ParseFromString(sys.stdin.buffer.read(int.from_bytes(length, "little")))
        try:
            converted = version_converter.convert_version(model, int(sys.argv[1])).SerializeToString()
        except Exception as error:
            sys.exit(str(error))
        sys.stdout.buffer.write(len(converted).to_bytes(LENGTH, "little") + converted)


if __name__ == "__main__":
    main()
