"""The output formats of `dmlsplit check`: a name, and the function that renders results."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.checking.results import Result
from dmlsplit.report.shown import Shown

Render: TypeAlias = Callable[[Iterable[Result], int, Shown], Iterator[str]]
"""Renders results piece by piece. Takes the number of targets, whose answers about one operator must be consecutive."""


class Format(NamedTuple):
    """A Render function, imported from its module of dmlsplit.report on first use, and its line in --help."""

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
