"""ONNX Runtime with its DirectML execution provider: which versions there are, and what each makes of a node.

answer = predict(RuntimeFacts(...), find_runtime("1.24.4"), first_run=FirstRun(((1, 6),)))
answer.outcome, answer.at, answer.operators, answer.hresults, answer.compile
"""

from __future__ import annotations

from dmlsplit.onnxruntime.facts import FirstRun, LengthsFrom, RuntimeFacts
from dmlsplit.onnxruntime.predict import predict
from dmlsplit.targets.runtime_versions import NEWEST, Runtime, find_runtime, runtime_of_release, runtimes
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.runtime_answers import CompileCall, Outcome, RuntimeAnswer

__all__ = [
    "NEWEST",
    "CompileCall",
    "FirstRun",
    "LengthsFrom",
    "Outcome",
    "Runtime",
    "RuntimeAnswer",
    "RuntimeFacts",
    "SessionOptions",
    "find_runtime",
    "predict",
    "runtime_of_release",
    "runtimes",
]
