"""Nodes whose results are known before the session is made become constants.

Source: graph.cc (Constant nodes) and constant_folding.cc of ONNX Runtime.
"""

from __future__ import annotations

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.onnx.protobuf import subgraphs
from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.neighbours import KEEPS_ON_CPU
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import RANDOM


def constant_nodes(graph: Graph) -> None:
    """Makes initializers of Constants: a model is loaded so, whatever is optimized."""
    for node in graph.nodes:
        if node.op_type == "Constant":
            graph.fold(node)


def constant_folding(graph: Graph) -> None:
    """Folds what reads constants alone, and the sizes of what is static as a whole."""
    for node in graph.nodes:
        if _folds(graph, node):
            graph.fold(node)


def _folds(graph: Graph, node: Node) -> bool:
    if not node.op_type or node.op_type in RANDOM or node.op_type == "DequantizeLinear":
        return False
    if node.op_type in KEEPS_ON_CPU and node.inputs and is_static(graph.facts.shape(node.inputs[0].name)):
        return True
    names = [value.name for value in node.inputs if value.name]
    return bool(names) and all(map(graph.facts.is_constant, names)) and not any(True for _ in subgraphs(node.proto))
