"""Quantizations whose scales are along another axis than the one that their kernel assumes.

Up to ONNX Runtime 1.24.4 the kernels of opset 21 describe a vector of scales as if it were along the last dimension. If
its number of elements does not divide that dimension, kernel creation fails; otherwise each scale applies to a block of
the last dimension, and the result differs. Observed in the descriptors that are submitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dmlsplit.models.graph import Node, attribute
from dmlsplit.onnxruntime.node_faults import NodeFault
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.onnxruntime.passes.qdq_propagation import DEQUANTIZE, QUANTIZE, scaling_shape
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.records import entity

_FIRST_WITH_AXIS: Final = 13
"""The first opset whose quantizations have an axis."""
_FIRST: Final = 21
"""The first opset with these kernels."""
_AXIS: Final = 1
"""The default axis of a node."""
_EXACT: Final = frozenset({"INT8", "UINT8"})
"""The types on DirectML whose differences FLOAT represents exactly."""


@entity
class OffAxis(NodeFault):
    """A quantization on DirectML whose kernel assumes another axis for its scales."""

    axis: int
    rank: int
    scales: int

    @property
    def why(self) -> str:
        """What is wrong, as a sentence."""
        scales = f"{self.path} has {self.scales} scales along axis {self.axis}"
        return f"{scales}, but its kernel applies them along the last one"

    @property
    def fails(self) -> bool:
        """True if kernel creation fails; False if the result is wrong."""
        last = (self.graph.shape(self.node.inputs[0].known) or (None,))[-1]
        return not isinstance(last, int) or last % self.scales != 0

    @property
    def at_run(self) -> bool:
        """True if the kernel is created during a Run, since a size is unknown."""
        return self.graph.has_open_sizes(self.node)

    @property
    def no_cure(self) -> str:
        """Why no Cast, Sub and Mul compute the same, bit for bit; "" if they do."""
        types = [self.graph.data_type(value.known_type) for value in self.node.inputs[:2]]
        if self.node.op_type != DEQUANTIZE:
            return "it rounds"
        given = attribute(self.node, "output_dtype")
        if types[0] not in _EXACT or types[1] != "FLOAT" or (given is not None and given.i):
            return f"only 8-bit integers dequantized to FLOAT are exact; it has {types[0]} and {types[1]}"
        return ""


def off_axis(graph: SessionGraph) -> Iterator[OffAxis]:
    """Yields the quantizations of a graph, in order, that are not computed along their axis. Those that optimization
    moves are left out: their axis is not tracked."""
    if graph.opset < _FIRST or graph.traits.follows_axes:
        return
    if not any(node.op_type in (DEQUANTIZE, QUANTIZE) for node in graph.nodes):
        return
    for node in optimized(graph).nodes:
        if node.op_type not in (DEQUANTIZE, QUANTIZE) or node.is_inserted or not graph.on_dml(node.index):
            continue
        whole, scales = [graph.shape(value.known) for value in node.inputs[:2]]
        if whole is None or scales is None or len(scales) != 1 or not isinstance(scales[0], int):
            continue
        given = attribute(node, "axis")
        axis = (_AXIS if given is None else given.i) % max(len(whole), 1)
        if scales[0] > 1 and axis != len(whole) - 1:
            yield OffAxis(graph, node, axis, len(whole), scales[0])


def out_of_range(graph: SessionGraph) -> Iterator[tuple[Node, str]]:
    """Yields the quantizations of a graph whose kernel cannot be created with the session, with the reason: a vector of
    scales or zero points, even of one element, is along an axis that the tensor does not have. Where all sizes are
    equal, the kernel does not look at the axis. A quantization that optimization inserts has the default axis."""
    if not _FIRST_WITH_AXIS <= graph.opset < _FIRST and not (graph.opset >= _FIRST and graph.traits.follows_axes):
        return
    if not any(node.op_type in (DEQUANTIZE, QUANTIZE) for node in graph.nodes):
        return
    made = optimized(graph)
    for node in made.nodes:
        if node.op_type not in (DEQUANTIZE, QUANTIZE) or not graph.on_dml(node.index) or graph.has_open_sizes(node):
            continue
        whole = graph.shape(node.inputs[0].known)
        others = [scaling_shape(made, value) for value in node.inputs[1:] if value.name]
        moved = node.is_inserted and not graph.traits.quantized.moves_axes
        given = None if moved else attribute(node, "axis")
        axis, rank = _AXIS if given is None else given.i, len(whole or ())
        vector = any(each is not None and len(each) == 1 and each != whole for each in others)
        if vector and not -rank <= axis < rank:
            path = graph.path(node.index)
            yield node, f"{path} has a vector of scales along axis {axis} of a tensor of {rank} dimensions"
