"""Reports and tables on a terminal: colours, and the source line with a caret."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, Literal, TextIO, cast

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from dmlsplit.checking.results import Result
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.formats.limits import Limit
from dmlsplit.report.shown import AS_USUAL, Shown
from dmlsplit.report.table import Table
from dmlsplit.report.text import SEVERITY_STYLES, Part, blocks
from dmlsplit.system.errors import InputError
from dmlsplit.system.input_files import open_input, read_at_most
from dmlsplit.system.printable import inert, printable

LAST_WIDTH: Final = 16
"""The least width of a table's last column, in cells; only below it are other columns folded."""
EXCERPT_WIDTH: Final = 96
"""The most cells of a source line that are shown; a line of a .jsonl file may have thousands."""
MAX_FILE: Final = Limit.EXCERPT_FILE.most


def console(stream: TextIO) -> Console:
    """Returns a console that prints text verbatim: no markup, no emoji codes, no highlighting; no styles either if
    NO_COLOR is set."""
    plain = bool(os.environ.get("NO_COLOR"))  # no-color.org; rich leaves out colours, but not bold and dim
    colors: Literal["auto"] | None = None if plain else "auto"
    return Console(file=cast(TextIO, _Inert(stream)), markup=False, emoji=False, highlight=False, color_system=colors)


class _Inert:
    """A stream that escapes commands to CI servers in all output, because a CI job may also have a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(inert(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def show(results: Iterable[Result], console: Console, targets: int = 1, shown: Shown = AS_USUAL) -> None:
    """Prints the reports on many operators and a summary on the console, arranged as by `text.blocks`."""
    for block in blocks(results, targets, shown, partial(_excerpt_of, width=console.width)):
        if isinstance(block, Table):
            show_table(block, console)
        else:
            print_parts(console, block)


def show_table(table: Table, console: Console) -> None:
    """Prints a table with rules between its columns; on a narrow terminal without rules and with folded cells."""
    if table.rows:
        for part in table.parts(console.width):
            _show_part(part, console)
    else:
        console.print(Text(table.title))
    for remark in table.remarks:
        console.print(Padding(Text(remark), (0, 0, 0, 2)))


def _show_part(table: Table, console: Console) -> None:
    widths = [max(map(cell_len, column)) for column in zip(table.header, *table.rows, strict=True)]
    room = console.width - sum(widths[:-1]) - 3 * len(widths) - 1 >= min(widths[-1], LAST_WIDTH)
    grid = RichTable(title=Text(table.title) if table.title else None, title_justify="left")
    if not room:
        grid.box, grid.padding = None, (0, 1, 0, 0)
    for heading in table.header[:-1]:
        grid.add_column(heading, no_wrap=room, overflow="fold")
    grid.add_column(table.header[-1], overflow="fold")
    for row in table.rows:
        grid.add_row(*map(Text, row))
    console.print(grid)


def print_parts(console: Console, parts: Sequence[Part]) -> None:
    """Prints one line of styled parts, unwrapped."""
    # Lines are not wrapped at the terminal's width: a location broken across lines cannot be clicked or copied.
    console.print(Text.assemble(*parts), soft_wrap=True)


def _excerpt_of(diagnostic: Diagnostic, file: str | None, width: int) -> list[list[Part]]:
    line, column = diagnostic.line, diagnostic.column
    if file is None or line is None or column is None:
        return []
    lines = _source_lines(file)
    if not 1 <= line <= len(lines) or column > len(lines[line - 1]) + 1:
        return []
    gutter = f"{line:>5} | "
    text, indent = excerpt(lines[line - 1].rstrip("\r"), column, width - len(gutter))
    return [
        [(gutter, "dim"), (text, "")],
        [(" " * (len(gutter) - 2) + "| ", "dim"), (" " * indent + "^", SEVERITY_STYLES[diagnostic.severity])],
    ]


def excerpt(line: str, column: int, width: int = EXCERPT_WIDTH) -> tuple[str, int]:
    """Returns the part of a line around a column (from 1) that fits `width` cells, and the number of its cells before
    that column."""
    width = max(24, min(width, EXCERPT_WIDTH))
    count = len(line) if len(line) <= width else width - 2 * len("...")
    while True:
        start = max(0, min(column - 1 - count // 3, len(line) - count))
        end = start + count
        before = ("..." if start else "") + _visible(line[start : column - 1])
        shown = before + _visible(line[column - 1 : end]) + ("..." if end < len(line) else "")
        # Wide characters take two cells, and escaped ones up to ten.
        if cell_len(shown) <= width or count <= 2:
            return shown, cell_len(before)
        count = count * 3 // 4


def _visible(text: str) -> str:
    return printable(text.replace("\t", " "), None)


@lru_cache(maxsize=1)
def _source_lines(file: str) -> list[str]:
    """Returns the lines of a regular file; [] if it cannot be read or exceeds MAX_FILE bytes. An invalid UTF-8 byte
    counts as a character."""
    try:
        with open_input(file) as stream:
            data = read_at_most(stream, MAX_FILE)
    except (OSError, InputError):
        return []
    return [] if data is None else data.decode("utf-8-sig", "surrogateescape").split("\n")
