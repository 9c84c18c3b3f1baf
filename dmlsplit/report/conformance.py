"""The results of a conformance run: text, JSON, JUnit's XML, and the rows of a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import quoteattr

from dmlsplit.conformance.judging import Outcome, Result
from dmlsplit.conformance.suite import SCHEMA, VERSION
from dmlsplit.report.junit import xml_text
from dmlsplit.system.printable import printable

SHOWN: Final = 20
"""Failures and reasons of each file that text and page show; JSON and JUnit have all."""


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
        """The results themselves."""
        for result in results:
            name = result.id.split("/")[0]
            self.files.setdefault(name, Counts(name)).add(result)
            yield result

    def total(self, outcome: Outcome) -> int:
        """The number of cases with an outcome."""
        return sum(counts.outcomes[outcome] for counts in self.files.values())

    @property
    def heading(self) -> str:
        """What was asked, and as what it is judged."""
        judged = " and ".join(f"{by} {version}" for by, version in self.targets.items())
        return f"{printable(self.command, 200)} as {judged}"

    @property
    def line(self) -> str:
        """The totals."""
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
    """One JSON object."""
    head = {"schema": SCHEMA, "suite": VERSION, "command": summary.command, "targets": dict(summary.targets)}
    yield json.dumps(head)[:-1] + ', "results": ['
    separator = "\n"
    for result in summary.counted(results):
        yield separator + json.dumps(result.to_dict())
        separator = ",\n"
    yield f'\n], "counts": {json.dumps({str(outcome): summary.total(outcome) for outcome in Outcome})}}}\n'


def junit(results: Iterable[Result], summary: Summary) -> Iterator[str]:
    """A test case each, of the class of its file."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n<testsuite name="dmlsplit conformance">\n'
    for result in summary.counted(results):
        file = result.id.split("/")[0]
        start = f"<testcase name={quoteattr(xml_text(result.id))} classname={quoteattr(xml_text(file))}"
        element = {Outcome.FAILED: "failure", Outcome.SKIPPED: "skipped"}.get(result.outcome)
        inside = f"<{element} message={quoteattr(xml_text(result.reason))}/>" if element else ""
        yield f"{start}>{inside}</testcase>\n" if inside else f"{start}/>\n"
    yield "</testsuite>\n</testsuites>\n"


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
