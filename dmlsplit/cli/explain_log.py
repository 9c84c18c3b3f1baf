"""dmlsplit explain-log: lines of ONNX Runtime's and DirectML's logs, and what they mean."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import click

from dmlsplit.checking.front_ends import Given
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import judging_of, model_options, output_options, refuse_closed_input, runtime_options
from dmlsplit.system.atomic_files import note_input
from dmlsplit.system.errors import InputError, naming

if TYPE_CHECKING:
    from dmlsplit.targets.target import Target


@click.command("explain-log")
@click.argument("file", metavar="FILE", type=click.Path())
@click.option(
    "--model", metavar="MODEL", type=click.Path(), help="The ONNX model of the log; the command says what it explains."
)
@runtime_options
@model_options
@output_options("text", "json", json_help="json: an object with all findings.")
def explain_log(file: str, model: str | None, target: Target, given: Given, format_: str) -> int:
    """Explain the errors and warnings in a log of ONNX Runtime or DirectML.

    FILE is any text with such lines; - is standard input. A known message is shown with its meaning, a public thread
    about it, and what to run next; an unknown error is shown with the name of its HRESULT, if it has one. With
    --model, the command also says which messages that model explains with the version of --onnxruntime, and which it
    rules out. The exit status is 1 if an error is found.

    \b
    Examples:
      dmlsplit explain-log app.log
      dmlsplit explain-log app.log --model model.onnx --onnxruntime 1.24.4
      python run.py 2>&1 | dmlsplit explain-log -

    \f
    Prints the findings and returns the exit status: 1 if one of them is an error, else 0. Raises InputError if the log
    or the model cannot be read, OSError if one cannot be opened.
    """
    from dmlsplit.checking.log_findings import ModelFacts
    from dmlsplit.logs.reading import read
    from dmlsplit.report.log import WRITERS

    assert target.runtime is not None
    with _opened(file) as stream:
        log = read(stream)
    facts = None
    if model is not None:
        note_input(model, "the model")
        with judging_of(model):
            try:
                facts = ModelFacts.of(model, target, given)
            except InputError as error:
                raise error.in_file(model) from None
    command = ("MODEL.onnx" if model is None else shlex.quote(model), target.runtime.version)
    for piece in WRITERS[format_](file, log, command, facts):
        _streams.write(piece)
    return int(any(finding.is_error for finding in log.findings))


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    """Context manager that gives the stream of a regular file, or standard input for "-". Raises InputError for any
    other kind of file, OSError if it cannot be opened."""
    from dmlsplit.system.input_files import open_input

    if file == "-":
        refuse_closed_input([file])
        yield sys.stdin.buffer
        return
    with naming(file), open_input(file) as stream:
        yield stream
