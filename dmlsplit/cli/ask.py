"""dmlsplit ask: the real library's own answer to any operator, graph or model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import complete_release, completing, expanded
from dmlsplit.formats.operator_files import Entry, folder_pattern, read_operators
from dmlsplit.report import asked as report
from dmlsplit.system.errors import DmlSplitError, InputError

if TYPE_CHECKING:
    from dmlsplit.library.asking import LibraryAnswer, Question
    from dmlsplit.library.catalogue import Build

BATCH = 500
"""The number of operators for one process of a build; their answers are written before the next process starts."""


def _onnxruntimes() -> list[str]:
    from dmlsplit.library.catalogue import onnxruntime_builds

    return [build.version for build in onnxruntime_builds()]


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option(
    "--directml",
    metavar="R",
    multiple=True,
    shell_complete=complete_release,
    help="Ask this DirectML release; may be given several times. The default is the newest one on this machine.",
)
@click.option(
    "--onnxruntime",
    metavar="V",
    multiple=True,
    shell_complete=completing(_onnxruntimes),
    help="Ask this version of ONNX Runtime about a model; may be given several times.",
)
@click.option("--compile", "compile_", is_flag=True, help="Also compile the operators and record a dispatch.")
@click.option("--explain", is_flag=True, help="Ask the debug layer why an operator is refused (needs wine).")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "jsonl"]),
    default="text",
    show_default=True,
    help="json: one array of answers; jsonl: one answer a line.",
)
@click.option("-o", "--output", "out", metavar="FILE", type=_streams.Named(), help=_streams.OUTPUT_HELP)
def ask(
    files: tuple[str, ...],
    directml: tuple[str, ...],
    onnxruntime: tuple[str, ...],
    compile_: bool,
    explain: bool,
    format_: str,
    out: str | None,
) -> int:
    """Ask the real library about FILE...: operators, graphs and models.

    FILE is .json (one operator of any type, a graph, or a DxDispatch model), .jsonl (one operator per line), -
    (standard input), or an ONNX model, about which a version of ONNX Runtime is asked. DirectML runs on the CPU,
    without a GPU: builds for Linux run directly, builds for Windows under wine. A crash of the library is an answer,
    too. 'dmlsplit library' shows which builds are on this machine, and fetches others.

    \b
    Examples:
      dmlsplit ask operator.json
      dmlsplit ask operators.jsonl --directml 1.15.4 --directml 1.8.0 --explain
      dmlsplit ask graph.json --compile --format json
      dmlsplit ask model.onnx --onnxruntime 1.24.4

    Exit status: 0 everything was accepted; 1 something was refused, or crashed; 2 wrong usage, unreadable
    input, or no library.

    \f
    Prints the answers and returns the exit status: 2 if a question could not be read or a model could not be asked
    about (the rest is asked nevertheless), 1 if something was refused or crashed, else 0. Raises UsageError for
    options and files that do not fit, DmlSplitError if a build is not here.
    """
    names = expanded(files)
    _streams.refuse_to_replace(out, names)
    for name in names:
        if os.path.isdir(name):
            raise click.UsageError(f"{name} is a folder; name the files in it: {folder_pattern(name)}")
        if name.lower().endswith(".xml"):
            raise click.UsageError(f"{name}: an OpenVINO model cannot be asked about; ask about its operators, as JSON")
    models = [name for name in names if name.lower().endswith(".onnx")]
    operators = [name for name in names if name not in models]
    if models and not onnxruntime:
        raise click.UsageError(f"{models[0]}: a model needs a version of ONNX Runtime: --onnxruntime 1.24.4")
    if operators and onnxruntime and not directml:
        raise click.UsageError(f"{operators[0]}: operators need a DirectML release: --directml")
    asking = _Asking(compile_, explain)
    try:
        with _streams.output(out) as write:
            for piece in report.WRITERS[format_](asking.all(operators, models, directml, onnxruntime)):
                write(piece)
    except ValueError as error:
        if isinstance(error, DmlSplitError):
            raise
        raise click.UsageError(str(error)) from None
    if asking.unexplained and explain:
        from dmlsplit.library.catalogue import debug_layer
        from dmlsplit.library.fetching import not_added

        _streams.complain(f"no reason is known: {not_added(debug_layer())}")
    return asking.status


class _Asking:
    """Asks about files one by one, and records the exit status."""

    def __init__(self, compile: bool, explain: bool) -> None:
        self._compile, self._explain = compile, explain
        self.status = 0
        self.unexplained = False

    def all(
        self, operators: Sequence[str], models: Sequence[str], directml: Sequence[str], onnxruntime: Sequence[str]
    ) -> Iterator[report.Asked]:
        if operators:
            from dmlsplit.library.asking import build_of

            builds = [build_of(name) for name in directml or (None,)]
            for batch in _batches(self._questions(operators)):
                yield from self._answers(batch, builds)
        for version in onnxruntime if models else ():
            yield from self._models(models, version)

    def _questions(self, files: Iterable[str]) -> Iterator[tuple[Entry, Question]]:
        for file in files:
            for entry in read_operators(file):
                try:
                    if entry.graph is not None:
                        yield entry, entry.graph
                    elif entry.any_operator is not None:
                        yield entry, entry.any_operator()
                    elif entry.error is not None:
                        raise entry.error
                except InputError as error:
                    self._failed(error.in_file(entry.file))

    def _failed(self, error: DmlSplitError) -> None:
        self.status = 2
        _streams.complain(error)

    def _answers(self, batch: Sequence[tuple[Entry, Question]], builds: Sequence[Build]) -> Iterator[report.Answered]:
        from concurrent.futures import ThreadPoolExecutor

        from dmlsplit.library.asking import ask_prepared, prepared

        entries, asked = [], []
        for entry, question in batch:
            try:
                asked.append(prepared(question, compile=self._compile))
            except ValueError as error:
                self._failed(InputError(str(error), file=entry.file))
            else:
                entries.append((entry, report.type_of(question)))
        with ThreadPoolExecutor(min(len(builds), os.cpu_count() or 1)) as pool:  # each build runs in a separate process
            of_builds = list(pool.map(lambda build: ask_prepared(asked, build, explain=self._explain), builds))
        for i, (entry, type_) in enumerate(entries):
            for answers in of_builds:
                self._count(answers[i])
                yield report.Answered(entry.file, entry.index, entry.name, type_, answers[i])

    def _count(self, answer: LibraryAnswer) -> None:
        from dmlsplit.library.catalogue import debug_layer
        from dmlsplit.library.fetching import is_added

        if not answer.accepted:
            self.status = max(self.status, 1)
            self.unexplained |= answer.reason is None and not is_added(debug_layer())

    def _models(self, models: Sequence[str], version: str) -> Iterator[Any]:
        from dmlsplit.library.models import ask_models

        for file, answer in ask_models(models, version):
            if isinstance(answer, DmlSplitError):
                self._failed(answer)
                continue
            if not answer.created:
                self.status = max(self.status, 1)
            yield report.ModelAnswered(file, answer)


def _batches(questions: Iterator[tuple[Entry, Question]]) -> Iterator[list[tuple[Entry, Question]]]:
    from itertools import islice

    while batch := list(islice(questions, BATCH)):
        yield batch
