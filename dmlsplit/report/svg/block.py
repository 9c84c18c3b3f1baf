"""Draws the whole tensor as a block cut along the axis."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final, NamedTuple

from dmlsplit.report.svg import canvas
from dmlsplit.report.svg.canvas import add, label, line, polygon, rectangle
from dmlsplit.report.svg.subject import Subject

LEFT: Final = 132
LONGEST, TALLEST, DEEPEST = 470.0, 120.0, 110.0
"""Room for the axis, for the dimensions after it, and for those before it (before they are foreshortened)."""
SHORTEST, LOWEST, FLATTEST = 150.0, 40.0, 14.0
READABLE: Final = 300.0
"""The length of an axis that cannot be drawn to scale."""
NARROWEST: Final = 22.0
GAP: Final = 5.0
SLANT: Final = 0.42
"""The foreshortening, in both coordinates, of the edges that lead away from the viewer."""
PARTS_SHOWN: Final = 12


class BlockEdge(NamedTuple):
    """One edge of the block, which stands for some dimensions."""

    dimensions: Sequence[int]
    sizes: Sequence[int]

    @property
    def length(self) -> int:
        return math.prod(self.sizes)

    @property
    def name(self) -> str:
        return f"Sizes[{']·['.join(map(str, self.dimensions))}]"

    @property
    def text(self) -> str:
        shown = f" {canvas.TIMES} ".join(map(str, self.sizes))
        return canvas.shortened(shown, 22)


def edges(subject: Subject) -> tuple[BlockEdge, BlockEdge, BlockEdge]:
    """Returns three edges of the block, along the axis, upwards and into the depth. Dimensions of size 1 are left out;
    several dimensions share an edge."""
    sizes = subject.sizes
    along = subject.axis if subject.axis is not None else len(sizes) - 1
    rest = [i for i, size in enumerate(sizes) if i != along and size != 1]
    before, after = [i for i in rest if i < along], [i for i in rest if i > along]
    if not (before and after):
        before, after = rest[:-1], rest[-1:]
    return _edge(sizes, [along]), _edge(sizes, after), _edge(sizes, before)


def _edge(sizes: Sequence[int], dimensions: Sequence[int]) -> BlockEdge:
    return BlockEdge(dimensions, [sizes[i] for i in dimensions])


class Piece(NamedTuple):
    """A part along the axis, or several drawn as one (`part` None)."""

    part: int | None
    length: int
    text: str


def pieces(subject: Subject) -> list[Piece]:
    """Returns the pieces to draw along the axis, in order; if there are more than PARTS_SHOWN parts, the middle ones
    become one piece."""
    lengths = subject.lengths
    shown = [Piece(i, length or 0, "?" if length is None else str(length)) for i, length in enumerate(lengths)]
    if len(shown) <= PARTS_SHOWN:
        return shown
    hidden = shown[PARTS_SHOWN - 2 : -1]
    middle = Piece(None, sum(piece.length for piece in hidden), f"… {len(hidden):,} more")
    return [*shown[: PARTS_SHOWN - 2], middle, shown[-1]]


def widths(lengths: Sequence[int], room: float) -> tuple[list[float], bool]:
    """Returns `room` divided in proportion to `lengths`, with no share below NARROWEST, and True if the shares are to
    scale."""
    wide = max(room, NARROWEST * len(lengths))
    total = sum(lengths)
    small = [total == 0 or length * wide < NARROWEST * total for length in lengths]
    rest = sum(length for length, is_small in zip(lengths, small, strict=True) if not is_small)
    left = wide - NARROWEST * sum(small)
    # A share above the minimum of the whole room may still be below the minimum of the remaining room.
    return [
        NARROWEST if is_small else max(NARROWEST, length / rest * left)
        for length, is_small in zip(lengths, small, strict=True)
    ], not any(small)


def draw(parent: ET.Element, subject: Subject, top: float, prefix: str) -> float:
    """Draws the block below `top` into `parent`, and returns the y coordinate of its end."""
    along, up, away = edges(subject)
    cut = pieces(subject) if subject.axis is not None else []
    extra = along.length - subject.total_length
    drawn = [piece.length for piece in cut] + ([extra] if cut and extra > 0 else [])
    longest = max(along.length, subject.total_length, 1)
    scale = min(LONGEST / longest, TALLEST / max(up.length, 1), DEEPEST / max(away.length, 1))
    width = longest * scale if longest * scale >= SHORTEST else READABLE
    height = min(max(up.length * scale, LOWEST), TALLEST)
    depth = min(max(away.length * scale, FLATTEST), DEEPEST) * SLANT
    skewed = [
        edge.name
        for edge, length in ((along, width / longest), (up, height / max(up.length, 1)))
        if not math.isclose(length, scale, rel_tol=0.02)
    ]
    if away.sizes and not math.isclose(depth / SLANT / max(away.length, 1), scale, rel_tol=0.02):
        skewed.append(away.name)
    shares, to_scale = widths(drawn or [longest], width - GAP * len(drawn))
    if not to_scale:
        skewed.append("the parts")

    rises = {piece: _rise(subject, piece, up) for piece in cut}
    base = top + 46 + depth + height * max([1.0, *rises.values()])
    x = float(LEFT)
    starts = []
    for share in shares:
        starts.append(x)
        x += share + GAP
    end = x - GAP
    if not cut:
        _fill(parent, "plain", None, Box(LEFT, base, shares[0], height, depth))
    for piece, left, share in zip(cut, starts, shares, strict=False):
        _piece(parent, subject, piece, Box(left, base, share, height * rises[piece], depth), prefix)
    if len(drawn) > len(cut):
        left, share = starts[-1], shares[-1]
        _outline(parent, Box(left, base, share, height, depth))
        label(parent, "fault small mid halo", left + share / 2, base - height / 2 + 4, f"{extra:,} left")
    _measure(parent, subject, along, (starts, shares), (top + 36, base, depth))
    _names(parent, up, away, base, height, depth, end)
    return _legend(parent, skewed, base + 24)


class Box(NamedTuple):
    """A part of the block: the corner of its front, the line it stands on, and its extents."""

    x: float
    base: float
    width: float
    height: float
    depth: float

    @property
    def faces(self) -> tuple[tuple[tuple[float, float], ...], ...]:
        """The corners, as (x, y), of the front, top and right faces."""
        x, base, width, height, depth = self
        top, end = base - height, x + width
        front = ((x, top), (end, top), (end, base), (x, base))
        lid = ((x, top), (x + depth, top - depth), (end + depth, top - depth), (end, top))
        side = ((end, top), (end + depth, top - depth), (end + depth, base - depth), (end, base))
        return front, lid, side


def _piece(parent: ET.Element, subject: Subject, piece: Piece, box: Box, prefix: str) -> None:
    if piece.part is None:
        _fill(parent, "plain", f"url(#{prefix}hatch)", box)
        _lines(parent, "ink", box, [piece.text, f"{piece.length:,}"])
        return
    if piece.length:
        _fill(parent, canvas.piece_class(piece.part), canvas.texture(piece.part, prefix), box)
    if not piece.length or subject.parts[piece.part].path in subject.faulty:
        _outline(parent, box)
    _lines(parent, "on" if piece.length else "fault", box, [f"[{piece.part}]", piece.text])


def _rise(subject: Subject, piece: Piece, up: BlockEdge) -> float:
    """Returns the height of a part relative to the whole, limited to a range that can be drawn; 1 if it is unknown."""
    sizes = subject.parts[piece.part].sizes if piece.part is not None else None
    if sizes is None or len(sizes) != len(subject.sizes) or not up.length:
        return 1.0
    return min(max(math.prod(sizes[i] for i in up.dimensions) / up.length, 0.5), 1.25)


def _fill(parent: ET.Element, kind: str, fill: str | None, box: Box) -> None:
    for face, light in zip(box.faces, ("", "shine", "shade"), strict=True):
        polygon(parent, kind, *face)
        if light:
            polygon(parent, light, *face)
        elif fill:
            polygon(parent, "", *face, fill=fill)
        polygon(parent, "cut", *face)


def _outline(parent: ET.Element, box: Box) -> None:
    for face in box.faces:
        polygon(parent, "wrong", *face)


def _lines(parent: ET.Element, kind: str, box: Box, texts: Sequence[str]) -> None:
    """Draws centred lines of text on the box's front: upright if they fit, else rotated by 90 degrees, else only the
    last line, or none."""
    x, base, width, height, _ = box
    longest = max(map(len, texts)) * 7 + 4
    middle = (x + width / 2, base - height / 2)
    if longest <= width and height >= 36:
        for i, text in enumerate(texts):
            weight = " name" if i else ""
            label(parent, f"{kind} small mono mid{weight}", middle[0], middle[1] - 3 + 15 * i, text)
        return
    joined = ": ".join(texts)
    for text in (joined, texts[-1]):
        size = len(text) * 7 + 4
        if size <= width:
            label(parent, f"{kind} small mono mid", middle[0], middle[1] + 4, text)
            return
        if size <= height:
            label(parent, f"{kind} small mono mid", middle[0] + 4, middle[1], text, turned=True)
            return


def _measure(
    parent: ET.Element,
    subject: Subject,
    along: BlockEdge,
    cuts: tuple[Sequence[float], Sequence[float]],
    rows: tuple[float, float, float],
) -> None:
    """Draws the measure above the block, with the whole tensor's length along the axis, or its fault. `cuts` are the
    parts' x coordinates and widths, `rows` the y coordinates of measure and base, and the depth."""
    (starts, shares), (y, base, depth) = cuts, rows
    end, whole_end = starts[-1] + shares[-1], _end_of_whole(subject, along, starts, shares)
    left, right = starts[0] + depth, whole_end + depth
    line(parent, "rule", (left, y + 5), (left, y - 5))
    line(parent, "rule", (left, y), (right, y))
    line(parent, "rule", (right, y + 5), (right, y - 5))
    if whole_end < end:
        line(parent, "wrong", (right, y - 5), (right, y + 8), (whole_end, y + 8 + depth), (whole_end, base + 8))
    text = f"{along.name} = {along.text}"
    wrong = True
    if subject.axis is None:
        text = f"Axis {subject.given_axis:,} is out of range; {text}"
    elif subject.whole.sizes is None:
        text = f"Axis {subject.axis}: the whole tensor is unknown"
    elif None not in subject.lengths and subject.total_length != along.length:
        text = f"Axis {subject.axis}: {text}, the {subject.part_noun}s have {subject.total_length}"
    else:
        text = f"Axis {subject.axis}: {text}"
        wrong = "Axis" in subject.faulty
    label(parent, f"{'fault' if wrong else 'ink'} name small mid", max((left + right) / 2, 190), y - 9, text)


