"""What moves elements between a DequantizeLinear and a QuantizeLinear of equal scales moves the quantized ones.

Source: qdq_selector_action_transformer.cc and qdq_selectors.cc of ONNX Runtime, the rules that drop a pair. The
provider was chosen by the types before. Pairs around Split, Concat, MaxPool, Resize and reductions are not followed,
nor are those of 4 bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlsplit.models.graph import Graph, Node, Value

_MOVING: Final = frozenset({"Gather", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_MOVING_SINCE_1_20: Final = frozenset({"Expand", "Flatten", "Slice", "Tile"})
_TYPES: Final = frozenset({"INT8", "UINT8", "INT16", "UINT16"})
_INPUTS: Final = 3
"""A quantization that may be dropped has a scale and a zero point."""


def qdq_selector_action_transformer(graph: Graph) -> None:
    """Removes, in place, the pairs around nodes that move elements."""
    moving = _MOVING | _MOVING_SINCE_1_20 if graph.facts.drops_more_quantizations else _MOVING
    for node in graph.nodes:
        before = node.inputs[0].producer if node.op_type in moving else None
        after = node.only_reader
        if before is None or after is None or not _is_dropped(graph, before, node, after):
            continue
        outputs = after.outputs
        graph.remove(after)
        graph.write(node, outputs)
        graph.read(node, [before.inputs[0], *node.inputs[1:]])
        if not before.is_used:
            graph.remove(before)


def _is_dropped(graph: Graph, before: Node, node: Node, after: Node) -> bool:
    """True if `before` and `after` are a pair around the node that quantizes alike."""
    if before.op_type != "DequantizeLinear" or after.op_type != "QuantizeLinear":
        return False
    others = (value.producer for value in node.inputs[1:])
    if any(each is not None and each.op_type == "DequantizeLinear" for each in others):
        return False
    if len(before.inputs) != _INPUTS or len(after.inputs) != _INPUTS or after.inputs[0] is not node.outputs[0]:
        return False
    types = {graph.facts.data_type(value.known) for value in (before.inputs[0], after.outputs[0])}
    pairs = zip(before.inputs[1:], after.inputs[1:], strict=True)
    return len(types) == 1 and types <= _TYPES and all(_are_equal(graph, *pair) for pair in pairs)


def _are_equal(graph: Graph, first: Value, second: Value) -> bool:
    """True for constants of one element that are equal."""
    found = [graph.facts.elements(value.name) for value in (first, second)]
    one, other = found
    if one is None or other is None or one.shape not in ((), (1,)) or other.shape not in ((), (1,)):
        return False
    return one.dtype == other.dtype and bool(np.array_equal(one.reshape(-1), other.reshape(-1)))
