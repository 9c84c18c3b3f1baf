"""A node that moves elements behind a DequantizeLinear takes the quantized ones.

Source: qdq_propagation.cc and qdq_selector_action_transformer.cc of ONNX Runtime: a QuantizeLinear and a
DequantizeLinear are put behind the node, which then stands between a pair that is dropped. The provider was chosen by
the types before. What becomes of the DequantizeLinear is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dmlsplit.models.graph import Graph, Node

_MOVING: Final = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_FLOAT8: Final = "FLOAT8"


def reading_float8(graph: Graph) -> Iterator[tuple[Node, str]]:
    """Yields each node that is left to move elements of 8-bit floats on DirectML, which has no such kernel, and the
    name of the tensor. The scale and the zero point have to be constants of one element."""
    for node in graph.nodes:
        before = node.inputs[0].producer if node.op_type in _MOVING else None
        if before is None or before.op_type != "DequantizeLinear" or not graph.facts.on_dml(node.index):
            continue
        given, *others = before.inputs
        shapes = [graph.facts.shape(value.name) for value in others if graph.facts.is_constant(value.name)]
        scalars = len(others) == 2 and shapes.count(()) + shapes.count((1,)) == 2
        if scalars and (graph.facts.data_type(given.name) or "").startswith(_FLOAT8):
            yield node, given.name
