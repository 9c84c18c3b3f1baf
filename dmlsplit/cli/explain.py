"""dmlsplit explain: how ONNX Runtime treats one node of an ONNX model, pass by pass."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from dmlsplit.checking.front_ends import Given, session_keywords
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import completing, judging_of, model_options, output_options, runtime_options
from dmlsplit.system.errors import InputError

if TYPE_CHECKING:
    from dmlsplit.onnxruntime.explaining import Explanation
    from dmlsplit.targets.target import Target


def _completed(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
    """Returns the paths of the model's Split and Concat nodes that begin with `start`; [] if the model cannot be
    read."""
    from dmlsplit.onnxruntime import model_nodes

    try:
        nodes = model_nodes.read(str(context.params["file"]))
    except Exception:  # shell completion shows no errors
        return []
    return completing(lambda: [node.path for node in nodes])(context, parameter, start)


@click.command()
@click.argument("file", metavar="MODEL", type=click.Path())
@click.argument("node", metavar="NODE", shell_complete=_completed)
@runtime_options
@model_options
@output_options("text", "json", "html", json_help="json: an object. html: a page.")
@click.option("--verbose", is_flag=True, help="In text, list the passes that leave the node unchanged as well.")
def explain(file: str, node: str, target: Target, given: Given, format_: str, verbose: bool) -> int:
    """Show how ONNX Runtime changes one node of an ONNX model, pass by pass, and why.

    NODE is the node's path as check prints it, its name, or the name of one of its outputs. NODE#2 is the third of
    several such nodes; a number is the node's index in the JSON of check. The output shows the node's
    placement, the nodes that it is fused with, what is submitted to DirectML, the answer, the faults of the node and of
    the fused graph, and then the passes that change the node.

    \b
    Examples:
      dmlsplit explain model.onnx split_qkv --onnxruntime 1.24.4
      dmlsplit explain model.onnx 0 --format json -o explained.json

    \f
    Prints the steps and returns the exit status: 1 if a diagnostic of the answer or of a finding is an error, else 0.
    Raises InputError for a model that cannot be read, and for a node that the model lacks or has several of.
    """
    from dmlsplit.onnxruntime.explaining import explain as explained

    assert target.runtime is not None
    with judging_of(file):
        try:
            found = explained(
                file,
                node,
                target.runtime,
                run_shapes=given.shapes,
                run_dims=given.dims,
                **session_keywords(target, given),
            )
        except InputError as error:
            raise error.in_file(file) from None
        _write(file, found, format_, verbose)
    return int(any(error.severity == "error" for error in found.diagnostics))


def _write(file: str, found: Explanation, format_: str, verbose: bool) -> None:
    from dmlsplit.report import explained

    if format_ == "json":
        _streams.write(json.dumps({"file": file, **found.to_dict()}, indent=2) + "\n")
    elif format_ == "html":
        from dmlsplit.report import html

        for piece in html.explained(file, found):
            _streams.write(piece)
    else:
        columns = _streams.width() if _streams.person_reads(sys.stdout) else None
        _streams.write(explained.text(found, columns, verbose=verbose))
