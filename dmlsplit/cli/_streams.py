"""Where output goes: standard output, or a file that is replaced whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO, TypeAlias

import click

from dmlsplit.formats.jsontext import printable
from dmlsplit.report.table import WIDTH

Write: TypeAlias = Callable[[str], object]

OUTPUT_HELP: Final = "Write to this file, which is replaced whole or not at all; - (the default) is standard output."

_STANDARD_OUTPUT: Final = "standard output"


def prepare() -> None:
    """Lets no character that the terminal's encoding lacks stop the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def person_reads(stream: TextIO | None) -> bool:
    """Whether to write for a person: on a terminal, unless it can do nothing but print."""
    return stream is not None and os.environ.get("TERM") != "dumb" and stream.isatty()


def width() -> int:
    """Columns of what is written to standard output: those of the terminal, 80 elsewhere."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if person_reads(sys.stdout) else WIDTH


def write(text: str) -> None:
    """Writes to standard output; an OSError names it."""
    with _naming(_STANDARD_OUTPUT):
        _stdout().write(text)


def complain(message: object) -> None:
    """One line on standard error. Where that is closed or full, nothing can be done about it."""
    with suppress(OSError, AttributeError):
        sys.stderr.write(f"dmlsplit: {printable(str(message), None)}\n")


@contextmanager
def output(path: str | None) -> Iterator[Write]:
    """A function that writes to `path`, or to standard output where that is None or "-".

    A regular file is written beside its place and moved there at the end, links followed: on any failure the old one
    stays, and nothing else. A device or a pipe is written as it is. An OSError names the path.
    """
    if path in (None, "-"):
        yield write
        flush()
        return
    with _naming(path):
        target = os.path.realpath(path)
        mode = os.stat(target).st_mode if os.path.exists(target) else None
        replaced = mode is None or stat.S_ISREG(mode)
        written = f"{target}.{os.urandom(4).hex()}.tmp" if replaced else target
        stream = open(written, "x" if replaced else "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    try:

        def write_file(text: str) -> None:
            with _naming(path):
                stream.write(text)

        yield write_file
        with _naming(path):
            stream.close()
            if replaced:
                if mode is not None:
                    os.chmod(written, stat.S_IMODE(mode))
                os.replace(written, target)
    except BaseException:
        with suppress(OSError):
            stream.close()
        if replaced:
            with suppress(OSError):
                os.unlink(written)
        raise


def refuse_to_replace(path: str | None, files: Iterable[str]) -> None:
    """Raises UsageError where `path` is one of the files that are about to be read."""
    for file in files:
        if path not in (None, "-") and os.path.isfile(path) and os.path.exists(file) and os.path.samefile(path, file):
            raise click.UsageError(f"{path} would replace an input file")


def flush() -> None:
    """Brings out what is buffered; an OSError names standard output."""
    if sys.stdout is not None:
        with _naming(_STANDARD_OUTPUT):
            sys.stdout.flush()


def leave() -> None:
    """Last flush. What cannot be written any more is dropped, lest the interpreter complain about it as it ends."""
    try:
        flush()
    except OSError:
        with suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)


def _stdout() -> TextIO:
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sys.stdout


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), name) from None
