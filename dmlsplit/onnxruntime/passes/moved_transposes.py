"""Transposes are moved over the nodes behind them if fewer, or smaller, ones remain, and are removed where they meet
their inverse.

Source: onnx_transpose_optimization.cc of ONNX Runtime. A node over which a Transpose is moved reads and writes tensors
with permuted dimensions; its axes, and other numbers that belong to dimensions, are permuted with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import onnx
from onnx import helper

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.formats.onnx.protobuf import domain_of, refill
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.models.graph import Graph, Node, Value, attribute
from dmlsplit.onnxruntime.operator_traits import RESHAPED_GEMM

Axes: TypeAlias = tuple[int, ...]

_COST_OF_UNKNOWN: Final = 5
"""Of transposing a tensor of unknown rank."""
_INPUT_OF_AXES: Final = {"Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13}
"""The first opset in which the axes are an input."""
_REDUCTION_WITH_INPUT: Final = 18
_SLICE_WITH_INPUTS: Final = 10
_PAD_WITH_INPUTS: Final = 11
_SOFTMAX_OF_ONE_AXIS: Final = 13
_SHAPE_WITH_RANGE: Final = 15


class UnsureError(Exception):
    """It is not known which Transposes are moved in a graph."""


def permutation_of(node: Node | None) -> Axes:
    """Returns the permutation that a Transpose has as its attribute; () for any other node, and without a valid
    attribute: ONNX Runtime moves only Transposes with one."""
    perm = attribute(node, "perm") if node is not None and node.op_type == "Transpose" else None
    found = () if perm is None else tuple(perm.ints)
    return found if sorted(found) == list(range(len(found))) else ()


def inverse(perm: Axes) -> Axes:
    return tuple([perm.index(i) for i in range(len(perm))])


class TransposeMover:
    """Moves the Transposes of a graph, in place, round by round.

    Raises UnsureError if the graph has operators whose treatment is not modelled: quantized ones.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self._made = 0
        self._leading: set[Value] = set()
        self._moved: Node
        """The Transpose that is moved."""
        if any(_is_quantized(node) for node in graph.nodes):
            raise UnsureError

    def _row(self, node: Node) -> _Row | None:
        """Returns how Transposes are moved over a node; None if they are not."""
        is_passed = node.op_type not in _OF_SOME_VERSIONS or node.op_type in self.facts.passed_by_transposes
        return _ROWS.get(node.op_type) if is_passed else None

    def round(self) -> bool:
        """Moves Transposes over the nodes behind them, in the order of the walk; True if the graph has changed."""
        changed, order = False, self.graph.walk()
        self._leading = self._leading_to_transposes(order)
        for node in order:
            changed |= node in self.graph and self._is_passed(node)
        return changed

    def fold(self) -> None:
        """Replaces Transposes, Squeezes and Unsqueezes of constants with constants."""
        for node in self.graph.walk():
            source = node.inputs[0] if node.inputs else None
            if source is None or not self._is_local_constant(source) or node.outputs[0].is_output:
                continue
            if not (axes := self._source_axes(node)):
                continue
            constant = self._arranged(source, axes)
            self._replace(list(node.outputs[0].readers), node.outputs[0], constant)
            self.graph.remove(node)

    def _source_axes(self, node: Node) -> Sequence[int | None]:
        """Returns, for each dimension of the output of a Transpose, Squeeze or Unsqueeze, the dimension of the input
        that it is, None for a new one; () for other nodes and if that is not known."""
        rank = len(self.facts.shape(node.inputs[0].known) or ())
        if node.op_type == "Transpose":
            return permutation_of(node)
        axes = self._axes(node) if node.op_type in ("Squeeze", "Unsqueeze") else None
        if axes is None:
            return ()
        if node.op_type == "Squeeze":
            gone = _normalized(axes, rank)
            return () if gone is None else [i for i in range(rank) if i not in gone]
        new = _normalized(axes, rank + len(axes))
        kept = iter(range(rank))
        return () if new is None else [None if i in new else next(kept) for i in range(rank + len(axes))]

    def _leading_to_transposes(self, order: Sequence[Node]) -> set[Value]:
        """Returns the tensors from which a Transpose is reached over nodes over which Transposes may be moved."""
        found: set[Value] = set()
        for node in reversed(order):
            if node.op_type == "Transpose":
                found.add(node.inputs[0])
            elif (row := self._row(node)) is not None and row.transposes_outputs and not found.isdisjoint(node.outputs):
                found.update([node.inputs[i] for i in row.inputs(self, node)])
        return found

    def _is_passed(self, node: Node) -> bool:
        """Moves a Transpose in front of a node over it if that is cheaper; True if the graph has changed."""
        row = self._row(node)
        if row is None:
            return False
        for place, value in enumerate(node.inputs):
            perm = permutation_of(value.producer)
            indices = row.inputs(self, node) if perm else ()
            if place not in indices or not self._is_cheaper(node, perm, indices, row.transposes_outputs):
                continue
            assert value.producer is not None
            self._moved = value.producer
            if row.move(self, _Move(value.producer, node, perm, indices)):
                return True
        return False

    def _is_cheaper(self, node: Node, perm: Axes, indices: Sequence[int], transposes_outputs: bool) -> bool:
        """True if moving a Transpose over a node leaves fewer dimensions to transpose in front of the node, and behind
        it unless a Transpose follows there."""
        if node.op_type == "Transpose":
            return True
        cost = sum(self._cost_of_input(node.inputs[i], perm) for i in indices)
        if cost < 0 and transposes_outputs and self._leading.isdisjoint(node.outputs):
            cost += max([self._cost(value) for value in node.outputs], default=0)
        return cost < 0

    def _cost_of_input(self, value: Value, perm: Axes) -> int:
        if value.producer is None and self.facts.is_constant(value.name):
            return 0
        found = permutation_of(value.producer)
        if found:
            readers = [] if not self._are_readers_known(value) else [self._row(node) for node in value.readers]
            return -self._cost(value) if found == perm and readers and None not in readers else 0
        return self._cost(value)

    def _cost(self, value: Value) -> int:
        """Returns the number of a tensor's dimensions other than 1."""
        shape = self.facts.shape(value.known)
        return _COST_OF_UNKNOWN if shape is None else sum(size != 1 for size in shape)

    # Constants, and tensors that are made.

    def _are_readers_known(self, value: Value) -> bool:
        """True if only nodes of this graph read a tensor."""
        return not value.is_output and not any(value in node.captured for node in value.readers)

    def _is_local_constant(self, value: Value) -> bool:
        return value.producer is None and self.graph.is_given(value.name)

    def ints(self, value: Value) -> Axes | None:
        """Returns the elements of a constant; None for any other tensor."""
        if not value.name or value.producer is not None or not self.facts.is_constant(value.name):
            return None
        found = self.facts.elements(value.name)
        if found is None:
            raise UnsureError
        return tuple([int(each) for each in found.reshape(-1).tolist()])

    def constant(self, elements: Sequence[int], like: Value | None = None) -> Value:
        """Returns a new constant vector, of INT64 or of the type of `like`."""
        data_type = "INT64" if like is None else self.facts.data_type(like.known)
        array = np.array(elements, np.int64)
        return self._noted(f"{data_type}{list(elements)}", data_type, array.shape, True, array)

    def _arranged(self, value: Value, axes: Sequence[int | None]) -> Value:
        """Returns a new tensor with the elements of another one; dimension i is dimension axes[i] of that one, a new
        one of size 1 for None. It is a constant if that one is."""
        shape, is_constant = self.facts.shape(value.known), self._is_local_constant(value)
        made: Shape | None = None if shape is None else tuple([1 if i is None else shape[i] for i in axes])
        elements = self.facts.elements(value.name) if is_constant else None
        if elements is not None and elements.ndim:
            elements = elements.transpose(_completed([i for i in axes if i is not None], elements.ndim))
        if elements is not None:
            elements = elements.reshape([int(size or 0) for size in made or ()])
        data_type = self.facts.data_type(value.known_type)
        return self._noted(f"{value.name}{list(axes)}", data_type, made, is_constant, elements)

    def _noted(
        self, content: str, data_type: str | None, shape: Shape | None, is_constant: bool, elements: Array | None
    ) -> Value:
        """Returns a new tensor. Tensors with equal names have equal content in all sessions of the graph."""
        self._made += 1
        name = f"{content}/{self._made}"
        self.facts.note(name, data_type, shape, is_constant, elements)
        if is_constant:
            self.graph.constants.add(name)
        return Value(name)

    # Changes of the graph.

    def insert(self, op_type: str, inputs: Sequence[Value], output: Value, **attributes: Any) -> Node:
        """Adds a node that computes `output` and stands for the Transpose that is moved, and returns it."""
        made = self.graph.insert(self._moved, op_type, inputs, output)
        made.proto = helper.make_node(op_type, [], [], **attributes)
        self.graph.write(made, [output])
        return made

    def set_input(self, node: Node, index: int, value: Value) -> None:
        inputs = [*node.inputs, *[Value("")] * (index + 1 - len(node.inputs))]
        inputs[index] = value
        self.graph.read(node, inputs)

    def _replace(self, readers: Sequence[Node], value: Value, other: Value) -> None:
        for reader in readers:
            self.graph.redirect(reader, {value: other})

    def _remove_unread(self, node: Node) -> None:
        if not node.is_used:
            self.graph.remove(node)

    def transpose_input(self, node: Node, index: int, perm: Axes) -> None:
        """Makes a node read a tensor transposed: of a constant, the constant is changed; a Transpose in front that is
        the inverse is left out."""
        value = node.inputs[index]
        self.set_input(node, index, Value(""))
        if self._is_local_constant(value) and self._are_readers_known(value):
            self.set_input(node, index, self._transposed_constant(value, perm))
            return
        producer = value.producer
        found = permutation_of(producer)
        if producer is not None and found and len(found) == len(perm):
            source = producer.inputs[0]
            if found == inverse(perm):
                read = source
            else:
                read = self._arranged(value, perm)
                self.insert("Transpose", [source], read, perm=[found[i] for i in perm])
            self.set_input(node, index, read)
            self._remove_unread(producer)
            return
        equal = (each for each in value.readers if permutation_of(each) == perm)
        same = next(equal, None)
        if same is None:
            same = self.insert("Transpose", [value], self._arranged(value, perm), perm=perm)
        self.set_input(node, index, same.outputs[0])

    def _transposed_constant(self, value: Value, perm: Axes) -> Value:
        """Returns a constant, transposed; other readers of it read a Transpose that undoes this."""
        shape = self.facts.shape(value.known)
        if not is_static(shape):
            raise UnsureError
        if all(size == 1 for size in shape):
            return value
        if len(shape) == 1 and shape[0] == len(perm):
            elements = self.ints(value)
            assert elements is not None
            return self.constant([elements[i] for i in perm], value)
        made = self._arranged(value, perm)
        self._undo(value, made, "Transpose", perm=inverse(perm))
        return made

    def _undo(self, value: Value, made: Value, op_type: str, **attributes: Any) -> None:
        """Makes all readers of a constant read a node that computes it of the changed constant."""
        others = list(value.readers)
        if others:
            shape = self.facts.shape(value.known) or ()
            same = self._noted(f"{value.name}=", self.facts.data_type(value.known_type), shape, False, None)
            self.insert(op_type, [made], same, **attributes)
            self._replace(others, value, same)

    def _unsqueeze_input(self, node: Node, index: int, count: int) -> None:
        """Makes a node read a tensor with `count` dimensions of size 1 in front of its own."""
        value, axes = node.inputs[index], tuple(range(count))
        rank = len(self.facts.shape(value.known) or ())
        added = [*[None] * count, *range(rank)]
        self.set_input(node, index, Value(""))
        if self._is_local_constant(value) and self._are_readers_known(value):
            made = self._arranged(value, added)
            self._undo(value, made, "Squeeze", axes=axes)
            self.set_input(node, index, made)
            return
        producer = value.producer
        if producer is not None and producer.op_type == "Squeeze" and self._axes(producer) == axes:
            self.set_input(node, index, producer.inputs[0])
            self._remove_unread(producer)
            return
        read = self._arranged(value, added)
        unsqueeze = self.insert("Unsqueeze", [value], read, axes=axes)
        perm = permutation_of(producer)
        if producer is not None and perm:
            self._move_over_unsqueeze(_Move(producer, unsqueeze, perm, (0,)), axes)
        self.set_input(node, index, read)

    def _move_over_unsqueeze(self, move: _Move, axes: Sequence[int]) -> None:
        kept = [i for i in range(len(move.perm) + len(axes)) if i not in axes]
        order = iter(move.perm)
        perm = tuple([i if i in axes else kept[next(order)] for i in range(len(move.perm) + len(axes))])
        self.transpose_input(move.node, 0, inverse(move.perm))
        self.transpose_outputs(move.node, perm)

    def transpose_outputs(self, node: Node, perm: Axes) -> None:
        """Makes a node compute other tensors, of which Transposes compute its outputs; nothing if `perm` changes
        nothing."""
        if list(perm) == list(range(len(perm))):
            return
        old = list(node.outputs)
        new = [self._arranged(value, inverse(perm)) if value.name else value for value in old]
        self.graph.write(node, new)
        for before, behind in zip(new, old, strict=True):
            if behind.name:
                self.insert("Transpose", [before], behind, perm=perm)

    def normalize_ranks(self, node: Node, rank: int, indices: Sequence[int]) -> bool:
        """Gives all inputs this rank; False, without a change, if one has a higher or an unknown rank."""
        shapes = [self.facts.shape(node.inputs[i].known) for i in indices]
        if any(shape is None or len(shape) > rank for shape in shapes):
            return False
        for i, shape in zip(indices, shapes, strict=True):
            assert shape is not None
            if len(shape) < rank:
                self._unsqueeze_input(node, i, rank - len(shape))
        return True

    def _axes(self, node: Node) -> Axes | None:
        """Returns the axes of a Squeeze, Unsqueeze or reduction; None if it has none, or none that are constant."""
        if self.facts.opset < _INPUT_OF_AXES.get(node.op_type, _REDUCTION_WITH_INPUT) or len(node.inputs) < 2:
            found = attribute(node, "axes")
            return None if found is None else tuple(found.ints)
        return self.ints(node.inputs[1])

    def set_axes(self, node: Node, axes: Sequence[int]) -> None:
        if self.facts.opset < _INPUT_OF_AXES.get(node.op_type, _REDUCTION_WITH_INPUT):
            set_attribute(node, "axes", list(axes))
        else:
            self.set_input(node, 1, self.constant(axes))

    def replace_by_source(self, move: _Move) -> None:
        """Removes a node that undoes the Transpose in front of it."""
        source, result = move.transpose.inputs[0], move.node.outputs[0]
        producer = source.producer
        if self._are_readers_known(result):
            self._replace(list(result.readers), result, source)
        elif producer is not None and self._are_readers_known(source):
            self.set_input(move.node, 0, Value(""))
            self._replace(list(source.readers), source, result)
            outputs = [result if each is source else each for each in producer.outputs]
            self.graph.write(move.node, [])
            self.graph.write(producer, outputs)
        else:
            self.graph.write(move.node, [])
            self.insert("Identity", [source], result)
        self.graph.remove(move.node)
        self._remove_unread(move.transpose)

    def merge(self, move: _Move, second: Axes) -> None:
        """Removes a node that acts as a Transpose, or makes it one, that stands for the one in front of it too."""
        if second == inverse(move.perm):
            self.replace_by_source(move)
            return
        perm, source = [move.perm[i] for i in second], move.transpose.inputs[0]
        if move.node.op_type == "Transpose":
            self.set_input(move.node, 0, source)
            set_attribute(move.node, "perm", perm)
        else:
            result = move.node.outputs[0]
            self.graph.write(move.node, [])
            self.insert("Transpose", [source], result, perm=perm)
            self.graph.remove(move.node)
        self._remove_unread(move.transpose)


