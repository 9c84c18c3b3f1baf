"""Cuts models into parts that share no computed tensor for onnx's shape inference: the inferred types stay the same.

For each graph in a node onnx copies the types of all names in outer graphs, which for thousands of Ifs in one graph
takes longer than everything else; in parts there are few such names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import onnx

from dmlsplit.formats.onnx.protobuf import reads

MOST_NODES: Final = 64
"""A part with this many nodes gets no more."""


class Part(NamedTuple):
    """Some nodes of a model, given by their indices, as a separate model."""

    indices: Sequence[int]
    model: onnx.ModelProto


def parts_of(model: onnx.ModelProto) -> list[Part]:
    """Returns the nodes of a model without functions as several models. Two nodes are in the same part if one reads
    what the other computes, or if both compute the same name."""
    graph = model.graph
    read = [set(reads(node)) for node in graph.node]
    groups = list(_packed(_connected(graph, read)))
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
    inputs = {value.name: value for value in graph.input}
    parts = []
    for indices in groups:
        part = onnx.ModelProto(ir_version=model.ir_version)
        part.opset_import.extend(model.opset_import)
        nodes = [graph.node[i] for i in indices]
        names = dict.fromkeys(name for i in indices for name in sorted(read[i]))
        part.graph.node.extend(nodes)
        part.graph.input.extend(inputs[name] for name in names if name in inputs)
        part.graph.initializer.extend(tensors[name] for name in names if name in tensors)
        part.graph.sparse_initializer.extend(sparse[name] for name in names if name in sparse)
        parts.append(Part(indices, part))
    part_of = {name: i for i, indices in enumerate(groups) for k in indices for name in graph.node[k].output if name}
    for value in graph.value_info:
        if value.name in part_of:
            parts[part_of[value.name]].model.graph.value_info.append(value)
    for value in graph.output:
        if value.name in part_of:
            parts[part_of[value.name]].model.graph.output.append(value)
    return parts


def joined(model: onnx.ModelProto, parts: Sequence[Part], inferred: Sequence[onnx.GraphProto]) -> onnx.ModelProto:
    """Returns a copy of the model with the types inferred for its parts; `inferred` has the graph of each part, in
    order."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    outputs: dict[str, list[onnx.ValueInfoProto]] = {}
    for value in graph.output:
        outputs.setdefault(value.name, []).append(value)
    known = {value.name for each in inferred for value in each.value_info}
    kept = [value for value in model.graph.value_info if value.name not in known]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for part, each in zip(parts, inferred, strict=True):
        for index, node in zip(part.indices, each.node, strict=True):
            if node.attribute:
                graph.node[index].CopyFrom(node)
        graph.value_info.extend(each.value_info)
        for value in each.output:
            for own in outputs[value.name]:
                own.CopyFrom(value)
    return found


def _connected(graph: onnx.GraphProto, read: Sequence[set[str]]) -> Iterator[list[int]]:
    """Yields groups of node indices: nodes that are connected by computed tensors, directly or not, are in one group.
    `read` has the names that each node reads."""
    towards = list(range(len(graph.node)))

    def end(i: int) -> int:
        while towards[i] != i:
            towards[i] = i = towards[towards[i]]
        return i

    producer: dict[str, int] = {}
    for i, node in enumerate(graph.node):
        for name in node.output:
            if name:
                towards[end(i)] = end(producer.setdefault(name, i))
    for i, names in enumerate(read):
        for name in names:
            if name in producer:
                towards[end(i)] = end(producer[name])
    groups: dict[int, list[int]] = {}
    for i in range(len(graph.node)):
        groups.setdefault(end(i), []).append(i)
    yield from groups.values()


def _packed(groups: Iterator[list[int]]) -> Iterator[list[int]]:
    """Yields the indices in all groups, in order; small groups are merged until they have MOST_NODES."""
    found: list[int] = []
    for group in groups:
        found += group
        if len(found) >= MOST_NODES:
            yield sorted(found)
            found = []
    if found:
        yield sorted(found)
