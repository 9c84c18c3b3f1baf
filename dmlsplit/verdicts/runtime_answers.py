"""The answer of a version of ONNX Runtime about a node: where it runs, and which operators are submitted to
DirectML."""

from __future__ import annotations

import enum
from dataclasses import field

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.system.records import record
from dmlsplit.targets.runtime_versions import Runtime


class Outcome(enum.StrEnum):
    DML = "DML"
    CPU = "CPU"
    SESSION_FAILS = "session-fails"
    RUN_FAILS = "run-fails"
    UNKNOWN = "unknown"


@record
class CompileCall:
    """CompileGraph or CompileOperator, and its DML_EXECUTION_FLAGS; None if it is not known whether the fused graph has
    so many nodes that it gets other flags."""

    call: str
    flags: int | None


@record
class RuntimeAnswer:
    """The answer of a version of ONNX Runtime about a node.

    `at` says when the operator is created or the failure happens: "init" for session creation, "run" for the first Run,
    None if nothing is submitted. `operators` are the distinct submitted descriptors, in order; `hresults` are the
    results of CreateOperator for each. `diagnostics` give reasons and remedies.
    """

    runtime: Runtime
    outcome: Outcome
    at: str | None = None
    operators: tuple[OperatorDesc, ...] = ()
    hresults: tuple[int, ...] = ()
    compile: CompileCall | None = None
    diagnostics: tuple[Diagnostic, ...] = field(default=())
