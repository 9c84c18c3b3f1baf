"""The nodes that compute a GELU become ONNX's own Gelu, which only the CPU has a kernel for in FLOAT.

Source: gelu_fusion.cc of ONNX Runtime, at its first level: 0.5 * x * (1 + Erf(x / sqrt(2))) in either order of the
products, from opset 20 on. Observed from 1.20.1 on. At older opsets, and in older versions, com.microsoft's Gelu is
made of nodes that are placed already.
"""

from __future__ import annotations

import math
from typing import Final

from onnx import helper

from dmlsplit.models.graph import Graph, Node, Value

_TYPES: Final = frozenset({"FLOAT", "FLOAT16", "DOUBLE"})
_ROOTS: Final = (math.sqrt(2), 1.4142099618911743)
"""The square root of 2, and what some models have in its place."""
_TOLERANCE: Final = 1e-5


def gelu_fusion(graph: Graph) -> None:
    """Replaces each Div, Erf, Add and two Muls that compute a GELU by one node, in the place of the last."""
    if not graph.facts.makes_gelus:
        return
    for node in graph.nodes:
        nodes = _gelu(graph, node) if node.op_type == "Div" else None
        if nodes is None:
            continue
        source, last = node.inputs[0], nodes[-1]
        for each in nodes[:-1]:
            graph.remove(each)
            last.absorbed += [each.index, *each.absorbed]
        graph.become(last, helper.make_node("Gelu", [source.name], [last.outputs[0].name], last.proto.name), [source])


def _gelu(graph: Graph, div: Node) -> list[Node] | None:
    """The nodes of the GELU that a Div begins, the last one last; None where it begins none."""
    source = div.inputs[0]
    erf = _next(div, "Erf")
    add = erf and _next(erf, "Add")
    mul = add and _next(add, "Mul")
    if erf is None or add is None or mul is None or graph.facts.data_type(source.name) not in _TYPES:
        return None
    if not any(_is_number(graph, div.inputs[1], root) for root in _ROOTS):
        return None
    if not _is_number(graph, _other(add, erf.outputs[0]), 1.0):
        return None
    factor = _other(mul, add.outputs[0])
    half = factor.producer
    if half is not None and half.op_type == "Mul" and half.only_reader is mul and source in half.inputs:
        return [div, erf, add, half, mul] if _is_number(graph, _other(half, source), 0.5) else None
    last = _next(mul, "Mul")
    if factor is not source or last is None or not _is_number(graph, _other(last, mul.outputs[0]), 0.5):
        return None
    return [div, erf, add, mul, last]


def _next(node: Node, op_type: str) -> Node | None:
    """The one node that reads a node's result, where it is of this operator."""
    found = node.only_reader
    return found if found is not None and found.op_type == op_type else None


def _other(node: Node, value: Value) -> Value:
    """The other of two inputs."""
    return node.inputs[1] if node.inputs[0] is value else node.inputs[0]


def _is_number(graph: Graph, value: Value, number: float) -> bool:
    """True for a constant of one element, which is about this number."""
    array = graph.facts.elements(value.name) if graph.is_given(value.name) else None
    return array is not None and array.size == 1 and math.isclose(float(array.item()), number, rel_tol=_TOLERANCE)
