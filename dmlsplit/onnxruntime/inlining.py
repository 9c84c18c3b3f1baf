"""Replaces the calls of local functions by their bodies, as ONNX Runtime does first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Final

import onnx

from dmlsplit.formats.limits import Budget, Limit
from dmlsplit.formats.onnx.protobuf import Names, all_nodes, first_output, refill, rename_tensors, subgraphs
from dmlsplit.models.functions import JUDGED, Functions
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

MAX_DEPTH: Final = Limit.ONNX_CALL_DEPTH.most


def with_overloads_as_read(model: onnx.ModelProto, told_apart: bool) -> onnx.ModelProto:
    """Returns a copy of the model in which functions have the overloads that a version of ONNX Runtime was recorded to
    read.

    `told_apart`: the version tells overloads apart; it ignores the overload that a node in a function names, and calls
    the function without one. Other versions ignore all overloads, and call the last function of a name.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    if told_apart:
        for node in (node for function in copy.functions for node in function.node):
            node.overload = ""
        return copy
    last = {(function.domain, function.name): function for function in model.functions}
    del copy.functions[:]
    copy.functions.extend(last.values())
    for function in copy.functions:
        function.overload = ""
    bodies = [copy.graph.node, *(function.node for function in copy.functions)]
    for node in (node for body in bodies for node in all_nodes(body)):
        node.overload = ""
    return copy


def inlined(model: onnx.ModelProto, budget: Budget) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Returns a copy of the model with calls of local functions replaced by their bodies, and the names that the
    bodies' nodes write, in order; the model itself and () if it has no functions.

    Raises InputError for endless calls, LimitError if the copies are too large.
    """
    if not model.functions:
        return model, ()
    functions = Functions(model.functions, budget)
    if len(functions.called_by(model.graph.node)) == 0:
        calls = [node for node in model.graph.node if functions.key_of(node) is not None]
        if calls:
            raise InputError("functions call themselves, or one another too often")
    copy = deepcopy(model)
    written: list[str] = []
    _inline(copy.graph, functions, 0, written, Names.of(copy.graph), budget)
    del copy.functions[:]
    return copy, tuple(written)


def _inline(
    graph: onnx.GraphProto, functions: Functions, depth: int, written: list[str], taken: Names, budget: Budget
) -> None:
    refill(graph.node, _expanded(graph.node, functions, depth, written, taken, budget))


def _expanded(
    nodes: Iterable[onnx.NodeProto],
    functions: Functions,
    depth: int,
    written: list[str],
    taken: Names,
    budget: Budget,
) -> Iterator[onnx.NodeProto]:
    """Yields the nodes with bodies in place of calls. `taken` are all names of the model; names that bodies write are
    appended to `written`."""
    for index, node in enumerate(nodes):
        for subgraph in subgraphs(node):
            _inline(subgraph, functions, depth, written, taken, budget)
        key = functions.key_of(node)
        if key is None:
            yield node
            continue
        if depth >= MAX_DEPTH:
            raise InputError(f"functions are called over {MAX_DEPTH} deep")
        function = functions[key]
        name = node.name or node.op_type
        if len(node.output) < len(function.output):
            # versions read past the outputs of the call: the outcome is undefined
            raise InputError(f"{printable(name)} leaves out outputs of the function that it calls")
        actual = dict(zip(function.input, node.input, strict=False))
        # an output that the call leaves unnamed is computed all the same
        actual.update({o: name for o, name in zip(function.output, node.output, strict=False) if name})
        body = functions.body(key, node)
        called = list(map(name_in_path, body.node))
        for inner in all_nodes(body.node):
            if not inner.name and inner.op_type in JUDGED:
                inner.name = name_in_path(inner)  # names of the body, which are replaced
        names = dict.fromkeys(function.input, "") | actual
        rename(body, with_prefix(names, f"{name}_{index}/", taken), budget)
        for inner, own in zip(body.node, called, strict=True):
            inner.name = counted(f"{name}/{own}", budget)
            written.extend(output for output in inner.output if output)
        yield from _expanded(body.node, functions, depth + 1, written, taken, budget)


def name_in_path(node: onnx.NodeProto) -> str:
    """Returns the name, in paths, of a node in the body of a function or branch: its own name; if it has none, the name
    of its first output for a Split or Concat, its operator for any other node."""
    return node.name or (first_output(node) if node.op_type in JUDGED else "") or node.op_type


def with_prefix(names: Mapping[str, str], prefix: str, taken: Names) -> Callable[[str], str]:
    """Returns a function from a name to its new one: that in `names`, or else the name behind `prefix`, made unique in
    the model and added to `taken`, as ONNX Runtime makes inlined names."""
    given = {"": "", **names}

    def renamed(name: str) -> str:
        if name not in given:
            given[name] = taken.fresh(f"{prefix}{name}")
        return given[name]

    return renamed


def counted(name: str, budget: Budget) -> str:
    """Returns the name, and counts its length. Raises LimitError if all names made from the file's names are too long
    together."""
    budget.spend(Limit.ONNX_NAMES, len(name))
    return name


def rename(graph: onnx.GraphProto, new_name: Callable[[str], str], budget: Budget) -> None:
    """Replaces, in place, each name that the nodes of a graph read or write, and all names in the graphs inside them,
    by `new_name(name)`. Raises LimitError as `counted` does."""

    def renamed(name: str) -> str:
        return counted(new_name(name), budget)

    for node in graph.node:
        rename_tensors(node, renamed)
        for subgraph in subgraphs(node):
            for value in (*subgraph.input, *subgraph.output, *subgraph.initializer, *subgraph.value_info):
                value.name = renamed(value.name)
            rename(subgraph, new_name, budget)
