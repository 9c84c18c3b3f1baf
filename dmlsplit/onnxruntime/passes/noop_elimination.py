"""Adding 0 and multiplying by 1 do nothing. Source: noop_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlsplit.models.graph import Graph, Node, Value

_NEUTRAL: Final[Mapping[str, tuple[float, tuple[int, ...]]]] = {
    "Mul": (1, (0, 1)),
    "Add": (0, (0, 1)),
    "Sub": (0, (1,)),
    "Div": (1, (1,)),
}
"""Maps each operator to its neutral constant and to the inputs that this constant may be."""


def noop_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the input of a Mul, Add, Sub or Div whose other input is a neutral constant of one element (0 or 1), if
    the constant has no more dimensions than that input is known to have; else None."""
    if node.op_type not in _NEUTRAL or len(node.inputs) != 2:
        return None
    neutral, places = _NEUTRAL[node.op_type]
    for place in places:
        name, other = node.inputs[place].name, node.inputs[1 - place]
        array = graph.facts.elements(name)
        if array is None or array.size != 1 or array.ravel()[0] != neutral:
            continue
        shape = graph.facts.shape(other.name)
        if shape is not None and array.ndim <= len(shape):
            return other
    return None
