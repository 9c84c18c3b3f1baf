"""Reports as annotations of GitHub's workflows: a command a line, which the log shows at the place it names.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dmlsplit.checking.results import Note, Result
from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.report import text
from dmlsplit.report.shown import AS_USUAL, Shown
from dmlsplit.system.printable import printable

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def chunks(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """An annotation for each diagnostic, then a line that counts, as the text report has it."""
    tally = text.Tally(targets)
    for result in tally.watch(results):
        for diagnostic in result.report.diagnostics:
            yield _annotation(diagnostic, result)
    yield f"{tally.summary()}\n"


def _annotation(diagnostic: Diagnostic, result: Result) -> str:
    properties: dict[str, object] = {"file": printable(result.report.file or "", None)}
    place = (diagnostic.line, diagnostic.column)
    if None in place:
        place = (None if isinstance(result, Note) else result.position) or (None, None)
    properties |= {"line": place[0], "col": place[1], "title": diagnostic.rule}
    given = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in properties.items() if value)
    where = f"{diagnostic.path}: " if diagnostic.path else ""
    message = printable(f"{where}{diagnostic.message} ({result.report.judged_by})", None)
    return f"::{_COMMANDS[diagnostic.severity]} {given}::{_escaped(message)}\n"


def _escaped(value: str, more: str = "") -> str:
    """A workflow command ends at the line's end, a property at a comma: both are percent-encoded."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in value)
