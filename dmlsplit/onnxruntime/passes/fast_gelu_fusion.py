"""The nodes that compute a GELU with a hyperbolic tangent are fused into one node.

Source: fast_gelu_fusion.cc of ONNX Runtime: x / 2 * (1 + Tanh(c * (x + 0.044715 * x^3))), with a Pow as the cube, or x
/ 2 * (1 + Tanh(c * x * (1 + 0.044715 * x * x))).
"""

from __future__ import annotations

from typing import Final, TypeAlias

from dmlsplit.models.graph import Doubt, Graph, Node, Value
from dmlsplit.onnxruntime.operator_traits import FAST_GELU
from dmlsplit.onnxruntime.passes.patterns import (
    are_of,
    are_on_dml,
    has_number,
    is_number,
    is_read_once,
    is_shared,
    other,
    producer,
    reader,
)

_TYPES: Final = frozenset({"FLOAT", "FLOAT16"})
_CUBE: Final = 0.044715
_ROOT: Final = 0.7978845834732056
"""The square root of 2 / pi."""

_Start: TypeAlias = tuple[Value, list[Node]]
"""The input of the GELU, and its nodes up to the one in front of the Tanh."""


def fast_gelu_fusion(graph: Graph) -> None:
    """Replaces, in place, the nodes of each such GELU on DirectML with com.microsoft's FastGelu, at the position of the
    last node. If a Cast feeds the Pow, the nodes are only marked as possibly fused."""
    for node in graph.nodes:
        start = _product(graph, node) or _power(graph, node)
        nodes = None if start is None else _whole(graph, *start)
        if start is None or nodes is None or not are_of(graph, nodes, _TYPES) or not are_on_dml(graph, nodes):
            continue
        if not is_shared(start[0], (each for each in nodes if start[0] in each.inputs), placed=True):
            continue
        if producer(node, "Cast") is not None and node.op_type == "Pow":  # Casts may be fused with the Pow
            for each in nodes:
                each.doubts |= {Doubt.FUSED}
        else:
            graph.fuse(nodes, FAST_GELU, [start[0]])


def _product(graph: Graph, first: Node) -> _Start | None:
    """Returns x and the nodes of c * x * (1 + 0.044715 * x * x) if the Mul `first` begins it; else None."""
    source = has_number(graph, first, _CUBE) if first.op_type == "Mul" else None
    square = reader(first, "Mul")
    if source is None or square is None or other(square, first.outputs[0]) is not source:
        return None
    add = reader(square, "Add")
    last = reader(add, "Mul")
    if add is None or last is None or has_number(graph, add, 1.0) is None:
        return None
    scaled = other(last, add.outputs[0]).producer
    if scaled is None or scaled.op_type != "Mul" or not is_read_once(scaled):
        return None
    return (source, [first, square, add, scaled, last]) if has_number(graph, scaled, _ROOT) is source else None


def _power(graph: Graph, first: Node) -> _Start | None:
    """Returns x and the nodes of c * (x + 0.044715 * x^3) if the Pow `first` begins it; else None."""
    if first.op_type != "Pow" or not is_number(graph, first.inputs[1], 3.0):
        return None
    source = first.inputs[0]
    cube = reader(first, "Mul")
    add = reader(cube, "Add")
    last = reader(add, "Mul")
    if cube is None or add is None or last is None or has_number(graph, cube, _CUBE) is None:
        return None
    fits = other(add, cube.outputs[0]) is source and has_number(graph, last, _ROOT) is not None
    return (source, [first, cube, add, last]) if fits else None


def _whole(graph: Graph, source: Value, start: list[Node]) -> list[Node] | None:
    """Returns all nodes of a GELU that begins with `start`, the last one last; None if the nodes behind `start` do not
    complete one."""
    tanh = reader(start[-1], "Tanh")
    add = reader(tanh, "Add")
    last = reader(add, "Mul")
    if tanh is None or add is None or last is None or has_number(graph, add, 1.0) is None:
        return None
    half = other(last, add.outputs[0]).producer
    if half is None or half.op_type != "Mul" or last.outputs[0].is_output or half.outputs[0].is_output:
        return None
    if has_number(graph, half, 0.5) is not source:
        return None
    return [*start, tanh, add, half, last] if is_read_once(half) else None
