"""The bytes of a model to be written back, and the model without its weights.

Weights are neither read nor copied in memory: the file is mapped into memory, and ranges of it are copied from file to
file.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias

import onnx

from dmlsplit.formats.limits import Limit
from dmlsplit.formats.onnx.loading import external_locations, parse
from dmlsplit.formats.onnx.protobuf import has_graphs, text
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
)
from dmlsplit.models.given import known_sizes, write_sizes
from dmlsplit.system.errors import InputError
from dmlsplit.system.input_files import open_input

Edit: TypeAlias = tuple[int, int, list[Part]]
"""The offsets at which a field of the source begins and ends, and the parts that replace it."""

_COPIED_AT_ONCE: Final = 1 << 22

IR_VERSION: Final = onnx.ModelProto.IR_VERSION_FIELD_NUMBER
IMPORT: Final = onnx.ModelProto.OPSET_IMPORT_FIELD_NUMBER
IMPORT_OF_FUNCTION: Final = onnx.FunctionProto.OPSET_IMPORT_FIELD_NUMBER
GRAPH: Final = 7
FUNCTION: Final = 25
NODE_OF_GRAPH: Final = 1
NODE_OF_FUNCTION: Final = 7
ATTRIBUTE: Final = 5
GRAPH_OF_ATTRIBUTE: Final = 6
GRAPHS_OF_ATTRIBUTE: Final = 11
_VALUES: Final = (11, 12, 13)
"""The fields of a graph's inputs, outputs and other values."""
_EXTERNAL_DATA: Final = 13
_TENSOR_KEPT: Final = (1, 2, 8)
"""The fields of a large tensor that are kept: dimensions, data type and name."""
_IS_EXTERNAL: Final = integer(14, onnx.TensorProto.EXTERNAL)
"""The data location that replaces the data."""

