"""Replaces the calls of local functions with their bodies, the first step of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Final, TypeAlias

import onnx

from dmlsplit.formats.limits import Budget, Limit
from dmlsplit.formats.onnx.protobuf import Names, all_nodes, own_name, refill, rename_tensors, subgraphs
from dmlsplit.models.functions import Functions
from dmlsplit.system.errors import InputError, NotLoadedError
from dmlsplit.system.printable import printable

MAX_DEPTH: Final = Limit.ONNX_CALL_DEPTH.most

Place: TypeAlias = tuple[int, ...]
"""The origin of a node: its index in the file, or the index of the call that it replaces and its index in the
function's body, level by level."""


def in_order(written: Mapping[str, Place]) -> list[str]:
    """Returns the names that nodes of functions write in the order in which ONNX Runtime adds these nodes: level by
    level, and on each level in the order of the nodes that they replace."""
    return sorted(written, key=lambda name: (len(written[name]), written[name]))


def with_overloads_as_read(model: onnx.ModelProto, told_apart: bool) -> onnx.ModelProto:
    """Returns a copy of the model in which functions have the overloads that a version of ONNX Runtime was recorded to
    read.

    If `told_apart`, the version distinguishes overloads; it ignores the overload that a node in a function names, and
    calls the function without one. Other versions ignore all overloads, and call the last function of a name.
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


def inlined(model: onnx.ModelProto, budget: Budget) -> tuple[onnx.ModelProto, dict[str, Place]]:
    """Returns a copy of the model with calls of local functions replaced with their bodies, and the names that the
    bodies' nodes write, each with the place of its node; the model itself and {} if it has no functions.

    Raises NotLoadedError for functions that call themselves, and calls with too many inputs or outputs (observed with
    1.18.0, 1.20.1, 1.24.4 and 1.30.0), InputError or LimitError if the copies are too large.
    """
    if not model.functions:
        return model, {}
    functions = Functions(model.functions, budget)
    if len(functions.called_by(model.graph.node)) == 0:
        calls = [node for node in model.graph.node if functions.key_of(node) is not None]
        if name := functions.recursive(model.graph.node):
            raise NotLoadedError(f"{name} calls itself; the model is not loaded")
        if calls:
            raise InputError("the calls of functions expand to too many nodes")
    copy = deepcopy(model)
    written: dict[str, Place] = {}
    _inline(copy.graph, functions, 0, written, Names.of(copy.graph), budget)
    del copy.functions[:]
    return copy, written


def _inline(
    graph: onnx.GraphProto, functions: Functions, depth: int, written: dict[str, Place], taken: Names, budget: Budget
) -> None:
    refill(graph.node, _expanded(graph.node, functions, depth, (), written, taken, budget))


def _expanded(
    nodes: Iterable[onnx.NodeProto],
    functions: Functions,
    depth: int,
    around: Place,
    written: dict[str, Place],
    taken: Names,
    budget: Budget,
) -> Iterator[onnx.NodeProto]:
    """Yields the nodes, with calls replaced with bodies. `around` is the place of the call whose body the nodes are, ()
    for those of a graph; `taken` are all names of the model; names that bodies write are added to `written`."""
    for index, node in enumerate(nodes):
        for subgraph in subgraphs(node):
            _inline(subgraph, functions, depth, written, taken, budget)
        key = functions.key_of(node)
        if key is None:
            yield node
            continue
        if depth >= MAX_DEPTH:
            raise InputError(f"calls of functions are nested more than {MAX_DEPTH} deep")
        function = functions[key]
        if len(node.output) < len(function.output):
            # versions read past the outputs of the call: undefined behaviour
            raise InputError(f"{printable(node.name or node.op_type)} omits outputs of the function that it calls")
        if len(node.input) > len(function.input) or len(node.output) > len(function.output):
            why = "has more inputs or outputs than the function that it calls"
            raise NotLoadedError(f"{printable(node.name or node.op_type)} {why}; the model is not loaded")
        body, place = functions.body(key, node), (*around, index)
        written |= put_in_place(body, function.input, function.output, node, place, taken, budget)
        yield from _expanded(body.node, functions, depth + 1, place, written, taken, budget)


def put_in_place(
    body: onnx.GraphProto,
    inputs: Sequence[str],
    outputs: Sequence[str],
    node: onnx.NodeProto,
    place: Place,
    taken: Names,
    budget: Budget,
) -> dict[str, Place]:
    """Renames the tensors and nodes of a function's body, in place, so that the body can replace `node`, at `place`.
    `inputs` and `outputs` are the function's; other names get a prefix, and are added to `taken`. Returns the names
    that the body's nodes write, each with the place of its node. Raises LimitError if names become too long."""
    name = own_name(node)
    actual = dict(zip(inputs, node.input, strict=False))
    # an output that the call omits is still computed
    actual.update({output: name for output, name in zip(outputs, node.output, strict=False) if name})
    called = list(map(own_name, body.node))
    for inner in all_nodes(body.node):
        if not inner.name:
            inner.name = own_name(inner)  # names of the body, which are replaced
    names = dict.fromkeys(inputs, "") | actual
    rename(body, with_prefix(names, f"{name}_{place[-1]}/", taken), budget)
    for inner, own in zip(body.node, called, strict=True):
        inner.name = counted(f"{name}/{own}", budget)
    return {output: (*place, i) for i, inner in enumerate(body.node) for output in inner.output if output}


def with_prefix(names: Mapping[str, str], prefix: str, taken: Names) -> Callable[[str], str]:
    """Returns a function that maps a name to its new name: the one in `names`, or else the name with the prefix, made
    unique in the model and added to `taken`, as ONNX Runtime names inlined nodes."""
    given = {"": "", **names}

    def renamed(name: str) -> str:
        if name not in given:
            given[name] = taken.fresh(f"{prefix}{name}")
        return given[name]

    return renamed


def counted(name: str, budget: Budget) -> str:
    """Returns the name, and counts its length. Raises LimitError if all names made from the file's names are too long
    in total."""
    budget.spend(Limit.ONNX_NAMES, len(name))
    return name


def rename(graph: onnx.GraphProto, new_name: Callable[[str], str], budget: Budget) -> None:
    """Replaces, in place, each name that the nodes of a graph read or write, and all names in the graphs inside them,
    with `new_name(name)`. Raises LimitError as `counted` does."""

    def renamed(name: str) -> str:
        return counted(new_name(name), budget)

    for node in graph.node:
        rename_tensors(node, renamed)
        for subgraph in subgraphs(node):
            for value in (*subgraph.input, *subgraph.output, *subgraph.initializer, *subgraph.value_info):
                value.name = renamed(value.name)
            rename(subgraph, new_name, budget)