class _Move(NamedTuple):
    """A move of a Transpose over the node behind it, which reads it at one of the inputs `indices`."""

    transpose: Node
    node: Node
    perm: Axes
    indices: Sequence[int]

    def axis(self, default: int | None) -> int | None:
        """Returns the node's axis as it is behind the Transpose; None if it has none or an invalid one."""
        found = attribute(self.node, "axis")
        axis = default if found is None else found.i
        normal = None if axis is None else _normalized([axis], len(self.perm))
        return None if normal is None else normal[0]

    def squeezed(self, axes: Sequence[int]) -> Axes:
        """Returns the permutation of the dimensions that are left without `axes` of the tensor in front."""
        kept = [i for i in range(len(self.perm)) if i not in axes]
        return tuple([kept.index(i) for i in self.perm if i not in axes])


def _move_simple(mover: TransposeMover, move: _Move) -> bool:
    for index in move.indices:
        mover.transpose_input(move.node, index, inverse(move.perm))
    mover.transpose_outputs(move.node, move.perm)
    return True


def _move_broadcast(mover: TransposeMover, move: _Move) -> bool:
    return mover.normalize_ranks(move.node, len(move.perm), move.indices) and _move_simple(mover, move)


def _with_axis(default: int | None) -> _Mover:
    def moved(mover: TransposeMover, move: _Move) -> bool:
        axis = move.axis(default)
        if axis is None:
            return False
        _move_simple(mover, move)
        set_attribute(move.node, "axis", move.perm[axis])
        return True

    return moved


