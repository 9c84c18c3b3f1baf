"""Rules about a node on its way to DirectML, which front ends report; they have no check of their own."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import BUFFER_DESC, DATA_TYPE, OBSERVED_RUNTIMES, OURS, Source

_DML_EP: Final = "https://github.com/microsoft/onnxruntime/tree/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators"

RUNTIME_DIFFERS: Final = Notice(
    "node/runtime-differs",
    "A runtime does otherwise than the framework's specification.",
    "The verdict follows the specification; the message says which runtimes, in the versions that were looked at, do "
    "what.",
    (OBSERVED_RUNTIMES,),
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
)

SHAPE_UNKNOWN: Final = Notice(
    "node/shape-unknown",
    "The shape or a length that DirectML needs is not known from the model.",
    "DirectML takes sizes, not symbols. The message says what to pass; until then the node is judged by its "
    "framework's rules as far as they go, and nothing is guessed.",
    (BUFFER_DESC,),
    severity=Severity.WARNING,
    basis=Basis.OURS,
)
SIZES_OPEN: Final = Notice(
    "node/sizes-open",
    "The model leaves sizes open; the answer is the one for all sizes that it names.",
    "A dynamic axis is no fault. What the framework's rules and the target's limits ask of a size is said with the "
    "answer: a number that divides it, sizes that have to be one, the elements of the largest tensor. To ask about "
    "particular sizes, pass --shape or --dim.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
)
TYPE_NOT_LOWERED: Final = Notice(
    "node/type-not-lowered",
    "No DirectML data type carries the bits of the node's elements.",
    "A split moves bits, so any type of 8, 16, 32, 64 or 128 bits goes as integers; strings and elements that "
    "share a byte cannot.",
    (DATA_TYPE,),
    basis=Basis.OURS,
)
NOT_LOWERED: Final = Notice(
    "node/not-lowered",
    "The node stands for no DirectML operator.",
    "It has faults by its framework's own rules, which are reported beside this one; or a size that a UINT, "
    "which has 32 bits, does not hold.",
    (OURS,),
    basis=Basis.OURS,
)
EMPTY_TENSOR: Final = Notice(
    "node/empty-tensor",
    "The input or an output has no elements, and ONNX Runtime's DirectML back end skips the whole operator.",
    "DirectML has no empty tensors. The rewriting leaves empty outputs out of the operator and still makes them; "
    "ONNX Runtime's DirectML back end does nothing at all, so that the other outputs are never written. Empty inputs "
    "of a Concat are no such case: both leave them out.",
    (Source("ONNX Runtime, DirectML execution provider", _DML_EP),),
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
)
REWRITTEN: Final = Notice(
    "node/rewritten",
    "The level or release takes the node only after a rewriting.",
    "The message has the steps; SplitNode.legalize gives the operators.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
)
