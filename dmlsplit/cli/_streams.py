"""Where output goes: to standard output, or to a file that is replaced atomically."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from functools import partial
from typing import Any, Final, TextIO, TypeAlias

import click

from dmlsplit.report.table import WIDTH, Table
from dmlsplit.system.atomic_files import atomic_files, same_file
from dmlsplit.system.errors import naming
from dmlsplit.system.printable import inert, printable

Write: TypeAlias = Callable[[str], object]

OUTPUT_HELP: Final = "Write to this file, atomically; - (the default) is standard output."

_STANDARD_OUTPUT: Final = "standard output"


class Named(click.Path):
    """The type of an option that names an output file or folder. An empty name is refused, because it means the current
    folder to some functions and no file to others."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        if value == "":
            self.fail("a name is expected", parameter, context)
        return super().convert(value, parameter, context)


def prepare() -> None:
    """Makes standard output and error write backslash escapes for characters that their encoding cannot represent."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def person_reads(stream: TextIO | None) -> bool:
    """True if the stream is a terminal and TERM is not "dumb"; False for None."""
    return stream is not None and os.environ.get("TERM") != "dumb" and stream.isatty()


def width() -> int:
    """Returns the width of standard output in columns: the terminal's width, or 80 if it is not a terminal."""
    if not person_reads(sys.stdout):
        return WIDTH
    import shutil  # importing shutil also imports all compressors

    return shutil.get_terminal_size((WIDTH, 24)).columns


def write(text: str, *, colons_meant: bool = False) -> None:
    """Writes text to standard output, made harmless by `inert` for servers that take commands from their logs. Raises
    OSError, which names standard output, if it cannot be written."""
    with naming(_STANDARD_OUTPUT):
        _stdout().write(inert(text, colons_meant=colons_meant))


def show_tables(tables: Iterable[Table], plain_width: int | None = WIDTH) -> None:
    """Prints tables on standard output: with rules and folded to its width on a terminal, else as plain text of at most
    `plain_width` columns; None: unlimited, for names that scripts copy."""
    if person_reads(sys.stdout):
        from dmlsplit.report import terminal

        for table in tables:
            terminal.show_table(table, terminal.console(sys.stdout))
    else:
        write("\n".join(table.plain(plain_width) for table in tables))


def complain(message: object) -> None:
    """Writes "dmlsplit: " and the text of `message` to standard error as one line: line breaks and other control
    characters become backslash escapes, and commands to CI servers are escaped. Does nothing if standard error is
    missing or the system refuses to write."""
    with suppress(OSError, AttributeError):
        sys.stderr.write(inert(f"dmlsplit: {printable(str(message), None)}\n"))


@contextmanager
def output(path: str | None, *, colons_meant: bool = False) -> Iterator[Write]:
    """Context manager that yields a function that writes text to the file `path` or, as `write` does, to standard
    output if `path` is None or "-".

    A regular file (after following links) is replaced when the block ends, and its folder is created if there is none;
    if the block or the writing fails, the old file stays unchanged, and no other file or folder is left. A device or a
    pipe is written directly. Raises OSError, which names the path, if it cannot be written.
    """
    if path in (None, "-"):
        yield partial(write, colons_meant=colons_meant)
        flush()
        return
    with ExitStack() as stack:
        with naming(path):
            written = path
            if _is_replaced(path):
                files = stack.enter_context(atomic_files())
                real = os.path.realpath(path)
                files.make_folder(os.path.dirname(real))
                written = files.create(real)
            stream = open(written, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
            stack.callback(_drop, stream)

        def write_file(text: str) -> None:
            with naming(path):
                stream.write(text)

        yield write_file
        with naming(path):
            stream.close()
            stack.close()


@contextmanager
def redirected(path: str | None) -> Iterator[None]:
    """Context manager that collects standard output in the block, and at the end writes it to `path` as `output` does;
    it does nothing if `path` is None or "-"."""
    if path in (None, "-"):
        yield
        return
    with redirect_stdout(io.StringIO()) as collected:
        yield
    with output(path) as write_file:
        write_file(collected.getvalue())


def _drop(stream: TextIO) -> None:
    """Closes a file that is about to be deleted, ignoring errors."""
    with suppress(OSError):
        stream.close()


def _is_replaced(path: str) -> bool:
    """True if `path` is a regular file or does not exist yet. Raises OSError for a loop of links, and for the name of a
    folder that does not exist."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        if os.path.basename(path):
            return True
        raise


def refuse_to_replace(path: str | None, files: Iterable[str | None], what: str = "an input file") -> None:
    """Raises UsageError if `path`, to which output goes, and one of `files` are the same file, under whatever names;
    `what` describes the files in the message. The .bin that belongs to an .xml counts as one of the files."""
    if path in (None, "-"):
        return
    for file in files:
        if file is not None and file.lower().endswith(".xml"):
            refuse_to_replace(path, [f"{os.path.splitext(file)[0]}.bin"], what)  # the weights of an OpenVINO IR
        if file == "-" and _is_standard_input(path):
            raise click.UsageError(f"{path} would replace standard input, which is read from it")
        if file not in (None, "-") and same_file(path, file) and _is_replaced(path):
            raise click.UsageError(f"{path} would replace {what}")


def _is_standard_input(path: str) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(sys.stdin.fileno())) and _is_replaced(path)
    except (OSError, ValueError, AttributeError):  # no such file, or standard input has no descriptor or is missing
        return False


def flush() -> None:
    """Flushes standard output. Raises OSError, which names it, if that fails."""
    if sys.stdout is not None:
        with naming(_STANDARD_OUTPUT):
            sys.stdout.flush()


def leave() -> None:
    """Flushes standard output for the last time; discards what cannot be written, so that the interpreter does not
    complain at exit."""
    try:
        flush()
    except (OSError, KeyboardInterrupt):
        with suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)


def _stdout() -> TextIO:
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sys.stdout
