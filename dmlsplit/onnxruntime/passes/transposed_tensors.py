"""Transposed tensors of a graph: what reads or computes a tensor reads or computes it with permuted dimensions.

Source: onnx_transpose_optimization.cc of ONNX Runtime.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import onnx
from onnx import helper

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.formats.onnx.protobuf import refill
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.models.graph import Arranged, Graph, Node, Value, attribute

Axes: TypeAlias = tuple[int, ...]

_INPUT_OF_AXES: Final = {"Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13}
"""The first opset in which the axes are an input; for other reductions, 18."""
_REDUCTION_WITH_INPUT: Final = 18


class UnsureError(Exception):
    """It is not known which Transposes are moved in a graph."""


def permutation(node: Node | None, rank: int = 0) -> Axes:
    """Returns the permutation of a Transpose: its attribute, without one `rank` axes in reverse order; () for any other
    node, and if the attribute is not a permutation. ONNX Runtime moves only Transposes with the attribute."""
    if node is None or node.op_type != "Transpose":
        return ()
    perm = attribute(node, "perm")
    found = tuple(range(rank - 1, -1, -1)) if perm is None else tuple(perm.ints)
    return found if sorted(found) == list(range(len(found))) else ()


def inverse(perm: Axes) -> Axes:
    return tuple([perm.index(i) for i in range(len(perm))])


def normalized(axes: Sequence[int], rank: int) -> Axes | None:
    """Returns axes counted from the first dimension; None if one is given twice, or beyond the rank."""
    found = tuple([axis + rank if axis < 0 else axis for axis in axes])
    return found if len(set(found)) == len(found) and all(0 <= axis < rank for axis in found) else None


def set_attribute(node: Node, name: str, value: int | Sequence[int]) -> None:
    """Sets an attribute of a node, whose proto is replaced."""
    node.proto = without(node.proto, name)
    node.proto.attribute.append(helper.make_attribute(name, value))


def without(proto: onnx.NodeProto, *names: str) -> onnx.NodeProto:
    """Returns a copy of a node without these attributes."""
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    refill(made.attribute, [each for each in proto.attribute if each.name not in names])
    return made


def _completed(axes: Sequence[int], rank: int) -> Sequence[int]:
    """Returns the axes and, in front of them, those of `rank` that are missing, which are of size 1."""
    return [*[i for i in range(rank) if i not in axes], *axes]


def _divides_by_zero(shape: Sequence[int], perm: Axes) -> bool:
    """True if ONNX Runtime divides by 0 as it transposes a tensor without elements: it moves a single axis, and divides
    by the sizes around it. Source: transpose_helper.cc; observed up to 1.23.2."""
    kept = [axis for axis in perm if shape[axis] != 1]
    moved = _moved_axis(perm)
    if moved is None or kept == sorted(kept):  # a Reshape, or more than one axis
        return False
    first, last = moved
    outer, inner = min(first, last), max(first, last)
    return 0 in (*shape[:outer], shape[first], *shape[inner + 1 :])


def _moved_axis(perm: Axes) -> tuple[int, int] | None:
    """Returns from where to where a permutation moves an axis while the others keep their order; None if it moves more.
    Of two axes that change places the inner one moves."""
    first = next((i for i, axis in enumerate(perm) if axis != i), None)
    if first is None:
        return None
    last = perm.index(first)
    for source, target in ((perm[first], first), (first, last)):
        others = [axis for axis in perm if axis != source]
        if others == sorted(others) and perm[target] == source:
            return source, target
    return None


class Move(NamedTuple):
    """A move of a Transpose over the node behind it, which reads it at one of the inputs `indices`."""

    transpose: Node
    node: Node
    perm: Axes
    indices: Sequence[int]

    def axis(self, default: int | None) -> int | None:
        """Returns the node's axis as it is behind the Transpose; None if it has none or an invalid one."""
        found = attribute(self.node, "axis")
        axis = default if found is None else found.i
        normal = None if axis is None else normalized([axis], len(self.perm))
        return None if normal is None else normal[0]

    def squeezed(self, axes: Sequence[int]) -> Axes:
        """Returns the permutation of the dimensions that are left without `axes` of the tensor in front."""
        kept = [i for i in range(len(self.perm)) if i not in axes]
        return tuple([kept.index(i) for i in self.perm if i not in axes])


