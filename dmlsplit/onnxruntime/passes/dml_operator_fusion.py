"""Activations are fused into the node in front of them.

Source: GraphTransformer.cpp and OperatorUtility.cpp of ONNX Runtime's DirectML execution provider. They do not check
whether the tensor between the two nodes is a graph output; if it is, it is never computed. Graphs in nodes are not
changed. Observed.
"""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.operator_traits import FUSED_ADD, row_of


def dml_operator_fusion(graph: Graph) -> None:
    """Fuses, in place, each activation into the node in front of it if the operators allow it, nothing else reads the
    tensor between them, and both are on DirectML."""
    if not graph.facts.is_main:
        return
    gone: set[Node] = set()
    for node in graph.nodes:
        wanted = row_of(node.op_type).absorbs
        if not wanted or node in gone or (node.op_type == "Sum" and len(node.inputs) != 2):
            continue
        between = node.outputs[0]
        after = next(iter(between.readers), None)
        if after is None or len(between.readers) > 1 or after.op_type not in wanted:
            continue
        if any(graph.facts.on_dml(index) is False for index in (*node.origins, *after.origins)):
            continue
        if between.is_output:
            node.unwritten = between.name
        graph.join(node, after)
        gone.add(after)
        if node.op_type in ("Add", "Sum"):
            node.op_type = FUSED_ADD
