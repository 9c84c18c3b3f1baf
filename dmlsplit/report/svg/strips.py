"""The memory of each tensor as a strip of cells, which show the element at each place, padding, and shared places."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from dmlsplit.descriptors.geometry import ROLES
from dmlsplit.descriptors.layout import extent, implied_size, packed_strides
from dmlsplit.report.svg import canvas
from dmlsplit.report.svg.canvas import add, label, rectangle
from dmlsplit.report.svg.subject import DrawnTensor, Subject, element_text, numbers_text, type_text

PARTS_SHOWN: Final = 6
CELLS_IN_ROW: Final = 32
WHOLE_ROWS, PART_ROWS = 3, 2
ROOM: Final = 640
LEFT: Final = canvas.WIDTH - canvas.MARGIN - ROOM
HEIGHT: Final = 18
SEVERAL: Final = -1
"""Marks a cell whose elements belong to more than one part."""
DIGITS: Final = 7
"""Longer element numbers are left out."""


class MemoryCell(NamedTuple):
    """One place: the number of elements there, the number of the first, and its part."""

    elements: int
    number: int
    part: int | None


class Strip(NamedTuple):
    """The first places of a tensor; places without an entry in `cells` are padding."""

    tensor: DrawnTensor
    part: int | None
    """The index of the part; None for the whole tensor."""
    places: int
    cells: Mapping[int, MemoryCell]
    step: int
    """The number of places after which the layout repeats, if it fits into a row, else 1."""


def strip(subject: Subject, tensor: DrawnTensor, part: int | None) -> Strip:
    """Returns the first cells of a tensor's memory; for a tensor that cannot be drawn, a strip without cells. `part` is
    the tensor's index among the parts, None for the whole."""
    if not tensor.drawable:
        return Strip(tensor, part, 0, {}, 1)
    assert tensor.sizes is not None
    sizes = tensor.sizes
    places = extent(sizes, tensor.strides)
    limit = min(places, CELLS_IN_ROW * (WHOLE_ROWS if part is None else PART_ROWS))
    strides = tensor.strides if tensor.strides is not None else packed_strides(sizes)
    numbering = subject.numbering(sizes)
    axis = subject.axis if subject.axis is not None and subject.axis < len(sizes) else None
    start = subject.start_of(part) if part is not None else 0
    found = {}
    for place, count, index, first in _found(sizes, strides, numbering, axis, limit):
        if axis is not None:
            first += start * numbering[axis]
        found[place] = MemoryCell(count, first, part if part is not None else _part_of(subject, axis, index))
    rows = [s for size, s in zip(sizes, strides, strict=True) if size > 1 and 1 < s <= CELLS_IN_ROW]
    return Strip(tensor, part, places, found, max(rows, default=1))


def _part_of(subject: Subject, axis: int | None, indices: tuple[int, int]) -> int | None:
    if axis is None:
        return None
    first, last = (subject.part_at(index) for index in indices)
    return first if first == last else SEVERAL


Found = Iterable[tuple[int, int, tuple[int, int], int]]
"""Place, number of elements there, least and largest index along the axis, least number of an element."""


