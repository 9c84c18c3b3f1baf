"""dmlsplit conformance: DirectML's recorded behaviour as a suite with which any implementation can be tested."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import Integer, complete_release, complete_runtime

NAMES: Final = ("verdicts", "executions", "graphs", "models")


@click.group(no_args_is_help=False)
def conformance() -> None:
    """Test an implementation of DirectML against the recorded behaviour of DirectML builds.

    The implementation (a driver, an emulator, a back end) is a command that reads questions as lines of JSON and writes
    answers in the same way. The cases are verdicts of CreateOperator, executed Splits and Joins, graphs, and sessions
    of ONNX Runtime. docs/conformance.md describes questions, answers and files.

    \b
    Examples:
      dmlsplit conformance list
      dmlsplit conformance export suite
      dmlsplit conformance run --sample 10 -- dmlsplit conformance answer
    """


def _suite_option(command: Callable[..., int]) -> Callable[..., int]:
    said = "A folder that export wrote, instead of this installation's own files."
    return click.option("--suite", "folder", metavar="DIR", type=click.Path(), help=said)(command)


@conformance.command("list")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="json: the table.")
def list_(format_: str) -> int:
    """Show each file with its number of cases and its SHA-256.

    \f
    Prints the table and returns the exit status, 0.
    """
    from dmlsplit.conformance import suite

    table = suite.contents({name: suite.counted(name) for name in suite.FILES})
    if format_ == "json":
        _streams.write(json.dumps(table, indent=2) + "\n")
    else:
        _show(table)
    return 0


def _show(table: dict[str, Any]) -> None:
    from dmlsplit.report.table import Table

    rows = [(f["name"], str(f["cases"]), f["sha256"], f["about"]) for f in table["files"]]
    title = f"{table['suite']}, version {table['version']}"
    _streams.show_tables([Table(title, ("FILE", "CASES", "SHA-256", "ABOUT"), rows)], plain_width=None)


@conformance.command()
@click.argument("folder", metavar="DIR", type=click.Path())
def export(folder: str) -> int:
    """Write the files and their table of contents to a folder, which is created.

    \f
    Prints the table and returns the exit status, 0. Raises OSError if the folder or a file cannot be written.
    """
    from dmlsplit.conformance import suite

    _show(suite.export(folder))
    return 0


@conformance.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="COMMAND [ARGUMENT]...", nargs=-1, required=True, type=click.UNPROCESSED)
@_suite_option
@click.option(
    "--only", type=click.Choice(NAMES), multiple=True, help="Only the cases of this file; may be given several times."
)
@click.option("--sample", metavar="N", type=Integer(1), default=1, help="Ask every N-th case.")
@click.option(
    "--directml", metavar="R", shell_complete=complete_release, help="The DirectML release that the command implements."
)
@click.option(
    "--onnxruntime",
    metavar="V",
    shell_complete=complete_runtime,
    help="The version of ONNX Runtime that the command implements.",
)
@click.option(
    "--correct", is_flag=True, help="Expect right results of graphs, even if the release computes them wrong."
)
@click.option(
    "--timeout", "seconds", metavar="S", type=Integer(1), default=60, help="Seconds to wait for an answer: 60."
)
@click.option("--format", "format_", type=click.Choice(["text", "json", "junit", "html"]), default="text")
@click.option("-o", "--output", "out", metavar="FILE", type=_streams.Named(), help=_streams.OUTPUT_HELP)
def run(
    command: tuple[str, ...],
    folder: str | None,
    only: tuple[str, ...],
    sample: int,
    directml: str | None,
    onnxruntime: str | None,
    correct: bool,
    seconds: int,
    format_: str,
    out: str | None,
) -> int:
    """Ask a command all questions, one at a time, and judge its answers.

    If the command does not answer in time, or ends, the case fails, and the command is started again. The exit status
    is 1 if a case fails. Without --directml and --onnxruntime, the answers are compared with those of the newest
    versions.

    \b
    Examples:
      dmlsplit conformance run ./my_driver_test
      dmlsplit conformance run --only executions --format junit -o results.xml -- python emulator.py --quiet

    \f
    Writes the results and returns the exit status: 2 if no file has a case for the versions asked, 1 if a case fails,
    else 0. Raises UsageError for an unknown release or version.
    """
    from dmlsplit.conformance.judging import Outcome
    from dmlsplit.conformance.running import run as running
    from dmlsplit.conformance.suite import Suite
    from dmlsplit.conformance.summary import Summary
    from dmlsplit.report.conformance import WRITERS

    targets = _targets(directml, onnxruntime)
    names = only or NAMES
    asked = {_by(name) for name in names}
    judged_by = {by: version for by, version in targets.items() if by in asked}
    summary = Summary(shlex.join(command), judged_by)
    results = running(Suite(folder), names, command, targets, seconds=seconds, sample=sample, correct=correct)
    with _streams.output(out, colons_meant=format_ == "html") as write:
        for piece in WRITERS[format_](results, summary):
            write(piece)
    if not summary.files:
        _streams.complain(f"no case was answered by {' and '.join(f'{by} {v}' for by, v in judged_by.items())}")
        return 2
    return int(summary.total(Outcome.FAILED) > 0)


def _by(name: str) -> str:
    from dmlsplit.conformance.suite import FILES

    return FILES[name].by


def _targets(directml: str | None, onnxruntime: str | None) -> dict[str, str]:
    """Maps "directml" and "onnxruntime" to the versions that answers are judged as, by default the newest. Raises
    UsageError for an unknown one."""
    from dmlsplit.targets.release_names import find_release
    from dmlsplit.targets.releases import NEWEST
    from dmlsplit.targets.runtime_versions import NEWEST as NEWEST_RUNTIME
    from dmlsplit.targets.runtime_versions import find_runtime

    try:
        return {
            "directml": find_release(directml or NEWEST).directml,
            "onnxruntime": find_runtime(onnxruntime or NEWEST_RUNTIME).version,
        }
    except ValueError as unknown:
        raise click.UsageError(str(unknown)) from None


@conformance.command()
@click.option("--library", is_flag=True, help="Answer with the real libraries on this machine; see library.")
def answer(library: bool) -> int:
    """Answer questions from standard input, as dmlsplit judges, executes and predicts.

    \b
    Examples:
      dmlsplit conformance run -- dmlsplit conformance answer
      dmlsplit conformance run --only verdicts --sample 20 -- dmlsplit conformance answer --library

    \f
    Prints the answers and returns the exit status, 0. Raises UsageError for a line that is not a question.
    """
    from dmlsplit.conformance import answering

    with ExitStack() as stack:
        answers = stack.enter_context(answering.Real()).answers if library else answering.Emulated().answers
        for line in sys.stdin.buffer:
            try:
                question = json.loads(line)
                reply = answering.answer(question, answers)
            except (ValueError, TypeError, AttributeError, RecursionError):
                raise click.UsageError("a line of standard input is not a question") from None
            _streams.write(json.dumps(reply) + "\n", colons_meant=True)
            _streams.flush()
    return 0
