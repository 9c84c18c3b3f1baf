"""Makes the parts of a file from its source and the changed model.

An unchanged message is a range of the source: unknown fields, the order of fields and weights stay as they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import onnx

from dmlsplit.mending.fields import VARINT, Field, Part, Span, fields, integer, joined, message, messages
from dmlsplit.mending.source import (
    ATTRIBUTE,
    FUNCTION,
    GRAPH,
    NODE_OF_FUNCTION,
    NODE_OF_GRAPH,
    SourceModel,
    origin,
)

_IMPORT: Final = onnx.ModelProto.OPSET_IMPORT_FIELD_NUMBER
_IMPORT_OF_FUNCTION: Final = onnx.FunctionProto.OPSET_IMPORT_FIELD_NUMBER
_IR_VERSION: Final = onnx.ModelProto.IR_VERSION_FIELD_NUMBER


def assembled(source: SourceModel, model: onnx.ModelProto) -> list[Part]:
    """Returns the parts (new bytes and ranges of the source) of a file with `model`, which differs from source.model
    in nodes, IR version and opsets only."""
    found: list[Part] = []
    functions, imports = iter(model.functions), iter(model.opset_import)
    for field in fields(source.data, 0, source.size):
        parts: list[Part] | None = None
        if field.is_message(GRAPH):
            parts = _message(field, _content(source, field, model.graph.node, NODE_OF_GRAPH))
        elif field.is_message(FUNCTION):
            function = next(functions)
            inside = messages(source.data, field.content, field.end, _IMPORT_OF_FUNCTION)
            imports_at = {
                inner.start: changed
                for inner, new in zip(inside, function.opset_import, strict=True)
                if (changed := _import(source, inner, new)) is not None
            }
            parts = _message(field, _content(source, field, function.node, NODE_OF_FUNCTION, imports_at))
        elif field.is_message(_IMPORT):
            parts = _import(source, field, next(imports))
        elif (field.number, field.kind) == (_IR_VERSION, VARINT) and model.ir_version != source.model.ir_version:
            parts = [integer(field.number, model.ir_version)]
        found += [Span(field.start, field.end)] if parts is None else parts
    return joined(found)


def _message(field: Field, content: list[Part] | None) -> list[Part] | None:
    return None if content is None else message(field.number, content)


def _import(source: SourceModel, field: Field, new: onnx.OperatorSetIdProto) -> list[Part] | None:
    old = onnx.OperatorSetIdProto.FromString(source.data[field.content : field.end])
    return None if old.version == new.version else message(field.number, [new.SerializeToString()])


@dataclass(slots=True)
class _Node:
    """A node to be written; `start` is where the source has it, None where it is new or moved."""

    parts: list[Part]
    changed: bool
    start: int | None


def _content(
    source: SourceModel,
    graph: Field,
    nodes: Iterable[onnx.NodeProto],
    number: int,
    others: Mapping[int, list[Part]] | None = None,
) -> list[Part] | None:
    """Returns the content of the graph or function at field `graph` with the given nodes, as parts; None if nothing
    changed. `number` is the field number of nodes in it.

    `others` maps the start of another field to the parts that replace it.
    """
    others = others or {}
    written = _written(source, nodes, number)
    staying = {node.start for node in written}
    changed = bool(others) or any(node.changed for node in written)
    found: list[Part] = []
    place = behind_the_last = 0
    for field in fields(source.data, graph.content, graph.end):
        if not field.is_message(number):
            found += others.get(field.start, [Span(field.start, field.end)])
            continue
        changed |= field.start not in staying
        while field.start in staying:
            node = written[place]
            place += 1
            found += node.parts
            if node.start == field.start:
                break
        behind_the_last = len(found)
    rest = [part for node in written[place:] for part in node.parts]
    found[behind_the_last:behind_the_last] = rest
    return found if changed else None


def _written(source: SourceModel, nodes: Iterable[onnx.NodeProto], number: int) -> list[_Node]:
    """Returns the nodes to write, each with its parts and its start in the source; a new node, or one that comes
    earlier than in the source, has None for its start."""
    found = []
    last = -1
    for node in nodes:
        place = origin(node)
        if place is None:
            found.append(_Node(message(number, [node.SerializeToString()]), True, None))
            continue
        (field,) = fields(source.data, place.start, place.end)
        inside = _attributes(source, node, field)
        stays = place.start > last
        last = max(last, place.start)
        parts: list[Part] = [place] if inside is None else message(number, inside)
        found.append(_Node(parts, not stays or inside is not None, place.start if stays else None))
    return found


def _attributes(source: SourceModel, node: onnx.NodeProto, place: Field) -> list[Part] | None:
    """Returns the content of an unchanged node whose attributes hold changed graphs, as parts; None if no graph
    changed."""
    edited = {
        field.start: message(field.number, content)
        for graph, field in source.graphs_in(node, place)
        if (content := _content(source, field, graph.node, NODE_OF_GRAPH)) is not None
    }
    if not edited:
        return None
    found: list[Part] = []
    starts = sorted(edited)
    for field in fields(source.data, place.content, place.end):
        first, behind = (bisect_left(starts, end) for end in (field.content, field.end))
        if field.is_message(ATTRIBUTE) and first < behind:
            inside: list[Part] = []
            for inner in fields(source.data, field.content, field.end):
                inside += edited.get(inner.start, [Span(inner.start, inner.end)])
            found += message(ATTRIBUTE, inside)
        else:
            found.append(Span(field.start, field.end))
    return found
