"""Casts in a row that ONNX Runtime merges when all nodes are placed and fused: outside of fused graphs, a Cast that
only Casts read is removed, and with it each of these that gives the type from which it casts.

Source: RemoveDuplicateCastTransformer of insert_cast_transformer.cc of ONNX Runtime; observed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Set
from typing import Final, NamedTuple

from dmlsplit.models.graph import Node, Value
from dmlsplit.onnxruntime.node_placement import in_graphs, placed
from dmlsplit.onnxruntime.operators import asked, is_on_dml
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.onnxruntime.session_graph import SessionGraph


class _Kind(enum.Enum):
    BOOL = enum.auto()
    SIGNED = enum.auto()
    UNSIGNED = enum.auto()
    FLOAT = enum.auto()


_TYPES: Final[Mapping[str, tuple[_Kind, int]]] = {
    "BOOL": (_Kind.BOOL, 1),
    **{f"INT{bits}": (_Kind.SIGNED, bits) for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": (_Kind.UNSIGNED, bits) for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("FLOAT16", "BFLOAT16"), (_Kind.FLOAT, 16)),
    "FLOAT": (_Kind.FLOAT, 32),
    "DOUBLE": (_Kind.FLOAT, 64),
}
"""The kinds of the element types between which Casts are merged, and their bits."""
_NEVER: Final = frozenset({(_Kind.SIGNED, _Kind.UNSIGNED)})
"""Kinds between which any Cast may change a value."""
_IF_LARGER: Final = frozenset(
    {(_Kind.UNSIGNED, _Kind.SIGNED), (_Kind.SIGNED, _Kind.FLOAT), (_Kind.UNSIGNED, _Kind.FLOAT)}
)
"""Kinds between which a Cast changes no value if the second type has more bits than the first."""


class MergedCasts(NamedTuple):
    """The Casts of an optimized graph that are removed, and the tensors that are read in place of others."""

    gone: Set[Node]
    read: Mapping[Value, Value]


def merged_casts(graph: SessionGraph) -> MergedCasts | None:
    """Returns the Casts of a graph that are merged; None if it is not known which are, as it is not known which nodes
    are in fused graphs, or of which types tensors are."""
    casts = [node for node in optimized(graph).nodes if node.op_type == "Cast"]
    if not any(_is_cast(each) for node in casts for each in node.readers):
        return MergedCasts(frozenset(), {})
    return graph.once(("merged casts", graph.runtime), lambda: _merged(graph, casts))


def casts_without_kernel(graph: SessionGraph) -> Iterator[tuple[Node, str]]:
    """Yields each Cast on DirectML that reads, once the Casts in front of it are removed, a type of which DirectML has
    no Cast, with that type."""
    merged = merged_casts(graph)
    if merged is None or not merged.gone:
        return
    for node in optimized(graph).nodes:
        source = merged.read.get(node.inputs[0]) if _is_cast(node) and node not in merged.gone else None
        read = None if source is None else graph.data_type(source.known_type)
        if read is None or not placed(graph, node).on_dml:
            continue
        cell = asked(node.proto, (read.lower(),), graph.types_of_tensors(node.index)[1], graph.opset, graph.runtime)
        if cell is not None and not is_on_dml(cell):
            yield node, read


def _merged(graph: SessionGraph, casts: list[Node]) -> MergedCasts | None:
    in_graph = dict(zip(casts, in_graphs(graph, casts), strict=True))
    gone: set[Node] = set()
    read: dict[Value, Value] = {}
    for node in sorted(casts, key=lambda each: each.number):
        readers = [each for each in node.outputs[0].readers if each not in gone and in_graph.get(each) is not True]
        if node in gone or not any(map(_is_cast, readers)) or in_graph[node]:
            continue
        source, target = node.inputs[0], node.outputs[0]
        source = read.get(source, source)
        types = graph.data_type(source.known_type), graph.data_type(target.known_type)
        behind = [each for each in readers if _is_cast(each)]
        results = [graph.data_type(each.outputs[0].known_type) for each in behind]
        if None in (*types, *results) or None in (in_graph[each] for each in (node, *behind)):
            return None
        is_lossy = _is_lossy(*types)
        if is_lossy and any(_is_lossy(result, types[1]) for result in results):
            continue
        back = [
            e for e, result in zip(behind, results, strict=True) if result == types[0] and not e.outputs[0].is_output
        ]
        for each in back:
            gone.add(each)
            read[each.outputs[0]] = source
        kept = [each for each in behind if each not in back]
        if len(readers) < len(target.readers) or len(behind) < len(readers) or target.is_output or target.is_captured:
            continue
        if graph.runtime.traits.keeps_casts and _has_to_stay(graph, node, kept, is_lossy=is_lossy):
            continue
        gone.add(node)
        read[target] = source
    return MergedCasts(gone, {value: _last(read, other) for value, other in read.items()})


def _last(read: Mapping[Value, Value], value: Value) -> Value:
    while value in read:
        value = read[value]
    return value


def _has_to_stay(graph: SessionGraph, node: Node, behind: list[Node], *, is_lossy: bool) -> bool:
    """True for a Cast that is lossy in front of one to BOOL, or on another provider than one behind it."""
    to_bool = any(graph.data_type(each.outputs[0].known_type) == "BOOL" for each in behind)
    return (is_lossy and to_bool) or len({placed(graph, each).on_dml for each in (node, *behind)}) > 1


def _is_cast(node: Node) -> bool:
    return node.op_type == "Cast"


def _is_lossy(source: str | None, target: str | None) -> bool:
    """True if a Cast between two types may change a value, as ONNX Runtime decides it."""
    if source is None or target is None or source not in _TYPES or target not in _TYPES:
        return True
    (kind, bits), (other, other_bits) = _TYPES[source], _TYPES[target]
    if (kind, other) in _NEVER or (kind is _Kind.FLOAT and other is not _Kind.FLOAT):
        return True
    if (kind, other) in _IF_LARGER:
        return other_bits <= bits
    return bits > other_bits or {source, target} == {"FLOAT16", "BFLOAT16"}
