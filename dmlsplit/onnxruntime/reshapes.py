"""Concats that put together the shape for a Reshape: ONNX Runtime puts a constant in the place of most of them.

Source: reshape_fusion.cc of ONNX Runtime. Of the elements of the shape a size that the Reshape keeps becomes 0, and one
other that is not known -1; where there are more of these the Concat stays. What is constant in an outer graph is not
known. Observed with all versions.

"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.onnx.protobuf import domain_of, first_output

if TYPE_CHECKING:
    from dmlsplit.onnxruntime.session_graph import SessionGraph

_MAY_VANISH: Final = frozenset({"Add", "Sub", "Mul", "Div", "Cast", "Identity"})
"""Operators that are removed where they do nothing."""


class Fate(enum.Enum):
    """The fate of a Concat in optimization."""

    STAYS = "it stays"
    CONSTANT = "it becomes a constant"
    STAYS_AT_FIRST = "it stays up to 1.24.4; later it may become a constant"
    UNKNOWN = "whether it becomes a constant is not known"


@dataclass(frozen=True, slots=True)
class Shape:
    """A Concat's fate, and the Reshape that it is the shape for; `settles`: whether what that gives may be of a static
    shape, which inference does not find here."""

    fate: Fate
    reshape: int = -1
    settles: bool = False


def shapes_for_reshapes(graph: SessionGraph) -> dict[int, Shape]:
    """The Concats of a graph that may not stay as they are, by index."""
    if graph.options.optimization < 1:
        return {}
    concats = [i for i, node in graph.alive if node.op_type == "Concat" and domain_of(node) == ""]
    found = {index: _shape(graph, index) for index in concats if not graph.removed(index)}
    return {index: shape for index, shape in found.items() if shape.fate is not Fate.STAYS}


def _shape(graph: SessionGraph, index: int) -> Shape:
    node = graph.nodes[index]
    name = graph.source(first_output(node))
    readers = graph.ends(name)
    if len(readers) != 1 or readers[0] < 0:
        return Shape(Fate.STAYS)
    reader = graph.nodes[readers[0]]
    if reader.op_type == "Cast" and graph.scope.type_of(name)[0] == "INT64":
        return Shape(Fate.UNKNOWN)  # one that does nothing is removed
    if reader.op_type != "Reshape" or len(reader.input) < 2 or graph.source(reader.input[1]) != name:
        return Shape(Fate.STAYS)
    data = graph.source(reader.input[0])
    if data == name or any(a.name == "allowzero" and a.i for a in reader.attribute):
        return Shape(Fate.STAYS)
    whole = graph.shape(data)
    unknown = Shape(Fate.UNKNOWN, readers[0], is_static(whole))
    elements: list[int] = []
    elsewhere = 0
    for read in (graph.source(each) for each in node.input):
        if read in graph.constants:
            values = graph.scope.integers(read)
            if values is None:
                return unknown
            elements += values
            continue
        sizes = graph.shape(read)
        if sizes is None or not is_static(sizes):
            return unknown
        if sizes != (1,):
            return Shape(Fate.STAYS)
        tensor, place = _size_of(graph, read)
        kept = place == len(elements)
        elsewhere += kept and tensor != data
        elements.append(0 if kept and tensor == data else -1)
    others = elements.count(-1)
    if others <= 1:
        kept_sizes = [whole[i] if whole is not None and i < len(whole) else None for i in range(len(elements))]
        known = [isinstance(kept, int) for kept, size in zip(kept_sizes, elements, strict=True) if size == 0]
        return Shape(Fate.CONSTANT, readers[0], is_static(whole) if others else all(known))
    if any(_may_vanish(graph, read) for read in node.input):
        return unknown
    return Shape(Fate.STAYS_AT_FIRST if others - elsewhere <= 1 else Fate.STAYS, readers[0], is_static(whole))


def _size_of(graph: SessionGraph, name: str) -> tuple[str, int | None]:
    """The tensor that a name is one size of, by Shape, Gather and Unsqueeze, and which; ("", None) for any other."""
    read = name
    place: int | None = None
    for op_type in ("Unsqueeze", "Gather", "Shape"):
        origin = graph.origin(read)
        node = None if origin is None else graph.nodes[origin]
        if node is None or node.op_type != op_type or (op_type == "Shape" and node.attribute):
            return "", None
        if any(name not in graph.constants for name in node.input[1:]):
            return "", None
        if op_type == "Gather":
            found = graph.scope.integers(node.input[1])
            place = found[0] if found is not None and len(found) == 1 else None
        read = node.input[0]
    return graph.source(read), place


def _may_vanish(graph: SessionGraph, name: str) -> bool:
    origin = graph.origin(name)
    return origin is not None and graph.nodes[origin].op_type in _MAY_VANISH
