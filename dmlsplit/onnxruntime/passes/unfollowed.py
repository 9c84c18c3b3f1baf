"""Nodes of which optimization that is not followed here may make others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.lowered import FUSED_ADD
from dmlsplit.onnxruntime.neighbours import CPU_INPUTS, IN_PATTERNS, KEPT, STAYING
from dmlsplit.onnxruntime.passes.quick_gelu_fusion import QUICK_GELU

_CORES: Final = frozenset({"Erf", "ReduceMean", "Softmax"})
"""Operators in the middle of what ONNX Runtime makes one operator of."""
_REACH: Final = 3
"""How many nodes away the others are."""
_REACH_OF_WEIGHTS: Final = 6
"""How many nodes away weights may be of an operator that optimization looks for with them."""
_MERGED: Final = frozenset({"Erf", "ReduceMean"})
"""Operators that optimization makes one of with what is around them, without any weights."""
_REACH_OF_MERGED: Final = 4
_ALONE: Final = (
    STAYING
    | KEPT
    | {"BatchNormalization", "Clip", "Div", "Gemm", "GlobalAveragePool", "If", "Mean", "Pow", "Reciprocal", "Round"}
    | {"Sign", "Sum", FUSED_ADD, QUICK_GELU}
)
"""Operators that are left alone beside one another, but for what is followed here."""


def followed(graph: Graph) -> set[Node]:
    """The nodes that ONNX Runtime certainly has as they are in the graph."""
    nodes = graph.nodes
    patterns = _around((node for node in nodes if node.op_type in IN_PATTERNS), _REACH_OF_WEIGHTS)
    merged = _around((node for node in nodes if node.op_type in _MERGED), _REACH_OF_MERGED)
    found = set()
    for node in nodes:
        if node.op_type in KEPT:
            found.add(node)
            continue
        on_cpu = CPU_INPUTS.get(node.op_type, ())
        read = [value.name for i, value in enumerate(node.inputs) if value.name and i not in on_cpu]
        if node in merged or (node in patterns and any(map(graph.facts.is_constant, read))):
            continue
        if {node.op_type, *(each.op_type for each in (*node.producers, *node.readers))} <= _ALONE:
            found.add(node)
    return found


def fusible(graph: Graph) -> set[Node]:
    """The nodes that ONNX Runtime may make one operator of: a GELU around an Erf, a normalization around a mean."""
    return _around((node for node in graph.nodes if node.op_type in _CORES), _REACH)


def _around(nodes: Iterable[Node], reach: int) -> set[Node]:
    """Nodes, and those that are at most `reach` nodes away from one of them."""
    found = set(nodes)
    new = found
    for _ in range(reach):
        values = {value for node in new for value in (*node.inputs, *node.outputs)}
        near = {reader for value in values for reader in value.readers}
        near.update(value.producer for value in values if value.producer is not None)
        new = near - found
        found = found | new
    return found
