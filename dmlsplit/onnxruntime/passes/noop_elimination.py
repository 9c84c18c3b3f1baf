"""To add 0, or to multiply by 1, does nothing. Source: noop_elimination.cc of ONNX Runtime."""

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
"""The constant that makes an operator do nothing, and as which of its inputs."""


def noop_elimination(graph: Graph, node: Node) -> Value | None:
    """The other input of Mul, Add, Sub or Div, where one is the constant of a single element that changes nothing, and
    the shape stays."""
    if node.op_type not in _NEUTRAL or len(node.inputs) != 2:
        return None
    neutral, places = _NEUTRAL[node.op_type]
    for place in places:
        name, other = node.inputs[place].name, node.inputs[1 - place]
        array = graph.facts.elements(name)
        if array is None or array.size != 1 or array.ravel()[0] != neutral:
            continue
        if graph.facts.shape(other.name) == graph.facts.shape(node.outputs[0].name):
            return other
    return None
