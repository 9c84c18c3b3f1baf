"""Rules about a real library that contradicts the verdict; `dmlsplit check --ask` reports them."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import OBSERVED_DEVICE

REFUSES: Final = Notice(
    "library/refuses",
    "The library refuses an operator in which the verdict finds no fault.",
    "The verdict's tables have data types, ranks and recorded values; a build checks more than that. The message has "
    "the call, its HRESULT and, if it was added, the message of DirectML's debug layer.",
    (OBSERVED_DEVICE,),
    basis=Basis.OBSERVED,
)
ENDS_THE_PROCESS: Final = Notice(
    "library/ends-the-process",
    "The library crashes the process, which the verdict does not predict.",
    "The library dereferences a null pointer, reads past the end of an array, or divides by zero; CreateOperator "
    "does not return.",
    (OBSERVED_DEVICE,),
    basis=Basis.OBSERVED,
)
ACCEPTS: Final = Notice(
    "library/accepts",
    "The library accepts an operator that the verdict refuses.",
    "The verdict is for the target. The message names the build that was asked, which may be a different build of "
    "the same feature level.",
    (OBSERVED_DEVICE,),
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
)
NOT_ASKED: Final = Notice(
    "library/not-asked",
    "The library was not asked.",
    "The descriptor cannot be represented as a C struct, the graph has unknown operators, or the library did not "
    "answer in time.",
    (OBSERVED_DEVICE,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
)
