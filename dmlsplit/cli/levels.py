"""dmlsplit levels: tensor support, or which feature levels, releases or runtimes take the operators of a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dmlsplit.checking.columns import LEVELS, RELEASES, RUNTIMES, Column, Columns, Compatibility
from dmlsplit.checking.compatibility import columns_of
from dmlsplit.checking.files import judge_entry
from dmlsplit.checking.front_ends import Given, is_model, without_nodes
from dmlsplit.checking.results import Answer, Judged, Note, NotJudged, NotRead
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import judging_of, model_options, output_options, read_with_nodes
from dmlsplit.cli._tensor_support import print_levels, print_releases, print_runtimes
from dmlsplit.descriptors.diagnostics import SCHEMA, Diagnostic
from dmlsplit.legalize import in_words
from dmlsplit.report import text
from dmlsplit.report.alike import NAMES_SHOWN
from dmlsplit.report.shown import Shown
from dmlsplit.report.table import wrapped
from dmlsplit.system.printable import printable
from dmlsplit.targets.runtime_versions import NEWEST
from dmlsplit.targets.target import Use

if TYPE_CHECKING:
    from dmlsplit.formats.operator_files import Entry


@click.command()
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(allow_dash=True))
@click.option(
    "--releases", "by_release", is_flag=True, help="Show the observed DirectML releases instead of feature levels."
)
@click.option(
    "--runtimes",
    "by_runtime",
    is_flag=True,
    help="Show the versions of ONNX Runtime with its DirectML execution provider.",
)
@output_options("text", "json", json_help="json: one array of answers, or the tables.")
@click.option("--verbose", is_flag=True, help="In text, show each node of a model separately, and every fault.")
@click.option("--only-problems", is_flag=True, help="In text, omit operators that all of them accept as they are.")
@model_options
def levels(
    file: str | None,
    by_release: bool,
    by_runtime: bool,
    format_: str,
    verbose: bool,
    only_problems: bool,
    given: Given,
) -> int:
    """Show the tensor support of Split and Join, or which feature levels accept the operators of FILE.

    --releases shows releases of DirectML instead of feature levels, and --runtimes versions of ONNX Runtime, which may
    also run a node of an ONNX model on the CPU.

    For each level that refuses an operator, the output names the rules and members at fault, and the rewriting that
    the level accepts, if there is one; a matrix of all operators follows. The exit status is 1 if all levels refuse an
    operator as it is.

    \b
    Examples:
      dmlsplit levels
      dmlsplit levels model.json
      dmlsplit levels model.json --releases --format json
      dmlsplit levels model.onnx --dim batch=1
      dmlsplit levels model.onnx --runtimes

    \f
    Prints the answers, or without `file` the tables, and returns the exit status: 2 if an operator could not be read;
    1 if no column (level, release or version) accepts an operator as it is, where an unknown answer and, for a version,
    the CPU count as accepted; else 0. Raises UsageError for --releases and --runtimes together.
    """
    if by_release and by_runtime:
        raise click.UsageError("--releases and --runtimes exclude each other")
    if file is None:
        (print_runtimes if by_runtime else print_releases if by_release else print_levels)(format_ == "json")
        return 0
    asked = RUNTIMES if by_runtime else RELEASES if by_release else LEVELS
    with judging_of(file):
        answers, status = _answers(file, given, asked)
    if format_ == "json":
        _streams.write(json.dumps([_answer_json(found, asked) for found in answers], indent=2) + "\n")
    elif answers or status:
        _print_text(answers, asked, Shown(verbose, only_problems))
    else:
        asks = f"'check --onnxruntime {NEWEST.version}' judges a whole model, also by several versions"
        whole = f"no Split and no Concat; {asks}"
        said = whole if is_model(file) else "there is no operator to ask about"
        _streams.write(f"{printable(file)}: {said}\n")
    return status


class ColumnReasons(NamedTuple):
    """Columns that have the same reasons for refusing an operator, or for not knowing."""

    labels: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


class Answered(NamedTuple):
    """An operator (as judged for the newest column), the columns that accept it, and the reasons of the others.

    `rewritten`: the columns that accept a rewriting of it, with the rewriting; `unknown`: the columns whose answer is
    not known; `on_cpu`: the versions of ONNX Runtime that run it on the CPU. `open_sizes`: for a node whose sizes the
    model leaves open, the answer of each column with its conditions; the other fields have the answer for most sizes
    then.
    """

    answer: Answer
    taken: tuple[str, ...] = ()
    refusals: Sequence[ColumnReasons] = ()
    rewritten: Mapping[str, str] = {}
    unknown: tuple[str, ...] = ()
    open_sizes: Mapping[str, str] = {}
    on_cpu: tuple[str, ...] = ()
    is_asked: bool = False
    """True if the columns could be asked."""
    doubts: Sequence[ColumnReasons] = ()
    """The columns with an unknown answer, and the reasons."""
    of_nodes: int = 0
    """The number of nodes in the model, if this is a node."""

    @property
    def is_graph(self) -> bool:
        return isinstance(self.answer, Judged) and self.answer.graph is not None

    @property
    def outcome(self) -> object:
        """A key that is equal for operators with the same answers by the same rules, regardless of the tensors at
        fault."""
        reasons = [
            (each.labels, tuple([diagnostic.rule for diagnostic in each.diagnostics]))
            for each in (*self.refusals, *self.doubts)
        ]
        said = (*self.rewritten.items(), *self.open_sizes.items())
        unjudged = () if self.is_asked else tuple([each.rule for each in self.answer.report.diagnostics])
        return self.taken, self.unknown, self.on_cpu, tuple(reasons), said, self.is_asked, unjudged

    @property
    def is_unknown(self) -> bool:
        """True for a valid node about which too little is known for a descriptor."""
        return isinstance(self.answer, Judged) and not self.is_asked and self.answer.report.ok


def _answered(read: Entry, asked: Columns) -> Answered | None:
    """Returns the answers of all columns about an entry; None for a note about the whole file."""
    in_sessions = asked is RUNTIMES and read.node is not None and read.node.in_session is not None
    entry = read if in_sessions else without_nodes(read)
    newest = judge_entry(entry, asked.columns[-1].target)
    if isinstance(newest, Note):
        return None
    found = columns_of(read, asked)

    def taking(use: Use) -> tuple[str, ...]:
        return tuple([each.column.label for each in found if each.use is use])

    rewritten = {}
    for each in found:
        if each.said and each.use is Use.REWRITTEN:
            rewritten[each.column.label] = each.said
        elif each.legalization is not None and each.legalization.ok and each.use is Use.REWRITTEN:
            rewritten[each.column.label] = in_words.summary(each.legalization)
    return Answered(
        newest,
        taking(Use.AS_IT_IS),
        list(_refusals(found, entry)),
        rewritten,
        taking(Use.UNKNOWN),
        {each.column.label: each.said for each in found if each.said and not each.report.errors},
        taking(Use.ON_CPU),
        bool(found),
        list(_doubts(found)),
        read.of_nodes,
    )


def _refusals(found: Iterable[Compatibility], entry: Entry) -> Iterator[ColumnReasons]:
    def errors(answer: Compatibility) -> tuple[Diagnostic, ...]:
        return answer.report.located(entry.locate).errors

    for reasons, run in groupby(found, errors):
        if reasons:
            yield ColumnReasons(tuple([answer.column.label for answer in run]), reasons)


def _doubts(found: Iterable[Compatibility]) -> Iterator[ColumnReasons]:
    """Yields the columns whose answer is unknown, grouped by reason."""
    labels: dict[tuple[Diagnostic, ...], list[str]] = {}
    for answer in found:
        column = answer.column
        if answer.use is Use.UNKNOWN and not answer.said:
            # The remark below the matrix is about versions of ONNX Runtime that were not observed.
            reasons = tuple([d for d in answer.report.diagnostics if d.rule != "onnxruntime/version-not-observed"])
            labels.setdefault(reasons, []).append(column.label)
    return (ColumnReasons(tuple(of), reasons) for reasons, of in labels.items())


def _answers(file: str, given: Given, asked: Columns) -> tuple[list[Answered], int]:
    """Returns the answers of all columns about the operators of a file, and the exit status: 2 if an operator cannot be
    read; 1 if an operator is accepted by no column as it is, nor unknown to one, nor run on the CPU by one; else 0."""
    status = 0
    answers = []
    for read in read_with_nodes(file, given):
        if read.error is not None:
            _streams.complain(read.error.in_file(read.file))
            status = 2
        found = _answered(read, asked)
        if found is None:
            continue
        takers = (*found.taken, *found.unknown, *found.on_cpu)
        refused = not takers if found.is_asked else not found.answer.report.ok
        status = max(status, int(refused))
        answers.append(found)
    return answers, status


def _print_text(answers: Sequence[Answered], asked: Columns, shown: Shown) -> None:
    """Prints the answer about each operator, then a matrix of all; equal answers about nodes of a model are printed
    once."""
    kept = [found for found in answers if not isinstance(found.answer, NotRead)]
    if shown.only_problems:
        problems = [found for found in kept if len(found.taken) < len(asked.columns)]
        if len(problems) < len(kept):
            _streams.write(f"{len(kept) - len(problems)} taken by all {asked.noun}s left out\n")
        kept = problems
    groups: dict[object, list[Answered]] = {}
    for i, found in enumerate(kept):
        groups.setdefault(found.outcome if found.of_nodes and not shown.verbose else i, []).append(found)
    for group in groups.values():
        _streams.write(_group_text(group, asked, shown.verbose))
    operators = [group for group in groups.values() if isinstance(group[0].answer, Judged)]
    for chunk in _matrix(operators, asked, _streams.width()):
        _streams.write(chunk)


def _answer_json(answered: Answered, asked: Columns) -> dict[str, Any]:
    item, taken, refusals, rewritten, unknown, _, on_cpu, is_asked, *_ = answered
    unjudged = () if is_asked else item.report.diagnostics
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
    found["unknown"] = asked.labels if answered.is_unknown else unknown
    if asked is RUNTIMES:
        found["on_cpu"] = on_cpu
    found["open_sizes"] = [{asked.key: labels, "answer": said} for said, labels in _alike(answered.open_sizes).items()]
    found["refused"] = [
        {asked.key: refusal.labels, "diagnostics": [diagnostic.to_dict() for diagnostic in refusal.diagnostics]}
        for refusal in refusals
    ]
    found["diagnostics"] = [diagnostic.to_dict() for diagnostic in unjudged]
    return found


def _group_text(group: Sequence[Answered], asked: Columns, verbose: bool) -> str:
    """Returns the text about operators with equal answers; if their reasons differ, those of the first operator are
    shown. `verbose`: every diagnostic is shown, instead of one for each rule."""
    first = group[0].answer
    if len(group) == 1:
        subject = text.plain(text.subject_parts(first))
    else:
        names = ", ".join(printable(found.answer.name or "", 60) for found in group[:NAMES_SHOWN])
        more = ", ..." if len(group) > NAMES_SHOWN else ""
        of = f" of {group[0].of_nodes}"
        subject = f"{text.place(first.report.file, None)}: {len(group)}{of} nodes ({names}{more})"
    head, *rest = _answer_lines(group[0], asked, verbose)
    if len(group) > 1 and any(_answer_lines(found, asked, verbose) != [head, *rest] for found in group[1:]):
        rest = [*_wrapped(f"the reasons of {printable(first.name or '', 60)} (--verbose shows all):", 2), *rest]
    return "\n".join([f"{subject}: {head}", *rest]) + "\n"


def _answer_lines(answered: Answered, asked: Columns, verbose: bool) -> list[str]:
    """Returns the lines about an operator: its answer, then the reasons. `verbose`: every diagnostic is shown, instead
    of one for each rule."""
    if isinstance(answered.answer, NotJudged):
        return ["not judged"]
    lines = [_headline(answered, asked)]
    for what, where in _alike(answered.open_sizes).items():
        lines += _wrapped(f"{asked.spans(where)}: {what}", 2)
    return [*lines, *_details(answered, asked, verbose)]


def _headline(answered: Answered, asked: Columns) -> str:
    by = "right on" if answered.is_graph else "taken by"
    if answered.on_cpu and not answered.taken:
        by = "on DirectML with"
    if answered.taken:
        return f"{by} {asked.spans(answered.taken)}"
    if answered.is_unknown or (answered.unknown and not answered.refusals):
        return "not known"
    if answered.unknown:
        return f"not known to be {by} any {asked.noun}"
    return f"{by} no {asked.noun}"


def _details(answered: Answered, asked: Columns, verbose: bool) -> Iterator[str]:
    """Yields lines about the columns that do not accept the operator unchanged: reasons, rewritings, the CPU.
    `verbose`: every diagnostic is shown, instead of one for each rule."""
    if not answered.is_asked:
        yield from _reasons(answered.answer.report.diagnostics, verbose)
    for refusal in _with_equal_reasons(answered.refusals):
        refused = "wrong or refused on" if answered.is_graph else "refused by"
        yield from _wrapped(f"{refused} {asked.spans(refusal.labels)}:", 2)
        yield from _reasons(refusal.diagnostics, verbose)
    for unsure in answered.doubts:
        yield from _wrapped(f"not known of {asked.spans(unsure.labels)}{':' if unsure.diagnostics else ''}", 2)
        yield from _reasons(unsure.diagnostics, verbose)
    if answered.on_cpu:
        yield from _wrapped(f"on the CPU with {asked.spans(answered.on_cpu)}", 2)
    for summary, takers in _alike(answered.rewritten).items() if not answered.open_sizes else ():
        yield from _wrapped(f"with rewriting taken by {asked.spans(takers)}, as {summary}", 2)


def _with_equal_reasons(refusals: Iterable[ColumnReasons]) -> Iterator[ColumnReasons]:
    """Yields the reasons, each once, with all columns that have it."""
    labels: dict[tuple[Diagnostic, ...], tuple[str, ...]] = {}
    for each in refusals:
        labels[each.diagnostics] = labels.get(each.diagnostics, ()) + each.labels
    return (ColumnReasons(of, reasons) for reasons, of in labels.items())


def _alike(said: Mapping[str, str]) -> dict[str, list[str]]:
    """Maps each distinct text in `said` to the labels that have it."""
    return {answer: [label for label in said if said[label] == answer] for answer in dict.fromkeys(said.values())}


def _reasons(diagnostics: Sequence[Diagnostic], verbose: bool) -> Iterator[str]:
    """Yields a line for each diagnostic if `verbose`, else for each rule: its first diagnostic and the number of
    others."""
    counts = Counter(diagnostic.rule for diagnostic in diagnostics)
    firsts = list({diagnostic.rule: diagnostic for diagnostic in reversed(diagnostics)}.values())[::-1]
    for diagnostic in diagnostics if verbose else firsts:
        more = "" if verbose else f"; and {counts[diagnostic.rule] - 1} more like it"
        # The line above names the node.
        where = replace(diagnostic.location, node="")
        said = text.plain(text.diagnostic_parts(replace(diagnostic, location=where, line=None, column=None), None))
        yield from _wrapped(said + (more if counts[diagnostic.rule] > 1 else ""), 4)


def _wrapped(line: str, indent: int) -> list[str]:
    return wrapped(line, _streams.width(), " " * indent, " " * (indent + 2))


def _matrix(groups: Sequence[Sequence[Answered]], asked: Columns, columns: int) -> Iterator[str]:
    """Yields the text of a table with a row for each column of `asked` (a level, release or version) and a column for
    each group of equal operators, in blocks that are at most `columns` characters wide."""
    width = max(len(column.label) for column in asked.columns) + 2
    per_block = max(1, (columns - width) // 6)
    answers = [group[0] for group in groups]
    places = accumulate((len(group) for group in groups), initial=0)
    heads = [
        (f"#{place}", f"x{len(group)}" if len(group) > 1 else "") for place, group in zip(places, groups, strict=False)
    ]
    for start in range(0, len(answers), per_block):
        block, of_block = answers[start : start + per_block], heads[start : start + per_block]
        yield "\n"
        if any(answered.rewritten for answered in block):
            yield "(yes): with rewriting, as dmlsplit legalize shows\n"
        if any(answered.is_unknown or answered.unknown for answered in block):
            yield "?: too little is known\n"
        yield " " * width + "".join(f"{head:>6}" for head, _ in of_block) + "\n"
        if any(count for _, count in of_block):
            yield " " * width + "".join(f"{count:>6}" for _, count in of_block) + "\n"
        for column in asked.columns:
            label = column.label if column.observed else f"{column.label}*"
            cells = [_cell(column, answered) for answered in block]
            yield f"{label:<{width}}" + "".join(f"{cell:>6}" for cell in cells) + "\n"
    if answers and not all(column.observed for column in asked.columns):
        yield "\n".join([*_wrapped(f"* {asked.not_observed}", 0), ""])


def _cell(column: Column, answered: Answered) -> str:
    if answered.is_unknown or column.label in answered.unknown:
        return "?"
    if column.label in answered.on_cpu:
        return "CPU"
    return "yes" if column.label in answered.taken else "(yes)" if column.label in answered.rewritten else "no"
