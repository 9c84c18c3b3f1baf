"""OpenVINO's own answers, from a process of its own: wrong models bring it down.

As a script: `openvino_peer.py REQUESTS`, a JSON list of requests; one JSON line for each answer.
"""

import json
import subprocess
import sys
from pathlib import Path

TYPES = ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "boolean", "bf16")


def ask(requests, folder):
    """An answer for each request, in order: {"ok", "shapes", "error"}; a process that dies answers {"ok": None}."""
    answers = []
    while len(answers) < len(requests):
        path = Path(folder) / "requests.json"
        path.write_text(json.dumps(requests[len(answers) :]), "utf-8")
        done = subprocess.run(
            [sys.executable, __file__, str(path)], capture_output=True, text=True, timeout=600, check=False
        )
        answers += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode == 0 and len(answers) < len(requests):
            raise AssertionError(done.stderr)
        if len(answers) < len(requests):
            answers.append({"ok": None})
    return answers


def _built(request):
    """A model made with OpenVINO's own operations, and saved as an IR."""
    import numpy as np
    import openvino as ov
    from openvino import opset1 as ops

    dims = [
        ov.Dimension(*dim) if isinstance(dim, list) else ov.Dimension(-1 if dim is None else dim)
        for dim in request["shape"]
    ]
    x = ops.parameter(ov.PartialShape(dims), getattr(ov.Type, request["type"]), name="x")
    index = np.dtype(request["index"])
    axis = ops.constant(np.array(request["axis"], index))
    parts = request["parts"]
    if isinstance(parts, int):
        split = ops.split(x, axis, parts)
    else:
        split = ops.variadic_split(x, axis, ops.constant(np.array(parts, index)))
    split.set_friendly_name("s")
    ov.serialize(ov.Model(split.outputs(), [x]), request["path"])


def _answer(request):
    import numpy as np
    import openvino as ov

    core = ov.Core()
    if "parts" in request:
        _built(request)
    model = core.read_model(request["path"])
    answer = {"ok": True, "shapes": [str(output.get_partial_shape()) for output in model.outputs]}
    inputs = request.get("inputs", [request["input"]] if "input" in request else [])
    if inputs:
        infer = core.compile_model(model, "CPU").create_infer_request()
        for i, name in enumerate(inputs):
            data = np.load(name)
            tensor = ov.Tensor(getattr(ov.Type, request["type"]), ov.Shape(data.shape))
            np.copyto(tensor.data.view(data.dtype), data)
            infer.set_input_tensor(i, tensor)
        infer.infer()
        for i in range(len(model.outputs)):
            part = infer.get_output_tensor(i).data
            np.save(f"{inputs[0]}.{i}.npy", part.view(data.dtype))
        answer["parts"] = len(model.outputs)
    return answer


def main(path):
    for request in json.loads(Path(path).read_text("utf-8")):
        try:
            answer = _answer(request)
        except Exception as error:
            answer = {"ok": False, "error": str(error).strip().splitlines()[-1]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
