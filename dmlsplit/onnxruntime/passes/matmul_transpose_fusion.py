"""Transposes in front of a MatMul, or in front of a Cast of its input, become attributes of a FusedMatMul.

Source: matmul_transpose_fusion.cc of ONNX Runtime.
"""

from __future__ import annotations

from typing import Final

from dmlsplit.models.graph import Doubt, Graph, Node, Value
from dmlsplit.onnxruntime.operator_traits import FUSED_MATMUL
from dmlsplit.onnxruntime.passes.matmul_scale_fusion import Product, product_of
from dmlsplit.onnxruntime.passes.transposed_tensors import permutation

_TYPES: Final = frozenset({"FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16"})
_ON_CPU: Final = frozenset({"FLOAT", "DOUBLE"})
"""The types of products on the CPU, which has no kernel for the others."""


def matmul_transpose_fusion(graph: Graph) -> None:
    """Fuses, in place, the Transposes that a MatMul or FusedMatMul reads with it. A Transpose with other
    readers stays. A factor in front of such a Transpose is also fused."""
    fuse_transposes(graph)


def fuse_transposes(graph: Graph) -> bool:
    """Fuses Transposes with MatMuls, in place, as `matmul_transpose_fusion` does; returns True if the graph has
    changed."""
    changed = False
    for node in graph.nodes:
        is_product = node.op_type in ("MatMul", FUSED_MATMUL) and len(node.inputs) == 2
        on_dml = graph.facts.on_dml(node.index) if is_product else None
        types = {graph.facts.data_type(value.known) for value in node.inputs}
        if on_dml is None or not types <= (_TYPES if on_dml else _ON_CPU):
            continue
        if not all(_cast_first(graph, value) for value in dict.fromkeys(node.inputs)):
            node.doubts |= {Doubt.FUSED}
            continue
        before = product_of(node)
        turned = [
            None if batched else _turned(graph, value)
            for value, batched in zip(node.inputs, (before.trans_batch_a, before.trans_batch_b), strict=True)
        ]
        ranks = {len(graph.facts.shape(value.known) or ()) for value in node.inputs}
        if len(ranks) > 1:
            turned = [None if each is not None and each[1] else each for each in turned]
        if any(turned):
            _fuse(graph, node, before, turned)
            if not on_dml and "DOUBLE" in types and not graph.facts.fuses_doubles:
                graph.failing[node] = "becomes a FusedMatMul of DOUBLE, for which the CPU has no kernel"
            changed = True
    return changed


def _fuse(graph: Graph, node: Node, before: Product, turned: list[tuple[bool, bool] | None]) -> None:
    (a, batch_a), (b, batch_b) = (each or (False, False) for each in turned)
    transposes = [value.producer for value, each in zip(node.inputs, turned, strict=True) if each is not None]
    sources = [
        value.producer.inputs[0] if each is not None and value.producer is not None else value
        for value, each in zip(node.inputs, turned, strict=True)
    ]
    made = before._replace(
        trans_a=int(before.trans_a != a),
        trans_b=int(before.trans_b != b),
        trans_batch_a=int(before.trans_batch_a != batch_a),
        trans_batch_b=int(before.trans_batch_b != batch_b),
    )
    graph.fuse([node], FUSED_MATMUL, sources, made.node(node))
    for each in dict.fromkeys(transposes):
        if each is not None:
            node.doubts |= each.doubts
            if not each.is_used:
                graph.remove(each)
                node.absorbed = (each.index, *node.absorbed)


def _turned(graph: Graph, value: Value) -> tuple[bool, bool] | None:
    """Returns, for the Transpose that computes a tensor, True if it swaps the last two axes, and True if it moves the
    first axis to the last position but one; None for other permutations, for a graph output, or if no Transpose
    computes the tensor."""
    node = value.producer
    if node is None or node.op_type != "Transpose" or value.is_output:
        return None
    order = list(permutation(node, len(graph.facts.shape(node.inputs[0].known) or ())))
    rank = len(order)
    if rank < 2 or rank - 1 not in order[-2:]:
        return None
    if rank >= 3 and (order[0] not in (0, 1) or order[: rank - 2] != list(range(order[0], order[0] + rank - 2))):
        return None
    return order[-2] == rank - 1, rank >= 3 and order[0] == 1


def _cast_first(graph: Graph, value: Value) -> bool:
    """If a Cast of a Transpose's output computes a tensor, swaps the two, in place; a Transpose that others read stays
    beside the new one. Returns False, without a change, if the tensor is a graph output."""
    cast = value.producer
    turned = cast.inputs[0] if cast is not None and cast.op_type == "Cast" else None
    if cast is None or turned is None or _turned(graph, turned) is None:
        return True
    transpose = turned.producer
    if value.is_output or transpose is None:
        return False
    source = transpose.inputs[0]
    made = Value(f"{value.name}/cast", like=source.like or source, typed=value)
    graph.write(cast, [made])
    graph.read(cast, [source])
    swapped = graph.insert(transpose, "Transpose", []) if transpose.is_used else transpose
    graph.read(swapped, [made])
    graph.write(swapped, [value])
    return True