class TransposedTensors:
    """Changes which tensors the nodes of a graph read and compute, in place."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.moved: Node
        """The Transpose that is moved: nodes that are inserted stand for it."""
        self.newly_read: set[Value] = set()
        """The tensors that nodes were made to read."""
        self._made = 0
        self._called: set[str] = set()
        """The names that were given."""
        self._tokens = itertools.count()
        self._transposes: dict[tuple[Value, Axes], Node] = {}
        """The Transposes that others share, by what they read and their permutation: a tensor may have many readers."""

    # Names, constants, and tensors that are made.

    def _new_name(self, base: str) -> str:
        """Returns the name that ONNX Runtime makes of another one: that one, unless it is taken.

        Source: GenerateNodeArgName of graph.cc, whose numbers other passes count too.
        """
        name = base
        while name in self._called or name in self.graph.values:
            name = f"{base}_token_{next(self._tokens)}"
        self._called.add(name)
        return name

    def are_readers_known(self, value: Value) -> bool:
        """True if only nodes of this graph read a tensor."""
        return not value.is_output and not any(value in node.captured for node in value.readers)

    def is_local_constant(self, value: Value) -> bool:
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
        return self.noted(f"{data_type}{list(elements)}", data_type, array.shape, True, array)

    def arranged(self, value: Value, axes: Sequence[int | None]) -> Value:
        """Returns a new tensor with the elements of another one; dimension i is dimension axes[i] of that one, a new
        one of size 1 for None. It is a constant if that one is."""
        shape, is_constant = self.facts.shape(value.known), self.is_local_constant(value)
        arranged = Arranged(value.known, axes)
        made = arranged.of(shape)
        if shape is not None and made is None:
            raise UnsureError  # the model declares another rank than its nodes compute
        elements = self.facts.elements(value.name) if is_constant else None
        if elements is not None and elements.ndim:
            elements = elements.transpose(_completed([i for i in axes if i is not None], elements.ndim))
        if elements is not None:
            elements = elements.reshape([int(size or 0) for size in made or ()])
        data_type = self.facts.data_type(value.known_type)
        return self.noted(f"{value.name}{list(axes)}", data_type, made, is_constant, elements, arranged)

    def noted(
        self,
        content: str,
        data_type: str | None,
        shape: Shape | None,
        is_constant: bool,
        elements: Array | None,
        arranged: Arranged | None = None,
    ) -> Value:
        """Returns a new tensor. Tensors with equal names have equal content in all sessions of the graph."""
        self._made += 1
        name = f"{content}/{self._made}"
        self.facts.note(name, data_type, shape, is_constant, elements, arranged)
        if is_constant:
            self.graph.constants.add(name)
        return Value(name)

    # Changes of the graph.

    def insert(self, op_type: str, inputs: Sequence[Value], output: Value, **attributes: Any) -> Node:
        """Adds a node that computes `output` and stands for the Transpose that is moved, and returns it."""
        made = self.graph.insert(self.moved, op_type, inputs, output)
        self.newly_read.update(inputs)
        made.proto = helper.make_node(op_type, [], [], self._new_name(op_type), **attributes)
        if output.name not in self.graph.values:
            output.called = self._new_name(f"{made.proto.name}_out0")
        self.graph.write(made, [output])
        return made

    def set_input(self, node: Node, index: int, value: Value) -> None:
        inputs = [*node.inputs, *[Value("")] * (index + 1 - len(node.inputs))]
        inputs[index] = value
        self.graph.read(node, inputs)
        self.newly_read.add(value)

    def replace(self, readers: Sequence[Node], value: Value, other: Value) -> None:
        self.newly_read.add(other)
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
        if self.is_local_constant(value) and self.are_readers_known(value):
            self.set_input(node, index, self._transposed_constant(value, perm))
            return
        producer = value.producer
        found = permutation(producer)
        if producer is not None and found and len(found) == len(perm):
            source = producer.inputs[0]
            if found == inverse(perm):
                read = source
            else:
                read = self.arranged(value, perm)
                self.insert("Transpose", [source], read, perm=[found[i] for i in perm])
            self.set_input(node, index, read)
            self._remove_unread(producer)
            return
        same = self._transposes.get((value, perm))
        if same is None or same not in value.readers or permutation(same) != perm:
            same = next((each for each in value.readers if permutation(each) == perm), None)
            same = same or self.insert("Transpose", [value], self.arranged(value, perm), perm=perm)
            self._transposes[value, perm] = same
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
        if 0 in shape and _divides_by_zero(shape, perm):
            self.graph.moved_to_empty[self.moved] = value.name
        made = self.arranged(value, perm)
        self._undo(value, made, "Transpose", perm=inverse(perm))
        return made

    def _undo(self, value: Value, made: Value, op_type: str, **attributes: Any) -> None:
        """Makes all readers of a constant read a node that computes it of the changed constant."""
        others = list(value.readers)
        if others:
            shape = self.facts.shape(value.known) or ()
            same = self.noted(f"{value.name}=", self.facts.data_type(value.known_type), shape, False, None)
            self.insert(op_type, [made], same, **attributes)
            self.replace(others, value, same)

    def _unsqueeze_input(self, node: Node, index: int, count: int) -> None:
        """Makes a node read a tensor with `count` dimensions of size 1 in front of its own."""
        value, axes = node.inputs[index], tuple(range(count))
        rank = len(self.facts.shape(value.known) or ())
        added = [*[None] * count, *range(rank)]
        self.set_input(node, index, Value(""))
        if self.is_local_constant(value) and self.are_readers_known(value):
            made = self.arranged(value, added)
            self._undo(value, made, "Squeeze", axes=axes)
            self.set_input(node, index, made)
            return
        producer = value.producer
        if producer is not None and producer.op_type == "Squeeze" and self.axes(producer) == axes:
            self.set_input(node, index, producer.inputs[0])
            self._remove_unread(producer)
            return
        read = self.arranged(value, added)
        unsqueeze = self.insert("Unsqueeze", [value], read, axes=axes)
        perm = permutation(producer)
        if producer is not None and perm:
            self.move_over_unsqueeze(Move(producer, unsqueeze, perm, (0,)), axes)
        self.set_input(node, index, read)

    def move_over_unsqueeze(self, move: Move, axes: Sequence[int]) -> None:
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
        new = [self.arranged(value, inverse(perm)) if value.name else value for value in old]
        for value in new:
            value.called = self._new_name(node.proto.name) if value.name else ""
        self.graph.write(node, new)
        for before, behind in zip(new, old, strict=True):
            if behind.name:
                self.insert("Transpose", [before], behind, perm=perm)

    def normalize_ranks(self, node: Node, rank: int, indices: Sequence[int]) -> bool:
        """Gives all inputs this rank, and returns True; returns False, without a change, if one has a higher or an
        unknown rank."""
        shapes = [self.facts.shape(node.inputs[i].known) for i in indices]
        if any(shape is None or len(shape) > rank for shape in shapes):
            return False
        for i, shape in zip(indices, shapes, strict=True):
            assert shape is not None
            if len(shape) < rank:
                self._unsqueeze_input(node, i, rank - len(shape))
        return True

    def reads_axes(self, node: Node) -> bool:
        """True if the axes of a Squeeze, Unsqueeze or reduction are an input, False if they are an attribute."""
        return self.facts.opset >= _INPUT_OF_AXES.get(node.op_type, _REDUCTION_WITH_INPUT)

    def axes(self, node: Node) -> Axes | None:
        """Returns the axes of a Squeeze, Unsqueeze or reduction; None if it has none, or none that are constant."""
        if not self.reads_axes(node) or len(node.inputs) < 2:
            found = attribute(node, "axes")
            return None if found is None else tuple(found.ints)
        return self.ints(node.inputs[1])

    def set_axes(self, node: Node, axes: Sequence[int]) -> None:
        if not self.reads_axes(node):
            set_attribute(node, "axes", list(axes))
        else:
            self.set_input(node, 1, self.constant(axes))

    def replace_by_source(self, move: Move) -> None:
        """Removes a node that undoes the Transpose in front of it. Of the two tensors, one of the model remains."""
        source, result = move.transpose.inputs[0], move.node.outputs[0]
        producer = source.producer
        is_computed_anew = producer is not None and source.name not in self.graph.values
        if self.are_readers_known(result) and not is_computed_anew:
            self.replace(list(result.readers), result, source)
        elif producer is not None and self.are_readers_known(source):
            self.set_input(move.node, 0, Value(""))
            self.replace(list(source.readers), source, result)
            outputs = [result if each is source else each for each in producer.outputs]
            self.graph.write(move.node, [])
            self.graph.write(producer, outputs)
        else:
            self.graph.write(move.node, [])
            self.insert("Identity", [source], result)
        self.graph.remove(move.node)
        self._remove_unread(move.transpose)

    def merge(self, move: Move, second: Axes) -> None:
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
