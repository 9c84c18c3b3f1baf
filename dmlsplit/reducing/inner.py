"""Makes smaller models by changing graphs inside nodes: such a graph as a separate model, or with fewer nodes in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx

from dmlsplit.formats.onnx.protobuf import (
    Names,
    all_graphs,
    domain_of,
    graphs_named,
    has_graphs,
    reads,
    refill,
    subgraphs,
)
from dmlsplit.models.scope import Scope, Step
from dmlsplit.reducing.known import declaration, known_constant, remove_unread


def inner_scopes(scope: Scope) -> Iterator[Scope]:
    """Yields the scopes of the graphs inside nodes; a graph comes before those inside its own nodes."""
    for index, node in enumerate(scope.graph.node):
        if has_graphs(node):
            for _, child in scope.children(index):
                yield child
                yield from inner_scopes(child)


def alone(model: onnx.ModelProto, scope: Scope) -> onnx.ModelProto:
    """Returns a model of a graph inside a node; its inputs, and what it reads of the graphs around it, become inputs,
    or initializers if their elements are known."""
    made = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph, body = made.graph, scope.graph
    graph.CopyFrom(body)
    del graph.input[:]
    own = {name for node in body.node for name in node.output} | {tensor.name for tensor in body.initializer}
    wanted = [value.name for value in body.input]
    wanted += [name for node in body.node for name in reads(node)]
    wanted += [value.name for value in body.output]
    inside = {name for each in all_graphs(body) for node in each.node for name in node.output}
    inside |= {value.name for each in all_graphs(body) if each is not body for value in each.input}
    for name in dict.fromkeys(name for name in wanted if name not in own and name not in inside):
        constant = known_constant(scope, name)
        if constant is not None:
            graph.initializer.append(constant)
        else:
            graph.input.append(declaration(scope, name))
    computed = {name for node in body.node for name in node.output}
    refill(graph.output, [declaration(scope, value.name) for value in body.output if value.name in computed])
    return made


def with_nodes(model: onnx.ModelProto, scope: Scope, kept: Sequence[int]) -> onnx.ModelProto | None:
    """Returns a copy of the model in which a graph inside a node has only the nodes with indices `kept`. What they read
    of removed ones becomes an input of the model, and outputs of the graph that removed ones computed are copied from
    such inputs by an Identity. None if a type is not known."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    body = graph_at(made, scope.steps)
    nodes = [body.node[i] for i in kept]
    computed = {name for node in nodes for name in node.output}
    gone = {name for i, node in enumerate(body.node) if i not in kept for name in node.output if name}
    taken = Names.of(made.graph)
    instead: dict[str, str] = {}
    for name in dict.fromkeys(name for node in nodes for name in reads(node)):
        if name in gone:
            constant = known_constant(scope, name)
            if constant is not None:
                body.initializer.append(constant)
            elif (made_input := _new_input(made, scope, name, taken)) is None:
                return None
            else:
                instead[name] = made_input
    added = []
    for value in body.output:
        if value.name in gone and value.name not in computed:
            source = instead.get(value.name) or _new_input(made, scope, value.name, taken)
            if source is None:
                return None
            instead[value.name] = source
            added.append(onnx.helper.make_node("Identity", [source], [value.name]))
    for node in nodes:
        _rename_reads(node, instead)
    refill(body.node, [*nodes, *added])
    refill(body.value_info, [value for value in body.value_info if value.name in computed])
    remove_unread(made)
    return made


def without_output(model: onnx.ModelProto, steps: Sequence[Step], place: int) -> Iterator[onnx.ModelProto]:
    """Yields a copy of the model without one output of an If that nothing reads, for each such output; `place` is the
    node's index in the graph that `steps` lead to. Nothing for another node."""
    graph = graph_at(model, steps)
    node = graph.node[place]
    if node.op_type != "If" or domain_of(node) != "" or len(node.output) < 2:
        return
    read = {name for other in graph.node for name in reads(other)} | {value.name for value in graph.output}
    for k, name in enumerate(node.output):
        if name in read:
            continue
        made = onnx.ModelProto()
        made.CopyFrom(model)
        changed = graph_at(made, steps).node[place]
        if any(len(inner.output) != len(node.output) for inner in subgraphs(changed)):
            return
        del changed.output[k]
        for inner in subgraphs(changed):
            del inner.output[k]
        remove_unread(made)
        yield made


def graph_at(model: onnx.ModelProto, steps: Sequence[Step]) -> onnx.GraphProto:
    """Returns the graph that the steps lead to from the model's own."""
    graph = model.graph
    for index, name, number in steps:
        graph = graphs_named(graph.node[index], name)[number]
    return graph


def _new_input(model: onnx.ModelProto, scope: Scope, name: str, taken: Names) -> str | None:
    """Adds an input with the type that `name` has in `scope` to the model, in place, and returns its name, a new one in
    `taken`; None, and no change, if the type is not known."""
    value = declaration(scope, name)
    if not value.HasField("type"):
        return None
    value.name = taken.fresh(name)
    model.graph.input.append(value)
    return value.name


def _rename_reads(node: onnx.NodeProto, instead: dict[str, str]) -> None:
    """Renames, in place, the tensors that a node, and the graphs inside it, read: `instead` maps old names to new
    ones."""
    refill(node.input, [instead.get(name, name) for name in node.input])
    for graph in subgraphs(node):
        for inner in graph.node:
            _rename_reads(inner, instead)
        for value in graph.output:
            value.name = instead.get(value.name, value.name)
