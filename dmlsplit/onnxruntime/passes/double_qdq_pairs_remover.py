"""Two consecutive pairs of QuantizeLinear and DequantizeLinear become one, for the range that both can represent.

Source: qdq_transformer/double_qdq_pairs_remover.cc of ONNX Runtime.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.onnxruntime.passes.qdq_propagation import DEQUANTIZE, QUANTIZE

_SCALED: Final = 3
_EQUAL: Final = 1e-20
"""The difference from which on two scales are not equal."""
_TYPES: Final = frozenset({"INT16", "INT8", "UINT16", "UINT8"})


def double_qdq_pairs_remover(graph: Graph) -> None:
    """Removes, in place, the DequantizeLinear and the QuantizeLinear in the middle of two pairs. The two nodes that
    remain get a new scale and zero point."""
    for node in graph.nodes:
        found = _around(graph, node) if node.op_type == DEQUANTIZE else None
        if found is None:
            continue
        before, after, last = found
        merged = _merged(graph, node, after)
        if merged is None:
            continue
        graph.read(before, [before.inputs[0], *merged])
        graph.read(last, [before.outputs[0], *merged])
        graph.remove(node)
        graph.remove(after)


def _around(graph: Graph, node: Node) -> tuple[Node, Node, Node] | None:
    """Returns the QuantizeLinear in front of a DequantizeLinear, the QuantizeLinear behind it, and the DequantizeLinear
    behind that, if each is the only reader of the one before and all have zero points of one type of 8 or 16 bits; else
    None."""
    before, after = node.inputs[0].producer, node.only_reader
    last = None if after is None else after.only_reader
    if before is None or after is None or last is None or before.only_reader is not node:
        return None
    four = (before, node, after, last)
    if [each.op_type for each in four] != [QUANTIZE, DEQUANTIZE] * 2 or any(len(n.inputs) < _SCALED for n in four):
        return None
    types = {graph.facts.data_type(each.inputs[2].known_type) for each in four}
    return (before, after, last) if len(types) == 1 and types <= _TYPES else None


def _merged(graph: Graph, first: Node, second: Node) -> list[Value] | None:
    """Returns the scale and the zero point for the range that both quantizations can represent; None if a scale or zero
    point is not a constant of one element. They are new values unless both quantizations have equal ones; with the name
    of the constants of one quantization if those have the same elements."""
    known = [[graph.facts.elements(value.name) for value in node.inputs[1:_SCALED]] for node in (first, second)]
    numbers = [[each.reshape(-1)[0] for each in pair if each is not None and each.size == 1] for pair in known]
    if any(len(pair) < 2 for pair in numbers):
        return None
    if len({pair[1].item() for pair in numbers}) == 1 and abs(np.float64(numbers[0][0]) - numbers[1][0]) < _EQUAL:
        return list(first.inputs[1:_SCALED])
    limits = np.iinfo(numbers[0][1].dtype)
    with np.errstate(all="ignore"):
        low, high = (
            [np.float32(limit - int(zero)) * np.float32(scale) for scale, zero in numbers]
            for limit in (limits.min, limits.max)
        )
        scale = (min(high) - max(low)) / np.float32(limits.max - limits.min)
        zero = np.round(np.float32(limits.min) - max(low) / scale)
    made = [Value(f"{first.name}/{value.name}", like=value) for value in first.inputs[1:_SCALED]]
    for node, pair in zip((first, second), numbers, strict=True):
        if np.float32(pair[0]) == scale and pair[1] == zero:
            made = [Value(value.name, like=value) for value in node.inputs[1:_SCALED]]
            break
    graph.constants.update(value.name for value in made)
    graph.merged.update(made)
    return made
