"""Names that a graph inside a node computes although an outer graph has them.

Exporters write such models, and ONNX Runtime loads some of them. onnx's inference keeps one type for both names and
reports nothing about the inner one, so the inner ones are renamed first.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from copy import deepcopy

import onnx

from dmlsplit.formats.onnx.protobuf import (
    Names,
    all_nodes,
    computed,
    domain_of,
    has_graphs,
    own_name,
    refill,
    rename_tensors,
    subgraphs,
)
from dmlsplit.system.errors import NotLoadedError
from dmlsplit.system.printable import printable


def without(model: onnx.ModelProto) -> tuple[onnx.ModelProto, Mapping[str, str]]:
    """Returns a copy of the model in which inner names that shadow outer ones are renamed, and a mapping of new names
    to old ones; the model itself and {} if there are none."""
    if not _shadows(model.graph, _Known()):
        return model, {}
    copy = deepcopy(model)
    taken = Names(name for node in all_nodes(copy.graph.node) for name in (*node.input[:], *node.output[:]))
    old: dict[str, str] = {}
    _rename(copy.graph, _Known(), ChainMap(), taken, old)
    return copy, old


def computed_again(graph: onnx.GraphProto) -> Iterator[str]:
    """Yields the names that graphs inside nodes compute although they are known before the node: ONNX Runtime does not
    load such a model. The node's own outputs are not known yet."""
    return _computed_again(graph, _Known())


def _computed_again(graph: onnx.GraphProto, known: _Known) -> Iterator[str]:
    if not any(map(has_graphs, graph.node)):
        return
    with known.inside(value.name for value in (*graph.input, *graph.initializer)) as add:
        for node in graph.node:
            for inner in subgraphs(node) if node.attribute else ():
                yield from sorted(name for name in computed(inner.node) if name in known)
                yield from _computed_again(inner, known)
            add(node.output)


def is_constant(node: onnx.NodeProto) -> bool:
    """True if a node is a Constant of the default domain."""
    return node.op_type == "Constant" and domain_of(node) == ""


def check_names(graph: onnx.GraphProto, outer: tuple[Set[str], ...] = ()) -> None:
    """Raises NotLoadedError for a name that two inputs have, that is computed twice in a graph and the graphs inside
    its nodes, or that is read and never computed; for nodes that read their own results, if through others; and for
    nodes of a graph inside a node that are not in order. `outer` has the names known in outer graphs.

    ONNX Runtime loads a Constant as an initializer, which may replace another one, or an input.
    """
    known: set[str] = set()
    for name in (value.name for value in graph.input if value.name):
        if name in known:
            raise NotLoadedError(f"{printable(name, 60)} is an input twice: the model is not loaded")
        known.add(name)
    known |= {tensor.name for tensor in graph.initializer}
    known |= {tensor.values.name for tensor in graph.sparse_initializer}
    written: list[str] = []
    for node in graph.node:
        if is_constant(node):
            known.update(node.output[:])
        else:
            written += node.output[:]
    for name in filter(None, written):
        if name in known:
            raise NotLoadedError(f"{printable(name, 60)} is computed twice: the model is not loaded")
        known.add(name)
    around = (known, *outer)
    for node in graph.node:
        for name in node.input[:]:
            if name not in known and name and not any(name in names for names in outer):
                raise NotLoadedError(f"nothing computes {printable(name, 60)}: the model is not loaded")
        for inner in subgraphs(node) if node.attribute else ():
            check_names(inner, around)
    _check_order(graph, is_inner=bool(outer))


