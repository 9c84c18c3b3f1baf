"""The verdict on a Split or Concat of a framework's model: whether the framework allows it, and whether it runs on the
target."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from dmlsplit.checking.results import NodeSummary, in_graph
from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.legalize import in_words
from dmlsplit.onnxruntime.node_prediction import diagnostic
from dmlsplit.onnxruntime.reports import RuntimeReport
from dmlsplit.rules import RULES
from dmlsplit.rules.graph import GRAPH_RULES
from dmlsplit.rules.onnxruntime import FAULTS
from dmlsplit.system.errors import InputError, NotLoadedError
from dmlsplit.targets.runtime_versions import NEWEST
from dmlsplit.targets.target import Target, Use, level_targets, target_of
from dmlsplit.verdicts.runtime_answers import Outcome, RuntimeAnswer
from dmlsplit.verdicts.validation import lowest_level

if TYPE_CHECKING:
    from dmlsplit.checking.open_sizes import OpenAnswer, OpenNode
    from dmlsplit.formats.sessions import InSession, NodeKey, Sessions
    from dmlsplit.graphs.execution import Correctness
    from dmlsplit.onnxruntime.findings import GraphFinding
    from dmlsplit.onnxruntime.onnx_session import OnnxSessions


class Basis(enum.Enum):
    """What decides about a node, in order; of a valid node, its graph decides after it."""

    SESSION = enum.auto()
    """The target's version of ONNX Runtime."""
    FRAMEWORK = enum.auto()
    """The node's framework, which does not allow it."""
    SIZES = enum.auto()
    """All sizes that its model leaves open."""
    DESCRIPTOR = enum.auto()
    """Its descriptor, or why it has none."""


def basis_of(node: SplitNode | JoinNode, open_node: OpenNode | None, target: Target) -> Basis:
    """Returns what decides about a node on a target; `open_node` is what `open_node_of` returns for it."""
    if target.runtime is not None and node.in_session is not None:
        return Basis.SESSION
    if not node.report.ok:
        return Basis.FRAMEWORK
    return Basis.DESCRIPTOR if open_node is None else Basis.SIZES


def open_node_of(node: SplitNode | JoinNode, descriptor: object | None) -> OpenNode | None:
    """Returns a valid node with open sizes as an OpenNode; None if it has a descriptor or is invalid."""
    if descriptor is not None or not node.report.ok:
        return None
    from dmlsplit.checking.open_sizes import OpenNode  # few models have open sizes

    return OpenNode.of(node)


def judge_node(
    node: SplitNode | JoinNode,
    descriptor: OperatorDesc | None,
    target: Target,
    *,
    advises: bool = True,
    levels: bool = True,
) -> tuple[Report, NodeSummary]:
    """Returns the report on a node and the row of a table: ok if its framework allows it and it runs on the target,
    rewritten if need be.

    `descriptor` is the node's operator, None if it has none. `advises`: advice about a wrong graph is first tried on
    the model. `levels`: the row gets the minimum level, for which other versions' graphs are judged.
    """
    operator = f"{node.op} {node.version}" if node.version else node.op
    row = NodeSummary(node.path, operator, node.data_type, node.whole_shape, node.axis, node.lengths, Use.NOT_ASKED)
    open_node = open_node_of(node, descriptor)
    basis = basis_of(node, open_node, target)
    report: Report
    if basis is Basis.FRAMEWORK:
        return replace(node.report, judged_by=target.name), row
    if basis is Basis.SESSION:
        report = in_runtime = judged_in_session(node, target)
        assert in_runtime.answer is not None
        use = Use.NOT_ASKED if not node.report.ok else Use.UNKNOWN if descriptor is None else Use.AS_IT_IS
        is_folded = any(each.rule == "onnxruntime/folded" for each in in_runtime.answer.diagnostics)
        row = row._replace(use=use, runtime="folded" if is_folded else str(in_runtime.answer.outcome))
    elif open_node is not None:
        report, row = _of_open_sizes(node, row, open_node.answer(target), target)
    else:
        report, row = _of_descriptor(node, row, descriptor, target)
    if levels:
        level = None if open_node is None else open_node.lowest_level
        row = row._replace(minimum_level=level if descriptor is None else lowest_level(descriptor))
    if node.report.ok and node.in_session is not None:
        return _in_graph(report, row, node.in_session, target, advises=advises)
    return report, row


