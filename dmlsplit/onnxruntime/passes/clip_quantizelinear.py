"""A Relu or Clip that keeps the whole range of the QuantizeLinear behind it is removed.

Source: relu_quantizelinear.cc and clip_quantizelinear.cc of ONNX Runtime, up to 1.18.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.onnxruntime.passes.patterns import keeps_range

_QUANTIZE: Final = "QuantizeLinear"
_SCALED: Final = 2
"""The number of inputs that scale a quantization with a zero point."""
_FLOAT8: Final = "FLOAT8"


def clip_quantizelinear(graph: Graph, node: Node) -> Value | None:
    """Returns the input of a Relu or Clip that only a QuantizeLinear reads, which it has no effect on; else None."""
    after = node.only_reader if graph.facts.removes_clips else None
    if after is None or after.op_type != _QUANTIZE:
        return None
    if node.op_type == "Relu" and _is_of_float8(graph, after):  # whatever the zero point is
        return node.inputs[0]
    return node.inputs[0] if keeps_range(graph, node, after) else None


def clips_that_fail(graph: Graph) -> Iterator[Node]:
    """Yields the Clips at which the removal fails after the passes before placement, and with it the session: those
    that should be removed and cannot be, and those in front of a QuantizeLinear to 8-bit floats."""
    for node in graph.nodes if graph.facts.removes_clips else ():
        after = node.only_reader if node.op_type == "Clip" else None
        if after is None or after.op_type != _QUANTIZE:
            continue
        is_given = node.inputs[0].producer is None and len(node.inputs) > 1
        if _is_of_float8(graph, after) or (is_given and keeps_range(graph, node, after)):
            yield node


def _is_of_float8(graph: Graph, quantize: Node) -> bool:
    """True for a QuantizeLinear with a constant zero point that is an 8-bit float."""
    zero = quantize.inputs[-1] if len(quantize.inputs) > _SCALED else None
    if zero is None or not graph.facts.is_constant(zero.name):
        return False
    return (graph.facts.data_type(zero.known_type) or "").startswith(_FLOAT8)
