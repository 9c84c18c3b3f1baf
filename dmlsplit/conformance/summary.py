"""Counts the results of a run by file, for reports that show counts and the first failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dmlsplit.conformance.judging import Outcome, Result
from dmlsplit.system.printable import printable

LISTED: Final = 20
"""The most failures, and the most reasons, that are kept for each file."""


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
        if result.outcome is Outcome.FAILED and len(self.failures) < LISTED:
            self.failures.append(result)
        if result.outcome is Outcome.SKIPPED and (result.reason in self.reasons or len(self.reasons) < LISTED):
            self.reasons[result.reason] = self.reasons.get(result.reason, 0) + 1


class Summary:
    """Counts results as they pass through."""

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
