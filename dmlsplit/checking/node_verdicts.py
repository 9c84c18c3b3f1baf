"""The verdict on a Split or Concat of a framework's model: right by its framework, and running on the target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from dmlsplit.checking.compatibility import Columns, Compatibility, compatibility
from dmlsplit.checking.open_sizes import OpenNode
from dmlsplit.checking.results import NodeSummary, in_graph
from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity
from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.lowering import asked_descriptor, is_rewritten, legalized_node
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.legalize import in_words
from dmlsplit.onnxruntime.reports import graph_diagnostics, judged_in_session
from dmlsplit.rules import RULES
from dmlsplit.rules.onnxruntime import FAULTS
from dmlsplit.targets.target import Target, Use, target_of
from dmlsplit.verdicts.validation import minimum_feature_level

if TYPE_CHECKING:
    from dmlsplit.graphs.execution import Correctness


class NodeVerdict(NamedTuple):
    """The report, the row of a table, and the node's operator."""

    report: Report
    summary: NodeSummary
    descriptor: OperatorDesc | None = None


def judge_node(node: SplitNode | JoinNode, descriptor: OperatorDesc | None, target: Target) -> NodeVerdict:
    """Judges a node: ok where its framework allows it and it runs on the target, rewritten if need be.

    `descriptor` is the node's operator, None where it has none.
    """
    return _with_graphs(_judged(node, descriptor, target), node, target)


def _judged(node: SplitNode | JoinNode, descriptor: OperatorDesc | None, target: Target) -> NodeVerdict:
    if target.runtime is not None and node.in_session is not None:
        return _judge_in_session(node, descriptor, target)
    own = node.report
    if not own.ok:
        return NodeVerdict(replace(own, judged_by=target.name), _summary(node, Use.NOT_ASKED))
    open_node = None if descriptor is not None else OpenNode.of(node)
    if open_node is not None:
        return _judge_open(node, target, open_node)
    found = legalized_node(node, target)
    new = [d for d in found.report.diagnostics if d not in own.diagnostics]
    of_node = [d if d.location.node else replace(d, location=replace(d.location, node=node.path)) for d in new]
    diagnostics = tuple(of_node)
    summary = _summary(node, Use.REFUSED if diagnostics else Use.UNKNOWN)
    descriptor = asked_descriptor(found)
    if descriptor is not None:
        use = Use.AS_IT_IS if found.ok else Use.REFUSED
        summary = summary._replace(use=use, minimum_level=_minimum_level(descriptor))
    if found.ok and is_rewritten(node, found):
        message = f"{target.name} takes it rewritten: {'; '.join(found.steps)}"
        diagnostics += (RULES["node/rewritten"].diagnostic(Location(node=node.path), message),)
        summary = summary._replace(use=Use.REWRITTEN, rewriting=in_words.summary(found))
    report = Report((*own.diagnostics, *diagnostics), target.name, found.report.hresult, own.operator)
    return NodeVerdict(report, summary, descriptor)


def _with_graphs(verdict: NodeVerdict, node: SplitNode | JoinNode, target: Target) -> NodeVerdict:
    """Adds the faults of the DirectML graphs around a model's node, each in place of the runtime's diagnostic of it."""
    if not node.report.ok or node.in_session is None:
        return verdict
    found = graph_diagnostics(node, target)
    rules = {each.rule for each in found}
    kept = [d for d in verdict.report.diagnostics if rules.isdisjoint(kind.rule for kind in FAULTS.get(d.rule, ()))]
    report = replace(verdict.report, diagnostics=(*kept, *found)) if found else verdict.report
    summary = verdict.summary._replace(graph=_correctness(found))
    if summary.minimum_level is not None:
        levels = [level for level in FeatureLevel if level >= summary.minimum_level]
        right = (level for level in levels if _correctness(graph_diagnostics(node, target_of(level))) == "right")
        summary = summary._replace(minimum_level=next(right, None))
    return verdict._replace(report=report, summary=summary)


