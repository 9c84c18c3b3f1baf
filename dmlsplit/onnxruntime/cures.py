"""The table of cures: for each fault of a fused graph the changes of the ONNX model that cure it.

Which cure for this finding? A finding has a `fault`:

    for cure in cures_of(finding.fault.kind, directml="1.15.4"):     # the cheapest first
        cure.name, cure.sentence(), cure.bit_exact, cure.adds_output

Cures of faults that were observed with ONNX Runtime were executed by its DirectML execution provider, at optimization
levels 0 and 99, and gave the right result with every DirectML for which they are listed; the others are right by the
model of CompileGraph. Two rules hold for all cures: they leave no node whose output nothing uses (FaultKind.DEAD), and
they neither make an output of a node in GUARDED a graph output nor put an activation behind such a graph output
(FaultKind.UNWRITTEN).

`check` applies the rows to a fused graph, and advises the first that is possible; `legalize` applies them to the model,
and dmlsplit.mending.cures makes the change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.onnxruntime.operator_traits import OPERATORS
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.targets.release_names import version_key
from dmlsplit.targets.target import ReleaseLike, RuntimeLike, find_target_release

T = TypeVar("T")

_NEAR: Final = 16
"""The most edges between the node at fault and the Split or Concat to change."""
_MOST_NEAR: Final = 256
"""The most nodes that are visited in this search."""
_PLACES: Final = 4
"""The most places at which one cure is tried, the nearest first."""


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


class Place(NamedTuple):
    """A place in a graph where a cure may be applied: the node to change and, for cures that need them, a tensor and a
    node that reads it; None and -1 for other cures."""

    node: int
    tensor: Any = None
    reader: int = -1


Places: TypeAlias = Callable[[Around[Any], int, Any], Iterator[Place]]
"""A function that yields the places at which a cure may be applied against a fault of a node, the nearest first. Its
arguments are the graph, the node, and the tensor whose elements the fault loses (None if it loses none); the last one
is named `_` in functions that do not use it."""


def _producers(operator: str) -> Places:
    """Returns a function that yields a place for each node with operator `operator` on which a node depends, the
    nearest first."""
    return lambda around, node, lost: (Place(each) for each in around.above(node) if around.op(each) == operator)


def _operands(operator: str) -> Places:
    """Returns a function that yields a place for each input of a node that a node with operator `operator` computes,
    directly or through Identity nodes: the node, that input, and the node again as its reader."""

    def found(around: Around[Any], node: int, _: Any) -> Iterator[Place]:
        for tensor in around.inputs_of(node):
            if around.op(around.producer(_behind_identities(around, tensor))) == operator:
                yield Place(node, tensor, node)

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


def _taking(around: Around[Any], node: int, lost: Any) -> Iterator[Place]:
    """Yields a place for each Concat that the node depends on: first each that reads the tensor `lost`, directly or
    through Identity nodes, then the others, the nearest first."""
    concats = [each for each in around.above(node) if around.op(each) == "Concat"]
    taking = [each for each in concats if _takes(around, each, lost)]
    yield from (Place(each) for each in dict.fromkeys((*taking, *concats)))


def _itself(around: Around[Any], node: int, _: Any) -> Iterator[Place]:
    """Yields one place: the node."""
    yield Place(node)


def _joined(around: Around[Any], node: int, _: Any) -> Iterator[Place]:
    """Yields a place for each Concat whose output the node reads: the Concat, that output, and the node."""
    for concat in around.above(node):
        if around.op(concat) == "Concat":
            for output in around.outputs_of(concat)[:1]:
                if output in around.inputs_of(node):
                    yield Place(concat, output, node)


def _joined_from(around: Around[Any], node: int, lost: Any) -> Iterator[Place]:
    """Yields a place for each Concat whose output the node reads: the Concat, that output, and the node. If a Concat
    that the node depends on reads the tensor `lost`, other Concats are left out."""
    elsewhere = {place.node for place in _taking(around, node, lost) if _takes(around, place.node, lost)}
    for place in _joined(around, node, lost):
        if not elsewhere or place.node in elsewhere:
            yield place


def _joined_parts(around: Around[Any], node: int, _: Any) -> Iterator[Place]:
    """Yields a place for each output of a Split or Slice that a Concat reads: the Split or Slice, that output, and the
    Concat. The Split or Slice is the node or depends on it."""
    for cut in around.below(node):
        if around.op(cut) in ("Split", "Slice"):
            for part in around.outputs_of(cut):
                yield from (
                    Place(cut, part, reader) for reader in around.readers_of(part) if around.op(reader) == "Concat"
                )


def _used_parts(around: Around[Any], node: int, _: Any) -> Iterator[Place]:
    """Yields a place for each Split or Slice with only one output that is used, by one node only and not as an output
    of the graph: the Split or Slice, that output, and its reader. The Split or Slice is the node, depends on it, or
    computes one of its inputs."""
    before = [each for tensor in around.inputs_of(node) if (each := around.producer(tensor)) is not None]
    for cut in dict.fromkeys((*around.below(node), *before)):
        if around.op(cut) not in ("Split", "Slice"):
            continue
        used = [each for each in around.outputs_of(cut) if each in around.exits or around.readers_of(each)]
        if len(used) == 1 and used[0] not in around.exits and len(around.readers_of(used[0])) == 1:
            yield Place(cut, used[0], around.readers_of(used[0])[0])


def _other_uses(around: Around[Any], node: int, lost: Any) -> Iterator[Place]:
    """Yields a place for each output of the graph that another node, except a Concat, computes directly from the
    tensor `lost`: the node, that output, and its producer. Yields nothing if `lost` is None, or if each of the node's
    outputs has a reader or is not an output of the graph."""
    ends = [tensor for tensor in around.outputs_of(node) if tensor in around.exits and not around.readers_of(tensor)]
    for reader in around.readers_of(lost) if ends and lost is not None else ():
        if reader != node and around.op(reader) != "Concat":
            yield from (Place(node, each, reader) for each in around.outputs_of(reader) if each in around.exits)


def _leaving(around: Around[Any], node: int, _: Any) -> Iterator[Place]:
    """Yields a place, the node and the tensor, for each output of the node that is an output of the graph and also has
    a reader."""
    for tensor in around.outputs_of(node):
        if tensor in around.exits and around.readers_of(tensor):
            yield Place(node, tensor)


def empty_outputs(around: Around[T], node: int) -> list[T]:
    """Returns the outputs of the node that are outputs of the graph and have no elements."""
    return [each for each in around.outputs_of(node) if each in around.exits and 0 in (around.shape(each) or ())]


def _has_sized_outputs(around: Around[Any], place: Place) -> bool:
    found = empty_outputs(around, place.node)
    return bool(found) and all(is_static(around.shape(tensor)) for tensor in found)


def _may_be_compressed(around: Around[Any], place: Place) -> bool:
    return bool(empty_outputs(around, place.node)) and around.op(place.node) != "Compress"


def _anywhere(around: Around[Any], place: Place) -> bool:
    return True


def _is_repeated(around: Around[Any], place: Place) -> bool:
    inputs = around.inputs_of(place.node)
    return around.op(place.node) == "Concat" and len(set(inputs)) < len(inputs)


def _is_doubled(around: Around[Any], place: Place) -> bool:
    return _is_repeated(around, place) and len(set(around.inputs_of(place.node))) == 1


def _moves_over_join(around: Around[Any], place: Place) -> bool:
    unguarded = not any(_is_guarded(around, tensor) for tensor in around.inputs_of(place.node))
    return unguarded and place.tensor not in around.exits and _is_movable(around, place)


def _moves_over_cut(around: Around[Any], place: Place) -> bool:
    whole = around.inputs_of(place.node)[0]
    return not _is_guarded(around, whole) and _is_movable(around, place)


def _moves_behind_cut(around: Around[Any], place: Place) -> bool:
    """True if the node of the place is a Split and the node that computes its input may be moved behind it: one of
    MOVABLE whose output is read only by the Split and is not an output of the graph."""
    whole = around.inputs_of(place.node)[0]
    before = around.producer(whole)
    if before is None or around.op(place.node) != "Split" or around.op(before) not in MOVABLE:
        return False
    return whole not in around.exits and list(around.readers_of(whole)) == [place.node]


def _is_movable(around: Around[Any], place: Place) -> bool:
    """True if the reader of the place's tensor may be moved over the Split or Concat that computes it: the reader is
    one of MOVABLE, also reads this tensor in the model, and is its only reader."""
    alone = list(around.readers_of(place.tensor)) == [place.reader]
    return alone and around.op(place.reader) in MOVABLE and around.reads_unchanged(place.reader, place.tensor)


def _is_guarded(around: Around[Any], tensor: Any) -> bool:
    return tensor in around.exits and around.op(around.producer(tensor)) in GUARDED


def _is_dead(around: Around[Any], place: Place) -> bool:
    return place.node not in around.leading


@dataclass(frozen=True, slots=True)
class Cure:
    """One change of a model. `change` describes it as an imperative; v, y, x, g, {a} and {b} are those of the
    FaultKind.

    `first_wrong` is the first DirectML for which it does not help, "" if it helps for all.
    """

    name: str
    fault: FaultKind
    change: str
    bit_exact: bool = True
    """True if the model's results stay the same bit for bit."""
    adds_output: bool = False
    """True if the model gets a further output."""
    renames: bool = False
    """True if outputs of the model get other names."""
    first_wrong: str = ""
    condition: str = ""
    """The condition for applying it, "" if there is none."""
    places: Places | None = None
    """Finds the places at which it may be applied; None for a change of the calls of Run, not of the model."""
    applies: Callable[[Around[Any], Place], bool] = _anywhere
    """True if it can be applied at a place."""

    @property
    def is_kept(self) -> bool:
        """True if a model may be written back with this cure: its results and outputs stay the same."""
        return self.places is not None and self.bit_exact and not self.adds_output and not self.renames

    def sentence(self, a: str = "a", b: str = "b") -> str:
        """Returns the change as an imperative sentence. `a` and `b` are the names of the two operands of the product at
        fault; a sentence that does not mention one ignores its name."""
        return self.change.format(a=a, b=b)

    def place(self, around: Around[Any], node: int, way: int, lost: Any = None) -> Place | None:
        """Returns the place number `way` (0 is the nearest) at which to apply the cure against a fault of this node;
        None if there is no such place, if the cure does not apply there, or if it changes only how the model is run.

        `lost` is the tensor whose elements the fault loses, None if it loses none.
        """
        place = None if self.places is None else next(islice(self.places(around, node, lost), way, None), None)
        return place if place is not None and self.applies(around, place) else None


