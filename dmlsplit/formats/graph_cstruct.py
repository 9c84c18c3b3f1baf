"""A DML_GRAPH_DESC in C memory, and back: DirectML.h's structs as a 64-bit program lays them out.

A node of the C struct holds an IDMLOperator, which does not reveal its descriptor. So the caller of `read` passes a
descriptor for each operator's address, and the caller of `write` the operators' addresses.

Source of the layouts: DirectML.h, DML_TARGET_VERSION >= 0x2100; they are the same on x64 and ARM64.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any, Final, TypeAlias, TypeVar

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.formats.cstruct import MAX_TENSOR_COUNT, POINTER, UINT, _array, _at, _check_count, struct_type
from dmlsplit.graphs import (
    GraphDesc,
    GraphNode,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
)
from dmlsplit.graphs.descriptors import edge_counts
from dmlsplit.system.errors import DescriptorError

OPERATOR_NODE: Final = 1
"""DML_GRAPH_NODE_TYPE_OPERATOR."""
INPUT_EDGE, OUTPUT_EDGE, INTERMEDIATE_EDGE = 1, 2, 3  # DML_GRAPH_EDGE_TYPE
NO_OPERATOR: Final = 0
"""DML_OPERATOR_INVALID: the type of nodes that are not operators, such as constants."""


def _edge_struct(name: str, kind: type[Edge]) -> type[ctypes.Structure]:
    return struct_type(name, **dict.fromkeys(kind.members(), UINT), Name=POINTER)


Edge: TypeAlias = InputGraphEdgeDesc | OutputGraphEdgeDesc | IntermediateGraphEdgeDesc
DML_GRAPH_NODE_DESC = struct_type("DML_GRAPH_NODE_DESC", Type=UINT, Desc=POINTER)
DML_OPERATOR_GRAPH_NODE_DESC = struct_type("DML_OPERATOR_GRAPH_NODE_DESC", Operator=POINTER, Name=POINTER)
DML_GRAPH_EDGE_DESC = struct_type("DML_GRAPH_EDGE_DESC", Type=UINT, Desc=POINTER)
DML_INPUT_GRAPH_EDGE_DESC = _edge_struct("DML_INPUT_GRAPH_EDGE_DESC", InputGraphEdgeDesc)
DML_OUTPUT_GRAPH_EDGE_DESC = _edge_struct("DML_OUTPUT_GRAPH_EDGE_DESC", OutputGraphEdgeDesc)
DML_INTERMEDIATE_GRAPH_EDGE_DESC = _edge_struct("DML_INTERMEDIATE_GRAPH_EDGE_DESC", IntermediateGraphEdgeDesc)
DML_GRAPH_DESC = struct_type(
    "DML_GRAPH_DESC",
    InputCount=UINT,
    OutputCount=UINT,
    NodeCount=UINT,
    Nodes=POINTER,
    InputEdgeCount=UINT,
    InputEdges=POINTER,
    OutputEdgeCount=UINT,
    OutputEdges=POINTER,
    IntermediateEdgeCount=UINT,
    IntermediateEdges=POINTER,
)

_EDGES: Final[dict[str, tuple[int, type[ctypes.Structure]]]] = {
    "InputEdge": (INPUT_EDGE, DML_INPUT_GRAPH_EDGE_DESC),
    "OutputEdge": (OUTPUT_EDGE, DML_OUTPUT_GRAPH_EDGE_DESC),
    "IntermediateEdge": (INTERMEDIATE_EDGE, DML_INTERMEDIATE_GRAPH_EDGE_DESC),
}
_Edge = TypeVar("_Edge", InputGraphEdgeDesc, OutputGraphEdgeDesc, IntermediateGraphEdgeDesc)


class CGraph:
    """The structs of one graph. Their memory belongs to this object; the operators belong to the caller."""

    def __init__(self, desc: ctypes.Structure, memory: list[Any]) -> None:
        self._memory = (desc, memory)
        self.address: Final = ctypes.addressof(desc)
        """The address of the DML_GRAPH_DESC."""


def write(graph: GraphDesc, operators: Sequence[int]) -> CGraph:
    """Returns a graph's C structs in fresh memory, which the result owns. The tensors of the graph's inputs and outputs
    cannot be expressed in C and are dropped.

    `operators` are the addresses of the nodes' IDMLOperators, in the order of `graph.nodes`. Raises ValueError if their
    number is not the number of nodes.
    """
    if len(operators) != len(graph.nodes):
        raise ValueError(f"operators: {len(operators)} addresses are given for {len(graph.nodes)} nodes")
    memory: list[Any] = []
    struct = DML_GRAPH_DESC(InputCount=len(graph.inputs), OutputCount=len(graph.outputs), NodeCount=len(graph.nodes))
    descs = [DML_OPERATOR_GRAPH_NODE_DESC(address, None) for address in operators]
    struct.Nodes = _pointers(DML_GRAPH_NODE_DESC, OPERATOR_NODE, descs, memory)
    for name, edges in _sides(graph):
        kind, layout = _EDGES[name]
        members = [layout(*astuple(edge)) for edge in edges]
        setattr(struct, f"{name}Count", len(members))
        setattr(struct, f"{name}s", _pointers(DML_GRAPH_EDGE_DESC, kind, members, memory))
    return CGraph(struct, memory)


def _pointers(
    layout: type[ctypes.Structure],
    kind: int,
    descs: Sequence[ctypes.Structure],
    memory: list[Any],
) -> int:
    """Returns the address of a new array of `layout` structs, each with Type `kind` and a pointer to one of `descs`.
    Appends the array and `descs` to `memory`, which keeps them alive."""
    array = (layout * max(len(descs), 1))()
    for entry, desc in zip(array, descs, strict=False):  # an empty array is not a null pointer
        entry.Type, entry.Desc = kind, ctypes.addressof(desc)
    memory += [descs, array]
    return ctypes.addressof(array)


def _sides(graph: GraphDesc) -> Iterator[tuple[str, Sequence[Edge]]]:
    yield from zip(_EDGES, (graph.input_edges, graph.output_edges, graph.intermediate_edges), strict=True)


def read(address: int, operators: Mapping[int, GraphNode]) -> GraphDesc:
    """Returns the graph at an address of this process; everything is copied, no reference to the memory remains.

    `address` points to the DML_GRAPH_DESC. `operators` maps the address of an IDMLOperator to its descriptor; other
    operators, and nodes that are not operators, get the type NO_OPERATOR. The graph's inputs and outputs are None,
    which stands for the tensors at the other ends of their edges.

    Raises DescriptorError, which names the member, for a null or misaligned address, an edge whose type is not that of
    its array, and a count above MAX_TENSOR_COUNT. Any other address is the caller's responsibility.
    """
    struct = _at(DML_GRAPH_DESC, address, "DML_GRAPH_DESC")
    for name in ("InputCount", "OutputCount"):
        _check_count(getattr(struct, name), MAX_TENSOR_COUNT, name)
    inputs = _read_edges(struct, "InputEdge", InputGraphEdgeDesc)
    outputs = _read_edges(struct, "OutputEdge", OutputGraphEdgeDesc)
    wires = _read_edges(struct, "IntermediateEdge", IntermediateGraphEdgeDesc)
    counts = edge_counts(inputs, outputs, wires)
    nodes: list[GraphNode] = []
    for i, entry in enumerate(_entries(struct, "Node", DML_GRAPH_NODE_DESC)):
        desc = None
        if entry.Type == OPERATOR_NODE:
            node = _at(DML_OPERATOR_GRAPH_NODE_DESC, entry.Desc, f"Nodes[{i}].Desc")
            desc = operators.get(node.Operator or 0)
        if desc is None:
            reached, used = counts.get(i, (0, 0))
            desc = AnyOperatorDesc.of_tensors(NO_OPERATOR, [None] * reached, [None] * used)
        nodes.append(desc)
    return GraphDesc([None] * struct.InputCount, [None] * struct.OutputCount, nodes, inputs, outputs, wires)


def _entries(struct: ctypes.Structure, name: str, layout: type[ctypes.Structure]) -> Iterable[Any]:
    count, address = getattr(struct, f"{name}Count"), getattr(struct, f"{name}s")
    return _array(layout, address or 0, count, MAX_TENSOR_COUNT, f"{name}s", f"{name}Count") or () if count else ()


def _read_edges(struct: ctypes.Structure, name: str, kind: type[_Edge]) -> list[_Edge]:
    number, layout = _EDGES[name]
    edges = []
    for i, entry in enumerate(_entries(struct, name, DML_GRAPH_EDGE_DESC)):
        if entry.Type != number:
            raise DescriptorError(f"{name}s[{i}].Type: {entry.Type} is not {number}")
        edge = _at(layout, entry.Desc, f"{name}s[{i}].Desc")
        edges.append(kind(*[getattr(edge, member) for member in kind.members()]))
    return edges
