"""Tables in plain text: aligned columns, the last one wrapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 80


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column headings, and rows of as many cells."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def plain(self, width: int = WIDTH) -> str:
        """Text of at most `width` columns, as far as all cells but a row's last leave room."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)][:-1]
        left = max(width - sum(widths) - 2 * len(widths), 16)
        lines = [self.title] if self.title else []
        for row in (self.header, *self.rows):
            head = "".join(f"{cell:<{w}}  " for cell, w in zip(row[:-1], widths, strict=True))
            for part in wrapped(row[-1], left) or [""]:
                lines.append(f"{head}{part}".rstrip())
                head = " " * len(head)
        return "\n".join(lines) + "\n"


def wrapped(line: str, width: int, start: str = "", rest: str = "") -> list[str]:
    """Lines of at most `width` columns; the first begins with `start`, others with `rest`. Words stay whole."""
    import textwrap  # few commands print prose

    return textwrap.wrap(
        line, width, initial_indent=start, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