def _move_softmax(mover: TransposeMover, move: _Move) -> bool:
    if mover.facts.opset >= _SOFTMAX_OF_ONE_AXIS:
        return _with_axis(-1)(mover, move)
    axis = move.axis(1)
    if axis is None or any((i < axis) != (j < axis) for i, j in enumerate(move.perm)):
        return False
    return _move_simple(mover, move)


def _move_shape(mover: TransposeMover, move: _Move) -> bool:
    """Puts a Gather of the sizes behind a Shape."""
    rank, node = len(move.perm), move.node
    mover.transpose_input(node, 0, inverse(move.perm))
    order = list(move.perm)
    if mover.facts.opset >= _SHAPE_WITH_RANGE:
        start, end = (attribute(node, name) for name in ("start", "end"))
        order = order[slice(0 if start is None else start.i, rank if end is None else end.i)]
        node.proto = _without(node.proto, "start", "end")
    (result,) = node.outputs
    whole = mover._noted(f"{result.name}[sizes]", "INT64", (rank,), False, None)
    mover.graph.write(node, [whole])
    mover.insert("Gather", [whole, mover.constant(order)], result, axis=0)
    return True


def _move_pad(mover: TransposeMover, move: _Move) -> bool:
    rank, node = len(move.perm), move.node
    order = [*inverse(move.perm), *[i + rank for i in inverse(move.perm)]]
    if mover.facts.opset < _PAD_WITH_INPUTS:
        found = attribute(node, "pads")
        if found is None or len(found.ints) != 2 * rank:
            return False
        set_attribute(node, "pads", [found.ints[i] for i in order])
    else:
        pads = mover.ints(node.inputs[1])
        if pads is None or len(pads) != 2 * rank:
            raise UnsureError
        mover.set_input(node, 1, mover.constant([pads[i] for i in order]))
    return _move_simple(mover, move)


