"""Tensors of 2^32 and more elements, which DirectML's tensors cannot have: their kernels fail session creation. So do
sizes of 2^32 and more of tensors without elements.

Observed with 1.18.0, 1.20.1, 1.24.4 and 1.30.0.
"""

from __future__ import annotations

from dmlsplit.models.graph import Node
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.printable import printable


def large_tensor(graph: SessionGraph, node: Node) -> str:
    """Returns which tensor of a node is too large for DirectML; "" if none is, or if no size is known."""
    large = graph.large_tensors
    for name in (*node.proto.input[:], *node.proto.output[:]) if large else ():
        if name in large:
            return f"{printable(name, 60)} has the sizes {list(large[name])}, 2^32 elements or more"
    return ""
