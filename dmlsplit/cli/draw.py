"""dmlsplit draw: the operators of a file as a picture."""

from __future__ import annotations

import click

from dmlsplit.checking.files import judge_alone
from dmlsplit.checking.front_ends import Given
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import Integer, model_options, read_entries, target_options
from dmlsplit.system.errors import InputError
from dmlsplit.targets.target import Target


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@click.option("-o", "--output", "out", metavar="OUT.svg", type=_streams.Named(), help=_streams.OUTPUT_HELP)
@click.option("--index", metavar="N", type=Integer(least=0), help="Draw only operator N of FILE, counted from 0.")
@target_options()
@model_options
def draw(file: str, out: str | None, index: int | None, target: Target, given: Given) -> int:
    """Draw the Split and Join operators of FILE, one below the other: each tensor as a block that is cut along the
    axis, and below it the memory of every tensor with its strides and padding.

    FILE is a file that `dmlsplit check` accepts. Members that the release (or feature level) refuses are marked, and
    the exit status is then 1; it is 2 if something could not be read.

    \b
    Examples:
      dmlsplit draw operator.json -o split.svg
      dmlsplit draw model.onnx --dim batch=1 -o splits.svg
      dmlsplit draw model.json --index 3 --feature-level 2_1 -o - > split.svg

    \f
    Writes the picture and returns the exit status: 2 if something could not be read or there is nothing to draw (then
    nothing is written), 1 if an operator is refused, else 0. Raises UsageError for an index that FILE lacks.
    """
    from dmlsplit.report import svg

    _streams.refuse_to_replace(out, [file])
    status, count, unknown = 0, 0, False
    drawings = []
    for entry in read_entries(file, given):
        count = max(count, entry.index + 1)
        if index is not None and entry.index != index:
            continue
        if entry.error is not None:
            _streams.complain(entry.error.in_file(entry.file))
            status = 2
            continue
        item = judge_alone(entry, target)
        status = max(status, int(not item.report.ok))
        if entry.descriptor is not None:
            drawings.append(svg.Drawing(entry.descriptor, item.report, entry.name))
        elif entry.operator is not None:
            # For a node without an operator, the reason is shown.
            unknown = True
            for diagnostic in item.report.errors or item.report.diagnostics:
                _streams.complain(f"{file}: {diagnostic.path}: {diagnostic.message}")
    if index is not None and index >= count:
        raise click.UsageError(f"--index: there is no operator {index}; {file} has {count}")
    if not drawings:
        if status != 2:
            message = (
                "nothing is drawn: too little is known of its nodes" if unknown else "there is no Split or Join to draw"
            )
            _streams.complain(InputError(message, file=file))
        return 2
    with _streams.output(out) as write:
        write(svg.document(drawings))
    return status
