"""What the front ends report about a text: these rules have no check of their own."""

from __future__ import annotations

from typing import Final

from dmlsplit.diagnostics import Basis, Severity
from dmlsplit.rules._model import OURS, Rule, Source

DXDISPATCH: Final = Source(
    "DxDispatch guide", "https://github.com/microsoft/DirectML/blob/master/DxDispatch/doc/Guide.md"
)

RULES: Final = (
    Rule(
        "input/malformed",
        Severity.ERROR,
        Basis.OURS,
        "The text is not an operator that can be read.",
        "The message names the line and column. There is no descriptor to judge, hence no HRESULT.",
        (OURS,),
    ),
    Rule(
        "input/operator-not-judged",
        Severity.NOTE,
        Basis.OURS,
        "The operator is neither a Split nor a Join.",
        "dmlsplit knows these two operators; others of the same file are passed over.",
        (OURS,),
    ),
    Rule(
        "input/no-split",
        Severity.NOTE,
        Basis.OURS,
        "The model has no Split.",
        "It was read whole, subgraphs and functions included.",
        (OURS,),
    ),
    Rule(
        "input/total-size-computed",
        Severity.NOTE,
        Basis.OURS,
        "A TotalTensorSizeInBytes of 0 in a DxDispatch model was replaced by the implied size.",
        "DxDispatch computes the size where a model leaves it out or gives 0; a program that passes 0 to DirectML is "
        "refused.",
        (DXDISPATCH,),
    ),
)
