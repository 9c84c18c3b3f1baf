"""dmlsplit draw: the operators of a file as a picture."""

from __future__ import annotations

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._judging import judge_options, judged, read_entries
from dmlsplit.errors import InputError
from dmlsplit.rules import Judge


@click.command(short_help="Draw the operators of a file as SVG.")
@click.argument("file", metavar="FILE")
@click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT.svg",
    help="Write to OUT.svg, which is replaced whole or not at all; - (the default) is standard output.",
)
@click.option("--index", metavar="N", type=click.IntRange(min=0), help="Only operator N of the file, counted from 0.")
@judge_options
def draw(file: str, out: str | None, index: int | None, judges: tuple[Judge, ...]) -> int:
    """Draw the Split and Join operators of FILE, one below the other: each tensor as a block that is cut along the
    axis, below it the memory of every tensor with its strides and padding.

    FILE is what `dmlsplit check` takes. Members that the release (or feature level) refuses are marked; the exit
    status is 1 then, and 2 where something could not be read.

    \b
    Examples:
      dmlsplit draw operator.json -o split.svg
      dmlsplit draw model.json --index 3 --feature-level 2_1 -o - > split.svg
    """
    from dmlsplit.report import svg

    if len(judges) > 1:
        raise click.UsageError("a picture shows the verdict of one release; give --directml once")
    _streams.refuse_to_replace(out, [file])
    status, count = 0, 0
    drawings = []
    for entry in read_entries(file):
        count += 1
        if index is not None and entry.index != index:
            continue
        if entry.error is not None:
            _streams.complain(entry.error)
            status = 2
        elif entry.descriptor is not None:
            item = judged(entry, judges[0])
            status = max(status, int(not item.report.ok))
            drawings.append(svg.Drawing(entry.descriptor, item.report, item.name))
    if index is not None and index >= count:
        raise click.UsageError(f"--index: there is no operator {index}, {file} has {count}")
    if not drawings:
        if status == 0:
            _streams.complain(InputError("there is no Split or Join to draw", file=file))
        return 2
    with _streams.output(None if out == "-" else out) as write:
        write(svg.document(drawings))
    return status
