"""dmlsplit levels: tensor support, or which feature levels or releases take the operators of a file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import judged, model_options, read_entries
from dmlsplit.cli._tensor_support import print_levels, print_releases
from dmlsplit.diagnostics import SCHEMA, Diagnostic
from dmlsplit.formats.models import Given
from dmlsplit.legalize import legalized
from dmlsplit.report import rewriting, text
from dmlsplit.report.compatibility import LEVELS, RELEASES, Column, Columns, spans
from dmlsplit.report.text import Judged

if TYPE_CHECKING:
    from dmlsplit.formats.operators import Entry


@click.command(short_help="Show what feature levels or releases take.")
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(allow_dash=True))
@click.option(
    "--releases", "by_release", is_flag=True, help="The observed DirectML releases instead of feature levels."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@model_options
def levels(file: str | None, by_release: bool, as_json: bool, given: Given) -> int:
    """Show the tensor support of Split and Join, or which feature levels (or releases) take the operators of FILE.

    For each level that refuses an operator, the rules and members that refuse it are named, and the rewriting that it
    takes, if there is one; a matrix of all operators follows. The exit status is 1 where an operator is taken by no
    level as it is.

    \b
    Examples:
      dmlsplit levels
      dmlsplit levels model.json
      dmlsplit levels model.json --releases --json
      dmlsplit levels model.onnx --dim batch=1
    """
    if file is None:
        (print_releases if by_release else print_levels)(as_json)
        return 0
    return _print_answers(file, given, RELEASES if by_release else LEVELS, as_json)


class Refusal(NamedTuple):
    """Consecutive columns that refuse an operator for the same reasons."""

    labels: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


class Answer(NamedTuple):
    """An operator (as the newest column judges it), the columns that take it, and why the others do not.

    `rewritten`: the columns that take a rewriting of it, and what it is.
    """

    item: Judged
    taken: tuple[str, ...]
    refusals: list[Refusal]
    rewritten: dict[str, str]


def _answer(entry: Entry, asked: Columns) -> Answer:
    items = [judged(entry, column.target) for column in asked.columns]
    if entry.descriptor is None:
        return Answer(items[-1], (), [], {})
    taken = [column.label for column, item in zip(asked.columns, items, strict=True) if item.report.ok]
    tried = {c.label: legalized(entry.descriptor, c.target) for c in asked.columns if c.label not in taken}
    rewritten = {label: rewriting.summary(found) for label, found in tried.items() if found.ok}
    return Answer(items[-1], tuple(taken), list(_refusals(asked, items)), rewritten)


def _refusals(asked: Columns, items: Iterable[Judged]) -> Iterator[Refusal]:
    run: list[str] = []
    reasons: tuple[Diagnostic, ...] = ()
    for column, item in zip(asked.columns, items, strict=True):
        errors = item.report.errors
        if run and errors != reasons:
            yield Refusal(tuple(run), reasons)
            run = []
        if errors:
            run.append(column.label)
        reasons = errors
    if run:
        yield Refusal(tuple(run), reasons)


def _print_answers(file: str, given: Given, asked: Columns, as_json: bool) -> int:
    status = 0
    answers = []
    for entry in read_entries(file, given):
        if entry.error is not None:
            _streams.complain(entry.error)
            status = 2
        answer = _answer(entry, asked)
        refused = not answer.taken if entry.descriptor is not None else not answer.item.report.ok
        status = max(status, int(refused))
        answers.append(answer)
    if as_json:
        _streams.write(json.dumps([_answer_json(answer, asked) for answer in answers], indent=2) + "\n")
        return status
    shown = [answer for answer in answers if text.verdict(answer.item.report) != "not read"]
    for answer in shown:
        _streams.write(_answer_text(answer, asked))
    for chunk in _matrix([answer for answer in shown if answer.item.report.operator], asked, _streams.width()):
        _streams.write(chunk)
    return status


def _answer_json(answer: Answer, asked: Columns) -> dict[str, Any]:
    item, taken, refusals, rewritten = answer
    unjudged = item.report.diagnostics if item.descriptor is None else ()
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "file": item.report.file,
        "index": item.report.index,
        "name": item.name,
        "operator": item.report.operator,
    }
    if asked is LEVELS:
        found["minimum_feature_level"] = taken[0] if taken else None
        found["documented_only"] = [column.label for column in asked.columns if not column.observed]
    found[asked.key] = taken
    found["with_rewriting"] = list(rewritten)
    found["refused"] = [
        {asked.key: refusal.labels, "diagnostics": [diagnostic.to_dict() for diagnostic in refusal.diagnostics]}
        for refusal in refusals
    ]
    found["diagnostics"] = [diagnostic.to_dict() for diagnostic in unjudged]
    return found


def _answer_text(answer: Answer, asked: Columns) -> str:
    item, taken, refusals, rewritten = answer
    subject = text.plain(text.subject_parts(item))
    if item.report.operator is None:
        return f"{subject}: not judged\n"
    labels = [column.label for column in asked.columns]
    said = (
        f"taken by {spans(taken, labels)}"
        if taken
        else "not known"
        if _unknown(answer)
        else f"taken by no {asked.noun}"
    )
    lines = [f"{subject}: {said}"]
    if not taken and not refusals:
        lines += [line for diagnostic in item.report.diagnostics for line in _reason(diagnostic)]
    for refusal in refusals:
        lines += _wrapped(f"refused by {spans(refusal.labels, labels)}:", 2)
        for diagnostic in refusal.diagnostics:
            lines += _reason(diagnostic)
    for summary in dict.fromkeys(rewritten.values()):
        takers = spans([label for label in rewritten if rewritten[label] == summary], labels)
        lines += _wrapped(f"with rewriting taken by {takers}, as {summary}", 2)
    return "\n".join(lines) + "\n"


def _reason(diagnostic: Diagnostic) -> list[str]:
    return _wrapped(text.plain(text.diagnostic_parts(replace(diagnostic, line=None, column=None), None)), 4)


def _wrapped(line: str, indent: int) -> list[str]:
    start, rest = " " * indent, " " * (indent + 2)
    return textwrap.wrap(
        line,
        _streams.width(),
        initial_indent=start,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _matrix(answers: Sequence[Answer], asked: Columns, columns: int) -> Iterator[str]:
    """Levels or releases down, operators across; as many blocks as the columns of the terminal make necessary."""
    width = max(len(column.label) for column in asked.columns) + 2
    per_block = max(1, (columns - width) // 6)
    for start in range(0, len(answers), per_block):
        block = answers[start : start + per_block]
        yield "\n"
        if any(answer.rewritten for answer in block):
            yield "(yes): with rewriting, as dmlsplit legalize shows\n"
        if any(map(_unknown, block)):
            yield "?: too little is known\n"
        yield " " * width + "".join(f"{f'#{start + i}':>6}" for i in range(len(block))) + "\n"
        for column in asked.columns:
            label = column.label if column.observed else f"{column.label}*"
            cells = [_cell(column, answer) for answer in block]
            yield f"{label:<{width}}" + "".join(f"{cell:>6}" for cell in cells) + "\n"
    if answers and not all(column.observed for column in asked.columns):
        yield "* no build of this level was observed: it rests on documentation alone\n"


def _unknown(answer: Answer) -> bool:
    """Whether too little is known of a node for a descriptor, and nothing is wrong with it."""
    return answer.item.descriptor is None and answer.item.report.ok


def _cell(column: Column, answer: Answer) -> str:
    if _unknown(answer):
        return "?"
    return "yes" if column.label in answer.taken else "(yes)" if column.label in answer.rewritten else "no"
