"""Reports as JSON: one array, or one answer a line. ASCII only, so that any name can be written in any encoding."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from dmlsplit.checking.results import Note, Result, is_finding
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.report.shown import AS_USUAL, Shown


def answer(report: Report) -> str:
    """Returns one report as JSON on one line, without a line end."""
    return json.dumps(report.to_dict())


def _shown(results: Iterable[Result]) -> Iterator[Result]:
    """Yields the results that are written: all answers, and those notes that have a finding, or the placement of a
    model without operators."""
    for result in results:
        if not isinstance(result, Note) or getattr(result.report, "model", None) is not None or is_finding(result):
            yield result


def lines(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """Yields, for each result that is written, its JSON on one line with a line end."""
    for result in _shown(results):
        yield answer(result.report) + "\n"


def document(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """Yields the pieces of one JSON array of all results that are written."""
    separator = "[\n"
    for result in _shown(results):
        yield separator + answer(result.report)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"
