"""Reports as plain text: one line for each verdict and for each diagnostic, each beginning with its location.

A line consists of styled parts, so that a terminal shows in colours the same text that a pipe gets. Text from files is
made printable: escape codes, line breaks and lone surrogates are escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias

from dmlsplit.checking.results import Answer, Judged, Note, NotRead, Result, Verdict
from dmlsplit.descriptors.diagnostics import Diagnostic, Position, Report, Severity
from dmlsplit.descriptors.enums import HResult
from dmlsplit.report.alike import Alike, Line, is_grouped
from dmlsplit.report.shown import AS_USUAL, Shown
from dmlsplit.report.table import Table
from dmlsplit.system.printable import printable

if TYPE_CHECKING:
    from dmlsplit.verdicts.model_placements import GraphOutcome, Provider

Part: TypeAlias = tuple[str, str]
"""A piece of a line and its style: a rich style, or empty."""

SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
Below: TypeAlias = Callable[[Diagnostic, str | None], Iterable[list[Part]]]
"""The lines that go below a diagnostic about a file."""
TABLE_WIDTH: Final = 132
"""The width of a table of nodes, in columns, if the terminal's width is unknown."""
_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
"""The most serious first. Errors and warnings come before the table of a model's nodes, which may be long."""
_VERDICT_STYLES: Final = {
    Verdict.OK: "bold green",
    Verdict.NOT_OK: "bold red",
    Verdict.UNKNOWN: "bold yellow",
    Verdict.NOT_JUDGED: "bold cyan",
    Verdict.NOT_READ: "bold red",
}


def place(file: str | None, position: Position | None) -> str:
    """Returns "file:line:column", or the part of it that is known."""
    known = [] if file is None else [printable(file, None)]
    return ":".join([*known, *map(str, position or ())])


def verdict_parts(answer: Answer) -> list[Part]:
    """Returns the styled line with an operator's verdict."""
    report = answer.report
    parts = [*_place_parts(report.file, answer.position), (str(answer.verdict), _VERDICT_STYLES[answer.verdict])]
    subject = _subject(answer)
    if subject:
        parts.append((f": {subject}", "bold"))
    if report.operator is not None:
        parts.append((f" ({report.judged_by}, {_code(report.hresult)})", ""))
    if report.remark:
        parts.append((f"; {report.remark}", ""))
    if report.library is not None:
        said = "accepts" if report.library["accepted"] else "crashes the process with" if _ends(report) else "refuses"
        parts.append((f"; {report.library['build']} {said} it", ""))
    return parts


def _ends(report: Report) -> bool:
    return report.library is not None and report.library["hresult"] is None


def _code(hresult: HResult | int | None) -> str:
    if hresult is None:
        return "no HRESULT"
    return "S_OK" if hresult == HResult.S_OK else f"HRESULT 0x{hresult:08X}"


def subject_parts(answer: Answer) -> list[Part]:
    """Returns the place, name and type of an operator, styled, for lines without its verdict."""
    return [*_place_parts(answer.report.file, answer.position), (_subject(answer) or "operator", "bold")]


def _subject(answer: Answer) -> str:
    name = None if answer.name is None else f"'{printable(answer.name)}'"
    return " ".join(filter(None, [name, answer.report.operator]))


def diagnostic_parts(diagnostic: Diagnostic, file: str | None) -> list[Part]:
    """Returns the styled line of a diagnostic: `file:line:column: error[rule] path: message`."""
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
    """Returns a styled line as text without its styles."""
    return "".join([text for text, _ in parts])


def lines(result: Result) -> list[str]:
    """Returns the lines of a result: an operator's verdict, diagnostics and fix, or the diagnostics of a note."""
    head = [] if isinstance(result, Note) else [plain(verdict_parts(result))]
    found = [plain(diagnostic_parts(d, result.report.file)) for d in result.report.diagnostics]
    return [*head, *found, *map(plain, _fix_parts(result))]


def _fix_parts(result: Result) -> Iterator[list[Part]]:
    if isinstance(result, Judged) and result.fix:
        yield [*_place_parts(result.report.file, result.position), ("fix", "bold green"), (f": {result.fix}", "")]


