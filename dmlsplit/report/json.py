"""Reports as JSON: one array, or one answer a line. ASCII only, so that any encoding and any name can be written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from dmlsplit.checking.results import Result, answers
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.report.shown import AS_USUAL, Shown


def answer(report: Report) -> str:
    """The JSON of one report, on one line."""
    return json.dumps(report.to_dict())


def lines(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """One answer a line, piece by piece."""
    for result in answers(results):
        yield answer(result.report) + "\n"


def document(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """One JSON array of all answers, piece by piece."""
    separator = "[\n"
    for result in answers(results):
        yield separator + answer(result.report)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"
