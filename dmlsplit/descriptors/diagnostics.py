"""Diagnostic and Report, with their plain-text and JSON forms."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from dmlsplit.descriptors import notebook
from dmlsplit.descriptors.enums import HResult
from dmlsplit.descriptors.location import Location
from dmlsplit.system.errors import DmlSplitError
from dmlsplit.system.records import record

SCHEMA = 1
"""Version of the JSON form of a Report."""

Value: TypeAlias = int | str | None
Position: TypeAlias = tuple[int, int]
"""Line and column, both from 1."""


class Severity(enum.StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Basis(enum.StrEnum):
    """What a rule is based on."""

    DOCUMENTED = "documented"
    """Microsoft's pages or header; for a framework's node, the framework's specification."""
    OBSERVED = "observed"
    """Observations of DirectML builds or other runtimes."""
    OURS = "ours"
    """dmlsplit's own judgement: DirectML, or the framework, may accept it."""


@record
class Diagnostic:
    """One fault: the rule, the member at fault, its value and the limit.

    `line` and `column` are set where the descriptor was read from a text.
    """

    rule: str
    severity: Severity
    basis: Basis
    location: Location
    message: str
    expected: Value
    actual: Value
    reference: str
    line: int | None = None
    column: int | None = None

    @property
    def path(self) -> str:
        """The location in DirectML's names, such as "OutputTensors[1].Sizes[2]"; "" for the operator itself."""
        return str(self.location)

    def __str__(self) -> str:
        place = f"{self.path}: " if self.location else ""
        return f"{self.severity}[{self.rule}] {place}{self.message}"

    def to_dict(self) -> dict[str, Value]:
        """Returns the JSON form: rule, severity, basis, path, line, column, message, expected, actual and reference, in
        this order; None for what is missing."""
        return {
            "rule": self.rule,
            "severity": str(self.severity),
            "basis": str(self.basis),
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "expected": self.expected,
            "actual": self.actual,
            "reference": self.reference,
        }


def errors_of_directml(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Returns the errors for which DirectML itself refuses an operator or removes the device: those that are not
    ours."""
    return [d for d in diagnostics if d.severity is Severity.ERROR and d.basis is not Basis.OURS]


@record
class Report:
    """The judgement of one operator descriptor.

    `ok`: the target accepts the descriptor, and running it is safe. `hresult`: the predicted result of CreateOperator,
    None if no operator was judged for a target. Diagnostics are in descriptor order.
    """

    diagnostics: tuple[Diagnostic, ...]
    judged_by: str
    hresult: HResult | int | None
    operator: str | None
    file: str | None = None
    index: int = 0
    hidden: tuple[Diagnostic, ...] = ()
    """Diagnostics that the caller asked to hide; they still count for `ok`."""
    library: Mapping[str, object] | None = None
    """The real library's answer in its JSON form; None if it was not asked."""

    @property
    def ok(self) -> bool:
        if not self.diagnostics and not self.hidden:
            return True
        return not any(d.severity is Severity.ERROR for d in (*self.diagnostics, *self.hidden))

    @property
    def is_unknown(self) -> bool:
        """True if too little is known for a verdict."""
        return False

    @property
    def basis_of_verdict(self) -> str:
        """How certain the verdict is: "exact" if every check of the build is known, "tables" if `ok` means only that
        nothing recorded refuses the operator."""
        return "exact"

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)

    @property
    def remark(self) -> str:
        """A remark printed next to the verdict; "" if there is none."""
        return ""

    @property
    def cure(self) -> str:
        """What to change to fix the fault, as text; "" if that is not known."""
        return ""

    def raise_if_errors(self) -> None:
        """Raises ValidationError, which carries this report, unless `ok`."""
        if not self.ok:
            raise ValidationError(self)

    def located(self, locate: Callable[[Location], Position | None]) -> Report:
        """Returns a copy of this report whose diagnostics have the line and column that `locate` returns for their
        locations; those for which it returns None stay as they are."""
        found = []
        for diagnostic in self.diagnostics:
            position = locate(diagnostic.location)
            if position is not None:
                diagnostic = replace(diagnostic, line=position[0], column=position[1])
            found.append(diagnostic)
        return replace(self, diagnostics=tuple(found))

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict; all keys are always present, except "library", which is present only if a
        library was asked."""
        return {
            "schema": SCHEMA,
            "file": self.file,
            "index": self.index,
            "operator": self.operator,
            "judged_by": self.judged_by,
            "ok": self.ok,
            "hresult": None if self.hresult is None else f"0x{self.hresult:08X}",
            "diagnostics": [d.to_dict() for d in self.diagnostics],
            **({} if self.library is None else {"library": dict(self.library)}),
        }

    def __str__(self) -> str:
        verdict = "ok" if self.ok else "not ok"
        code = "" if self.hresult is None else f", HRESULT 0x{self.hresult:08X}"
        head = f"{self.operator or 'no operator'}: {verdict} ({self.judged_by}{code})"
        if self.remark:
            head += f"; {self.remark}"
        return "\n".join([head, *(f"  {d}" for d in self.diagnostics)])

    def _repr_html_(self) -> str | None:
        return notebook.table(self)


class ValidationError(DmlSplitError, ValueError):
    """A descriptor with faults; `report` holds all of them."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report

    def __reduce__(self) -> tuple[type[ValidationError], tuple[Report]]:
        return type(self), (self.report,)


class DirectMLError(ValidationError):
    """The emulated device refused a call as DirectML does.

    `hresult` is the call's result; None if there is no result because the call ends the process, or the dispatch reads
    or writes outside its buffers. `report` gives the reason.
    """

    def __init__(self, hresult: int | None, report: Report) -> None:
        super().__init__(report)
        self.hresult = hresult

    def __reduce__(self) -> tuple[type[DirectMLError], tuple[int | None, Report]]:  # type: ignore[override]
        return type(self), (self.hresult, self.report)
