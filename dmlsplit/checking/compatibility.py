"""Which feature levels, releases and versions of ONNX Runtime accept an operator, unchanged or rewritten, and why
others do not."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from dmlsplit.checking.columns import Column, Columns, Compatibility
from dmlsplit.checking.judging import judged
from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.legalize.search import legalized
from dmlsplit.targets.target import Target, Use
from dmlsplit.verdicts.validation import evaluate

if TYPE_CHECKING:
    from dmlsplit.formats.operator_files import Entry
    from dmlsplit.graphs import GraphDesc
    from dmlsplit.legalize import Legalization


def columns_of(entry: Entry, asked: Columns) -> tuple[Compatibility, ...]:
    """Returns the answer of each level, release or version in `asked` about an entry, a node's including its graph; ()
    if they cannot judge it.

    About a node that no sizes make an operator, each answer is that of the graph alone, and () is returned if the graph
    is not wrong.
    """
    desc = entry.descriptor or entry.graph or entry.other
    answers = () if desc is None else compatibility(desc, asked)
    node = entry.node
    if node is None:
        return answers
    from dmlsplit.checking.node_verdicts import Basis, basis_of, column_in_graph, judge_node, open_node_of

    open_node = open_node_of(node, desc)
    obstacle = node.obstacle() if desc is None and open_node is None else None
    is_known, found = desc is not None or open_node is not None, []
    for i, column in enumerate(asked.columns):
        target = column.target
        if basis_of(node, open_node, target) is Basis.SESSION:
            is_known = True
            report, row = judge_node(node, entry.descriptor, target, advises=False, levels=False)
            found.append(Compatibility(column, row.outcome if report.ok else Use.REFUSED, report, None))
            continue
        if answers:
            answer = answers[i]
        elif open_node is not None:
            of_sizes = open_node.answer(target)
            report = Report((), target.name, None, node.report.operator)
            answer = Compatibility(column, of_sizes.main, report, None, str(of_sizes))
        else:
            doubts = () if obstacle is None else (obstacle,)
            report = Report(doubts, target.name, None, node.report.operator)
            answer = Compatibility(column, Use.UNKNOWN, report, None)
        report, use = column_in_graph(answer.report, answer.use, node, target)
        found.append(answer._replace(use=use, report=report))
    return tuple(found) if is_known or any(each.use is Use.REFUSED for each in found) else ()


@lru_cache(256)
def compatibility(desc: OperatorDesc | AnyOperatorDesc | GraphDesc, asked: Columns) -> tuple[Compatibility, ...]:
    """Returns the answer of each column, in order, about an operator or a graph."""
    if isinstance(desc, (SplitOperatorDesc, JoinOperatorDesc)):
        kind = OperatorType.SPLIT if isinstance(desc, SplitOperatorDesc) else OperatorType.JOIN
        known = _Known(kind, [], {}, {})
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
