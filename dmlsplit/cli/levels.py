"""dmlsplit levels: documented tensor support, or the feature levels that take the operators of a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._judging import judged, read_entries
from dmlsplit.diagnostics import SCHEMA, Diagnostic
from dmlsplit.enums import FeatureLevel, OperatorType
from dmlsplit.feature_levels import JOIN_PAGE, SPLIT_PAGE, TensorSupport, table_levels, tensor_support
from dmlsplit.report import text
from dmlsplit.report.table import Table
from dmlsplit.report.text import Judged
from dmlsplit.validation import level_judge

if TYPE_CHECKING:
    from dmlsplit.formats.operators import Entry

_PAGES: Final = {OperatorType.SPLIT: SPLIT_PAGE, OperatorType.JOIN: JOIN_PAGE}


@click.command(short_help="Show tensor support by feature level.")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def levels(file: str | None, as_json: bool) -> int:
    """Show the documented tensor support of Split and Join, or which feature levels take the operators of FILE.

    For each level that refuses an operator, the rules and members that refuse it are named. The exit status is 1 where
    an operator is taken by no level.

    \b
    Examples:
      dmlsplit levels
      dmlsplit levels model.json
    """
    if file is None:
        _print_support(as_json)
        return 0
    return _print_answers(file, as_json)


class Support(NamedTuple):
    """A documented table, with the feature levels that it holds for: its own and those without one of their own."""

    levels: tuple[FeatureLevel, ...]
    tensors: tuple[TensorSupport, ...]


def _support(operator: OperatorType) -> list[Support]:
    own = table_levels(operator)
    ends = [*own[1:], None]
    return [
        Support(
            tuple(level for level in FeatureLevel if start <= level and (end is None or level < end)),
            tensor_support(operator, start),
        )
        for start, end in zip(own, ends, strict=True)
    ]


def _print_support(as_json: bool) -> None:
    if as_json:
        operators = [
            {"operator": operator.c_name, "source": page, "tables": [_support_json(s) for s in _support(operator)]}
            for operator, page in _PAGES.items()
        ]
        _streams.write(json.dumps({"schema": SCHEMA, "operators": operators}, indent=2) + "\n")
        return
    tables = [_support_table(operator) for operator in _PAGES]
    if _streams.person_reads(sys.stdout):
        from dmlsplit.report import terminal

        for table in tables:
            terminal.show_table(table, terminal.console(sys.stdout))
    else:
        _streams.write("\n".join(table.plain() for table in tables))


def _support_json(support: Support) -> dict[str, Any]:
    return {
        "feature_levels": [str(level) for level in support.levels],
        "tensors": [
            {
                "tensor": tensor.tensor,
                "kind": tensor.kind,
                "dimension_counts": tensor.dimension_counts,
                "data_types": [data_type.name for data_type in sorted(tensor.data_types)],
                "source": tensor.source,
            }
            for tensor in support.tensors
        ],
    }


def _support_table(operator: OperatorType) -> Table:
    rows = [
        (
            _span(support.levels),
            tensor.tensor,
            tensor.kind,
            "-".join(str(count) for count in sorted({min(tensor.dimension_counts), max(tensor.dimension_counts)})),
            " ".join(data_type.name for data_type in sorted(tensor.data_types)),
        )
        for support in _support(operator)
        for tensor in support.tensors
    ]
    header = ("Level", "Tensor", "Kind", "Dimensions", "Data types")
    return Table(f"Tensor support of {operator.c_name}", header, rows)


class Refusal(NamedTuple):
    """Consecutive feature levels that refuse an operator for the same reasons."""

    levels: tuple[FeatureLevel, ...]
    diagnostics: tuple[Diagnostic, ...]


class Answer(NamedTuple):
    """An operator (as the highest level judges it), the levels that take it, and why the others do not."""

    item: Judged
    taken: tuple[FeatureLevel, ...]
    refusals: list[Refusal]


def _answer(entry: Entry) -> Answer:
    items = [judged(entry, level_judge(level)) for level in FeatureLevel]
    if entry.descriptor is None:
        return Answer(items[-1], (), [])
    taken = tuple([level for level, item in zip(FeatureLevel, items, strict=True) if item.report.ok])
    return Answer(items[-1], taken, list(_refusals(items)))


def _print_answers(file: str, as_json: bool) -> int:
    status = 0
    answers = []
    for entry in read_entries(file):
        if entry.error is not None:
            _streams.complain(entry.error)
            status = 2
        answer = _answer(entry)
        if entry.descriptor is not None and not answer.taken:
            status = max(status, 1)
        if as_json:
            answers.append(_answer_json(answer))
        elif entry.error is None:
            _streams.write(_answer_text(answer))
    if as_json:
        _streams.write(json.dumps(answers, indent=2) + "\n")
    return status


def _refusals(items: Iterable[Judged]) -> Iterator[Refusal]:
    run: list[FeatureLevel] = []
    reasons: tuple[Diagnostic, ...] = ()
    for level, item in zip(FeatureLevel, items, strict=True):
        errors = item.report.errors
        if run and errors != reasons:
            yield Refusal(tuple(run), reasons)
            run = []
        if errors:
            run.append(level)
        reasons = errors
    if run:
        yield Refusal(tuple(run), reasons)


def _answer_json(answer: Answer) -> dict[str, Any]:
    item, taken, refusals = answer
    unread = item.report.diagnostics if item.report.operator is None else ()
    return {
        "schema": SCHEMA,
        "file": item.report.file,
        "index": item.report.index,
        "name": item.name,
        "operator": item.report.operator,
        "minimum_feature_level": str(taken[0]) if taken else None,
        "feature_levels": [str(level) for level in taken],
        "refused": [
            {
                "feature_levels": [str(level) for level in refusal.levels],
                "diagnostics": [diagnostic.to_dict() for diagnostic in refusal.diagnostics],
            }
            for refusal in refusals
        ],
        "diagnostics": [diagnostic.to_dict() for diagnostic in unread],
    }


def _answer_text(answer: Answer) -> str:
    item, taken, refusals = answer
    subject = text.plain(text.subject_parts(item))
    if item.report.operator is None:
        return f"{subject}: not judged\n"
    lines = [f"{subject}: {f'taken by {_spans(taken)}' if taken else 'taken by no feature level'}"]
    for refusal in refusals:
        lines.append(f"  refused by {_span(refusal.levels)}:")
        lines += [f"    {text.plain(text.diagnostic_parts(d, item.report.file))}" for d in refusal.diagnostics]
    return "\n".join(lines) + "\n"


def _span(run: tuple[FeatureLevel, ...]) -> str:
    """3_0-4_0 for consecutive levels."""
    return str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"


def _spans(levels: Iterable[FeatureLevel]) -> str:
    """The runs of consecutive levels."""
    order = list(FeatureLevel)
    runs: list[tuple[FeatureLevel, ...]] = []
    for level in levels:
        if runs and order.index(level) == order.index(runs[-1][-1]) + 1:
            runs[-1] = (*runs[-1], level)
        else:
            runs.append((level,))
    return ", ".join(map(_span, runs))