_HOLDING: Final[Mapping[str, Mapping[int, str]]] = {
    "model": {GRAPH: "graph", 20: "training", FUNCTION: "function"},
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


class Message(NamedTuple):
    """The content of a message in the source: its kind, a key of _HOLDING or "tensor", and the offsets at which it
    begins and ends."""

    kind: str
    start: int
    end: int


class Inner(NamedTuple):
    """A graph inside a node: the fields of its attribute and of the graph itself, and the graph without its weights."""

    attribute: Field
    field: Field
    graph: onnx.GraphProto


class NodeBytes(NamedTuple):
    """The offsets at which a node begins in the source, with its key, and at which its content begins and ends."""

    start: int
    content: int
    end: int


class SourceModel:
    """A serialized model; `origin` gives the range of bytes of a node."""

    def __init__(self, data: Buffer) -> None:
        """Makes the SourceModel of a serialized model. Raises InputError if the bytes are not a model."""
        self.data = data
        self.size = len(data)
        self._left_out: list[str] = []
        whole = Message("model", 0, self.size)
        reduced = self._reduced(whole)
        left = b"".join(self.bytes_of(part) for part in joined(reduced))
        self.model = parse(left)
        """The model without the data of large tensors; the doc_string of a node is its place, which `origin` reads."""
        own = (field for field, _ in self.inside(whole))
        self.fields = [field for field in own if field.number in (IR_VERSION, GRAPH, IMPORT, FUNCTION)]
        """The model's own fields that a change may concern."""
        self.inner: dict[int, Sequence[Inner]] = {}
        """The graphs inside a node, by the offset at which the node starts."""
        self.imports: dict[int, Sequence[Field]] = {}
        """The opset imports of a function, by the offset at which it starts."""
        self._mark_all()
        self.edits: dict[int, list[Edit]] = {}
        """The fields of a graph that are replaced, by the offset at which the graph's content begins."""
        found = external_locations(self.model) if b"location" in left else ()
        self.locations: Sequence[str] = list(dict.fromkeys([*found, *self._left_out]))
        """The files of external data, by the names in the model, each once."""

    def fix_sizes(self, sizes: Mapping[str, int]) -> None:
        """Replaces symbolic dimensions by their sizes: in the model, and in the file to be written. Raises InputError
        for a symbol that the model does not have."""
        write_sizes(self.model.graph, known_sizes(self.model.graph, sizes))
        graphs = [field for field in self.fields if field.is_message(GRAPH)]
        graphs += [each.field for inner in self.inner.values() for each in inner]
        for graph in graphs:
            self.edits[graph.content] = list(self._with_sizes(graph, sizes))

    def _with_sizes(self, graph: Field, sizes: Mapping[str, int]) -> Iterator[Edit]:
        """Yields an edit for each value of a graph whose shape has one of these symbols."""
        for field in fields(self.data, graph.content, graph.end):
            if field.number not in _VALUES or field.kind != LENGTH_DELIMITED:
                continue
            value = onnx.ValueInfoProto.FromString(self.data[field.content : field.end])
            dims = [dim for dim in value.type.tensor_type.shape.dim if dim.dim_param in sizes]
            for dim in dims:
                dim.dim_value = sizes[dim.dim_param]
            if dims:
                yield field.start, field.end, message(field.number, [value.SerializeToString()])

    def bytes_of(self, part: Part) -> bytes:
        return part if isinstance(part, bytes) else self.data[part.start : part.end]

    def original(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """Returns a new copy of the source's node, with its doc_string; a node that is not from the source is returned
        itself."""
        place = origin(node)
        if place is None:
            return node
        found = onnx.NodeProto()
        found.ParseFromString(self.data[place.content : place.end])
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
                # mapped pages count as this process's memory
                page = start - start % mmap.PAGESIZE
                self.data.madvise(mmap.MADV_DONTNEED, page, min(_COPIED_AT_ONCE, self.size - page))

    def inside(self, outer: Message) -> Iterator[tuple[Field, Message | None]]:
        """Yields the fields of a message, each with the message in it; None for a field without tensors."""
        holding = _HOLDING.get(outer.kind, {})
        for field in fields(self.data, outer.start, outer.end):
            kind = holding.get(field.number) if field.kind == LENGTH_DELIMITED else None
            yield field, None if kind is None else Message(kind, field.content, field.end)

    def _reduced(self, outer: Message) -> list[Part]:
        """Returns the parts of a message without the data of large tensors and without training information. Appends to
        `self._left_out` the external files named in the omitted parts."""
        if outer.end - outer.start <= Limit.ONNX_VALUE.most:
            return [Span(outer.start, outer.end)]
        if outer.kind == "tensor":
            self._left_out += self._locations_in(outer)
        found: list[Part] = []
        for field, inner in self.inside(outer):
            if outer.kind == "tensor":
                found += [Span(field.start, field.end)] if field.number in _TENSOR_KEPT else []
            elif inner is None:
                found.append(Span(field.start, field.end))
            elif inner.kind == "training":
                self._left_out += self._locations_in(inner)
            else:
                found += message(field.number, self._reduced(inner))
        return found if outer.kind != "tensor" else [*found, _IS_EXTERNAL]

    def _locations_in(self, outer: Message) -> Iterator[str]:
        """Yields the names of external data files that tensors in a message give, as spelled there."""
        todo = [outer]
        while todo:
            outer = todo.pop()
            for field, inner in self.inside(outer):
                if outer.kind == "tensor" and field.is_message(_EXTERNAL_DATA):
                    entry = onnx.StringStringEntryProto.FromString(self.data[field.content : field.end])
                    if entry.key == "location" and entry.value:
                        yield text(entry.value)
                if inner is not None:
                    todo.append(inner)

    def _mark_all(self) -> None:
        """Writes the places of all nodes of the model's graph and functions into their doc_strings, as `_mark` does.
        Raises InputError if the model has no graph, or several pieces of one."""
        _only([field for field in self.fields if field.is_message(GRAPH)], "the model's graph")
        functions = iter(self.model.functions)
        for field in self.fields:
            if field.is_message(GRAPH):
                self._mark(self.model.graph.node, Message("graph", field.content, field.end))
            elif field.is_message(FUNCTION):
                function = Message("function", field.content, field.end)
                self._mark(next(functions).node, function)
                own = self.inside(function)
                self.imports[field.start] = [each for each, _ in own if each.is_message(IMPORT_OF_FUNCTION)]

    def _mark(self, nodes: Iterable[onnx.NodeProto], body: Message) -> None:
        """Writes the place of each node (the offsets of its field in the source) into its doc_string, in place, also in
        graphs inside nodes, and records these graphs in `self.inner`. `body` is the graph or function."""
        for node, (place, held) in zip(nodes, self._messages("node", body), strict=True):
            inner = list(self._inner(node, held)) if has_graphs(node) else []
            if inner:
                self.inner[place.start] = inner
            for each in inner:
                self._mark(each.graph.node, Message("graph", each.field.content, each.field.end))
            node.doc_string = f"{place.start}-{place.content}-{place.end}"

    def _messages(self, kind: str, outer: Message) -> Iterator[tuple[Field, Message]]:
        """Yields the messages of a kind in a message, each with its field."""
        for field, inner in self.inside(outer):
            if inner is not None and inner.kind == kind:
                yield field, inner

    def _inner(self, node: onnx.NodeProto, outer: Message) -> Iterator[Inner]:
        """Yields the graphs in a node's attributes; `outer` is the node's message. Raises InputError for a graph that
        is written in several pieces."""
        for attribute, (field, inner) in zip(node.attribute[:], self._messages("attribute", outer), strict=True):
            if not (attribute.HasField("g") or attribute.graphs):
                continue
            held = [each for each, _ in self._messages("graph", inner)]
            single = [each for each in held if each.number == GRAPH_OF_ATTRIBUTE]
            if single:
                yield Inner(field, _only(single, f"the graph of attribute '{text(attribute.name)}'"), attribute.g)
            several = [each for each in held if each.number == GRAPHS_OF_ATTRIBUTE]
            yield from (Inner(field, *each) for each in zip(several, attribute.graphs, strict=True))


def origin(node: onnx.NodeProto) -> NodeBytes | None:
    """Returns the place of a node of SourceModel.model in the source; None for a new node."""
    numbers = text(node.doc_string).split("-")
    if len(numbers) != 3 or not (numbers[0].isdecimal() and numbers[1].isdecimal() and numbers[2].isdecimal()):
        return None
    return NodeBytes(int(numbers[0]), int(numbers[1]), int(numbers[2]))


def _only(found: list[Field], what: str) -> Field:
    """Returns the only field in `found`. Raises InputError, which names it `what`, if there are several or none: a
    parser would merge several."""
    if len(found) != 1:
        raise InputError(f"{what} is stored in {len(found)} pieces; such models are not written back")
    return found[0]


@contextmanager
def mapped(path: str | os.PathLike[str]) -> Iterator[Buffer]:
    """Context manager that yields the bytes of a file, mapped into memory. Raises InputError if it is not a regular
    file or larger than a model can be, OSError if it cannot be opened."""
    with open_input(path) as stream:
        status = os.fstat(stream.fileno())
        if status.st_size > Limit.ONNX_FILE.most:
            message = (
                f"{status.st_size} bytes are more than a protobuf message can have; save the model with external data"
            )
            raise InputError(message)
        if status.st_size == 0:
            yield b""
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