WHOLE_FAULTS: Final = (
    FaultKind.WHOLE_TOO_LARGE,
    FaultKind.WHOLE_TOO_NARROW,
    FaultKind.WHOLE_OVER_OTHERS,
    FaultKind.WHOLE_FIRST,
)

CURES: Final = (
    Cure(
        "two-slices",
        FaultKind.GATE,
        "replace the Split with two Slices that compute {a} and {b}",
        places=_producers("Split"),
    ),
    Cure(
        "one-slice",
        FaultKind.GATE,
        "compute {a}, or {b}, with a Slice in addition to the Split",
        places=_operands("Split"),
    ),
    Cure(
        "reshape-part",
        FaultKind.GATE,
        "insert a Reshape to (0, ..., 0) after {a}, or {b}",
        places=_operands("Split"),
    ),
    Cure("max-part", FaultKind.GATE, "insert Max(t, t) after {a}, or {b}", places=_operands("Split")),
    Cure("clip-sigmoid", FaultKind.GATE, "insert Clip(0, 1) after the Sigmoid", places=_operands("Sigmoid")),
    Cure(
        "sigmoid-output",
        FaultKind.GATE,
        "make the Sigmoid's output a graph output as well",
        adds_output=True,
        places=_operands("Sigmoid"),
    ),
    Cure(
        "tanh-form",
        FaultKind.GATE,
        "compute the Sigmoid as 0.5 + 0.5 * tanh(0.5 * {b})",
        bit_exact=False,
        places=_operands("Sigmoid"),
    ),
    *(
        cure
        for fault in (FaultKind.PRODUCT, FaultKind.PRODUCT_CRASHES)
        for cure in (
            Cure("reshape-factor", fault, "insert a Reshape to (0, ..., 0) after y * x", places=_operands("Mul")),
            Cure("max-factor", fault, "insert Max(t, t) before the Sigmoid, or after y * x", places=_operands("Mul")),
            Cure("clip-sigmoid", fault, "insert Clip(0, 1) after the Sigmoid", places=_operands("Sigmoid")),
            Cure(
                "regroup",
                fault,
                "compute y * (x * sigmoid(x)) instead",
                bit_exact=False,
                places=_operands("Sigmoid"),
            ),
            Cure(
                "factor-output", fault, "make y * x a graph output as well", adds_output=True, places=_operands("Mul")
            ),
        )
    ),
    Cure(
        "max-branch",
        FaultKind.REPEATED,
        "insert Max(v, v) before all but one of the Concat's inputs",
        places=_itself,
        applies=_is_repeated,
    ),
    Cure(
        "tile",
        FaultKind.REPEATED,
        "replace the Concat with a Tile",
        condition="only for Concat(v, v)",
        places=_itself,
        applies=_is_doubled,
    ),
    Cure(
        "operator-first",
        FaultKind.OVERWRITTEN,
        "move the elementwise operator before the Concat: Concat(g(v), g(y))",
        condition="g is in MOVABLE; v is not a graph output of a node into which g is fused",
        places=_joined_from,
        applies=_moves_over_join,
    ),
    Cure("max-input", FaultKind.OVERWRITTEN, "insert Max(v, v) before the Concat", places=_taking),
    Cure(
        "concat-output",
        FaultKind.OVERWRITTEN,
        "make the Concat's output a graph output as well",
        adds_output=True,
        places=_joined,
    ),
    Cure(
        "second-reader",
        FaultKind.OVERWRITTEN,
        "add a second reader of the Concat (ReduceSum)",
        adds_output=True,
        places=_joined,
    ),
    Cure("cut-and-join", FaultKind.OVERWRITTEN, "insert two Slices and a Concat after the Concat", places=_joined),
    Cure(
        "rename",
        FaultKind.OVERWRITTEN,
        "rename the graph outputs so that v's other use comes before g in byte order",
        renames=True,
        condition="v's other use and g are graph outputs, and nothing reads g",
        places=_other_uses,
    ),
    Cure(
        "operator-first",
        FaultKind.REFUSED,
        "move the elementwise operator before the Split",
        condition="the operator is in MOVABLE; only one part of the Split is used",
        places=_used_parts,
        applies=_moves_over_cut,
    ),
    Cure("gather", FaultKind.REFUSED, "compute the part with a Gather instead of the Split", places=_used_parts),
    Cure(
        "negative-pad",
        FaultKind.REFUSED,
        "compute the part with a Pad of negative pads instead of the Split",
        places=_used_parts,
    ),
    Cure("max-part", FaultKind.REFUSED, "insert Max(t, t) after the part", places=_used_parts),
    Cure(
        "split-first",
        FaultKind.REFUSED,
        "split the operand of the node that computes the Split's input",
        condition="that node is in MOVABLE, and only the Split reads it",
        places=_used_parts,
        applies=_moves_behind_cut,
    ),
    Cure(
        "part-output",
        FaultKind.REFUSED,
        "make the Split's input, or one of its parts, a graph output as well",
        adds_output=True,
        places=_used_parts,
    ),
    Cure(
        "slice",
        FaultKind.REFUSED,
        "compute the part with a Slice instead of the Split",
        first_wrong="1.13.1",
        places=_used_parts,
    ),
    *(
        Cure("max-part", fault, "insert Max(t, t) between the part and the Concat", places=_joined_parts)
        for fault in WHOLE_FAULTS
    ),
    Cure("max-between", FaultKind.UNWRITTEN, "insert Max(t, t) between the node and the activation", places=_leaving),
    Cure(
        "empty-constant",
        FaultKind.EMPTY_OUTPUT,
        "replace the output, which has no elements, with a constant",
        condition="all sizes of the output are known",
        places=_itself,
        applies=_has_sized_outputs,
    ),
    Cure(
        "compress",
        FaultKind.EMPTY_OUTPUT,
        "insert a Compress with an empty condition after the output, which the CPU executes",
        places=_itself,
        applies=_may_be_compressed,
    ),
    Cure(
        "ask-alone",
        FaultKind.EMPTY_OUTPUT,
        "request only the other outputs from Run",
    ),
    *(
        Cure("leave-out", fault, "remove the part from the Split, and replace it with a constant", places=_itself)
        for fault in (FaultKind.EMPTY_PART, FaultKind.EMPTY_SECOND_PART)
    ),
    Cure("ask-alone", FaultKind.MAY_BE_EMPTY, "request that output in a separate Run"),
    Cure("remove-dead", FaultKind.DEAD, "remove what nothing uses", places=_itself, applies=_is_dead),
)
"""The cures of all faults, those of a fault with the cheapest first."""

