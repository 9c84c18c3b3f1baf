"""A GELU and the Add of a vector in front of it are fused into one node. Source: bias_gelu_fusion.cc of ONNX
Runtime."""

from __future__ import annotations

from typing import Final

from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.onnxruntime.operator_traits import BIAS_GELU, FAST_GELU, GELU
from dmlsplit.onnxruntime.passes.patterns import are_on_dml, reader

_BIASED: Final = {GELU: BIAS_GELU, FAST_GELU: FAST_GELU}


def bias_gelu_fusion(graph: Graph) -> None:
    """Fuses, in place, each Add of a vector with the GELU of com.microsoft that is its only reader."""
    for node in graph.nodes:
        gelu = next(filter(None, (reader(node, name) for name in _BIASED)), None) if node.op_type == "Add" else None
        inputs = None if gelu is None or len(gelu.inputs) > 1 else _with_bias(graph, node)
        if gelu is not None and inputs is not None and are_on_dml(graph, (node, gelu)):
            graph.fuse([node, gelu], _BIASED[gelu.op_type], inputs)


def _with_bias(graph: Graph, add: Node) -> list[Value] | None:
    """Returns the two inputs of an Add, the vector last; None if neither is a vector, or if the length of the vector
    differs from that of the other input's rows."""
    shapes = [graph.facts.shape(value.known) for value in add.inputs]
    if any(not shape or not isinstance(shape[-1], int) for shape in shapes):
        return None
    first, second = (shape or () for shape in shapes)
    if first[-1] != second[-1]:
        return None
    return add.inputs[::-1] if len(first) == 1 else add.inputs[:] if len(second) == 1 else None
