"""dmlsplit layer: a library in front of the real DirectML that records a program's calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from dmlsplit.cli import _streams
from dmlsplit.system.printable import printable


def _folder(command: Callable[..., int]) -> Callable[..., int]:
    return click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))(command)


@click.group(no_args_is_help=False)
def layer() -> None:
    """Record a program's calls to DirectML without rebuilding it, through a library that wraps the real one.

    DIR is the folder with the program's DirectML.dll or libdirectml.so: the program's own folder, or that of
    onnxruntime or torch_directml. The layer forwards every call to the real library and returns its result. It appends
    what the program creates, compiles and binds to the file that $DMLSPLIT_LAYER_FILE names, which 'dmlsplit check'
    reads, and reports failures on standard error and to the debugger, with the reason if it is known.

    \b
    Examples:
      dmlsplit layer install site-packages/onnxruntime/capi
      DMLSPLIT_LAYER_FILE=calls.jsonl python program.py
      dmlsplit check calls.jsonl
      dmlsplit layer remove site-packages/onnxruntime/capi
    """


@layer.command()
@_folder
@click.option(
    "--layer",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The layer's library, if built with CMake; by default the wheel's, or one that a C compiler builds.",
)
def install(folder: Path, file: Path | None) -> int:
    """Rename the libraries in a folder, and put the layer in their place.

    \f
    Prints what was done and returns the exit status, 0. Raises LayerError if nothing can be done.
    """
    from dmlsplit.library.layer import install

    for place in install(folder, file):
        _streams.write(
            f"{printable(str(place.library), None)} is the layer; the real library is {place.real.name} next to it\n"
        )
    return 0


@layer.command()
@_folder
def remove(folder: Path) -> int:
    """Remove the layer, and give the real libraries their names back.

    \f
    Prints what was done and returns the exit status, 0. Raises LayerError if there is no layer.
    """
    from dmlsplit.library.layer import remove

    for place in remove(folder):
        _streams.write(f"{printable(str(place.library), None)} is the real library again\n")
    return 0
