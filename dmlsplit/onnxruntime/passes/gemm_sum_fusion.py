"""A Sum behind a Gemm without its third input becomes that input. Source: gemm_sum_fusion.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node


def gemm_sum_fusion(graph: Graph) -> None:
    """Makes the other tensor of a Sum of two, which alone reads a Gemm, the third input of the Gemm."""
    gone: set[Node] = set()
    for node in graph.nodes:
        after = node.only_reader if node not in gone and node.op_type == "Gemm" and len(node.inputs) == 2 else None
        if after is None or after.op_type != "Sum" or len(after.inputs) != 2:
            continue
        other = next(value for value in after.inputs if value is not node.outputs[0])
        shape, whole = graph.facts.shape(other.name), graph.facts.shape(node.outputs[0].name)
        if shape is not None and shape == whole:
            graph.join(node, after)
            graph.read(node, [*node.inputs, other])
            gone.add(after)
