"""A BatchNormalization behind a MatMul is fused into its constant weights; both become a Gemm.

Source: matmul_bn_fusion.cc of ONNX Runtime; observed. Up to 1.20 the first factor is not checked: if it is no matrix,
the Gemm fails session creation.
"""

from __future__ import annotations

from typing import Final

from dmlsplit.models.graph import Graph, Node

_PASSED: Final = frozenset({"Reshape", "Transpose"})
"""The operators that may be between the two nodes."""
_NEW: Final = 21
"""From this version of these operators on, old versions of ONNX Runtime do not look behind them."""
_MATRIX: Final = 2


def matmul_bn_fusion(graph: Graph) -> None:
    """Fuses, in place, each MatMul by constant weights with the BatchNormalization of constants that reads its result,
    behind any number of Reshapes and Transposes; the nodes between them stay."""
    for node in graph.nodes:
        last = _last(graph, node) if node.op_type == "MatMul" else None
        after = None if last is None else last.only_reader
        if last is None or after is None or not _is_fused(graph, node, after):
            continue
        bias = after.inputs[2]
        if last is node:
            graph.join(node, after)
        else:
            outputs = after.outputs
            node.absorbed += after.origins
            node.doubts |= after.doubts
            graph.remove(after)
            graph.write(last, outputs)
            graph.renumber(node)
        graph.read(node, [*node.inputs[:2], bias])
        node.op_type = "Gemm"
        if why := _why_unfit(graph, node):
            graph.failing[node] = f"becomes a Gemm with a BatchNormalization, which fails: {why}"


def _why_unfit(graph: Graph, node: Node) -> str:
    """Returns why session creation fails with the Gemm: its first factor is known to be no matrix, or the weights are
    of another type than the vectors; "" if it does not."""
    facts, (factor, weights, bias) = graph.facts, node.inputs
    shape = facts.shape(factor.known)
    types = [facts.data_type(value.known_type) for value in (weights, bias)]
    if shape is not None and len(shape) != _MATRIX:
        return f"the first factor has {len(shape)} dimensions"
    return "" if types[0] == types[1] else f"the weights are {types[0]}, and the vectors {types[1]}"


def _last(graph: Graph, node: Node) -> Node | None:
    """Returns the last node in front of the one that may be fused with a MatMul; None if nodes are between them that
    the version does not look behind."""
    passes = graph.facts.opset < _NEW or graph.facts.fuses_new_products
    while (after := node.only_reader) is not None and after.op_type in _PASSED:
        if not passes or after.inputs[0] is not node.outputs[0]:
            return None
        node = after
    return node


def _is_fused(graph: Graph, node: Node, after: Node) -> bool:
    """True if a MatMul is fused with the node `after`."""
    if after.op_type != "BatchNormalization" or any(value.name for value in after.outputs[1:]):
        return False
    facts = graph.facts
    factor, weights = node.inputs[:2]
    left, right = facts.shape(factor.known), facts.shape(weights.known)
    if not facts.fuses_any_product and (left is None or len(left) != _MATRIX):
        return False
    if right is None or len(right) < _MATRIX:
        return False
    if not all(facts.is_constant(each.name) for each in (weights, *after.inputs[1:])):
        return False
    return all(facts.shape(value.known) == (right[1],) for value in after.inputs[1:])
