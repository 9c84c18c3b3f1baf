"""Transposes are moved over the nodes behind them if fewer, or smaller, ones remain, and are removed where they meet
their inverse.

Source: transpose_optimizer.cc and onnx_transpose_optimization.cc of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Doubt, Graph, Node, Value
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import common_subexpression_elimination
from dmlsplit.onnxruntime.passes.transpose_handlers import handler_of
from dmlsplit.onnxruntime.passes.transposed_tensors import (
    Axes,
    Move,
    TransposedTensors,
    UnsureError,
    normalized,
    permutation,
)

_COST_OF_UNKNOWN: Final = 5
"""Of transposing a tensor of unknown rank."""


def transpose_optimizer(graph: Graph) -> None:
    """Removes, in place, the Transposes that are gone when all are moved, where the nodes around them then read and
    write tensors of the model. The others are moved after placement (optimization.py). Where they are not, because it
    is not known which are, adds Doubt.TRANSPOSED to the nodes over which one may be moved."""
    if not any(permutation(node) for node in graph.nodes):
        return
    after = graph.copy()
    copies = dict(zip(graph.nodes, after.nodes, strict=True))
    try:
        passed = move_transposes(after)
    except UnsureError:
        doubt_moves(graph)
    else:
        known = _Known(graph, copies, after)
        known.take_over()
        if has_quantized(graph):
            _doubt(node for node in graph.nodes if copies[node] in passed and node not in known.tensors)
    after.release()


def doubt_moves(graph: Graph) -> None:
    """Adds, in place, Doubt.TRANSPOSED to the nodes over which Transposes may be moved."""
    _doubt(set(_behind_transposes(graph)))


def _doubt(nodes: Iterable[Node]) -> None:
    for node in nodes:
        node.doubts |= {Doubt.TRANSPOSED}


class _Known:
    """The part of what the moves make of a graph that is known: its nodes read and write only tensors of the model.

    `copies` maps the nodes of the graph to those of the graph `after` the moves.
    """

    def __init__(self, graph: Graph, copies: Mapping[Node, Node], after: Graph) -> None:
        self.gone = {node for node, other in copies.items() if other not in after and node.is_used}
        """The nodes that are removed."""
        self.tensors: dict[Node, tuple[Sequence[Value], Sequence[Value]]] = {}
        """The nodes that change, with the tensors that they then read, and those that they write."""
        self._graph, self._copies, self._after = graph, copies, after
        self._originals = {other: node for node, other in copies.items()}
        for node, other in copies.items():
            read, written = _same_in(graph, other.inputs), _same_in(graph, other.outputs)
            is_changed = other.proto is not node.proto
            if other not in after or read is None or written is None or (is_changed and node.op_type in JUDGED):
                continue
            if is_changed or _names(read) != _names(node.inputs) or _names(written) != _names(node.outputs):
                self.tensors[node] = read, written
        while unfit := [node for node in (*self.gone, *self.tensors) if not self._fits(node)]:
            self.gone.difference_update(unfit)
            for node in unfit:
                self.tensors.pop(node, None)

    def take_over(self) -> None:
        """Changes the graph, in place."""
        if self.gone or self.tensors:
            self._graph.before_moves = self._graph.copy()
        for node in self.gone:
            self._graph.remove(node)
        for node, (read, written) in self.tensors.items():
            node.proto = self._copies[node].proto
            self._graph.read(node, read)
            self._graph.write(node, written)

    def _fits(self, node: Node) -> bool:
        """True if every tensor that the graph then reads is computed by one node, the same as after the moves."""
        read, written = self.tensors.get(node, ((), ()))
        lost = [value for value in node.outputs if value.name and value not in written]
        new = [value for value in written if value.name and value not in node.outputs]
        return (
            all(self._writer(value) is not None or self._is_unread(value) for value in lost)
            and all(value.producer is not None and self._stops(value.producer, value) for value in new)
            and all(self._is_computed(value) for value in read if value.name and value not in node.inputs)
        )

    def _writer(self, value: Value) -> Node | None:
        """Returns the node that changes and then computes a tensor; None if there is none."""
        producer = self._after.values[value.name].producer
        found = None if producer is None else self._originals.get(producer)
        return found if found in self.tensors else None

    def _stops(self, node: Node, value: Value) -> bool:
        """True if a node that reads or writes a tensor does so no longer."""
        kept = (*chain(*self.tensors[node]), *node.captured) if node in self.tensors else (value,)
        return node in self.gone or value not in kept

    def _is_unread(self, value: Value) -> bool:
        return not value.is_output and all(self._stops(reader, value) for reader in value.readers)

    def _is_computed(self, value: Value) -> bool:
        """True if a tensor is computed by the node that computes it after the moves, or by none."""
        producer = self._after.values[value.name].producer
        if producer is None or value.producer is None:
            return producer is value.producer
        return self._writer(value) is not None or self._originals.get(producer) is value.producer


def _same_in(graph: Graph, values: Iterable[Value]) -> Sequence[Value] | None:
    """Returns the values of a graph with the names of `values`, which are of a copy; None if it lacks one."""
    found = [graph.values.get(value.name) if value.name else value for value in values]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else None


def _names(values: Iterable[Value]) -> list[str]:
    return [value.name for value in values]


def _behind_transposes(graph: Graph) -> Iterable[Node]:
    """Yields the nodes over which Transposes may be moved, some several times."""

    def behind(node: Node) -> Iterable[Node]:
        return [reader for reader in node.readers if handler_of(reader, graph.facts) is not None]

    for node in depth_first([node for node in graph.nodes if permutation(node)], behind):
        yield from behind(node)


def has_quantized(graph: Graph) -> bool:
    """True if the graph has operators with quantized elements: it is not known how Transposes are moved around them."""
    return any(_is_quantized(node) for node in graph.nodes)


def move_transposes(graph: Graph) -> set[Node]:
    """Moves the Transposes of a graph, in place, and returns the nodes over which one was moved. ONNX Runtime repeats
    the other passes of level 1, but makes this one once. Raises UnsureError if it is not known which are moved; the
    graph is then of no use."""
    mover = _Mover(graph)
    mover.move()
    mover.fold()
    common_subexpression_elimination(graph)
    return mover.passed


class _Mover:
    """Moves the Transposes of a graph, in place."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.passed: set[Node] = set()
        """The nodes over which a Transpose was moved."""
        self._tensors = TransposedTensors(graph)
        self._leading: set[Value] = set()
        self._stops: dict[Value, Node | None] = {}
        """A reader of each tensor over which no Transpose is moved; None if there is none."""

    def move(self) -> None:
        """Moves Transposes over the nodes behind them, in the order of the walk."""
        order = self.graph.walk()
        self._leading = self._leading_to_transposes(order)
        for node in order:
            if node in self.graph:
                self._pass(node)

    def fold(self) -> None:
        """Replaces Transposes, Squeezes and Unsqueezes of constants with constants."""
        for node in self.graph.walk():
            source = node.inputs[0] if node.inputs else None
            if source is None or not self._tensors.is_local_constant(source) or node.outputs[0].is_output:
                continue
            if not (axes := self._source_axes(node)):
                continue
            constant = self._tensors.arranged(source, axes)
            self._tensors.replace(list(node.outputs[0].readers), node.outputs[0], constant)
            self.graph.remove(node)

    def _source_axes(self, node: Node) -> Sequence[int | None]:
        """Returns, for each dimension of the output of a Transpose, Squeeze or Unsqueeze, the dimension of the input
        that it is, None for a new one; () for other nodes and if that is not known."""
        rank = len(self.facts.shape(node.inputs[0].known) or ())
        if node.op_type == "Transpose":
            return permutation(node)
        axes = self._tensors.axes(node) if node.op_type in ("Squeeze", "Unsqueeze") else None
        if axes is None:
            return ()
        if node.op_type == "Squeeze":
            gone = normalized(axes, rank)
            return () if gone is None else [i for i in range(rank) if i not in gone]
        new = normalized(axes, rank + len(axes))
        kept = iter(range(rank))
        return () if new is None else [None if i in new else next(kept) for i in range(rank + len(axes))]

    def _leading_to_transposes(self, order: Sequence[Node]) -> set[Value]:
        """Returns the tensors from which a Transpose is reached over nodes over which Transposes may be moved."""
        found: set[Value] = set()
        for node in reversed(order):
            if node.op_type == "Transpose":
                found.add(node.inputs[0])
            elif (
                (handler := handler_of(node, self.facts)) is not None
                and handler.transposes_outputs
                and not found.isdisjoint(node.outputs)
            ):
                found.update([node.inputs[i] for i in handler.inputs(self._tensors, node)])
        return found

    def _pass(self, node: Node) -> None:
        """Moves a Transpose in front of a node over it if that is cheaper."""
        handler = handler_of(node, self.facts)
        if handler is None:
            return
        for place, value in enumerate(node.inputs):
            perm = permutation(value.producer)
            indices = handler.inputs(self._tensors, node) if perm else ()
            if place not in indices or not self._is_cheaper(node, perm, indices, handler.transposes_outputs):
                continue
            assert value.producer is not None
            self._tensors.moved = value.producer
            if handler.move(self._tensors, Move(value.producer, node, perm, indices)):
                self.passed.add(node)
                return

    def _is_cheaper(self, node: Node, perm: Axes, indices: Sequence[int], transposes_outputs: bool) -> bool:
        """Returns True if moving a Transpose over a node is estimated to save transposes: the cost of those on the
        node's inputs sinks and, unless a Transpose follows, more than the cost of one behind the node. Always True
        for another Transpose, which merges."""
        if node.op_type == "Transpose":
            return True
        cost = sum(self._cost_of_input(node.inputs[i], perm) for i in indices)
        if cost < 0 and transposes_outputs and self._leading.isdisjoint(node.outputs):
            cost += max([self._cost(value) for value in node.outputs], default=0)
        return cost < 0

    def _cost_of_input(self, value: Value, perm: Axes) -> int:
        if value.producer is None and self.facts.is_constant(value.name):
            return 0
        found = permutation(value.producer)
        if found:
            return -self._cost(value) if found == perm and self._passes_all_readers(value) else 0
        return self._cost(value)

    def _passes_all_readers(self, value: Value) -> bool:
        """True if a Transpose that computes a tensor may be moved over each node that reads the tensor. Readers are not
        looked at again until there are new ones: each of many asks."""
        stops = self._stops.get(value)
        is_new = value not in self._stops or value in self._tensors.newly_read
        if is_new or (stops is not None and stops not in value.readers):
            self._tensors.newly_read.discard(value)
            found = (node for node in value.readers if value in node.captured or handler_of(node, self.facts) is None)
            stops = self._stops[value] = next(found, None)
        return stops is None and not value.is_output and bool(value.readers)

    def _cost(self, value: Value) -> int:
        """Returns the number of a tensor's dimensions other than 1."""
        shape = self.facts.shape(value.known)
        return _COST_OF_UNKNOWN if shape is None else sum(size != 1 for size in shape)


def _is_quantized(node: Node) -> bool:
    """True for an operator with quantized elements."""
    name = node.proto.op_type
    return "QuantizeLinear" in name or "DequantizeLinear" in name or (bool(domain_of(node.proto)) and "QLinear" in name)
