"""Reports as JSON: one array, or one answer a line. ASCII only, so that any encoding and any name can be written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from dmlsplit.checking.results import Note, Result, is_finding
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.report.shown import AS_USUAL, Shown


def answer(report: Report) -> str:
    """The JSON of one report, on one line."""
    return json.dumps(report.to_dict())


def _shown(results: Iterable[Result]) -> Iterator[Result]:
    """The answers, and the notes that have the placement of a model without operators, or what is wrong with it."""
    for result in results:
        if not isinstance(result, Note) or "model" in result.report.to_dict() or is_finding(result):
            yield result


def lines(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """One answer a line, piece by piece."""
    for result in _shown(results):
        yield answer(result.report) + "\n"


def document(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """One JSON array of all answers, piece by piece."""
    separator = "[\n"
    for result in _shown(results):
        yield separator + answer(result.report)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"
