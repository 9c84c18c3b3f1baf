"""Replaces an If with a constant condition by its branch, as ONNX Runtime does from optimization level 1 on.

Source: ConstantFoldIfNode of constant_folding.cc, and Graph::InlineIfSubgraph, of ONNX Runtime; observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

import onnx
from onnx import helper

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.limits import Budget
from dmlsplit.formats.onnx.protobuf import (
    Names,
    all_nodes,
    domain_of,
    first_output,
    operator_of,
    own_name,
    reads,
    refill,
)
from dmlsplit.models.scope import Scope, label_of
from dmlsplit.models.taken_branches import TakenBranches
from dmlsplit.onnxruntime.inlining import counted, rename, with_prefix

_BRANCHES = ("else_branch", "then_branch")
"""The attributes of an If, indexed by its condition."""


@dataclass(slots=True, eq=False, repr=False)
class Taken:
    """The changes to a model: `written` are the names that inserted nodes write, in order, `removed` the paths of the
    graphs in branches that are never taken, `names` the names in use."""

    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    branches: TakenBranches = field(default_factory=TakenBranches)
    inferred: dict[str, onnx.TypeProto] = field(default_factory=dict)
    """The types of the outputs of Ifs, inferred from both branches; the outputs keep them."""
    model: onnx.ModelProto = field(default_factory=onnx.ModelProto)
    """As it was."""
    names: Names | None = None
    """The names of the model and the added ones; None if nothing is inserted yet."""

    _places: dict[str, int] = field(default_factory=dict)
    _numbered: int = 0
    """The number of names in `written` whose place is in `_places`."""

    def places(self) -> dict[str, int]:
        """Maps each name in `written` to its last place."""
        for place in range(self._numbered, len(self.written)):
            self._places[self.written[place]] = place
        self._numbered = len(self.written)
        return self._places


def without_branches(model: onnx.ModelProto, scope: Scope, taken: Taken, budget: Budget) -> onnx.ModelProto | None:
    """Returns a copy of the model in which each If with a constant condition is replaced with its branch, and records
    the changes in `taken`; None if there is no such If. `scope` is that of the model's graph. Raises LimitError if
    names become too long."""
    if not _has_ifs(model.graph):
        return None
    copy = deepcopy(model)
    taken.model, taken.names = model, None
    return copy if _take(copy.graph, scope.asked_anew(), taken, budget) else None


class _Standing(NamedTuple):
    """A node of a graph with inserted branches, the scope of its names, and its index among the nodes of that scope's
    graph; None for an inserted node that is not in it."""

    node: onnx.NodeProto
    scope: Scope
    place: int | None


def _take(graph: onnx.GraphProto, scope: Scope, taken: Taken, budget: Budget) -> bool:
    """Replaces, in `graph` in place, the Ifs whose condition is constant in `scope`, the Ifs in their branches, and Ifs
    whose condition a branch computes. Returns True if any were replaced."""
    nodes = [_Standing(node, scope, index) for index, node in enumerate(graph.node)]
    again, found = True, False
    while again:
        left, nodes, again = nodes, [], False
        for index, standing in enumerate(left):
            body = _taken(standing, index, graph, taken, budget)
            again |= body is not None
            nodes += [standing] if body is None else body
        found |= again
    _declare(graph, taken.inferred)
    taken.inferred = {}
    changed = found
    for node, around, place in nodes:
        if place is None or not node.attribute:
            continue
        branches = {name: graph for name, graph in _branches_of(node).items() if _has_ifs(graph)}
        scopes = _scopes_of(around, place) if branches else {}
        before = list(reads(node)) if branches else []
        took = [_take(branch, scopes[name], taken, budget) for name, branch in branches.items()]
        if any(took):
            taken.branches.leave(node, before)
            changed = True
    if found:
        refill(graph.node, [deepcopy(standing.node) for standing in nodes])
    return changed


def _inferred(scope: Scope, given: Iterable[str], outer: Iterable[str]) -> dict[str, onnx.TypeProto]:
    """Maps the names `outer` of an If's outputs in the graph to their types in the scope, in which they are called
    `given`; outputs of unknown type are left out."""
    found = {}
    for name, now in zip(given, outer, strict=False):
        kind, shape = scope.inferred_type(name), scope.type_of(name)[1]
        if now and kind is not None and kind.HasField("tensor_type") and shape:
            found[now] = helper.make_tensor_type_proto(kind.tensor_type.elem_type, list(shape))
    return found


def _declare(graph: onnx.GraphProto, types: Mapping[str, onnx.TypeProto]) -> None:
    """Declares these types of tensors in the graph, in place of its own declarations."""
    if not types:
        return
    outputs = {value.name for value in graph.output}
    for value in graph.output:
        if value.name in types:
            value.type.CopyFrom(types[value.name])
    said = [value for value in graph.value_info if value.name not in types]
    said += [onnx.ValueInfoProto(name=name, type=kind) for name, kind in types.items() if name not in outputs]
    refill(graph.value_info, said)


def _taken(
    standing: _Standing, index: int, graph: onnx.GraphProto, taken: Taken, budget: Budget
) -> list[_Standing] | None:
    """Returns the nodes that replace the If `standing`, at `index` of the graph, and records the change in `taken` and
    the graph. Returns None, and changes nothing, if it is not an If with two branches and a constant condition. Raises
    LimitError if names become too long."""
    node, scope, place = standing
    if node.op_type != "If" or domain_of(node) != "" or place is None:
        return None
    branches = _branches_of(node)
    condition = _condition(scope.graph.node[place], scope) if set(branches) == set(_BRANCHES) else None
    if condition is None:
        return None
    name = own_name(node)
    chosen = _BRANCHES[condition]
    taken.removed.append(counted(label_of(scope.label, f"{name}.{_BRANCHES[not condition]}"), budget))
    paths = [f"{name}.{chosen}/{own_name(inner)}" for inner in branches[chosen].node]
    if taken.names is None:
        taken.names = Names.of(taken.model.graph)
    body = _body(branches[chosen], node, f"{name}_{index}/", taken.names, budget)
    for inner, path in zip(body.node, paths, strict=False):
        inner.name = counted(path, budget)
    computed = [output for inner in body.node for output in inner.output if output]
    written = taken.places()
    if first_output(node) not in taken.branches.places:
        taken.branches.visit(graph.node, written)
        taken.branches.late |= _open_shapes(graph.node, graph.node, scope)
    taken.branches.take(node, [*computed, *(tensor.name for tensor in body.initializer)])
    pairs = zip(branches[chosen].node, body.node, strict=False)
    of_functions = {first_output(now): written[name] for old, now in pairs if (name := first_output(old)) in written}
    # ONNX Runtime adds a branch's nodes in the order in which it visits them
    visited = taken.branches.visit(body.node, of_functions)
    taken.written += [output for inner in visited for output in inner.output if output]
    child = _scopes_of(scope, place)[chosen]
    taken.branches.late |= _open_shapes(child.graph.node, body.node, child)
    graph.initializer.extend(body.initializer)
    graph.value_info.extend(body.value_info)
    taken.inferred |= _inferred(scope, scope.graph.node[place].output, node.output)
    for value, outer in zip(child.graph.output, scope.graph.node[place].output, strict=False):
        scope.set_constant(outer, child.known(value.name))
    known = len(child.graph.node)
    return [_Standing(inner, child, i if i < known else None) for i, inner in enumerate(body.node)]


def _open_shapes(nodes: Iterable[onnx.NodeProto], named: Iterable[onnx.NodeProto], scope: Scope) -> set[str]:
    """Returns the names of the outputs of the Shape nodes in `nodes` whose input has unknown sizes in `scope`. `named`
    has a copy of each of `nodes`, in their order, with the names that it has in the graph now; the result has these
    names."""
    return {
        first_output(now)
        for node, now in zip(nodes, named, strict=False)
        if operator_of(node) == "Shape" and node.input and not is_static(scope.type_of(node.input[0])[1])
    }


def _has_ifs(graph: onnx.GraphProto) -> bool:
    """True if a graph, or one inside its nodes, contains an If."""
    return any(node.op_type == "If" for node in all_nodes(graph.node))


def _branches_of(node: onnx.NodeProto) -> dict[str, onnx.GraphProto]:
    """Maps names of attributes to their graphs. If several attributes have one name, the last counts, as in ONNX
    Runtime."""
    return {a.name: a.g for a in node.attribute if a.HasField("g")}


def _scopes_of(scope: Scope, place: int) -> dict[str, Scope]:
    """Maps names of attributes to the scopes of their graphs, for the node at `place` of the scope's graph."""
    graphs = _branches_of(scope.graph.node[place])
    return {name: child for name, child in scope.children(place) if child.graph is graphs.get(name)}


