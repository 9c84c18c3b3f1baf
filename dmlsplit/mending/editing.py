"""Replaces nodes in a model's graphs, and removes nodes that nothing reads any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx

from dmlsplit.formats.onnx.protobuf import Names, all_nodes, reads, refill, subgraphs, text
from dmlsplit.formats.onnx.tensors import type_name
from dmlsplit.mending.sites import Bodies
from dmlsplit.models.places import Place
from dmlsplit.system.printable import printable

Replacement: TypeAlias = Mapping[int, Sequence[onnx.NodeProto]]
"""Maps the index of a node to the nodes that replace it."""
Original: TypeAlias = Callable[[onnx.NodeProto], onnx.NodeProto]
"""Returns the complete node of the file for a node of the model without weights."""


def names_of(model: onnx.ModelProto) -> Names:
    """Returns the set of all names of tensors and nodes in a model, its subgraphs and functions."""
    bodies = [model.graph.node, *(function.node for function in model.functions)]
    nodes = [node for body in bodies for node in all_nodes(body)]
    found = Names(text(name) for node in nodes for name in (node.name, *node.input[:], *node.output[:]))
    for function in model.functions:
        found.update(map(text, (*function.input, *function.output)))
    for graph in (model.graph, *(graph for node in nodes for graph in subgraphs(node))):
        values = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
        found.update(text(value.name) for value in values)
        found.update(text(tensor.values.name) for tensor in graph.sparse_initializer)
    return found


def replace_nodes(model: onnx.ModelProto, replaced: Mapping[Place, Replacement]) -> None:
    """Replaces nodes of `model` in place: each graph's mapping gives the nodes that replace a node, by its index. Nodes
    whose outputs only replaced nodes read are removed."""
    bodies = Bodies(model)
    for place in sorted(replaced, key=lambda place: -len(place.steps)):  # inner graphs first: indices stay valid
        graph = bodies.at(place)
        assert graph is not None
        old = [graph.node[index] for index in replaced[place]]
        unread = {name for node in old for name in map(text, node.input[:]) if name}
        nodes = list(_with(graph.node, replaced[place]))
        refill(graph.node, _without_dead(nodes, outputs_of(graph), unread))


def show_output(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Changes the outputs of `graph` in place: renames output `old` to `new`, or adds output `new` if `old` is ""."""
    for value in graph.output:
        if old and text(value.name) == old:
            value.name = new
    if not old:
        graph.output.append(onnx.helper.make_empty_tensor_value_info(new))


def _with(nodes: Iterable[onnx.NodeProto], replaced: Replacement) -> Iterator[onnx.NodeProto]:
    for index, node in enumerate(nodes):
        if index in replaced:
            yield from replaced[index]
        else:
            yield node


def outputs_of(graph: onnx.GraphProto | onnx.FunctionProto) -> set[str]:
    """Returns the names of a graph's or function's outputs."""
    if isinstance(graph, onnx.FunctionProto):
        return set(map(text, graph.output))
    return {text(value.name) for value in graph.output}


def _without_dead(nodes: list[onnx.NodeProto], outputs: set[str], unread: set[str]) -> list[onnx.NodeProto]:
    """Returns the nodes, in order, without those that became unused: nothing reads their outputs, and none of these is
    in `outputs`. The search starts at the producers of the tensors in `unread` and continues with the producers of what
    removed nodes read; other unused nodes stay."""
    readers: dict[str, int] = defaultdict(int)
    producers = {text(name): i for i, node in enumerate(nodes) for name in node.output[:] if name}
    for node in nodes:
        for name in reads(node):
            readers[name] += 1
    dead: set[int] = set()
    todo = list(unread)
    while todo:
        index = producers.get(todo.pop())
        if index is None or index in dead:
            continue
        node = nodes[index]
        if any(readers[name] or name in outputs for name in map(text, node.output[:]) if name):
            continue
        dead.add(index)
        for name in reads(node):
            readers[name] -= 1
            todo.append(name)
    return [node for i, node in enumerate(nodes) if i not in dead]


def node_text(node: onnx.NodeProto) -> str:
    """Returns a node as one printable line: `a, b = Split(x, l) axis=1`."""
    attributes = [f"{text(a.name)}={_value(a)}" for a in node.attribute[:]]
    inputs, outputs = _listed(node.input[:]), _listed(node.output[:])
    return printable(" ".join([f"{outputs} = {text(node.op_type)}({inputs})", *attributes]))


def _listed(names: Sequence[str]) -> str:
    try:
        return ", ".join(names)
    except TypeError:  # bytes
        return ", ".join(map(text, names))


def _value(attribute: onnx.AttributeProto) -> str:
    match attribute.type:
        case onnx.AttributeProto.INT:
            return str(attribute.i)
        case onnx.AttributeProto.INTS:
            return f"[{', '.join(map(str, attribute.ints[:]))}]"
        case onnx.AttributeProto.FLOAT:
            return f"{attribute.f:g}"
        case onnx.AttributeProto.STRING:
            return repr(attribute.s.decode("utf-8", "backslashreplace"))
        case onnx.AttributeProto.TENSOR:
            tensor = attribute.t
            if tensor.data_type == onnx.TensorProto.INT64 and 0 < len(tensor.raw_data) <= 128:
                values = np.frombuffer(tensor.raw_data, "<i8", len(tensor.raw_data) // 8)
                return f"[{', '.join(map(str, values.tolist()))}]"
            element = type_name(tensor.data_type) or "UNDEFINED"
            return f"{element}[{', '.join(map(str, tensor.dims[:]))}]"
    return "..."