def _move_reduction(mover: TransposeMover, move: _Move) -> bool:
    node = move.node
    found = attribute(node, "keepdims")
    keeps = found is None or found.i != 0
    reads_axes = mover.facts.opset >= _INPUT_OF_AXES.get(node.op_type, _REDUCTION_WITH_INPUT)
    axes = mover._axes(node)
    if reads_axes and (axes is None or not axes):
        if len(node.inputs) > 1 and node.inputs[1].name and axes is None:
            return False
        noop = attribute(node, "noop_with_empty_axes")
        keeps = keeps or (noop is not None and noop.i != 0)
        axes = None
    order = move.perm if keeps else ()
    if axes is not None:
        normal = _normalized(axes, len(move.perm))
        if normal is None:
            return False
        new = sorted({move.perm[axis] for axis in normal})
        mover.set_axes(node, new)
        order = move.perm if keeps else move.squeezed(new)
    mover.transpose_input(node, 0, inverse(move.perm))
    mover.transpose_outputs(node, order)
    return True


def _move_arg(mover: TransposeMover, move: _Move) -> bool:
    axis, keeps = move.axis(0), attribute(move.node, "keepdims")
    if axis is None:
        return False
    set_attribute(move.node, "axis", move.perm[axis])
    mover.transpose_input(move.node, 0, inverse(move.perm))
    is_kept = keeps is None or keeps.i != 0
    mover.transpose_outputs(move.node, move.perm if is_kept else move.squeezed([move.perm[axis]]))
    return True


