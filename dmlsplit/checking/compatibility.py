"""Which feature levels, releases and versions of ONNX Runtime accept an operator, unchanged or rewritten, and why
others do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from dmlsplit.checking.judging import judged
from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.descriptors.geometry import members_of
from dmlsplit.legalize import legalized
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import directml_versions, observed_levels
from dmlsplit.targets.runtime_versions import runtimes
from dmlsplit.targets.target import Target, Use, level_targets, target_of
from dmlsplit.verdicts.validation import evaluate

if TYPE_CHECKING:
    from dmlsplit.graphs import GraphDesc
    from dmlsplit.legalize import Legalization


class Column(NamedTuple):
    """A level, DirectML version or version of ONNX Runtime in the matrix."""

    label: str
    target: Target
    observed: bool
    """True if a build of it was observed; otherwise the verdict rests only on documentation."""
    speaks_for: tuple[str, ...]
    """The names of all targets with the same verdicts: the builds of one DirectML version accept the same
    descriptors."""


class Columns(NamedTuple):
    """All levels, releases or versions of ONNX Runtime, oldest first, with their keys in JSON and text."""

    key: str
    noun: str
    columns: tuple[Column, ...]
    heading: str
    """The heading above the columns on a page."""
    not_observed: str = ""
    """The remark about a column that was not observed."""

    @property
    def labels(self) -> list[str]:
        return [column.label for column in self.columns]

    def spans(self, labels: Iterable[str]) -> str:
        """Returns the labels as text, consecutive columns as a range: "1_0-2_0, 4_1"."""
        return spans(labels, self.labels)

    def named(self, labels: Sequence[str]) -> str:
        """Returns the labels as text with the columns' noun: "feature levels 1_0-2_0"."""
        return f"{self.noun}{'' if len(labels) == 1 else 's'} {self.spans(labels)}"


LEVELS: Columns
RELEASES: Columns
RUNTIMES: Columns


def _levels() -> Columns:
    observed = observed_levels()
    found = [
        Column(str(each.feature_level), each, each.feature_level in observed, (each.name,)) for each in level_targets()
    ]
    return Columns(
        "feature_levels",
        "feature level",
        tuple(found),
        "Feature level",
        "no build of this level was observed: it rests on documentation alone",
    )


def _releases() -> Columns:
    found = [
        Column(version, target_of(find_release(version)), True, tuple(build.judged_by for build in builds))
        for version, builds in directml_versions().items()
    ]
    return Columns("releases", "release", tuple(found), "DirectML release")


def _runtimes() -> Columns:
    return Columns(
        "runtimes",
        "ONNX Runtime version",
        tuple([Column(each.version, target_of(each), each.observed, (target_of(each).name,)) for each in runtimes()]),
        "ONNX Runtime",
        "this version was not observed: of models nothing is predicted",
    )


def __getattr__(name: str) -> Columns:
    """Returns LEVELS, RELEASES or RUNTIMES, which are created on first use, because most commands judge by one target.
    Raises AttributeError for any other name."""
    makers = {"LEVELS": _levels, "RELEASES": _releases, "RUNTIMES": _runtimes}
    if name not in makers:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made: Columns = globals().setdefault(name, makers[name]())
    return made


def runtime_columns(targets: Iterable[Target]) -> Columns:
    """Returns columns for the targets that are versions of ONNX Runtime, in order."""
    found = [(target, target.runtime) for target in targets if target.runtime is not None]
    columns = [Column(target.short_name, target, runtime.observed, (target.name,)) for target, runtime in found]
    return _runtimes()._replace(columns=tuple(columns))


class Compatibility(NamedTuple):
    """The answer of a column about an operator: its report and, for a refused operator, the rewriting that was
    tried."""

    column: Column
    use: Use
    report: Report
    legalization: Legalization | None
    said: str = ""
    """For a node of open sizes: the answer as text, with its conditions."""


