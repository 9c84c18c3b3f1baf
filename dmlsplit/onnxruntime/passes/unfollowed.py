"""The nodes that may be changed by optimization passes without a module here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.operator_traits import (
    FUSED_MATMUL,
    FUSED_MATMUL_SOFTMAX,
    RESHAPED_GEMM,
    SKIP_LAYER_NORMALIZATION,
    OperatorTraits,
    row_of,
)

_REACH: Final = 3
"""The most edges between the core of a pattern and its other nodes."""
_REACH_OF_WEIGHTS: Final = 6
"""Optimization fuses an operator only with weights at most this many edges away."""
_HEADS: Final = 3
"""The query, key and value of an attention."""
_REACH_OF_MERGED: Final = 4
"""The most edges between an operator that merges and the nodes with which it is fused."""
_PRODUCTS: Final = frozenset({"Gemm", "MatMul", FUSED_MATMUL, FUSED_MATMUL_SOFTMAX, RESHAPED_GEMM})
"""Matrix products; only an attention replaces several of them by one node."""


def followed(graph: Graph, knows_moves: bool = False) -> set[Node]:
    """Returns the nodes that certainly remain in ONNX Runtime's optimized graph: unchanged, or as a node into which
    others are fused. `knows_moves`: True if the graph's Transposes are where ONNX Runtime moves them."""
    nodes = graph.nodes
    products = frozenset[str]() if may_have_attention(graph) or _may_normalize(graph) else _PRODUCTS
    patterns = _around((node for node in nodes if row_of(node.op_type).takes_weights), _REACH_OF_WEIGHTS)
    changed = merged(graph)
    remains = {"Transpose"} if knows_moves else ()
    alone = {node for node in nodes if not row_of(node.op_type).followed and node.op_type not in remains}
    """The neighbours of these nodes may be changed together with them."""
    found = set()
    for node in nodes:
        traits = row_of(node.op_type)
        if traits.kept or node.op_type in products:
            found.add(node)
        elif node in alone or node in changed or (node in patterns and _reads_weights(graph, node, traits)):
            continue
        elif not alone or (alone.isdisjoint(node.producers) and alone.isdisjoint(node.readers)):
            found.add(node)
    return found


def _reads_weights(graph: Graph, node: Node, traits: OperatorTraits) -> bool:
    read = [value.name for i, value in enumerate(node.inputs) if value.name and i not in traits.cpu_inputs]
    return any(map(graph.facts.is_constant, read))


def merged(graph: Graph) -> set[Node]:
    """Returns the nodes at most four edges away from an operator (Erf, a mean) in the middle of a pattern that ONNX
    Runtime may fuse even if its nodes read no weights."""
    return _around((node for node in graph.nodes if row_of(node.op_type).merges and _is_core(node)), _REACH_OF_MERGED)


def may_have_attention(graph: Graph) -> bool:
    """True if AttentionFusion may find a match: a LayerNormalization or SkipLayerNormalization that is read by three
    products, or by one Reshape and one or three Shapes; or a Split into three parts that a Squeeze reads.

    Source: attention_fusion.cc of ONNX Runtime.
    """
    for node in graph.nodes:
        normalizes = node.op_type in ("LayerNormalization", SKIP_LAYER_NORMALIZATION)
        cuts = node.op_type == "Split" and len(node.outputs) == _HEADS
        if not normalizes and not cuts:
            continue
        read_by = Counter(reader.op_type for reader in node.readers)
        if normalizes:
            products = read_by["MatMul"] + read_by[FUSED_MATMUL] + read_by[FUSED_MATMUL_SOFTMAX]
            if products == _HEADS or (read_by["Reshape"] == 1 and read_by["Shape"] in (1, 3)):
                return True
        if cuts and read_by["Squeeze"]:
            return True
    return False


def _may_normalize(graph: Graph) -> bool:
    """True if ONNX Runtime may fuse the nodes around a mean into a normalization, which then may start an attention."""
    return any(node.op_type == "ReduceMean" and _is_core(node) for node in graph.nodes)


def fusible(graph: Graph) -> set[Node]:
    """Returns the nodes that ONNX Runtime may fuse with others: a GELU around an Erf, a normalization around a mean."""
    return _around(filter(_is_core, graph.nodes), _REACH)


def _is_core(node: Node) -> bool:
    """True if a node, with its neighbours, may be in the middle of a pattern."""
    core = row_of(node.op_type).core
    if core is None:
        return False
    before, behind = core
    fits = not before or any(each.op_type in before for each in node.producers)
    return fits and any(each.op_type in behind for each in node.readers)


def _around(nodes: Iterable[Node], reach: int) -> set[Node]:
    """Returns the given nodes, and all nodes at most `reach` edges away from one of them, in either direction."""
    found = set(nodes)
    new = found
    for _ in range(reach):
        values = {value for node in new for value in (*node.inputs, *node.outputs)}
        near = {reader for value in values for reader in value.readers}
        near.update(value.producer for value in values if value.producer is not None)
        new = near - found
        if not new:
            break
        found = found | new
    return found
