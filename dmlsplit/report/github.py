"""Reports as GitHub workflow annotations: one command a line, which GitHub shows at the file and line that it names.

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
    """Yields the text in pieces: an annotation line for each diagnostic, then the summary line of the text report."""
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
    """Returns `value` with %, line ends (which end a workflow command) and the characters of `more` percent-encoded."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in value)
