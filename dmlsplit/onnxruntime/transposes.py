"""Over which nodes optimization may move Transposes: their axes and sizes are others then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.onnxruntime.neighbours import TRANSPOSABLE

if TYPE_CHECKING:
    from dmlsplit.onnxruntime.session_graph import SessionGraph


def transposed(graph: SessionGraph) -> set[int]:
    """The nodes that Transposes in front of them may come to stand behind.

    ONNX Runtime (transpose_optimization) moves one where there are less of them then: those of the inputs that have
    none come to the others', and that of the output, unless there is one further on which it may meet.
    """
    if not any(node.op_type == "Transpose" for node in graph.nodes):
        return set()
    order = graph.order()
    meeting: set[int] = set()
    for index in reversed(order):
        if any(_gives(graph.nodes[i], i in meeting) for i in graph.followers(index) if i >= 0):
            meeting.add(index)
    found: set[int] = set()
    for index in order:
        node = graph.nodes[index]
        inputs = [name for name in node.input if name and not graph.is_constant(graph.source(name))]
        origins = [origin for name in inputs if (origin := graph.origin(name)) is not None]
        moved = sum(_gives(graph.nodes[origin], origin in found) for origin in origins)
        others = len(inputs) - moved + (index not in meeting)
        # The cost of a Transpose is its rank; a Reshape may be one itself.
        if len({len(graph.shape(name) or ()) for name in inputs}) > 1 or node.op_type == "Reshape":
            others = 0
        if moved > others:
            found.add(index)
    return found


def _gives(node: onnx.NodeProto, moved: bool) -> bool:
    """Whether a node is a Transpose, or one may be moved over it."""
    return node.op_type == "Transpose" or (moved and (domain_of(node) != "" or node.op_type in TRANSPOSABLE))
