"""The nodes that optimization passes without a module here may change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.lowered import FUSED_ADD
from dmlsplit.onnxruntime.neighbours import CPU_INPUTS, IN_PATTERNS, KEPT, STAYING
from dmlsplit.onnxruntime.passes.quick_gelu_fusion import QUICK_GELU

_CORES: Final = frozenset({"Erf", "ReduceMean", "Softmax"})
"""Operators in the middle of a pattern that ONNX Runtime fuses."""
_REACH: Final = 3
"""The most edges from there to the other nodes of the pattern."""
_REACH_OF_WEIGHTS: Final = 6
"""The most edges from an operator to weights with which optimization fuses it."""
_MERGED: Final = frozenset({"Erf", "ReduceMean"})
"""Operators that optimization fuses with their neighbours even without weights."""
_REACH_OF_MERGED: Final = 4
_ALONE: Final = (
    STAYING
    | KEPT
    | {"BatchNormalization", "Clip", "Div", "Gemm", "GlobalAveragePool", "If", "Mean", "Pow", "Reciprocal", "Round"}
    | {"Sign", "Sum", FUSED_ADD, QUICK_GELU}
)
"""Operators that only the passes here change where they stand beside one another."""


def followed(graph: Graph) -> set[Node]:
    """The nodes that are certainly in ONNX Runtime's graph as they are here."""
    nodes = graph.nodes
    patterns = _around((node for node in nodes if node.op_type in IN_PATTERNS), _REACH_OF_WEIGHTS)
    changed = merged(graph)
    found = set()
    for node in nodes:
        if node.op_type in KEPT:
            found.add(node)
            continue
        on_cpu = CPU_INPUTS.get(node.op_type, ())
        read = [value.name for i, value in enumerate(node.inputs) if value.name and i not in on_cpu]
        if node in changed or (node in patterns and any(map(graph.facts.is_constant, read))):
            continue
        if {node.op_type, *(each.op_type for each in (*node.producers, *node.readers))} <= _ALONE:
            found.add(node)
    return found


def merged(graph: Graph) -> set[Node]:
    """The nodes that ONNX Runtime may fuse with an Erf or a mean even without weights."""
    return _around((node for node in graph.nodes if node.op_type in _MERGED), _REACH_OF_MERGED)


def fusible(graph: Graph) -> set[Node]:
    """The nodes that ONNX Runtime may fuse with others: a GELU around an Erf, a normalization around a mean."""
    return _around((node for node in graph.nodes if node.op_type in _CORES), _REACH)


def _around(nodes: Iterable[Node], reach: int) -> set[Node]:
    """The given nodes, and all nodes at most `reach` edges away from one of them."""
    found = set(nodes)
    new = found
    for _ in range(reach):
        values = {value for node in new for value in (*node.inputs, *node.outputs)}
        near = {reader for value in values for reader in value.readers}
        near.update(value.producer for value in values if value.producer is not None)
        new = near - found
        found = found | new
    return found
