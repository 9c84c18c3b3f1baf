"""Reshapes whose kernel does not infer a size: those with allowzero and a size of -1.

With allowzero, ONNX allows one -1 in the shape if there is no 0. DirectML's kernel refuses it: the session is not
created, or Run fails if the kernel is created then. Observed with 1.18.0, 1.20.1, 1.24.4 and 1.30.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dmlsplit.models.graph import Node, Value, attribute
from dmlsplit.onnxruntime.node_faults import NodeFault
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.records import entity

_RESHAPE: Final = "Reshape"
_INFERRED: Final = -1
_MOST_DEPTH: Final = 8
"""The most Concats in a row that are searched for a -1."""


@entity
class UninferredSize(NodeFault):
    """A Reshape on DirectML whose kernel cannot be created."""

    @property
    def why(self) -> str:
        """What is wrong, as a sentence."""
        return f"with allowzero, DirectML's kernel for {self.path} does not infer the size -1"

    @property
    def at_run(self) -> bool:
        """True if the kernel is created during a Run: a size or the shape is unknown before."""
        return self.graph.has_open_sizes(self.node) or not self.graph.is_known_to_kernels(self.node.inputs[1].name)


def uninferred_sizes(graph: SessionGraph) -> Iterator[UninferredSize]:
    """Yields the Reshapes of a graph on DirectML whose kernel cannot be created, in order."""
    if not any(node.op_type == _RESHAPE for node in graph.nodes):
        return
    for node in optimized(graph).nodes:
        if not node.is_inserted and graph.on_dml(node.index) and _infers_with_allowzero(graph, node):
            yield UninferredSize(graph, node)


def _infers_with_allowzero(graph: SessionGraph, node: Node) -> bool:
    """True for a Reshape with allowzero and a shape that is known to have a -1."""
    if node.op_type != _RESHAPE or len(node.inputs) < 2:
        return False
    given = attribute(node, "allowzero")
    return given is not None and given.i != 0 and _has_inferred(graph, node.inputs[1], _MOST_DEPTH)


def _has_inferred(graph: SessionGraph, shape: Value, depth: int) -> bool:
    """True if a shape is a constant with a -1, or a Concat of such a constant and others."""
    elements = graph.elements(shape.name)
    if elements is not None:
        return bool((elements == _INFERRED).any())
    made = shape.producer
    if made is None or made.op_type != "Concat" or depth == 0:
        return False
    return any(_has_inferred(graph, each, depth - 1) for each in made.inputs)
