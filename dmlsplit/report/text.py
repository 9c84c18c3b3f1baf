"""Reports as plain text: a verdict a line, a diagnostic a line, each beginning with its place.

A line is made of parts with a style each, so that the terminal's colours are put on the very text that a pipe gets.
Whatever comes from a file is made printable: escape codes, line breaks and lone surrogates are shown, not obeyed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.checking.results import Answer, Judged, NodeSummary, Note, Result, Verdict
from dmlsplit.descriptors.diagnostics import Diagnostic, Position, Severity
from dmlsplit.descriptors.enums import HResult
from dmlsplit.descriptors.location import Location
from dmlsplit.report.table import Table
from dmlsplit.rules import RULES
from dmlsplit.system.printable import printable
from dmlsplit.targets.target import Use

Part: TypeAlias = tuple[str, str]
"""A piece of a line and its style: a rich style, or empty."""

SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
UPGRADE_NODES: Final = 4
"""Nodes that are named where an upgrade changes what becomes of them."""
NODE_WIDTH: Final = 132
"""Columns of a table of nodes, as far as their names leave room."""
_NODE_COLUMNS: Final = ("Node", "Operator", "Whole", "Axis", "Lengths", "Verdict", "Level")
_VERDICT_STYLES: Final = {
    Verdict.OK: "bold green",
    Verdict.NOT_OK: "bold red",
    Verdict.NOT_JUDGED: "bold cyan",
    Verdict.NOT_READ: "bold red",
}


def place(file: str | None, position: Position | None) -> str:
    """file:line:column, as much as is known."""
    known = [] if file is None else [printable(file, None)]
    return ":".join([*known, *map(str, position or ())])


def verdict_parts(answer: Answer) -> list[Part]:
    """The line of an operator's verdict."""
    report = answer.report
    parts = [*_place_parts(report.file, answer.position), (str(answer.verdict), _VERDICT_STYLES[answer.verdict])]
    subject = _subject(answer)
    if subject:
        parts.append((f": {subject}", "bold"))
    if report.operator is not None:
        parts.append((f" ({report.judged_by}, {_code(report.hresult)})", ""))
    if report.remark:
        parts.append((f"; {report.remark}", ""))
    return parts


def _code(hresult: HResult | int | None) -> str:
    if hresult is None:
        return "no HRESULT"
    return "S_OK" if hresult == HResult.S_OK else f"HRESULT 0x{hresult:08X}"


def subject_parts(answer: Answer) -> list[Part]:
    """The place, name and type of an operator, for a line that says something else than the verdict."""
    return [*_place_parts(answer.report.file, answer.position), (_subject(answer) or "operator", "bold")]


def _subject(answer: Answer) -> str:
    name = None if answer.name is None else f"'{printable(answer.name)}'"
    return " ".join(filter(None, [name, answer.report.operator]))


def diagnostic_parts(diagnostic: Diagnostic, file: str | None) -> list[Part]:
    """The line of a diagnostic: `file:line:column: error[rule] path: message`."""
    line, column = diagnostic.line, diagnostic.column
    parts = _place_parts(file, None if line is None or column is None else (line, column))
    parts += [(str(diagnostic.severity), SEVERITY_STYLES[diagnostic.severity]), (f"[{diagnostic.rule}] ", "")]
    if diagnostic.path:
        parts.append((f"{diagnostic.path}: ", "bold"))
    parts.append((printable(diagnostic.message, None), ""))
    return parts


def _place_parts(file: str | None, position: Position | None) -> list[Part]:
    where = place(file, position)
    return [(f"{where}: ", "")] if where else []


def plain(parts: Iterable[Part]) -> str:
    """The line without its styles."""
    return "".join([text for text, _ in parts])


def lines(result: Result) -> list[str]:
    """An operator's verdict and its diagnostics; of a file's note, what it says."""
    return [plain(parts) for parts in result_parts(result, lambda diagnostic: ())]


def result_parts(result: Result, below: Callable[[Diagnostic], Iterable[list[Part]]]) -> Iterator[list[Part]]:
    """The lines of a result; `below` gives those that go below a diagnostic."""
    if not isinstance(result, Note):
        yield verdict_parts(result)
    for diagnostic in result.report.diagnostics:
        yield diagnostic_parts(diagnostic, result.report.file)
        yield from below(diagnostic)
    if isinstance(result, Judged) and result.fix:
        yield [*_place_parts(result.report.file, result.position), ("fix", "bold green"), (f": {result.fix}", "")]


