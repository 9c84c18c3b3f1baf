"""How a Transpose is moved over a node of each operator: the axes, and other numbers that belong to dimensions, are
permuted with the dimensions of the tensors.

Source: onnx_transpose_optimization.cc of ONNX Runtime, where each operator has a handler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.descriptors.dims import Shape, is_static, numbers
from dmlsplit.models.graph import Facts, Node, attribute
from dmlsplit.onnxruntime.operator_traits import RESHAPED_GEMM
from dmlsplit.onnxruntime.passes.transposed_tensors import (
    Move,
    TransposedTensors,
    UnsureError,
    inverse,
    normalized,
    permutation,
    set_attribute,
    without,
)

_SLICE_WITH_INPUTS: Final = 10
_PAD_WITH_INPUTS: Final = 11
_SOFTMAX_OF_ONE_AXIS: Final = 13
_SHAPE_WITH_RANGE: Final = 15


def _move_simple(tensors: TransposedTensors, move: Move) -> bool:
    """Moves a Transpose over a node without other changes to the node; returns True."""
    for index in move.indices:
        tensors.transpose_input(move.node, index, inverse(move.perm))
    tensors.transpose_outputs(move.node, move.perm)
    return True


def _move_broadcast(tensors: TransposedTensors, move: Move) -> bool:
    return tensors.normalize_ranks(move.node, len(move.perm), move.indices) and _move_simple(tensors, move)


def _with_axis(default: int | None) -> _MoveOver:
    """Returns a function that moves a Transpose over a node with an attribute axis, whose default is `default`."""

    def moved(tensors: TransposedTensors, move: Move) -> bool:
        axis = move.axis(default)
        if axis is None:
            return False
        _move_simple(tensors, move)
        set_attribute(move.node, "axis", move.perm[axis])
        return True

    return moved


def _move_softmax(tensors: TransposedTensors, move: Move) -> bool:
    if tensors.facts.opset >= _SOFTMAX_OF_ONE_AXIS:
        return _with_axis(-1)(tensors, move)
    axis = move.axis(1)
    if axis is None or any((i < axis) != (j < axis) for i, j in enumerate(move.perm)):
        return False
    return _move_simple(tensors, move)


def _move_quantization(tensors: TransposedTensors, move: Move) -> bool:
    has_one_scale = tensors.facts.shape(move.node.inputs[1].known) == ()
    return (_move_simple if has_one_scale else _with_axis(1))(tensors, move)


def _move_shape(tensors: TransposedTensors, move: Move) -> bool:
    """Moves a Transpose over a Shape, and puts a Gather of the sizes behind the Shape; returns True."""
    rank, node = len(move.perm), move.node
    tensors.transpose_input(node, 0, inverse(move.perm))
    order = list(move.perm)
    if tensors.facts.opset >= _SHAPE_WITH_RANGE:
        start, end = (attribute(node, name) for name in ("start", "end"))
        order = order[slice(0 if start is None else start.i, rank if end is None else end.i)]
        node.proto = without(node.proto, "start", "end")
    (result,) = node.outputs
    whole = tensors.noted(f"{result.name}[sizes]", "INT64", (rank,), False, None)
    tensors.graph.write(node, [whole])
    tensors.insert("Gather", [whole, tensors.constant(order)], result, axis=0)
    return True


def _move_pad(tensors: TransposedTensors, move: Move) -> bool:
    rank, node = len(move.perm), move.node
    order = [*inverse(move.perm), *[i + rank for i in inverse(move.perm)]]
    if tensors.facts.opset < _PAD_WITH_INPUTS:
        found = attribute(node, "pads")
        if found is None or len(found.ints) != 2 * rank:
            return False
        set_attribute(node, "pads", [found.ints[i] for i in order])
    else:
        pads = tensors.ints(node.inputs[1])
        if pads is None or len(pads) != 2 * rank:
            raise UnsureError
        tensors.set_input(node, 1, tensors.constant([pads[i] for i in order]))
    return _move_simple(tensors, move)


def _move_reduction(tensors: TransposedTensors, move: Move) -> bool:
    node = move.node
    found = attribute(node, "keepdims")
    keeps = found is None or found.i != 0
    reads_axes = tensors.reads_axes(node)
    axes = tensors.axes(node)
    if reads_axes and (axes is None or not axes):
        if len(node.inputs) > 1 and node.inputs[1].name and axes is None:
            return False
        noop = attribute(node, "noop_with_empty_axes")
        keeps = keeps or (noop is not None and noop.i != 0)
        axes = None
    order = move.perm if keeps else ()
    if axes is not None:
        normal = normalized(axes, len(move.perm))
        if normal is None:
            return False
        new = sorted({move.perm[axis] for axis in normal})
        tensors.set_axes(node, new)
        order = move.perm if keeps else move.squeezed(new)
    tensors.transpose_input(node, 0, inverse(move.perm))
    tensors.transpose_outputs(node, order)
    return True


def _move_arg(tensors: TransposedTensors, move: Move) -> bool:
    axis, keeps = move.axis(0), attribute(move.node, "keepdims")
    if axis is None:
        return False
    set_attribute(move.node, "axis", move.perm[axis])
    tensors.transpose_input(move.node, 0, inverse(move.perm))
    is_kept = keeps is None or keeps.i != 0
    tensors.transpose_outputs(move.node, move.perm if is_kept else move.squeezed([move.perm[axis]]))
    return True


def _move_gather(tensors: TransposedTensors, move: Move) -> bool:
    """Moves a Transpose over a Gather of one constant index, a scalar, which removes a dimension; returns False for any
    other Gather."""
    axis, index = move.axis(0), move.node.inputs[1].known
    if axis is None or tensors.facts.shape(index) != () or not tensors.facts.is_constant(index):
        return False
    set_attribute(move.node, "axis", move.perm[axis])
    tensors.transpose_input(move.node, 0, inverse(move.perm))
    tensors.transpose_outputs(move.node, move.squeezed([move.perm[axis]]))
    return True


def _move_squeeze(tensors: TransposedTensors, move: Move) -> bool:
    axes = tensors.axes(move.node)
    normal = None if axes is None else normalized(axes, len(move.perm))
    if normal is None:
        return False
    new = sorted({move.perm[axis] for axis in normal})
    tensors.set_axes(move.node, new)
    tensors.transpose_input(move.node, 0, inverse(move.perm))
    tensors.transpose_outputs(move.node, move.squeezed(new))
    return True


def _move_unsqueeze(tensors: TransposedTensors, move: Move) -> bool:
    axes = tensors.axes(move.node)
    normal = None if axes is None else normalized(axes, len(move.perm) + len(axes))
    if normal is None:
        return False
    tensors.move_over_unsqueeze(move, normal)
    return True


def _move_slice(tensors: TransposedTensors, move: Move) -> bool:
    node, axes = move.node, None
    if tensors.facts.opset < _SLICE_WITH_INPUTS:
        given, starts = attribute(node, "axes"), attribute(node, "starts")
        axes = tuple(given.ints) if given is not None else tuple(range(0 if starts is None else len(starts.ints)))
    elif len(node.inputs) > 3 and node.inputs[3].name:
        axes = tensors.ints(node.inputs[3])
    else:
        shape = tensors.facts.shape(node.inputs[1].known)
        count = shape[0] if is_static(shape) and len(shape) == 1 else None
        axes = None if count is None or count > len(move.perm) else tuple(range(count))
    normal = None if axes is None else normalized(axes, len(move.perm))
    if normal is None:
        return False
    new = [move.perm[axis] for axis in normal]
    if tensors.facts.opset < _SLICE_WITH_INPUTS:
        set_attribute(node, "axes", new)
    else:
        tensors.set_input(node, 3, tensors.constant(new, node.inputs[1]))
    return _move_simple(tensors, move)


def _move_tile(tensors: TransposedTensors, move: Move) -> bool:
    repeats = tensors.ints(move.node.inputs[1])
    if repeats is None:
        raise UnsureError
    tensors.set_input(move.node, 1, tensors.constant([repeats[i] for i in inverse(move.perm)]))
    return _move_simple(tensors, move)


def _move_transpose(tensors: TransposedTensors, move: Move) -> bool:
    second = permutation(move.node)
    if len(second) != len(move.perm):
        return False
    tensors.merge(move, second)
    return True


def _move_reshape(tensors: TransposedTensors, move: Move) -> bool:
    """Merges a Transpose with a Reshape that only moves dimensions of size 1, or, in some versions, moves it over a
    Reshape that splits dimensions; returns False for any other Reshape."""
    before = tensors.facts.shape(move.node.inputs[0].known)
    after = _reshaped(tensors, move.node, before)
    if after is None or before is None:
        return False
    if len(after) != len(before):
        return tensors.facts.passes_splits and _move_over_split(tensors, move, numbers(before), after)
    left: list[object] = list(before)
    order: list[int] = []
    for size in after:
        for i, each in enumerate(left):
            if each == size:
                order.append(i)
                left[i] = None
                break
            if each is not None and each != 1 and size != 1:
                return False
        else:
            return False
    tensors.merge(move, tuple(order))
    return True


def _move_over_split(tensors: TransposedTensors, move: Move, before: Sequence[int], after: Sequence[int]) -> bool:
    """Moves a Transpose over a Reshape, which then splits the dimensions in their order before the Transpose; returns
    False if the Reshape does anything but split dimensions."""
    parts = _parts(before, after)
    if parts is None:
        return False
    order = tuple([place for i in inverse(move.perm) for place in parts[i]])
    tensors.set_input(move.node, 1, tensors.constant([after[place] for place in order]))
    tensors.transpose_input(move.node, 0, inverse(move.perm))
    tensors.transpose_outputs(move.node, inverse(order))
    return True


def _parts(before: Sequence[int], after: Sequence[int]) -> Sequence[range] | None:
    """Returns, for each dimension of a Reshape's input, the dimensions of the result that it is split into, as few as
    possible; None for a Reshape that does anything else, and for tensors without elements."""
    if 0 in before or len(after) < len(before):
        return None
    made, first = [], 0
    for size in before:
        last, product = first, 1
        while last < len(after) and (product < size or last == first):
            product *= after[last]
            last += 1
        if product != size:
            return None
        made.append(range(first, last))
        first = last
    return made if first == len(after) else None


def _reshaped(tensors: TransposedTensors, node: Node, before: Shape | None) -> Sequence[int] | None:
    """Returns the sizes that a Reshape makes of static ones; None if they are not known."""
    if any(each.op_type == RESHAPED_GEMM for each in (*node.producers, *node.readers)):
        return None  # it makes a matrix, or is made of one
    if not is_static(before):
        return None
    if len(node.inputs) < 2:
        shape = tensors.facts.shape(node.outputs[0].known)
        return shape if is_static(shape) else None
    asked, keeps = tensors.ints(node.inputs[1]), attribute(node, "allowzero")
    if asked is None or 0 in asked[len(before) :]:
        return None
    if keeps is None or keeps.i == 0:
        asked = tuple([before[i] if size == 0 else size for i, size in enumerate(asked)])
    known, whole = math.prod([size for size in asked if size != -1]), math.prod(before)
    if asked.count(-1) > 1 or (known != whole and -1 not in asked) or (-1 in asked and (not known or whole % known)):
        return None
    return [whole // known if size == -1 else size for size in asked]


def _stay(tensors: TransposedTensors, move: Move) -> bool:
    """Returns False: no Transpose is moved over the node, though ONNX Runtime's costs count on it."""
    return False