def _of_open_sizes(
    node: SplitNode | JoinNode, row: NodeSummary, answer: OpenAnswer, target: Target
) -> tuple[Report, NodeSummary]:
    """Returns the verdict on a node for all sizes that the model leaves open, for which there is no single operator."""
    own = node.report
    unknown = [d for d in own.diagnostics if d.rule == "node/shape-unknown"]
    kept = tuple([d for d in own.diagnostics if d not in unknown])
    hints = "; ".join(dict.fromkeys(str(d.expected) for d in unknown if d.expected))
    line, column = next(((d.line, d.column) for d in unknown if d.line is not None), (None, None))
    said = RULES["node/sizes-open"].diagnostic(
        Location(node=node.path), str(answer), expected=hints, actual=answer.head, line=line, column=column
    )
    report = Report((*kept, said), target.name, None, own.operator)
    return report, row._replace(use=answer.main, condition=answer.condition)


def judged_in_session(node: SplitNode | JoinNode, target: Target) -> RuntimeReport:
    """Returns the report of a version of ONNX Runtime on a node of an ONNX model, with the answer behind it: ok if ONNX
    allows the node and nothing fails.

    `hresult` is that of the last CreateOperator, None if there is none.
    """
    assert target.runtime is not None
    assert node.in_session is not None
    try:
        answer = node.in_session.sessions.of(target.runtime, target.session_options).answer(node.in_session.place)
    except InputError as error:
        note = diagnostic("onnxruntime/context-unknown", node.path, error.message)
        answer = RuntimeAnswer(target.runtime, Outcome.UNKNOWN, diagnostics=(note,))
    # A DirectML descriptor may lack facts that ONNX Runtime does not need; ONNX Runtime's own answer says which it
    # lacks.
    own = tuple([d for d in node.report.diagnostics if d.rule != "node/shape-unknown"])
    found = tuple(dict.fromkeys((*own, *answer.diagnostics)))
    hresult = answer.hresults[-1] if answer.hresults else None
    return RuntimeReport(found, target.name, hresult, node.report.operator, answer=answer)


def _of_descriptor(
    node: SplitNode | JoinNode, row: NodeSummary, descriptor: OperatorDesc | None, target: Target
) -> tuple[Report, NodeSummary]:
    """Returns the verdict on a node by its descriptor on the target, unchanged or rewritten."""
    from dmlsplit.formats.lowering import NodeLegalization, legalized_node  # sessions of models do not need it

    own, found = node.report, legalized_node(node, target)
    new = [d for d in found.report.diagnostics if d not in own.diagnostics]
    diagnostics = tuple(
        [d if d.location.node else replace(d, location=replace(d.location, node=node.path)) for d in new]
    )
    use = Use.REFUSED if diagnostics else Use.UNKNOWN
    if descriptor is not None:
        use = Use.AS_IT_IS if found.ok else Use.REFUSED
    row = row._replace(use=use)
    if found.ok and isinstance(found, NodeLegalization) and found.is_rewritten:
        message = f"{target.name} accepts it after a rewriting: {'; '.join(found.steps)}"
        diagnostics += (RULES["node/rewritten"].diagnostic(Location(node=node.path), message),)
        row = row._replace(use=Use.REWRITTEN, rewriting=in_words.summary(found))
    return Report((*own.diagnostics, *diagnostics), target.name, found.report.hresult, own.operator), row


def _in_graph(
    report: Report, row: NodeSummary, node: InSession, target: Target, *, advises: bool
) -> tuple[Report, NodeSummary]:
    """Returns the verdict on a node combined with the one on its graphs. `advises`: advice is tried on the model."""
    found = graph_diagnostics(node.sessions, node.place, target, advises=advises)
    if row.minimum_level is not None:
        levels = (each for each in level_targets() if each.feature_level >= row.minimum_level)
        right = (each.feature_level for each in levels if _is_right_at(node, each))
        row = row._replace(minimum_level=next(right, None))
    return _with_faults(report, found), row._replace(graph=_correctness(found))


