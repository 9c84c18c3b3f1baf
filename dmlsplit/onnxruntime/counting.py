"""Which nodes optimization leaves as a node each: how many a fused graph has decides on its flags."""

from __future__ import annotations

import onnx

from dmlsplit.formats.onnx.protobuf import operator_of
from dmlsplit.onnxruntime.neighbours import ABSORBS, CPU_INPUTS, IN_PATTERNS, KEPT, STAYING
from dmlsplit.onnxruntime.session_graph import SessionGraph


def stays(graph: SessionGraph, index: int) -> bool:
    """Whether optimization certainly leaves a node as a node."""
    node = graph.nodes[index]
    if graph.options.optimization < 1 or operator_of(node) in KEPT:
        return True
    before = [i for name in node.input if (i := graph.origin(name)) is not None]
    after = [i for i in graph.followers(index) if i >= 0]
    around = {operator_of(graph.nodes[i]) for i in (index, *before, *after)}
    on_cpu = CPU_INPUTS.get(operator_of(node), ())
    read = [name for i, name in enumerate(node.input) if i not in on_cpu]
    weights = [] if operator_of(node) in ("Concat", "Split") else list(filter(graph.is_constant, read))
    if weights and (_has_patterns(graph) or any(_may_be_neutral(graph, name) for name in weights)):
        return False
    return around <= STAYING | KEPT | {"If"}


def _has_patterns(graph: SessionGraph) -> bool:
    """Whether there are operators that weights may make a pattern with, of which optimization makes one node."""
    return graph.once("patterns", lambda: not {operator_of(node) for _, node in graph.alive} <= STAYING - IN_PATTERNS)


def _may_be_neutral(graph: SessionGraph, name: str) -> bool:
    """Whether to add a constant, or to multiply by it, may do nothing."""
    array = graph.scope.elements(name)
    return array is None or not array.size or bool(((array == 0) | (array == 1)).all())


def absorbed(graph: SessionGraph, index: int) -> bool:
    """Whether a node becomes part of the one that feeds it, or of x * Sigmoid(x)."""
    node = graph.nodes[index]
    if graph.options.optimization < 2 or not node.input:
        return False
    producer = graph.origin(node.input[0])
    wanted = ABSORBS.get(operator_of(graph.nodes[producer]), ()) if producer is not None else ()
    if producer is not None and operator_of(node) in wanted:
        # The tensor between them may be an output of the graph, too: that is not looked at.
        return graph.nodes_after(graph.nodes[producer].output[0]) == [index]
    return operator_of(node) == "Sigmoid" and _is_gate(graph, node)


def _is_gate(graph: SessionGraph, sigmoid: onnx.NodeProto) -> bool:
    """Whether all that reads a Sigmoid multiplies it by what it reads itself."""
    name = graph.source(sigmoid.output[0])
    ends = graph.ends(name)
    if len(ends) != 1 or ends[0] < 0 or operator_of(graph.nodes[ends[0]]) != "Mul":
        return False
    factors = [graph.source(factor) for factor in graph.nodes[ends[0]].input]
    return sorted(factors) == sorted([name, graph.source(sigmoid.input[0])])
