"""The DirectML graphs that the nodes of an ONNX model become.

ONNX Runtime cuts a graph into parts that it fuses; each becomes one DML_GRAPH_DESC: one operator a node, in the order
in which ONNX Runtime walks over them, ranks padded to 4, outputs by name in byte order. Constants are described here as
packed inputs, of the size that they are broadcast to if they are: for the memory of the others it is the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.dims import is_static
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.formats.element_types import ElementType
from dmlsplit.formats.onnx.tensors import element_type
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.graphs.descriptors import (
    GraphDesc,
    GraphNode,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    NeighbourOperatorDesc,
    OutputGraphEdgeDesc,
    Value,
)
from dmlsplit.models.functions import JUDGED
from dmlsplit.onnxruntime.fused import FusedGraph, Part, SessionGraphs
from dmlsplit.onnxruntime.lowered import BROADCAST, IDENTITY, LOWERED, SLICE, UNKNOWN, Kind, Lowered
from dmlsplit.onnxruntime.neighbours import NEIGHBOURS, TRANSPOSABLE
from dmlsplit.onnxruntime.node_facts import facts_in
from dmlsplit.onnxruntime.optimizer import (
    SILU,
    Op,
    Optimized,
    followed,
    fusible,
    neutral,
    permutation,
    producers_of,
    readers_of,
)
from dmlsplit.onnxruntime.partitions import PlacedNode, partitions
from dmlsplit.onnxruntime.predict import placement
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.verdicts.runtime_answers import Outcome

_MIN_RANK: Final = 4
_SIGMOID: Final = 47
_MULTIPLY: Final = 24
_UNKNOWN_TYPE: Final = 0xFFFFFFFF
"""In place of a DML_OPERATOR_TYPE that is not known."""
_OBSERVED_TYPES: Final = {TensorDataType.FLOAT32, TensorDataType.FLOAT16}
"""Types of tensors that graphs were observed with."""
_WINDOW: Final = ("InputWindowOffsets", "InputWindowSizes", "InputWindowStrides")
_UNBOUNDED: Final = 1 << 32
"""Nodes of a part that Transposes may be moved in: there may be more of them then."""
_SMALL: Final = 8
"""Bytes up to which a constant is a node of the graph, and not an input: below that."""


def session_graphs(graph: SessionGraph) -> SessionGraphs:
    """The DirectML graphs of one graph of a model, in a session of `graph.options`."""
    order = graph.once("optimized", lambda: _ordered(Optimized(graph)))
    places = tuple([_in_graph(graph, op) for op in order]) if graph.fuses else ()
    return graph.once(("graphs", places), lambda: _graphs(graph, order, places))


def _graphs(graph: SessionGraph, order: Sequence[Op], places: Sequence[bool | None]) -> SessionGraphs:
    """The same for nodes in an order, each of which can be in a fused graph, or cannot; none can where there are no
    `places`."""
    judged = [op for op in order if op.op_type in JUDGED]
    lost = [(op.unwritten, op.absorbed[0]) for op in order if op.unwritten]
    found = SessionGraphs(
        unwritten=[(name, graph.path(index), graph.nodes[index].op_type) for name, index in lost],
        incomplete=[op.absorbed[0] for op in order if op.op_type == "Gemm" and op.absorbed and not all(_c_of(op))],
        judged=dict.fromkeys(graph.path(op.index) for op in sorted(judged, key=lambda op: op.index)),
    )
    if places:
        rows = [PlacedNode(tuple(op.inputs), tuple(op.outputs), place) for op, place in zip(order, places, strict=True)]
        groups = partitions(rows)
        possible = partitions(rows, unknown=True) if None in places else groups
        largest = {i: group for group in possible for i in group}
        parts = _Parts(graph, order)
        found.parts = [parts.made(group, largest[group[0]]) for group in groups]
    return found


class _Parts:
    """The parts of a graph in the making."""

    def __init__(self, graph: SessionGraph, order: Sequence[Op]) -> None:
        self._graph = graph
        self._order = order
        self._readers = readers_of(order)
        self._followed = followed(graph, order)
        self._transposed = graph.transposed if graph.options.optimization >= 1 else set()
        self._of_largest: dict[int, tuple[bool, FusedGraph | None]] = {}
        self._most_nodes: dict[int, int] = {}

    def made(self, group: Sequence[int], largest: Sequence[int]) -> Part:
        """The part of nodes that are certainly fused; `largest`: with all that may be fused with them."""
        graph, ops = self._graph, [self._order[i] for i in group]
        fails = any(_is_refused(graph, op) for op in ops)
        builder = _Builder(graph, ops, self._readers)
        alive = builder.alive()
        sized = all(_is_sized(graph, op) for op in ops)
        complete = tuple(largest) == tuple(group)
        variants: list[FusedGraph] = []
        if sized and not fails and complete:
            variants = [builder.built(alive)] if alive else []
        elif not fails and not complete:
            if largest[0] not in self._of_largest:  # many may be in one of these
                self._of_largest[largest[0]] = self._whole(largest)
            other_sized, other = self._of_largest[largest[0]]
            if sized and other_sized:
                variants = [builder.built(alive)] * bool(alive) + ([other] if other is not None else [])
        position = {op: i for i, op in enumerate(ops)}
        readers = [
            [position[r] for name in op.outputs for r in self._readers.get(name, ()) if r in position] for op in ops
        ]
        return Part(
            tuple([graph.path(op.index) for op in ops]),
            tuple([(op.index, *op.absorbed) for op in ops]),
            tuple([min(each, default=None) for each in readers]),
            frozenset(index for op in alive for index in (op.index, *op.absorbed)),
            sum(op in self._followed for op in ops),
            self._most(largest),
            complete,
            sized,
            fails,
            tuple(variants),
        )

    def _most(self, largest: Sequence[int]) -> int:
        """How many nodes a part has at most, with all that may be fused with it."""
        if largest[0] not in self._most_nodes:
            moved = any(self._order[i].index in self._transposed for i in largest)
            self._most_nodes[largest[0]] = _UNBOUNDED if moved else len(largest)
        return self._most_nodes[largest[0]]

    def _whole(self, group: Sequence[int]) -> tuple[bool, FusedGraph | None]:
        """Whether the sizes of a group are known, and its graph where they are and something reads what it computes."""
        ops = [self._order[i] for i in group]
        builder = _Builder(self._graph, ops, self._readers)
        alive = builder.alive()
        sized = all(_is_sized(self._graph, op) for op in ops)
        return sized, builder.built(alive) if sized and alive else None


def _c_of(op: Op) -> Sequence[str]:
    """The third input of a Gemm, "" in its place where there is none."""
    return (*op.inputs, "", "", "")[2:3]


def _is_refused(graph: SessionGraph, op: Op) -> bool:
    """Whether a Split fails before its graph is made: a part has no name, or no elements."""
    return op.op_type == "Split" and any(not name or 0 in (graph.shape(name) or ()) for name in op.outputs)


def _is_sized(graph: SessionGraph, op: Op) -> bool:
    """Whether the shapes around a node were inferred here, as ONNX Runtime has inferred them, and fit a descriptor."""
    for name in (*op.inputs, *op.outputs):
        shape = graph.shape(name) if name else ()
        if name in op.outputs and not is_static(shape):
            return False
        if any(isinstance(dim, int) and dim not in range(2**32) for dim in shape or ()):
            return False
    return True


def _ordered(optimized: Optimized) -> list[Op]:
    """The nodes in the order in which ONNX Runtime walks over them: as SessionGraph.order, of those that are left."""
    ops = optimized.ops
    producers = producers_of(ops)
    before = {op: {producers[name] for name in op.inputs if name in producers} for op in ops}
    followed = {each for op in ops for each in before[op]}

    def by_number(some: Iterable[Op]) -> list[Op]:
        return sorted(some, key=lambda op: op.number)

    return list(depth_first(by_number(op for op in ops if op not in followed), lambda op: by_number(before[op])))


def _in_graph(graph: SessionGraph, op: Op) -> bool | None:
    """Whether a node can be in a fused graph; None where that is not known."""
    if op.op_type in JUDGED:
        facts = facts_in(graph).get(op.index)
        if facts is None:
            return None
        place = placement(facts, graph.runtime, options=graph.options)
        if place.answer is not None:
            return None if place.answer.outcome is Outcome.UNKNOWN else False
        return place.in_graph
    placed = graph.placed(op.index)
    if placed.in_graph is None and op.op_type == "Identity":
        return placed.on_dml if all(is_static(graph.shape(name)) for name in (*op.inputs, *op.outputs)) else False
    return placed.in_graph


@dataclass(slots=True)
class _Row:
    """One operator of DirectML's in the making."""

    lowered: Lowered
    op: Op
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    path: str
    name: str


