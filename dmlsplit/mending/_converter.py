"""A process that converts the opset of models: onnx's converter is C++ that a hostile model brings down.

The argument is the opset; models are read from standard input, and written to standard output, each after its length.
An error is written to standard error, and ends the process with status 1.
"""

from __future__ import annotations

import sys

LENGTH = 8
"""Bytes of a length, the lowest first."""


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
