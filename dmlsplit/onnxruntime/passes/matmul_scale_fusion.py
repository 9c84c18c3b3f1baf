"""A factor of a MatMul, or of its result, becomes an attribute of a FusedMatMul. Source: matmul_scale_fusion.cc of ONNX
Runtime; observed."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.onnxruntime.operator_traits import FUSED_MATMUL


def matmul_scale_fusion(graph: Graph) -> None:
    """Takes products and quotients by one constant number out of the way between a MatMul and what it reads, and those
    that alone read it. What reads such a product beside the MatMul keeps it."""
    for node in graph.nodes:
        if node.op_type != "MatMul" or len(node.inputs) != 2:
            continue
        sources = {value: _scaled(graph, value.producer) for value in node.inputs}
        after = node.only_reader
        if after is not None and _scaled(graph, after) is node.outputs[0]:
            graph.join(node, after)
            node.op_type = FUSED_MATMUL
        if not any(sources.values()):
            continue
        scales = [value.producer for value, source in sources.items() if source is not None]
        graph.read(node, [sources[value] or value for value in node.inputs])
        node.op_type, node.number = FUSED_MATMUL, graph.new_number()
        for scale in scales:
            if scale is not None and not scale.is_used:
                graph.remove(scale)
                node.absorbed.insert(0, scale.index)


def _scaled(graph: Graph, node: Node | None) -> Value | None:
    """The tensor that a node multiplies by one constant number, or divides by one; None for any other node."""
    if node is None or node.op_type not in ("Mul", "Div") or len(node.inputs) != 2:
        return None
    for value, factor in (node.inputs, node.inputs[::-1])[: 2 if node.op_type == "Mul" else 1]:
        elements = graph.facts.elements(factor.name)
        if elements is not None and elements.shape in ((), (1,)) and elements.dtype.kind == "f":
            return value
    return None
