"""Ranks that make session creation fail: a kernel accepts static tensors only up to some rank, and there is no
fallback."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from dmlsplit.descriptors.dims import is_static
from dmlsplit.models.functions import JUDGED
from dmlsplit.onnxruntime.node_placement import Placed, lacks_cpu_input, placed
from dmlsplit.onnxruntime.node_prediction import MAX_RANK
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.operators import operator_of
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.records import entity

Sizes: TypeAlias = tuple[int, ...]
_BATCHED: Final = ("MatMul", "Trilu")
"""Operators that work on the last two dimensions of each element of a batch separately."""


@entity
class BeyondRank:
    """A node of a graph with a tensor of more dimensions than its kernel accepts."""

    graph: SessionGraph
    index: int
    rank: int
    most: int

    @property
    def path(self) -> str:
        return self.graph.path(self.index)

    @property
    def operator(self) -> str:
        return self.graph.nodes[self.index].proto.op_type

    @property
    def why(self) -> str:
        """What exceeds the limit, as a sentence."""
        if self.most == MAX_RANK:
            return f"{self.path} has a static tensor of rank {self.rank}"
        return f"{self.path} reads a static tensor of rank {self.rank}, but its kernel accepts at most {self.most}"


def beyond_rank(graph: SessionGraph, index: int, opset: int = 0) -> BeyondRank | None:
    """Returns the rank that makes session creation fail, and the highest that the kernel accepts, for the node with
    this index; None if its ranks are no reason to fail. `opset`: the model's opset to assume, 0 for its own.

    A kernel with an unknown size of an input, or with sizes that it reads from a computed tensor, is created only
    during a Run; one that makes a sequence has no operator of DirectML.
    """
    node = graph.nodes[index].proto
    operator = operator_of(node, opset, graph.runtime) if opset else graph.operator(index)
    most = None if operator is None else operator.most_rank
    if graph.highest_rank <= (MAX_RANK if most is None else min(most, MAX_RANK)):
        return None
    names = [*node.input[:], *node.output[:]]
    shapes = [_static(graph, name) for name in names]
    on_cpu = row_of(node.op_type).cpu_inputs
    for i, name in enumerate(node.input[:]):
        if name and (shapes[i] is None or i in on_cpu) and not graph.is_constant(name):
            return None
    if any(graph.data_type(name) == "SEQUENCE" for name in node.output[:] if name):
        return None
    rank = max((len(shape) for shape in shapes if shape is not None), default=0)
    if rank > MAX_RANK:
        return BeyondRank(graph, index, rank, MAX_RANK)
    first = shapes[0] if shapes else None
    if first is not None and node.op_type == "MatMul":  # either side may have the batch
        first = max(first, shapes[1] or (), key=len)
    if first is None or most is None or len(first) <= most:
        return None
    result = _static(graph, node.output[0])
    if node.op_type == "Resize" and result is not None and _without_ones(first, result) <= most:
        return None
    return BeyondRank(graph, index, len(first), most)


def _without_ones(sizes: Sizes, result: Sizes) -> int:
    """Returns the number of dimensions of a Resize that its kernel describes: all except those whose size is 1 before
    and after."""
    return sum(each != (1, 1) for each in zip(sizes, result, strict=False))


def all_beyond_rank(graphs: Sequence[SessionGraph]) -> Iterator[BeyondRank]:
    """Yields the nodes on DirectML, other than Split and Concat, whose ranks make session creation fail."""
    for graph in graphs:
        for node in graph.order:
            if node.op_type in JUDGED or graph.on_dml(node.index) is not True:
                continue
            if (found := beyond_rank(graph, node.index)) is not None and fails(found, placed(graph, node)):
                yield found


def fails(found: BeyondRank, place: Placed) -> bool:
    """True if session creation fails because of `found`, for a node at this place."""
    return place.in_graph is not False or not lacks_cpu_input(found.graph, found.index)


def merged_batch(node: BeyondRank) -> tuple[list[Sizes | None], Sizes] | str:
    """Returns the sizes that Reshapes give the inputs of a node so that its kernel accepts them (None for an unchanged
    input), and the resulting sizes of its output; or, as text, why that is not possible.

    The dimensions before the last two become one: each matrix stays the same, so every element is computed as before. A
    batch that only one side of a MatMul repeats cannot be merged.
    """
    if node.operator not in _BATCHED or node.rank > MAX_RANK:
        return (
            "its dimensions are not a batch" if node.rank <= MAX_RANK else "a Reshape does not accept that rank either"
        )
    proto = node.graph.nodes[node.index].proto
    shapes = [_static(node.graph, name) for name in (*proto.input[: 1 + (node.operator == "MatMul")], proto.output[0])]
    if None in shapes:
        return "its sizes are unknown"
    *read, result = [shape for shape in shapes if shape is not None]
    if any(len(shape) < 2 for shape in read) or 0 in result:
        return "an input is a vector, or has no elements"
    batch = math.prod(result[:-2])
    given: list[Sizes | None] = []
    for shape in read:
        if len(shape) == 2:
            given.append(None)
        elif math.prod(shape[:-2]) in (1, batch):
            given.append((math.prod(shape[:-2]), *shape[-2:]))
        else:
            return "one of its inputs is broadcast along a part of the batch dimensions"
    return given, (batch, *result[-2:])


def _static(graph: SessionGraph, name: str) -> Sizes | None:
    """Returns the sizes of a tensor; None if they are not static, or there is no tensor."""
    shape = graph.shape(name) if name else None
    return tuple([int(size) for size in shape]) if shape is not None and is_static(shape) else None
