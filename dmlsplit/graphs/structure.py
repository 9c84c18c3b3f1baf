"""Faults that a graph has before it is compiled: indices, edges whose ends differ, unconnected nodes, cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dmlsplit.descriptors import BufferTensorDesc, TensorDesc
from dmlsplit.graphs.descriptors import GraphDesc, Tensors, node_tensors, node_type
from dmlsplit.graphs.operators import BY_NUMBER, SPLIT
from dmlsplit.location import Location


@dataclass(frozen=True, slots=True)
class StructureFault:
    """One fault: the rule, where the member at fault is, and a sentence."""

    rule: str
    location: Location
    message: str
    expected: int | str | None = None
    actual: int | str | None = None


def faults(graph: GraphDesc) -> list[StructureFault]:
    """All of them, in the order of the members; linear in the size of the graph."""
    ends = [node_tensors(node) for node in graph.nodes]
    found = list(_nulls(graph, ends))
    reached: list[set[int]] = [set() for _ in ends]
    used: list[set[int]] = [set() for _ in ends]
    outputs: set[int] = set()
    found += _edges(graph, ends, reached, used, outputs)
    if not graph.nodes:
        found.append(StructureFault("graph/empty", Location.of("Nodes"), "the graph has no nodes"))
    for i, (inputs, _) in enumerate(ends):
        for k in range(len(inputs)):
            if k not in reached[i]:
                found.append(
                    StructureFault("graph/input-unconnected", Location.of("Nodes", i), f"no edge reaches its input {k}")
                )
    for i, (_, results) in enumerate(ends):
        if results and not used[i]:
            many = "none of its outputs is" if node_type(graph.nodes[i]) == SPLIT else "its output is not"
            found.append(
                StructureFault("graph/node-unused", Location.of("Nodes", i), f"{many} used by a node or the graph")
            )
    for i in range(len(graph.outputs)):
        if i not in outputs:
            found.append(
                StructureFault(
                    "graph/output-unconnected", Location.of("Outputs", i), "no edge reaches this graph output"
                )
            )
    if not found:
        cycle = _cycle(graph)
        if cycle is not None:
            found.append(StructureFault("graph/cycle", Location.of("Nodes", cycle), "it needs its own output"))
    return found


def _nulls(graph: GraphDesc, ends: list[tuple[Tensors, Tensors]]) -> Iterator[StructureFault]:
    for name, tensors in (("Inputs", graph.inputs), ("Outputs", graph.outputs)):
        for i, tensor in enumerate(tensors):
            if tensor is not None and _buffer(tensor) is None:
                yield StructureFault("graph/tensor-null", Location.of(name, i), "the tensor's Desc is null")
    for i, (inputs, outputs) in enumerate(ends):
        if node_type(graph.nodes[i]) not in BY_NUMBER:  # nothing is said of it anyway
            continue
        for tensor in (*inputs, *outputs):
            if _buffer(tensor) is None:
                yield StructureFault(
                    "graph/tensor-null", Location.of("Nodes", i), "one of its tensors, or its Desc, is null"
                )
                break


def _buffer(tensor: TensorDesc | None) -> BufferTensorDesc | None:
    return None if tensor is None or tensor.desc is None or tensor.desc.sizes is None else tensor.desc


def _edges(
    graph: GraphDesc,
    ends: list[tuple[Tensors, Tensors]],
    reached: list[set[int]],
    used: list[set[int]],
    outputs: set[int],
) -> Iterator[StructureFault]:
    for i, edge in enumerate(graph.input_edges):
        path = Location.of("InputEdges", i)
        bad = list(_range(path, "GraphInputIndex", edge.graph_input_index, len(graph.inputs)))
        bad += _end(path, "To", edge.to_node_index, "Input", edge.to_node_input_index, ends, 0)
        yield from bad
        if not bad:
            here = ends[edge.to_node_index][0][edge.to_node_input_index]
            yield from _ends(path, graph.inputs[edge.graph_input_index], here)
            yield from _taken(path, reached[edge.to_node_index], edge.to_node_input_index)
    for i, wire in enumerate(graph.intermediate_edges):
        path = Location.of("IntermediateEdges", i)
        bad = list(_end(path, "From", wire.from_node_index, "Output", wire.from_node_output_index, ends, 1))
        bad += _end(path, "To", wire.to_node_index, "Input", wire.to_node_input_index, ends, 0)
        yield from bad
        if not bad:
            there = ends[wire.from_node_index][1][wire.from_node_output_index]
            yield from _ends(path, there, ends[wire.to_node_index][0][wire.to_node_input_index])
            yield from _taken(path, reached[wire.to_node_index], wire.to_node_input_index)
            used[wire.from_node_index].add(wire.from_node_output_index)
    for i, out in enumerate(graph.output_edges):
        path = Location.of("OutputEdges", i)
        bad = list(_end(path, "From", out.from_node_index, "Output", out.from_node_output_index, ends, 1))
        bad += _range(path, "GraphOutputIndex", out.graph_output_index, len(graph.outputs))
        yield from bad
        if not bad:
            there = ends[out.from_node_index][1][out.from_node_output_index]
            yield from _ends(path, there, graph.outputs[out.graph_output_index])
            if out.graph_output_index in outputs:
                yield StructureFault(
                    "graph/edge-twice", path, f"another edge reaches graph output {out.graph_output_index}"
                )
            outputs.add(out.graph_output_index)
            used[out.from_node_index].add(out.from_node_output_index)


def _range(path: Location, name: str, index: int, count: int) -> Iterator[StructureFault]:
    if index >= count:
        yield StructureFault(
            "graph/index-range", path.member(name), f"{name} {index} is out of range", f"below {count}", index
        )


def _end(
    path: Location, side: str, node: int, kind: str, index: int, ends: list[tuple[Tensors, Tensors]], which: int
) -> Iterator[StructureFault]:
    if node >= len(ends):
        yield from _range(path, f"{side}NodeIndex", node, len(ends))
    else:
        yield from _range(path, f"{side}Node{kind}Index", index, len(ends[node][which]))


def _taken(path: Location, reached: set[int], index: int) -> Iterator[StructureFault]:
    if index in reached:
        yield StructureFault("graph/edge-twice", path, "another edge reaches the same input")
    reached.add(index)


def _ends(path: Location, one: TensorDesc | None, other: TensorDesc | None) -> Iterator[StructureFault]:
    """The two ends of an edge: CompileGraph compares data types and total sizes, not the sizes themselves."""
    first, second = _buffer(one), _buffer(other)
    if first is None or second is None:
        return
    if first.data_type != second.data_type:
        types = (str(first.data_type), str(second.data_type))
        yield StructureFault("graph/edge-data-type", path, "its ends differ in data type", *types)
    elif first.total_tensor_size_in_bytes != second.total_tensor_size_in_bytes:
        yield StructureFault(
            "graph/edge-size",
            path,
            "its ends differ in total size",
            first.total_tensor_size_in_bytes,
            second.total_tensor_size_in_bytes,
        )


def _cycle(graph: GraphDesc) -> int | None:
    """A node that depends on itself."""
    waiting = [0] * len(graph.nodes)
    readers: list[list[int]] = [[] for _ in graph.nodes]
    for edge in graph.intermediate_edges:
        waiting[edge.to_node_index] += 1
        readers[edge.from_node_index].append(edge.to_node_index)
    ready = [i for i, count in enumerate(waiting) if not count]
    done = 0
    while ready:
        node = ready.pop()
        done += 1
        for reader in readers[node]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return None if done == len(waiting) else next(i for i, count in enumerate(waiting) if count)
