"""A Transpose that undoes the one in front of it is removed, and so are two that undo each other around one node; nodes
over which ONNX Runtime may move other Transposes are marked.

Source: onnx_transpose_optimization.cc of ONNX Runtime. Other moves, which change the axes and sizes of the nodes in
between, are not modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import onnx
from onnx import helper

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.onnx.protobuf import refill
from dmlsplit.models.graph import Doubt, Graph, Node, Value, attribute
from dmlsplit.onnxruntime.operator_traits import row_of

_COST_OF_UNKNOWN: Final = 5
"""Of a tensor of unknown rank."""
_SOFTMAX: Final = frozenset({"Softmax", "LogSoftmax", "Hardmax"})
_SOFTMAX_OF_ONE_AXIS: Final = 13
"""The first opset in which they work on one axis, by default the last."""


def undone_transpose(graph: Graph, node: Node) -> Value | None:
    """Returns the input of the Transpose in front of this one if the two undo each other; else None. Of three in a row
    ONNX Runtime merges the first two."""
    before = node.inputs[0].producer
    if before is None or before.op_type != "Transpose":
        return None
    first = before.inputs[0].producer
    if first is not None and first.op_type == "Transpose" and _given(first):
        return None
    return before.inputs[0] if _undoes(_given(before), _given(node)) else None


def _undoes(first: Sequence[int], second: Sequence[int]) -> bool:
    """True if two permutations of the same dimensions, one after the other, change nothing; False if one is ()."""
    return bool(first) and len(first) == len(second) and [first[i] for i in second] == list(range(len(first)))


def _given(node: Node) -> Sequence[int]:
    """Returns the permutation that a Transpose has as its attribute; () without one: ONNX Runtime's optimizer leaves
    such a Transpose where it is."""
    return permutation(node, 0)


def permutation(node: Node, rank: int) -> Sequence[int]:
    """Returns the permutation of a Transpose: its attribute perm, or () if that is not a permutation; without the
    attribute, `rank` axes in reverse order."""
    perm = attribute(node, "perm")
    found = tuple(range(rank - 1, -1, -1)) if perm is None else tuple(perm.ints)
    return found if sorted(found) == list(range(len(found))) else ()


def transpose_optimizer(graph: Graph) -> None:
    """Removes, in place, Transposes that undo each other around a node if nothing else reads the tensors between them,
    and adds Doubt.TRANSPOSED to the nodes over which another Transpose in front of them may be moved.

    ONNX Runtime moves Transposes over a node if those that remain cost less: each other input needs one, and so does
    the output, unless a Transpose further downstream cancels it.
    """
    if not any(node.op_type == "Transpose" for node in graph.nodes):
        return
    order = graph.walk()
    meeting: set[Node] = set()
    for node in reversed(order):
        if any(reader.op_type == "Transpose" or _gives(reader, reader in meeting) for reader in node.readers):
            meeting.add(node)
    for node in order:
        if node not in graph or _is_freed(graph, node):
            continue
        inputs = [value for value in node.inputs if value.name and not graph.facts.is_constant(value.name)]
        moved = [value for value in inputs if _gives_to(value)]
        # a Reshape may act as a Transpose; two Transposes become one
        gain = sum(_cost(graph, value) for value in moved)
        costs = [_cost(graph, value) for value in inputs if value not in moved]
        if node not in meeting:
            costs.append(max([_cost(graph, value) for value in node.outputs if value.name], default=0))
        ranks = {len(graph.facts.shape(value.name) or ()) for value in inputs}
        if len(ranks) > 1 or node.op_type in ("Reshape", "Transpose"):
            costs.clear()
        if node.op_type == "Reshape" and not _may_transpose(graph, node):
            continue
        if gain > sum(costs) and _is_transposable(node) and not _flattens_across(graph, node):
            node.doubts |= {Doubt.TRANSPOSED}


def _is_freed(graph: Graph, node: Node) -> bool:
    """Removes the Transposes in front of a node and behind it, in place, and returns True, if they undo each other,
    nothing else reads the tensors between them, and no Transpose is moved over the node in front of them. The axis of
    the node then refers to the tensor in front of the Transposes."""
    first, second = node.inputs[0].producer if node.inputs else None, node.only_reader
    if first is None or second is None or first.op_type != "Transpose" or second.op_type != "Transpose":
        return False
    source = first.inputs[0]
    before = source.producer
    axes = _given(first)
    if first.only_reader is not node or not _undoes(axes, _given(second)):
        return False
    if before is not None and _gives(before, Doubt.TRANSPOSED in before.doubts):
        return False
    if node.op_type in _SOFTMAX and graph.facts.opset >= _SOFTMAX_OF_ONE_AXIS:
        given = attribute(node, "axis")
        axis = -1 if given is None else given.i
        if not -len(axes) <= axis < len(axes):
            return False
        node.proto = _with_axis(node.proto, axes[axis])
    elif not row_of(node.op_type).movable and (node.op_type not in _SOFTMAX or _flattens_across(graph, node)):
        return False
    outputs = second.outputs
    graph.read(node, [source, *node.inputs[1:]])
    for transpose in (first, second):
        graph.remove(transpose)
    graph.write(node, outputs)
    return True


def _flattens_across(graph: Graph, node: Node) -> bool:
    """True for a Softmax of an old opset, which makes its tensor a matrix at an axis, behind a Transpose that moves
    dimensions from one side of that axis to the other."""
    before = node.inputs[0].producer if node.op_type in _SOFTMAX and node.inputs else None
    if before is None or before.op_type != "Transpose" or graph.facts.opset >= _SOFTMAX_OF_ONE_AXIS:
        return False
    axes, given = permutation(before, len(graph.facts.shape(node.inputs[0].name) or ())), attribute(node, "axis")
    axis = 1 if given is None else given.i
    axis += len(axes) if axis < 0 else 0
    return any((i < axis) != (moved < axis) for i, moved in enumerate(axes))


def _with_axis(proto: onnx.NodeProto, axis: int) -> onnx.NodeProto:
    """Returns a copy of a node with this axis."""
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    refill(made.attribute, [each for each in proto.attribute if each.name != "axis"])
    made.attribute.append(helper.make_attribute("axis", axis))
    return made


def _gives_to(value: Value) -> bool:
    """True for a tensor that a Transpose computes, or that has one in front of it after a move."""
    producer = value.producer
    return producer is not None and _gives(producer, Doubt.TRANSPOSED in producer.doubts)


def _cost(graph: Graph, value: Value) -> int:
    """Returns what a Transpose of a tensor costs ONNX Runtime: the number of its dimensions other than 1."""
    shape = graph.facts.shape(value.known)
    return _COST_OF_UNKNOWN if shape is None else sum(size != 1 for size in shape)


def _gives(node: Node, moved: bool) -> bool:
    """True for a Transpose that may be moved and, if `moved`, for another node over which a Transpose may be moved;
    behind a Shape there is a Gather in its place."""
    if node.op_type == "Transpose":
        return bool(_given(node))
    return moved and node.op_type != "Shape" and _is_transposable(node)


def _may_transpose(graph: Graph, reshape: Node) -> bool:
    """True for a Reshape that may be equivalent to a Transpose that moves dimensions of size 1."""
    before, behind = (graph.facts.shape(value.name) for value in (reshape.inputs[0], reshape.outputs[0]))
    if before is None or behind is None or not is_static((*before, *behind)):
        return True
    return len(before) == len(behind) and [n for n in before if n != 1] == [n for n in behind if n != 1]


def _is_transposable(node: Node) -> bool:
    if node.op_type == "Transpose":
        return bool(_given(node))
    return not node.op_type or row_of(node.op_type).transposable