UNSPLIT: Final = "set ep.dml.disable_graph_fusion to 1"
"""The setting that cures the faults of compiled graphs without a change of the model: operators are compiled one by
one."""

CURED_BY_UNSPLIT: Final = frozenset(FaultKind) - {
    FaultKind.UNWRITTEN,
    FaultKind.DEAD,
    FaultKind.EMPTY_PART,
    FaultKind.EMPTY_SECOND_PART,
    FaultKind.EMPTY_OUTPUT,
    FaultKind.MAY_BE_EMPTY,
}
"""The faults that the setting cures, except DEAD, for which removing the nodes costs nothing."""

GUARDED: Final = frozenset(name for name, row in OPERATORS.items() if row.absorbs_at_outputs)
"""Operators into which optimization fuses an activation although their output is also a graph output."""

MOVABLE: Final = frozenset(name for name, row in OPERATORS.items() if row.movable)
"""Elementwise operators of one tensor that may be moved over a Split or Concat."""


def cures_of(fault: FaultKind, directml: ReleaseLike = None, *, onnxruntime: RuntimeLike = None) -> tuple[Cure, ...]:
    """Returns the cures of a fault that help with a DirectML release, or with the one that a version of ONNX Runtime
    ships, the cheapest first. Without either, the cures that help with every release.

    Raises ValueError for an unknown release or version, or for both at once.
    """
    asked = directml is not None or onnxruntime is not None
    release = find_target_release(directml, onnxruntime) if asked else None

    def helps(cure: Cure) -> bool:
        if release is None or not cure.first_wrong:
            return not cure.first_wrong
        return version_key(release.directml) < version_key(cure.first_wrong)

    return tuple([cure for cure in CURES if cure.fault is fault and helps(cure)])


