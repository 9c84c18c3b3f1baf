"""A Sum behind a Gemm of two inputs becomes the Gemm's third input. Source: gemm_sum_fusion.cc of ONNX Runtime."""

from __future__ import annotations

from typing import Final

from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.passes.matmul_add_fusion import fits_matrix

_FIRST_WITHOUT_C: Final = 11
"""The first version of Gemm in which C is optional."""
_MATRIX: Final = 2


def gemm_sum_fusion(graph: Graph) -> None:
    """Fuses, in place, a Sum of two tensors into the Gemm of two inputs that computes one of them and that only the
    Sum reads; the other tensor, which broadcasts to the result, becomes the Gemm's third input."""
    gone: set[Node] = set()
    for node in graph.nodes if graph.facts.opset >= _FIRST_WITHOUT_C else ():
        after = node.only_reader if node not in gone and node.op_type == "Gemm" and len(node.inputs) == 2 else None
        if after is None or after.op_type != "Sum" or len(after.inputs) != 2:
            continue
        other = next(value for value in after.inputs if value is not node.outputs[0])
        added, whole = graph.facts.shape(other.name), graph.facts.shape(node.outputs[0].name)
        if added is not None and whole is not None and len(whole) == _MATRIX and fits_matrix(added, *whole):
            graph.join(node, after)
            graph.read(node, [*node.inputs, other])
            gone.add(after)