class Tally:
    """Counts verdicts and diagnostics; the answers of several targets to one operator come one after the other."""

    def __init__(self, targets: int = 1) -> None:
        self._targets = targets
        self.verdicts: Counter[Verdict] = Counter()
        self.severities: Counter[Severity] = Counter()
        self._oks: list[bool] = []

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        """The same results, counted as they pass."""
        for result in results:
            if not isinstance(result, Note):
                self.verdicts[result.verdict] += 1
                self.severities.update([d.severity for d in result.report.diagnostics])
                self._oks.append(result.report.ok)
            yield result

    def summary(self) -> str:
        """One line: `3 operators: 2 ok, 1 not ok; 1 error, 2 warnings`."""
        verdicts = [f"{count} {verdict}" for verdict in Verdict if (count := self.verdicts[verdict])]
        severities = [_counted(count, str(severity)) for severity in Severity if (count := self.severities[severity])]
        each = [set(self._oks[i : i + self._targets]) for i in range(0, len(self._oks), self._targets)]
        head = _counted(len(each), "operator")
        if self._targets > 1:
            differing = sum(len(oks) > 1 for oks in each)
            head += f", {_counted(differing, 'verdict')} that depend{'s' if differing == 1 else ''} on the release"
        return "; ".join(filter(None, [f"{head}: {', '.join(verdicts) or 'none'}", ", ".join(severities)]))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def chunks(results: Iterable[Result], targets: int = 1) -> Iterator[str]:
    """The text of many operators piece by piece, with a summary at the end."""
    tally = Tally(targets)
    for group in groups(tally.watch(results)):
        if isinstance(group, list):
            yield node_table(group).plain(NODE_WIDTH)
            yield from (plain(parts) + "\n" for parts in node_diagnostics(group))
        else:
            yield "\n".join([*lines(group), ""])
    yield tally.summary() + "\n"


def groups(results: Iterable[Result]) -> Iterator[Result | list[Judged]]:
    """The nodes of each model as a list, everything else by itself."""
    nodes: list[Judged] = []
    for result in results:
        node = result if isinstance(result, Judged) and result.node is not None else None
        if nodes and (node is None or _begins(node, nodes[0])):
            yield nodes
            nodes = []
        if node is None:
            yield result
        else:
            nodes.append(node)
    if nodes:
        yield nodes


def _begins(node: Judged, first: Judged) -> bool:
    """Whether a node is the first of a model, which may be the model of `first` once more."""
    one, other = node.report, first.report
    return one.file != other.file or (one.index, one.judged_by) == (other.index, other.judged_by)


def node_table(nodes: Sequence[Judged]) -> Table:
    """The nodes of one model: what they are, the verdict, the lowest level, and each target's answer."""
    targets = dict.fromkeys(node.report.judged_by for node in nodes)
    found: dict[int, list[tuple[Judged, NodeSummary]]] = {}
    for judged in nodes:
        if judged.node is not None:
            found.setdefault(judged.report.index, []).append((judged, judged.node))
    rows = []
    for answers in found.values():
        cells = NodeCells.of(answers[0][1])
        verdict = _verdict_text([judged for judged, _ in answers], answers[0][1].is_warned)
        rows.append((*cells[:5], verdict, cells.level, *(_use_text(node) for _, node in answers)))
    title = f"{place(nodes[0].report.file, None)}: {_counted(len(rows), 'node')}"
    return Table(title, (*_NODE_COLUMNS, *targets), rows)


def _verdict_text(answers: Sequence[Judged], is_warned: bool) -> str:
    """The verdict of all targets together."""
    verdicts = {judged.verdict for judged in answers}
    if len(verdicts) > 1:
        return "depends"
    return "ok, warned" if is_warned and verdicts == {Verdict.OK} else str(*verdicts)


class NodeCells(NamedTuple):
    """A node in the words of a table."""

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
            str(node.minimum_level or _NO_LEVEL.get(node.use, "none")),
        )


_NO_LEVEL: Final = {Use.NOT_ASKED: "-", Use.UNKNOWN: "?"}