def _condition(node: onnx.NodeProto, scope: Scope) -> bool | None:
    """Returns the constant condition of an If; None if it is not constant, or if the node is not an If."""
    if node.op_type != "If" or domain_of(node) != "" or len(node.input) != 1:
        return None
    array = scope.elements(node.input[0])
    return bool(array.item()) if array is not None and array.size == 1 else None


def _body(branch: onnx.GraphProto, node: onnx.NodeProto, prefix: str, taken: Names, budget: Budget) -> onnx.GraphProto:
    """Returns a copy of the branch as nodes of the If's graph: its outputs get the names of the If's outputs, other
    names get a prefix. Adds names to `taken`. Raises LimitError if names become too long."""
    body = deepcopy(branch)
    computed = {name for inner in branch.node for name in inner.output if name}
    named: dict[str, str] = {}
    again = []
    for value, outer in zip(branch.output, node.output, strict=False):
        inner = value.name
        if outer and inner in computed and inner not in named:
            named[inner] = outer
        elif outer:  # an output that no node of the branch computes, or that is renamed already
            again.append((inner, outer))
    own = computed | {tensor.name for tensor in branch.initializer}
    fresh = with_prefix(named, prefix, taken)

    def renamed(name: str) -> str:
        return fresh(name) if name in own else name

    rename(body, renamed, budget)
    for value in (*body.initializer, *body.value_info):
        value.name = renamed(value.name)
    body.node.extend(helper.make_node("Identity", [renamed(inner)], [outer]) for inner, outer in again)
    return body
