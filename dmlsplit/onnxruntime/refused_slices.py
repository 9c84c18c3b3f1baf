"""Slices that DirectML's kernel refuses, which fails session creation: those with steps and without axes, and those
with a negative step whose start and end both lie before element 0. ONNX clamps the start to 0 and keeps one element;
the kernel keeps none, and refuses.

Observed with 1.18.0, 1.20.1, 1.24.4 and 1.30.0.
"""

from __future__ import annotations

from typing import Final

from dmlsplit.models.graph import Node
from dmlsplit.onnxruntime.session_graph import SessionGraph

_MOST_INPUTS: Final = 5


def refused_slice(graph: SessionGraph, node: Node) -> str:
    """Returns why DirectML's kernel for a Slice refuses it; "" for another node, if it does not, and if that is not
    known. The steps are an input from opset 10 on; before, there are none."""
    read = node.proto.input
    if node.op_type != "Slice" or len(read) < _MOST_INPUTS:
        return ""
    if read[4] and not read[3]:
        return "it has steps, but no axes"
    shape, steps = graph.shape(read[0]), graph.scope.integers(read[4])
    starts, ends = graph.scope.integers(read[1]), graph.scope.integers(read[2])
    axes = graph.scope.integers(read[3])
    if shape is None or steps is None or starts is None or ends is None or axes is None:
        return ""
    for i, (start, end, step) in enumerate(zip(starts, ends, steps, strict=False)):
        axis = axes[i] if i < len(axes) else len(shape)
        size = shape[axis] if -len(shape) <= axis < len(shape) else None
        if step < 0 and isinstance(size, int) and start < -size and end < -size:
            return f"with the step {step} it begins at {start}, before the first of {size} elements"
    return ""
