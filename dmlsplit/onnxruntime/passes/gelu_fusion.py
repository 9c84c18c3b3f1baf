"""The nodes that compute a GELU are fused into one node.

Source: gelu_fusion.cc of ONNX Runtime: 0.5 * x * (1 + Erf(x / sqrt(2))) with the products in either order. From opset
20 and version 1.20.1 on, the result is ONNX's own Gelu, made before nodes are placed; in FLOAT only the CPU has a
kernel for it. Otherwise it is com.microsoft's Gelu, made after nodes are placed.
"""

from __future__ import annotations

import math
from typing import Final

from onnx import helper

from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.operator_traits import GELU
from dmlsplit.onnxruntime.passes.patterns import are_of, are_on_dml, is_number, is_read_once, is_shared, other, reader

_TYPES: Final = frozenset({"FLOAT", "FLOAT16", "DOUBLE"})
_ROOTS: Final = (math.sqrt(2), 1.4142099618911743)
"""The square root of 2, and an approximation that some models use instead."""


def gelu_fusion(graph: Graph) -> None:
    """Replaces, in place, each Div, Erf, Add and two Muls that compute a GELU with ONNX's Gelu, at the position of the
    last node."""
    if not graph.facts.makes_gelus:
        return
    for node in graph.nodes:
        nodes = _gelu(graph, node, placed=False)
        if nodes is not None:
            source, last = node.inputs[0], nodes[-1]
            made = helper.make_node("Gelu", [source.name], [last.outputs[0].name], last.proto.name)
            graph.fuse(nodes, "Gelu", [source], made)


def contributed_gelu_fusion(graph: Graph) -> None:
    """Replaces, in place, the nodes of each GELU on DirectML with com.microsoft's Gelu."""
    if graph.facts.makes_gelus:
        return
    for node in graph.nodes:
        nodes = _gelu(graph, node, placed=True)
        if nodes is not None and are_on_dml(graph, nodes):
            graph.fuse(nodes, GELU, node.inputs[:1])


def _gelu(graph: Graph, div: Node, *, placed: bool) -> list[Node] | None:
    """Returns all nodes of the GELU that a Div begins, the last one last; None if the Div begins no GELU. `placed`:
    True if nodes are placed already."""
    if div.op_type != "Div" or not any(is_number(graph, div.inputs[1], root) for root in _ROOTS):
        return None
    source = div.inputs[0]
    erf = reader(div, "Erf")
    add = reader(erf, "Add")
    mul = reader(add, "Mul")
    if erf is None or add is None or mul is None or not is_number(graph, other(add, erf.outputs[0]), 1.0):
        return None
    factor = other(mul, add.outputs[0])
    half = factor.producer
    if half is not None and half.op_type == "Mul":
        fits = is_read_once(half) and source in half.inputs and is_number(graph, other(half, source), 0.5)
        found = [div, erf, add, half, mul] if fits else []
    else:
        last = reader(mul, "Mul")
        fits = factor is source and last is not None and is_number(graph, other(last, mul.outputs[0]), 0.5)
        found = [div, erf, add, mul, last] if fits and last is not None else []
    shared = is_shared(source, (node for node in found if source in node.inputs), placed=placed)
    return found if found and shared and are_of(graph, found, _TYPES) else None
