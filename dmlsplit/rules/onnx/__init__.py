"""Rules about ONNX's Split, versions 1, 2, 11, 13 and 18, and its Concat, versions 1, 4, 11 and 13.

They follow the text of the operator and onnx's shape inference; a rule also notes where runtimes were observed to
deviate.
"""

from __future__ import annotations

from typing import Final

from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import ONNX_IR
from dmlsplit.rules.onnx.concat_facts import OnnxConcat
from dmlsplit.rules.onnx.split_facts import VERSIONS, OnnxSplit

__all__ = ["FUNCTION_RECURSIVE", "VERSIONS", "OnnxConcat", "OnnxSplit"]

FUNCTION_RECURSIVE: Final = Notice(
    "onnx/function-recursive",
    "A local function calls itself.",
    "The function calls itself directly or through others. Its Splits and Concats are not judged.",
    (ONNX_IR,),
)
