"""Casts in a row that ONNX Runtime merges when all nodes are placed and fused: outside of fused graphs, a Cast that
only Casts read is removed, and with it each of these that gives the type from which it casts. Casts of ONNX Runtime's
own are among them, around nodes for which the CPU has no kernel of half precision.

Source: insert_cast_transformer.cc of ONNX Runtime; observed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.formats.onnx.protobuf import has_graphs
from dmlsplit.models.graph import Node, Value
from dmlsplit.onnxruntime.node_placement import in_graphs, placed
from dmlsplit.onnxruntime.operators import asked, is_on_dml
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.onnxruntime.passes.constant_folding import takes_halves
from dmlsplit.onnxruntime.session_graph import SessionGraph

_HALF: Final = "FLOAT16"


class _Kind(enum.Enum):
    BOOL = enum.auto()
    SIGNED = enum.auto()
    UNSIGNED = enum.auto()
    FLOAT = enum.auto()


_TYPES: Final[Mapping[str, tuple[_Kind, int]]] = {
    "BOOL": (_Kind.BOOL, 1),
    **{f"INT{bits}": (_Kind.SIGNED, bits) for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": (_Kind.UNSIGNED, bits) for bits in (8, 16, 32, 64)},
    **dict.fromkeys((_HALF, "BFLOAT16"), (_Kind.FLOAT, 16)),
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


class Widened(NamedTuple):
    """A tensor of FLOAT that a node of the CPU reads or, if `is_result`, computes in place of one of FLOAT16."""

    of: Value
    is_result: bool


Tensor: TypeAlias = Value | Widened
_Reader: TypeAlias = tuple[Node, Value]
"""A node that is no Cast outside of fused graphs, and what it reads in the optimized graph."""


class MergedCasts(NamedTuple):
    """The Casts of an optimized graph that are removed, and what nodes read in place of their inputs."""

    gone: Set[Node]
    read: Mapping[tuple[Node, Value], Tensor]


@dataclass(eq=False, repr=False)
class _Cast:
    """A Cast outside of fused graphs; `node` is None for one that ONNX Runtime inserts."""

    node: Node | None
    source: Tensor
    result: Tensor
    types: tuple[str, str]
    on_dml: bool | None = False

    def may_change(self, source: str, target: str) -> bool:
        """True if casting between these types, those of the Cast or the reverse, may change a value."""
        is_inserted = self.node is None and (source, target) == ("FLOAT", _HALF)
        return not is_inserted and _is_lossy(source, target)


def merged_casts(graph: SessionGraph) -> MergedCasts | None:
    """Returns the Casts of a graph that are merged; None if it is not known which are: which nodes are in fused graphs,
    the types of tensors, or which kernels the CPU has."""
    if not any(_may_be_merged(graph, node) for node in optimized(graph).nodes if node.op_type == "Cast"):
        return MergedCasts(frozenset(), {})
    return graph.once(("merged casts", graph.runtime), lambda: _merged(graph))


def _may_be_merged(graph: SessionGraph, node: Node) -> bool:
    """True for a Cast in front of another one, and for one of FLOAT16: ONNX Runtime may insert one next to it."""
    return any(each.op_type == "Cast" for each in node.readers) or any(
        graph.data_type(value.known_type) in (_HALF, None) for value in (*node.inputs, *node.outputs)
    )


def casts_without_kernel(graph: SessionGraph) -> Iterator[tuple[Node, str]]:
    """Yields each Cast on DirectML that reads, once the Casts in front of it are removed, a type of which DirectML has
    no Cast, with that type."""
    merged = merged_casts(graph)
    for (node, _), tensor in merged.read.items() if merged is not None else ():
        read = graph.data_type(tensor.known_type) if isinstance(tensor, Value) else "FLOAT"
        if node.op_type != "Cast" or node in (merged.gone if merged else ()) or read is None:
            continue
        if placed(graph, node).on_dml:
            types = (read.lower(),), graph.types_of_tensors(node.index)[1]
            cell = asked(node.proto, *types, graph.opset, graph.runtime)
            if cell is not None and not is_on_dml(cell):
                yield node, read


def _merged(graph: SessionGraph) -> MergedCasts | None:
    order = optimized(graph).walk()
    in_graph = dict(zip(order, in_graphs(graph, order), strict=True))
    casts: list[_Cast] = []
    inserted: list[_Cast] = []
    readers: dict[Tensor, list[_Cast | _Reader]] = {}
    for node in order:
        read = dict.fromkeys((*node.inputs, *node.captured))
        if node.op_type == "Cast" and in_graph[node] is not True:
            made = _cast(graph, node) if in_graph[node] is False else None
            if made is not None:
                casts.append(made)
                readers.setdefault(made.source, []).append(made)
            elif _may_be_merged(graph, node):
                return None
            continue
        is_widened = _is_widened(graph, node)
        if is_widened is None:
            return None
        for value in read:
            at: Tensor = value
            if is_widened and graph.data_type(value.known_type) == _HALF:
                at = Widened(value, is_result=False)
                if at not in readers:
                    inserted.append(_Cast(None, value, at, (_HALF, "FLOAT")))
                    readers.setdefault(value, []).append(inserted[-1])
            readers.setdefault(at, []).append((node, value))
        for value in node.outputs if is_widened else ():
            if graph.data_type(value.known_type) == _HALF:
                before = Widened(value, is_result=True)
                inserted.append(_Cast(None, before, value, ("FLOAT", _HALF)))
                readers[before] = [inserted[-1]]
    casts.sort(key=lambda each: each.node.number if each.node is not None else (0, 0))
    left = _merge(graph, [*casts, *inserted], readers)
    found: dict[tuple[Node, Value], Tensor] = {}
    for tensor, each in ((tensor, each) for tensor, known in readers.items() for each in known):
        if isinstance(each, _Cast):
            if each.node is not None and tensor is not each.node.inputs[0]:
                found[each.node, each.node.inputs[0]] = tensor
        elif tensor not in (each[1], Widened(each[1], is_result=False)):
            found[each] = tensor
    return MergedCasts({each.node for each in casts if each.node is not None and each not in left}, found)


def _cast(graph: SessionGraph, node: Node) -> _Cast | None:
    """Returns a Cast; None if a type is not known."""
    (source, *_), (result, *_) = node.inputs, node.outputs
    types = graph.data_type(source.known_type), graph.data_type(result.known_type)
    if types[0] is None or types[1] is None:
        return None
    return _Cast(node, source, result, (types[0], types[1]), placed(graph, node).on_dml)


def _is_widened(graph: SessionGraph, node: Node) -> bool | None:
    """True for a node that the CPU computes in FLOAT in place of FLOAT16, as it has no kernel for that; None for one
    next to a Cast if that is not known."""
    if not any(graph.data_type(value.known_type) == _HALF for value in node.inputs) or has_graphs(node.proto):
        return False
    if placed(graph, node).on_dml is not False:
        return False
    takes = takes_halves(graph.graph, node) if node.op_type else None
    if takes is not None:
        return not takes
    near = (*node.producers, *node.readers)
    return None if any(each.op_type == "Cast" for each in near) else False


def _merge(graph: SessionGraph, casts: Sequence[_Cast], readers: dict[Tensor, list[_Cast | _Reader]]) -> set[_Cast]:
    """Merges Casts, given in the order in which ONNX Runtime visits them, and returns those that are left. `readers`,
    what reads each tensor, is changed accordingly."""
    left = set(casts)
    for cast in casts:
        behind = readers.get(cast.result, [])
        others = [each for each in behind if isinstance(each, _Cast)]
        if cast not in left or not others:
            continue
        source, result = cast.types
        is_lossy = cast.may_change(source, result)
        if is_lossy and any(each.may_change(each.types[1], result) for each in others):
            continue
        back = [each for each in others if each.types[1] == source and not _is_output(each.result)]
        for each in back:
            left.discard(each)
            readers.setdefault(cast.source, []).extend(readers.pop(each.result, ()))
        kept = [each for each in others if each not in back]
        readers[cast.result] = [each for each in behind if each not in back]
        if len(others) < len(behind) or _is_output(cast.result):
            continue
        if graph.runtime.traits.keeps_casts and _has_to_stay(cast, kept, is_lossy=is_lossy):
            continue
        left.discard(cast)
        readers[cast.source] = [each for each in readers[cast.source] if each is not cast] + list(kept)
        readers[cast.result] = []
        for each in kept:
            each.source, each.types = cast.source, (source, each.types[1])
    return left


def _is_output(tensor: Tensor) -> bool:
    return isinstance(tensor, Value) and tensor.is_output


def _has_to_stay(cast: _Cast, behind: Sequence[_Cast], *, is_lossy: bool) -> bool:
    """True for a Cast that is lossy in front of one to BOOL, or on another provider than one behind it."""
    to_bool = any(each.types[1] == "BOOL" for each in behind)
    return (is_lossy and to_bool) or any(each.on_dml is not cast.on_dml for each in behind)


def _is_lossy(source: str, target: str) -> bool:
    """True if a Cast between two types may change a value, as ONNX Runtime decides it."""
    if source not in _TYPES or target not in _TYPES:
        return True
    (kind, bits), (other, other_bits) = _TYPES[source], _TYPES[target]
    if (kind, other) in _NEVER or (kind is _Kind.FLOAT and other is not _Kind.FLOAT):
        return True
    if (kind, other) in _IF_LARGER:
        return other_bits <= bits
    return bits > other_bits or {source, target} == {_HALF, "BFLOAT16"}
