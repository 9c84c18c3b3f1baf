"""Rules about a real library that contradicts the verdict; `dmlsplit check --ask` reports them."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import OBSERVED_DEVICE

REFUSES: Final = Notice(
    "library/refuses",
    "The library refuses what the verdict finds no fault in.",
    "Tables hold data types, ranks and what was recorded of values; a build checks more. The message has the call, its "
    "HRESULT, and what DirectML's debug layer says of it, if that has been added.",
    (OBSERVED_DEVICE,),
    basis=Basis.OBSERVED,
)
ENDS_THE_PROCESS: Final = Notice(
    "library/ends-the-process",
    "The library ends the process, which the verdict does not say.",
    "It reads through a null pointer, past an array, or divides by zero, and CreateOperator does not return.",
    (OBSERVED_DEVICE,),
    basis=Basis.OBSERVED,
)
ACCEPTS: Final = Notice(
    "library/accepts",
    "The library accepts what the verdict refuses.",
    "The verdict holds for the target; the build that was asked is named in the message, and may be another one of its "
    "feature level.",
    (OBSERVED_DEVICE,),
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
)
NOT_ASKED: Final = Notice(
    "library/not-asked",
    "The library was not asked.",
    "No C struct holds the descriptor, not all of a graph's operators are known, or there was no answer in time.",
    (OBSERVED_DEVICE,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
)
