"""Reports as plain text: a verdict a line, a diagnostic a line, each beginning with its place.

A line is made of parts with a style each, so that the terminal's colours are put on the very text that a pipe gets.
Whatever comes from a file is made printable: escape codes, line breaks and lone surrogates are shown, not obeyed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.descriptors import OperatorDesc
from dmlsplit.diagnostics import Diagnostic, Position, Report, Severity
from dmlsplit.enums import HResult
from dmlsplit.formats.jsontext import printable
from dmlsplit.report.table import Table

Part: TypeAlias = tuple[str, str]
"""A piece of a line and its style: a rich style, or empty."""

SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
NODE_WIDTH: Final = 132
"""Columns of a table of nodes, as far as their names leave room."""
_NODE_COLUMNS: Final = ("Node", "Operator", "Input", "Axis", "Lengths", "Verdict", "Level")
_VERDICT_STYLES = {"ok": "bold green", "not ok": "bold red", "not judged": "bold cyan", "not read": "bold red"}


class NodeRow(NamedTuple):
    """What a table says of a node, whoever judges it, and the judge's answer."""

    name: str
    op: str
    input: str
    axis: str
    lengths: str
    verdict: str
    level: str
    answer: str


class Judged(NamedTuple):
    """A report, and what of its operator the report does not say: the name in its file, line and column.

    `fix` names the rewriting that a refused operator has. `row` is set for a node of a framework's model: the cells
    that stand for it in a table. `descriptor`: what is judged, None where there is none.
    """

    report: Report
    name: str | None = None
    position: Position | None = None
    fix: str | None = None
    row: NodeRow | None = None
    descriptor: OperatorDesc | None = None


def verdict(report: Report) -> str:
    """ok, not ok, not judged (neither a Split nor a Join) or not read (malformed)."""
    if report.hresult is None and report.operator is None:
        return "not judged" if report.ok else "not read"
    return "ok" if report.ok else "not ok"


def place(file: str | None, position: Position | None) -> str:
    """file:line:column, as much as is known."""
    known = [] if file is None else [printable(file, None)]
    return ":".join([*known, *map(str, position or ())])


def verdict_parts(judged: Judged) -> list[Part]:
    """The line of an operator's verdict."""
    report = judged.report
    word = verdict(report)
    parts = [*_place_parts(report.file, judged.position), (word, _VERDICT_STYLES[word])]
    subject = _subject(judged)
    if subject:
        parts.append((f": {subject}", "bold"))
    if report.operator is not None:
        parts.append((f" ({report.judged_by}, {_code(report.hresult)})", ""))
    return parts


def _code(hresult: HResult | int | None) -> str:
    if hresult is None:
        return "no HRESULT"
    return "S_OK" if hresult == HResult.S_OK else f"HRESULT 0x{hresult:08X}"


def subject_parts(judged: Judged) -> list[Part]:
    """The place, name and type of an operator, for a line that says something else than the verdict."""
    return [*_place_parts(judged.report.file, judged.position), (_subject(judged) or "operator", "bold")]


def _subject(judged: Judged) -> str:
    name = None if judged.name is None else f"'{printable(judged.name)}'"
    return " ".join(filter(None, [name, judged.report.operator]))


def diagnostic_parts(diagnostic: Diagnostic, file: str | None) -> list[Part]:
    """The line of a diagnostic: `file:line:column: error[rule] path: message`."""
    line, column = diagnostic.line, diagnostic.column
    parts = _place_parts(file, None if line is None or column is None else (line, column))
    parts += [(str(diagnostic.severity), SEVERITY_STYLES[diagnostic.severity]), (f"[{diagnostic.rule}] ", "")]
    if diagnostic.path:
        parts.append((f"{diagnostic.path}: ", "bold"))
    parts.append((printable(diagnostic.message, None), ""))
    return parts


def fix_parts(judged: Judged) -> list[Part]:
    """The line that says how a refused operator runs all the same."""
    return [*_place_parts(judged.report.file, judged.position), ("fix", "bold green"), (f": {judged.fix}", "")]


def _place_parts(file: str | None, position: Position | None) -> list[Part]:
    where = place(file, position)
    return [(f"{where}: ", "")] if where else []


