"""Assembles a file from its source and the changed model.

An unchanged message is a range of the source: unknown fields, the order of fields and weights stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import onnx

from dmlsplit.formats.onnx.protobuf import subgraphs
from dmlsplit.mending.fields import VARINT, Field, Part, Span, integer, joined, message
from dmlsplit.mending.source import (
    FUNCTION,
    GRAPH,
    IMPORT,
    IR_VERSION,
    NODE_OF_FUNCTION,
    NODE_OF_GRAPH,
    Edit,
    NodeBytes,
    SourceModel,
    origin,
)


def assembled(source: SourceModel, model: onnx.ModelProto) -> list[Part]:
    """Returns the parts (new bytes and ranges of the source) of a file with `model`, which differs from source.model
    in nodes, IR version and opsets only, and has the source's edits."""
    parts = list(_edited(0, source.size, _edits(source, model)))
    return joined(parts)


def _edits(source: SourceModel, model: onnx.ModelProto) -> Iterator[Edit]:
    """Yields an edit (begin, end, new parts) for each changed field of the model itself."""
    imports = zip(source.model.opset_import, model.opset_import, strict=True)
    functions = zip(source.model.functions, model.functions, strict=True)
    for field in source.fields:
        content: list[Part] | None = None
        if field.is_message(GRAPH):
            content = _content(source, field, source.model.graph.node, model.graph.node, NODE_OF_GRAPH)
        elif field.is_message(FUNCTION):
            old, new = next(functions)
            imported = zip(source.imports[field.start], old.opset_import, new.opset_import, strict=True)
            versions = list(_imports(imported))
            content = _content(source, field, old.node, new.node, NODE_OF_FUNCTION, versions)
        elif field.is_message(IMPORT):
            yield from _imports([(field, *next(imports))])
        elif (field.number, field.kind) == (IR_VERSION, VARINT) and model.ir_version != source.model.ir_version:
            yield field.start, field.end, [integer(IR_VERSION, model.ir_version)]
        if content is not None:
            yield field.start, field.end, message(field.number, content)


def _edited(start: int, end: int, edits: Iterable[Edit]) -> Iterator[Part]:
    """Yields a range of the source with some of its fields replaced, which are given in order."""
    for first, behind, parts in edits:
        yield Span(start, first)
        yield from parts
        start = behind
    yield Span(start, end)


def _imports(found: Iterable[tuple[Field, onnx.OperatorSetIdProto, onnx.OperatorSetIdProto]]) -> Iterator[Edit]:
    """Yields an edit for each import of an opset whose version changed. `found` has, for each import, its field in the
    source, the old and the new one."""
    for field, old, new in found:
        if old.version != new.version:
            yield field.start, field.end, message(field.number, [new.SerializeToString()])


@dataclass(slots=True)
class _Node:
    """A node to be written; `start` is its offset in the source, None if it is new or moved."""

    parts: list[Part]
    changed: bool
    start: int | None


def _content(
    source: SourceModel,
    body: Field,
    old: Iterable[onnx.NodeProto],
    new: Iterable[onnx.NodeProto],
    number: int,
    others: Sequence[Edit] = (),
) -> list[Part] | None:
    """Returns the content of the graph or function at field `body` with the nodes `new` in place of `old`, as parts;
    None if nothing changed. `number` is the field number of nodes in it, `others` are changed fields other than nodes.
    """
    written = list(_written(source, new, number))
    staying = {node.start for node in written}
    edits: list[Edit] = []
    first, behind = 0, body.content
    for node in old:
        at = origin(node)
        assert at is not None
        place = first
        while at.start in staying and written[place].start != at.start:
            place += 1
        here = written[first : place + (at.start in staying)]
        first += len(here)
        behind = at.end
        if len(here) != 1 or here[0].changed:
            edits.append((at.start, at.end, [part for each in here for part in each.parts]))
    rest = [part for each in written[first:] for part in each.parts]
    edits += [(behind, behind, rest)] if rest else []
    edits += [*others, *source.edits.get(body.content, ())]
    edits.sort(key=_start)
    return list(_edited(body.content, body.end, edits)) if edits else None


def _written(source: SourceModel, nodes: Iterable[onnx.NodeProto], number: int) -> Iterator[_Node]:
    """Yields the nodes to write, each with its parts and its start in the source; a new node, or one that comes
    earlier than in the source, has None for its start."""
    last = -1
    for node in nodes:
        place = origin(node)
        if place is None:
            yield _Node(message(number, [node.SerializeToString()]), True, None)
            continue
        attributes = list(_attributes(source, node, place)) if place.start in source.inner else []
        stays = place.start > last
        last = max(last, place.start)
        parts: list[Part] = [Span(place.start, place.end)]
        if attributes:
            parts = message(number, _edited(place.content, place.end, attributes))
        yield _Node(parts, not stays or bool(attributes), place.start if stays else None)


def _attributes(source: SourceModel, node: onnx.NodeProto, place: NodeBytes) -> Iterator[Edit]:
    """Yields an edit for each attribute of an unchanged node with graphs inside that holds a changed graph."""
    edits: dict[Field, list[Edit]] = {}
    for inner, graph in zip(source.inner[place.start], subgraphs(node), strict=True):
        content = _content(source, inner.field, inner.graph.node, graph.node, NODE_OF_GRAPH)
        if content is not None:
            field = inner.field
            edits.setdefault(inner.attribute, []).append((field.start, field.end, message(field.number, content)))
    for attribute, inside in edits.items():
        parts = message(attribute.number, _edited(attribute.content, attribute.end, sorted(inside, key=_start)))
        yield attribute.start, attribute.end, parts


def _start(edit: Edit) -> int:
    return edit[0]
