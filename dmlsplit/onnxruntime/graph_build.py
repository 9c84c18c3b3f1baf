"""The DirectML graph of one part of an ONNX model's graph.

A part (fused_parts.py) becomes one DML_GRAPH_DESC: one operator for each node, in the order of ONNX Runtime's walk,
ranks padded to 4, outputs sorted by name in byte order. Constants are described here as packed inputs, broadcast ones
with their broadcast size; the memory of the other tensors is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.dims import Shape
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.formats.element_types import ElementType
from dmlsplit.formats.onnx.tensors import element_type
from dmlsplit.graphs.descriptors import (
    GraphDesc,
    GraphNode,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
)
from dmlsplit.models.graph import Graph, Node, Value, attribute
from dmlsplit.models.once import Once
from dmlsplit.onnxruntime.facts import MIN_RANK, SMALLEST_BUFFER
from dmlsplit.onnxruntime.fused import FusedGraph
from dmlsplit.onnxruntime.node_placement import is_created
from dmlsplit.onnxruntime.operator_traits import QUICK_GELU, Kind, row_of
from dmlsplit.onnxruntime.optimization import moved
from dmlsplit.onnxruntime.passes.noop_elimination import noop_elimination
from dmlsplit.onnxruntime.passes.transpose_handlers import HANDLERS
from dmlsplit.onnxruntime.passes.transposed_tensors import permutation
from dmlsplit.onnxruntime.session_graph import SessionGraph

_SOFTMAX_OF_ONE_AXIS: Final = 13
"""The first opset whose Softmax is over one axis; before, it is over that axis and all later ones."""
_SOFTMAXES: Final = ("Softmax", "LogSoftmax")
_UNKNOWN_TYPE: Final = 0xFFFFFFFF
"""An unknown DML_OPERATOR_TYPE."""
_OBSERVED_TYPES: Final = {TensorDataType.FLOAT32, TensorDataType.FLOAT16}
"""The tensor types in graphs that were observed."""
_WINDOW: Final = ("InputWindowOffsets", "InputWindowSizes", "InputWindowStrides")


def _names(values: Iterable[Value]) -> tuple[str, ...]:
    return tuple([value.name for value in values])


@dataclass(slots=True, eq=False, repr=False)
class _Row:
    """One DirectML operator of the graph, with the node that it executes. `path` and `name` are the path and the
    operator of a node of the model."""

    node: Node
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    path: str
    name: str


class GraphBuilder:
    """Builds the fused graph of one part."""

    def __init__(self, graph: SessionGraph, optimized: Graph, group: Sequence[Node], fusible: Container[Node]) -> None:
        self.graph = graph
        self.optimized = optimized
        self.group = group
        self.fusible = fusible
        members = set(group)
        made = [value for node in group for value in node.outputs if value.name]
        left = [value for value in made if value.is_output or not members.issuperset(value.readers)]
        self.exits = sorted(left, key=lambda value: (value.called or value.name).encode("utf-8", "surrogatepass"))
        """The outputs of the graph, sorted by name in byte order."""
        self._tensors: dict[Value, BufferTensorDesc] = {}
        self._of_kind: dict[tuple[str | None, Shape | None], BufferTensorDesc] = {}
        self._of_alike: dict[object, tuple[GraphNode, Kind]] = {}
        self._descs: dict[object, BufferTensorDesc] = graph.model.once("tensors", dict)
        self._nodes: dict[object, GraphNode] = graph.model.once("nodes", dict)
        """Equal tensors and operators of a model share one descriptor, so that equal graphs are found by identity."""

    def built(self, alive: Sequence[Node]) -> FusedGraph:
        """Returns the fused graph of the nodes `alive`, on which its outputs depend."""
        rows = [row for node in alive for row in self._rows(node)]
        ends = {
            value: (number, k) for number, row in enumerate(rows) for k, value in enumerate(row.outputs) if value.name
        }
        inputs: dict[tuple[str, object], int] = {}
        shapes: list[BufferTensorDesc] = []
        input_edges: list[tuple[int, int, int]] = []
        wires: list[tuple[int, int, int, int]] = []
        made = []
        has_constants = False
        for number, row in enumerate(rows):
            described = []
            for taken, value in enumerate(row.inputs):
                end = ends.get(value)
                if end is not None:
                    wires.append((*end, number, taken))
                    described.append(self._tensor(value))
                    continue
                name = value.name
                constant = self.graph.is_constant(name)
                broadcast = constant and row_of(row.name).broadcasts and row.outputs and row.outputs[0].name
                desc = self._tensor(value, self._sizes(row.outputs[0]) if broadcast else None)
                has_constants |= constant and self._bytes(value) < SMALLEST_BUFFER
                if (name, desc.sizes) not in inputs:
                    inputs[name, desc.sizes] = len(shapes)
                    shapes.append(desc)
                input_edges.append((inputs[name, desc.sizes], number, taken))
                described.append(desc)
            made.append(self._node(row, described, list(map(self._tensor, row.outputs))))
        output_edges = [(*ends[value], i) for i, value in enumerate(self.exits)]
        nodes, results = [node for node, _ in made], list(map(self._tensor, self.exits))
        kinds, ops = tuple([kind for _, kind in made]), tuple([row.name for row in rows])
        behind = self._behind_transposes(alive)
        moved = frozenset([number for number, row in enumerate(rows) if row.node in behind] if behind else ())
        rectified = frozenset([i for i, row in enumerate(rows) if row.node.absorbed and self._is_rectified(row.node)])
        unchanging = frozenset(
            [i for i, row in enumerate(rows) if row.node.op_type in _SOFTMAXES and self._is_constant(row.node)]
        )

        def described_as() -> tuple[GraphDesc, Once]:
            edges = starmap(InputGraphEdgeDesc, input_edges), starmap(OutputGraphEdgeDesc, output_edges)
            return GraphDesc(shapes, results, nodes, *edges, starmap(IntermediateGraphEdgeDesc, wires)), Once()

        identities = tuple([tuple(map(id, each)) for each in (nodes, shapes, results)])
        alike = (
            identities,
            tuple(input_edges),
            tuple(output_edges),
            tuple(wires),
            kinds,
            ops,
            has_constants,
            moved,
            rectified,
            unchanging,
        )
        handed, judgements = self.graph.model.once(alike, described_as)
        return FusedGraph(
            self.graph.scope.label,
            handed,
            kinds,
            tuple([row.path for row in rows]),
            ops,
            tuple([name for name, _ in inputs]),
            _names(self.exits),
            tuple([_names(row.outputs) for row in rows]),
            tuple([row.node.proto for row in rows]),
            frozenset(value.name for value in self.exits if value.is_output),
            has_constants,
            moved,
            rectified,
            unchanging,
            judgements,
        )

    def _is_constant(self, node: Node) -> bool:
        """True for one of _SOFTMAXES over one element: its results are all 1, or all 0."""
        shape = self.graph.shape(node.inputs[0].known) or ()
        given = attribute(node, "axis")
        over_rest = self.graph.scope.origin.opset < _SOFTMAX_OF_ONE_AXIS
        axis = int(given.i) if given is not None else 1 if over_rest else -1
        if not -len(shape) <= axis < len(shape):
            return False
        return all(size == 1 for size in (shape[axis:] if over_rest else (shape[axis],)))

    def _is_rectified(self, node: Node) -> bool:
        """True if the last node that was fused into a node is a Relu."""
        return self.graph.nodes[node.index].op_type == "Relu"

    def alive(self) -> list[Node]:
        """Returns the nodes that an output of the graph depends on, in order."""
        members = set(self.group)
        needed = {value.producer for value in self.exits if value.producer is not None}
        todo = list(needed)
        while todo:
            before = members.intersection(todo.pop().producers) - needed
            needed |= before
            todo += before
        return [node for node in self.group if node in needed]

    def _rows(self, node: Node) -> Sequence[_Row]:
        path = self.graph.path(node.index)
        inputs = [value for value in self._tensors_of(node) if value.name]
        if node.op_type == QUICK_GELU:
            gate = Value(f"{node.outputs[0].name}/sigmoid", like=node.outputs[0])
            sigmoid = self.graph.path(node.absorbed[-1])
            product = _Row(node, [*inputs, gate], node.outputs, path, "Mul")
            return _Row(node, inputs, [gate], sigmoid, "Sigmoid"), product
        return (_Row(node, inputs, node.outputs, path, node.op_type),)

    def _tensors_of(self, node: Node) -> Sequence[Value]:
        """Returns the inputs that DirectML reads; the CPU reads the others."""
        on_cpu = row_of(node.op_type).cpu_inputs
        return [value for i, value in enumerate(node.inputs) if i not in on_cpu] if on_cpu else node.inputs

    def _node(
        self, row: _Row, inputs: Sequence[BufferTensorDesc], outputs: Sequence[BufferTensorDesc]
    ) -> tuple[GraphNode, Kind]:
        """Returns the operator with these tensors, and its kind; nodes that are alike share one."""
        node = row.node
        if is_created(self.graph, node) or node.is_inserted or node.proto is not self.graph.nodes[node.index].proto:
            return self._new_node(row, inputs, outputs)
        key = self.graph.alike[node.index], node in self.fusible, tuple(map(id, inputs)), tuple(map(id, outputs))
        found = self._of_alike.get(key)
        if found is None:
            found = self._of_alike[key] = self._new_node(row, inputs, outputs)
        return found

    def _new_node(
        self, row: _Row, inputs: Sequence[BufferTensorDesc], outputs: Sequence[BufferTensorDesc]
    ) -> tuple[GraphNode, Kind]:
        node, traits = row.node, row_of(row.name)
        kind, number = traits.kind_of(len(self.graph.shape(row.outputs[0].known) or ())), traits.dml
        if row.name == "Split":
            axis = self._axis(node, 0)
            return self._alike(
                "Split", inputs, outputs, axis, lambda: SplitOperatorDesc(inputs[0], outputs, axis)
            ), kind
        if row.name == "Concat":
            axis = self._axis(node, 1)
            return self._alike(
                "Concat", inputs, outputs, axis, lambda: JoinOperatorDesc(inputs, outputs[0], axis)
            ), kind
        members: dict[str, object] = {}
        if kind is Kind.COPIES:
            moved = row.name == "Transpose" and self._moves(node)
            same = len(inputs) == 1 and inputs[0].sizes == outputs[0].sizes and not moved
            kind = Kind.OBSERVED if same else Kind.COPIES
        elif row.name == "Slice":
            window = self._window(node, inputs[0].sizes or ())
            if window is None:
                kind = Kind.NOT_IN_PLACE
            else:
                members = {"DimensionCount": len(window[0]), **dict(zip(_WINDOW, window, strict=True))}
        elif row.name == "Cast" and inputs[0].total_tensor_size_in_bytes != outputs[0].total_tensor_size_in_bytes:
            kind = Kind.NOT_IN_PLACE
        elif kind is Kind.OBSERVED and not {desc.data_type for desc in (*inputs, *outputs)} <= _OBSERVED_TYPES:
            kind = Kind.UNKNOWN
        elif row.name == "LeakyRelu":
            alpha = attribute(node, "alpha")
            members = {"Alpha": 0.01 if alpha is None else float(alpha.f)}
        elif kind is Kind.OBSERVED and (self._changes_nothing(node) or node in self.fusible):
            kind = Kind.UNKNOWN  # the overwritten tensor may have the same value, or belong to another operator
        type_ = _UNKNOWN_TYPE if number is None else number
        more = tuple(members.items())
        made = self._alike(
            type_, inputs, outputs, more, lambda: AnyOperatorDesc.of_tensors(type_, inputs, outputs, members)
        )
        return made, kind

    def _alike(
        self,
        operator: int | str,
        inputs: Sequence[BufferTensorDesc],
        outputs: Sequence[BufferTensorDesc],
        more: object,
        make: Callable[[], GraphNode],
    ) -> GraphNode:
        """Returns the node made by `make`, from a cache: equal calls share one node. `inputs` and `outputs` are tensors
        from `_tensor` (compared by identity); `more` is everything else, hashable, on which the node depends."""
        key = operator, tuple(map(id, inputs)), tuple(map(id, outputs)), more
        if key not in self._nodes:
            self._nodes[key] = make()
        return self._nodes[key]

    def _changes_nothing(self, node: Node) -> bool:
        return noop_elimination(self.optimized, node) is not None

    def _axis(self, node: Node, default: int) -> int:
        rank = len(self.graph.shape(node.inputs[0].known) or ())
        found = attribute(node, "axis")
        axis = default if found is None else int(found.i)
        return axis % max(rank, 1) + max(MIN_RANK - rank, 0)

    def _moves(self, node: Node) -> bool:
        """True if a Transpose changes the order of elements in memory."""
        shape = self.graph.shape(node.inputs[0].known) or ()
        axes = permutation(node, len(shape))
        order = [i for i in axes if shape[i] != 1] if len(axes) == len(shape) else None
        return order is None or order != sorted(order)

    def _window(
        self, node: Node, sizes: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        """Returns offsets, sizes and steps of a Slice, for tensors of the rank of `sizes`; None if they are unknown, or
        a step is negative."""
        rank, added = len(sizes), len(sizes) - len(self.graph.shape(node.inputs[0].known) or ())
        if self.graph.scope.origin.opset < 10:
            given = {a.name: tuple(a.ints) for a in node.proto.attribute}
            parameters = [given.get(name) for name in ("starts", "ends", "axes")]
        else:
            parameters = [self.graph.integers(value.name) for value in node.inputs[1:5]]
        starts, ends, axes, steps = (*parameters, None, None, None, None)[:4]
        if starts is None or ends is None:
            return None
        axes = axes if axes is not None else tuple(range(len(starts)))
        steps = steps if steps is not None else (1,) * len(starts)
        offsets, lengths, strides = [0] * rank, list(sizes), [1] * rank
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=False):
            if not added - rank <= axis < rank - added:
                return None
            place = axis % (rank - added) + added
            taken = range(*slice(start, end, step).indices(sizes[place])) if step else range(0)
            if step < 1 or not taken:
                return None
            offsets[place], lengths[place], strides[place] = taken[0], taken[-1] - taken[0] + 1, step
        return tuple(offsets), tuple(lengths), tuple(strides)

    def _sizes(self, value: Value) -> tuple[int, ...]:
        shape = self.graph.shape(value.known) or ()
        sizes = [dim for dim in shape if isinstance(dim, int)]
        return (*(1,) * (MIN_RANK - len(sizes)), *sizes)

    def _tensor(self, value: Value, sizes: Sequence[int] | None = None) -> BufferTensorDesc:
        """Returns the descriptor of a tensor or, given `sizes`, of a packed tensor of its data type and these sizes.
        Equal tensors share one object."""
        if sizes is not None:
            return self._described(value, tuple(sizes))
        found = self._tensors.get(value)
        if found is None:
            kind = self.graph.data_type(value.known_type), self.graph.shape(value.known)
            found = self._of_kind.get(kind)
            if found is None:
                found = self._of_kind[kind] = self._described(value, self._sizes(value))
            self._tensors[value] = found
        return found

    def _described(self, value: Value, sizes: tuple[int, ...]) -> BufferTensorDesc:
        element = self._element(value)
        data_type = TensorDataType.FLOAT32 if element is None or element.data_type is None else element.data_type
        key = data_type, sizes
        if key not in self._descs:
            self._descs[key] = BufferTensorDesc(*key)
        return self._descs[key]

    def _element(self, value: Value) -> ElementType | None:
        return element_type(self.graph.data_type(value.known_type))

    def _bytes(self, value: Value) -> int:
        element = self._element(value)
        return math.prod(self._sizes(value)) * (element.itemsize if element is not None else 1)

    def _behind_transposes(self, alive: Sequence[Node]) -> set[Node]:
        """Returns the nodes behind a Transpose, including those behind nodes over which ONNX Runtime may move it."""
        if self.graph.options.optimization < 1 or all(node.op_type != "Transpose" for node in alive):
            return set()
        if moved(self.graph) is self.optimized:
            return set()  # it is known which are moved
        members, found = set(alive), set[Node]()
        for node in alive:
            for before in (value.producer for value in self._tensors_of(node)):
                moves = before in members and before.op_type == "Transpose" and self._moves(before)
                if moves or (before in found and before.op_type in HANDLERS):
                    found.add(node)
        return found
