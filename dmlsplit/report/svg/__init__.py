"""Pictures of operators as SVG: the tensor as a block cut along the axis, and the memory of every tensor below it.

Any descriptor can be drawn: text replaces tensors that have no sizes or layout, and faulty members are marked. Time and
size are bounded for every descriptor, equal arguments give equal pictures, and text from files is escaped.
"""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final, NamedTuple

from dmlsplit.checking.judging import validate
from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.report.svg import block, canvas, strips
from dmlsplit.report.svg.canvas import add, label, number, shortened
from dmlsplit.report.svg.subject import RANK_SHOWN, Subject, numbers_text, subject, type_text
from dmlsplit.system.printable import printable

FAULTS_SHOWN: Final = 4
OPERATORS_SHOWN: Final = 40
"""The most operators in one picture."""
_LISTED: Final = 12


class Drawing(NamedTuple):
    """An operator to draw; `report` has the faults to mark."""

    desc: OperatorDesc
    report: Report
    name: str | None = None


def picture(desc: OperatorDesc, report: Report | None = None, *, name: str | None = None) -> str:
    """Returns an SVG document with the picture of an operator, which follows the viewer's light or dark scheme.

    `report` (by default the newest release's) has the faults to mark. `name` is the operator's name in its file. Raises
    TypeError for anything but a descriptor of a Split or Join.
    """
    return document([Drawing(desc, report if report is not None else validate(desc), name)])


def document(drawings: Sequence[Drawing]) -> str:
    """Returns one SVG document with the pictures of several operators, one below the other; beyond OPERATORS_SHOWN only
    their number is given."""
    parts = [_draw(drawing) for drawing in drawings[:OPERATORS_SHOWN]]
    # Ids are unique if several documents share a page, and equal for equal operators.
    content = "".join(ET.tostring(part.root, "unicode") for part in parts)
    prefix = f"d{hashlib.sha256(content.encode()).hexdigest()[:10]}-"
    height = sum(part.height for part in parts)
    hidden = len(drawings) - len(parts)
    root = canvas.document_root(height + (40 if hidden else 0), " ".join(f"{prefix}{i}" for i in ("title", "desc")))
    add(root, "title", "", _all_titles(parts, hidden), id=f"{prefix}title")
    add(root, "desc", "", "\n".join(part.description for part in parts), id=f"{prefix}desc")
    add(root, "style").text = canvas.style()
    root.append(canvas.definitions(prefix))
    add(root, "rect", "back", width="100%", height="100%", rx="10")
    top = 0.0
    for drawing in drawings[:OPERATORS_SHOWN]:
        group, height, *_ = _draw(drawing, prefix)
        if top:
            group.set("transform", f"translate(0 {number(top)})")
            canvas.line(group, "rule", (canvas.MARGIN, 0), (canvas.WIDTH - canvas.MARGIN, 0))
        root.append(group)
        top += height
    if hidden:
        label(root, "soft", canvas.MARGIN, top + 22, f"… {canvas.counted(hidden, 'more operator')}")
    return ET.tostring(root, "unicode") + "\n"


def fragment(desc: OperatorDesc, report: Report, prefix: str) -> str:
    """Returns the text of one <svg> element that shows the tensors of the operator `desc` and what `report` found about
    them. The page that embeds it must contain `canvas.style()` and `canvas.definitions(prefix)`."""
    part = _draw(Drawing(desc, report), prefix)
    root = canvas.root(part.height, **{"aria-label": f"{part.title}. {part.description}"})
    root.append(part.root)
    return ET.tostring(root, "unicode")


class _Part(NamedTuple):
    root: ET.Element
    height: float
    title: str
    description: str


def _draw(drawing: Drawing, prefix: str = "") -> _Part:
    shown = subject(drawing.desc, drawing.report)
    group = ET.Element("g")
    name = "" if drawing.name is None else f"{printable(drawing.name, 60)} "
    title = _title(shown)
    heading = label(group, "ink big", canvas.MARGIN, 30, "")
    if name:
        add(heading, "tspan", "name", name)
    add(heading, "tspan", "" if name else "name", shown.type.c_name)
    label(group, "soft small", canvas.MARGIN, 49, shortened(title, 106))
    if len(shown.sizes) > RANK_SHOWN:
        bottom = block.placeholder(group, 54, f"{len(shown.sizes):,} dimensions are too many to draw")
    elif shown.sizes:
        bottom = block.draw(group, shown, 54, prefix)
    else:
        bottom = block.placeholder(group, 54, "no sizes to draw")
    bottom = strips.draw(group, shown, bottom + 8, prefix)
    bottom = _faults(group, shown, bottom)
    return _Part(group, bottom + 16, f"{name}{title}", _description(shown))


def _title(shown: Subject) -> str:
    whole = " ".join(filter(None, [type_text(shown.whole), numbers_text(shown.whole.sizes)]))
    parts = canvas.counted(len(shown.parts), shown.part_noun)
    if shown.part_noun == "output":
        return f"Split of {whole} along axis {shown.given_axis} into {parts}"
    return f"Join of {parts} along axis {shown.given_axis} into {whole}"


def _all_titles(parts: Sequence[_Part], hidden: int) -> str:
    if len(parts) == 1:
        return parts[0].title
    return f"{canvas.counted(len(parts) + hidden, 'operator')}, the first one: {parts[0].title}" if parts else "nothing"


def _description(shown: Subject) -> str:
    lengths = ["?" if length is None else str(length) for length in shown.lengths[:_LISTED]]
    more = f" and {len(shown.lengths) - _LISTED:,} more" if len(shown.lengths) > _LISTED else ""
    sentences = [f"Lengths along the axis: {', '.join(lengths) or 'none'}{more}."]
    strided = [
        f"{t.path} has strides {numbers_text(t.strides)}."
        for t in shown.tensors[: _LISTED + 1]
        if t.strides is not None
    ]
    faults = [f"Fault: {shortened(f'{d.path}: {d.message}', 200)}." for d in shown.faults[:FAULTS_SHOWN]]
    return " ".join([*sentences, *strided, *faults])


def _faults(parent: ET.Element, shown: Subject, top: float) -> float:
    if not shown.faults:
        return top
    y = top + 8
    for diagnostic in shown.faults[:FAULTS_SHOWN]:
        y += 17
        where = f"{diagnostic.path} " if diagnostic.path else ""
        label(parent, "fault small", canvas.MARGIN, y, shortened(f"⚠ {where}{diagnostic.message}", 106))
    hidden = len(shown.faults) - FAULTS_SHOWN
    if hidden > 0:
        y += 17
        label(parent, "fault small", canvas.MARGIN, y, f"… {canvas.counted(hidden, 'more fault')}")
    return y + 2


__all__ = ["Drawing", "document", "fragment", "picture"]
