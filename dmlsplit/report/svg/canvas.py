"""Elements of a picture: palette, styles, and SVG elements with their text made safe."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Final

from dmlsplit.system.printable import printable

WIDTH: Final = 760
MARGIN: Final = 20
TIMES: Final = "\u00d7"

PIECES: Final = ("#7cc4ee", "#f0b83d", "#4dbb9d", "#dd9dc1", "#f3e96b", "#6ba6d6", "#e88a4a", "#b9bec6")
"""Fills of the parts, in turn: tints of the palette of Okabe and Ito, which colour-blind people can distinguish."""
PIECE_INK: Final = "#14181f"
TEXTURES: Final = (
    "",
    "M-2 6L6-2M2 10L10 2",
    "M2 2h.01M6 6h.01",
    "M0 4h8",
    "M-2 2L6 10M2-2L10 6",
    "M4 0v8",
    "M0 4h8M4 0v8",
)
"""Lines drawn over the fills, in a tile of 8 by 8; their number and that of the fills have no common divisor."""

# class -> declarations; the second value, if any, is the dark one.
LIGHT_AND_DARK: Final[dict[str, tuple[str, str]]] = {
    "back": ("fill:#ffffff", "fill:#14181f"),
    "ink": ("fill:#1b2330", "fill:#e8edf4"),
    "soft": ("fill:#566174", "fill:#a3b0c2"),
    "fault": ("fill:#b3261e", "fill:#ff9d94"),
    "rule": ("fill:none;stroke:#566174;stroke-width:1", "fill:none;stroke:#a3b0c2;stroke-width:1"),
    "ghost": (
        "fill:none;stroke:#566174;stroke-width:1.2;stroke-dasharray:4 3",
        "fill:none;stroke:#a3b0c2;stroke-width:1.2;stroke-dasharray:4 3",
    ),
    "wrong": (
        "fill:none;stroke:#b3261e;stroke-width:2;stroke-dasharray:5 3",
        "fill:none;stroke:#ff9d94;stroke-width:2;stroke-dasharray:5 3",
    ),
    "gap": ("fill:#eef1f5", "fill:#232a35"),
    "hatch": ("stroke:#8a95a6;stroke-width:1", "stroke:#657185;stroke-width:1"),
    "plain": ("fill:#dbe1ea", "fill:#3a4454"),
    "halo": (
        "paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round",
        "paint-order:stroke;stroke:#14181f;stroke-width:3px;stroke-linejoin:round",
    ),
    "join": ("stroke:#ffffff;stroke-width:1;fill:none", "stroke:#14181f;stroke-width:1;fill:none"),
}
_FIXED: Final[dict[str, str]] = {
    **{f"p{i}": f"fill:{fill}" for i, fill in enumerate(PIECES)},
    "on": f"fill:{PIECE_INK}",
    "texture": f"fill:none;stroke:{PIECE_INK};stroke-width:1.4;stroke-linecap:round;stroke-opacity:.2",
    "cut": f"fill:none;stroke:{PIECE_INK};stroke-width:1;stroke-linejoin:round",
    "shade": f"fill:{PIECE_INK};fill-opacity:.2",
    "shine": "fill:#ffffff;fill-opacity:.45",
    "name": "font-weight:600;unicode-bidi:isolate",
    "mono": "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace",
    "mid": "text-anchor:middle",
    "end": "text-anchor:end",
    "tiny": "font-size:10px",
    "small": "font-size:11.5px",
    "big": "font-size:15px",
}


def style(scope: str = ".dms") -> str:
    """Returns the style sheet of a picture whose outermost element matches `scope`; it is light in print."""
    light = {**{name: both[0] for name, both in LIGHT_AND_DARK.items()}, **_FIXED}
    dark = {name: both[1] for name, both in LIGHT_AND_DARK.items()}
    return (
        f"{scope} text{{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}}"
        + _sheet(scope, light)
        + f"@media screen and (prefers-color-scheme:dark){{{_sheet(scope, dark)}}}"
    )


def _sheet(scope: str, declarations: dict[str, str]) -> str:
    return "".join(f"{scope} .{name}{{{value}}}" for name, value in declarations.items())


def root(height: float, **attributes: str) -> ET.Element:
    """Returns a new svg element, `height` units high, that holds a picture."""
    size = {"width": str(WIDTH), "height": number(height)}
    return ET.Element(
        "svg", {"class": "dms", "viewBox": f"0 0 {WIDTH} {number(height)}", "role": "img", **size, **attributes}
    )


def document_root(height: float, labelled_by: str) -> ET.Element:
    """Returns a new root element of a standalone document, labelled by the elements with these ids."""
    return root(height, **{"xmlns": "http://www.w3.org/2000/svg", "aria-labelledby": labelled_by})


def definitions(prefix: str) -> ET.Element:
    """Returns a new defs element with the patterns that parts and padding are filled with; their ids begin with
    `prefix`."""
    defs = ET.Element("defs")
    for i, path in enumerate(TEXTURES):
        if path:
            _pattern(defs, f"{prefix}t{i}", 8, path, "texture")
    _pattern(defs, f"{prefix}hatch", 6, "M-1 1L1-1M0 6L6 0M5 7L7 5", "hatch")
    return defs


def _pattern(defs: ET.Element, id: str, size: int, path: str, kind: str) -> None:
    # Patterns get their styles where they are defined; the class selects the same style sheet.
    pattern = add(defs, "pattern", id=id, width=str(size), height=str(size), patternUnits="userSpaceOnUse")
    add(pattern, "path", kind, d=path)


def add(parent: ET.Element, tag: str, kind: str = "", text: str | None = None, **attributes: str) -> ET.Element:
    """Adds a child with CSS classes `kind`, text (made printable and escaped) and attributes to `parent`, and returns
    it."""
    child = ET.SubElement(parent, tag, {"class": kind, **attributes} if kind else attributes)
    if text is not None:
        child.text = printable(text, None)
    return child


def number(value: float) -> str:
    """Returns a number as text with at most one decimal, without a trailing ".0"."""
    return f"{value:.1f}".removesuffix(".0").replace("-0.", "-.") if value else "0"


def rectangle(
    parent: ET.Element, kind: str, x: float, y: float, width: float, height: float, texture: str | None = None
) -> None:
    """Adds to `parent` a rectangle of CSS class `kind` and, if a texture is given, another rectangle over it filled
    with the texture."""
    place = {"x": number(x), "y": number(y), "width": number(width), "height": number(height)}
    add(parent, "rect", kind, **place)
    if texture:
        add(parent, "rect", "", **place, fill=texture)


def polygon(parent: ET.Element, kind: str, *points: tuple[float, float], fill: str = "") -> None:
    path = f"M{'L'.join(f'{number(x)} {number(y)}' for x, y in points)}Z"
    add(parent, "path", kind, d=path, **({"fill": fill} if fill else {}))


def line(parent: ET.Element, kind: str, *points: tuple[float, float]) -> None:
    add(parent, "path", kind, d=f"M{'L'.join(f'{number(x)} {number(y)}' for x, y in points)}")


def label(parent: ET.Element, kind: str, x: float, y: float, text: str, turned: bool = False) -> ET.Element:
    """Adds a line of text to `parent` and returns its element; `turned`: rotated upwards about its anchor."""
    child = add(parent, "text", kind, text, x=number(x), y=number(y))
    if turned:
        child.set("transform", f"rotate(-90 {number(x)} {number(y)})")
    return child


def piece_class(index: int) -> str:
    """Returns the CSS class for the fill of a part."""
    return f"p{index % len(PIECES)}"


def texture(index: int, prefix: str) -> str | None:
    """Returns the fill value for the texture of a part; None if it has none."""
    i = index % len(TEXTURES)
    return f"url(#{prefix}t{i})" if TEXTURES[i] else None


def shortened(text: str, limit: int) -> str:
    """Returns the text or, if it has more than `limit` characters, its beginning with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def counted(count: int, noun: str) -> str:
    """Returns a number with its noun: "1 output", "1,018 outputs"."""
    number = f"{count:,}" if count < 10**18 else f"about 10^{len(str(count)) - 1}"
    return f"{number} {noun if count == 1 else noun + 's'}"
