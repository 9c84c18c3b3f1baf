"""Groups the notes and warnings of one rule, and the errors that another node causes, into one line: their number, the
first operators affected, and the message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.descriptors.location import Location
from dmlsplit.system.printable import printable

_ELSEWHERE: Final = "onnxruntime/session-fails-elsewhere"
NAMES_SHOWN: Final = 3
_NAME: Final = 60


class Line(NamedTuple):
    """A diagnostic to show. `by` are the targets it comes from, empty for all of them; its place in the file is kept
    only if the rule has no other diagnostic."""

    diagnostic: Diagnostic
    by: tuple[str, ...] = ()


class _Alike:
    """The diagnostics of one rule. Only the first few operators' names are kept."""

    def __init__(self, first: Diagnostic) -> None:
        self.first = first
        self.message: str | None = first.message
        """The message, if all of them share it, else None."""
        self.count = 0
        self.names: list[str] = []
        self.named = 0
        self.last: str | None = None
        self.by: dict[str, None] = {}


class Alike:
    """Collects the diagnostics about the operators of a file that share lines; `noun` names an operator in the text."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._of_rule: dict[str, _Alike] = {}

    def add(self, diagnostic: Diagnostic, name: str, by: tuple[str, ...] = ()) -> None:
        """Adds a diagnostic about the operator `name`; `by` are the targets it comes from, empty for all. Diagnostics
        about one operator must come consecutively."""
        found = self._of_rule.setdefault(diagnostic.rule, _Alike(diagnostic))
        found.count += 1
        found.by.update(dict.fromkeys(by))
        if diagnostic.message != found.message:
            found.message = None
        if name != found.last and name not in found.names:
            found.named += 1
            if len(found.names) < NAMES_SHOWN:
                found.names.append(name)
        found.last = name

    def lines(self) -> Iterator[Line]:
        """Yields one line for each rule: its only diagnostic, or one that stands for all of them."""
        for found in self._of_rule.values():
            yield Line(found.first if found.count == 1 else self._merged(found), tuple(found.by))

    def _merged(self, found: _Alike) -> Diagnostic:
        names = ", ".join(printable(name, _NAME) for name in found.names) + (
            ", ..." if found.named > NAMES_SHOWN else ""
        )
        where = f"{found.named} {self._noun}s ({names})" if found.named > 1 else names
        if found.count > found.named:
            where = f"{found.count} times at {where}"
        said = found.message
        if said is None:
            path = f"{found.first.path}: " if found.first.path and found.named > 1 else ""
            said = f"{path}{found.first.message} (--verbose shows all)"
        return replace(found.first, location=Location(), message=f"{where}: {said}", line=None, column=None)


def is_grouped(diagnostic: Diagnostic) -> bool:
    """True for a diagnostic that shares a line with others of its rule: any but an error about its own operator."""
    return diagnostic.severity is not Severity.ERROR or diagnostic.rule == _ELSEWHERE
