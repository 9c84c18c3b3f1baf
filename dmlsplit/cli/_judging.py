"""From the entries of a file to judged operators, and from rule ids on the command line to rules."""

from __future__ import annotations

import difflib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from dmlsplit.diagnostics import Report
from dmlsplit.enums import FeatureLevel
from dmlsplit.errors import InputError
from dmlsplit.legalize import legalized
from dmlsplit.releases import NEWEST, releases
from dmlsplit.report import rewriting
from dmlsplit.report.text import Judged
from dmlsplit.rules import REDIRECTS, RULES, Judge
from dmlsplit.validation import find_judge
from dmlsplit.validation import judge as judge_descriptor

if TYPE_CHECKING:
    from dmlsplit.formats.operators import Entry

Command: TypeAlias = Callable[..., int]
Keep: TypeAlias = Callable[[str], bool]
"""Whether diagnostics of a rule id are wanted."""


def judge_options(command: Command) -> Command:
    """Adds --feature-level and --directml; the command gets `judges`, a tuple of at least one."""

    @click.option(
        "--feature-level",
        metavar="L",
        shell_complete=_complete_level,
        help="Judge by this DML_FEATURE_LEVEL: 3_0, 3.0, DML_FEATURE_LEVEL_3_0.",
    )
    @click.option(
        "--directml",
        metavar="R",
        multiple=True,
        shell_complete=_complete_release,
        help=f"Judge by this release: {NEWEST.directml} (the default), {NEWEST.name}. May be given several times.",
    )
    @functools.wraps(command)
    def with_judges(*args: Any, feature_level: str | None, directml: tuple[str, ...], **options: Any) -> int:
        return command(*args, judges=_judges(feature_level, directml), **options)

    return with_judges


def _judges(feature_level: str | None, directml: tuple[str, ...]) -> tuple[Judge, ...]:
    try:
        if feature_level is not None and directml:
            raise ValueError("--feature-level and --directml exclude each other")
        return tuple(dict.fromkeys(find_judge(feature_level, release) for release in directml or (None,)))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def read_entries(file: str) -> Iterator[Entry]:
    """The operators of a file, or of standard input for "-"."""
    from dmlsplit.formats.operators import read_operators

    if file == "-" and sys.stdin is None:
        raise InputError("standard input is closed")
    return read_operators(file)


def judged(entry: Entry, judge: Judge, keep: Keep = lambda rule: True) -> Judged:
    """One entry's report with its places; what cannot be read is reported, too, whatever `keep` says."""
    if entry.error is not None:
        report = _malformed(entry.error, judge)
    elif entry.descriptor is None:
        report = Report(entry.notes, judge.name, None, None)
    else:
        report = judge_descriptor(entry.descriptor, judge)
        if report.diagnostics:
            report = report.located(entry.locate)
        if entry.notes:
            report = replace(report, diagnostics=entry.notes + report.diagnostics)
    if entry.error is None and report.diagnostics:
        kept = tuple([d for d in report.diagnostics if keep(d.rule)])
        hidden = tuple([d for d in report.diagnostics if not keep(d.rule)])
        report = replace(report, diagnostics=kept, hidden=hidden)
    return Judged(replace(report, file=entry.file, index=entry.index), entry.name, entry.locate(""))


def with_fix(item: Judged, entry: Entry, judge: Judge, file: str) -> Judged:
    """The same with the rewriting that a refused operator has, if there is one; `file` as the command line names it."""
    if entry.descriptor is None or item.report.ok:
        return item
    found = legalized(entry.descriptor, judge)
    return item._replace(fix=rewriting.fix(found, file, judge)) if found.ok else item


def _malformed(error: InputError, judge: Judge) -> Report:
    diagnostic = RULES["input/malformed"].diagnostic("", error.message, line=error.line, column=error.column)
    return Report((diagnostic,), judge.name, None, None)


def rule_filter(select: Iterable[str], ignore: Iterable[str]) -> Keep:
    """What --select and --ignore say: ids (old ones too) or scopes such as `tensor/`; UsageError for an unknown one."""
    selected = _rule_ids(select, "--select") or frozenset(RULES)
    ignored = _rule_ids(ignore, "--ignore")
    return (selected - ignored).__contains__


def _rule_ids(names: Iterable[str], option: str) -> frozenset[str]:
    ids: set[str] = set()
    for name in names:
        found = [id for id in RULES if id.startswith(name)] if name.endswith("/") else []
        if not found:
            found = [known_rule_id(name, option)]
        ids.update(found)
    return frozenset(ids)


def complete_rule(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Rule ids for the shell."""
    return [id for id in RULES if id.startswith(incomplete)]


def _complete_level(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [str(level) for level in FeatureLevel if str(level).startswith(incomplete)]


def _complete_release(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    names = [name for release in releases() for name in (release.directml, release.name) if name]
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def known_rule_id(name: str, option: str = "") -> str:
    """The current id of a rule; UsageError with the nearest id where there is none of that name."""
    id = REDIRECTS.get(name, name)
    if id in RULES:
        return id
    # A slug without its scope may be in several scopes.
    near = [id for id in RULES if id.split("/")[1] == name] or difflib.get_close_matches(name, RULES, 1)
    suggestion = f"; did you mean {' or '.join(near)}?" if near else "; 'dmlsplit rule' lists them"
    raise click.UsageError(f"{option + ': ' if option else ''}there is no rule '{name}'{suggestion}")
