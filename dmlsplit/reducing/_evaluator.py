"""A process that computes a model by onnx's reference evaluator, in isolation: a hostile model can end only this
process.

Standard input is the length of a model in 8 bytes, little endian, the model, and its inputs as an .npz file; standard
output is the outputs as an .npz file, named by their indices. The argument is the number of bytes of memory that the
process may use.
"""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any


def main() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import numpy as np
    import onnx
    from onnx.reference import ReferenceEvaluator

    stream = sys.stdin.buffer
    size = int.from_bytes(stream.read(8), "little")
    model = onnx.ModelProto.FromString(stream.read(size))
    with np.load(io.BytesIO(stream.read()), allow_pickle=False) as given:
        inputs = {value.name: given[str(i)] for i, value in enumerate(model.graph.input) if str(i) in given}
    try:
        with np.errstate(all="ignore"):
            outputs = ReferenceEvaluator(model).run(None, inputs)
    except Exception as error:
        sys.stderr.write(f"{type(error).__name__}: {error}"[:300])
        sys.exit(1)
    if any(not isinstance(each, np.ndarray | np.generic) or each.dtype.hasobject for each in outputs):
        sys.stderr.write("an output is not a tensor of numbers")
        sys.exit(1)
    arrays: Any = {str(i): np.asarray(each) for i, each in enumerate(outputs)}
    np.savez(sys.stdout.buffer, **arrays)


if __name__ == "__main__":
    main()
