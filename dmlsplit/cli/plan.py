"""dmlsplit plan: how the C core would run an operator."""

from __future__ import annotations

import click

from dmlsplit.checking.files import judge_alone
from dmlsplit.checking.front_ends import Given
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import model_options, read_entries
from dmlsplit.descriptors.diagnostics import ValidationError
from dmlsplit.report import text
from dmlsplit.system.errors import NativeError
from dmlsplit.targets.target import find_target


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@model_options
def plan(file: str, given: Given) -> int:
    """Show how the operators of FILE would run: loops after folding, kernels, why not faster ones, the profile.

    \b
    Examples:
      dmlsplit plan operator.json
      dmlsplit plan model.onnx --dim batch=1

    \f
    Prints the plans and returns the exit status: 2 if an operator could not be read, 1 if an operator is refused or has
    no plan, else 0.
    """
    from dmlsplit.native import core
    from dmlsplit.native.execution import compile

    core.require()
    status = 0
    for entry in read_entries(file, given):
        if entry.error is not None:
            _streams.complain(entry.error.in_file(entry.file))
            status = 2
            continue
        item = judge_alone(entry, find_target())
        lines = text.lines(item)
        status = max(status, int(entry.descriptor is None and not item.report.ok))
        if entry.descriptor is not None:
            try:
                lines += [f"  {line}" for line in compile(entry.descriptor).plan.describe().splitlines()]
                lines.append(f"  the machine, {core.profile()}")
            except ValidationError:  # its report has already been printed
                status = max(status, 1)
            except NativeError as error:
                lines.append(f"  no plan: {error}")
                status = max(status, 1)
        _streams.write("\n".join(lines) + "\n")
    return status
