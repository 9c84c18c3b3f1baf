"""Rules of ONNX's Split, versions 1, 2, 11, 13 and 18.

They follow the text of the operator and onnx's shape inference; what runtimes were seen to do otherwise is said beside.
"""

from __future__ import annotations

from typing import Final

from dmlsplit.rules.onnx import form, lengths
from dmlsplit.rules.onnx.facts import VERSIONS, OnnxSplit

__all__ = ["RULES", "VERSIONS", "OnnxSplit"]

RULES: Final = (*form.RULES, *lengths.RULES)
