"""What ONNX Runtime with its DirectML execution provider computed: tests/data/onnx_graphs/executions.jsonl.xz.

A line is a model in words (`set`, `class`, `model`, and `cure` or `names`) with its `executions`: [onnxruntime,
directml, optimization level, fused graphs or not, verdict, the operators of each CompileGraph].
"""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import onnx

from dmlsplit.formats.onnx import loading, tensors
from dmlsplit.formats.sessions import Inputs
from dmlsplit.graphs.traits import traits_of
from dmlsplit.onnxruntime import Runtime, SessionOptions, find_runtime
from dmlsplit.onnxruntime.fused import SessionGraphs
from dmlsplit.onnxruntime.fused_parts import session_graphs
from dmlsplit.onnxruntime.graph_judging import judged, takes_constants
from dmlsplit.onnxruntime.graphs_of_model import new_graphs
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.scopes import SessionModel
from tests.formats.onnx_graphs import models, patterns

DATA: Final = Path(__file__).parents[2] / "data" / "onnx_graphs" / "executions.jsonl.xz"


class Execution(NamedTuple):
    onnxruntime: str
    directml: str
    level: int
    fused: bool
    verdict: str
    operators: list[list[str | int]] | None

    @property
    def runtime(self) -> Runtime:
        """The pair of versions, also of those that do not come together."""
        return replace(find_runtime(self.onnxruntime), directml=self.directml)

    @property
    def options(self) -> SessionOptions:
        return SessionOptions(optimization=self.level, graph_fusion=self.fused)


@cache
def lines() -> list[dict[str, Any]]:
    with lzma.open(DATA, "rt") as file:
        return [json.loads(line) for line in file]


def executions(line: dict[str, Any]) -> list[Execution]:
    return [Execution(*each) for each in line["executions"]]


def name_of(line: dict[str, Any]) -> str:
    return " ".join(str(line[key]) for key in ("set", "model", "names") if key in line)


BY_CLASS: Final = {
    "A": models.gate,
    "B": models.repeated,
    "C": models.overwritten,
    "D": models.cut,
    "E": models.five,
}
BY_SET: Final = {
    "names": models.named,
    "sigmoid products": models.sigmoid_product,
    "dead nodes": models.dead,
    "unwritten output": models.unwritten,
}


def model_of(line: dict[str, Any]) -> onnx.ModelProto:
    """The model that the words stand for."""
    if any(line["model"].startswith(start) for start in patterns.BLOCKS):
        return patterns.pattern(line)
    return BY_SET.get(line["set"], BY_CLASS.get(line["class"], models.gate))(line)


def free_dimensions(line: dict[str, Any]) -> dict[str, int]:
    return {"N": 1} if line["model"].endswith("overridden at session creation") else {}


def session_model(proto: onnx.ModelProto, free: dict[str, int] | None = None) -> SessionModel:
    sessions = OnnxSessions(loading.without_weights(proto), tensors.no_external_data)
    return sessions.model(Inputs(free_dimensions=free or {}))


def parts_of(model: SessionModel, runtime: Runtime, options: SessionOptions) -> list[SessionGraphs]:
    graphs = new_graphs(model, runtime, options)
    return [session_graphs(graph) for graph in graphs]


def said(parts: list[SessionGraphs], runtime: Runtime, options: SessionOptions) -> str:
    """The verdict in the words of the recording."""
    if any(part.dead for part in parts) and options.graph_fusion:
        return "session refused"
    takes = takes_constants(runtime)
    answers = [
        judged(graph, traits_of(runtime.release), takes_constants=takes)
        for part in parts
        for graph in part.fused
        if options.graph_fusion
    ]
    if any(answer.compiles is False for answer in answers):
        return "session refused"
    if any("wrong" in answer.outputs for answer in answers):
        return "wrong"
    if any(part.doubtful for part in parts) or any("unknown" in answer.outputs for answer in answers):
        return "unknown"
    return "output never written" if any(part.unwritten for part in parts) else "right"
