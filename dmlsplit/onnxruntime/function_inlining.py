"""Replaces nodes without a kernel with the nodes of their functions before any optimization.

Source: InlineFunctionsAOT of graph_partitioner.cc of ONNX Runtime, which does this in models that have local functions,
called or not. In other models such nodes are replaced during partitioning, after the passes of level 1 (expansion.py).
Observed with all versions.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import onnx

from dmlsplit.formats.limits import Budget
from dmlsplit.formats.onnx.protobuf import Names, all_graphs, first_output, has_graphs, refill
from dmlsplit.models.inference import Inference
from dmlsplit.models.scope import Scope, Step, inside
from dmlsplit.onnxruntime.expansion import body_of
from dmlsplit.onnxruntime.inlining import Place, put_in_place
from dmlsplit.onnxruntime.operators import EXPANDED, Types, asked
from dmlsplit.targets.runtime_versions import Runtime

NodeOfGraph: TypeAlias = tuple[tuple[Step, ...], int]
"""A node: the steps to its graph, and its index there."""


def without_kernel(scope: Scope, runtime: Runtime) -> Iterator[NodeOfGraph]:
    """Yields the nodes of a graph, and of the graphs in its nodes, that have no kernel in a version but a function."""
    for index, node in enumerate(scope.graph.node):
        if has_graphs(node):
            for _, child in scope.children(index):
                yield from without_kernel(child, runtime)
            continue
        read, made = [_types(scope, names) for names in (node.input, node.output)]
        if asked(node, read, made, scope.origin.opset, runtime) in EXPANDED:
            yield scope.steps, index


@dataclass(eq=False, repr=False)
class FunctionInlining:
    """Replaces nodes with the nodes of their functions."""

    replaced: Container[NodeOfGraph]
    inference: Inference
    budget: Budget
    written: dict[str, Place]
    """The names that nodes of functions write, each with the place of its node; `inlined` adds to it."""
    places: dict[str, Place]
    """The names that the nodes of the file write."""

    def inlined(self, model: onnx.ModelProto, scope: Scope) -> onnx.ModelProto | None:
        """Returns a copy of the model in which each node in `replaced` is replaced with the nodes of its function; None
        if these are known for no node. `scope` is that of the model's graph. Raises LimitError if names become too
        long."""
        copy = deepcopy(model)
        return copy if self._inline(copy.graph, scope, cache(lambda: Names.of(model.graph))) else None

    def _inline(self, graph: onnx.GraphProto, scope: Scope, taken: Callable[[], Names]) -> bool:
        """Replaces the nodes of a graph, in place, and those of the graphs inside; returns True if any were
        replaced."""
        changed, nodes = False, []
        for index, node in enumerate(graph.node):
            for _, child in scope.children(index) if has_graphs(node) else ():
                inner = inside(node, child)
                changed |= inner is not None and self._inline(inner, child, taken)
            body = None
            if (scope.steps, index) in self.replaced:
                body = body_of(node, _types(scope, node.input), scope.origin.opset, self.inference)
            if body is None:
                nodes.append(node)
                continue
            changed = True
            made = onnx.GraphProto(node=body.nodes)
            for inner in made.node:
                inner.name = inner.name or first_output(inner)  # unique in the body
            name = first_output(node)
            place = self.written.get(name) or self.places.get(name, (index,))
            self.written |= put_in_place(made, body.inputs, body.outputs, node, place, taken(), self.budget)
            nodes += made.node
        if changed:
            refill(graph.node, [deepcopy(node) for node in nodes])
        return changed


def places_of(model: onnx.ModelProto) -> dict[str, Place]:
    """Returns the first outputs of all nodes of a model, each with the index of its node in the graph."""
    return {first_output(node): (i,) for graph in all_graphs(model.graph) for i, node in enumerate(graph.node)}


def _types(scope: Scope, names: Iterable[str]) -> Types:
    found = [scope.element_type(name) if name else "" for name in names]
    return tuple([each and each.lower() for each in found])
