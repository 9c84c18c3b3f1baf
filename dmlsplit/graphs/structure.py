"""Faults that a graph has before it is compiled: indices, edges whose ends differ, unconnected nodes, cycles."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from dmlsplit.descriptors.any_operator import AnyOperatorDesc, Tensors
from dmlsplit.descriptors.descs import BufferTensorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Value
from dmlsplit.descriptors.location import Location
from dmlsplit.graphs.descriptors import GraphDesc, node_tensors, node_type
from dmlsplit.graphs.operators import BY_NUMBER, SPLIT
from dmlsplit.rules.graph import GRAPH_RULES


def faults(graph: GraphDesc) -> tuple[Diagnostic, ...]:
    """Returns all structural faults of a graph, in the order of its members, in time linear in its size."""
    return tuple(_Structure(graph).found)


class _End(NamedTuple):
    """An end of an edge: a tensor of a node, or of the graph if `node` is None."""

    node: int | None
    tensor_index: int
    tensor: TensorDesc | None


class _Structure:
    """Judges one graph: collects the tensors that its edges reach and use, and the faults."""

    def __init__(self, graph: GraphDesc) -> None:
        self.graph = graph
        self.ends = [node_tensors(node) for node in graph.nodes]
        self.reached: set[tuple[int | None, int]] = set()
        """Inputs of nodes, and graph outputs (node None), that an edge reaches."""
        self.used: set[int | None] = set()
        """The nodes with an output that an edge uses."""
        self.found: list[Diagnostic] = []
        self._look_at_tensors()
        self._look_at_edges()
        self._look_at_nodes()

    def _add(self, rule: str, place: Location, message: str, expected: Value = None, actual: Value = None) -> None:
        self.found.append(GRAPH_RULES[rule].diagnostic(place, message, expected=expected, actual=actual))

    def _look_at_tensors(self) -> None:
        for name, tensors in (("Inputs", self.graph.inputs), ("Outputs", self.graph.outputs)):
            for i, tensor in enumerate(tensors):
                if tensor is not None and _buffer(tensor) is None:
                    self._add("graph/tensor-null", Location.of(name, i), "the tensor's Desc is null")
                self._look_at_length(tensor, Location.of(name, i))
        for i, (inputs, outputs) in enumerate(self.ends):
            known = node_type(self.graph.nodes[i]) in BY_NUMBER  # operators that are not in the table are not judged
            if known and None in map(_buffer, (*inputs, *outputs)):
                self._add("graph/tensor-null", Location.of("Nodes", i), "one of its tensors, or its Desc, is null")
            if isinstance(self.graph.nodes[i], AnyOperatorDesc):  # Split and Join have rules of their own
                for tensor in (*inputs, *outputs):
                    self._look_at_length(tensor, Location.of("Nodes", i))

    def _look_at_length(self, tensor: TensorDesc | None, place: Location) -> None:
        desc = _buffer(tensor)
        for name, numbers in () if desc is None else (("Sizes", desc.sizes), ("Strides", desc.strides)):
            if desc is not None and numbers is not None and len(numbers) < desc.dimension_count:
                message = f"{name} has {len(numbers)} entries, but DimensionCount is {desc.dimension_count}"
                self._add("graph/tensor-short", place, message, desc.dimension_count, len(numbers))

    def _look_at_edges(self) -> None:
        graph = self.graph
        for i, edge in enumerate(graph.input_edges):
            place = Location.of("InputEdges", i)
            source = self._end(place, "GraphInputIndex", None, edge.graph_input_index, graph.inputs)
            self._connect(place, source, self._input(place, edge.to_node_index, edge.to_node_input_index))
        for i, wire in enumerate(graph.intermediate_edges):
            place = Location.of("IntermediateEdges", i)
            source = self._output(place, wire.from_node_index, wire.from_node_output_index)
            self._connect(place, source, self._input(place, wire.to_node_index, wire.to_node_input_index))
        for i, out in enumerate(graph.output_edges):
            place = Location.of("OutputEdges", i)
            source = self._output(place, out.from_node_index, out.from_node_output_index)
            target = self._end(place, "GraphOutputIndex", None, out.graph_output_index, graph.outputs)
            self._connect(place, source, target)

    def _input(self, place: Location, node: int, index: int) -> _End | None:
        in_range = self._in_range(place, "ToNodeIndex", node, len(self.ends))
        return self._end(place, "ToNodeInputIndex", node, index, self.ends[node][0]) if in_range else None

    def _output(self, place: Location, node: int, index: int) -> _End | None:
        in_range = self._in_range(place, "FromNodeIndex", node, len(self.ends))
        return self._end(place, "FromNodeOutputIndex", node, index, self.ends[node][1]) if in_range else None

    def _end(self, place: Location, name: str, node: int | None, index: int, tensors: Tensors) -> _End | None:
        in_range = self._in_range(place, name, index, len(tensors))
        return _End(node, index, tensors[index]) if in_range else None

    def _in_range(self, place: Location, name: str, index: int, count: int) -> bool:
        if index >= count:
            self._add(
                "graph/index-range", place.member(name), f"{name} {index} is out of range", f"below {count}", index
            )
        return index < count

    def _connect(self, place: Location, source: _End | None, target: _End | None) -> None:
        """Records an edge between two ends (None if an index is out of range), and adds a fault if they differ in data
        type or total size, or if another edge leads to the same target. CompileGraph does not compare the sizes
        themselves."""
        if source is None or target is None:
            return
        first, second = _buffer(source.tensor), _buffer(target.tensor)
        if first is not None and second is not None:
            types = str(first.data_type), str(second.data_type)
            totals = first.total_tensor_size_in_bytes, second.total_tensor_size_in_bytes
            if first.data_type != second.data_type:
                self._add("graph/edge-data-type", place, "its ends differ in data type", *types)
            elif totals[0] != totals[1]:
                self._add("graph/edge-size", place, "its ends differ in total size", *totals)
        if target[:2] in self.reached:
            what = "the same input" if target.node is not None else f"graph output {target.tensor_index}"
            self._add("graph/edge-twice", place, f"another edge reaches {what}")
        self.reached.add(target[:2])
        self.used.add(source.node)

    def _look_at_nodes(self) -> None:
        graph = self.graph
        if not graph.nodes:
            self._add("graph/empty", Location.of("Nodes"), "the graph has no nodes")
        for i, (inputs, _) in enumerate(self.ends):
            whole = isinstance(graph.nodes[i], AnyOperatorDesc)  # for these operators a null tensor is an absent one
            for k, tensor in enumerate(inputs):
                if (i, k) not in self.reached and not (whole and tensor is None):
                    self._add("graph/input-unconnected", Location.of("Nodes", i), f"no edge reaches its input {k}")
        for i, (_, results) in enumerate(self.ends):
            if results and i not in self.used:
                many = "none of its outputs is" if node_type(graph.nodes[i]) == SPLIT else "its output is not"
                self._add("graph/node-unused", Location.of("Nodes", i), f"{many} used by a node or the graph")
        for i in range(len(graph.outputs)):
            if (None, i) not in self.reached:
                self._add("graph/output-unconnected", Location.of("Outputs", i), "no edge reaches this graph output")
        cycle = None if self.found else _cycle(graph)
        if cycle is not None:
            self._add("graph/cycle", Location.of("Nodes", cycle), "it needs its own output")


def _buffer(tensor: TensorDesc | None) -> BufferTensorDesc | None:
    return None if tensor is None or tensor.desc is None or tensor.desc.sizes is None else tensor.desc


def _cycle(graph: GraphDesc) -> int | None:
    """Returns the lowest index of the nodes of one cycle; None if there is no cycle. If the edges form several cycles,
    any of them is taken."""
    order: TopologicalSorter[int] = TopologicalSorter()
    for edge in graph.intermediate_edges:
        order.add(edge.to_node_index, edge.from_node_index)
    try:
        order.prepare()
    except CycleError as error:
        nodes: list[int] = error.args[1]
        return min(nodes)
    return None
