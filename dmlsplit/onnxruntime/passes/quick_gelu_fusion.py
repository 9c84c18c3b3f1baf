"""x * Sigmoid(alpha * x) becomes one node. Source: quick_gelu_fusion.cc of ONNX Runtime.

DirectML still gets two operators if alpha is 1, and three otherwise.
"""

from __future__ import annotations

from onnx import helper

from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.operator_traits import QUICK_GELU
from dmlsplit.onnxruntime.passes.patterns import is_shared, number, other, reader


def quick_gelu_fusion(graph: Graph) -> None:
    """Fuses, in place, each Sigmoid with the Mul that is its only reader, and with a Mul by a constant number in front
    of it, if the last Mul also reads the other factor."""
    for node in graph.nodes:
        if node not in graph:
            continue
        alpha = _factor(graph, node)
        sigmoid = node if alpha is None else reader(node, "Sigmoid")
        mul = reader(sigmoid, "Mul") if sigmoid is not None and sigmoid.op_type == "Sigmoid" else None
        if sigmoid is None or mul is None or len(mul.inputs) != 2:
            continue
        source = sigmoid.inputs[0] if alpha is None else other(node, node.inputs[alpha])
        if graph.facts.on_dml(mul.index) is not graph.facts.on_dml(sigmoid.index):
            continue
        if other(mul, sigmoid.outputs[0]) is not source or not is_shared(source, (node, mul), placed=True):
            continue
        given = None if alpha is None else number(graph, node.inputs[alpha])
        factor = 1.0 if given is None else float(given)
        made = helper.make_node(
            QUICK_GELU, [source.name], [mul.outputs[0].name], mul.proto.name, domain="com.microsoft", alpha=factor
        )
        if graph.facts.on_dml(mul.index) is False and (kind := graph.facts.data_type(source.known_type)) != "FLOAT":
            graph.failing[mul] = f"becomes a QuickGelu on the CPU, which has no kernel for {kind}"
        graph.fuse([sigmoid, mul] if alpha is None else [node, sigmoid, mul], QUICK_GELU, [source], made)


def _factor(graph: Graph, node: Node) -> int | None:
    """Returns the index of the input of a Mul that is one constant number; None if neither is, or for any other
    node."""
    if node.op_type != "Mul" or len(node.inputs) != 2 or node.only_reader is None:
        return None
    return next((i for i, value in enumerate(node.inputs) if number(graph, value) is not None), None)