class Tally:
    """Counts verdicts and diagnostics; the answers of several targets to one operator must be consecutive.

    A diagnostic that several targets share about a node of a model counts once, as does what cannot be read.
    """

    def __init__(self, targets: int = 1) -> None:
        self._targets = targets
        self.verdicts: Counter[Verdict] = Counter()
        self.severities: Counter[Severity] = Counter()
        self.unknown = 0
        """Operators without a known verdict, except those whose diagnostics are all hidden."""
        self.nodes: dict[bool, Counter[Provider]] = {True: Counter(), False: Counter()}
        """The nodes of the models, by where they run, or would run if the session did not fail, where one version of
        ONNX Runtime is asked: True for sessions that may be created, False for those that fail."""
        self.graphs: Counter[GraphOutcome] = Counter()
        """The number of fused graphs of the models by outcome, if one version of ONNX Runtime is asked."""
        self._oks: list[bool] = []
        self._said: set[Diagnostic] = set()

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        """Yields the results unchanged and, as each passes, counts it."""
        for result in results:
            if not isinstance(result, Note):
                if len(self._oks) % self._targets == 0:
                    self._said.clear()
                self._count(result)
            else:
                self._place(result)
            yield result

    def _place(self, note: Note) -> None:
        found = [each for each in note.report.diagnostics if each.rule != "input/no-split"]
        self.severities.update([each.severity for each in found])
        self.unknown += any(each.rule == "graph/unknown" for each in found)
        for each in note.placements:
            self.unknown += bool(each.unknown)
        if len(note.placements) == 1:
            self.nodes[note.placements[0].created is not False].update(note.placements[0].counts)
            self.graphs.update(note.placements[0].outcomes)

    def _count(self, result: Answer) -> None:
        report, verdict = result.report, result.verdict
        is_again = isinstance(result, NotRead) and self._said.issuperset(report.diagnostics)
        self.verdicts[verdict] += not is_again
        if verdict is Verdict.UNKNOWN:
            said = any(each.rule != "graph/output-may-be-empty" for each in report.diagnostics)
            self.unknown += said or not report.hidden
        new = [d for d in report.diagnostics if d not in self._said]
        if isinstance(result, NotRead) or (isinstance(result, Judged) and result.node is not None):
            self._said.update(new)
        self.severities.update([d.severity for d in new])
        self._oks.append(report.ok)

    def summary(self) -> str:
        """Returns the counts as one line: `3 operators: 2 ok, 1 not ok; 1 error, 2 warnings`."""
        verdicts = [f"{count} {verdict}" for verdict in Verdict if (count := self.verdicts[verdict])]
        each = [set(self._oks[i : i + self._targets]) for i in range(0, len(self._oks), self._targets)]
        head = _counted(len(each), "operator")
        if self._targets > 1:
            differing = sum(len(oks) > 1 for oks in each)
            head += f", {_counted(differing, 'verdict')} that depend{'s' if differing == 1 else ''} on the release"
        said = [": ".join(filter(None, (head, ", ".join(verdicts)))), _severities(self.severities), *self._of_models()]
        return "; ".join(filter(None, said))

    def _of_models(self) -> Iterator[str]:
        if not any(self.nodes.values()) and not self.graphs:
            return
        from dmlsplit.report import placement

        for runs, found in self.nodes.items():
            if found:
                yield placement.counts(found, runs=runs)
        if self.graphs:
            yield f"{_counted(self.graphs.total(), 'fused graph')}: {placement.outcomes(self.graphs)}"


def _severities(found: Mapping[Severity, int]) -> str:
    return ", ".join([_counted(count, str(each)) for each in Severity if (count := found.get(each, 0))])


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


Block: TypeAlias = Table | list[Part]
"""A table, or a line."""