def _use_text(node: NodeSummary) -> str:
    graph = ", graph not ok" if node.graph_fails else ""
    if node.runtime:
        return node.runtime + graph
    rewriting = f": {node.rewriting}" if node.rewriting else ""
    return f"{node.use.value}{rewriting}{f' ({node.condition})' if node.condition else ''}{graph}"


def _upgrades(nodes: Sequence[Judged]) -> Iterator[list[Part]]:
    """The changes from one target to the next: a line for each, with the nodes that it happens to."""
    answers: dict[str, dict[int, tuple[str, bool, str]]] = {}
    for judged in nodes:
        if judged.node is not None:
            answer = _use_text(judged.node), judged.report.ok, judged.node.path
            answers.setdefault(judged.report.judged_by, {})[judged.report.index] = answer
    for (old, before), (new, after) in pairwise(answers.items()):
        changed: dict[tuple[str, str, bool], list[str]] = {}
        for index in sorted(before.keys() & after.keys()):
            (was, was_ok, path), (is_, is_ok, _) = before[index], after[index]
            if (was, was_ok) != (is_, is_ok):
                changed.setdefault((was, is_, was_ok and not is_ok), []).append(path)
        for (was, is_, breaks), paths in changed.items():
            shown = ", ".join(paths[:UPGRADE_NODES]) + (", ..." if len(paths) > UPGRADE_NODES else "")
            word = ("breaks", "bold red") if breaks else ("changes", "bold cyan")
            count = _counted(len(paths), "node")
            said = f": {count} from {was} with {old} to {is_} with {new}: {shown}"
            yield [*_place_parts(nodes[0].report.file, None), word, (said, "")]


def _together(said: Mapping[Diagnostic, list[str]]) -> dict[Diagnostic, list[str]]:
    """The same, with one warning for all tensors of which the same is not known."""
    found: dict[Diagnostic, list[str]] = {}
    first: dict[tuple[str, tuple[str, ...]], list[Diagnostic]] = {}
    for diagnostic, targets in said.items():
        if diagnostic.rule == "node/shape-unknown":
            first.setdefault((diagnostic.message, tuple(targets)), []).append(diagnostic)
    for diagnostic, targets in said.items():
        alike = first.get((diagnostic.message, tuple(targets)), [diagnostic])
        if diagnostic is alike[0]:
            more = f" (and of {_counted(len(alike) - 1, 'other tensor')})" if len(alike) > 1 else ""
            found[replace(diagnostic, message=f"{diagnostic.message}{more}")] = targets
    return found


def node_diagnostics(nodes: Sequence[Judged]) -> Iterator[list[Part]]:
    """The lines below such a table: what changes from target to target, and the diagnostics, what several targets say
    alike once."""
    yield from _upgrades(nodes)
    everybody = len({node.report.judged_by for node in nodes})
    said: dict[Diagnostic, list[str]] = {}
    open_sizes: dict[tuple[str, str], set[int]] = {}
    waiting: dict[str, dict[Diagnostic, None]] = {}
    for node in nodes:
        for diagnostic in node.report.diagnostics:
            if diagnostic.rule == "node/sizes-open":
                rest = diagnostic.message.removeprefix(str(diagnostic.actual))
                open_sizes.setdefault((rest, str(diagnostic.expected)), set()).add(node.report.index)
            elif diagnostic.rule == "onnxruntime/sizes-unknown":
                waiting.setdefault(diagnostic.message, {})[diagnostic] = None
            else:
                said.setdefault(diagnostic, []).append(node.report.judged_by)
    # The table has the answers; what else there is to say of open sizes is mostly one line for all nodes.
    for (rest, hint), indices in open_sizes.items():
        count = _counted(len(indices), "node")
        message = f"{count} of open sizes{rest.replace(';', ':', 1)}{f'; {hint}' if hint else ''}"
        said[RULES["node/sizes-open"].diagnostic(Location(), message)] = [""] * everybody
    for message, alike in waiting.items():
        first, *more = alike
        if more:
            first = replace(first, location=Location(), message=f"{_counted(len(alike), 'node')}: {message}")
        said[first] = [""] * everybody
    for diagnostic, targets in _together(said).items():
        parts = diagnostic_parts(diagnostic, nodes[0].report.file)
        if len(targets) < everybody:
            parts.append((f" ({', '.join(targets)})", "dim"))
        yield parts
