"""Rules about a node on its way to DirectML, which front ends report; they have no check of their own."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import BUFFER_DESC, DATA_TYPE, OBSERVED_RUNTIMES, OURS, Source

_DML_EP: Final = "https://github.com/microsoft/onnxruntime/tree/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators"

RUNTIME_DIFFERS: Final = Notice(
    "node/runtime-differs",
    "A runtime deviates from the framework's specification.",
    "The verdict follows the specification. The message says which runtimes deviate, and how; only the versions "
    "listed under the sources were observed.",
    (OBSERVED_RUNTIMES,),
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
)

SHAPE_UNKNOWN: Final = Notice(
    "node/shape-unknown",
    "The model does not determine the shape or a length that DirectML needs.",
    "DirectML needs numbers, not symbols. The message says what to pass. Until then the node is judged by its "
    "framework's rules as far as they apply; nothing is guessed.",
    (BUFFER_DESC,),
    severity=Severity.WARNING,
    basis=Basis.OURS,
)
SIZES_OPEN: Final = Notice(
    "node/sizes-open",
    "The model leaves sizes open; the answer holds for all sizes that meet its conditions.",
    "A dynamic axis is not a fault. The answer includes the conditions that the framework's rules and the target's "
    "limits put on sizes: a number that divides a size, sizes that must be equal, the number of elements of the "
    "largest tensor. To ask about particular sizes, pass --shape or --dim.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
)
TYPE_NOT_LOWERED: Final = Notice(
    "node/type-not-lowered",
    "No DirectML data type can hold the node's elements.",
    "A split only moves bits, so types of 8, 16, 32, 64 or 128 bits are handled as integers. Strings, and elements "
    "that share a byte, cannot be.",
    (DATA_TYPE,),
    basis=Basis.OURS,
)
NOT_LOWERED: Final = Notice(
    "node/not-lowered",
    "The node has no equivalent DirectML operator.",
    "Either it breaks its framework's own rules, which are reported as well, or a size does not fit into a UINT (32 "
    "bits).",
    (OURS,),
    basis=Basis.OURS,
)
EMPTY_TENSOR: Final = Notice(
    "node/empty-tensor",
    "The input or an output has no elements, and ONNX Runtime's DirectML back end skips the whole operator.",
    "DirectML has no empty tensors. The rewriting omits empty outputs from the operator and still produces them. "
    "ONNX Runtime's DirectML back end does nothing at all, so the other outputs are never written. Empty inputs of a "
    "Concat are not affected: both omit them.",
    (Source("ONNX Runtime, DirectML execution provider", _DML_EP),),
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
)
REWRITTEN: Final = Notice(
    "node/rewritten",
    "The level or release accepts the node only after a rewriting.",
    "The message lists the steps; SplitNode.legalize returns the operators.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
)
