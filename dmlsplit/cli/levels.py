"""dmlsplit levels: tensor support, or which feature levels, releases or runtimes take the operators of a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dmlsplit.checking.compatibility import LEVELS, RELEASES, RUNTIMES, Column, Columns, Compatibility, compatibility
from dmlsplit.checking.files import judge_entry
from dmlsplit.checking.front_ends import Given, without_nodes
from dmlsplit.checking.open_sizes import answer_by
from dmlsplit.checking.results import Answer, Judged, Note, NotJudged, NotRead
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import judging_of, model_options, read_with_nodes
from dmlsplit.cli._tensor_support import print_levels, print_releases, print_runtimes
from dmlsplit.descriptors.diagnostics import SCHEMA, Diagnostic
from dmlsplit.legalize import in_words
from dmlsplit.report import text
from dmlsplit.report.table import wrapped
from dmlsplit.targets.target import Use

if TYPE_CHECKING:
    from dmlsplit.formats.joins import JoinNode
    from dmlsplit.formats.nodes import SplitNode
    from dmlsplit.formats.operator_files import Entry


@click.command()
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(allow_dash=True))
@click.option(
    "--releases", "by_release", is_flag=True, help="The observed DirectML releases instead of feature levels."
)
@click.option(
    "--runtimes", "by_runtime", is_flag=True, help="The versions of ONNX Runtime with its DirectML execution provider."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@model_options
def levels(file: str | None, by_release: bool, by_runtime: bool, as_json: bool, given: Given) -> int:
    """Show the tensor support of Split and Join, or which feature levels take the operators of FILE.

    Instead of feature levels, releases of DirectML or versions of ONNX Runtime are asked, which of an ONNX model may
    also run a node on the CPU.

    For each level that refuses an operator, the rules and members that refuse it are named, and the rewriting that it
    takes, if there is one; a matrix of all operators follows. The exit status is 1 where an operator is taken by no
    level as it is.

    \b
    Examples:
      dmlsplit levels
      dmlsplit levels model.json
      dmlsplit levels model.json --releases --json
      dmlsplit levels model.onnx --dim batch=1
      dmlsplit levels model.onnx --runtimes
    """
    if by_release and by_runtime:
        raise click.UsageError("--releases and --runtimes exclude each other")
    if file is None:
        (print_runtimes if by_runtime else print_releases if by_release else print_levels)(as_json)
        return 0
    with judging_of(file):
        return _print_answers(file, given, RUNTIMES if by_runtime else RELEASES if by_release else LEVELS, as_json)


class RefusedColumns(NamedTuple):
    """Consecutive columns that refuse an operator for the same reasons."""

    labels: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


class Answered(NamedTuple):
    """An operator (as the newest column has it), the columns that take it, and why the others do not.

    `rewritten`: the columns that take a rewriting of it, and what it is; `unknown`: those of which it is not known;
    `on_cpu`: the versions of ONNX Runtime that run it on the CPU. `open_sizes`: of a node whose sizes the model leaves
    open, what the columns make of it, and on what conditions; the others are what they do as a rule.
    """

    answer: Answer
    taken: tuple[str, ...] = ()
    refusals: Sequence[RefusedColumns] = ()
    rewritten: Mapping[str, str] = {}
    unknown: tuple[str, ...] = ()
    open_sizes: Mapping[str, str] = {}
    on_cpu: tuple[str, ...] = ()

    @property
    def is_graph(self) -> bool:
        return isinstance(self.answer, Judged) and self.answer.graph is not None

    @property
    def is_unknown(self) -> bool:
        """Whether too little is known of a node for a descriptor, and nothing is wrong with it."""
        if not isinstance(self.answer, Judged) or self.is_graph or self.open_sizes:
            return False
        return self.answer.descriptor is None and self.answer.report.ok


def _answered(entry: Entry, node: SplitNode | JoinNode | None, asked: Columns) -> Answered | None:
    """None for what only says something of the file."""
    newest = judge_entry(entry, asked.columns[-1].target)
    if isinstance(newest, Note):
        return None
    desc = entry.descriptor or entry.graph
    if desc is None:
        return Answered(newest) if node is None else _open(newest, node, asked)
    found = compatibility(desc, asked)
    return Answered(
        newest,
        tuple([c.column.label for c in found if c.use is Use.AS_IT_IS]),
        list(_refusals(found, entry)),
        {c.column.label: in_words.summary(c.legalization) for c in found if c.use is Use.REWRITTEN and c.legalization},
        tuple([c.column.label for c in found if c.use is Use.UNKNOWN]),
    )


def _in_sessions(read: Entry, asked: Columns) -> Answered:
    """The answers of versions of ONNX Runtime about a node of an ONNX model."""
    answers = {column.label: judge_entry(read, column.target) for column in asked.columns}
    labels: dict[str, list[str]] = {}
    for label, answer in answers.items():
        if answer.report.ok and isinstance(answer, Judged) and answer.node is not None:
            labels.setdefault(answer.node.runtime, []).append(label)
    refusals = [
        RefusedColumns(tuple(label for label, _ in run), reasons)
        for reasons, run in groupby(answers.items(), lambda item: item[1].report.errors)
        if reasons
    ]
    newest = next(reversed(answers.values()))
    assert not isinstance(newest, Note)
    taken, unknown, on_cpu = (tuple(labels.get(outcome, ())) for outcome in ("DML", "unknown", "CPU"))
    return Answered(newest, taken, refusals, unknown=unknown, on_cpu=on_cpu)


def _open(newest: Answer, node: SplitNode | JoinNode, asked: Columns) -> Answered:
    """The answers of the columns about a node for all sizes that its model leaves open, if no more is open."""
    answers = {column.label: answer_by(node, column.target) for column in asked.columns}
    found = {label: answer for label, answer in answers.items() if answer is not None and answer.cases}
    return Answered(
        newest,
        tuple([label for label, answer in found.items() if answer.main is Use.AS_IT_IS]),
        rewritten={label: answer.head for label, answer in found.items() if answer.main is Use.REWRITTEN},
        unknown=tuple([label for label, answer in found.items() if answer.main is Use.UNKNOWN]),
        open_sizes={label: str(answer) for label, answer in found.items()},
    )


def _refusals(found: Iterable[Compatibility], entry: Entry) -> Iterator[RefusedColumns]:
    def errors(answer: Compatibility) -> tuple[Diagnostic, ...]:
        return answer.report.located(entry.locate).errors

    for reasons, run in groupby(found, errors):
        if reasons:
            yield RefusedColumns(tuple([answer.column.label for answer in run]), reasons)


def _print_answers(file: str, given: Given, asked: Columns, as_json: bool) -> int:
    status = 0
    answers = []
    for read in read_with_nodes(file, given):
        entry = without_nodes(read)
        if entry.error is not None:
            _streams.complain(entry.error)
            status = 2
        in_sessions = asked is RUNTIMES and read.node is not None and read.node.in_session is not None
        found = _in_sessions(read, asked) if in_sessions else _answered(entry, read.node, asked)
        if found is None:
            continue
        judged_by_all = entry.descriptor is not None or entry.graph is not None or bool(found.open_sizes) or in_sessions
        takers = (*found.taken, *found.unknown, *found.on_cpu)
        refused = not takers if judged_by_all else not found.answer.report.ok
        status = max(status, int(refused))
        answers.append(found)
    if as_json:
        _streams.write(json.dumps([_answer_json(found, asked) for found in answers], indent=2) + "\n")
        return status
    shown = [found for found in answers if not isinstance(found.answer, NotRead)]
    for found in shown:
        _streams.write(_answer_text(found, asked))
    operators = [found for found in shown if isinstance(found.answer, Judged)]
    for chunk in _matrix(operators, asked, _streams.width()):
        _streams.write(chunk)
    return status


def _answer_json(answered: Answered, asked: Columns) -> dict[str, Any]:
    item, taken, refusals, rewritten, unknown, _, on_cpu = answered
    by_all = isinstance(item, Judged) and (item.descriptor is not None or item.graph is not None)
    unjudged = () if by_all or answered.open_sizes or asked is RUNTIMES else item.report.diagnostics
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
    found["unknown"] = unknown
    if asked is RUNTIMES:
        found["on_cpu"] = on_cpu
    found["open_sizes"] = [{asked.key: labels, "answer": said} for said, labels in _alike(answered.open_sizes).items()]
    found["refused"] = [
        {asked.key: refusal.labels, "diagnostics": [diagnostic.to_dict() for diagnostic in refusal.diagnostics]}
        for refusal in refusals
    ]
    found["diagnostics"] = [diagnostic.to_dict() for diagnostic in unjudged]
    return found


def _answer_text(answered: Answered, asked: Columns) -> str:
    subject = text.plain(text.subject_parts(answered.answer))
    if isinstance(answered.answer, NotJudged):
        return f"{subject}: not judged\n"
    lines = [f"{subject}: {_headline(answered, asked)}"]
    if answered.open_sizes:
        for what, where in _alike(answered.open_sizes).items():
            lines += _wrapped(f"{asked.spans(where)}: {what}", 2)
    else:
        lines += _details(answered, asked)
    return "\n".join(lines) + "\n"


def _headline(answered: Answered, asked: Columns) -> str:
    by = "right on" if answered.is_graph else "taken by"
    if answered.on_cpu and not answered.taken:
        by = "on DirectML with"
    if answered.taken:
        return f"{by} {asked.spans(answered.taken)}"
    if answered.is_unknown or (answered.unknown and not answered.refusals):
        return "not known"
    return f"{by} no {asked.noun}"


def _details(answered: Answered, asked: Columns) -> Iterator[str]:
    """The reasons of columns that do not take the operator, and what else columns do with it."""
    _, taken, refusals, rewritten, unknown, _, on_cpu = answered
    if not taken and not refusals:
        for diagnostic in answered.answer.report.diagnostics:
            yield from _reason(diagnostic)
    for refusal in refusals:
        refused = "wrong or refused on" if answered.is_graph else "refused by"
        yield from _wrapped(f"{refused} {asked.spans(refusal.labels)}:", 2)
        for diagnostic in refusal.diagnostics:
            yield from _reason(diagnostic)
    if unknown and (taken or refusals):
        yield from _wrapped(f"not known of {asked.spans(unknown)}", 2)
    if on_cpu:
        yield from _wrapped(f"on the CPU with {asked.spans(on_cpu)}", 2)
    for summary, takers in _alike(rewritten).items():
        yield from _wrapped(f"with rewriting taken by {asked.spans(takers)}, as {summary}", 2)


def _alike(said: Mapping[str, str]) -> dict[str, list[str]]:
    """The labels of which the same is said."""
    return {answer: [label for label in said if said[label] == answer] for answer in dict.fromkeys(said.values())}


def _reason(diagnostic: Diagnostic) -> list[str]:
    return _wrapped(text.plain(text.diagnostic_parts(replace(diagnostic, line=None, column=None), None)), 4)


def _wrapped(line: str, indent: int) -> list[str]:
    return wrapped(line, _streams.width(), " " * indent, " " * (indent + 2))


def _matrix(answers: Sequence[Answered], asked: Columns, columns: int) -> Iterator[str]:
    """Levels or releases down, operators across; as many blocks as the columns of the terminal make necessary."""
    width = max(len(column.label) for column in asked.columns) + 2
    per_block = max(1, (columns - width) // 6)
    for start in range(0, len(answers), per_block):
        block = answers[start : start + per_block]
        yield "\n"
        if any(answered.rewritten for answered in block):
            yield "(yes): with rewriting, as dmlsplit legalize shows\n"
        if any(answered.is_unknown or answered.unknown for answered in block):
            yield "?: too little is known\n"
        yield " " * width + "".join(f"{f'#{start + i}':>6}" for i in range(len(block))) + "\n"
        for column in asked.columns:
            label = column.label if column.observed else f"{column.label}*"
            cells = [_cell(column, answered) for answered in block]
            yield f"{label:<{width}}" + "".join(f"{cell:>6}" for cell in cells) + "\n"
    if answers and not all(column.observed for column in asked.columns):
        yield f"* {asked.not_observed}\n"


def _cell(column: Column, answered: Answered) -> str:
    if answered.is_unknown or column.label in answered.unknown:
        return "?"
    if column.label in answered.on_cpu:
        return "CPU"
    return "yes" if column.label in answered.taken else "(yes)" if column.label in answered.rewritten else "no"
