"""The names that graphs inside a node read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.onnx.protobuf import has_graphs, reads, subgraphs, text
from dmlsplit.formats.onnx.protobuf import operator_of as operator_name
from dmlsplit.models.scope import Scope


def likely_to_read(inside: Iterable[tuple[str, Scope]], folds: bool) -> Iterator[str]:
    """Yields the names that the graphs inside a node read, also their own; `inside` has their scopes, and a name may
    come several times. `folds`: what constant folding removes with Shape nodes of static tensors is left out."""
    for _, child in inside:
        gone = _folded_shapes(child) if folds else ()
        for i, node in enumerate(child.graph.node):
            if i in gone:
                continue
            yield from (text(name) for name in node.input[:] if name)
            if has_graphs(node):
                yield from likely_to_read(child.children(i), folds)
        yield from (text(value.name) for value in child.graph.output)


def _folded_shapes(scope: Scope) -> set[int]:
    """Returns the indices of the Shape nodes that constant folding removes, those of static tensors, and of the nodes
    that only these use."""
    nodes = scope.graph.node
    if all(node.op_type != "Shape" for node in nodes):
        return set()
    readers: dict[str, list[int]] = {value.name: [-1] for value in scope.graph.output}
    for i, node in enumerate(nodes):
        for name in reads(node):
            readers.setdefault(name, []).append(i)
    found: set[int] = set()
    for i, node in reversed(list(enumerate(nodes))):
        read_by = [each for name in node.output[:] for each in readers.get(name, ())]
        is_folded = operator_name(node) == "Shape" and node.input and is_static(scope.type_of(text(node.input[0]))[1])
        if is_folded or (read_by and found.issuperset(read_by)):
            found.add(i)
    return found


def read_inside(node: onnx.NodeProto) -> Sequence[str]:
    """Returns the names that the graphs inside a node read, each once, without the names of the node's own outputs: a
    graph inside may compute a tensor of that name."""
    inner = [
        each for graph in subgraphs(node) for each in (*map(reads, graph.node), (value.name for value in graph.output))
    ]
    own = set(node.output[:])
    return [name for name in dict.fromkeys(name for names in inner for name in names) if name not in own]
