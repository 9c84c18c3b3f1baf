"""A baseline: the diagnostics that a project already knows, so that only new ones count.

Diagnostics are compared by file, operator name, judge, rule, path, expected and actual value, and counted. Line,
column, index and wording do not matter, so an operator that moves within its file stays known.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from dmlsplit.checking.results import Judged, Note, Result
from dmlsplit.descriptors.diagnostics import Diagnostic, Severity, Value
from dmlsplit.formats.json import FieldReader
from dmlsplit.formats.jsontext import JsonText, KeyPath, shown

SCHEMA: Final = 1


class Known(NamedTuple):
    """The fields of a diagnostic that a baseline compares. `file` is relative to the baseline's folder, with
    slashes."""

    file: str
    name: str | None
    judged_by: str
    rule: str
    path: str
    expected: Value
    actual: Value


class Baseline:
    """Counts known diagnostics. `path` is the baseline's file, which need not exist yet."""

    def __init__(self, path: str) -> None:
        self._folder = os.path.dirname(os.path.abspath(path))
        self.counts: Counter[Known] = Counter()
        self.hidden: Counter[Severity] = Counter()
        """What `without_known` has hidden so far."""

    @classmethod
    def read(cls, path: str) -> Baseline:
        """Returns the baseline in a file. Raises InputError if the file is not a baseline, OSError if it cannot be
        read."""
        baseline = cls(path)
        baseline.counts = _Reader(JsonText.of_file(path)).counts()
        return baseline

    def document(self) -> str:
        """Returns the text of the baseline's file; its entries are sorted, so that it changes only if the findings
        do."""
        entries = [{**known._asdict(), "count": count} for known, count in self.counts.items()]
        entries.sort(key=lambda entry: json.dumps(list(entry.values())))
        lines = ",\n".join("  " + json.dumps(entry) for entry in entries)
        return f'{{"schema": {SCHEMA}, "diagnostics": [\n{lines}\n]}}\n' if lines else _EMPTY

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        """Yields the results unchanged and, as each passes, adds its errors and warnings to the baseline, except those
        about unreadable input."""
        for result in results:
            self.counts.update(self._known(result, d) for d in result.report.diagnostics if _lasts(d))
            yield result

    def without_known(self, results: Iterable[Result]) -> Iterator[Result]:
        """Yields the results in order, with known diagnostics moved to the hidden ones; each is hidden as often as the
        baseline counts it. The baseline is not changed."""
        left = self.counts.copy()
        for result in results:
            report = result.report
            kept, hidden = [], list(report.hidden)
            for diagnostic in report.diagnostics:
                known = self._known(result, diagnostic)
                if left[known] > 0:
                    left[known] -= 1
                    hidden.append(diagnostic)
                    self.hidden[diagnostic.severity] += 1
                else:
                    kept.append(diagnostic)
            if len(kept) < len(report.diagnostics):
                result = result._replace(report=replace(report, diagnostics=tuple(kept), hidden=tuple(hidden)))
                if isinstance(result, Judged) and not result.report.errors:
                    result = result._replace(fix=None)
            yield result

    def _known(self, result: Result, d: Diagnostic) -> Known:
        name = None if isinstance(result, Note) else result.name
        file = self._relative(result.report.file)
        return Known(file, name, result.report.judged_by, d.rule, d.path, d.expected, d.actual)

    def _relative(self, file: str | None) -> str:
        if file is None or file.startswith("<"):  # standard input
            return file or ""
        try:
            return os.path.relpath(file, self._folder).replace(os.sep, "/")
        except ValueError:  # another drive
            return os.path.abspath(file).replace(os.sep, "/")


_EMPTY: Final = f'{{"schema": {SCHEMA}, "diagnostics": []}}\n'


def _lasts(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity is not Severity.NOTE and diagnostic.rule != "input/malformed"


class _Reader(FieldReader):
    def counts(self) -> Counter[Known]:
        members = self.members_of(self.text.value, ())
        schema = self.field(members, (), "schema", self.uint32)
        if schema != SCHEMA:
            raise self.text.error(("schema",), f"a baseline of schema {schema}; this dmlsplit reads schema {SCHEMA}")
        items = self.field(members, (), "diagnostics", self.items_of)
        counts: Counter[Known] = Counter()
        for i, item in enumerate(items):
            path: KeyPath = ("diagnostics", i)
            entry = self.members_of(item, path)
            known = Known(
                self.field(entry, path, "file", self.string),
                self.field(entry, path, "name", self.string_or_null),
                self.field(entry, path, "judged_by", self.string),
                self.field(entry, path, "rule", self.string),
                self.field(entry, path, "path", self.string),
                self.field(entry, path, "expected", self.value),
                self.field(entry, path, "actual", self.value),
            )
            counts[known] += self.field(entry, path, "count", self.uint32)
        return counts

    def string_or_null(self, value: object, path: KeyPath) -> str | None:
        return None if value is None else self.string(value, path)

    def value(self, value: object, path: KeyPath) -> Value:
        if value is not None and type(value) is not int and not isinstance(value, str):
            raise self.text.error(path, f"{path[-1]}: expected a string, an integer or null, not {shown(value)}")
        return value