def _is_right_at(node: InSession, level: Target) -> bool:
    """Returns True if a node's graphs are right at a feature level; False also if that is unknown, or if the model has
    no session there (InputError)."""
    try:
        session = node.sessions.of(level.graph_runtime or NEWEST, level.session_options)
        return session.graph_correctness(node.place) == "right"
    except InputError:
        return False


def column_in_graph(report: Report, use: Use, node: SplitNode | JoinNode, target: Target) -> tuple[Report, Use]:
    """Returns the answer of a column about a node combined with the one about its graphs, if it has any."""
    if not node.report.ok or node.in_session is None:
        return report, use
    found = graph_diagnostics(node.in_session.sessions, node.in_session.place, target)
    return _with_faults(report, found), in_graph(use, _correctness(found))


def _with_faults(report: Report, found: Sequence[Diagnostic]) -> Report:
    """Returns the report with the faults of graphs; each replaces the runtime's own diagnostic of the same fault."""
    if not found:
        return report
    rules = {each.rule for each in found}
    kept = [d for d in report.diagnostics if rules.isdisjoint(kind.rule for kind in FAULTS.get(d.rule, ()))]
    return replace(report, diagnostics=(*kept, *found))


def _correctness(found: Sequence[Diagnostic]) -> Correctness:
    """Returns the correctness of a graph with these findings; without any, the graph is right."""
    if not found:
        return "right"
    if any(each.severity is Severity.ERROR for each in found):
        return "wrong"
    return "unknown" if any(each.rule == "graph/unknown" for each in found) else "right"


def graph_diagnostics(
    sessions: Sessions, place: NodeKey | None, target: Target, *, advises: bool = False
) -> tuple[Diagnostic, ...]:
    """Returns the faults of the DirectML graphs that the node at `place` is part of, in the target's ONNX Runtime, or
    in the one that stands for a level or release. `place` is None for a model without a Split or Concat: its faults are
    then returned.

    If a level is not the highest level of any ONNX Runtime's DirectML, the faults of the newest version become
    graph/unknown. A fault that prevents every ONNX Runtime from loading the model is graph/not-loaded; if the target is
    a runtime, its answer says so instead. `advises`: advice is tried on the model.
    """
    runtime = target.graph_runtime
    if runtime is None and target.release is not None:
        return ()
    by = target if runtime is not None else target_of(NEWEST)
    try:
        session = sessions.of(runtime or NEWEST, target.session_options)
        found = session.graph_diagnostics(place, partial(_tried, sessions, by) if advises else None)
    except InputError as error:
        if target.runtime is not None:
            return ()
        here = Location() if place is None else Location(node=place.path)
        if isinstance(error, NotLoadedError):
            return (GRAPH_RULES["graph/not-loaded"].diagnostic(here, error.message),)
        message = f"the result of its graph is not known: {error.message}"
        return (GRAPH_RULES["graph/unknown"].diagnostic(here, message),)
    return found if runtime is not None else tuple([_of_newest(each) for each in found])


def _tried(sessions: Sessions, target: Target, found: Sequence[GraphFinding]) -> Sequence[GraphFinding]:
    """Returns the findings with advice that was tried on the model."""
    from dmlsplit.mending.advice import advised  # few models have a fault

    return advised(cast("OnnxSessions", sessions), found, target)


def _of_newest(found: Diagnostic) -> Diagnostic:
    """Returns what a finding about the graphs of the newest ONNX Runtime says for a feature level that is no version's
    highest: an error becomes a graph/unknown that quotes it, at the same place; any other finding is returned
    unchanged."""
    if found.severity is not Severity.ERROR:
        return found
    message = (
        f"no known ONNX Runtime has this feature level as its highest one; with {NEWEST.judged_by}, which supports it, "
        f"{found.message} [{found.rule}]"
    )
    return GRAPH_RULES["graph/unknown"].diagnostic(found.location, message)
