"""The formats that `dmlsplit check` writes: a name, and the function that makes text of results."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.checking.results import Result
from dmlsplit.report.shown import Shown

Render: TypeAlias = Callable[[Iterable[Result], int, Shown], Iterator[str]]
"""Text piece by piece. The answers of several targets, whose number it gets, to one operator follow one another."""


class Format(NamedTuple):
    """A Render by the module of dmlsplit.report that has it, imported when it is asked for, and what --help says."""

    module: str
    function: str
    help: str = ""

    @property
    def render(self) -> Render:
        render: Render = getattr(importlib.import_module(f"dmlsplit.report.{self.module}"), self.function)
        return render


FORMATS: Final[Mapping[str, Format]] = {
    "text": Format("text", "chunks"),
    "json": Format("json", "document", "one array of answers"),
    "jsonl": Format("json", "lines", "one answer a line"),
    "sarif": Format("sarif", "document", "SARIF 2.1.0, for code scanning"),
    "github": Format("github", "chunks", "annotations of a GitHub workflow"),
    "junit": Format("junit", "document", "JUnit's XML"),
    "html": Format("html", "chunks", "a page"),
}
