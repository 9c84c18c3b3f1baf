"""The page's content, as plain data for its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

from dmlsplit.checking.columns import Columns
from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.rules import Rule
from dmlsplit.targets.target import Use


class TargetVerdict(NamedTuple):
    """A verdict in one word, and the target that gave it."""

    word: str
    by: str
    code: str

    @property
    def kind(self) -> str:
        """The CSS class of the verdict's badge."""
        return {"ok": "good", "not ok": "bad", "unknown": "warn", "not read": "bad"}.get(self.word, "plain")


class Look(NamedTuple):
    """How a use is shown: a word, a sign, and the classes of its cell and of its badge."""

    word: str
    sign: str
    cell: str
    badge: str


LOOKS: Final = {
    Use.AS_IT_IS: Look("runs", "✓", "y", "good"),
    Use.REWRITTEN: Look("runs rewritten", "↻", "w", "again"),
    Use.REFUSED: Look("refused", "✕", "n", "bad"),
    Use.UNKNOWN: Look("not known", "?", "u", "plain"),
    Use.ON_CPU: Look("runs on the CPU", "CPU", "u", "plain"),
    Use.NOT_ASKED: Look("wrong", "✕", "n", "bad"),
}


class Cell(NamedTuple):
    """A level or release in the matrix; `reason` is the index of a reason that cells may share."""

    label: str
    use: Use
    reason: int


class Reason(NamedTuple):
    """The reason for the answers of consecutive levels or releases."""

    labels: str
    use: Use
    lines: Sequence[str]


class TensorRow(NamedTuple):
    """The members of a tensor as text; `changed` are the columns that differ from the original."""

    path: str
    cells: tuple[str, ...]
    changed: frozenset[int] = frozenset()


class Tensors(NamedTuple):
    """The tensors of an operator, inputs first."""

    rows: Sequence[TensorRow]
    hidden: int
    axis: str


class Rewritten(NamedTuple):
    """The operators that run instead of one."""

    target: str
    steps: Sequence[str]
    operators: Sequence[tuple[str, Tensors, str | None, str | None]]
    """Name, tensors, picture and JSON of each operator that is shown."""
    hidden: int


@dataclass(slots=True)
class Detail:
    """An operator, or several equal ones, without their positions."""

    id: int
    kind: str
    title: str
    diagnostics: Sequence[tuple[Diagnostic, str]] = ()
    """Diagnostics, each with its position in the first of the equal operators."""
    diagnostics_hidden: int = 0
    tensors: Tensors | None = None
    picture: str | None = None
    cells: list[Cell] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    rewritten: Rewritten | None = None
    occurrences: list[Row] = field(default_factory=list)

    def add(self, asked: Columns, found: Sequence[tuple[str, Use, tuple[str, ...]]]) -> None:
        """Adds columns to the matrix, given as label, use and lines; consecutive columns with equal use and lines share
        a reason."""
        for (use, lines), run in groupby(found, key=lambda answer: answer[1:]):
            labels = [label for label, *_ in run]
            self.cells += [Cell(label, use, len(self.reasons)) for label in labels]
            self.reasons.append(Reason(asked.named(labels), use, lines))


@dataclass(slots=True)
class Row:
    """An operator in the table of its file."""

    index: int
    name: str
    place: str
    op: str
    whole: str
    axis: str
    lengths: str
    verdicts: Sequence[TargetVerdict]
    level: str
    level_rank: int
    errors: int
    warnings: int
    detail: Detail


@dataclass(slots=True)
class File:
    """A file with its operators, in order."""

    name: str
    rows: list[Row] = field(default_factory=list)
    of_nodes: int = 0
    """The number of nodes in the model; 0 for a file of operators."""
    notes: list[str] = field(default_factory=list)
    """Notes about the file, not about an operator."""

    @property
    def details(self) -> list[Detail]:
        """The distinct operators of the file, in order."""
        return list({row.detail.id: row.detail for row in self.rows}.values())

    @property
    def matrix(self) -> list[Detail]:
        return [detail for detail in self.details if detail.cells]


@dataclass(slots=True)
class Page:
    """The data of the template."""

    asked: Sequence[Columns] = ()
    """The columns of the matrix: levels, releases, versions of ONNX Runtime."""
    files: list[File] = field(default_factory=list)
    details: list[Detail] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    judges: list[str] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    severities: Counter[Severity] = field(default_factory=Counter)
    common: Sequence[tuple[str, str, str]] = ()
    """For levels, releases and versions of ONNX Runtime: which accept every operator unchanged, and which after
    rewriting; operators that are left out do not count."""
    left_out: int = 0
    """Operators that nothing accepts even after rewriting, that were not read, or about which too little is known."""

    @property
    def count(self) -> int:
        return sum(len(file.rows) for file in self.files)
