"""The bytes of a model to be written back, and the model in them without its weights.

Weights are neither read nor copied: the file is mapped into memory, and ranges of it are copied from file to file.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import onnx

from dmlsplit.formats.limits import Limit
from dmlsplit.formats.onnx.loading import external_locations, parse
from dmlsplit.formats.onnx.protobuf import graphs_of
from dmlsplit.formats.onnx.tensors import text
from dmlsplit.mending.fields import (
    LENGTH_DELIMITED,
    Buffer,
    Field,
    Part,
    Span,
    fields,
    integer,
    joined,
    message,
    messages,
)
from dmlsplit.system.errors import InputError
from dmlsplit.system.input_files import open_input

_COPIED_AT_ONCE: Final = 1 << 22

GRAPH: Final = 7
FUNCTION: Final = 25
NODE_OF_GRAPH: Final = 1
NODE_OF_FUNCTION: Final = 7
ATTRIBUTE: Final = 5
GRAPH_OF_ATTRIBUTE: Final = 6
GRAPHS_OF_ATTRIBUTE: Final = 11
_TRAINING: Final = 20
_EXTERNAL_DATA: Final = 13
_TENSOR_KEPT: Final = (1, 2, 8)
"""The fields that are kept of a large tensor: dimensions, data type and name."""
_DATA_LOCATION: Final = 14

_HOLDING: Final[Mapping[str, Mapping[int, str]]] = {
    "model": {GRAPH: "graph", FUNCTION: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {NODE_OF_GRAPH: "node", 5: "tensor", 15: "sparse"},
    "function": {NODE_OF_FUNCTION: "node", 11: "attribute"},
    "node": {ATTRIBUTE: "attribute"},
    "attribute": {
        5: "tensor",
        GRAPH_OF_ATTRIBUTE: "graph",
        22: "sparse",
        10: "tensor",
        GRAPHS_OF_ATTRIBUTE: "graph",
        23: "sparse",
    },
    "sparse": {1: "tensor", 2: "tensor"},
}
"""For each message, the fields with messages that contain tensors. Source: onnx.proto."""


class SourceModel:
    """A serialized model; `origin` gives the range of bytes of a node."""

    def __init__(self, data: Buffer) -> None:
        """Raises InputError if the bytes are not a model."""
        self.data = data
        self.size = len(data)
        self._left_out: list[str] = []
        reduced = self._reduced("model", 0, self.size)
        self.model = parse(b"".join(self.bytes_of(part) for part in joined(reduced)))
        """Without the data of large tensors; the doc_string of a node is its offset, which `origin` reads."""
        self._mark_nodes()
        self.locations: Sequence[str] = list(dict.fromkeys([*external_locations(self.model), *self._left_out]))
        """The files of external data, by the names in the model, each once."""

    def bytes_of(self, part: Part) -> bytes:
        return part if isinstance(part, bytes) else self.data[part.start : part.end]

    def original(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """Returns a new copy of a node as the source has it, with its doc_string; a node that is not from the source
        is returned itself."""
        place = origin(node)
        if place is None:
            return node
        (field,) = fields(self.data, place.start, place.end)
        found = onnx.NodeProto()
        found.ParseFromString(self.data[field.content : field.end])
        return found

    def copy(self, part: Part) -> Iterator[bytes | memoryview]:
        """Yields the bytes of a part in pieces; each piece must be used before the next one is requested."""
        if isinstance(part, bytes):
            yield part
            return
        for start in range(part.start, part.end, _COPIED_AT_ONCE):
            with memoryview(self.data) as view, view[start : min(start + _COPIED_AT_ONCE, part.end)] as piece:
                yield piece
            if isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                # Mapped pages count as this process's memory.
                page = start - start % mmap.PAGESIZE
                self.data.madvise(mmap.MADV_DONTNEED, page, min(_COPIED_AT_ONCE, self.size - page))

    def _reduced(self, kind: str, start: int, end: int) -> list[Part]:
        """Returns the parts of the message between two byte offsets, without the data of large tensors and without
        training information. Appends to `self._left_out` the external files that the left out parts name."""
        if end - start <= Limit.ONNX_VALUE.most:
            return [Span(start, end)]
        found: list[Part] = []
        if kind == "tensor":
            self._left_out += self._locations_in(kind, start, end)
            kept = [f for f in fields(self.data, start, end) if f.number in _TENSOR_KEPT]
            return [*(Span(f.start, f.end) for f in kept), integer(_DATA_LOCATION, onnx.TensorProto.EXTERNAL)]
        for field in fields(self.data, start, end):
            inside = _HOLDING[kind].get(field.number) if field.kind == LENGTH_DELIMITED else None
            if inside is not None:
                found += message(field.number, self._reduced(inside, field.content, field.end))
            elif kind == "model" and field.is_message(_TRAINING):
                self._left_out += self._locations_in("training", field.content, field.end)
            else:
                found.append(Span(field.start, field.end))
        return found

    def _locations_in(self, kind: str, start: int, end: int) -> Iterator[str]:
        """Yields the external data files that tensors in the message between two offsets name, as spelled there."""
        todo = [(kind, start, end)]
        while todo:
            kind, start, end = todo.pop()
            for field in fields(self.data, start, end):
                if kind == "tensor" and field.is_message(_EXTERNAL_DATA):
                    entry = onnx.StringStringEntryProto.FromString(self.data[field.content : field.end])
                    if entry.key == "location" and entry.value:
                        yield text(entry.value)
                inside = _HOLDING.get(kind, {}).get(field.number)
                if inside is not None and field.kind == LENGTH_DELIMITED:
                    todo.append((inside, field.content, field.end))

    def _mark_nodes(self) -> None:
        graph = _only(list(messages(self.data, 0, self.size, GRAPH)), "the model's graph")
        self._mark(self.model.graph.node, graph.content, graph.end, NODE_OF_GRAPH)
        functions = messages(self.data, 0, self.size, FUNCTION)
        for function, field in zip(self.model.functions, functions, strict=True):
            self._mark(function.node, field.content, field.end, NODE_OF_FUNCTION)

    def _mark(self, nodes: Iterator[onnx.NodeProto], start: int, end: int, number: int) -> None:
        for node, place in zip(nodes, messages(self.data, start, end, number), strict=True):
            for graph, field in self.graphs_in(node, place):
                self._mark(graph.node, field.content, field.end, NODE_OF_GRAPH)
            node.doc_string = f"{place.start}-{place.end}"

    def graphs_in(self, node: onnx.NodeProto, place: Field) -> Iterator[tuple[onnx.GraphProto, Field]]:
        """Yields the graphs in a node's attributes, each with its field in the source; `place` is the node's field.
        Raises InputError for a graph that is written in several pieces."""
        for attribute, field in self.attributes_in(node, place):
            single = list(messages(self.data, field.content, field.end, GRAPH_OF_ATTRIBUTE))
            if single:
                yield attribute.g, _only(single, f"the graph of attribute '{text(attribute.name)}'")
            several = messages(self.data, field.content, field.end, GRAPHS_OF_ATTRIBUTE)
            yield from zip(attribute.graphs, several, strict=True)

    def attributes_in(self, node: onnx.NodeProto, place: Field) -> Iterator[tuple[onnx.AttributeProto, Field]]:
        """Yields the attributes of a node that contain graphs, each with its field in the source; `place` is the
        node's field."""
        if not any(True for attribute in node.attribute for _ in graphs_of(attribute)):
            return
        found = messages(self.data, place.content, place.end, ATTRIBUTE)
        for attribute, field in zip(node.attribute, found, strict=True):
            if any(True for _ in graphs_of(attribute)):
                yield attribute, field


def origin(node: onnx.NodeProto) -> Span | None:
    """Returns the byte range, key included, that a node of SourceModel.model has in the source; None for a new node."""
    start, dash, end = text(node.doc_string).partition("-")
    return Span(int(start), int(end)) if dash and start.isdecimal() and end.isdecimal() else None


def _only(found: list[Field], what: str) -> Field:
    """Returns the only field in `found`. Raises InputError, which names it `what`, if there are several or none: a
    parser would merge several."""
    if len(found) != 1:
        raise InputError(f"{what} is written in {len(found)} pieces, which is not written back")
    return found[0]


@contextmanager
def mapped(path: str | os.PathLike[str]) -> Iterator[Buffer]:
    """Context manager that gives the bytes of a file, mapped into memory. Raises InputError if it is no regular file
    or larger than a model can be, OSError if it cannot be opened."""
    with open_input(path) as stream:
        status = os.fstat(stream.fileno())
        if status.st_size > Limit.ONNX_FILE.most:
            message = f"{status.st_size} bytes are more than a protobuf message holds; save it with external data"
            raise InputError(message)
        if status.st_size == 0:
            yield b""
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