def _correctness(found: Iterable[Diagnostic]) -> Correctness:
    """The correctness of a graph with these findings."""
    if any(each.severity is Severity.ERROR for each in found):
        return "wrong"
    return "unknown" if any(each.rule == "graph/unknown" for each in found) else "right"


def columns_of(
    node: SplitNode | JoinNode, descriptor: OperatorDesc | None, asked: Columns
) -> tuple[Compatibility, ...]:
    """The answer of each level, release or version of ONNX Runtime about a node, including its graph.

    Levels and releases are left out where the node is no operator for any sizes.
    """
    answers = {} if descriptor is None else {each.column: each for each in compatibility(descriptor, asked)}
    open_node = None if descriptor is not None else OpenNode.of(node)
    found = []
    for column in asked.columns:
        if column.target.runtime is not None and node.in_session is not None:
            verdict = judge_node(node, descriptor, column.target)
            use = verdict.summary.outcome if verdict.report.ok else Use.REFUSED
            found.append(Compatibility(column, use, verdict.report, None))
            continue
        answer = answers.get(column)
        if open_node is not None:
            of_sizes = open_node.answer(column.target)
            report = Report((), column.target.name, None, node.report.operator)
            answer = Compatibility(column, of_sizes.main, report, None, str(of_sizes))
        if answer is not None:
            found.append(_in_graph(answer, node))
    return tuple(found)


def _in_graph(answer: Compatibility, node: SplitNode | JoinNode) -> Compatibility:
    """The answer combined with the outcome of the graph that the node becomes part of."""
    if not node.report.ok or node.in_session is None:
        return answer
    found = graph_diagnostics(node, answer.column.target)
    if not found:
        return answer
    report = replace(answer.report, diagnostics=(*answer.report.diagnostics, *found))
    return answer._replace(use=in_graph(answer.use, _correctness(found)), report=report)


def _judge_open(node: SplitNode | JoinNode, target: Target, open_node: OpenNode) -> NodeVerdict:
    """Judges a node for all sizes that the model leaves open, for which there is no single operator."""
    own, answer = node.report, open_node.answer(target)
    unknown = [d for d in own.diagnostics if d.rule == "node/shape-unknown"]
    kept = tuple([d for d in own.diagnostics if d not in unknown])
    hints = "; ".join(dict.fromkeys(str(d.expected) for d in unknown if d.expected))
    here = Location(node=node.path)
    place = next(((d.line, d.column) for d in unknown if d.line is not None), (None, None))
    said = RULES["node/sizes-open"].diagnostic(
        here, f"{answer.head}{answer.rest}", expected=hints, actual=answer.head, line=place[0], column=place[1]
    )
    summary = _summary(node, answer.main)._replace(
        minimum_level=open_node.lowest_level,
        condition=answer.condition,
    )
    return NodeVerdict(Report((*kept, said), target.name, None, own.operator), summary)


@lru_cache(maxsize=256)
def _minimum_level(descriptor: OperatorDesc) -> FeatureLevel | None:
    """Cached, since targets and equal nodes ask repeatedly."""
    return minimum_feature_level(descriptor)


def _judge_in_session(node: SplitNode | JoinNode, descriptor: OperatorDesc | None, target: Target) -> NodeVerdict:
    """Judges a node by a version of ONNX Runtime: ok where ONNX allows it and nothing fails."""
    report, answer = judged_in_session(node, target)
    use = Use.NOT_ASKED if not node.report.ok else Use.UNKNOWN if descriptor is None else Use.AS_IT_IS
    summary = _summary(node, use)._replace(runtime=str(answer.outcome))
    if descriptor is not None:
        summary = summary._replace(minimum_level=_minimum_level(descriptor))
    elif open_node := OpenNode.of(node):
        summary = summary._replace(minimum_level=open_node.lowest_level)
    return NodeVerdict(report, summary, descriptor)


def _summary(node: SplitNode | JoinNode, use: Use) -> NodeSummary:
    operator = f"{node.op} {node.version}" if node.version else node.op
    shape, lengths = node.whole_shape, node.lengths
    return NodeSummary(node.path, operator, node.data_type, shape, node.axis, lengths, use)
