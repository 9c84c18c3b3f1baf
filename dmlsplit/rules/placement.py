"""Rules that say why ONNX Runtime runs a node elsewhere than on DirectML: the reasons that a placement names."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules.onnxruntime import KERNELS, OBSERVED, PREFERENCE


def _reason(id: str, summary: str, explanation: str) -> Notice:
    return Notice(id, summary, explanation, (OBSERVED, KERNELS, PREFERENCE), Severity.NOTE, Basis.OBSERVED)


REASONS: Final = (
    _reason(
        "placement/opset",
        "The operator changed at this opset, and DirectML's kernels are for an older one.",
        "A kernel is registered for a range of versions of its operator. The model's opset has a newer version, and "
        "ONNX Runtime uses the CPU's kernel without a warning. model/opset-without-kernels says which opset helps.",
    ),
    _reason(
        "placement/operator",
        "DirectML has no kernel for the operator.",
        "Neither this version of the operator nor an older one is registered, and no function replaces it.",
    ),
    _reason(
        "placement/types",
        "DirectML has no kernel for the node's element types.",
        "A kernel is registered with the element types that it accepts for each tensor; for other types the CPU's "
        "kernel is used. A Cast before the node and one after it may help.",
    ),
    _reason(
        "placement/attributes",
        "DirectML has no kernel for the node's attributes, or for its number of outputs.",
        "Some kernels are registered with a check of the node's attributes. A cubic Resize, a Scatter with a "
        "reduction, a MaxPool with column-major storage and others are left to the CPU.",
    ),
    _reason(
        "placement/sizes",
        "The node computes sizes, which ONNX Runtime leaves on the CPU.",
        "ONNX Runtime keeps nodes that follow a Shape, and small integers that only such nodes read, on the CPU: a "
        "copy to the device and back would take longer than the node. Nothing needs to be changed.",
    ),
    _reason(
        "placement/no-kernel",
        "Neither DirectML nor the CPU has a kernel.",
        "The session fails at this node.",
    ),
    _reason(
        "placement/unasked",
        "Where the node runs is not known.",
        "The table of placements has no row for this operator or for these types, or the sizes depend on each other "
        "through more layers than shape inference follows.",
    ),
)
