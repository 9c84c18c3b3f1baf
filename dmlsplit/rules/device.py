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
    "The numbers are compared as signed integers. Any number up to the maximum is accepted, whether or not it is a "
    "level. It does not change what the build accepts.",
    (CREATE_DEVICE, OBSERVED_DEVICE),
    outcome="DXGI_ERROR_UNSUPPORTED",
)
NO_LEVEL_SUPPORTED: Final = Notice(
    "device/no-feature-level-supported",
    "None of the requested feature levels is supported, or none is requested.",
    "The answer is the largest requested number that is not above the build's maximum, whether or not it is a level; "
    "0 is ignored.",
    (OBSERVED_DEVICE, QUERY_LEVELS),
    basis=Basis.OBSERVED,
    outcome="DXGI_ERROR_UNSUPPORTED",
)
EXECUTION_FLAGS_UNKNOWN: Final = Notice(
    "device/execution-flags-unknown",
    "CompileOperator is called with a bit that is not in DML_EXECUTION_FLAGS.",
    "Values from 0 to 7 are accepted. None of them changes what Split and Join do.",
    (EXECUTION_FLAGS, OBSERVED_DEVICE),
    outcome="E_INVALIDARG",
)
NOT_INITIALIZED: Final = Notice(
    "device/not-initialized",
    "An operator is dispatched without having been initialized.",
    "Every compiled operator must be initialized exactly once, even if it owns no tensors; the builds do not check "
    "this. If an operator with owned inputs is not initialized, its persistent resource has whatever content it had "
    "before.",
    (CREATE_INITIALIZER, OBSERVED_DEVICE),
    severity=Severity.WARNING,
    outcome=WARNS,
)
INITIALIZED_TWICE: Final = Notice(
    "device/initialized-twice",
    "An operator is initialized a second time.",
    "Every compiled operator must be initialized exactly once; the builds do not check this.",
    (CREATE_INITIALIZER, OBSERVED_DEVICE),
    severity=Severity.WARNING,
    outcome=WARNS,
)
ORDER_NOT_PROMISED: Final = Notice(
    "device/write-order-not-promised",
    "Elements of an output overlap, and it is not defined which of their values remains.",
    "DirectML creates and runs such an operator: see tensor/output-elements-overlap. On one thread, the last value "
    "in row-major order was observed to win for Split, but not always for Join; on several threads it is a race. "
    "Nothing else is affected.",
    (OBSERVED_DEVICE, OURS),
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    outcome=WARNS,
)
BUILD_NOT_OBSERVED: Final = Notice(
    "device/build-not-observed",
    "This build's behaviour from compilation on was not observed.",
    "The build is assumed to behave like all builds that were observed to compile, which agree with each other.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
    outcome="reported as a note",
)