def plain(parts: Iterable[Part]) -> str:
    """The line without its styles."""
    return "".join([text for text, _ in parts])


def lines(judged: Judged) -> list[str]:
    """An operator's verdict and its diagnostics; of what only says something of a file, that."""
    diagnostics = [plain(diagnostic_parts(d, judged.report.file)) for d in judged.report.diagnostics]
    fix = [plain(fix_parts(judged))] if judged.fix else []
    return [*([plain(verdict_parts(judged))] if judged.report.index >= 0 else []), *diagnostics, *fix]


class Tally:
    """Counts verdicts and diagnostics; the answers of several judges to one operator come one after the other."""

    def __init__(self, judges: int = 1) -> None:
        self._judges = judges
        self.verdicts: Counter[str] = Counter()
        self.severities: Counter[Severity] = Counter()
        self._outcomes: list[bool] = []

    def watch(self, items: Iterable[Judged]) -> Iterator[Judged]:
        """The same items, counted as they pass."""
        for item in items:
            if item.report.index >= 0:  # else only something of the file is said
                self.verdicts[verdict(item.report)] += 1
                self.severities.update([d.severity for d in item.report.diagnostics])
                self._outcomes.append(item.report.ok)
            yield item

    def summary(self) -> str:
        """One line: `3 operators: 2 ok, 1 not ok; 1 error, 2 warnings`."""
        verdicts = [f"{count} {word}" for word in _VERDICT_STYLES if (count := self.verdicts[word])]
        severities = [_counted(count, str(severity)) for severity in Severity if (count := self.severities[severity])]
        each = [set(self._outcomes[i : i + self._judges]) for i in range(0, len(self._outcomes), self._judges)]
        head = _counted(len(each), "operator")
        if self._judges > 1:
            differing = sum(len(outcomes) > 1 for outcomes in each)
            head += f", {_counted(differing, 'verdict')} that depend{'s' if differing == 1 else ''} on the release"
        return "; ".join(filter(None, [f"{head}: {', '.join(verdicts) or 'none'}", ", ".join(severities)]))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def chunks(items: Iterable[Judged], judges: int = 1) -> Iterator[str]:
    """The text of many operators piece by piece, with a summary at the end."""
    tally = Tally(judges)
    for group in groups(tally.watch(items)):
        if group[0].row is not None:
            yield node_table(group).plain(NODE_WIDTH)
            yield from (plain(parts) + "\n" for parts in node_diagnostics(group))
        else:
            yield "\n".join([*lines(group[0]), ""])
    yield tally.summary() + "\n"


def groups(items: Iterable[Judged]) -> Iterator[list[Judged]]:
    """The nodes of each model together, every other operator by itself."""
    nodes: list[Judged] = []
    for item in items:
        if nodes and (item.row is None or item.report.file != nodes[0].report.file):
            yield nodes
            nodes = []
        if item.row is None:
            yield [item]
        else:
            nodes.append(item)
    if nodes:
        yield nodes


def node_table(items: Sequence[Judged]) -> Table:
    """The nodes of one model: what they are, their framework's verdict, the lowest level, and each judge's answer."""
    judges = dict.fromkeys(item.report.judged_by for item in items)
    rows: dict[int, list[str]] = {}
    for item in items:
        if item.row is not None:
            rows.setdefault(item.report.index, list(item.row[:-1])).append(item.row.answer)
    title = f"{place(items[0].report.file, None)}: {_counted(len(rows), 'node')}"
    return Table(title, (*_NODE_COLUMNS, *judges), [tuple(row) for row in rows.values()])


def node_diagnostics(items: Sequence[Judged]) -> Iterator[list[Part]]:
    """The lines of the diagnostics below such a table, what several judges say alike once."""
    everybody = len({item.report.judged_by for item in items})
    said: dict[Diagnostic, list[str]] = {}
    for item in items:
        for diagnostic in item.report.diagnostics:
            said.setdefault(diagnostic, []).append(item.report.judged_by)
    for diagnostic, judges in said.items():
        parts = diagnostic_parts(diagnostic, items[0].report.file)
        if len(judges) < everybody:
            parts.append((f" ({', '.join(judges)})", "dim"))
        yield parts