def chunks(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """Yields the text report on many operators in pieces, with a summary at the end."""
    for block in blocks(results, targets, shown, lambda diagnostic, file: ()):
        yield block.plain(None if shown.verbose else TABLE_WIDTH) if isinstance(block, Table) else plain(block) + "\n"


def blocks(results: Iterable[Result], targets: int, shown: Shown, below: Below) -> Iterator[Block]:
    """Yields the tables and lines of the report on many operators, with a summary at the end; `below` returns the lines
    to put below a diagnostic."""
    tally = Tally(targets)
    has_sessions = False
    for (file, _), of_file in groupby(tally.watch(results), _Files()):
        nodes: list[Judged] = []
        alike = Alike("operator")
        unread: Report | None = None
        for result in of_file:
            if isinstance(result, NotRead):
                before, unread = unread, result.report
                if before is not None and (before.index, before.diagnostics) == (unread.index, unread.diagnostics):
                    continue  # it could not be read for any target
            has_sessions = has_sessions or _has_sessions(result)
            if isinstance(result, Note) and result.placements:
                from dmlsplit.report import placement

                for parts in placement.lines(result.placements):
                    yield [*_place_parts(file, None), *parts]
                yield from _of_lines([Line(d) for d in result.report.diagnostics], file, below)
            elif isinstance(result, Judged) and result.node is not None:
                nodes.append(result)
            elif not (shown.only_problems and _is_ok(result)):
                yield from _of_result(result, shown, alike, below)
        yield from _of_lines(alike.lines(), file, below)
        if nodes:
            from dmlsplit.report.node_table import NodeTable

            table = NodeTable(nodes, shown)
            said = sorted(table.lines(), key=lambda line: _ORDER.index(line.diagnostic.severity))
            notes = [line for line in said if line.diagnostic.severity is Severity.NOTE]
            yield from _of_lines(said[: len(said) - len(notes)], file, below)
            yield table.table(place(file, None))
            for change in table.changes():
                word = ("breaks", "bold red") if change.breaks else ("changes", "bold cyan")
                yield [*_place_parts(file, None), word, (f": {change.said}", "")]
            yield from _of_lines(notes, file, below)
    if has_sessions and shown.runtime_to_ask:
        yield [("hint", "bold cyan"), (f": {_SESSIONS.format(shown.runtime_to_ask)}", "")]
    known = _severities(shown.known)
    yield [(f"{tally.summary()}{f'; in the baseline: {known}' if known else ''}", "bold")]


_SESSIONS: Final = "no session was judged; --onnxruntime {} says whether the model loads and where its nodes run"


def _has_sessions(result: Result) -> bool:
    """True for a result about a file that ONNX Runtime may load: an ONNX model that could be read."""
    file = result.report.file
    return file is not None and file.lower().endswith(".onnx") and not isinstance(result, NotRead)


class _Files:
    """A groupby key: the file of each result, with a number that distinguishes several readings of the same file."""

    def __init__(self) -> None:
        self._first: object = None
        self._number = 0
        self._file: str | None = None

    def __call__(self, result: Result) -> tuple[str | None, int]:
        report = result.report
        place = report.file, report.index, report.judged_by
        if self._first is None or report.file != self._file or place == self._first:
            self._first, self._file = place, report.file
            self._number += 1
        return report.file, self._number


def _is_ok(result: Result) -> bool:
    warned = any(d.severity is Severity.WARNING for d in result.report.diagnostics)
    return isinstance(result, Judged) and result.verdict is Verdict.OK and not warned


def _of_result(result: Result, shown: Shown, alike: Alike, below: Below) -> Iterator[Block]:
    """Yields the blocks of one result: its verdict and errors, and its notes and warnings if `verbose` is set or the
    result is a Note; otherwise these are added to `alike`."""
    file = result.report.file
    alone: list[Line] = []
    for diagnostic in result.report.diagnostics:
        if isinstance(result, Note) or shown.verbose or not is_grouped(diagnostic):
            alone.append(Line(diagnostic))
        else:
            alike.add(diagnostic, _name(result))
    if not isinstance(result, Note):
        yield verdict_parts(result)
    yield from _of_lines(alone, file, below)
    yield from _fix_parts(result)


def _name(answer: Answer) -> str:
    """Returns the operator's name or, if it has none, its line and column or index in the file."""
    return answer.name or ":".join(map(str, answer.position or (answer.report.index,)))


def _of_lines(lines: Iterable[Line], file: str | None, below: Below) -> Iterator[Block]:
    for diagnostic, by in lines:
        by_some = [(f" ({', '.join(by)})", "dim")] if by else []
        yield [*diagnostic_parts(diagnostic, file), *by_some]
        yield from below(diagnostic, file)
