"""dmlsplit config: the locations of the C library's headers and sources, for compilers."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

import click

from dmlsplit.cli import _streams
from dmlsplit.system.errors import DmlSplitError

PACKAGE: Final = Path(__file__).parents[1]
PLACES: Final = (PACKAGE / "c", PACKAGE.parent)
"""The folders in a wheel and in a checkout that contain include/, csrc/ and CMakeLists.txt."""


@click.command()
@click.option("--cflags", is_flag=True, help="Compiler flags.")
@click.option("--libs", is_flag=True, help="Linker flags.")
@click.option("--sources", is_flag=True, help="The library's C sources, which the program compiles.")
@click.option("--cmake-dir", is_flag=True, help="The folder for add_subdirectory and FetchContent.")
def config(cflags: bool, libs: bool, sources: bool, cmake_dir: bool) -> int:
    """Show the flags that compile a C or C++ program with the library, as words for a shell, on one line.

    The library is compiled into the program; nothing but this package has to be installed.

    \b
    Examples:
      dmlsplit config --cflags --sources --libs
      cc main.c $(dmlsplit config --cflags --sources --libs) -o main
      cmake -S . -B build -Ddmlsplit_SOURCE=$(dmlsplit config --cmake-dir)

    \f
    Prints the words and returns the exit status, 0. Raises UsageError if no option is given, DmlSplitError if this
    installation has no headers.
    """
    if not (cflags or libs or sources or cmake_dir):
        raise click.UsageError("one of --cflags, --libs, --sources and --cmake-dir is needed")
    root = next((place for place in PLACES if (place / "include" / "dmlsplit.h").is_file()), None)
    if root is None:
        raise DmlSplitError("this installation has no headers; the wheel and the checkout have them")
    words = []
    if cflags:
        words.append(f"-I{root / 'include'}")
    if sources:
        words += map(str, sorted([*root.glob("csrc/*.c"), *root.glob("csrc/*/*.c")]))
    if libs and sys.platform != "win32":
        words.append("-pthread")
    if cmake_dir:
        words.append(str(root))
    _streams.write(shlex.join(words) + "\n")
    return 0
