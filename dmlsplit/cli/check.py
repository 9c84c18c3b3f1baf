"""dmlsplit check: the verdict on every operator of the files given."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from dmlsplit.checking.files import judge_files
from dmlsplit.checking.front_ends import Given, given_for
from dmlsplit.checking.question import FAILING, Question
from dmlsplit.checking.results import Note, NotRead, Result, Verdict
from dmlsplit.cli import _configuration, _streams
from dmlsplit.cli._arguments import (
    Integer,
    Real,
    complete_rule,
    expanded,
    model_options,
    rule_filter,
    target_options,
)
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.formats.operator_files import folder_pattern
from dmlsplit.report import text
from dmlsplit.report.formats import FORMATS
from dmlsplit.report.shown import Shown
from dmlsplit.report.text import Tally
from dmlsplit.system.atomic_files import refuse_input
from dmlsplit.system.errors import InputError
from dmlsplit.targets.runtime_versions import NEWEST, Runtime, find_runtime
from dmlsplit.targets.target import Target

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from rich.console import Console

    from dmlsplit.checking.columns import Columns
    from dmlsplit.checking.requirements import Requirements
    from dmlsplit.report.baseline import Baseline


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@target_options(several=True)
@model_options
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="; ".join(f"{name}: {format.help}" for name, format in FORMATS.items() if format.help) + ".",
)
@click.option("-o", "--output", "out", metavar="FILE", type=_streams.Named(), help=_streams.OUTPUT_HELP)
@click.option(
    "--select",
    metavar="RULE",
    multiple=True,
    shell_complete=complete_rule,
    help="Report only this rule, or this scope: tensor/.",
)
@click.option(
    "--ignore", metavar="RULE", multiple=True, shell_complete=complete_rule, help="Do not report this rule or scope."
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice(FAILING),
    default=["error"],
    show_default=True,
    help="Which diagnostics give exit status 1: errors; also warnings; or also operators whose correctness is not "
    "known. May be given several times.",
)
@click.option(
    "--config",
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_configuration.take,
    help="Read defaults from FILE, instead of the nearest dmlsplit.toml or [tool.dmlsplit] of a pyproject.toml.",
)
@click.option(
    "--require-dml",
    metavar="PART",
    type=Real(0, 1),
    help="With --onnxruntime: exit with 1 if a smaller fraction of a model's nodes that run is on DirectML: 0.95.",
)
@click.option(
    "--require-capture",
    is_flag=True,
    help="With --onnxruntime: exit with 1 unless every model is certain to be captured as one graph.",
)
@click.option("--baseline", metavar="FILE", help="Report only what is not in FILE, which --write-baseline wrote.")
@click.option(
    "--write-baseline",
    metavar="FILE",
    type=_streams.Named(),
    help="Write the errors and warnings found to FILE; they do not affect this exit status.",
)
@click.option(
    "--ask",
    is_flag=True,
    help="Also ask the real library, a build of the target, about each operator and graph, and report where it "
    "disagrees. 'dmlsplit library add' fetches builds.",
)
@click.option("--verbose", is_flag=True, help="In text, show each note and warning separately, and full names.")
@click.option("--only-problems", is_flag=True, help="In text, omit operators that are ok and have no warnings.")
@click.option(
    "--jobs", metavar="N", type=Integer(least=1), default=1, help="Read N files at once, in separate processes."
)
def check(files: tuple[str, ...], targets: tuple[Target, ...], given: Given, **options: Any) -> int:
    """Judge the Split and Join operators of FILE...

    FILE is .json (one operator, or a DxDispatch model), .jsonl (one operator per line), .onnx, .xml (OpenVINO IR), -
    (standard input), or a pattern such as models/**/*.onnx. A node of an ONNX or OpenVINO model is judged by its
    framework's specification, and by whether it runs on DirectML, possibly after a rewriting. Diagnostics that
    --select and --ignore exclude do not affect the exit status; input that cannot be read always does.

    With several releases, each operator gets one answer per release, which shows what an upgrade breaks.

    \b
    Examples:
      dmlsplit check model.json operators.jsonl --feature-level 3_0 --format jsonl
      dmlsplit check model.json --directml 1.8.0 --directml 1.15.4
      dmlsplit check model.onnx --shape images:1,3,640,640 --dim batch=1
      dmlsplit check models/*.onnx --jobs 4 --format sarif -o split.sarif
      dmlsplit check model.onnx --format html -o report.html
      dmlsplit check models/*.json --write-baseline known.json
      dmlsplit check models/*.json --baseline known.json
      dmlsplit check operators.jsonl --directml 1.15.4 --ask

    \f
    Writes the report and returns the exit status: 2 if something could not be read; 0 if --write-baseline wrote a
    baseline; 1 for errors, models that miss --require-dml or --require-capture, and what --fail-on names; else 0.
    Raises UsageError for options that do not fit, InputError for a baseline that does not exist.
    """
    if (options["require_dml"] is not None or options["require_capture"]) and not any(t.runtime for t in targets):
        raise click.UsageError("--require-dml and --require-capture need --onnxruntime")
    names = expanded(files)
    if all(map(os.path.isdir, names)):
        raise click.UsageError(f"{names[0]} is a folder; name the files in it: {folder_pattern(names[0])}")
    return _check(names, targets, given, CheckOptions(**options))


class CheckOptions(NamedTuple):
    """The options that only `check` has."""

    format_: str
    out: str | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    fail_on: tuple[str, ...]
    verbose: bool
    only_problems: bool
    baseline: str | None
    write_baseline: str | None
    jobs: int
    ask: bool
    require_dml: float | None
    require_capture: bool

    def refuse_to_replace(self, inputs: Sequence[str]) -> None:
        """Raises UsageError if an output file is also an input, the baseline or another output; --write-baseline may
        replace the baseline."""
        for written in (self.out, self.write_baseline):
            _streams.refuse_to_replace(written, inputs)
        # A baseline may be updated: --baseline and --write-baseline then name the same file.
        _streams.refuse_to_replace(self.out, [self.baseline], "the baseline")
        _streams.refuse_to_replace(self.out, [self.write_baseline], "what --write-baseline writes")

    def known(self) -> Baseline | None:
        """Returns the baseline that --baseline names; None without the option. Raises InputError if the file does not
        exist, unless this run writes it."""
        if self.baseline is None:
            return None
        from dmlsplit.report.baseline import Baseline

        try:
            return Baseline.read(self.baseline)
        except FileNotFoundError:
            if self.write_baseline is None or os.path.abspath(self.write_baseline) != os.path.abspath(self.baseline):
                raise InputError("does not exist; check --write-baseline writes it", file=self.baseline) from None
            return Baseline(self.baseline)

    def begun(self) -> Baseline | None:
        """Returns an empty baseline for the file that --write-baseline names; None without the option."""
        if self.write_baseline is None:
            return None
        from dmlsplit.report.baseline import Baseline

        return Baseline(self.write_baseline)

    def columns(self, targets: Sequence[Target]) -> tuple[Columns, ...]:
        """Returns the columns of an HTML page; () for other formats."""
        if self.format_ != "html":
            return ()
        from dmlsplit.report.html.build import page_columns

        return page_columns(targets)

    def builds(self, targets: Sequence[Target]) -> Mapping[Target, str]:
        """Maps each target to the name of the build that --ask asks for it; {} without the option. Raises UsageError if
        a target has no build here."""
        if not self.ask:
            return {}
        from dmlsplit.checking.asking import builds_for
        from dmlsplit.system.errors import DmlSplitError

        try:
            return builds_for(targets)
        except ValueError as error:
            if isinstance(error, DmlSplitError):
                raise
            raise click.UsageError(str(error)) from None

    @property
    def is_elsewhere(self) -> bool:
        """True if no text goes to standard output."""
        return self.format_ != "text" or self.out is not None

    def console(self) -> Console | None:
        """Returns the terminal on which the report is shown; None if the report is not text or does not go to a
        terminal."""
        if self.is_elsewhere or not _streams.person_reads(sys.stdout):
            return None
        from dmlsplit.report import terminal

        return terminal.console(sys.stdout)

    def show(
        self,
        results: Iterable[Result],
        targets: tuple[Target, ...],
        console: Console | None,
        known: Mapping[Severity, int],
    ) -> None:
        """Writes the report about the results to the console or, if that is None, to the output in the chosen format.
        `known` counts what a baseline hides."""
        runtimes = tuple([target for target in targets if target.runtime is not None])
        to_ask = "" if runtimes else _runtime_to_ask(targets[0]).version
        shown = Shown(self.verbose, self.only_problems, runtimes, self.fail_on, to_ask, known)
        if console is not None:
            from dmlsplit.report import terminal

            terminal.show(results, console, len(targets), shown)
            return
        with _streams.output(self.out, colons_meant=self.format_ in ("github", "html")) as write:
            for chunk in FORMATS[self.format_].render(results, len(targets), shown):
                write(chunk)
            if self.write_baseline is not None:
                refuse_input(self.write_baseline)  # before the report gets its name

    def status(self, tally: Tally) -> int:
        """Returns the exit status: 2 for an unreadable file, else 0 if a baseline is written, else 1 for errors, of
        which a missed requirement is one, and what --fail-on names, else 0."""
        if tally.verdicts[Verdict.NOT_READ]:
            return 2
        if self.write_baseline is not None:
            return 0
        counts = {"error": 0, "warning": tally.severities[Severity.WARNING], "unknown": tally.unknown}
        return int(tally.severities[Severity.ERROR] + sum(counts[what] for what in self.fail_on) > 0)

    def requirements(self) -> Requirements | None:
        """Returns what --require-dml, --require-capture and --fail-on unknown demand of models; None without them."""
        is_known = "unknown" in self.fail_on
        if self.require_dml is None and not self.require_capture and not is_known:
            return None
        from dmlsplit.checking.requirements import Requirements

        return Requirements(self.require_dml, self.require_capture, is_known)


def _runtime_to_ask(target: Target) -> Runtime:
    """Returns the version of ONNX Runtime that stands for a release or level, or the one that it is `like`; the newest
    one if that was not observed."""
    found = NEWEST if target.graph_runtime is None else find_runtime(target.graph_runtime.version)
    return find_runtime(found.like or found) if found.observed else NEWEST


_WITH_LEVELS: Final = ("text", "html")
"""The formats with a column for the minimum level."""


def _check(names: Sequence[str], targets: tuple[Target, ...], given: Given, options: CheckOptions) -> int:
    given = given_for(names, given)
    keep = rule_filter(options.select, options.ignore)
    question = Question(
        targets,
        given,
        keep,
        name_fixes=options.format_ == "text",
        columns=options.columns(targets),
        builds=options.builds(targets),
        levels=options.format_ in _WITH_LEVELS,
    )
    of_file = _configuration.questions(question)
    options.refuse_to_replace(names)
    known = options.known()
    found = options.begun()
    tally = Tally()
    console = options.console()
    with _executor(min(options.jobs, len(names))) as executor, _progress(len(names), console) as step:
        # A report that goes elsewhere must not hide that a file could not be read.
        results = _in_order(judge_files(names, of_file, executor), step, repeat_errors=console is None)
        if found is not None:
            results = found.watch(results)
        if known is not None:
            results = known.without_known(results)
        if (requirements := options.requirements()) is not None:
            results = _repeated(requirements.watch(results), repeat=options.is_elsewhere)
        options.show(tally.watch(results), targets, console, {} if known is None else known.hidden)
    if found is not None:
        with _streams.output(options.write_baseline) as write:
            write(found.document())
    return options.status(tally)


def _repeated(results: Iterable[Result], *, repeat: bool) -> Iterator[Result]:
    """Yields the results unchanged; `repeat`: missed requirements are also printed on standard error."""
    for result in results:
        if repeat and isinstance(result, Note):
            for missed in (each for each in result.report.diagnostics if each.rule.startswith("require/")):
                _streams.complain(f"{text.place(result.report.file, None)}: {missed.message}")
        yield result


def _executor(jobs: int) -> AbstractContextManager[Executor | None]:
    """Returns a context manager that yields a process pool for several jobs; None for one job, which runs in this
    process."""
    if jobs < 2:
        return nullcontext()
    from dmlsplit.system.processes import Processes

    return Processes(jobs)


def _in_order(
    files: Iterable[Iterable[Result]], step: Callable[[], object], *, repeat_errors: bool
) -> Iterator[Result]:
    """Yields the results in the order of the files, and calls `step` after each file. `repeat_errors`: the first
    failure of each file is also printed on standard error."""
    for results in files:
        failed = False
        for result in results:
            if repeat_errors and not failed and isinstance(result, NotRead):
                failed = True
                place = text.place(result.report.file, result.position)
                _streams.complain(f"{place}: {result.report.diagnostics[0].message}")
            yield result
        step()


@contextmanager
def _progress(files: int, console: Console | None) -> Iterator[Callable[[], object]]:
    """Context manager that shows a progress bar below the report for several files, and yields a function that advances
    it by one file."""
    if files < 2 or (console is None and not _streams.person_reads(sys.stderr)):
        yield lambda: None
        return
    from rich.progress import Progress

    from dmlsplit.report import terminal

    with Progress(console=console or terminal.console(sys.stderr), transient=True) as progress:
        task = progress.add_task("files", total=files)
        yield lambda: progress.advance(task)
