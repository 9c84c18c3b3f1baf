"""DirectML's graph descriptors as frozen dataclasses.

Building one never judges it: an index out of range, a cycle, or an edge whose ends differ can be represented, so that
`validate` can report them. Only values outside the range of the member's C type are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeAlias

from dmlsplit.descriptors.any_operator import AnyOperatorDesc, Tensors, narrowed
from dmlsplit.descriptors.descs import JoinOperatorDesc, SplitOperatorDesc, TensorDesc, TensorLike, _tensors, _uint
from dmlsplit.descriptors.enums import UINT_MAX
from dmlsplit.graphs.operators import JOIN, SPLIT

_MOST_OPTIONAL: Final = 16
"""The most tensors of an operator that may be absent."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Edge:
    """An edge; its fields are in the order of the struct's members."""

    @classmethod
    def members(cls) -> tuple[str, ...]:
        """Returns the C names of the edge's indices, such as "ToNodeIndex", in the struct's order."""
        return tuple([member for _, member in cls._named()])

    @classmethod
    @cache
    def _named(cls) -> tuple[tuple[str, str], ...]:
        """Returns (field name, C name) pairs of the edge's indices, in the struct's order."""
        return tuple([(index.name, index.name.title().replace("_", "")) for index in fields(cls)])

    @classmethod
    @cache
    def _values(cls) -> Callable[[_Edge], tuple[Any, ...]]:
        """Returns a function that takes an edge and returns its indices, in the struct's order."""
        return attrgetter(*(index for index, _ in cls._named()))

    def __post_init__(self) -> None:
        values = self._values()(self)
        for value in values:
            if type(value) is not int or not 0 <= value <= UINT_MAX:
                break
        else:
            return
        for value, (index, member) in zip(values, self._named(), strict=True):
            object.__setattr__(self, index, _uint(value, member))


@dataclass(frozen=True, slots=True)
class InputGraphEdgeDesc(_Edge):
    """DML_INPUT_GRAPH_EDGE_DESC: a graph input feeds an input of a node."""

    graph_input_index: int
    to_node_index: int
    to_node_input_index: int


@dataclass(frozen=True, slots=True)
class OutputGraphEdgeDesc(_Edge):
    """DML_OUTPUT_GRAPH_EDGE_DESC: an output of a node is a graph output."""

    from_node_index: int
    from_node_output_index: int
    graph_output_index: int


@dataclass(frozen=True, slots=True)
class IntermediateGraphEdgeDesc(_Edge):
    """DML_INTERMEDIATE_GRAPH_EDGE_DESC: an output of a node feeds an input of another."""

    from_node_index: int
    from_node_output_index: int
    to_node_index: int
    to_node_input_index: int


GraphNode: TypeAlias = SplitOperatorDesc | JoinOperatorDesc | AnyOperatorDesc


@dataclass(frozen=True, slots=True, init=False)
class GraphDesc:
    """DML_GRAPH_DESC: nodes, and edges between them and the graph's inputs and outputs.

    `inputs` and `outputs` are the graph's tensors; the C struct has only their counts. None stands for the node tensor
    that the edge connects to. A BufferTensorDesc is wrapped in a TensorDesc. The same descriptor may occur at several
    indices: each is a separate node.
    """

    inputs: Tensors
    outputs: Tensors
    nodes: tuple[GraphNode, ...]
    input_edges: tuple[InputGraphEdgeDesc, ...]
    output_edges: tuple[OutputGraphEdgeDesc, ...]
    intermediate_edges: tuple[IntermediateGraphEdgeDesc, ...]

    def __init__(
        self,
        inputs: Iterable[TensorLike],
        outputs: Iterable[TensorLike],
        nodes: Iterable[GraphNode],
        input_edges: Iterable[InputGraphEdgeDesc],
        output_edges: Iterable[OutputGraphEdgeDesc],
        intermediate_edges: Iterable[IntermediateGraphEdgeDesc] = (),
    ) -> None:
        put = object.__setattr__
        put(self, "inputs", _tensors(tuple(inputs), "Inputs"))
        put(self, "outputs", _tensors(tuple(outputs), "Outputs"))
        found = _instances(nodes, (SplitOperatorDesc, JoinOperatorDesc, AnyOperatorDesc), "Nodes")
        put(self, "nodes", tuple([narrowed(node) if isinstance(node, AnyOperatorDesc) else node for node in found]))
        put(self, "input_edges", _instances(input_edges, (InputGraphEdgeDesc,), "InputEdges"))
        put(self, "output_edges", _instances(output_edges, (OutputGraphEdgeDesc,), "OutputEdges"))
        wires = _instances(intermediate_edges, (IntermediateGraphEdgeDesc,), "IntermediateEdges")
        put(self, "intermediate_edges", wires)


