"""Helpers with which passes match nodes and constants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from dmlsplit.descriptors.dims import Shape
from dmlsplit.models.graph import Graph, Node, Value, attribute
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import UNMERGED

_RELATIVE: Final = 1e-5
_ABSOLUTE: Final = 1e-8
"""The tolerances, relative and absolute, for a constant to match a number. Source: optimizer/utils.cc of ONNX
Runtime."""
ROUNDS: Final = 10
"""How often ONNX Runtime makes the passes of a level at most. Source: max_num_graph_transformation_steps of
session_options.h."""
CLIPS: Final = frozenset({"Clip", "Relu"})
_SCALING: Final = 2
"""The number of inputs that scale a quantization, if it has a zero point."""


def reader(node: Node | None, op_type: str) -> Node | None:
    """Returns the only node that reads the result of `node`, if its operator is `op_type`; None otherwise, or if `node`
    is None."""
    found = None if node is None else node.only_reader
    return found if found is not None and found.op_type == op_type else None


def producer(node: Node | None, op_type: str) -> Node | None:
    """Returns the first producer of an input of `node` that has the operator `op_type`; None if there is none, or if
    `node` is None."""
    inputs = () if node is None else node.inputs
    found = (value.producer for value in inputs)
    return next((each for each in found if each is not None and each.op_type == op_type), None)


def is_read_once(node: Node, times: int = 1) -> bool:
    """True if nodes read the first output of `node` exactly `times` times, and it is not a graph output."""
    value = node.outputs[0]
    count = sum(each.inputs.count(value) + each.captured.count(value) for each in value.readers)
    return count == times and not value.is_output


def is_shared(value: Value, readers: Iterable[Node], *, placed: bool) -> bool:
    """True if these nodes, which all read `value`, read the same tensor. Each reader of a DequantizeLinear has a copy
    of its own; before nodes are placed, readers behind the same removed Identity share one copy."""
    if value.producer is None or value.producer.op_type != UNMERGED:
        return True
    names = {node.proto.input[node.inputs.index(value)] for node in readers}
    return not placed and len(names) == 1 and value.name not in names


def shape_of(graph: Graph, value: Value) -> Shape | None:
    """Returns the shape of a tensor, as it is known after the fusion of Reshapes."""
    return graph.found_shapes.get(value.known) or graph.facts.shape(value.known)


def other(node: Node, value: Value) -> Value:
    """Returns the other input of a node with two inputs, one of them `value`."""
    return node.inputs[1] if node.inputs[0] is value else node.inputs[0]


def number(graph: Graph, value: Value) -> np.floating | None:
    """Returns the number in a floating-point constant of one element; None for any other tensor."""
    array = graph.facts.elements(value.name)
    is_number = array is not None and array.shape in ((), (1,)) and array.dtype.kind == "f"
    return array.reshape(-1)[0] if array is not None and is_number else None


def is_number(graph: Graph, value: Value, wanted: float) -> bool:
    """True for a constant of one element that is about `wanted`, in the precision of its type."""
    found = number(graph, value)
    if found is None:
        return False
    expected = float(found.dtype.type(wanted))
    return abs(float(found) - expected) <= _ABSOLUTE + _RELATIVE * abs(expected)


def has_number(graph: Graph, node: Node, wanted: float) -> Value | None:
    """Returns the other input of a node with two inputs, one of them a constant of one element that is about `wanted`;
    None for any other node."""
    if len(node.inputs) != 2:
        return None
    found = (value for value in node.inputs if is_number(graph, value, wanted))
    return next((other(node, value) for value in found), None)


def are_on_dml(graph: Graph, nodes: Iterable[Node]) -> bool:
    """True if DirectML runs all nodes."""
    return all(graph.facts.on_dml(index) is True for node in nodes for index in node.origins)


def are_placed_together(graph: Graph, nodes: Sequence[Node]) -> bool:
    """True if one provider runs all nodes, and has kernels for their types: those of FLOAT16 on the CPU have no
    provider until ONNX Runtime inserts Casts around them."""
    if are_on_dml(graph, nodes):
        return True
    halves = (graph.facts.data_type(value.known_type) == "FLOAT16" for node in nodes for value in node.inputs)
    return all(graph.facts.on_dml(index) is False for node in nodes for index in node.origins) and not any(halves)


def are_of(graph: Graph, nodes: Iterable[Node], types: Iterable[str]) -> bool:
    """True if all inputs of the nodes are of these types."""
    wanted = set(types)
    values = (value for node in nodes for value in node.inputs if value.name)
    return all(graph.facts.data_type(value.known) in wanted for value in values)


def keeps_range(graph: Graph, clip: Node, after: Node, *, bounded: bool = False) -> bool:
    """True if a Relu or Clip keeps the whole range of the QuantizeLinear behind it. If `bounded`, a Clip must have an
    upper bound, and the QuantizeLinear may omit its zero point, which is then 0."""
    scaling = [_number(graph, value) for value in after.inputs[1:]]
    if bounded and len(scaling) == 1 and graph.facts.data_type(after.outputs[0].known_type) == "UINT8":
        scaling.append(np.uint8(0))
    if len(scaling) < _SCALING or any(each is None for each in scaling):
        return False
    scale, zero = scaling
    if zero.dtype.kind not in "iu":
        return False
    bounds: list[Any] = [np.float32(0), None] if clip.op_type == "Relu" else [None, None]
    for i, name in enumerate(("min", "max") if clip.op_type == "Clip" else ()):
        given = attribute(clip, name)
        if given is not None:
            bounds[i] = np.float32(given.f)
        elif len(clip.inputs) > 1 + i and clip.inputs[1 + i].name:
            bounds[i] = _number(graph, clip.inputs[1 + i])
            if bounds[i] is None:
                return False
    if bounded and clip.op_type == "Clip" and bounds[1] is None:
        return False
    limits = np.iinfo(zero.dtype)
    with np.errstate(all="ignore"):
        least, most = (
            edge if each is None else np.rint(np.float32(each) / np.float32(scale)) + int(zero)
            for each, edge in zip(bounds, (-np.inf, np.inf), strict=True)
        )
    return bool(least <= limits.min and most >= limits.max)


def _number(graph: Graph, value: Value) -> Any:
    """Returns the number in a constant of one element; None if it is not known, or for any other value."""
    found = graph.facts.elements(value.name)
    return None if found is None or found.size != 1 or found.dtype.kind not in "fiu" else found.reshape(-1)[0]
