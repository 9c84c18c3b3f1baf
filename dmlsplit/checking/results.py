"""The results of judging files, independent of renderers: one Result for each operator and target, and
notes on whole files.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Position, Report
from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.targets.target import Use

if TYPE_CHECKING:
    from dmlsplit.checking.open_sizes import OpenNode
    from dmlsplit.descriptors.dims import Shape
    from dmlsplit.graphs import GraphDesc


class Verdict(enum.StrEnum):
    """The verdict on an operator, in a word."""

    OK = "ok"
    NOT_OK = "not ok"
    NOT_JUDGED = "not judged"
    """Neither a Split nor a Join."""
    NOT_READ = "not read"


def verdict_of(report: Report) -> Verdict:
    """The verdict that a report by itself stands for."""
    if report.hresult is None and report.operator is None:
        return Verdict.NOT_JUDGED if report.ok else Verdict.NOT_READ
    return Verdict.OK if report.ok else Verdict.NOT_OK


class NodeSummary(NamedTuple):
    """A node of a framework's model, by a target: what a table says of it.

    `is_warned`: its framework's rules have warnings; `minimum_level` is the lowest feature level that takes it as it
    is, None where none does or nobody asked; `rewriting` says what the target runs in its place.
    """

    path: str
    operator: str
    data_type: str | None
    shape: Shape | None
    axis: int | None
    lengths: Shape | None
    is_warned: bool
    use: Use
    minimum_level: FeatureLevel | None = None
    rewriting: str = ""
    condition: str = ""
    """Of sizes that the model leaves open: where the target does so."""
    runtime: str = ""
    """The outcome in a version of ONNX Runtime, in a word or two; "" of any other target."""
    graph_fails: bool = False
    """The DirectML graph that it becomes part of comes out wrong, or is refused."""


class Judged(NamedTuple):
    """An operator that was judged; `report` knows its file and its index there.

    `name` is the operator's in its file, `position` its line and column. `descriptor` is None where a node stands for
    none. `fix` names the rewriting that a refused operator has. `node` is set for a node of a framework's model,
    `graph` for a DML_GRAPH.
    """

    report: Report
    name: str | None = None
    position: Position | None = None
    descriptor: OperatorDesc | None = None
    fix: str | None = None
    node: NodeSummary | None = None
    open_node: OpenNode | None = None
    """The node, where its model leaves sizes open and no more."""
    graph: GraphDesc | None = None

    @property
    def verdict(self) -> Verdict:
        return Verdict.OK if self.report.ok else Verdict.NOT_OK


class _Unanswered(NamedTuple):
    """An answer without a judgement; the report says why."""

    report: Report
    name: str | None = None
    position: Position | None = None


class NotJudged(_Unanswered):
    """An operator that is neither a Split nor a Join."""

    verdict: Final = Verdict.NOT_JUDGED


class NotRead(_Unanswered):
    """An operator, or a file, that could not be read."""

    verdict: Final = Verdict.NOT_READ


class Note(NamedTuple):
    """Something that the report says of a file as a whole."""

    report: Report


Answer: TypeAlias = Judged | NotJudged | NotRead
"""The answer about one operator."""
Result: TypeAlias = Answer | Note


def answers(results: Iterable[Result]) -> Iterator[Answer]:
    """The results that are of operators."""
    return (result for result in results if not isinstance(result, Note))
