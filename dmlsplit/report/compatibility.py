"""Which feature levels and releases take an operator: as it is, or rewritten; and why not."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from dmlsplit.descriptors import OperatorDesc
from dmlsplit.diagnostics import Report
from dmlsplit.enums import FeatureLevel
from dmlsplit.legalize import Legalization, legalize
from dmlsplit.releases import releases
from dmlsplit.rules import Judge
from dmlsplit.validation import judge as judge_descriptor
from dmlsplit.validation import level_judge, release_judge


class Column(NamedTuple):
    """A level or release that is asked."""

    label: str
    judge: Judge
    observed: bool
    """Whether a build of it was seen; the verdict rests on documentation alone otherwise."""


class Columns(NamedTuple):
    """All levels or all releases, the oldest first, and what JSON and text call them."""

    key: str
    noun: str
    columns: tuple[Column, ...]


_SEEN: Final = {release.max_feature_level for release in releases()}
LEVELS: Final = Columns(
    "feature_levels",
    "feature level",
    tuple(Column(str(level), level_judge(level), level in _SEEN) for level in FeatureLevel),
)
RELEASES: Final = Columns(
    "releases", "release", tuple(Column(r.directml or r.name, release_judge(r), True) for r in releases())
)


class Outcome(enum.StrEnum):
    """What becomes of an operator on a level or release."""

    RUNS = "runs"
    REWRITTEN = "runs rewritten"
    REFUSED = "refused"


class Answer(NamedTuple):
    """A column's outcome; the report of the operator as it is; the rewriting that was tried where that is refused."""

    column: Column
    outcome: Outcome
    report: Report
    legalization: Legalization | None


def answers(desc: OperatorDesc, asked: Columns) -> tuple[Answer, ...]:
    """The answer of every level or of every release."""
    # Targets that take the same are rewritten for in the same way.
    rewritten: dict[object, Legalization] = {}
    found = []
    for column in asked.columns:
        report = judge_descriptor(desc, column.judge)
        if report.ok:
            found.append(Answer(column, Outcome.RUNS, report, None))
            continue
        target = _target(column.judge)
        legalization = rewritten.get(target)
        if legalization is None:
            legalization = rewritten[target] = _legalized(desc, column.judge)
        found.append(Answer(column, Outcome.REWRITTEN if legalization.ok else Outcome.REFUSED, report, legalization))
    return tuple(found)


def _target(judge: Judge) -> object:
    release = judge.release
    taken = tuple(sorted(judge.support.items())), tuple(sorted(judge.builds.items()))
    return taken, None if release is None else (release.traits, release.max_feature_level)


def _legalized(desc: OperatorDesc, judge: Judge) -> Legalization:
    if judge.release is not None:
        return legalize(desc, directml=judge.release)
    return legalize(desc, feature_level=judge.feature_level)


def spans(labels: Iterable[str], order: Sequence[str]) -> str:
    """The runs of consecutive labels: 1_0-2_0, 4_1; package names have hyphens of their own."""
    to = " to " if any("-" in label for label in order) else "-"
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}{to}{run[-1]}" for run in _runs(labels, order))


def _runs(labels: Iterable[str], order: Sequence[str]) -> Iterator[list[str]]:
    run: list[str] = []
    for label in labels:
        if run and order.index(label) != order.index(run[-1]) + 1:
            yield run
            run = []
        run.append(label)
    if run:
        yield run
