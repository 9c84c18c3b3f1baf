"""Rules about the emulated device's calls, except bindings; the device itself reports them."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import (
    CREATE_DEVICE,
    CREATE_INITIALIZER,
    EXECUTION_FLAGS,
    OBSERVED_DEVICE,
    OURS,
    QUERY_LEVELS,
)
from dmlsplit.rules.binding import WARNS

MINIMUM_LEVEL_TOO_HIGH: Final = Notice(
    "device/minimum-feature-level-too-high",
    "The minimum feature level is above the highest one of the build.",
    "The numbers are compared as signed ones: any number up to the maximum is taken, whether it names a level or not. "
    "What the build accepts does not depend on it.",
    (CREATE_DEVICE, OBSERVED_DEVICE),
    outcome="DXGI_ERROR_UNSUPPORTED",
)
NO_LEVEL_SUPPORTED: Final = Notice(
    "device/no-feature-level-supported",
    "None of the requested feature levels is supported, or none is requested.",
    "The answer is the largest number asked for that is not above the build's maximum, whether it names a level or "
    "not; 0 counts for nothing.",
    (OBSERVED_DEVICE, QUERY_LEVELS),
    basis=Basis.OBSERVED,
    outcome="DXGI_ERROR_UNSUPPORTED",
)
EXECUTION_FLAGS_UNKNOWN: Final = Notice(
    "device/execution-flags-unknown",
    "CompileOperator is called with a bit that is not in DML_EXECUTION_FLAGS.",
    "0 to 7 are taken. None of them changes what Split and Join do.",
    (EXECUTION_FLAGS, OBSERVED_DEVICE),
    outcome="E_INVALIDARG",
)
NOT_INITIALIZED: Final = Notice(
    "device/not-initialized",
    "An operator is dispatched that was never initialized.",
    "Every compiled operator is initialized exactly once, even if it owns nothing; the builds do not check it. The "
    "persistent resource of one with owned inputs then holds whatever it holds.",
    (CREATE_INITIALIZER, OBSERVED_DEVICE),
    severity=Severity.WARNING,
    outcome=WARNS,
)
INITIALIZED_TWICE: Final = Notice(
    "device/initialized-twice",
    "An operator is initialized a second time.",
    "Every compiled operator is initialized exactly once; the builds do not check it.",
    (CREATE_INITIALIZER, OBSERVED_DEVICE),
    severity=Severity.WARNING,
    outcome=WARNS,
)
ORDER_NOT_PROMISED: Final = Notice(
    "device/write-order-not-promised",
    "Elements of an output overlap, so that which of their values remains is not promised.",
    "DirectML creates and runs such an operator: see tensor/output-elements-overlap. On one thread the row-major last "
    "value was seen to win for Split, not always for Join; on several it is a race. Nothing else is touched.",
    (OBSERVED_DEVICE, OURS),
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    outcome=WARNS,
)
BUILD_NOT_OBSERVED: Final = Notice(
    "device/build-not-observed",
    "What this build does from compilation on was not observed.",
    "It is taken to do what all builds do that were seen to compile, which agree with each other.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
    outcome="a note beside what is reported",
)
