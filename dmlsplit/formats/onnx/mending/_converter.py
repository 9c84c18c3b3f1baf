"""A process that converts the opset of one model: onnx's converter is C++ that a hostile model brings down.

The argument is the opset; the model is read from standard input, and written to standard output. What goes wrong is
written to standard error, and ends the process with status 1.
"""

from __future__ import annotations

import sys


def main() -> None:
    import onnx
    from onnx import version_converter

    model = onnx.ModelProto()
    model.ParseFromString(sys.stdin.buffer.read())
    try:
        converted = version_converter.convert_version(model, int(sys.argv[1]))
    except Exception as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(converted.SerializeToString())


if __name__ == "__main__":
    main()
