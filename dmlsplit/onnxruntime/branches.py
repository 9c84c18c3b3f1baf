"""Branches that an If always takes, put in its place, as ONNX Runtime does from optimization level 1 on.

Source: ConstantFoldIfNode of constant_folding.cc, and Graph::InlineIfSubgraph, of ONNX Runtime; observed.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

import onnx
from onnx import helper

from dmlsplit.formats.onnx.protobuf import all_nodes, domain_of, refill
from dmlsplit.models.scope import Scope, label_of
from dmlsplit.onnxruntime.inlining import name_in_path, rename

_BRANCHES = ("else_branch", "then_branch")
"""By the condition."""


@dataclass(slots=True)
class Taken:
    """The changes to a model: `written` are the names that inserted nodes write, in order, `removed` the paths of the
    graphs that are gone with the branches that are never taken."""

    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def without_branches(model: onnx.ModelProto, scope: Scope, taken: Taken) -> onnx.ModelProto | None:
    """The model with branches in the place of its Ifs, as `_take`; None where there are no such Ifs."""
    if not any(node.op_type == "If" for node in all_nodes(model.graph.node)):
        return None
    copy = deepcopy(model)
    return copy if _take(copy.graph, scope, taken) else None


def _take(graph: onnx.GraphProto, scope: Scope, taken: Taken) -> bool:
    """Puts branches in the place of the Ifs of a graph whose condition is a constant in `scope`, which knows the graph
    as it was; whether there were any. A branch may begin with another such If: that is left for the next time."""
    nodes: list[onnx.NodeProto] = []
    found = False
    for index, node in enumerate(graph.node):
        branches = {a.name: a.g for a in node.attribute if a.HasField("g")}
        condition = _condition(node, scope) if set(branches) == set(_BRANCHES) else None
        if condition is None:
            for name, child in scope.children(index) if branches else ():
                if name in branches:
                    found |= _take(branches[name], child, taken)
            nodes.append(node)
            continue
        found = True
        name = node.name or node.op_type
        chosen = _BRANCHES[condition]
        taken.removed.append(label_of(scope.label, f"{name}.{_BRANCHES[not condition]}"))
        paths = [f"{name}.{chosen}/{name_in_path(inner)}" for inner in branches[chosen].node]
        body = _body(branches[chosen], node, f"{name}_{index}/")
        for inner, path in zip(body.node, paths, strict=False):
            inner.name = path
        taken.written += [output for inner in body.node for output in inner.output if output]
        nodes += body.node
        graph.initializer.extend(body.initializer)
        graph.value_info.extend(body.value_info)
    if found:
        refill(graph.node, map(deepcopy, nodes))
    return found


def _condition(node: onnx.NodeProto, scope: Scope) -> bool | None:
    """The condition of an If where it is a constant."""
    if node.op_type != "If" or domain_of(node) != "" or len(node.input) != 1:
        return None
    array = scope.elements(node.input[0])
    return bool(array.item()) if array is not None and array.size == 1 else None


def _body(branch: onnx.GraphProto, node: onnx.NodeProto, prefix: str) -> onnx.GraphProto:
    """The branch in the graph of the If: its outputs have the names of the If's, its other names a prefix."""
    body = deepcopy(branch)
    computed = {name for inner in branch.node for name in inner.output if name}
    names = {name: f"{prefix}{name}" for name in computed | {tensor.name for tensor in branch.initializer}}
    again = []
    for value, outer in zip(branch.output, node.output, strict=False):
        inner = value.name
        if outer and inner in computed and names[inner] == f"{prefix}{inner}":
            names[inner] = outer
        elif outer:  # what is no result of a node in it, or has its name already
            again.append((inner, outer))
    rename(body, lambda name: names.get(name, name))
    for value in (*body.initializer, *body.value_info):
        value.name = names.get(value.name, value.name)
    body.node.extend(helper.make_node("Identity", [names.get(inner, inner)], [outer]) for inner, outer in again)
    return body
