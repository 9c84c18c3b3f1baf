"""dmlsplit check: the verdict on every operator of the files given."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._judging import Keep, judge_options, judged, read_entries, rule_filter, with_fix
from dmlsplit.diagnostics import Report, Severity
from dmlsplit.errors import InputError
from dmlsplit.report import json, text
from dmlsplit.report.baseline import Baseline
from dmlsplit.report.text import Judged, Tally
from dmlsplit.rules import Judge


@click.command(short_help="Judge the operators of files.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@judge_options
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "jsonl"]),
    default="text",
    show_default=True,
    help="json: one array of answers; jsonl: one answer a line.",
)
@click.option("-o", "--output", "out", metavar="FILE", help="Write to FILE, which is replaced whole or not at all.")
@click.option("--select", metavar="RULE", multiple=True, help="Report only this rule, or this scope: tensor/.")
@click.option("--ignore", metavar="RULE", multiple=True, help="Do not report this rule or scope.")
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "error"]),
    default="error",
    show_default=True,
    help="The lowest severity for which the exit status is 1.",
)
@click.option("--baseline", metavar="FILE", help="Report only what is not in FILE, which --write-baseline made.")
@click.option(
    "--write-baseline", metavar="FILE", help="Write the errors and warnings found to FILE; they do not count this time."
)
def check(
    files: tuple[str, ...],
    format_: str,
    out: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    baseline: str | None,
    write_baseline: str | None,
    judges: tuple[Judge, ...],
) -> int:
    """Judge the Split and Join operators of FILE...

    FILE is .json (one operator, or a DxDispatch model), .jsonl (one operator a line) or - (standard input). What is
    left out by --select and --ignore does not count for the exit status either; what cannot be read always does.

    Several releases at once tell what an upgrade breaks: each operator gets an answer by each of them.

    \b
    Examples:
      dmlsplit check model.json operators.jsonl --feature-level 3_0 --format jsonl
      dmlsplit check model.json --directml 1.8.0 --directml 1.15.4
      dmlsplit check models/*.json --write-baseline known.json
      dmlsplit check models/*.json --baseline known.json
    """
    keep = rule_filter(select, ignore)
    for written in (out, write_baseline):
        _streams.refuse_to_replace(written, files)
    known = None if baseline is None else Baseline.read(baseline)
    found = None if write_baseline is None else Baseline(write_baseline)
    tally = Tally()
    # A report that goes elsewhere must not hide that a file was not read.
    for_person = format_ == "text" and out is None and _streams.person_reads(sys.stdout)
    items = _judged(files, judges, keep, repeat_errors=not for_person, name_fixes=format_ == "text")
    if found is not None:
        items = found.watch(items)
    if known is not None:
        items = known.without_known(items)
    items = tally.watch(items)
    if for_person:
        from dmlsplit.report import terminal

        terminal.show(items, terminal.console(sys.stdout), len(judges))
    else:
        with _streams.output(out) as write:
            for chunk in _chunks(items, format_, len(judges)):
                write(chunk)
    if found is not None:
        with _streams.output(write_baseline) as write:
            write(found.document())
    if tally.verdicts["not read"]:
        return 2
    if found is not None:
        return 0
    severities = [Severity.ERROR, Severity.WARNING] if fail_on == "warning" else [Severity.ERROR]
    return int(any(tally.severities[severity] for severity in severities))


def _judged(
    files: Iterable[str], judges: Iterable[Judge], keep: Keep, *, repeat_errors: bool, name_fixes: bool
) -> Iterator[Judged]:
    """`repeat_errors`: the first failure of each file is said on standard error as well. `name_fixes`: a refusal that
    a rewriting gets around says so."""
    for file in files:
        failure: InputError | None = None
        for entry in read_entries(file):
            if entry.error is not None and failure is None:
                failure = entry.error
                if repeat_errors:
                    _streams.complain(failure)
            for judge in judges:
                item = judged(entry, judge, keep)
                yield with_fix(item, entry, judge, file) if name_fixes else item


def _chunks(items: Iterable[Judged], format_: str, judges: int) -> Iterator[str]:
    if format_ == "text":
        return text.chunks(items, judges)
    reports: Iterator[Report] = (item.report for item in items)
    return json.document(reports) if format_ == "json" else json.lines(reports)
