"""Reports as JUnit XML for continuous integration: each operator and target is a test case.

Follows https://github.com/testmoapp/junitxml, the form that common readers share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import quoteattr

from dmlsplit.checking.results import Note, Result, Verdict
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.report import text
from dmlsplit.report.shown import AS_USUAL, Shown
from dmlsplit.system.printable import printable

_COUNTED: Final = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_NO_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Case(NamedTuple):
    """A test case. `element` is the child element that reports its outcome, "" if it passed; `inside` is that element's
    content as XML."""

    name: str
    class_name: str
    element: str
    inside: str


def document(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """Yields the pieces of a JUnit XML document with one suite and a case for each answer: a failure for errors and for
    what else makes the check fail, an error for unreadable input, skipped if nothing is judged or known."""
    shown_at_all = (result for result in results if not isinstance(result, Note) or result.report.diagnostics)
    return suite("dmlsplit", (_case(result, shown.fail_on) for result in shown_at_all))


def suite(name: str, cases: Iterable[Case]) -> Iterator[str]:
    """Yields the pieces of a JUnit XML document of one suite, with the counts of its cases."""
    pieces, counts = [], Counter[str]()
    for case in cases:
        counts[case.element] += 1
        start = f"<testcase name={quoted(case.name)} classname={quoted(case.class_name)}"
        pieces.append(f"{start}>{case.inside}</testcase>\n" if case.inside else f"{start}/>\n")
    counted = " ".join(f'{plural}="{counts[element]}"' for element, plural in _COUNTED.items())
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
    yield f'<testsuite name={quoted(name)} tests="{len(pieces)}" {counted}>\n'
    yield from pieces
    yield "</testsuite>\n</testsuites>\n"


def _case(result: Result, fail_on: Sequence[str]) -> Case:
    report = result.report
    verdict = Verdict.OK if isinstance(result, Note) else result.verdict
    known = [report.file or "", _subject(result)]
    index = f"[{report.index}]" if report.index >= 0 else ""
    name = " ".join(part for part in (*map(printable, known), report.judged_by, index) if part)
    lines = text.lines(result)
    element = inside = ""
    failing = [d for d in report.diagnostics if d.severity is Severity.ERROR or str(d.severity) in fail_on]
    failed = bool(failing) or (verdict is Verdict.UNKNOWN and "unknown" in fail_on)
    if verdict in (Verdict.NOT_JUDGED, Verdict.UNKNOWN) and not failed:
        element = "skipped"
        inside = f"<skipped message={quoted(lines[0])}/>"
        if verdict is Verdict.UNKNOWN and len(lines) > 1:
            inside += f"<system-out>{_text(lines[1:])}</system-out>"
    elif failed or verdict is Verdict.NOT_READ:
        element = "error" if verdict is Verdict.NOT_READ else "failure"
        first = min(failing, key=lambda d: d.severity is not Severity.ERROR, default=None)
        said = f" message={quoted(lines[0])}"
        if first is not None:
            said = f" type={quoted(first.rule)} message={quoted(first.message)}"
        inside = f"<{element}{said}>{_text(lines)}</{element}>"
    elif report.diagnostics:
        inside = f"<system-out>{_text(lines)}</system-out>"
    return Case(name, report.file or "dmlsplit", element, inside)


def _subject(result: Result) -> str:
    """Returns the name or type of an operator; "requirements" for the missed requirements of a model, "" for other
    notes on a file."""
    if not isinstance(result, Note):
        return result.name or result.report.operator or ""
    is_required = any(each.rule.startswith("require/") for each in result.report.diagnostics)
    return "requirements" if is_required else ""


def quoted(value: str) -> str:
    """Returns a text as an attribute's value, including the quotes."""
    return quoteattr(_xml_text(value))


def _xml_text(value: str) -> str:
    """Returns a printable form of a text, in which characters that XML does not allow are replaced."""
    return _NO_XML.sub("\ufffd", printable(value, None))


def _text(lines: Iterable[str]) -> str:
    joined = _NO_XML.sub("\ufffd", "\n".join(lines))
    return joined.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
