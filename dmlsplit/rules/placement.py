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
        "Its operator changed at this opset, and DirectML's kernels are for an older one.",
        "A kernel is registered for a range of versions of its operator. The model's opset has a newer one, and ONNX "
        "Runtime takes the CPU's kernel without a word. model/opset-without-kernels says which opset helps.",
    ),
    _reason(
        "placement/operator",
        "DirectML has no kernel for its operator.",
        "Neither this version of the operator nor an older one is registered, and no function stands for it.",
    ),
    _reason(
        "placement/types",
        "DirectML has no kernel for its element types.",
        "A kernel names the element types that it takes, of each tensor; for others the CPU's is taken. A Cast in "
        "front of the node and one behind it may help.",
    ),
    _reason(
        "placement/attributes",
        "DirectML has no kernel for its attributes, or for so many outputs.",
        "A kernel asks its own question about attributes: a cubic Resize, a Scatter with a reduction, a MaxPool with "
        "column-major storage and others are left to the CPU.",
    ),
    _reason(
        "placement/sizes",
        "It computes with sizes, which ONNX Runtime leaves on the CPU.",
        "What follows a Shape, and small integers that only such nodes read, stays on the CPU: a copy to the device "
        "and back would take longer than the node. Nothing has to be mended.",
    ),
    _reason(
        "placement/no-kernel",
        "Neither DirectML nor the CPU has a kernel.",
        "The session fails at this node.",
    ),
    _reason(
        "placement/unasked",
        "It is not known.",
        "The table of operators does not have this operator, or not with these types, or sizes of the model follow "
        "from one another over more layers than inference is asked about: where it runs is unknown.",
    ),
)
