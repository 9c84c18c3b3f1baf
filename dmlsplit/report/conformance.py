"""Formats the results of a conformance run: text, JSON, JUnit's XML, and the rows of a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from dmlsplit.conformance.judging import Outcome, Result
from dmlsplit.conformance.suite import SCHEMA, VERSION
from dmlsplit.conformance.summary import Summary
from dmlsplit.report.junit import Case, quoted, suite
from dmlsplit.system.printable import printable

_ELEMENTS: Final = {Outcome.FAILED: "failure", Outcome.SKIPPED: "skipped"}
"""Maps an outcome to the element that reports it in a JUnit test case."""


def text(results: Iterable[Result], summary: Summary) -> Iterator[str]:
    for _ in summary.counted(results):
        pass
    yield f"{summary.heading}\n"
    for counts in summary.files.values():
        said = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.outcomes.items())
        yield f"{printable(counts.name)}: {said}; {counts.values:,} values agree\n"
        for result in counts.failures:
            yield f"  {printable(result.id)}: {result.reason}\n"
        left = counts.outcomes[Outcome.FAILED] - len(counts.failures)
        if left:
            yield f"  {left:,} more failed\n"
        for reason, count in counts.reasons.items():
            yield f"  {count:,} skipped: {reason}\n"
    yield f"{summary.line}\n"


def document(results: Iterable[Result], summary: Summary) -> Iterator[str]:
    """Yields, in pieces, one JSON object with all results and the counts; also counts the results in `summary`."""
    head = {"schema": SCHEMA, "suite": VERSION, "command": summary.command, "targets": dict(summary.targets)}
    yield json.dumps(head)[:-1] + ', "results": ['
    separator = "\n"
    for result in summary.counted(results):
        yield separator + json.dumps(result.to_dict())
        separator = ",\n"
    yield f'\n], "counts": {json.dumps({str(outcome): summary.total(outcome) for outcome in Outcome})}}}\n'


def junit(results: Iterable[Result], summary: Summary) -> Iterator[str]:
    """Yields, in pieces, a JUnit XML document with a test case for each result, whose class is its file; also counts
    the results in `summary`."""
    return suite("dmlsplit conformance", map(_case, summary.counted(results)))


def _case(result: Result) -> Case:
    element = _ELEMENTS.get(result.outcome, "")
    inside = f"<{element} message={quoted(result.reason)}/>" if element else ""
    return Case(result.id, result.id.split("/")[0], element, inside)


def page(results: Iterable[Result], summary: Summary) -> Iterator[str]:
    from dmlsplit.report import html

    for _ in summary.counted(results):
        pass
    return html.conformance(summary)


WRITERS: Final[Mapping[str, Callable[[Iterable[Result], Summary], Iterator[str]]]] = {
    "text": text,
    "json": document,
    "junit": junit,
    "html": page,
}
