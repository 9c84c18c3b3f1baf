"""The nodes of a model as a table, with their diagnostics below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from dmlsplit.checking.results import Judged, NodeSummary, Verdict
from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.report.alike import Alike, Line, is_grouped
from dmlsplit.report.shown import Shown
from dmlsplit.report.table import Table
from dmlsplit.system.printable import printable
from dmlsplit.targets.target import Use

UPGRADE_NODES: Final = 4
"""The most nodes that are named when an upgrade changes their outcome."""
_COLUMNS: Final = ("Node", "Operator", "Whole", "Axis", "Lengths", "Verdict", "Level")
_ANSWER: Final = 30
"""The most characters of an answer in the table; a longer one becomes a remark below it."""
_NO_LEVEL: Final = {Use.NOT_ASKED: "-", Use.UNKNOWN: "?"}
_IN_GRAPH: Final = {"right": "", "wrong": ", graph not ok", "unknown": ", graph unknown"}


class NodeCells(NamedTuple):
    """The cells of a node in the table."""

    path: str
    operator: str
    whole: str
    axis: str
    lengths: str
    level: str

    @classmethod
    def of(cls, node: NodeSummary) -> NodeCells:
        from dmlsplit.descriptors.dims import shape_text
        from dmlsplit.formats.nodes import lengths_text

        return cls(
            node.path,
            node.operator,
            printable(f"{node.data_type or '?'} {shape_text(node.shape)}", 48),
            "?" if node.axis is None else str(node.axis),
            lengths_text(node.lengths),
            str(node.minimum_level or _NO_LEVEL.get(node.outcome, "none")),
        )


class NodeChange(NamedTuple):
    """A change to nodes from one target to the next."""

    breaks: bool
    said: str


class _Row(NamedTuple):
    """A node with the answer of each target."""

    answers: Sequence[tuple[Judged, NodeSummary]]

    @property
    def verdict(self) -> str:
        """The verdict of all targets together; "depends" if they differ, "ok, warned" if all accept and one warns."""
        verdicts = {judged.verdict for judged, _ in self.answers}
        if len(verdicts) > 1:
            return "depends"
        warned = any(d.severity is Severity.WARNING for judged, _ in self.answers for d in judged.report.diagnostics)
        return "ok, warned" if warned and verdicts == {Verdict.OK} else str(*verdicts)


class NodeTable:
    """The judged nodes of one model, with the answers of one target after another."""

    def __init__(self, nodes: Sequence[Judged], shown: Shown) -> None:
        of_index: dict[int, list[tuple[Judged, NodeSummary]]] = {}
        for judged in nodes:
            if judged.node is not None:
                of_index.setdefault(judged.report.index, []).append((judged, judged.node))
        rows = [_Row(answers) for answers in of_index.values()]
        self._rows = [row for row in rows if not (shown.only_problems and row.verdict == Verdict.OK)]
        self._left_out = len(rows) - len(self._rows)
        self._of_nodes = nodes[0].of_nodes
        self._targets = tuple(dict.fromkeys(node.report.judged_by for node in nodes))
        self._verbose = shown.verbose

    def table(self, file: str) -> Table:
        """Returns a table with a row for each node: its description, verdict, lowest level, and each target's
        answer."""
        remarks: dict[str, int] = {}
        rows = []
        for row in self._rows:
            cells = NodeCells.of(row.answers[0][1])
            uses = [_answer(node, remarks) for _, node in row.answers]
            rows.append((*cells[:5], row.verdict, cells.level, *uses))
        below = [f"[{number}] {remark}" for remark, number in remarks.items()]
        return Table(f"{file}: {self._heading()}", (*_COLUMNS, *self._targets), rows, below, len(_COLUMNS))

    def _heading(self) -> str:
        """Returns the table's heading: the numbers of nodes in it, of all nodes, and of those left out."""
        count = len(self._rows) + self._left_out
        nodes = "1 Split or Concat" if count == 1 else f"{count} Splits and Concats"
        if self._of_nodes > count:  # nodes of functions have a row for each call, so there may be more
            nodes += f" among {self._of_nodes} nodes"
        left_out = f"; {self._left_out} that are ok omitted" if self._left_out else ""
        return f"{nodes}{left_out}"

    def changes(self) -> Iterator[NodeChange]:
        """Yields the changes of answers from each target to the next, each with the names of the first nodes affected;
        nodes with the same change are one item."""
        for i, (old, new) in enumerate(pairwise(self._targets)):
            changed: dict[tuple[str, str, bool], list[str]] = {}
            for row in self._rows:
                (before, was), (after, is_) = row.answers[i], row.answers[i + 1]
                texts = _use_text(was), _use_text(is_)
                if texts[0] != texts[1] or before.report.ok != after.report.ok:
                    breaks = before.report.ok and not after.report.ok
                    changed.setdefault((*texts, breaks), []).append(was.path)
            for (text, next_text, breaks), paths in changed.items():
                names = ", ".join(paths[:UPGRADE_NODES]) + (", ..." if len(paths) > UPGRADE_NODES else "")
                count = f"{len(paths)} node{'' if len(paths) == 1 else 's'}"
                yield NodeChange(breaks, f"{count} from {text} with {old} to {next_text} with {new}: {names}")

    def lines(self) -> Iterator[Line]:
        """Yields the nodes' diagnostics: errors (with `verbose` all) node by node, then the others grouped by rule. A
        diagnostic that several targets share is yielded once."""
        alike = Alike("node")
        for row in self._rows:
            said: dict[Diagnostic, list[str]] = {}
            for judged, _ in row.answers:
                for diagnostic in judged.report.diagnostics:
                    said.setdefault(diagnostic, []).append(judged.report.judged_by)
            for diagnostic, targets in said.items():
                by = tuple(targets) if len(targets) < len(self._targets) else ()
                if self._verbose or not is_grouped(diagnostic):
                    yield Line(diagnostic, by)
                else:
                    alike.add(_rest(diagnostic), row.answers[0][1].path, by)
        yield from alike.lines()


def _rest(diagnostic: Diagnostic) -> Diagnostic:
    """Returns the diagnostic; the message of "node/sizes-open" without the answer, which the table shows."""
    if diagnostic.rule != "node/sizes-open":
        return diagnostic
    rest = diagnostic.message.removeprefix(str(diagnostic.actual)).removeprefix("; ")
    hint = str(diagnostic.expected or "")
    return replace(diagnostic, message="; ".join(filter(None, ["open sizes", hint, rest])))


def _answer(node: NodeSummary, remarks: dict[str, int]) -> str:
    """Returns a target's answer in a few words. A condition, or an answer too long for a cell, is added to `remarks`
    (text to number) and referred to by its number."""
    text = _use_text(node._replace(condition=""))
    long = text if len(text) > _ANSWER else ""
    remark = "; ".join(filter(None, [long, node.condition]))
    if not remark:
        return text
    number = remarks.setdefault(remark, len(remarks) + 1)
    return f"{node.use.value if long else text}{' if' if node.condition else ''} [{number}]"


def _use_text(node: NodeSummary) -> str:
    graph = _IN_GRAPH[node.graph]
    if node.runtime:
        return node.runtime + graph
    rewriting = f": {node.rewriting}" if node.rewriting else ""
    return f"{node.use.value}{rewriting}{f' ({node.condition})' if node.condition else ''}{graph}"
