"""Tensors of 2^32 and more elements, which DirectML's tensors cannot have: their kernels fail session creation.

Observed with 1.18.0, 1.20.1, 1.24.4 and 1.30.0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.models.graph import Node
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.printable import printable

_BEYOND: Final = 1 << 32


def large_tensor(graph: SessionGraph, node: Node) -> str:
    """Returns which tensor of a node is too large for DirectML; "" if none is, or if no size is known."""
    large = graph.once("large tensors", lambda: _large(graph))
    for name in (*node.proto.input, *node.proto.output) if large else ():
        if name in large:
            return f"{printable(name, 60)} has the sizes {list(large[name])}, 2^32 elements or more"
    return ""


def _large(graph: SessionGraph) -> Mapping[str, Shape]:
    shapes = {name: graph.shape(name) for name in graph.graph.values}
    large = {shape for shape in set(shapes.values()) if is_static(shape) and math.prod(shape) >= _BEYOND}
    return {name: shape for name, shape in shapes.items() if shape in large and shape is not None} if large else {}