def _move_squeeze(mover: TransposeMover, move: _Move) -> bool:
    axes = mover._axes(move.node)
    normal = None if axes is None else _normalized(axes, len(move.perm))
    if normal is None:
        return False
    new = sorted({move.perm[axis] for axis in normal})
    mover.set_axes(move.node, new)
    mover.transpose_input(move.node, 0, inverse(move.perm))
    mover.transpose_outputs(move.node, move.squeezed(new))
    return True


def _move_unsqueeze(mover: TransposeMover, move: _Move) -> bool:
    axes = mover._axes(move.node)
    normal = None if axes is None else _normalized(axes, len(move.perm) + len(axes))
    if normal is None:
        return False
    mover._move_over_unsqueeze(move, normal)
    return True


def _move_slice(mover: TransposeMover, move: _Move) -> bool:
    node, axes = move.node, None
    if mover.facts.opset < _SLICE_WITH_INPUTS:
        given, starts = attribute(node, "axes"), attribute(node, "starts")
        axes = tuple(given.ints) if given is not None else tuple(range(0 if starts is None else len(starts.ints)))
    elif len(node.inputs) > 3 and node.inputs[3].name:
        axes = mover.ints(node.inputs[3])
    else:
        shape = mover.facts.shape(node.inputs[1].known)
        axes = tuple(range(shape[0])) if is_static(shape) and len(shape) == 1 else None
    normal = None if axes is None else _normalized(axes, len(move.perm))
    if normal is None:
        return False
    new = [move.perm[axis] for axis in normal]
    if mover.facts.opset < _SLICE_WITH_INPUTS:
        set_attribute(node, "axes", new)
    else:
        mover.set_input(node, 3, mover.constant(new, node.inputs[1]))
    return _move_simple(mover, move)


