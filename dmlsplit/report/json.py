"""Reports as JSON: one array, or one answer a line. ASCII only, so that any encoding and any name will do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from dmlsplit.diagnostics import Report


def answer(report: Report) -> str:
    """The JSON of one report, on one line."""
    return json.dumps(report.to_dict())


def lines(reports: Iterable[Report]) -> Iterator[str]:
    """One answer a line, piece by piece."""
    for report in reports:
        yield answer(report) + "\n"


def document(reports: Iterable[Report]) -> Iterator[str]:
    """One JSON array of all answers, piece by piece."""
    separator = "[\n"
    for report in reports:
        yield separator + answer(report)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"
