"""Plain-text tables with aligned columns, fitted to a width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dmlsplit.system.printable import shortened

WIDTH = 80
_NARROWEST: Final = 12
"""The width to which a wide column may be narrowed, in characters."""


class Table(NamedTuple):
    """A title, column headings, rows of as many cells, and remarks below them.

    `answers`: the number of leading columns before those that each hold one answer to the same question; 0 if the last
    column is a list of words to wrap.
    """

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    remarks: Sequence[str] = ()
    answers: int = 0

    def plain(self, width: int | None = WIDTH) -> str:
        """Returns the table as text of at most `width` columns, if words and the narrowest columns allow; None:
        unlimited."""
        lines = [self.title] if self.title else []
        tables = [self] if width is None else self.parts(width)
        for table in tables:
            lines += table._lines(width)
        for remark in self.remarks:
            lines += [remark] if width is None else wrapped(remark, width, "", "    ")
        return "\n".join(lines) + "\n"

    def parts(self, width: int) -> list[Table]:
        """Returns tables, each of which fits `width`, that together have all columns; all but the first repeat the
        first column. [self] if it need not be cut."""
        if not self.answers:
            return [self]
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        narrow = [min(each, _NARROWEST) for each in widths[: self.answers]]
        parts: list[list[int]] = [[*range(self.answers)]]
        room = width - sum(narrow) - 2 * len(narrow)
        for column in range(self.answers, len(widths)):
            needed = min(widths[column], 2 * _NARROWEST)
            if needed > room and parts[-1][-1] >= self.answers:
                parts.append([0])
                room = width - narrow[0] - 2
            parts[-1].append(column)
            room -= needed + 2
        if len(parts) == 1:
            return [self]
        return [
            Table(
                "" if i else self.title,
                tuple(self.header[column] for column in part),
                [tuple(row[column] for column in part) for row in self.rows],
                answers=1,
            )
            for i, part in enumerate(parts)
        ]

    def _lines(self, width: int | None) -> list[str]:
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        last = widths[-1] if self.answers or width is None else 16
        while width is not None and sum(widths[:-1]) + last + 2 * (len(widths) - 1) > width:
            widest = max(range(len(widths) - 1), key=widths.__getitem__, default=0)
            if len(widths) == 1 or widths[widest] <= _NARROWEST:
                break
            widths[widest] -= 1
        left = widths[-1] if width is None else max(width - sum(widths[:-1]) - 2 * len(widths[:-1]), 16)
        lines = []
        for row in (self.header, *self.rows) if self.rows else ():
            cells = [shortened(cell, w) for cell, w in zip(row[:-1], widths, strict=False)]
            head = "".join(f"{cell:<{w}}  " for cell, w in zip(cells, widths, strict=False))
            rest = [shortened(row[-1], left)] if self.answers else wrapped(row[-1], left)
            for part in rest or [""]:
                lines.append(f"{head}{part}".rstrip())
                head = " " * len(head)
        return lines


def wrapped(line: str, width: int, start: str = "", rest: str = "") -> list[str]:
    """Returns the lines of a text, wrapped to `width` columns; the first begins with `start`, others with `rest`. Words
    are not broken."""
    import textwrap  # few commands print prose

    return textwrap.wrap(
        line, width, initial_indent=start, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
