"""(1 / x) * y becomes y / x. Source: div_mul_fusion.cc of ONNX Runtime."""

from __future__ import annotations

from typing import Final

from dmlsplit.models.graph import Graph

_TYPES: Final = frozenset({"DOUBLE", "FLOAT", "FLOAT16", "INT32", "INT64"})


def div_mul_fusion(graph: Graph) -> None:
    """Fuses, in place, each Div of 1 with the Mul that is its only reader into one Div."""
    for node in graph.nodes:
        after = node.only_reader if node.op_type == "Div" and len(node.inputs) == 2 else None
        one = graph.facts.elements(node.inputs[0].name) if after is not None else None
        if after is None or after.op_type != "Mul" or one is None or one.size != 1 or one.ravel()[0] != 1:
            continue
        if graph.facts.data_type(node.inputs[0].known_type) not in _TYPES:
            continue
        factor = next(value for value in after.inputs if value is not node.outputs[0])
        divisor = node.inputs[1]
        graph.remove(node)
        graph.read(after, [factor, divisor])
        after.op_type = "Div"
        after.absorbed += (node.index,)
