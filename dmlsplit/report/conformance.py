"""The results of a conformance run: text, JSON, JUnit's XML, and the rows of a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dmlsplit.conformance.judging import Outcome, Result
from dmlsplit.conformance.suite import SCHEMA, VERSION
from dmlsplit.report.junit import Case, quoted, suite
from dmlsplit.system.printable import printable

SHOWN: Final = 20
"""Failures and reasons of each file that text and page show; JSON and JUnit have all."""
_ELEMENTS: Final = {Outcome.FAILED: "failure", Outcome.SKIPPED: "skipped"}
"""What says in a JUnit test case what came of it."""


@dataclass
class Counts:
    """The cases of one file: how many had each outcome, and the first that failed and were skipped."""

    name: str
    outcomes: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    values: int = 0
    failures: list[Result] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        self.outcomes[result.outcome] += 1
        self.values += result.values
        if result.outcome is Outcome.FAILED and len(self.failures) < SHOWN:
            self.failures.append(result)
        if result.outcome is Outcome.SKIPPED and (result.reason in self.reasons or len(self.reasons) < SHOWN):
            self.reasons[result.reason] = self.reasons.get(result.reason, 0) + 1


class Summary:
    """Counts results as they pass by."""

    def __init__(self, command: str, targets: Mapping[str, str]) -> None:
        self.command, self.targets = command, targets
        self.files: dict[str, Counts] = {}

    def counted(self, results: Iterable[Result]) -> Iterator[Result]:
        """Yields the results unchanged and, as each passes, adds it to the counts of its file."""
        for result in results:
            name = result.id.split("/")[0]
            self.files.setdefault(name, Counts(name)).add(result)
            yield result

    def total(self, outcome: Outcome) -> int:
        """Returns the number of cases with an outcome among those counted so far."""
        return sum(counts.outcomes[outcome] for counts in self.files.values())

    @property
    def heading(self) -> str:
        """The command that was asked, and the levels or releases that it is judged as, as one line of text."""
        judged = " and ".join(f"{by} {version}" for by, version in self.targets.items())
        return f"{printable(self.command, 200)} as {judged}"

    @property
    def line(self) -> str:
        """The number of cases with each outcome, as text: "12 passed, 1 failed, 0 skipped"."""
        return ", ".join(f"{self.total(outcome):,} {outcome}" for outcome in Outcome)


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
    """Yields the pieces of one JSON object with all results and the counts, and counts the results in `summary`."""
    head = {"schema": SCHEMA, "suite": VERSION, "command": summary.command, "targets": dict(summary.targets)}
    yield json.dumps(head)[:-1] + ', "results": ['
    separator = "\n"
    for result in summary.counted(results):
        yield separator + json.dumps(result.to_dict())
        separator = ",\n"
    yield f'\n], "counts": {json.dumps({str(outcome): summary.total(outcome) for outcome in Outcome})}}}\n'


def junit(results: Iterable[Result], summary: Summary) -> Iterator[str]:
    """Yields the pieces of a JUnit XML document, a test case for each result with its file as the class, and counts the
    results in `summary`."""
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
