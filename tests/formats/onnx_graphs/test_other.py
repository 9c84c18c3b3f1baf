"""Models that ONNX Runtime executed with DirectML: tests/data/onnx_graphs/other.jsonl, a model a line.

`lost` are the outputs that were not computed, by each version in `onnxruntime`, fused and unfused; where `refused`, the
session was not made. `directml` stands beside the versions where it is not the one that they ship.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from dmlsplit.formats.onnx import loading, tensors
from dmlsplit.mending import legalize_model
from dmlsplit.onnxruntime import SessionOptions, find_runtime
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.targets.target import find_target
from tests.models import text

DATA = Path(__file__).parents[2] / "data" / "onnx_graphs" / "other.jsonl"
LINES = [json.loads(line) for line in DATA.read_text().splitlines()]
REFUSED = {FaultKind.REFUSED, FaultKind.EMPTY_SECOND_PART, FaultKind.DEAD}


def model_of(line) -> onnx.ModelProto:
    return text(line["model"], line.get("opset", 17))


def said(line, version, fused):
    """The outputs that are said to be lost, "refused", or "unknown"."""
    runtime = find_runtime(version)
    runtime = replace(runtime, observed=True, directml=line.get("directml", runtime.directml))
    sessions = OnnxSessions(loading.without_weights(model_of(line)), tensors.no_external_data)
    options = SessionOptions(graph_fusion=fused)
    found = sessions.of(runtime, options).findings()
    if sessions.of(runtime, options).placement.created is False or any(
        each.fault is not None and each.fault.kind in REFUSED for each in found
    ):
        return "refused"
    if any(each.fault is None for each in found):
        return "unknown"
    model = model_of(line)
    wrong = {name for each in found for name in each.outputs}
    passed_on = {name for each in found if each.fault.kind is FaultKind.EMPTY_PART for name in each.outputs}
    for node in model.graph.node:
        if not passed_on.isdisjoint(node.input):
            passed_on.update(node.output)
    return sorted((wrong | passed_on) & {value.name for value in model.graph.output})


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['class']}: {line['name']}")
def test_every_model_came_out_as_is_said(line):
    for version in line["onnxruntime"]:
        for fused in line["fused"]:
            assert said(line, version, fused) == ("refused" if line.get("refused") else line["lost"]), (version, fused)


@pytest.mark.parametrize(
    "line", [line for line in LINES if line.get("lost") != []], ids=lambda line: f"{line['class']}: {line['name']}"
)
def test_what_legalize_makes_of_it_is_right(line):
    version = line["onnxruntime"][-1]
    target = find_target(onnxruntime=version) if "directml" not in line else find_target(directml=line["directml"])
    written = onnx.load_from_string(legalize_model(model_of(line), target).model)
    assert [value.name for value in written.graph.output] == [value.name for value in model_of(line).graph.output]
    sessions = OnnxSessions(loading.without_weights(written), tensors.no_external_data)
    runtime = replace(find_runtime(version), directml=line.get("directml", find_runtime(version).directml))
    for fused in (True, False):
        assert sessions.of(runtime, SessionOptions(graph_fusion=fused)).findings() == ()
