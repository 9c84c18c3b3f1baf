"""Rules of ONNX's Split, versions 1, 2, 11, 13 and 18.

They follow the text of the operator and onnx's shape inference; what runtimes were seen to do otherwise is said beside.
"""

from __future__ import annotations

from typing import Final

from dmlsplit.diagnostics import Basis, Severity
from dmlsplit.rules._model import Rule
from dmlsplit.rules.onnx import form, lengths, sources
from dmlsplit.rules.onnx.facts import VERSIONS, OnnxSplit

__all__ = ["FUNCTION_RECURSIVE", "RULES", "VERSIONS", "OnnxSplit"]

FUNCTION_RECURSIVE: Final = Rule(
    "onnx/function-recursive",
    Severity.ERROR,
    Basis.DOCUMENTED,
    "A local function calls itself.",
    "Directly or by way of others; the Splits inside are not judged.",
    (sources.IR,),
)

RULES: Final = (*form.RULES, *lengths.RULES)
