"""Split and Concat nodes of ONNX models: Split 1, 2, 11, 13 and 18, Concat 1, 4, 11 and 13, in graphs, subgraphs and
local functions.

    for node in onnx.read("model.onnx", shapes={"images": (1, 3, 640, 640)}, dims={"batch": 1}):
        print(node.name, node.lengths, node.report)

`legalize` writes a model in a form that a target accepts.

The modules here handle the bytes of a file. Packages above this one read nodes from them and predict ONNX Runtime;
their names are imported here on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlsplit.system.lazy import lazy

if TYPE_CHECKING:
    from dmlsplit.mending import legalize
    from dmlsplit.onnxruntime.model_nodes import read, read_model

__all__ = ["legalize", "read", "read_model"]

_NAMES = {
    "dmlsplit.mending": "legalize",
    "dmlsplit.onnxruntime.model_nodes": "read read_model",
}

__getattr__, __dir__ = lazy(__name__, _NAMES)