def _move_tile(mover: TransposeMover, move: _Move) -> bool:
    repeats = mover.ints(move.node.inputs[1])
    if repeats is None:
        raise UnsureError
    mover.set_input(move.node, 1, mover.constant([repeats[i] for i in inverse(move.perm)]))
    return _move_simple(mover, move)


def _move_transpose(mover: TransposeMover, move: _Move) -> bool:
    second = permutation_of(move.node)
    if len(second) != len(move.perm):
        return False
    mover.merge(move, second)
    return True


def _move_reshape(mover: TransposeMover, move: _Move) -> bool:
    """A Reshape is a Transpose if it moves dimensions of size 1."""
    before = mover.facts.shape(move.node.inputs[0].known)
    after = _reshaped(mover, move.node, before)
    if after is None or before is None or len(after) != len(before):
        return False
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
    mover.merge(move, tuple(order))
    return True


def _reshaped(mover: TransposeMover, node: Node, before: Shape | None) -> Sequence[int] | None:
    """Returns the sizes that a Reshape makes of static ones; None if they are not known."""
    if any(each.op_type == RESHAPED_GEMM for each in (*node.producers, *node.readers)):
        return None  # it makes a matrix, or is made of one
    if not is_static(before):
        return None
    if len(node.inputs) < 2:
        shape = mover.facts.shape(node.outputs[0].known)
        return shape if is_static(shape) else None
    asked, keeps = mover.ints(node.inputs[1]), attribute(node, "allowzero")
    if asked is None or len(asked) != len(before):
        return None
    if keeps is None or keeps.i == 0:
        asked = tuple([before[i] if size == 0 else size for i, size in enumerate(asked)])
    known, whole = int(np.prod([size for size in asked if size != -1])), int(np.prod(before))
    if asked.count(-1) > 1 or (known != whole and -1 not in asked) or (-1 in asked and (not known or whole % known)):
        return None
    return [whole // known if size == -1 else size for size in asked]


def _stay(mover: TransposeMover, move: _Move) -> bool:
    """No Transpose is moved over the node, but ONNX Runtime expects it as it computes costs."""
    return False


def _all_inputs(mover: TransposeMover, node: Node) -> Sequence[int]:
    return range(len(node.inputs))


def _first_input(mover: TransposeMover, node: Node) -> Sequence[int]:
    return (0,)


def _non_scalars(mover: TransposeMover, node: Node) -> Sequence[int]:
    return [i for i, value in enumerate(node.inputs) if mover.facts.shape(value.known) != ()]


_Mover: TypeAlias = Callable[[TransposeMover, _Move], bool]


class _Row(NamedTuple):
    """How Transposes are moved over an operator. `inputs`: which inputs are transposed with it."""

    move: _Mover
    inputs: Callable[[TransposeMover, Node], Sequence[int]] = _first_input
    transposes_outputs: bool = True


_SIMPLE: Final = (
    "Cast Elu Exp Gelu Identity LeakyRelu Log Reciprocal Relu Sigmoid Sqrt Tanh Abs Not Ceil Floor Neg Erf HardSigmoid "
    "Round IsInf IsNaN Selu Shrink Sign Softplus Softsign ThresholdedRelu Celu HardSwish Sin Cos Tan Sinh Cosh Asin "
    "Acos Atan Asinh Acosh Atanh"
)
_OF_SOME_VERSIONS: Final = frozenset({"Elu", "Gelu"})
_BROADCAST: Final = (
    "Add Max Min Mul Sub Div And Or Xor Mod PRelu BitShift Equal Greater Less GreaterOrEqual LessOrEqual Mean Sum Pow "
    "Where"
)
_REDUCTIONS: Final = (
    "ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare ReduceL1 ReduceL2"
)
_ROWS: Final = {
    **dict.fromkeys(_SIMPLE.split(), _Row(_move_simple, _all_inputs)),
    **dict.fromkeys(_BROADCAST.split(), _Row(_move_broadcast, _non_scalars)),
    **dict.fromkeys(_REDUCTIONS.split(), _Row(_move_reduction)),
    **dict.fromkeys(("Softmax", "Hardmax", "LogSoftmax"), _Row(_move_softmax)),
    **dict.fromkeys(("ArgMin", "ArgMax"), _Row(_move_arg)),
    **dict.fromkeys(("MaxPool", "Resize"), _Row(_stay)),
    **dict.fromkeys(("Clip", "CastLike"), _Row(_move_simple)),
    "Concat": _Row(_with_axis(None), _all_inputs),
    "Split": _Row(_with_axis(0)),
    "Pad": _Row(_move_pad),
    "Squeeze": _Row(_move_squeeze),
    "Unsqueeze": _Row(_move_unsqueeze),
    "Slice": _Row(_move_slice),
    "Tile": _Row(_move_tile),
    "Transpose": _Row(_move_transpose, transposes_outputs=False),
    "Reshape": _Row(_move_reshape, transposes_outputs=False),
    "Shape": _Row(_move_shape, transposes_outputs=False),
}


def _is_quantized(node: Node) -> bool:
    """True for an operator with quantized elements."""
    name = node.proto.op_type
    return "QuantizeLinear" in name or "DequantizeLinear" in name or (bool(domain_of(node.proto)) and "QLinear" in name)


def _normalized(axes: Sequence[int], rank: int) -> Axes | None:
    """Returns axes counted from the first dimension; None if one is given twice, or beyond the rank."""
    found = tuple([axis + rank if axis < 0 else axis for axis in axes])
    return found if len(set(found)) == len(found) and all(0 <= axis < rank for axis in found) else None


def _completed(axes: Sequence[int], rank: int) -> Sequence[int]:
    """Returns the axes and, in front of them, those of `rank` that are missing, which are of size 1."""
    return [*[i for i in range(rank) if i not in axes], *axes]


def set_attribute(node: Node, name: str, value: int | Sequence[int]) -> None:
    """Sets an attribute of a node, whose proto is replaced."""
    node.proto = _without(node.proto, name)
    node.proto.attribute.append(helper.make_attribute(name, value))


def _without(proto: onnx.NodeProto, *names: str) -> onnx.NodeProto:
    """Returns a copy of a node without these attributes."""
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    refill(made.attribute, [each for each in proto.attribute if each.name not in names])
    return made
