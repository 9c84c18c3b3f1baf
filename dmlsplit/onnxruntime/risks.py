"""Decides if memory sharing in a fused graph can make a result wrong in any layout.

For graphs whose layout is not known: graphs in which ONNX Runtime may move Transposes, and graphs that the model of
CompileGraph does not cover. An operator that works in place destroys what is in its memory: an input of a Concat, or
the tensor from which a part is cut. A product with a sigmoid is fused if its operands come from one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.graphs.descriptors import node_type
from dmlsplit.graphs.operators import BY_NUMBER
from dmlsplit.graphs.traits import Fusion, GraphTraits, JoinPlacement
from dmlsplit.onnxruntime.fused import FusedGraph, Tensor
from dmlsplit.onnxruntime.operator_traits import FAMILIES, Kind, row_of

_NORMALIZATIONS: Final = frozenset({"GroupNormalization", "InstanceNormalization", "MeanVarianceNormalization"})
_CUTS: Final = frozenset({"Split", "Slice"})
_MOST_NORMALIZATIONS: Final = 4096
"""The most normalizations whose dependencies are tracked; each is a bit of a number for each node."""


def is_without_risk(graph: FusedGraph, traits: GraphTraits) -> bool:
    """True if nothing in a graph can be wrong or refused with a release of these traits, in any layout."""
    if traits.join_placement is not JoinPlacement.EACH:
        return False
    found = _Risks(graph)
    return not (found.overwrites() or found.cuts_one_part() or (traits.fusion is not Fusion.NONE and found.fuses()))


def may_lose_branch(graph: FusedGraph) -> bool:
    """True if two outputs are computed from one tensor, the later one through a normalization that the earlier one does
    not need; also True if that would require tracking too many normalizations."""
    norms = [node for node, op in enumerate(graph.ops) if op in _NORMALIZATIONS]
    if not norms:
        return False
    ends = [edge.from_node_index for edge in graph.desc.output_edges]
    producers = [[node for node, _ in graph.reads.get(each, ()) if node >= 0] for each in range(len(graph.ops))]
    order = list(depth_first(range(len(producers)), producers.__getitem__))
    first, last = [len(ends)] * len(order), [-1] * len(order)
    """The first and the last output that needs each node."""
    for output, end in enumerate(ends):
        first[end], last[end] = min(first[end], output), output
    for node in reversed(order):
        for producer in producers[node]:
            first[producer], last[producer] = min(first[producer], first[node]), max(last[producer], last[node])
    nearest = [len(ends)] * len(order)
    """The first output that needs anything that each node needs."""
    for node in order:
        for producer in producers[node]:
            nearest[node] = min(nearest[node], nearest[producer], first[producer])
    if any(nearest[norm] < min(first[norm], last[norm]) for norm in norms):
        return True
    undecided = [norm for norm in norms if nearest[norm] < last[norm]]
    return len(undecided) > _MOST_NORMALIZATIONS or _is_one_beside(order, producers, ends, undecided, last)


def _is_one_beside(
    order: Sequence[int],
    producers: Sequence[Sequence[int]],
    ends: Sequence[int],
    norms: Sequence[int],
    last: Sequence[int],
) -> bool:
    """True if an output needs a tensor that one of these normalizations also needs, but not the normalization, and
    comes before the last output that needs the normalization. `order` has each node after its producers, `ends` the
    node that computes each output. Sets of normalizations are numbers with a bit for each."""
    own = {norm: 1 << i for i, norm in enumerate(norms)}
    behind, needed, around = [0] * len(order), [0] * len(order), [0] * len(order)
    """For each node: the normalizations that need it, those that it needs, and those that need something that it
    needs."""
    for node in reversed(order):
        for producer in producers[node]:
            behind[producer] |= behind[node] | own.get(node, 0)
    for node in order:
        needed[node], around[node] = own.get(node, 0), behind[node]
        for producer in producers[node]:
            needed[node] |= needed[producer]
            around[node] |= around[producer]
    ended: dict[int, int] = {}
    for norm in norms:
        ended[last[norm]] = ended.get(last[norm], 0) | own[norm]
    later = (1 << len(norms)) - 1  # the normalizations that a later output needs
    for output, end in enumerate(ends):
        later &= ~ended.get(output, 0)
        if later & around[end] & ~needed[end]:
            return True
    return False


class _Risks:
    """A fused graph in which operators that only copy are replaced with their inputs."""

    def __init__(self, graph: FusedGraph) -> None:
        self._graph = graph
        self._sources: dict[Tensor, Tensor] = {}
        for node, op in enumerate(graph.ops):
            if row_of(op).kind is Kind.COPIES:
                self._sources[node, 0] = self._source(graph.reads[node][0])
        self._uses: dict[Tensor, list[int | None]] = {}
        for node, op in enumerate(graph.ops):
            for tensor in graph.reads.get(node, ()) if row_of(op).kind is not Kind.COPIES else ():
                self._uses.setdefault(self._source(tensor), []).append(node)
        for tensor in graph.exits:
            self._uses.setdefault(self._source(tensor), []).append(None)

    def _source(self, tensor: Tensor) -> Tensor:
        return self._sources.get(tensor, tensor)

    def _reads(self, node: int) -> Sequence[Tensor]:
        return [self._source(tensor) for tensor in self._graph.reads.get(node, ())]

    def _readers(self, tensor: Tensor) -> Iterator[int]:
        return (node for node in self._uses.get(tensor, ()) if node is not None)

    def _may_be_in_place(self, node: int) -> bool:
        kind = self._graph.kinds[node]
        row = BY_NUMBER.get(node_type(self._graph.desc.nodes[node])) if kind is Kind.OBSERVED else None
        return any(family.computes for family in ((row.family,) if row is not None else FAMILIES[kind]))

    def overwrites(self) -> bool:
        """True if an operator may work in place on a Concat's output, or on a part of that output, while an input of
        the Concat has other uses."""
        intact: set[Tensor] = set()
        for node, op in enumerate(self._graph.ops):
            inputs = self._reads(node) if op == "Concat" else ()
            shared = any(tensor[0] >= 0 and len(self._uses[tensor]) > 1 for tensor in inputs)
            if shared and self._is_destroyed((node, 0), intact):
                return True
        return False

    def _is_destroyed(self, tensor: Tensor, intact: set[Tensor]) -> bool:
        """True if an operator may work in place on a tensor, on a part of it, or on a Concat that contains it.

        `intact` caches tensors for which this is False, across calls: each visited tensor is added to it, so a caller
        must not call this again after True.
        """
        todo = [] if tensor in intact else [tensor]
        intact.add(tensor)
        while todo:
            each = todo.pop()
            alone = len(self._uses.get(each, ())) == 1  # only then is its memory taken
            for reader in self._readers(each):
                if alone and self._may_be_in_place(reader):
                    return True
                if self._graph.ops[reader] in (*_CUTS, "Concat"):
                    new = set(self._graph.outputs_of(reader)) - intact
                    intact |= new
                    todo += new
        return False

    def cuts_one_part(self) -> bool:
        """True if only one part of a computed tensor is cut out, and only one operator reads it, possibly in place."""
        for node, op in enumerate(self._graph.ops):
            if op not in _CUTS or self._reads(node)[0][0] < 0:
                continue
            used = [tensor for tensor in self._graph.outputs_of(node) if tensor in self._uses]
            alone = len(used) == 1 and len(self._uses[used[0]]) == 1
            if alone and any(map(self._may_be_in_place, self._readers(used[0]))):
                return True
        return False

    def fuses(self) -> bool:
        """True if a product with a sigmoid may be fused that is not x * sigmoid(x)."""
        ops = self._graph.ops
        for node, op in enumerate(ops):
            reads = self._reads(node) if op == "Mul" else ()
            for gate in reads:
                if gate[0] < 0 or ops[gate[0]] != "Sigmoid":
                    continue
                (source,) = self._reads(gate[0])
                others = [tensor for tensor in reads if tensor != gate]
                if any(other != source and other[0] >= 0 and ops[other[0]] in ("Split", "Mul") for other in others):
                    return True
        return False