class _Builder:
    """One fused graph in the making."""

    def __init__(self, graph: SessionGraph, group: Sequence[Op], readers: Mapping[str, Iterable[Op]]) -> None:
        self.graph = graph
        self.group = group
        self.shaped_as: dict[str, str] = {}
        """Tensors that only DirectML has: the one of the model that has their shape and type."""
        self.fusible = fusible(group) if graph.options.optimization >= 1 else set()
        members = set(group)
        made = set(producers_of(group))
        read = {name for name in made if any(op not in members for op in readers.get(name, ()))}
        left = read | (made & graph.outputs)
        self.exits = sorted(left, key=lambda name: name.encode("utf-8", "surrogatepass"))
        """The tensors that leave the graph: by name, in byte order."""

    def built(self, alive: Sequence[Op]) -> FusedGraph:
        """The graph of the nodes that lead to what leaves it."""
        rows = [row for op in alive for row in self._rows(op)]
        ends = {name: (number, k) for number, row in enumerate(rows) for k, name in enumerate(row.outputs) if name}
        inputs: dict[tuple[str, object], int] = {}
        shapes: list[BufferTensorDesc] = []
        input_edges, wires, made = [], [], []
        has_constants = False
        for number, row in enumerate(rows):
            described = []
            whole = self._sizes(row.outputs[0]) if row.outputs and row.outputs[0] else None
            for taken, name in enumerate(row.inputs):
                broadcast = row.name in BROADCAST and name not in ends and self.graph.is_constant(name)
                desc = self._tensor(name, whole if broadcast else None)
                if name in ends:
                    wires.append(IntermediateGraphEdgeDesc(*ends[name], number, taken))
                else:
                    has_constants |= self.graph.is_constant(name) and self._bytes(name) < _SMALL
                    if (name, desc.sizes) not in inputs:
                        inputs[name, desc.sizes] = len(shapes)
                        shapes.append(desc)
                    input_edges.append(InputGraphEdgeDesc(inputs[name, desc.sizes], number, taken))
                described.append(desc)
            made.append(self._node(row, described, [self._tensor(name) for name in row.outputs]))
        output_edges = [OutputGraphEdgeDesc(*ends[name], i) for i, name in enumerate(self.exits)]
        results = [self._tensor(name) for name in self.exits]
        return FusedGraph(
            self.graph.scope.label,
            GraphDesc(shapes, results, [node for node, _ in made], input_edges, output_edges, wires),
            tuple([kind for _, kind in made]),
            tuple([row.path for row in rows]),
            tuple([row.name for row in rows]),
            tuple([name for name, _ in inputs]),
            tuple(self.exits),
            tuple([row.outputs for row in rows]),
            tuple([frozenset(self.graph.nodes[row.op.index].input) for row in rows]),
            frozenset(self.graph.outputs & set(self.exits)),
            has_constants,
            self._behind_transposes(rows),
        )

    def alive(self) -> list[Op]:
        """The nodes that lead to what leaves the graph."""
        producers = producers_of(self.group)
        ends = [producers[name] for name in self.exits]
        needed = set(depth_first(ends, lambda op: [producers[name] for name in op.inputs if name in producers]))
        return [op for op in self.group if op in needed]

    def _rows(self, op: Op) -> Iterator[_Row]:
        path = self.graph.path(op.index)
        inputs = tuple([name for name in self._tensors_of(op) if name])
        outputs = tuple(op.outputs)
        if op.op_type == SILU:
            gate = f"{outputs[0]}/sigmoid"
            self.shaped_as[gate] = outputs[0]
            sigmoid = self.graph.path(op.first if op.first is not None else op.index)
            yield _Row(Lowered(_SIGMOID, Kind.OBSERVED), op, inputs, (gate,), sigmoid, "Sigmoid")
            yield _Row(Lowered(_MULTIPLY, Kind.OBSERVED), op, (*inputs, gate), outputs, path, "Mul")
            return
        yield _Row(LOWERED.get(op.op_type, UNKNOWN), op, inputs, outputs, path, op.op_type)

    def _tensors_of(self, op: Op) -> Sequence[str]:
        """The inputs that DirectML reads: not those that the CPU does."""
        if op.op_type == "Split":
            return op.inputs[:1]
        known = NEIGHBOURS.get(op.op_type)
        on_cpu = known.cpu_inputs if known is not None else ()
        return [name for i, name in enumerate(op.inputs) if i not in on_cpu]

    def _node(
        self, row: _Row, inputs: Sequence[BufferTensorDesc], outputs: Sequence[BufferTensorDesc]
    ) -> tuple[GraphNode, Kind]:
        op, kind = row.op, row.lowered.kind
        if row.name == "Split":
            return SplitOperatorDesc(inputs[0], outputs, self._axis(op, 0)), kind
        if row.name == "Concat":
            return JoinOperatorDesc(inputs, outputs[0], self._axis(op, 1)), kind
        members: dict[str, Value] = {}
        number = row.lowered.type
        if kind is Kind.COPIES:
            moved = row.name == "Transpose" and self._moves(op)
            same = len(inputs) == 1 and inputs[0].sizes == outputs[0].sizes and not moved
            kind = Kind.OBSERVED if same else Kind.COPIES
            number = IDENTITY
        elif number == SLICE:
            window = self._window(op, inputs[0].sizes or ())
            if window is None:
                kind = Kind.NOT_IN_PLACE
            else:
                members = {"DimensionCount": len(window[0]), **dict(zip(_WINDOW, window, strict=True))}
        elif row.name == "Cast" and inputs[0].total_tensor_size_in_bytes != outputs[0].total_tensor_size_in_bytes:
            kind = Kind.NOT_IN_PLACE
        elif kind is Kind.OBSERVED and not {desc.data_type for desc in (*inputs, *outputs)} <= _OBSERVED_TYPES:
            kind = Kind.UNKNOWN
        elif row.name == "LeakyRelu":
            members = {"Alpha": next((float(a.f) for a in op.node.attribute if a.name == "alpha"), 0.01)}
        elif kind is Kind.OBSERVED and (neutral(self.graph, op) is not None or op in self.fusible):
            kind = Kind.UNKNOWN  # what it writes over may have the same value, or it is part of another operator
        type_ = _UNKNOWN_TYPE if number is None else number
        return NeighbourOperatorDesc(type_, inputs, outputs, members), kind

    def _axis(self, op: Op, default: int) -> int:
        rank = len(self.graph.shape(op.inputs[0]) or ())
        axis = next((int(a.i) for a in op.node.attribute if a.name == "axis"), default)
        return axis % max(rank, 1) + max(_MIN_RANK - rank, 0)

    def _moves(self, op: Op) -> bool:
        """Whether a Transpose changes the order of elements."""
        shape = self.graph.shape(op.inputs[0]) or ()
        order = [i for i in permutation(op.node, len(shape)) if shape[i] != 1]
        return order != sorted(order)

    def _window(self, op: Op, sizes: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        """Offsets, sizes and steps of a Slice; None where they are not known, or a step is negative."""
        rank, added = len(sizes), len(sizes) - len(self.graph.shape(op.inputs[0]) or ())
        if self.graph.scope.origin.opset < 10:
            given = {a.name: tuple(a.ints) for a in op.node.attribute}
            parameters = [given.get(name) for name in ("starts", "ends", "axes")]
        else:
            parameters = [self.graph.scope.integers(name) for name in op.inputs[1:5]]
        starts, ends, axes, steps = (*parameters, None, None, None, None)[:4]
        if starts is None or ends is None:
            return None
        axes = axes if axes is not None else tuple(range(len(starts)))
        steps = steps if steps is not None else (1,) * len(starts)
        offsets, lengths, strides = [0] * rank, list(sizes), [1] * rank
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=False):
            place = axis % (rank - added) + added
            taken = range(*slice(start, end, step).indices(sizes[place])) if step else range(0)
            if step < 1 or not taken:
                return None
            offsets[place], lengths[place], strides[place] = taken[0], taken[-1] - taken[0] + 1, step
        return tuple(offsets), tuple(lengths), tuple(strides)

    def _sizes(self, name: str) -> tuple[int, ...]:
        shape = self.graph.shape(self.shaped_as.get(name, name)) or ()
        sizes = [dim for dim in shape if isinstance(dim, int)]
        return (*(1,) * (_MIN_RANK - len(sizes)), *sizes)

    def _tensor(self, name: str, sizes: Sequence[int] | None = None) -> BufferTensorDesc:
        element = self._element(name)
        data_type = TensorDataType.FLOAT32 if element is None or element.data_type is None else element.data_type
        return BufferTensorDesc(data_type, self._sizes(name) if sizes is None else sizes)

    def _element(self, name: str) -> ElementType | None:
        return element_type(self.graph.scope.type_of(self.shaped_as.get(name, name))[0])

    def _bytes(self, name: str) -> int:
        element = self._element(name)
        return math.prod(self._sizes(name)) * (element.itemsize if element is not None else 1)

    def _behind_transposes(self, rows: Sequence[_Row]) -> frozenset[int]:
        """The nodes that Transposes lead to, over nodes that ONNX Runtime may move them over."""
        if self.graph.options.optimization < 1:
            return frozenset()
        producers = {name: number for number, row in enumerate(rows) for name in row.outputs}
        found: set[int] = set()
        for number, row in enumerate(rows):
            for i in (producers[name] for name in row.inputs if name in producers):
                moves = rows[i].name == "Transpose" and self._moves(rows[i].op)
                if moves or (i in found and rows[i].op.op_type in TRANSPOSABLE):
                    found.add(number)
        return frozenset(found)