@lru_cache(maxsize=1024)  # called for each fault of a graph
def ways(fault: FaultKind, directml: ReleaseLike) -> Sequence[tuple[Cure, range]]:
    """Returns the cures of a fault that can be written into a model, each with the numbers of the places at which it is
    applied. First come all cures at the nearest place, the cheapest first, then all at the next place, and so on; last,
    all at the nearest two, three and more places together, since a tensor that is in one Concat may be in several."""
    return tuple(_at_places([cure for cure in cures_of(fault, directml) if cure.is_kept]))


@lru_cache(maxsize=1024)
def all_ways(fault: FaultKind, directml: ReleaseLike) -> Sequence[tuple[Cure, range]]:
    """Returns the result of `ways`, followed by the cures that change the model's outputs, their names or rounding, in
    the same form; cures that change only how the model is run are left out."""
    cures = cures_of(fault, directml)
    return (*ways(fault, directml), *_at_places([each for each in cures if each.places and not each.is_kept]))


def _at_places(cures: Sequence[Cure]) -> list[tuple[Cure, range]]:
    single = [range(way, way + 1) for way in range(_PLACES)]
    together = [range(count) for count in range(2, _PLACES + 1)]
    return [(cure, places) for places in (*single, *together) for cure in cures]


def advised(fault: FaultKind, around: Around[Any], node: int, directml: ReleaseLike, lost: Any = None) -> Cure | None:
    """Returns the first cure of a fault, in the order of `all_ways`, that applies around the node; else the first that
    only changes how the model is run; None if there is neither. `lost` is the tensor whose elements the fault loses,
    None if it loses none."""
    found = (cure for cure, at in all_ways(fault, directml) if cure.place(around, node, at[0], lost) is not None)
    return next(found, None) or of_run(fault)


def of_run(fault: FaultKind) -> Cure | None:
    """Returns the first cure of a fault that changes only how the model is run; None if there is none."""
    return next((cure for cure in CURES if cure.fault is fault and cure.places is None), None)
