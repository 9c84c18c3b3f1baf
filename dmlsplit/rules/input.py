"""Rules about a text, which the front ends report; they have no check of their own."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import OURS, Source

DXDISPATCH: Final = Source(
    "DxDispatch guide", "https://github.com/microsoft/DirectML/blob/master/DxDispatch/doc/Guide.md"
)

MALFORMED: Final = Notice(
    "input/malformed",
    "The text cannot be read as an operator.",
    "The message names the line and column. There is no descriptor to judge, hence no HRESULT.",
    (OURS,),
    basis=Basis.OURS,
)
OPERATOR_NOT_JUDGED: Final = Notice(
    "input/operator-not-judged",
    "DirectML up to feature level 6_4 has no such operator, or the node of a model is neither Split nor Concat.",
    "It is skipped; the rest of the file is judged.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
)
NO_SPLIT: Final = Notice(
    "input/no-split",
    "The model has no Split and no Concat.",
    "The whole model was read, including subgraphs and functions.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
)
TOTAL_SIZE_COMPUTED: Final = Notice(
    "input/total-size-computed",
    "A TotalTensorSizeInBytes of 0 in a DxDispatch model was replaced by the implied size.",
    "DxDispatch computes the size if a model omits it or gives 0. DirectML refuses a program that passes 0.",
    (DXDISPATCH,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
)