def _instances(values: Iterable[object], types: tuple[type, ...], path: str) -> tuple[object, ...]:
    found = tuple(values)
    for i, value in enumerate(found):
        if not isinstance(value, types):
            names = " or ".join(type.__name__ for type in types)
            raise TypeError(f"{path}[{i}]: {type(value).__name__} is not a {names}")
    return found


def node_tensors(node: GraphNode) -> tuple[Tensors, Tensors]:
    """Returns the input and output tensors of a node; for a Split or Join only as many as its count says."""
    if isinstance(node, SplitOperatorDesc):
        return (node.input_tensor,), (node.output_tensors or ())[: node.output_count]
    if isinstance(node, JoinOperatorDesc):
        return (node.input_tensors or ())[: node.input_count], (node.output_tensor,)
    return node.inputs, node.outputs


def described(graph: GraphDesc) -> GraphDesc:
    """Returns the graph with each input and output that is None replaced by the node tensor that its edge connects to;
    None remains if there is no such edge."""
    if None not in graph.inputs and None not in graph.outputs:
        return graph
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    ends = [node_tensors(node) for node in graph.nodes]
    for edge in graph.input_edges:
        index = edge.graph_input_index
        if index < len(inputs) and inputs[index] is None and edge.to_node_index < len(ends):
            inputs[index] = _entry(ends[edge.to_node_index][0], edge.to_node_input_index)
    for out in graph.output_edges:
        index = out.graph_output_index
        if index < len(outputs) and outputs[index] is None and out.from_node_index < len(ends):
            outputs[index] = _entry(ends[out.from_node_index][1], out.from_node_output_index)
    return replace(graph, inputs=tuple(inputs), outputs=tuple(outputs))


def _entry(tensors: Tensors, index: int) -> TensorDesc | None:
    return tensors[index] if index < len(tensors) else None


def edge_counts(
    inputs: Iterable[InputGraphEdgeDesc],
    outputs: Iterable[OutputGraphEdgeDesc],
    wires: Sequence[IntermediateGraphEdgeDesc],
) -> dict[int, tuple[int, int]]:
    """Maps the index of each node that an edge names to the smallest numbers of inputs and outputs that its edges
    imply. An index far beyond the others is treated as a fault and implies nothing."""
    reached: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    to: Iterable[InputGraphEdgeDesc | IntermediateGraphEdgeDesc] = chain(inputs, wires)
    of: Iterable[OutputGraphEdgeDesc | IntermediateGraphEdgeDesc] = chain(outputs, wires)
    for edge in to:
        reached[edge.to_node_index][0].append(edge.to_node_input_index)
    for out in of:
        reached[out.from_node_index][1].append(out.from_node_output_index)
    return {node: (_count(into), _count(out_of)) for node, (into, out_of) in reached.items()}


def _count(indices: list[int]) -> int:
    return min(max(indices) + 1, len(indices) + _MOST_OPTIONAL) if indices else 0


def node_type(node: GraphNode) -> int:
    """Returns the DML_OPERATOR_TYPE of a node."""
    if isinstance(node, AnyOperatorDesc):
        return node.type
    return SPLIT if isinstance(node, SplitOperatorDesc) else JOIN
