"""Running models: ONNX Runtime and OpenVINO on the CPU, each in a process of its own, which some models end.

As a script: requests are pickled (model, arrays) pairs, each answered with a list of arrays, or None for a model that
does not run.
"""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys


class Peer:
    """One program; asked as a function, it gives the outputs, or None where the model does not run."""

    def __init__(self, name):
        self.name = name
        self._process = None

    @property
    def installed(self):
        return importlib.util.find_spec(self.name) is not None

    def __call__(self, model: bytes, arrays):
        if self._process is None:
            command = [sys.executable, __file__, self.name]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        try:
            pickle.dump((model, arrays), self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (EOFError, OSError):
            self.close()
            return None

    def close(self):
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def same(a, b):
    """Whether two lists of arrays are equal bit for bit."""
    return len(a) == len(b) and all(
        x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True)
    )


def _onnxruntime(model, arrays):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, arrays)


def _openvino(model, arrays):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled(arrays)
    return [found[output] for output in compiled.outputs]


def _reference(model, arrays):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, arrays)


def main(name):
    run = {"onnxruntime": _onnxruntime, "openvino": _openvino, "onnx": _reference}[name]
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    while True:
        try:
            model, arrays = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            found = run(model, arrays)
        except Exception:
            found = None
        pickle.dump(found, answers)
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
