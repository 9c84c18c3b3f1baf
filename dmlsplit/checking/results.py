"""The results of judging files, independent of renderers: one Result for each operator and target, and
notes on whole files.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Position, Report
from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.targets.target import RUNS, Target, Use

if TYPE_CHECKING:
    from dmlsplit.checking.columns import Compatibility
    from dmlsplit.descriptors.dims import Shape
    from dmlsplit.formats.operator_files import Entry
    from dmlsplit.graphs import GraphDesc
    from dmlsplit.graphs.execution import Correctness
    from dmlsplit.verdicts.model_placements import SessionAnswer


class Verdict(enum.StrEnum):
    """The verdict on an operator, in a word."""

    OK = "ok"
    NOT_OK = "not ok"
    UNKNOWN = "unknown"
    """No fault is known, but too little is known to exclude one."""
    NOT_JUDGED = "not judged"
    """Neither a Split nor a Join."""
    NOT_READ = "not read"


def verdict_of(report: Report) -> Verdict:
    """Returns the verdict that follows from a report alone, without the facts about its node."""
    if report.hresult is None and report.operator is None:
        return Verdict.NOT_JUDGED if report.ok else Verdict.NOT_READ
    return Verdict.OK if report.ok else Verdict.NOT_OK


def in_graph(use: Use, graph: Correctness) -> Use:
    """Returns the use of a node combined with the correctness of the graph that it becomes part of."""
    if graph == "wrong" and use is not Use.NOT_ASKED:
        return Use.REFUSED
    return Use.UNKNOWN if graph == "unknown" and use in RUNS else use


class NodeSummary(NamedTuple):
    """A node of a framework's model, judged by a target: the content of a table row.

    `minimum_level` is the lowest feature level that accepts it, and its graph, as it is, None if none does or it was
    not determined; `rewriting` describes the operators that the target runs instead.
    """

    path: str
    operator: str
    data_type: str | None
    shape: Shape | None
    axis: int | None
    lengths: Shape | None
    use: Use
    minimum_level: FeatureLevel | None = None
    rewriting: str = ""
    condition: str = ""
    """For open sizes: the conditions of the use."""
    runtime: str = ""
    """The outcome in a version of ONNX Runtime, in a word or two; "" for any other target."""
    graph: Correctness = "right"
    """The correctness of the DirectML graph that it becomes part of; "right" where there is none."""

    @property
    def outcome(self) -> Use:
        """The node's use in its model: the target's use of the node combined with the outcome of the graph around
        it."""
        return in_graph(_OUTCOMES[self.runtime] if self.runtime else self.use, self.graph)


_OUTCOMES: Final = {
    "DML": Use.AS_IT_IS,
    "CPU": Use.ON_CPU,
    "folded": Use.ON_CPU,
    "session-fails": Use.REFUSED,
    "run-fails": Use.REFUSED,
    "unknown": Use.UNKNOWN,
}
"""Maps an outcome in ONNX Runtime to a use."""


class Judged(NamedTuple):
    """A judged operator; `report` has its file and its index there.

    `name` is the operator's name in its file, `position` its line and column. `descriptor` is None for a node without
    an operator. `fix` names the rewriting that a refused operator has. `node` is set for a node of a framework's model,
    `graph` for a DML_GRAPH.
    """

    report: Report
    name: str | None = None
    position: Position | None = None
    descriptor: OperatorDesc | None = None
    fix: str | None = None
    node: NodeSummary | None = None
    graph: GraphDesc | None = None

    of_nodes: int = 0
    """How many nodes the model has; 0 where that is not known."""
    is_open: bool = False
    """True for a node that is judged by its descriptor and has none, since too little is known of it."""
    columns: tuple[tuple[Compatibility, ...], ...] = ()
    """For a node, the answers of all levels, of all releases, or of the question's other columns."""

    @property
    def verdict(self) -> Verdict:
        if not self.report.ok:
            return Verdict.NOT_OK
        unknown = (self.node is not None and self.node.outcome is Use.UNKNOWN) or self.report.is_unknown or self.is_open
        return Verdict.UNKNOWN if unknown else Verdict.OK


class _Unanswered(NamedTuple):
    """An answer without a judgement; the report gives the reason."""

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
    """A report on a file as a whole. `placements` are what its model becomes in the versions of ONNX Runtime that are
    asked, in their order."""

    report: Report
    placements: tuple[SessionAnswer, ...] = ()
    has_operators: bool = False
    """True if answers about Split and Concat nodes of the model follow."""


def is_finding(note: Note) -> bool:
    """True for a note, other than one with placements, that tells more than that the model has no Split or Concat."""
    return not note.placements and any(each.rule != "input/no-split" for each in note.report.diagnostics)


def is_problem(note: Note) -> bool:
    """True for a note that tells that something is or may be wrong with a model, other than with its Split and Concat
    nodes: those without placements belong to a model that has none."""
    if note.placements:
        return bool(note.report.errors) and note.has_operators
    return is_finding(note) or note.report.is_unknown or not note.report.ok


Answer: TypeAlias = Judged | NotJudged | NotRead
"""The answer about one operator."""
Result: TypeAlias = Answer | Note
JudgedEntry: TypeAlias = "tuple[Entry, Target, Result]"
"""An entry of a file, the target that judged it, and the result."""
