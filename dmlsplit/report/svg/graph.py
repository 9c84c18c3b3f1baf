"""Pictures of a graph's memory: the contents of every buffer after each dispatch that CompileGraph makes."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from typing import Final

from dmlsplit.graphs.descriptors import GraphDesc
from dmlsplit.graphs.execution import Execution
from dmlsplit.graphs.memory import compile_program
from dmlsplit.graphs.program import BufferView, CompiledGraph, Dispatch
from dmlsplit.graphs.reading import Program
from dmlsplit.graphs.traits import traits_of
from dmlsplit.report.svg import canvas
from dmlsplit.report.svg.canvas import add, label, line, rectangle, shortened
from dmlsplit.rules.graph_faults import happens
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import Release

ROWS_SHOWN: Final = 40
_LEFT: Final = 150.0
_GAP: Final = 16.0
_TOP: Final = 52.0
_ROW: Final = 40.0
_STRIP: Final = 24.0


def picture(graph: GraphDesc, directml: Release | str, title: str) -> str:
    """Returns an SVG document, which follows the viewer's light or dark scheme, with a row for each dispatch of a graph
    and a column for each buffer.

    A range of memory has the fill and the number of the dispatch that wrote it last; a dispatch's inputs are outlined.
    Wrong values, and tensors that do not fit, have a dashed frame. Raises ValueError for a release whose graph compiler
    was never observed; Unmodelled or Crash if the graph cannot be predicted.
    """
    release = find_release(directml)
    traits = traits_of(release)
    if traits is None:
        raise ValueError(f"graph compilation was not observed with {release.judged_by}")
    program = Program(graph, traits)
    drawing = _Drawing(compile_program(program, refuses=False), program.buffers, graph)
    return drawing.document(title, f"{release.judged_by}")


class _Drawing:
    """Draws one picture."""

    def __init__(self, compiled: CompiledGraph, buffers: dict[str, int], graph: GraphDesc) -> None:
        self.compiled = compiled
        inputs: dict[str, int] = {
            f"input {i}": tensor.desc.total_tensor_size_in_bytes or 0
            for i, tensor in enumerate(graph.inputs)
            if tensor is not None and tensor.desc is not None
        }
        self.sizes = {**inputs, **buffers}
        order = {"input": 0, "temporary": 1, "output": 2}
        names = sorted(self.sizes, key=lambda name: (order[name.split()[0]], int(name.split()[1])))
        touched = dict(self.sizes)
        for dispatch in compiled.dispatches:
            for view in (*(view for _, view in dispatch.reads), dispatch.writes):
                touched[view.buffer] = max(touched[view.buffer], view.end)
        width = canvas.WIDTH - canvas.MARGIN - _LEFT - _GAP * (len(names) - 1)
        self.scale = width / sum(touched.values())
        self.left: dict[str, float] = {}
        place = _LEFT
        for name in names:
            self.left[name] = place
            place += touched[name] * self.scale + _GAP
        self.state: list[tuple[BufferView, int]] = []
        """The writes, each with the index of its dispatch, later ones last."""

    def document(self, title: str, subtitle: str) -> str:
        shown = self.compiled.dispatches[:ROWS_SHOWN]
        faults = self._faults()
        notes = [f"output {i} is wrong: {message}" for i, message in faults] + self._overflows()
        height = _TOP + _ROW * len(shown) + 22 * max(len(notes), 1) + 24
        key = hashlib.sha256(f"{title}{subtitle}{self.sizes}".encode()).hexdigest()[:10]
        root = canvas.document_root(height, f"g{key}-title")
        add(root, "title", "", f"{title}, {subtitle}. {' '.join(notes)}", id=f"g{key}-title")
        add(root, "style").text = canvas.style()
        add(root, "rect", "back", width="100%", height="100%", rx="10")
        label(root, "ink name", canvas.MARGIN, 22, f"{title} ({subtitle})")
        for name, left in self.left.items():
            label(root, "soft small", left, _TOP - 8, name)
        for i, dispatch in enumerate(shown):
            self._row(root, i, dispatch, last=i == len(shown) - 1, wrong={output for output, _ in faults})
        for i, note in enumerate(notes or ["every output is right"]):
            y = _TOP + _ROW * len(shown) + 22 * (i + 1)
            label(root, "fault" if notes else "soft", canvas.MARGIN, y, shortened(note, 110))
        return ET.tostring(root, "unicode") + "\n"

    def _faults(self) -> list[tuple[int, str]]:
        if self._overflows():
            return []
        faults = Execution(self.compiled).faults
        return [(i, happens(wrong.fault)) for i, wrong in enumerate(faults) if wrong is not None]

    def _overflows(self) -> list[str]:
        found = []
        for i, dispatch in enumerate(self.compiled.dispatches):
            for view in (*(view for _, view in dispatch.reads), dispatch.writes):
                if view.end > self.sizes[view.buffer]:
                    refused = f"{view.end} bytes do not fit into the {self.sizes[view.buffer]} of {view.buffer}"
                    found.append(f"refused: {i + 1} {dispatch.name}: {refused}")
        return found[:1]

    def _row(self, root: ET.Element, i: int, dispatch: Dispatch, *, last: bool, wrong: set[int]) -> None:
        top = _TOP + _ROW * i
        self.state.append((dispatch.writes, i))
        label(root, "ink mono", canvas.MARGIN, top + 16, f"{i + 1} {dispatch.name}")
        for name, left in self.left.items():
            rectangle(root, "gap", left, top, self.sizes[name] * self.scale, _STRIP)
        for view, writer in self.state:
            self._piece(root, top, view, writer)
        for _, view in dispatch.reads:
            x, width = self._place(view)
            rectangle(root, "ghost", x + 1, top - 3, width - 2, _STRIP + 6)
        x, width = self._place(dispatch.writes)
        line(root, "rule", (x, top + _STRIP + 4), (x + width, top + _STRIP + 4))
        framed = [dispatch.writes] if dispatch.writes.end > self.sizes[dispatch.writes.buffer] else []
        framed += [home for output in wrong if last and (home := self.compiled.homes[output].region) is not None]
        for x, width in map(self._place, framed):
            rectangle(root, "wrong", x, top - 4, width, _STRIP + 8)

    def _piece(self, root: ET.Element, top: float, view: BufferView, writer: int) -> None:
        x, width = self._place(view)
        rectangle(root, canvas.piece_class(writer), x, top, width, _STRIP)
        if width > 14:
            label(root, "on mid", x + width / 2, top + 16, str(writer + 1))

    def _place(self, view: BufferView) -> tuple[float, float]:
        return self.left[view.buffer] + view.offset * self.scale, (view.end - view.offset) * self.scale
