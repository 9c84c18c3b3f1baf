"""A Slice from 0 to the largest integer takes everything. Source: slice_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dmlsplit.models.graph import Graph, Node, Value, attribute

_END: Final = (1 << 63) - 1
_WITH_INPUTS: Final = 10
"""The first version of Slice whose starts and ends are inputs."""


def slice_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the input of a Slice that takes all elements, by constant starts, ends, axes and steps; None for any
    other Slice. A Slice whose end equals the size also gives None: ONNX Runtime keeps it."""
    is_older = graph.facts.opset < _WITH_INPUTS
    starts, ends = (_of_attribute(node, name) if is_older else _of_input(graph, node, index) for index, name in _LIMITS)
    if not starts or ends is None or len(starts) != len(ends) or any(starts) or min(ends) < _END:
        return None
    if not is_older and len(node.inputs) > 3:
        axes = _of_input(graph, node, 3)
        steps = _of_input(graph, node, 4) if len(node.inputs) > 4 else [1] * len(starts)
        if axes is None or steps != [1] * len(starts) or len(axes) != len(starts):
            return None
    return node.inputs[0]


_LIMITS: Final = ((1, "starts"), (2, "ends"))


def _of_attribute(node: Node, name: str) -> Sequence[int] | None:
    found = attribute(node, name)
    return None if found is None else list(found.ints)


def _of_input(graph: Graph, node: Node, index: int) -> Sequence[int] | None:
    """Returns the elements of a constant integer input; None if it is missing or not constant."""
    found = graph.facts.elements(node.inputs[index].name) if index < len(node.inputs) else None
    return None if found is None or found.dtype.kind != "i" else [int(each) for each in found.reshape(-1)]
