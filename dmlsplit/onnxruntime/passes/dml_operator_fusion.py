"""Activations become part of the node that feeds them.

Source: GraphTransformer.cpp and OperatorUtility.cpp of ONNX Runtime's DirectML execution provider. It does not look
whether what is between them is an output of the graph, too: nothing computes that any more. Observed.
"""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.lowered import FUSED_ADD
from dmlsplit.onnxruntime.neighbours import ABSORBS


def dml_operator_fusion(graph: Graph) -> None:
    """Puts each activation into the node in front of it that takes it, where nothing else reads what is between."""
    gone: set[Node] = set()
    for node in graph.nodes:
        wanted = ABSORBS.get(node.op_type)
        if wanted is None or node in gone or (node.op_type == "Sum" and len(node.inputs) != 2):
            continue
        between = node.outputs[0]
        after = next(iter(between.readers), None)
        if after is None or len(between.readers) > 1 or after.op_type not in wanted:
            continue
        if between.is_output:
            node.unwritten = between.name
        graph.join(node, after)
        gone.add(after)
        if node.op_type in ("Add", "Sum"):
            node.op_type = FUSED_ADD