def _check_order(graph: onnx.GraphProto, *, is_inner: bool) -> None:
    """Raises NotLoadedError for nodes of a graph of which each reads the result of another and, if `is_inner`, for a
    node that reads what is computed after it. Of Constants only the order counts."""
    nodes = [(i, node) for i, node in enumerate(graph.node) if is_inner or not is_constant(node)]
    producers = {name: i for i, node in nodes for name in node.output if name}
    late = ((node, name) for i, node in nodes for name in _reads(node) if producers.get(name, -1) >= i)
    node, name = next(late, (None, ""))
    if node is None:
        return
    if is_inner:
        after = f"{_called(node)} reads {printable(name, 60)}, which is not computed before it"
        raise NotLoadedError(f"{after}: the model is not loaded")
    before = [{producers[name] for name in _reads(node) if name in producers} for node in graph.node]
    readers: list[list[int]] = [[] for _ in before]
    for i, each in enumerate(before):
        for producer in each:
            readers[producer].append(i)
    waits = [len(each) for each in before]
    ready = [i for i, count in enumerate(waits) if not count]
    while ready:
        for reader in readers[ready.pop()]:
            waits[reader] -= 1
            if not waits[reader]:
                ready.append(reader)
    place = next((i for i, count in enumerate(waits) if count), None)
    if place is None:
        return
    seen: set[int] = set()
    while place not in seen:  # a node may only be behind the cycle
        seen.add(place)
        place = next(i for i in sorted(before[place]) if waits[i])
    called = _called(graph.node[place])
    raise NotLoadedError(f"{called} reads what is computed from its own result: the model is not loaded")


def _called(node: onnx.NodeProto) -> str:
    return printable(own_name(node), 60)


def _reads(node: onnx.NodeProto) -> list[str]:
    """Returns the names that a node reads, and those of the graph around it that graphs inside it read."""
    read = list(node.input)
    for inner in subgraphs(node) if node.attribute else ():
        own = _known(inner)
        read += [name for each in inner.node for name in _reads(each) if name not in own]
    return read


def put_back(graph: onnx.GraphProto, old: Mapping[str, str]) -> None:
    """Replaces, in place, the names that are keys of `old` with their values, in the graph and the graphs inside it."""
    if not old:
        return
    for node in graph.node:
        rename_tensors(node, lambda name: old.get(name, name))
        for inner in subgraphs(node):
            for value in (*inner.value_info, *inner.output):
                value.name = old.get(value.name, value.name)
            put_back(inner, old)


class _Known:
    """The names known in a graph and its outer graphs, during a walk."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    @contextmanager
    def inside(self, names: Iterable[str]) -> Iterator[Callable[[Iterable[str]], None]]:
        """Context manager: inside the block `names` also count as known, and so do names that are passed to the
        function that it yields."""
        new: set[str] = set()

        def add(names: Iterable[str]) -> None:
            own = set(names) - self._names
            new.update(own)
            self._names.update(own)

        add(names)
        yield add
        self._names -= new


def _known(graph: onnx.GraphProto) -> set[str]:
    given = (*graph.input, *graph.initializer)
    return computed(graph.node) | {value.name for value in given}


def _shadows(graph: onnx.GraphProto, outer: _Known) -> bool:
    """True if a graph inside a node, at any depth, computes a name that is known outside it."""
    inner = [each for node in graph.node if node.attribute for each in subgraphs(node)]
    with outer.inside(_known(graph) if inner else ()):
        return any(any(name in outer for name in computed(each.node)) or _shadows(each, outer) for each in inner)


def _rename(
    graph: onnx.GraphProto, outer: _Known, names: ChainMap[str, str], taken: Names, old: dict[str, str]
) -> None:
    """Renames, in place, those names in `outer` that the graph and the graphs inside its nodes compute. `names` maps
    names of outer graphs to their new names; new names are added to `taken` and, with the old ones, to `old`."""
    own, written = _known(graph), computed(graph.node)
    again = {name for name in written if name in outer}
    names = names.new_child({name: name for name in own - written})
    with outer.inside(own):
        for node in graph.node:  # a name that is read before it is computed here belongs to the outer graph
            reads = [names.get(name, name) for name in node.input[:]]
            for inner in subgraphs(node):
                _rename(inner, outer, names, taken, old)
            for name in node.output[:]:
                names[name] = _free(name, taken, old) if name in again else name
            writes = [names.get(name, name) for name in node.output[:]]
            refill(node.input, reads)
            refill(node.output, writes)
    for value in (*graph.value_info, *graph.output):
        value.name = names.get(value.name, value.name)


def _free(name: str, taken: Names, old: dict[str, str]) -> str:
    """Returns an unused name based on `name`, and records it in `taken` and `old`."""
    found = taken.fresh(f"{name}/inner{len(old)}")
    old[found] = name
    return found
