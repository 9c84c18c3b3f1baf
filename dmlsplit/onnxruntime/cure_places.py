"""Where a cure may be applied: places in a graph, found around the node at fault, and conditions on a place.

A place function yields places, the nearest first; a condition is True for a place at which the cure may be applied.
dmlsplit.onnxruntime.cures says which cure has which.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.onnxruntime.operator_traits import OPERATORS

T = TypeVar("T")

_NEAR: Final = 16
"""The most edges between the node at fault and the Split or Concat to change."""
_MOST_NEAR: Final = 256
"""The most nodes that are visited in this search."""

GUARDED: Final = frozenset(name for name, row in OPERATORS.items() if row.absorbs_at_outputs)
"""Operators into which optimization fuses an activation although their output is also a graph output."""

MOVABLE: Final = frozenset(name for name, row in OPERATORS.items() if row.movable)
"""Elementwise operators of one tensor that may be moved over a Split or Concat."""


class Around(ABC, Generic[T]):
    """A graph as cures see it: nodes are indices, T identifies tensors.

    Implemented for fused graphs, for the model's graphs in a session, and for graphs that are being mended.
    """

    exits: AbstractSet[T]
    """The outputs of the graph."""

    @abstractmethod
    def op(self, node: int | None) -> str:
        """Returns the ONNX operator of a node; "" for an operator outside the default domain, or if `node` is None."""

    @abstractmethod
    def inputs_of(self, node: int) -> Sequence[T]:
        """Returns the tensors that a node reads."""

    @abstractmethod
    def outputs_of(self, node: int) -> Sequence[T]:
        """Returns the tensors that a node computes, without omitted ones."""

    @abstractmethod
    def producer(self, tensor: T) -> int | None:
        """Returns the node that computes a tensor; None if no node does."""

    @abstractmethod
    def readers_of(self, tensor: T) -> Sequence[int]:
        """Returns the nodes that read a tensor."""

    @abstractmethod
    def shape(self, tensor: T) -> Shape | None:
        """Returns the shape of a tensor; None if it is not known."""

    def reads_unchanged(self, node: int, tensor: T) -> bool:
        """True if the node also reads the tensor in the model. False if this graph left out or fused a node that is
        between the tensor and the node in the model."""
        return True

    @cached_property
    def leading(self) -> frozenset[int]:
        """The nodes on which an output of the graph depends."""
        todo = [node for tensor in self.exits if (node := self.producer(tensor)) is not None]
        found = set(todo)
        while todo:
            before = {node for each in self.inputs_of(todo.pop()) if (node := self.producer(each)) is not None}
            todo += before - found
            found |= before
        return frozenset(found)

    def above(self, node: int) -> Iterator[int]:
        """Yields the nodes on which a node's inputs depend, the nearest first: at most _MOST_NEAR, and none that is
        more than _NEAR edges away."""
        return islice(self._above(node), _MOST_NEAR)

    def _above(self, node: int) -> Iterator[int]:
        todo, seen = [node], {node}
        for _ in range(_NEAR):
            following = []
            for each in todo:
                for tensor in self.inputs_of(each):
                    before = self.producer(tensor)
                    if before is not None and before not in seen:
                        seen.add(before)
                        following.append(before)
                        yield before
            todo = following

    def below(self, node: int) -> Iterator[int]:
        """Yields a node and the nodes that depend on it, the nearest first: at most _MOST_NEAR, and none that is _NEAR
        edges away or more."""
        return islice(self._below(node), _MOST_NEAR)

    def _below(self, node: int) -> Iterator[int]:
        todo, seen = [node], {node}
        for _ in range(_NEAR):
            yield from todo
            following = dict.fromkeys(
                reader
                for each in todo
                for tensor in self.outputs_of(each)
                for reader in islice(self.readers_of(tensor), _MOST_NEAR)
            )
            todo = [each for each in islice(following, _MOST_NEAR) if each not in seen]
            seen.update(todo)


class CurePlace(NamedTuple):
    """A place in a graph where a cure may be applied: the node to change and, for cures that need them, a tensor and a
    node that reads it; None and -1 for other cures."""

    node: int
    tensor: Any = None
    reader: int = -1


Places: TypeAlias = Callable[[Around[Any], int, Any], Iterator[CurePlace]]
"""A function that yields the places at which a cure may be applied against a fault of a node, the nearest first. Its
arguments are the graph, the node, and the tensor whose elements the fault loses (None if it loses none); the last one
is named `_` in functions that do not use it."""


def producers(operator: str) -> Places:
    """Returns a function that yields a place for each node with operator `operator` on which a node depends, the
    nearest first."""
    return lambda around, node, lost: (CurePlace(each) for each in around.above(node) if around.op(each) == operator)


def operands(operator: str) -> Places:
    """Returns a function that yields a place for each input of a node that a node with operator `operator` computes,
    directly or through Identity nodes: the node, that input, and the node again as its reader."""

    def found(around: Around[Any], node: int, _: Any) -> Iterator[CurePlace]:
        for tensor in around.inputs_of(node):
            if around.op(around.producer(_behind_identities(around, tensor))) == operator:
                yield CurePlace(node, tensor, node)

    return found


def _takes(around: Around[Any], node: int, tensor: Any) -> bool:
    """True if a node reads a tensor, directly or through Identity nodes."""
    return any(_behind_identities(around, each) == tensor for each in around.inputs_of(node))


def _behind_identities(around: Around[Any], tensor: Any) -> Any:
    """Returns the tensor at the start of the chain of Identity nodes that ends in this one, since a session removes
    these nodes; the tensor itself if no Identity computes it."""
    producer = around.producer(tensor)
    while producer is not None and around.op(producer) == "Identity":
        tensor = around.inputs_of(producer)[0]
        producer = around.producer(tensor)
    return tensor


def taking(around: Around[Any], node: int, lost: Any) -> Iterator[CurePlace]:
    """Yields a place for each Concat that the node depends on: first each that reads the tensor `lost`, directly or
    through Identity nodes, then the others, the nearest first."""
    concats = [each for each in around.above(node) if around.op(each) == "Concat"]
    taking = [each for each in concats if _takes(around, each, lost)]
    yield from (CurePlace(each) for each in dict.fromkeys((*taking, *concats)))


def itself(around: Around[Any], node: int, _: Any) -> Iterator[CurePlace]:
    """Yields one place: the node."""
    yield CurePlace(node)


def joined(around: Around[Any], node: int, _: Any) -> Iterator[CurePlace]:
    """Yields a place for each Concat whose output the node reads: the Concat, that output, and the node."""
    for concat in around.above(node):
        if around.op(concat) == "Concat":
            for output in around.outputs_of(concat)[:1]:
                if output in around.inputs_of(node):
                    yield CurePlace(concat, output, node)


def joined_from(around: Around[Any], node: int, lost: Any) -> Iterator[CurePlace]:
    """Yields a place for each Concat whose output the node reads: the Concat, that output, and the node. If a Concat
    that the node depends on reads the tensor `lost`, other Concats are left out."""
    elsewhere = {place.node for place in taking(around, node, lost) if _takes(around, place.node, lost)}
    for place in joined(around, node, lost):
        if not elsewhere or place.node in elsewhere:
            yield place


def joined_parts(around: Around[Any], node: int, _: Any) -> Iterator[CurePlace]:
    """Yields a place for each output of a Split or Slice that a Concat reads: the Split or Slice, that output, and the
    Concat. The Split or Slice is the node or depends on it."""
    for cut in around.below(node):
        if around.op(cut) in ("Split", "Slice"):
            for part in around.outputs_of(cut):
                yield from (
                    CurePlace(cut, part, reader) for reader in around.readers_of(part) if around.op(reader) == "Concat"
                )


def used_parts(around: Around[Any], node: int, _: Any) -> Iterator[CurePlace]:
    """Yields a place for each Split or Slice with only one output that is used, by one node only and not as an output
    of the graph: the Split or Slice, that output, and its reader. The Split or Slice is the node, depends on it, or
    computes one of its inputs."""
    before = [each for tensor in around.inputs_of(node) if (each := around.producer(tensor)) is not None]
    for cut in dict.fromkeys((*around.below(node), *before)):
        if around.op(cut) not in ("Split", "Slice"):
            continue
        used = [each for each in around.outputs_of(cut) if each in around.exits or around.readers_of(each)]
        if len(used) == 1 and used[0] not in around.exits and len(around.readers_of(used[0])) == 1:
            yield CurePlace(cut, used[0], around.readers_of(used[0])[0])


def other_uses(around: Around[Any], node: int, lost: Any) -> Iterator[CurePlace]:
    """Yields a place for each output of the graph that another node, except a Concat, computes directly from the
    tensor `lost`: the node, that output, and its producer. Yields nothing if `lost` is None, or if each of the node's
    outputs has a reader or is not an output of the graph."""
    ends = [tensor for tensor in around.outputs_of(node) if tensor in around.exits and not around.readers_of(tensor)]
    for reader in around.readers_of(lost) if ends and lost is not None else ():
        if reader != node and around.op(reader) != "Concat":
            yield from (CurePlace(node, each, reader) for each in around.outputs_of(reader) if each in around.exits)


def leaving(around: Around[Any], node: int, _: Any) -> Iterator[CurePlace]:
    """Yields a place, the node and the tensor, for each output of the node that is an output of the graph and also has
    a reader."""
    for tensor in around.outputs_of(node):
        if tensor in around.exits and around.readers_of(tensor):
            yield CurePlace(node, tensor)


def empty_outputs(around: Around[T], node: int) -> list[T]:
    """Returns the outputs of the node that are outputs of the graph and have no elements."""
    return [each for each in around.outputs_of(node) if each in around.exits and 0 in (around.shape(each) or ())]


def has_sized_outputs(around: Around[Any], place: CurePlace) -> bool:
    found = empty_outputs(around, place.node)
    return bool(found) and all(is_static(around.shape(tensor)) for tensor in found)


def may_be_compressed(around: Around[Any], place: CurePlace) -> bool:
    return bool(empty_outputs(around, place.node)) and around.op(place.node) != "Compress"


def anywhere(around: Around[Any], place: CurePlace) -> bool:
    return True


def is_repeated(around: Around[Any], place: CurePlace) -> bool:
    inputs = around.inputs_of(place.node)
    return around.op(place.node) == "Concat" and len(set(inputs)) < len(inputs)


def is_doubled(around: Around[Any], place: CurePlace) -> bool:
    return is_repeated(around, place) and len(set(around.inputs_of(place.node))) == 1


def moves_over_join(around: Around[Any], place: CurePlace) -> bool:
    unguarded = not any(_is_guarded(around, tensor) for tensor in around.inputs_of(place.node))
    return unguarded and place.tensor not in around.exits and _is_movable(around, place)


def moves_over_cut(around: Around[Any], place: CurePlace) -> bool:
    whole = around.inputs_of(place.node)[0]
    return not _is_guarded(around, whole) and _is_movable(around, place)


def moves_behind_cut(around: Around[Any], place: CurePlace) -> bool:
    """True if the node of the place is a Split and the node that computes its input may be moved behind it: one of
    MOVABLE whose output is read only by the Split and is not an output of the graph."""
    whole = around.inputs_of(place.node)[0]
    before = around.producer(whole)
    if before is None or around.op(place.node) != "Split" or around.op(before) not in MOVABLE:
        return False
    return whole not in around.exits and list(around.readers_of(whole)) == [place.node]


def _is_movable(around: Around[Any], place: CurePlace) -> bool:
    """True if the reader of the place's tensor may be moved over the Split or Concat that computes it: the reader is
    one of MOVABLE, also reads this tensor in the model, and is its only reader."""
    alone = list(around.readers_of(place.tensor)) == [place.reader]
    return alone and around.op(place.reader) in MOVABLE and around.reads_unchanged(place.reader, place.tensor)


def _is_guarded(around: Around[Any], tensor: Any) -> bool:
    return tensor in around.exits and around.op(around.producer(tensor)) in GUARDED


def is_dead(around: Around[Any], place: CurePlace) -> bool:
    return place.node not in around.leading
