"""Nodes whose results are known before the session is made become constants.

Source: graph.cc (Constant nodes), constant_folding.cc and graph_utils.cc (RemoveNodesWithOneOutputBottomUp) of ONNX
Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.onnx.protobuf import subgraphs
from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.operators import moves_any_type
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import RANDOM

_COMPUTED: Final = RANDOM | {
    "Multinomial",
    "QuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "SequenceMap",
}
"""Operators that are left as they are, whatever they read."""
_HALF: Final = frozenset({"FLOAT16", "BFLOAT16"})


def constant_nodes(graph: Graph) -> None:
    """Makes initializers of Constants: a model is loaded so, whatever is optimized."""
    for node in graph.nodes:
        if node.op_type == "Constant":
            graph.fold(node)


def constant_folding(graph: Graph) -> None:
    """Folds what reads constants alone, and the Shapes of what is static as a whole; with a Shape goes what is computed
    for it alone."""
    for node in graph.nodes:
        if node.index not in graph.folded and _folds(graph, node):
            _fold_producers(graph, node)
            graph.fold(node)


def _fold_producers(graph: Graph, node: Node) -> None:
    """Takes out the nodes before one that nothing else reads, nor what is taken out."""
    waiting = list(node.producers)
    while waiting:
        each = waiting.pop()
        read = any(reader is not node for reader in each.readers)
        if read or each.index in graph.folded or any(value.is_output for value in each.outputs):
            continue
        waiting += each.producers
        graph.fold(each)


def _folds(graph: Graph, node: Node) -> bool:
    if not node.op_type or node.op_type in _COMPUTED:
        return False
    if node.op_type == "Shape" and node.inputs and is_static(graph.facts.shape(node.inputs[0].name)):
        return True
    names = [value.name for value in node.inputs if value.name]
    constant = bool(names) and all(map(graph.facts.is_constant, names))
    return constant and not any(True for _ in subgraphs(node.proto)) and _has_kernel(graph, node, names)


def _has_kernel(graph: Graph, node: Node, names: Sequence[str]) -> bool:
    """Whether the CPU computes the node. It has hardly any kernels for half precision: it moves elements, and casts."""
    types = [graph.facts.data_type(name) for name in names]
    half = any(each in _HALF for each in types)
    return not half or node.op_type == "Cast" or moves_any_type(node.op_type, graph.facts.opset)
