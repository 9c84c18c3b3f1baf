"""dmlsplit run: runs a DxDispatch model on the CPU."""

from __future__ import annotations

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import allow_path_option, complete_release, complete_runtime
from dmlsplit.targets.target import find_target_release


@click.command()
@click.argument("model", metavar="MODEL.json", type=click.Path())
@allow_path_option("Let the model read and write files in DIR as well, not only in its own folder.")
@click.option(
    "--directml",
    metavar="R",
    shell_complete=complete_release,
    help="The release whose device is emulated; by default the newest.",
)
@click.option(
    "--onnxruntime",
    metavar="V",
    shell_complete=complete_runtime,
    help="Emulate a device of the DirectML that this version of ONNX Runtime ships.",
)
def run(model: str, allow_path: tuple[str, ...], directml: str | None, onnxruntime: str | None) -> int:
    """Execute a DxDispatch model on the CPU and print what DxDispatch prints.

    The model runs on the emulated device of a DirectML release. The exit status is 1 if the device refuses an operator
    (then nothing is executed), and 2 for a malformed model, for bindings that remove the device, and for a file that
    cannot be written.

    \b
    Example:
      dmlsplit run model.json --allow-path weights

    \f
    Prints the output and returns the exit status: 2 if a file could not be written, 1 if an operator is refused, else
    0. Raises InputError for a malformed model and for bindings that do not fit, UsageError for an unknown release.
    """
    from dmlsplit.formats import dxdispatch
    from dmlsplit.report import text

    try:
        release = find_target_release(directml, onnxruntime)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    result = dxdispatch.run(dxdispatch.read(model, allow_path), _streams.write, _streams.complain, release)
    for diagnostic in (*(d for report in result.reports for d in report.diagnostics), *result.warnings):
        _streams.complain(text.plain(text.diagnostic_parts(diagnostic, model)))
    return result.exit_status
