"""Nodes with constant results become initializers.

Source: graph.cc (Constant nodes), constant_folding.cc and graph_utils.cc (RemoveNodesWithOneOutputBottomUp) of ONNX
Runtime.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.formats.onnx.protobuf import has_graphs
from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.operators import moves_any_type

_HALF: Final = frozenset({"FLOAT16", "BFLOAT16"})


def constant_nodes(graph: Graph) -> None:
    """Makes the outputs of Constant nodes initializers, in place, as ONNX Runtime does when it loads a model, at every
    optimization level."""
    for node in graph.nodes:
        if node.op_type == "Constant":
            graph.fold(node)


def constant_folding(graph: Graph) -> None:
    """Folds, in place, nodes with constant inputs only, and Shape nodes of static tensors with the nodes in front that
    nothing else needs."""
    copies = _reading_copies(graph)
    for node in graph.nodes:
        if node.index not in graph.folded and _folds(graph, node, copies):
            _fold_producers(graph, node)
            graph.fold(node)


def _fold_producers(graph: Graph, node: Node) -> None:
    """Folds, in place, the nodes in front of one that nothing else reads. What a branch folds, it folds before it takes
    its If's place: the nodes around the If stay. Those of the branch stay if a node around is folded: the If was in
    their place when the order of nodes was made. In a graph inside a node it takes that place before."""
    inside = _branch_of(graph, node)
    waiting = list(node.producers)
    while waiting:
        each = waiting.pop()
        read = any(reader is not node for reader in each.readers)
        read = read or (graph.facts.is_main and inside != _branch_of(graph, each))
        if read or each.index in graph.folded or any(value.is_output for value in each.outputs):
            continue
        waiting += each.producers
        graph.fold(each)


def _branch_of(graph: Graph, node: Node) -> int | None:
    return graph.facts.branch_of(node.outputs[0].name) if node.outputs else None


def _reading_copies(graph: Graph) -> set[Node]:
    """Returns the nodes that read a DequantizeLinear which ONNX Runtime adds: each reader but the first has one of its
    own, and the first too if the output is one of the graph."""
    found: set[Node] = set()
    for node in graph.nodes:
        for value in node.outputs if node.op_type == "DequantizeLinear" else ():
            found.update(list(value.readers)[0 if value.is_output else 1 :])
    return found


def _shape_of_input(graph: Graph, node: Node, copies: Container[Node]) -> Shape | None:
    """Returns the shape of the first input; for a node in `copies`, whose DequantizeLinear is an added one of which the
    file says nothing, the shape of what that one reads. None if unknown."""
    value = node.inputs[0]
    if node in copies and value.producer is not None and value.producer.inputs:
        value = value.producer.inputs[0]
    return graph.facts.shape(value.name)


def _folds(graph: Graph, node: Node, copies: Container[Node]) -> bool:
    traits = row_of(node.op_type)
    if not node.op_type or traits.random or traits.computed:
        return False
    if node.op_type == "Shape" and node.inputs and is_static(_shape_of_input(graph, node, copies)):
        return True
    names = [value.name for value in node.inputs if value.name]
    constant = bool(names) and all(map(graph.facts.is_constant, names))
    return constant and not has_graphs(node.proto) and _is_computed(graph, node, names)


def _is_computed(graph: Graph, node: Node, names: Sequence[str]) -> bool:
    """True if the CPU computes the node before the session runs. For half precision it has hardly any kernel: only
    those that move elements, and Cast."""
    if not graph.facts.has_cpu_kernel(node.index):
        return False
    if graph.facts.folds_known_sizes and not all(is_static(graph.facts.shape(v.name)) for v in node.outputs if v.name):
        return False
    types = [graph.facts.data_type(name) for name in names]
    half = any(each in _HALF for each in types)
    return not half or node.op_type == "Cast" or moves_any_type(node.op_type, graph.facts.opset)
