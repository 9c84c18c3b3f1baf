"""A Transpose that undoes the one in front of it is removed; nodes that other Transposes may be moved over are marked.

Source: onnx_transpose_optimization.cc of ONNX Runtime. The moves themselves are not followed: they change the axes and
sizes of the nodes in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from dmlsplit.descriptors.dims import is_static
from dmlsplit.models.graph import Doubt, Graph, Node, Value, attribute
from dmlsplit.onnxruntime.operator_traits import row_of


def undone_transpose(graph: Graph, node: Node) -> Value | None:
    """Returns the input of the Transpose in front of this one if both together change nothing; else None."""
    before = node.inputs[0].producer
    if before is None or before.op_type != "Transpose":
        return None
    rank = len(graph.facts.shape(node.outputs[0].name) or ())
    first, second = permutation(before, rank), permutation(node, rank)
    if len(first) != len(second) or [first[i] for i in second] != list(range(len(first))):
        return None
    return before.inputs[0]


def permutation(node: Node, rank: int) -> Sequence[int]:
    """Returns the permutation of a Transpose: its attribute perm, () if that is no permutation; without the attribute,
    `rank` axes in reverse order."""
    perm = attribute(node, "perm")
    found = tuple(range(rank - 1, -1, -1)) if perm is None else tuple(perm.ints)
    return found if sorted(found) == list(range(len(found))) else ()


def transpose_optimizer(graph: Graph) -> None:
    """Adds Doubt.TRANSPOSED, in place, to the nodes that a Transpose in front of them may be moved over.

    ONNX Runtime moves Transposes over a node if that leaves fewer of them: the other inputs need one each, and so does
    the output, unless a Transpose further on cancels it.
    """
    if not any(node.op_type == "Transpose" for node in graph.nodes):
        return
    order = graph.walk()
    meeting: set[Node] = set()
    for node in reversed(order):
        if any(_gives(reader, reader in meeting) for reader in node.readers):
            meeting.add(node)
    for node in order:
        inputs = [value for value in node.inputs if value.name and not graph.facts.is_constant(value.name)]
        producers = [value.producer for value in inputs if value.producer is not None]
        moved = sum(_gives(producer, Doubt.TRANSPOSED in producer.doubts) for producer in producers)
        others = len(inputs) - moved + (node not in meeting)
        # the cost of a Transpose is its rank; a Reshape may be one, and two become one
        ranks = {len(graph.facts.shape(value.name) or ()) for value in inputs}
        if len(ranks) > 1 or node.op_type in ("Reshape", "Transpose"):
            others = 0
        if moved > others and _is_transposable(node) and (node.op_type != "Reshape" or _may_transpose(graph, node)):
            node.doubts.add(Doubt.TRANSPOSED)


def _gives(node: Node, moved: bool) -> bool:
    """True for a Transpose and, if `moved`, for a node that a Transpose may be moved over."""
    return node.op_type == "Transpose" or (moved and _is_transposable(node))


def _may_transpose(graph: Graph, reshape: Node) -> bool:
    """True for a Reshape that may do what a Transpose of dimensions of size 1 does."""
    before, behind = (graph.facts.shape(value.name) for value in (reshape.inputs[0], reshape.outputs[0]))
    if before is None or behind is None or not is_static((*before, *behind)):
        return True
    return len(before) == len(behind) and [n for n in before if n != 1] == [n for n in behind if n != 1]


def _is_transposable(node: Node) -> bool:
    return not node.op_type or row_of(node.op_type).transposable