def _all_inputs(tensors: TransposedTensors, node: Node) -> Sequence[int]:
    """Returns the indices of all inputs of a node."""
    return range(len(node.inputs))


def _first_input(tensors: TransposedTensors, node: Node) -> Sequence[int]:
    """Returns the index of a node's first input."""
    return (0,)


def _non_scalars(tensors: TransposedTensors, node: Node) -> Sequence[int]:
    """Returns the indices of the inputs of a node that are not known to be scalars."""
    return [i for i, value in enumerate(node.inputs) if tensors.facts.shape(value.known) != ()]


_MoveOver: TypeAlias = Callable[[TransposedTensors, Move], bool]


class Handler(NamedTuple):
    """How Transposes are moved over an operator. `move` returns True if it has changed the graph; `inputs` returns the
    indices of the inputs that are transposed with the node."""

    move: _MoveOver
    inputs: Callable[[TransposedTensors, Node], Sequence[int]] = _first_input
    transposes_outputs: bool = True


_SIMPLE: Final = (
    "Cast Elu Exp Gelu Identity LeakyRelu Log Reciprocal Relu Sigmoid Sqrt Tanh Abs Not Ceil Floor Neg Erf HardSigmoid "
    "Round IsInf IsNaN Selu Shrink Sign Softplus Softsign ThresholdedRelu Celu HardSwish Sin Cos Tan Sinh Cosh Asin "
    "Acos Atan Asinh Acosh Atanh"
)
_OF_SOME_VERSIONS: Final = frozenset({"Elu", "Gather", "Gelu"})
_BROADCAST: Final = (
    "Add Max Min Mul Sub Div And Or Xor Mod PRelu BitShift Equal Greater Less GreaterOrEqual LessOrEqual Mean Sum Pow "
    "Where"
)
_REDUCTIONS: Final = (
    "ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare ReduceL1 ReduceL2"
)
HANDLERS: Final = {
    **dict.fromkeys(_SIMPLE.split(), Handler(_move_simple, _all_inputs)),
    **dict.fromkeys(_BROADCAST.split(), Handler(_move_broadcast, _non_scalars)),
    **dict.fromkeys(_REDUCTIONS.split(), Handler(_move_reduction)),
    **dict.fromkeys(("Softmax", "Hardmax", "LogSoftmax"), Handler(_move_softmax)),
    **dict.fromkeys(("ArgMin", "ArgMax"), Handler(_move_arg)),
    **dict.fromkeys(("MaxPool", "Resize"), Handler(_stay)),
    **dict.fromkeys(("Clip", "CastLike"), Handler(_move_simple)),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), Handler(_move_quantization)),
    "Concat": Handler(_with_axis(None), _all_inputs),
    "Split": Handler(_with_axis(0)),
    "Gather": Handler(_move_gather),
    "Pad": Handler(_move_pad),
    "Squeeze": Handler(_move_squeeze),
    "Unsqueeze": Handler(_move_unsqueeze),
    "Slice": Handler(_move_slice),
    "Tile": Handler(_move_tile),
    "Transpose": Handler(_move_transpose, transposes_outputs=False),
    "Reshape": Handler(_move_reshape, transposes_outputs=False),
    "Shape": Handler(_move_shape, transposes_outputs=False),
}
"""Maps each operator over which Transposes may be moved to its handler."""


def handler_of(node: Node, facts: Facts) -> Handler | None:
    """Returns the handler of a node; None if the session's version of ONNX Runtime moves no Transposes over it."""
    is_passed = node.op_type not in _OF_SOME_VERSIONS or node.op_type in facts.passed_by_transposes
    return HANDLERS.get(node.op_type) if is_passed else None
