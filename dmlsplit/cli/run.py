"""dmlsplit run: a DxDispatch model on the CPU."""

from __future__ import annotations

import click

from dmlsplit.cli import _streams


@click.command(short_help="Execute a DxDispatch model on the CPU.")
@click.argument("model", metavar="MODEL.json", type=click.Path())
@click.option(
    "--allow-path",
    metavar="DIR",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="Let the model read and write files in DIR, too, not only in its own folder.",
)
def run(model: str, allow_path: tuple[str, ...]) -> int:
    """Execute a DxDispatch model on the CPU and print what DxDispatch prints.

    The exit status is 1 where an operator has errors (nothing is executed then), 2 for a malformed model or a file
    that could not be written.

    \b
    Example:
      dmlsplit run model.json --allow-path weights
    """
    from dmlsplit.formats import dxdispatch
    from dmlsplit.report import text

    result = dxdispatch.run(dxdispatch.read(model, allow_path), _streams.write, _streams.complain)
    for report in result.reports:
        for diagnostic in report.diagnostics:
            _streams.complain(text.plain(text.diagnostic_parts(diagnostic, report.file)))
    return result.exit_status
