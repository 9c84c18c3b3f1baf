"""ONNX models: their Splits and Concats, models rewritten for a target, and reduced to what causes a finding.

Needs the package onnx.

for node in dml.onnx.read("model.onnx", dims={"batch": 1}):
    print(node.path, node.report)
written = dml.onnx.legalize("model.onnx", directml="1.8.0")
small = dml.onnx.reduce("model.onnx", "1.24.4")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlsplit.system.lazy import lazy

if TYPE_CHECKING:
    from dmlsplit.checking.open_sizes import OpenAnswer, open_answer
    from dmlsplit.formats.joins import JoinNode
    from dmlsplit.formats.nodes import SplitNode
    from dmlsplit.mending import Written, legalize
    from dmlsplit.mending.words import Change
    from dmlsplit.onnxruntime.model_nodes import read
    from dmlsplit.reducing import reduce
    from dmlsplit.reducing.reduction import Reduction

__all__ = [
    "Change",
    "JoinNode",
    "OpenAnswer",
    "Reduction",
    "SplitNode",
    "Written",
    "legalize",
    "open_answer",
    "read",
    "reduce",
]

_NAMES = {
    "dmlsplit.checking.open_sizes": "OpenAnswer open_answer",
    "dmlsplit.formats.joins": "JoinNode",
    "dmlsplit.formats.nodes": "SplitNode",
    "dmlsplit.mending": "Written legalize",
    "dmlsplit.mending.words": "Change",
    "dmlsplit.onnxruntime.model_nodes": "read",
    "dmlsplit.reducing": "reduce",
    "dmlsplit.reducing.reduction": "Reduction",
}

__getattr__, __dir__ = lazy(__name__, _NAMES)
