"""dmlsplit legalize: operators that a feature level or release accepts instead of those in a file."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dmlsplit.checking.files import judge_alone
from dmlsplit.checking.front_ends import Given, without_nodes
from dmlsplit.checking.open_sizes import OpenAnswer, answer_by
from dmlsplit.checking.results import Judged, Result
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import judging_of, model_options, read_with_nodes, target_options
from dmlsplit.cli._mended import HINT, MOST_SHOWN, WriteBackOptions, write_back
from dmlsplit.legalize import Legalization, in_words
from dmlsplit.legalize.search import legalized
from dmlsplit.report import text
from dmlsplit.system.printable import printable
from dmlsplit.targets.runtime_versions import runtime_of_release
from dmlsplit.targets.target import Target

if TYPE_CHECKING:
    from dmlsplit.formats.operator_files import Entry


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@target_options()
@model_options
@click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    type=_streams.Named(),
    help="Write the legalized model of FILE.onnx to OUT.onnx. Any other name gets a DxDispatch model, which "
    "`dmlsplit run` executes; - writes only that model to standard output.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be changed in FILE.onnx, without writing a model.")
@click.option("--diff", is_flag=True, help="Show the nodes of FILE.onnx before and after.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "html"]),
    default="text",
    help="html: write a page to the file of -o instead of a model: each change of FILE.onnx, its reason, and the "
    "nodes before and after, side by side.",
)
@click.option("--page", metavar="PAGE", hidden=True)
@click.option("--verbose", is_flag=True, help="In text, show every operator and change, not only the first alike.")
@click.option("--copy-data", is_flag=True, help="Copy the model's external data to the folder of OUT.onnx.")
def legalize(file: str, out: str | None, format_: str, target: Target, given: Given, **options: Any) -> int:
    """Rewrite the Split and Join operators of FILE so that a feature level, a release or a runtime accepts them.

    Each operator is shown before and after. -o writes the legalized operators as a DxDispatch model: with the same
    resources and commands if FILE is such a model, otherwise with resources filled with 1, 2, 3 and so on. It is
    written only if every operator has a rewriting; otherwise the exit status is 1.

    With -o OUT.onnx, an ONNX model is written back as an ONNX model: it computes the same bit for bit, and differs only
    around the nodes that the target does not accept. Weights are not changed; external data stays where it is.
    --free-dimension replaces a symbolic dimension by its size in the file. Without -o, the output says what would be
    changed for a version of ONNX Runtime, or for the newest one that ships the release.

    \b
    Examples:
      dmlsplit legalize operator.json --feature-level 2_1
      dmlsplit legalize model.json --directml 1.5.1 -o lower.json
      dmlsplit legalize model.onnx --dim batch=1 --feature-level 2_0 -o split.json
      dmlsplit legalize model.onnx --onnxruntime 1.24.4 -o fixed.onnx --diff
      dmlsplit legalize model.onnx --free-dimension batch=1 -o fixed.onnx
      dmlsplit legalize m.onnx --onnxruntime 1.24.4 --format html -o changes.html

    \f
    Prints the operators or changes, writes the output, and returns the exit status: 2 if an operator could not be read,
    1 if an operator or the model cannot be legalized (then no output is written), else 0. Raises UsageError for options
    that do not fit, InputError for a model that cannot be read.
    """
    if os.path.isdir(file):
        raise click.UsageError(f"'{file}' is a folder; one model is rewritten at a time")
    if format_ == "html":
        if options["page"] is not None:
            raise click.UsageError("--page and --format html exclude each other")
        options["page"], out = out or "-", None
    written_back = WriteBackOptions(**options)
    with judging_of(file):
        _streams.refuse_to_replace(out, [file])
        _streams.refuse_to_replace(written_back.page, [file])
        _streams.refuse_to_replace(written_back.page, [out], "the model that -o writes")
        # alone, without the nodes around it, an operator may be taken where the session fails or computes wrong results
        has_sizes = given.shapes or given.dims  # which a file that is written would not have
        of_model = written_back.asks or (_is_session(target) and not has_sizes)
        if _is_onnx(file) and (of_model if out is None else _is_onnx(out)):
            return write_back(file, out, target, given, written_back)
        if written_back.asks or written_back.copy_data:
            raise click.UsageError(
                "--dry-run, --diff, --format html and --copy-data are for ONNX models that are written back"
            )
        if out is not None and out.lower().endswith(".xml"):
            raise click.UsageError(f"{out}: no OpenVINO model is written; a DxDispatch model has a name in .json")
        if out is not None and _is_onnx(out):
            raise click.UsageError(
                f"{out}: an ONNX model is written only if FILE is one, and '{file}' does not end in .onnx"
            )
        return _rewrite(file, out, target, given, verbose=written_back.verbose)


def _is_session(target: Target) -> bool:
    """True if a version of ONNX Runtime stands for the target: itself, or the one that ships a release."""
    return target.runtime is not None or (target.release is not None and runtime_of_release(target.release) is not None)


def _is_onnx(file: str) -> bool:
    """True if `file` is the name of an ONNX model."""
    return file.lower().endswith(".onnx")


def _rewrite(file: str, out: str | None, target: Target, given: Given, *, verbose: bool) -> int:
    """Prints the operators before and after, of those accepted as they are only the first unless `verbose`, writes a
    DxDispatch model if `out` is given, and returns the exit status: 2 if an operator cannot be read, 1 if one cannot be
    legalized, else 0."""
    status = accepted = 0
    done: list[tuple[Entry, Legalization]] = []
    for read in read_with_nodes(file, given):
        entry = without_nodes(read)
        if entry.error is not None:
            _streams.complain(entry.error.in_file(entry.file))
            status = 2
            continue
        item = judge_alone(entry, target)
        if entry.descriptor is not None:
            found = legalized(entry.descriptor, target)
            done.append((entry, found))
            assert isinstance(item, Judged)  # there is a descriptor
            lines, failed = _lines(entry, item, found, target), not found.ok
            if found.operators == (found.desc,):
                accepted += 1
                if accepted > MOST_SHOWN and not verbose:
                    continue
        else:
            answer = None if read.node is None else answer_by(read.node, target)
            lines, failed = _without_operator(entry, item, answer, is_written=out is not None)
        if out != "-":
            _streams.write("".join(f"{line}\n" for line in lines))
        status = max(status, int(failed))
    if accepted > MOST_SHOWN and not verbose and out != "-":
        more = accepted - MOST_SHOWN
        _streams.write(
            f"{printable(file, None)}: {more} more accepted as {'they are' if more > 1 else 'it is'} ({HINT})\n"
        )
    if out is not None:
        if status:
            if status == 2 and not done:  # already reported: the file could not be read at all
                return status
            _streams.complain(f"{out}: not written, since not every operator of {file} could be rewritten")
            return status
        if not done and os.path.splitext(file)[1].lower() in (".onnx", ".xml"):
            _streams.complain(f"{out}: not written, since {file} has no Split and no Concat")
            return 1
        from dmlsplit.formats.dxdispatch.write import legalized_model

        made = legalized_model(file, [(entry.name, found) for entry, found in done])
        model = json.dumps(made, indent=2) + "\n"
        with _streams.output(out) as write:
            write(model)
    return status


def _without_operator(
    entry: Entry, item: Result, answer: OpenAnswer | None, *, is_written: bool
) -> tuple[list[str], bool]:
    """Returns the lines about an entry without a descriptor, and True if it is a failure: a node that is invalid or
    about which too little is known; an operator other than Split and Join that is refused; and, if a model is written,
    a node whose sizes are open, or an operator other than Split and Join that is not in a model. `answer` is the
    target's about all sizes of a node."""
    if answer is None or not answer.cases:
        failed = entry.operator is not None or not item.report.ok
        if is_written and entry.other is not None and entry.name is None and not failed:
            return [*text.lines(item), "  not written: a new model has Splits and Joins"], True
        return [*text.lines(item), *(["  not rewritten"] if failed else [])], failed
    assert isinstance(item, Judged)  # it is a node
    lines = [f"{text.plain(text.subject_parts(item))}: {answer}"]
    if is_written:  # without sizes there is no operator to write
        hints = [str(d.expected) for d in item.report.diagnostics if d.rule == "node/shape-unknown"]
        lines += [f"  not rewritten without its sizes; {hint}" for hint in dict.fromkeys(hints)]
    return lines, is_written


def _lines(entry: Entry, item: Judged, found: Legalization, target: Target) -> list[str]:
    """Returns the lines about an operator before and after its rewriting, or why it has none."""
    if found.operators == (found.desc,):
        return [*text.lines(item), "  accepted as it is"]
    if not found.ok:
        # The report of the rewriting is more detailed than the verdict, and the text knows the positions of its
        # members.
        report = replace(found.report.located(entry.locate), file=entry.file, index=entry.index)
        return text.lines(item._replace(report=report))
    head = f"{text.plain(text.subject_parts(item))}: runs on {target.name} as {in_words.summary(found)}"
    return [head, *(f"  {line}" for line in in_words.lines(found))]
