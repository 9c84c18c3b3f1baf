"""What other programs make of ONNX models, each asked in a process of its own: wrong models bring them down.

As a script: `onnx_peer.py PEER MODEL...`; beside each model is MODEL.npy, its input; the outputs go to
MODEL.PEER.<i>.npy, and one JSON line tells how it went.
"""

import importlib.util
import json
import subprocess
import sys

PEERS = {"reference": "onnx", "runtime": "onnxruntime", "openvino": "openvino"}
"""Each peer, and the package it is in."""


def installed(peer):
    return importlib.util.find_spec(PEERS[peer]) is not None


def ask(peer, paths):
    """An answer for each model: {"ok", "outputs" or "error"}."""
    command = [sys.executable, __file__, peer, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(paths), (paths[len(answers)], done.returncode, done.stderr)
    return answers


def _reference(path, data):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(path).run(None, {"x": data})


def _runtime(path, data):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": data})


def _openvino(path, data):
    import openvino

    compiled = openvino.Core().compile_model(path, "CPU")
    found = compiled([data])
    return [found[output] for output in compiled.outputs]


def main(peer, paths):
    import numpy as np

    run = {"reference": _reference, "runtime": _runtime, "openvino": _openvino}[peer]
    for path in paths:
        try:
            outputs = run(path, np.load(f"{path}.npy", allow_pickle=False))
            for i, output in enumerate(outputs):
                np.save(f"{path}.{peer}.{i}.npy", output)
            answer = {"ok": True, "outputs": len(outputs)}
        except Exception as error:
            answer = {"ok": False, "error": str(error).strip()[-300:]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
