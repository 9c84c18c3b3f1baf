"""ONNX Runtime with its DirectML execution provider: the known versions, and how each runs a model.

for node in dml.onnxruntime.on_onnxruntime("model.onnx", "1.24.4", run_shapes={"images": (1, 3, 640, 640)}):
    print(node.path, node.answer.outcome, node.answer.at, node.answer.compile)
for step in dml.onnxruntime.explain("model.onnx", "split_qkv", "1.24.4").steps:
    print(step.name, step.fate)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlsplit.system.lazy import lazy

if TYPE_CHECKING:
    from dmlsplit.onnxruntime.answers import NodeOnRuntime
    from dmlsplit.onnxruntime.explaining import Explanation, Fate, FusedPart, NodeState, Placement, Step, explain
    from dmlsplit.onnxruntime.facts import FirstRun as FirstRun
    from dmlsplit.onnxruntime.facts import LengthsFrom as LengthsFrom
    from dmlsplit.onnxruntime.facts import RuntimeFacts as RuntimeFacts
    from dmlsplit.onnxruntime.prediction import on_onnxruntime, session
    from dmlsplit.onnxruntime.reports import RuntimeReport
    from dmlsplit.targets.runtime_versions import NEWEST as NEWEST
    from dmlsplit.targets.runtime_versions import Runtime, find_runtime, runtimes
    from dmlsplit.targets.runtime_versions import runtime_of_release as runtime_of_release
    from dmlsplit.targets.session_options import SessionOptions
    from dmlsplit.verdicts.model_placements import (
        Failed,
        FusedSize,
        GraphOutcome,
        NodePlacement,
        Provider,
        SessionAnswer,
        Why,
    )
    from dmlsplit.verdicts.runtime_answers import CompileCall, Outcome, RuntimeAnswer

__all__ = [
    "CompileCall",
    "Explanation",
    "Failed",
    "Fate",
    "FusedPart",
    "FusedSize",
    "GraphOutcome",
    "NodeOnRuntime",
    "NodePlacement",
    "NodeState",
    "Outcome",
    "Placement",
    "Provider",
    "Runtime",
    "RuntimeAnswer",
    "RuntimeReport",
    "SessionAnswer",
    "SessionOptions",
    "Step",
    "Why",
    "explain",
    "find_runtime",
    "on_onnxruntime",
    "runtimes",
    "session",
]

_NAMES = {
    "dmlsplit.onnxruntime.answers": "NodeOnRuntime",
    "dmlsplit.onnxruntime.explaining": "Explanation Fate FusedPart NodeState Placement Step explain",
    "dmlsplit.onnxruntime.facts": "FirstRun LengthsFrom RuntimeFacts",
    "dmlsplit.onnxruntime.prediction": "on_onnxruntime session",
    "dmlsplit.onnxruntime.reports": "RuntimeReport",
    "dmlsplit.targets.runtime_versions": "NEWEST Runtime find_runtime runtime_of_release runtimes",
    "dmlsplit.targets.session_options": "SessionOptions",
    "dmlsplit.verdicts.model_placements": "Failed FusedSize GraphOutcome SessionAnswer NodePlacement Provider Why",
    "dmlsplit.verdicts.runtime_answers": "CompileCall Outcome RuntimeAnswer",
}
__getattr__, __dir__ = lazy(__name__, _NAMES)
