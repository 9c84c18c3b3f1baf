"""dmlsplit layer: a library in front of the real DirectML that records a program's calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from dmlsplit.cli import _streams
from dmlsplit.system.printable import printable


def _folder(command: Callable[..., int]) -> Callable[..., int]:
    return click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))(command)


@click.group()
def layer() -> None:
    """Show what any program asks of DirectML, without a rebuild: a library that stands before the real one.

    DIR is the folder with the program's DirectML.dll or libdirectml.so: its own folder, or that of onnxruntime or
    torch_directml. Every call goes on to the real library, and the program gets its answers. What the program creates,
    compiles and binds is appended to the file of $DMLSPLIT_LAYER_FILE, which 'dmlsplit check' reads; what fails is said
    on standard error and to the debugger, with the reason where it is known.

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
    help="The layer, where it was built otherwise, by CMake; by default that of the wheel, or a C compiler's.",
)
def install(folder: Path, file: Path | None) -> int:
    """Put the layer in the place of the libraries of a folder, which get other names beside it.

    \f
    Prints what was done and returns the exit status, 0. Raises LayerError if nothing can be done.
    """
    from dmlsplit.library.layer import install

    for place in install(folder, file):
        _streams.write(
            f"{printable(str(place.library), None)} is the layer; the real library is {place.real.name} beside it\n"
        )
    return 0


@layer.command()
@_folder
def remove(folder: Path) -> int:
    """Take the layer away: the real libraries get their names back.

    \f
    Prints what was done and returns the exit status, 0. Raises LayerError if there is no layer.
    """
    from dmlsplit.library.layer import remove

    for place in remove(folder):
        _streams.write(f"{printable(str(place.library), None)} is the real library again\n")
    return 0
