"""A picture of the table in benchmarks/README.md: the first case of each family, and who takes how long."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

TABLE: Final = Path(__file__).parents[1] / "benchmarks" / "README.md"
PEERS: Final = {
    "dmlsplit": "#000000",
    "numpy": "#0072b2",
    "torch": "#d55e00",
    "onnxruntime": "#009e73",
    "openvino": "#cc79a7",
    "cv2 split": "#e69f00",
}
"""Contestants and their colours (Okabe and Ito's, which colour-blind people can tell apart)."""
LEFT, WIDTH, ROW, TOP = 320, 880, 20, 64
LOW, HIGH = 0.1, 100.0


def rows() -> list[tuple[str, dict[str, float]]]:
    """Titles and ratios to memcpy, of the first case of each family of the table."""
    text = TABLE.read_text("utf-8").split("<!-- results -->")[1]
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    head = next(cells for cells in table if cells[0] == "case" and set(PEERS) <= set(cells))
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for cells in table:
        name, _, title = cells[0].partition(" ")
        family = re.match(r"(join-)?[a-z](?=\d*$)", name)
        if len(cells) < len(head) - 1 or family is None or family[0] in found:
            continue
        ratios = {
            peer: float(cell.split()[0])
            for peer, cell in zip(head, cells, strict=False)
            if peer in PEERS and re.match(r"[\d.]+( |$)", cell)
        }
        if "dmlsplit" in ratios:
            found[family[0]] = f"{name} {title}", ratios
    return list(found.values())


def x_of(ratio: float) -> float:
    span = math.log(HIGH / LOW)
    return LEFT + (WIDTH - LEFT - 20) * math.log(min(max(ratio, LOW), HIGH) / LOW) / span


def svg() -> str:
    """An SVG that stands by itself; white ground, so that it reads on dark pages too."""
    cases = rows()
    height = TOP + ROW * len(cases) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img" aria-labelledby="t d">',
        '<title id="t">Time of a split or join as a multiple of memcpy</title>',
        '<desc id="d">One line for the first case of each family; numbers are in benchmarks/README.md.</desc>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="12" y="20" font-size="14" font-weight="bold">'
        "Time as a multiple of memcpy of the same bytes, one thread (left is faster)</text>",
    ]
    for i, (peer, color) in enumerate(PEERS.items()):
        x = 18 + 130 * i
        parts += [_mark(peer, color, x, 40), f'<text x="{x + 10}" y="44">{peer}</text>']
    for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100):
        x, bottom = x_of(tick), TOP + ROW * len(cases)
        stroke = "#555555" if tick == 1 else "#dddddd"
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="{stroke}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>')
    for i, (title, ratios) in enumerate(cases):
        y = TOP + ROW * i + ROW // 2
        parts.append(f'<text x="12" y="{y + 4}">{escape(title)}</text>')
        # Ours last, on top.
        for peer in sorted(ratios, key=lambda peer: peer == "dmlsplit"):
            parts.append(_mark(peer, PEERS[peer], x_of(ratios[peer]), y, f"{peer}: {ratios[peer]:g}"))
    return "\n".join([*parts, "</svg>", ""])


def _mark(peer: str, color: str, x: float, y: float, title: str = "") -> str:
    inside = f"<title>{title}</title>" if title else ""
    if peer == "dmlsplit":
        return f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="{color}">{inside}</rect>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{color}" fill-opacity="0.85">{inside}</circle>'
