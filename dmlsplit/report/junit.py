"""Reports as JUnit XML for continuous integration: each operator and target is a test case.

Follows https://github.com/testmoapp/junitxml, the form that common readers share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from xml.sax.saxutils import quoteattr

from dmlsplit.checking.results import Note, Result, Verdict
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.report import text
from dmlsplit.report.shown import AS_USUAL, Shown
from dmlsplit.system.printable import printable

_NO_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """Yields the pieces of a JUnit XML document with one suite and a case for each answer: a failure for errors, an
    error for unreadable input, skipped if nothing is judged or known."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n<testsuite name="dmlsplit">\n'
    for result in results:
        if not isinstance(result, Note) or result.report.diagnostics:
            yield from _case(result)
    yield "</testsuite>\n</testsuites>\n"


def _case(result: Result) -> Iterator[str]:
    report = result.report
    verdict = Verdict.OK if isinstance(result, Note) else result.verdict
    known = [report.file or "", "" if isinstance(result, Note) else result.name or report.operator or ""]
    name = " ".join(part for part in (*map(printable, known), report.judged_by) if part)
    yield f"<testcase name={_quoted(f'{name} [{report.index}]')} classname={_quoted(report.file or 'dmlsplit')}"
    lines = text.lines(result)
    if verdict in (Verdict.NOT_JUDGED, Verdict.UNKNOWN):
        inside = f"<skipped message={_quoted(lines[0])}/>"
        if verdict is Verdict.UNKNOWN and len(lines) > 1:
            inside += f"<system-out>{_text(lines[1:])}</system-out>"
    elif report.errors or verdict is Verdict.NOT_READ:
        kind = "error" if verdict is Verdict.NOT_READ else "failure"
        first = next((d for d in report.diagnostics if d.severity is Severity.ERROR), None)
        said = f" type={_quoted(first.rule)} message={_quoted(first.message)}" if first is not None else ""
        inside = f"<{kind}{said}>{_text(lines)}</{kind}>"
    else:
        inside = f"<system-out>{_text(lines)}</system-out>" if report.diagnostics else ""
    yield f">{inside}</testcase>\n" if inside else "/>\n"


def _quoted(value: str) -> str:
    return quoteattr(xml_text(value))


def xml_text(value: str) -> str:
    """Returns a text made printable, with characters that XML cannot have replaced."""
    return _NO_XML.sub("\ufffd", printable(value, None))


def _text(lines: Iterable[str]) -> str:
    joined = _NO_XML.sub("\ufffd", "\n".join(lines))
    return joined.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
