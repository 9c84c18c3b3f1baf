"""dmlsplit why: the smallest part of an ONNX model that is still refused, or still comes out wrong."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from dmlsplit.checking.front_ends import Given, session_keywords, session_of
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import Real, complete_rule, judging_of, known_rule_id, model_options, runtime_options
from dmlsplit.reducing.classes import SESSION_FAILS
from dmlsplit.system.atomic_files import note_input
from dmlsplit.system.errors import InputError

if TYPE_CHECKING:
    from dmlsplit.reducing.assignments import Comparison
    from dmlsplit.reducing.reduction import Reduction
    from dmlsplit.targets.target import Target


@click.command()
@click.argument("file", metavar="MODEL", type=click.Path())
@runtime_options
@model_options
@click.option(
    "--rule",
    metavar="RULE",
    shell_complete=complete_rule,
    help="Reduce for a finding of this rule, or for session-fails; the most serious finding is the default.",
)
@click.option(
    "--check",
    "command",
    metavar="COMMAND",
    help="Reduce as long as COMMAND exits with status 1, which means that a model is still wrong; 0 means that it is "
    "right, anything else that it cannot tell. {} in COMMAND is replaced with the model's path, which is the last "
    "argument otherwise.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=Real(min=0, min_open=True),
    default=300,
    show_default=True,
    help="Seconds that COMMAND may take for a model; after that, it counts as unable to tell.",
)
@click.option(
    "--runtime-json",
    metavar="FILE",
    help="Show which nodes ran elsewhere on your machine than predicted. FILE has the result of "
    "Session_GetEpGraphAssignmentInfo on that machine, in the form of docs/howto-why.md.",
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0, 2**32),
    default=0,
    show_default=True,
    help="The seed of all random numbers.",
)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="json: an object.")
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    type=_streams.Named(),
    help="Write to DIR the reduced model, inputs, the results of ONNX and DirectML for them, and the output of "
    "explain.",
)
def why(
    file: str,
    target: Target,
    given: Given,
    rule: str | None,
    command: str | None,
    timeout: float,
    runtime_json: str | None,
    seed: int,
    format_: str,
    folder: str | None,
) -> int:
    """Reduce an ONNX model that ONNX Runtime refuses, or computes wrong on DirectML, to the nodes that cause the fault.

    The rules of check, or a program of yours, decide whether a model is wrong. Nodes are removed as long as the model
    is still wrong; a tensor that a removed node computed becomes an input of the same type. The class of the reduced
    model is the id of a rule; session-fails if the session is not created for a reason without a rule; or new if only
    --check finds it wrong. The exit status is 1 if the fault is an error or --check finds it; 0 if it
    is a warning or a note, or if nothing is wrong; 2 for what cannot be read and a model without a finding of --rule.

    \b
    Examples:
      dmlsplit why model.onnx --onnxruntime 1.24.4 -o small
      dmlsplit why model.onnx --rule model/cpu-island
      dmlsplit why model.onnx --check "python compare.py {}" --timeout 60 -o small

    \f
    Prints what was found, writes the files of -o, and returns the exit status: 1 if what is wrong is an error, else 0.
    Raises InputError for a model that cannot be read, and for one without a finding of the wanted rule; UsageError for
    options that do not fit.
    """
    assert target.runtime is not None
    if folder is not None and os.path.exists(folder) and not os.path.isdir(folder):
        raise click.UsageError(f"{folder} is a file; a folder is needed")
    words = None if command is None else _words(command)
    if rule is not None and rule != SESSION_FAILS:
        rule = known_rule_id(rule, "--rule")
    note_input(file, "the model")
    machine = None
    if runtime_json is not None:
        note_input(runtime_json, "the assignments")
        machine = _compared(file, target, given, runtime_json)

    def ended(so_far: Reduction) -> None:
        kept = "still wrong; -o keeps them"
        if folder is not None:
            from dmlsplit.reducing.writing import MODEL, write

            write(so_far, folder, "")
            kept = f"in {os.path.join(folder, MODEL)}"
        count = f"{so_far.nodes} of {so_far.nodes_before} nodes"
        _streams.complain(f"ended after {so_far.checks} checks, with {count} {kept}")

    reduction = _reduced(file, target, given, rule=rule, check=words, timeout=timeout, seed=seed, ended=ended)
    found, nothing = (None, reduction) if isinstance(reduction, str) else (reduction, "")
    from dmlsplit.report import explained, reduced

    if folder is not None and found is not None:
        from dmlsplit.reducing.writing import write

        write(found, folder, "" if found.explanation is None else explained.text(found.explanation))
    if format_ == "json":
        compared = None if machine is None else machine.to_dict()
        said = {"class": None} if found is None else found.to_dict()
        _streams.write(json.dumps({"file": file, **said, "machine": compared}, indent=2) + "\n")
    else:
        _streams.write(reduced.text(file, found, machine, nothing))
    return int(found is not None and found.is_error)


def _reduced(file: str, target: Target, given: Given, **asked: Any) -> Reduction | str:
    """Returns the reduction of the model in a file; a sentence that says so if nothing is wrong with the model. Raises
    InputError if the file cannot be read, or has no finding of the wanted rule."""
    from dmlsplit.reducing import reduce
    from dmlsplit.reducing.reduction import NothingWrongError

    # A check of the caller's may take long for each model.
    watched = asked["check"] is not None or _streams.person_reads(sys.stderr)
    assert target.runtime is not None
    try:
        with judging_of(file):
            return reduce(
                file,
                target.runtime,
                run_shapes=given.shapes,
                run_dims=given.dims,
                **session_keywords(target, given),
                progress=_streams.complain if watched else lambda line: None,
                **asked,
            )
    except NothingWrongError as error:
        if asked["rule"] is None:
            return error.message
        raise error.in_file(file) from None
    except InputError as error:
        raise error.in_file(file) from None


def _compared(file: str, target: Target, given: Given, runtime_json: str) -> Comparison:
    """Returns the comparison of the prediction for a model with the placement that a machine reported in
    `runtime_json`. Raises InputError if either cannot be read."""
    from dmlsplit.reducing import assignments

    machine = assignments.read(runtime_json)
    try:
        with judging_of(file):
            predicted = session_of(file, target, given)
    except InputError as error:
        raise error.in_file(file) from None
    return assignments.compared(predicted, machine)


def _words(command: str) -> list[str]:
    """Returns the words of a command line. Quotes and backslashes have the meaning that a POSIX shell gives them; on
    Windows, a quoted word keeps its quotes and backslashes are ordinary characters. Variables are not replaced. Raises
    UsageError for a quote or escape without end, and if there is no word."""
    try:
        words = shlex.split(command, posix=os.name == "posix")
    except ValueError as error:
        raise click.UsageError(f"--check: {error}") from None
    if not words:
        raise click.UsageError("--check: a command is expected")
    return words
