"""The columns of a matrix: all feature levels, releases or versions of ONNX Runtime, and what each answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import directml_versions, observed_levels
from dmlsplit.targets.runtime_versions import runtimes
from dmlsplit.targets.target import Target, Use, level_targets, target_of

if TYPE_CHECKING:
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
        "no build of this level was observed; the answer follows the documentation",
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
        "this version was not observed: where nodes run is not known; graphs are judged as those of an observed one",
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