def _end_of_whole(subject: Subject, along: BlockEdge, starts: Sequence[float], shares: Sequence[float]) -> float:
    """Returns the x coordinate at which the whole tensor ends: before the last part's end if the parts are too long
    together."""
    end = starts[-1] + shares[-1]
    if subject.whole.sizes is None or subject.axis is None or subject.total_length <= along.length:
        return end
    covered = 0
    for piece, start, share in zip(pieces(subject), starts, shares, strict=True):
        if covered + piece.length > along.length:
            return start + share * (along.length - covered) / piece.length
        covered += piece.length
    return end


def _names(
    parent: ET.Element, up: BlockEdge, away: BlockEdge, base: float, height: float, depth: float, end: float
) -> None:
    if up.sizes:
        x = LEFT - 12.0
        line(parent, "rule", (x, base), (x, base - height))
        line(parent, "rule", (x - 4, base), (x + 4, base))
        line(parent, "rule", (x - 4, base - height), (x + 4, base - height))
        label(parent, "soft small mono end", x - 8, base - height / 2 - 3, canvas.shortened(up.name, 14))
        label(parent, "ink small mono end name", x - 8, base - height / 2 + 12, canvas.shortened(up.text, 14))
    if away.sizes:
        x = end + 12
        line(parent, "rule", (x, base), (x + depth, base - depth))
        x += depth / 2 + 10
        room = int((canvas.WIDTH - canvas.MARGIN - x) / 7)
        label(parent, "soft small mono", x, base - depth / 2 - 2 + 4, canvas.shortened(away.name, room))
        label(parent, "ink small mono name", x, base - depth / 2 + 17, canvas.shortened(away.text, room))


def _legend(parent: ET.Element, skewed: Sequence[str], y: float) -> float:
    """Draws the note about what is not to scale, and returns the y coordinate of its end."""
    if not skewed:
        return y - 8
    label(parent, "soft tiny", LEFT, y - 2, f"not to scale: {', '.join(skewed)}")
    add(parent, "path", "rule", d=f"M{LEFT - 16} {canvas.number(y - 6)}l4-5 4 5 4-5")
    return y + 6


def placeholder(parent: ET.Element, top: float, text: str) -> float:
    """Draws a box with `text` for an operator without any sizes, and returns the y coordinate of its end."""
    rectangle(parent, "ghost", LEFT, top + 8, LONGEST, 60)
    label(parent, "fault small mid", LEFT + LONGEST / 2, top + 42, text)
    return top + 84