def _found(
    sizes: Sequence[int], strides: Sequence[int], numbering: Sequence[int], axis: int | None, limit: int
) -> Found:
    # Dimension by dimension: the contents of each of the first places. Element numbers add up, so the least number at a
    # place is a sum of least numbers.
    found = {0: (1, (0, 0), 0)}
    for dimension, (size, stride, step) in enumerate(zip(sizes, strides, numbering, strict=True)):
        moved: dict[int, tuple[int, tuple[int, int], int]] = {}
        for place, (count, (low, high), number) in found.items():
            if stride == 0:
                high += size - 1 if dimension == axis else 0
                moved[place] = (count * size, (low, high), number)
                continue
            for i in range(min(size, (limit - 1 - place) // stride + 1)):
                here = i if dimension == axis else 0
                new = (count, (low + here, high + here), number + i * step)
                old = moved.get(place + i * stride)
                moved[place + i * stride] = new if old is None else _both(old, new)
        found = moved
    for place in sorted(found):
        count, indices, number = found[place]
        yield place, count, indices, number


def _both(a: tuple[int, tuple[int, int], int], b: tuple[int, tuple[int, int], int]) -> tuple[int, tuple[int, int], int]:
    return a[0] + b[0], (min(a[1][0], b[1][0]), max(a[1][1], b[1][1])), min(a[2], b[2])


def strips(subject: Subject) -> tuple[list[Strip], int]:
    """Returns the strips to draw, inputs first, and the number of parts left out."""
    shown = [strip(subject, part, i) for i, part in enumerate(subject.parts[:PARTS_SHOWN])]
    whole = strip(subject, subject.whole, None)
    hidden = len(subject.parts) - len(shown)
    return ROLES[subject.type].in_order(whole, shown), hidden


def draw(parent: ET.Element, subject: Subject, top: float, prefix: str) -> float:
    """Draws the strips below `top` into `parent`, and returns the y coordinate of their end."""
    shown, hidden = strips(subject)
    numbers = [cell.number for s in shown for cell in s.cells.values()]
    digits = len(str(max(numbers, default=0)))
    per_row = min(CELLS_IN_ROW, int(ROOM / (6.2 * digits + 4))) if digits <= DIGITS else CELLS_IN_ROW
    y = top + 12
    label(parent, "ink name", canvas.MARGIN, y, "Memory")
    label(parent, "soft small", canvas.MARGIN + 62, y, _caption(subject, digits <= DIGITS))
    y += 12
    for s in shown:
        y = _strip(parent, subject, s, y, (per_row, digits <= DIGITS), prefix)
        last_part = s.part is not None and s.part == len(shown) - 2
        if hidden and last_part:
            y += 18
            label(parent, "soft small", LEFT, y, f"… {canvas.counted(hidden, f'more {subject.part_noun}')}")
            y += 6
    return _legend(parent, subject, shown, y, prefix)


def _caption(subject: Subject, numbered: bool) -> str:
    size = element_text(subject.whole)
    cell = f"a cell is one element ({size})" if size else "a cell is one element"
    return f"{cell}, numbered as {subject.whole.path} counts them" if numbered else cell


def _strip(parent: ET.Element, subject: Subject, s: Strip, y: float, cells: tuple[int, bool], prefix: str) -> float:
    y += 18
    faulty = s.tensor.path in subject.faulty
    x = canvas.MARGIN
    if s.part is not None:
        rectangle(parent, canvas.piece_class(s.part), x, y - 10, 12, 12, canvas.texture(s.part, prefix))
        x += 18
    path = f"{'⚠ ' if faulty else ''}{s.tensor.path}"
    label(parent, f"{'fault' if faulty else 'ink'} small mono name", x, y, path)
    room = int((canvas.WIDTH - canvas.MARGIN - x) / 7) - len(path) - 2
    text = _layout_text(s.tensor)
    label(parent, "soft small mono", x + 7 * len(path) + 14, y, canvas.shortened(text, room))
    y += 6
    if not s.tensor.drawable:
        rectangle(parent, "ghost", LEFT, y, ROOM, HEIGHT)
        label(parent, f"{'fault' if faulty else 'soft'} small", LEFT + 8, y + 13, s.tensor.obstacle)
        return y + HEIGHT + 4
    per_row, numbered = cells
    if s.places > per_row and s.step > 1 and s.step <= per_row:
        per_row -= per_row % s.step
    width = ROOM / cells[0]
    rows = min(-(-s.places // per_row), WHOLE_ROWS if s.part is None else PART_ROWS)
    for row in range(rows):
        first = row * per_row
        places = range(first, min(s.places, first + per_row))
        label(parent, "soft tiny mono end", LEFT - 8, y + 12, f"{first}")
        _row(parent, s, places, (LEFT, y, width), numbered, prefix)
        y += HEIGHT + 2
    left = s.places - rows * per_row
    if left > 0:
        y += 12
        label(parent, "soft tiny", LEFT, y - 1, f"… {canvas.counted(left, 'more place')}")
    return y + 2


def _row(
    parent: ET.Element, s: Strip, places: range, place: tuple[float, float, float], numbered: bool, prefix: str
) -> None:
    x0, y, width = place
    at = x0
    for look, run in groupby(places, key=lambda p: _look(s.cells.get(p), prefix)):
        wide = width * len(list(run))
        kind, texture = look
        rectangle(parent, kind, at, y, wide, HEIGHT, texture)
        at += wide
    ticks = "".join(f"M{canvas.number(x0 + i * width)} {canvas.number(y)}v{HEIGHT}" for i in range(1, len(places)))
    if ticks:
        add(parent, "path", "join", d=ticks)
    texts = add(parent, "text", "on tiny mono mid", y=canvas.number(y + 12.5))
    for i, p in enumerate(places):
        cell = s.cells.get(p)
        if cell is None:
            continue
        text = _cell_text(cell, numbered, width)
        if text:
            add(texts, "tspan", "ink" if cell.part is None else "", text, x=canvas.number(x0 + (i + 0.5) * width))
    if not len(texts):
        parent.remove(texts)


def _cell_text(cell: MemoryCell, numbered: bool, width: float) -> str:
    if cell.elements == 1:
        return str(cell.number) if numbered else ""
    text = f"{canvas.TIMES}{cell.elements}"
    return text if len(text) * 6.2 <= width else f"{canvas.TIMES}…"


def _look(cell: MemoryCell | None, prefix: str) -> tuple[str, str | None]:
    """Returns the CSS class of a cell's fill, and the texture over it or None. A cell that is None is padding."""
    if cell is None:
        return "gap", f"url(#{prefix}hatch)"
    if cell.part is None or cell.part == SEVERAL:
        return "plain", None
    return canvas.piece_class(cell.part), canvas.texture(cell.part, prefix)


def _layout_text(tensor: DrawnTensor) -> str:
    desc = tensor.desc
    if desc is None:
        return ""
    strides = "packed" if desc.strides is None else f"strides {numbers_text(desc.strides)}"
    total = desc.total_tensor_size_in_bytes
    text = f"{type_text(tensor)} {numbers_text(desc.sizes)} {strides}"
    if total is None:
        return f"{text}, more bytes than fit into a UINT64"
    implied = implied_size(desc.data_type, tensor.sizes, tensor.strides) if tensor.drawable else None
    beyond = f", {total - implied:,} of them after the last element" if implied is not None and total > implied else ""
    return f"{text}, {canvas.counted(total, 'byte')}{beyond}"


def _legend(parent: ET.Element, subject: Subject, shown: Sequence[Strip], y: float, prefix: str) -> float:
    """Draws a legend for the kinds of cells that occur, and returns the y coordinate of its end."""
    cells = [cell for s in shown for cell in s.cells.values()]
    entries: list[tuple[str, str | None, str, str]] = []
    if any(len(s.cells) < min(s.places, max(s.cells, default=0) + 1) for s in shown if s.cells):
        entries.append(("gap", f"url(#{prefix}hatch)", "", "padding, left as it is"))
    if any(cell.elements > 1 for cell in cells):
        entries.append(("plain", None, f"{canvas.TIMES}n", "n elements share the place"))
    if subject.axis is not None and any(cell.part is None for cell in cells):
        entries.append(("plain", None, "", "in no part"))
    if not entries:
        return y
    x, y = float(LEFT), y + 16
    for kind, texture, text, meaning in entries:
        rectangle(parent, kind, x, y - 11, 20, 14, texture)
        if text:
            label(parent, "ink tiny mono mid", x + 10, y - 0.5, text)
        label(parent, "soft small", x + 27, y, meaning)
        x += 50 + 6.3 * len(meaning)
    return y + 8
