"""What seven versions of ONNX Runtime were seen to do with models (tests/data/onnxruntime/recorded.jsonl.xz).

One JSON object a line: `set` and `name` of the model, `model`, its description, `ort`, the versions that gave this
answer, `env`, other capabilities of the device; `session`, `ran`, `error`; `placement`, nodes per provider after
fusion; `calls`, what reached DirectML, where a tensor is [data type, sizes, bytes] and `times` counts equal calls in a
row.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.onnxruntime import SessionOptions
from tests.onnxruntime.compare import Compiled, Observed, Submitted
from tests.onnxruntime.models import Sample, described
from tests.onnxruntime.worded import worded

DATA: Final = Path(__file__).parents[1] / "data" / "onnxruntime" / "recorded.jsonl.xz"


def lines() -> Iterator[dict[str, Any]]:
    with lzma.open(DATA, "rt") as file:
        for line in file:
            yield json.loads(line)


def sample_of(line: Mapping[str, Any]) -> Sample | None:
    """The model of a line; None where it cannot be built here."""
    what = line["model"]
    if "shapes" in what or "shape" in what:
        return described(line["name"], what)
    return worded(line["name"], what)


def options_of(line: Mapping[str, Any]) -> SessionOptions:
    config = line["model"].get("config", {})
    return SessionOptions(
        graph_fusion=config.get("ep.dml.disable_graph_fusion") != "1",
        optimization=line["model"].get("opt", 99),
        cpu_fallback=config.get("session.disable_cpu_ep_fallback") != "1",
        float64="FAKE_DOUBLE=0" not in line.get("env", ""),
        compute_only="FAKE_D3DFL=0x1000" in line.get("env", ""),
    )


def observed(line: Mapping[str, Any]) -> Observed:
    placement = line.get("placement") or {}
    on_cpu = len(placement.get("CPU_nodes", ())) if "DML" in placement or not placement else None
    found = Observed(line["session"], line.get("ran"), on_cpu=on_cpu, error=line.get("error", ""))
    made: list[OperatorDesc | None] = []
    for call in line.get("calls", ()):
        if "op" in call or "type" in call:
            operator = _operator(call)
            made += [operator] * call.get("times", 1)
            if operator is not None:
                found.submitted.add(Submitted(operator, int(call["hr"], 16), call["at"]))
            continue
        # The kernels are made first, then the operators that are compiled.
        count = call.get("nodes", 1)
        for operator in made[len(made) - count :] if call["hr"] == "0x00000000" else ():
            if operator is not None:
                found.compiled.add(Compiled(operator, call["at"], call["call"], call["flags"]))
        made = []
    return found


def _operator(call: Mapping[str, Any]) -> OperatorDesc | None:
    match call.get("op"):
        case "SPLIT":
            outputs = [_tensor(tensor) for tensor in _repeated(call["outputs"])]
            return SplitOperatorDesc(_tensor(call["input"]), outputs, call["axis"])
        case "JOIN":
            inputs = [_tensor(tensor) for tensor in _repeated(call["inputs"])]
            return JoinOperatorDesc(inputs, _tensor(call["output"]), call["axis"])
    return None


def _repeated(tensors: list[Any]) -> list[Any]:
    if len(tensors) == 2 and isinstance(tensors[1], dict) and "times" in tensors[1]:
        return [tensors[0]] * tensors[1]["times"]
    return tensors


def _tensor(tensor: Any) -> TensorDesc:
    if isinstance(tensor, dict):
        return TensorDesc(tensor["Type"], None)
    data_type, sizes, total, *others = tensor
    flags = others[0].get("Flags", 0) if others else 0
    return TensorDesc(1, BufferTensorDesc(data_type, sizes, total_tensor_size_in_bytes=total, flags=flags))