@lru_cache(256)
def compatibility(desc: OperatorDesc | AnyOperatorDesc | GraphDesc, asked: Columns) -> tuple[Compatibility, ...]:
    """Returns the answer of each column, in order, about an operator or a graph."""
    if isinstance(desc, (SplitOperatorDesc, JoinOperatorDesc)):
        known = _Known(members_of(desc).kind, [], {}, {})
        return tuple([_asked(desc, column, known) for column in asked.columns])
    reports = [judged(desc, column.target) for column in asked.columns]
    return tuple([Compatibility(*each, None) for each in zip(asked.columns, map(_use, reports), reports, strict=True)])


def _use(report: Report) -> Use:
    """Returns the use of a graph, or of an operator for which no rewriting is tried, according to its report: refused,
    unknown or accepted unchanged."""
    if not report.ok:
        return Use.REFUSED
    return Use.UNKNOWN if report.is_unknown else Use.AS_IT_IS


class _Known(NamedTuple):
    """A cache of rewritings (with the tensor support of the target that each was made for, and whether other targets
    accept its operators), of failed rewritings, and of reports by target. Targets are compared by the properties that
    decide."""

    kind: OperatorType
    made: list[tuple[object, Legalization, dict[object, bool]]]
    refused: dict[object, Legalization]
    reports: dict[object, tuple[Target, Report]]


def _shared(kind: OperatorType, target: Target) -> object:
    """Returns a key that is equal for targets that judge operators of this kind alike."""
    return (
        target.support[kind],
        None if target.release is None else target.release.traits,
        # A join's note names the level and compares its page with its builds.
        (target.feature_level, target.builds[kind]) if kind is OperatorType.JOIN else None,
    )


def _report(desc: OperatorDesc, target: Target, known: _Known) -> Report:
    """As `evaluate`, but computed once for all targets with equal keys."""
    alike = _shared(known.kind, target)
    if alike not in known.reports:
        known.reports[alike] = target, evaluate(desc, target)
    asked, report = known.reports[alike]
    refused = report.hresult == asked.invalid_argument
    return replace(report, judged_by=target.name, hresult=target.invalid_argument if refused else report.hresult)


def _asked(desc: OperatorDesc, column: Column, known: _Known) -> Compatibility:
    target = column.target
    report = _report(desc, target, known)
    if report.ok:
        return Compatibility(column, Use.AS_IT_IS, report, None)
    # Targets with equal tensor support share a rewriting; its operators are judged for the other differences.
    tensors = [(row.dimension_counts, row.data_types) for row in target.support[known.kind]]
    judge = _shared(known.kind, target)
    for others, found, taken in known.made:
        if others != tensors:
            continue
        if judge not in taken:
            taken[judge] = all(evaluate(operator, target).ok for operator in set(found.operators))
        if taken[judge]:
            return Compatibility(column, Use.REWRITTEN, report, found)
    # A failed rewriting fails for all targets with equal tensor support and size arithmetic.
    alike = tuple(tensors), target.release is None, target.arithmetic, target.total_counts_whole_elements
    made = known.refused.get(alike)
    if made is None:
        made = legalized(desc, target)
    if made.ok:
        known.made.append((tensors, made, {judge: True}))
        return Compatibility(column, Use.REWRITTEN, report, made)
    known.refused[alike] = made
    return Compatibility(column, Use.REFUSED, report, made)


def spans(labels: Iterable[str], order: Sequence[str]) -> str:
    """Returns the labels, which must be in `order`, as text in their order; labels that are consecutive in `order`, two
    or more, become a range: "1_0-2_1, 4_0".

    If any label of `order` has a hyphen, as names of packages do, ranges are written with " to ".
    """
    to = " to " if any("-" in label for label in order) else "-"
    # For consecutive labels, the position in `order` minus the position among these labels is constant.
    runs = groupby(enumerate(labels), lambda item: order.index(item[1]) - item[0])
    ends = [(run[0][1], run[-1][1]) for run in (list(group) for _, group in runs)]
    return ", ".join(first if first == last else f"{first}{to}{last}" for first, last in ends)
