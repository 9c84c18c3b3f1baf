"""A MatMul of matrices and the Add behind it become a Gemm. Source: matmul_add_fusion.cc of ONNX Runtime."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.dims import is_static
from dmlsplit.models.graph import Graph, Node

_TYPES: Final = frozenset({"FLOAT", "FLOAT16", "DOUBLE"})


def matmul_add_fusion(graph: Graph) -> None:
    """Fuses each MatMul of matrices with the Add that alone reads it, if the other addend broadcasts to the matrix,
    into a Gemm."""
    gone: set[Node] = set()
    for node in graph.nodes:
        after = node.only_reader if node not in gone and node.op_type == "MatMul" else None
        if after is None or after.op_type != "Add" or not _fits(graph, node, after):
            continue
        bias = next(value for value in after.inputs if value is not node.outputs[0])
        graph.join(node, after)
        graph.read(node, [*node.inputs[:2], bias])
        node.op_type = "Gemm"
        gone.add(after)


def _fits(graph: Graph, node: Node, after: Node) -> bool:
    bias = next((value for value in after.inputs if value is not node.outputs[0]), None)
    if bias is None or graph.facts.data_type(node.inputs[0].name) not in _TYPES:
        return False
    left, right, added = (graph.facts.shape(value.name) for value in (*node.inputs[:2], bias))
    if left is None or right is None or not is_static(added) or added is None or (len(left), len(right)) != (2, 2):
        return False
    rows, columns = left[0], right[1]
    return added in ((columns,), (1, columns), (rows, columns), (rows, 1))
