"""A MatMul and the Add behind it become a Gemm; if the first factor is no matrix, the Gemm is between two Reshapes.

Source: matmul_add_fusion.cc of ONNX Runtime; observed.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from dmlsplit.descriptors.dims import Dim, Shape, is_static
from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.onnxruntime.operator_traits import RESHAPED_GEMM
from dmlsplit.onnxruntime.passes.patterns import other

_TYPES: Final = frozenset({"FLOAT", "FLOAT16"})


def matmul_add_fusion(graph: Graph) -> None:
    """Fuses, in place, each MatMul with the Add that is its only reader into a Gemm, if the other addend broadcasts to
    the result. Some versions leave those around an attention."""
    _fuse(graph, keeps_attentions=graph.facts.keeps_attentions)


def later_matmul_add_fusion(graph: Graph) -> None:
    """Fuses, in place, the products around an attention that matmul_add_fusion leaves."""
    if graph.facts.fuses_attentions:
        _fuse(graph, keeps_attentions=False)


def _fuse(graph: Graph, *, keeps_attentions: bool) -> None:
    gone: set[Node] = set()
    projections: set[Node] = set()
    for node in graph.nodes:
        after = node.only_reader if node not in gone and node.op_type == "MatMul" else None
        made = None if after is None or after.op_type != "Add" else _made(graph, node, after)
        if after is None or made is None:
            continue
        kept = made == RESHAPED_GEMM and keeps_attentions
        if kept and _is_of_attention(node, after, projections):
            continue
        bias = next(value for value in after.inputs if value is not node.outputs[0])
        graph.join(node, after)
        graph.read(node, [*node.inputs[:2], bias])
        node.op_type = made
        gone.add(after)
        if made == RESHAPED_GEMM:
            _reshape(graph, node)


def _made(graph: Graph, node: Node, after: Node) -> str | None:
    """Returns the operator that a MatMul and an Add become; None if they are not fused."""
    bias = next((value for value in after.inputs if value is not node.outputs[0]), None)
    if bias is None or graph.facts.data_type(node.inputs[0].name) not in _TYPES:
        return None
    left, right, added = (graph.facts.shape(value.name) for value in (*node.inputs[:2], bias))
    if left is None or right is None or added is None or len(right) != 2:
        return None
    columns = right[1]
    if len(left) == 2:
        return "Gemm" if fits_matrix(added, left[0], columns) else None
    reshaped = graph.facts.reshapes_products and left and is_static((*left, *right))
    return RESHAPED_GEMM if reshaped and added == (columns,) else None


def fits_matrix(added: Shape, rows: Dim, columns: Dim) -> bool:
    """True if a bias broadcasts to a matrix of so many rows and columns: sizes fit that are equal numbers or the same
    symbol."""
    if len(added) > 2:
        return False
    of_row = added[-1:] == (columns,) and columns is not None
    of_column = added[:1] == (rows,) and rows is not None
    if len(added) < 2:
        return of_row
    return (of_row and (added[0] == 1 or of_column)) or (of_column and added[1] == 1)


def _is_of_attention(node: Node, after: Node, projections: set[Node]) -> bool:
    """True for a MatMul and an Add that are left for AttentionFusion: the MatMul reads a LayerNormalization that two
    other MatMuls and the Add behind the attention also read. One that replaces other nodes is made only after this
    pass. `projections` contains the Adds at the ends of the attentions found so far; the one found here is added."""
    if after in projections:
        return True
    norm = node.inputs[0].producer
    if norm is None or norm.op_type != "LayerNormalization" or norm.fused_before:
        return False
    readers = [each for each in norm.readers for _ in range(each.inputs.count(norm.outputs[0]))]
    count = Counter(each.op_type for each in readers)
    if (count["Add"], count["MatMul"], count["Shape"]) != (1, 3, len(readers) - 4):
        return False
    sum_ = next(each for each in readers if each.op_type == "Add")
    last = other(sum_, norm.outputs[0]).producer
    if last is None or last.op_type != "Add":
        return False
    projections.add(last)
    return True


def _reshape(graph: Graph, node: Node) -> None:
    """Puts Reshapes around a Gemm, in place. Their sizes are recorded as those of the MatMul, which have as many
    elements."""
    first, (result,) = node.inputs[0], node.outputs
    before = graph.insert(node, "Reshape", [first])
    before.outputs[0].like = first.like or first
    product = Value(f"{result.name}/product", like=result)
    graph.read(node, [before.outputs[0], *node.inputs[1:]])
    behind = graph.insert(node, "Reshape", [])
    graph.write(node, [product])
    graph.read(behind, [product])
    graph.write(behind, [result])
