"""Graph optimization before placement: Identities are removed, and common subexpressions are computed once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import onnx

from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.models.scope import Scope

RANDOM: Final = frozenset({"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli"})
"""Operators that compute something else each time."""

_SHARED_TYPES: Final = frozenset({"FLOAT16", "FLOAT", "DOUBLE", "INT32", "INT64"})
_MOST_SHARED: Final = 8
"""Elements of a constant that is shared with its equals."""

_Type: TypeAlias = onnx.AttributeProto
_COMPARED: Final = frozenset({_Type.FLOAT, _Type.INT, _Type.STRING, _Type.FLOATS, _Type.INTS, _Type.STRINGS})
"""Types of the attributes that are compared: a node with any other is equal to none."""

_Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """`removed`: the nodes that are gone, by index. `sources`: for names the names that are read in their place."""

    removed: frozenset[int]
    sources: Mapping[str, str]


NOTHING_REMOVED: Final = Kept(frozenset(), {})


def without_identities(nodes: Sequence[onnx.NodeProto], outputs: set[str]) -> Kept:
    """The nodes without the Identities that give no output of the graph."""
    sources, removed = {}, set()
    for index, node in enumerate(nodes):
        identity = node.op_type == "Identity" and domain_of(node) == "" and len(node.input) == len(node.output) == 1
        if identity and node.output[0] not in outputs:
            removed.add(index)
            sources[node.output[0]] = node.input[0]
    return Kept(frozenset(removed), _ends(sources))


def merged(
    nodes: Sequence[onnx.NodeProto],
    read: Sequence[Sequence[str]],
    outputs: set[str],
    scope: Scope,
    kept: Kept,
    order: Iterable[int],
) -> Kept:
    """The nodes that are left of those where the elimination of common subexpressions walks over them in an order.

    `read`: the names that each node reads. Of equal outputs the first is read in place of the others, outputs of the
    graph excepted: these stay, and so do the nodes that give them. It compares operator, inputs and attributes, not how
    many outputs there are.
    """
    order = list(order)
    sources = {**kept.sources, **_equal_constants(nodes, scope)}
    values = dict(sources)
    first: dict[_Key, str] = {}
    touched = []
    for index in order:
        node = nodes[index]
        key = _key(node, [values.get(name, name) for name in node.input], index)
        for i, name in enumerate(node.output):
            values[name] = first.setdefault((i, *key), name) if name else ""
            if values[name] != name and name not in outputs:
                sources[name] = values[name]
                touched.append(index)
    sources = _ends(sources)
    needed = outputs | {sources.get(name, name) for index in order for name in read[index]}
    removed = {i for i in touched if needed.isdisjoint(nodes[i].output)}
    return Kept(kept.removed | removed, sources)


def _ends(sources: Mapping[str, str]) -> dict[str, str]:
    """Where each name leads to at last; a circle ends anywhere."""
    found: dict[str, str] = {}
    for name in sources:
        way: dict[str, None] = {}
        while name in sources and name not in found and name not in way:
            way[name] = None
            name = sources[name]
        end = found.get(name, name)
        found.update(dict.fromkeys(way, end))
    return found


def _key(node: onnx.NodeProto, read: Sequence[str], index: int) -> _Key:
    """A key that equal nodes share; the index of a node that is equal to none."""
    comparable = all(attribute.type in _COMPARED for attribute in node.attribute)
    if domain_of(node) != "" or node.op_type in RANDOM or not comparable:
        return (index,)
    return (node.op_type, tuple(read), *sorted(attribute.SerializeToString() for attribute in node.attribute))


def _equal_constants(nodes: Sequence[onnx.NodeProto], scope: Scope) -> dict[str, str]:
    """For each small constant the first that has the same type, shape and elements."""
    names = [tensor.name for tensor in scope.graph.initializer if math.prod(tensor.dims) <= _MOST_SHARED]
    names += [name for node in nodes if node.op_type == "Constant" for name in node.output[:1]]
    first: dict[_Key, str] = {}
    found = {}
    for name in names:
        data_type = scope.type_of(name)[0]
        array = scope.elements(name) if data_type in _SHARED_TYPES else None
        if array is not None and array.size <= _MOST_SHARED:
            found[name] = first.setdefault((data_type, array.shape, array.tobytes()), name)
    return found
