"""Symbolic execution of a compiled graph: checks that each dispatch reads the right tensors.

A read is right if every byte was last written by the dispatch that computes the tensor, or computes the part of it that
is placed there. The fault of a wrong read is passed on to all values computed from it.
"""

from __future__ import annotations

import bisect
import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from dmlsplit.graphs.program import BufferView, CompiledGraph, Dispatch, StandIn, Tensor, Unmodelled, Wrong
from dmlsplit.graphs.regions import at_first_index, overlap
from dmlsplit.rules.graph_faults import Fault, FaultKind
from dmlsplit.system.records import record

MOST_COMPARISONS: Final = 100
"""The most comparisons of regions, on average per dispatch; beyond it whether the graph is correct is unknown."""
NEVER_NEGATIVE: Final = {"ABS", "EXP", "HARD_SIGMOID", "RELU", "SIGMOID", "SOFTPLUS"}
"""Operators whose results are not negative, so that an ABS or RELU of them changes nothing."""
KEEPS_POSITIVE: Final = {"ADD", "COPY", "DIVIDE", "IDENTITY", "JOIN", "MAX", "MIN", "MULTIPLY", "SLICE1", "SPLIT"}
"""Operators whose results are not negative where their inputs are not."""

_NONE: Final[frozenset[int]] = frozenset()

T = TypeVar("T")

Correctness: TypeAlias = Literal["right", "wrong", "unknown"]
"""Whether a graph output equals the result of running the operators one by one."""


class Extent(enum.Enum):
    """Which elements of a tensor are wrong."""

    ALL = "all, or all that matter"
    BEHIND_FIRST = "all but those of the first index"
    SOME = "it is not known which"


@record
class WrongOutput:
    """Why an output is wrong."""

    fault: Fault
    negatives_only: bool = False
    """Only negative numbers are wrong."""
    signs_only: bool = False
    """Only signs are wrong; the absolute values are right."""
    extent: Extent = Extent.ALL

    @property
    def mild(self) -> bool:
        """True if only negative values or only signs are wrong, so that an operator that reads the tensor may still
        compute the right result."""
        return self.negatives_only or self.signs_only

    def or_milder(self, other: WrongOutput | None) -> WrongOutput:
        """Returns the fault of a whole tensor if one part of it has this fault and another part has `other`.

        That is this fault; without its limit to negatives or to signs, unless `other` has the same limit. If `other` is
        None, the other part is right, and this fault is returned unchanged.
        """
        alike = other is None or (self.negatives_only, self.signs_only) == (other.negatives_only, other.signs_only)
        return self if alike else replace(self, negatives_only=False, signs_only=False)

    def beside(self, other: WrongOutput | None) -> WrongOutput:
        """Returns this fault with an extent that also covers the elements that `other`, another fault of the same
        tensor, makes wrong; this fault unchanged if `other` is None."""
        if other is None or other.extent is self.extent:
            return self
        either = Extent.ALL in (self.extent, other.extent)
        return replace(self, extent=Extent.ALL if either else Extent.SOME)


def _undoes(dispatch: Dispatch, fault: WrongOutput) -> bool:
    """True if a dispatch that reads a tensor with this mild fault still computes right values: a ReLU of wrong
    negatives, an absolute value or square of wrong signs."""
    if fault.negatives_only:
        return dispatch.name == "RELU"
    squares = dispatch.name in ("MULTIPLY", "DIVIDE") and dispatch.reads[0] == dispatch.reads[-1]
    return dispatch.name == "ABS" or squares


@dataclass(slots=True, eq=False, repr=False)
class _Write:
    time: int
    dispatch: Dispatch
    copied: Tensor | None = None
    """The copied tensor, in whole or in part."""
    fault: WrongOutput | None = None

    @property
    def region(self) -> BufferView:
        return self.dispatch.writes

    @property
    def tensor(self) -> Tensor:
        return self.dispatch.output


class _Piece(NamedTuple):
    """The writes of one tensor that a read needs."""

    needed: list[tuple[_Write, BufferView]]
    """Each write with the part of its region that belongs to the tensor."""
    alone: bool
    """No other dispatch has written the tensor being read."""
    larger: Set[int]
    """The times of writes that cover more than the tensor."""


class _Shelf:
    """Writes up to one length, keyed by the blocks of that length that each touches (at most two)."""

    def __init__(self) -> None:
        self._places: list[int] = []
        """Sorted."""
        self._writes: dict[int, list[_Write]] = {}

    def put(self, place: int, write: _Write) -> None:
        if place not in self._writes:
            bisect.insort(self._places, place)
            self._writes[place] = []
        self._writes[place].append(write)

    def since(self, first: int, last: int, time: int) -> Iterator[_Write]:
        """Yields the writes later than `time` that touch blocks `first` to `last`; a write may be yielded twice."""
        for i in range(bisect.bisect_left(self._places, first), bisect.bisect_right(self._places, last)):
            for write in reversed(self._writes[self._places[i]]):
                if write.time <= time:
                    break
                yield write


@dataclass(slots=True, eq=False, repr=False)
class _Memory:
    """The writes so far, by buffer and length."""

    shelves: dict[str, dict[int, _Shelf]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(_Shelf)))
    """One shelf for each bit length of a write."""
    of_tensor: dict[Tensor, list[_Write]] = field(default_factory=lambda: defaultdict(list))
    latest: dict[str, int] = field(default_factory=dict)
    """The time of the last write to each buffer."""

    def write(self, write: _Write) -> None:
        region = write.region
        self.latest[region.buffer] = write.time
        bits = (region.end - region.offset).bit_length()
        for place in range(region.offset >> bits, (region.end - 1 >> bits) + 1):
            self.shelves[region.buffer][bits].put(place, write)
        self.of_tensor[write.tensor].append(write)

    def is_unchanged(self, tensor: Tensor) -> bool:
        """True if one dispatch wrote a tensor, without a fault, and none has written to its buffer since."""
        writes = self.of_tensor.get(tensor, ())
        return len(writes) == 1 and writes[0].fault is None and self.latest[writes[0].region.buffer] == writes[0].time

    def since(self, region: BufferView, time: int) -> list[_Write]:
        """Returns the writes later than `time` that may overlap a region, oldest first."""
        if self.latest.get(region.buffer, time) <= time:
            return []
        found: dict[int, _Write] = {}
        for bits, shelf in self.shelves[region.buffer].items():
            writes = shelf.since(region.offset >> bits, region.end - 1 >> bits, time)
            found.update((write.time, write) for write in writes)
        return [found[time] for time in sorted(found)]


class Execution:
    """Executes one plan; `faults` holds the fault of each graph output, or None if it is right.

    With `passes_on` a dispatch that reads wrong values produces wrong values. Without it each dispatch is assumed to
    read right values, and `arisen` maps every fault to a tensor that it makes wrong.
    """

    def __init__(self, plan: CompiledGraph, *, passes_on: bool = True) -> None:
        self.plan = plan
        self.memory = _Memory()
        self.arisen: dict[WrongOutput, Tensor] = {}
        self.same: dict[Tensor, Tensor] = {}
        """Maps a copy to its original."""
        self.never_negative: set[Tensor] = set()
        self.rectified: dict[Tensor, Tensor] = {}
        """Maps the result of a Relu to its input."""
        self.stand_ins = {stand_in.whole: stand_in for stand_in in plan.stand_ins}
        self.budget = MOST_COMPARISONS * (len(plan.dispatches) + 100)
        self.lost = self._by_tensor((output, (output, place, k)) for output, place, k in plan.lost)
        self.displaced = self._by_tensor((each.output, each) for each in plan.stand_ins if not each.part.first)
        self.of_whole: dict[Tensor, list[StandIn]] = defaultdict(list)
        """The stand-ins that each Split's whole input is."""
        for stand_in in plan.stand_ins:
            self.of_whole[stand_in.whole].append(stand_in)
        self.joined: dict[tuple[int, str], list[tuple[StandIn, _Write]]] = defaultdict(list)
        """The writes so far of the stand-ins for parts of each Split, by the buffer that is written."""
        for time, dispatch in enumerate(plan.dispatches):
            faults = list(self._faults(dispatch))
            self._note_value(dispatch)
            fault = None
            for each in faults:
                if passes_on:
                    fault = each.beside(fault)
                else:
                    self.arisen.setdefault(each, dispatch.output)
            copied = self._value(dispatch.reads[0][0]) if dispatch.copies else None
            write = _Write(time, dispatch, copied, fault)
            self.memory.write(write)
            for stand_in in self.of_whole.get(write.tensor, ()):
                self.joined[stand_in.part.split, write.region.buffer].append((stand_in, write))
        self.faults = [self._held(home) for home in plan.homes]
        if not passes_on:
            for home, held in zip(plan.homes, self.faults, strict=True):
                if held is not None:
                    self.arisen.setdefault(held, home)

    def _by_tensor(self, outputs: Iterable[tuple[Tensor, T]]) -> Mapping[Tensor, Sequence[T]]:
        """Maps each Join output in the pairs, and every tensor that contains it, to the values paired with it."""
        found: dict[Tensor, list[T]] = defaultdict(list)
        for output, said in outputs:
            for tensor in (output, *output.outer()):
                self._spend()
                found[tensor].append(said)
        return found

    def _faults(self, dispatch: Dispatch) -> Iterator[WrongOutput]:
        """Yields the faults of a dispatch's output: its own, then those of its inputs. Raises Unmodelled if what the
        dispatch computes or reads is not known."""
        if dispatch.unseen:
            raise Unmodelled(dispatch.unseen)
        if dispatch.constant:
            return
        wrong = dispatch.wrong
        if wrong is not None and (not wrong.instead or not self._are_equal(wrong)):
            extent = Extent.BEHIND_FIRST if wrong.behind_first else Extent.ALL
            yield WrongOutput(replace(wrong.fault, node=dispatch.node), extent=extent)
        for tensor, region in dispatch.reads:
            found = self._read(tensor, region)
            if found is not None and found.mild and not dispatch.copies:
                undone = _undoes(dispatch, found)
                found = None if undone else replace(found, negatives_only=False, signs_only=False)
            if found is not None:
                alike = dispatch.by_element and region.sizes == dispatch.writes.sizes
                yield found if alike or found.extent is Extent.ALL else replace(found, extent=Extent.SOME)

    def _are_equal(self, wrong: Wrong) -> bool:
        """True if a wrong dispatch still computes the right values: each tensor that it reads has the value of the
        tensor that it should read, or the products are equal, as x * relu(x) equals relu(x) * relu(x)."""
        pairs = [(self._value(one), self._value(other)) for one, other in wrong.instead]
        differing = [(one, other) for one, other in pairs if one is not other]
        if wrong.fault.kind is not FaultKind.PRODUCT or len(differing) != 1:
            return not differing
        ((one, other),) = differing
        return self.rectified.get(one) is other and any(one is each for each, same in pairs if each is same)

    def _held(self, home: Tensor) -> WrongOutput | None:
        assert home.region is not None
        return self._read(home, home.region)

    def _value(self, tensor: Tensor) -> Tensor:
        """Returns the first tensor known to have the same value as this one, possibly the tensor itself."""
        parts = self.plan.parts.get(tensor)
        if parts is not None and len(parts) == 1 and parts[0].sizes == tensor.sizes:
            tensor = parts[0]
        return self.same.get(tensor, tensor)

    def _note_value(self, dispatch: Dispatch) -> None:
        """Records in `same`, `rectified` and `never_negative` whether a dispatch's output equals an input, is an
        input's ReLU, or is never negative."""
        values = [self._value(tensor) for tensor, _ in dispatch.reads]
        output, name = dispatch.output, dispatch.name
        positive = [self._never_negative(value) for value in values]
        whole = len(values) == 1 and dispatch.reads[0][1].sizes == values[0].sizes
        unchanged = dispatch.copies or (name in ("RELU", "ABS", "LEAKY_RELU") and positive[0])
        if (unchanged and whole) or (name in ("MAX", "MIN") and values[0] is values[1]):
            self.same[output] = values[0]
        squares = name == "MULTIPLY" and any(
            one is other or self.rectified.get(one) is other for one, other in (values, reversed(values))
        )
        keeps = (name in KEEPS_POSITIVE and all(positive)) or (name == "MAX" and any(positive))
        if name == "RELU" and whole:
            self.rectified[output] = values[0]
        if name in NEVER_NEGATIVE or dispatch.never_negative or squares or keeps:
            self.never_negative.add(output)

    def _never_negative(self, tensor: Tensor) -> bool:
        if tensor not in self.plan.parts:
            self._spend()
            return self._value(tensor) in self.never_negative
        return all(self._value(source) in self.never_negative for source, _ in self._sources(tensor))

    def _unchanged(self, write: _Write, earlier: _Write) -> bool:
        """True if the later write stores, where both overlap, the value that the earlier one stored, so that the bytes
        stay as they are."""
        if write.dispatch.rectifies and self._never_negative(earlier.tensor):
            return True
        value = self._value(write.tensor)
        if value is self._value(earlier.tensor):
            return write.region.offset == earlier.region.offset and write.region.steps == earlier.region.steps
        return value in earlier.tensor.outer() and value.region is not None and value.region.begins_as(write.region)

    def _sources(self, tensor: Tensor) -> Sequence[tuple[Tensor, BufferView | None]]:
        """Returns the tensors whose writes make up `tensor`. If a Split's whole input stands in for a part, it is
        paired with the region of the part; all others are paired with None."""
        if tensor not in self.plan.parts:
            self._spend()
            return ((tensor, None),)
        found: list[tuple[Tensor, BufferView | None]] = []
        stack: list[tuple[Tensor, BufferView | None]] = [(tensor, None)]
        while stack:
            self._spend()
            last, place = stack.pop()
            parts = self.plan.parts.get(last)
            if parts is None:
                found.append((last, place))
            else:
                for part in parts:
                    larger = self.stand_ins.get(part)
                    stack.append((part, larger.place if larger else place))
        return found

    def _read(self, tensor: Tensor, region: BufferView) -> WrongOutput | None:
        """Returns the fault of a read: what is wrong with the bytes of `region`, which should hold the tensor or a part
        of it; None if they are right. Raises Unmodelled if that is not known."""
        if tensor.producer is None:
            return None
        if self.lost or self.displaced:
            fault = self._never_written(tensor, region) or self._displaced(tensor, region)
            if fault is not None:
                return fault
        if tensor not in self.plan.parts and self.memory.is_unchanged(tensor):
            self._spend()
            return None
        mild: WrongOutput | None = None
        pieces = []
        for piece in self._pieces(tensor, region):
            for write, _ in piece.needed:
                fault = self._reaching(write, region, alone=piece.alone)
                if fault is not None:
                    mild = fault.or_milder(mild)
                    if not mild.mild:
                        return mild
            pieces.append(piece)
        fault = self._overwritten(tensor, region, pieces)
        return fault.or_milder(mild) if fault is not None else mild

    def _never_written(self, tensor: Tensor, region: BufferView) -> WrongOutput | None:
        """Returns the fault if the region overlaps the place of a Join's input that is never written, else None."""
        for output, place, k in self.lost.get(tensor, ()):
            if self._overlap(place, region):
                number = output.producer.number if output.producer else None
                return WrongOutput(Fault(FaultKind.REPEATED, number, numbers=(k,)))
        return None

    def _pieces(self, tensor: Tensor, region: BufferView) -> Iterator[_Piece]:
        """Yields, for each tensor that `tensor` consists of, its writes that overlap the region. Raises Unmodelled for
        a tensor that was not written yet."""
        sources = self._sources(tensor)
        for source, place in sources:
            found = self.memory.of_tensor.get(source)
            if not found:
                raise Unmodelled("a tensor is read before it is written")
            alone = len(sources) == len(found) == 1
            needed = [(w, place or w.region) for w in found if alone or self._overlap(place or w.region, region)]
            yield _Piece(needed, alone, {w.time for w in found} if place else _NONE)

    def _overwritten(self, tensor: Tensor, region: BufferView, pieces: Sequence[_Piece]) -> WrongOutput | None:
        """Returns the fault if a later write changed what `pieces` wrote of the tensor; a mild fault only if there is
        no other; None if no later write did."""
        written = [each for piece in pieces for each in piece.needed]
        if not written:
            return None
        mild: WrongOutput | None = None
        times = {write.time for write, _ in written}
        later = self.memory.since(region, min(times))
        if not later:
            return None
        mine = times.difference(*[piece.larger for piece in pieces])
        for write in later:
            self._spend()
            if write.time in mine or not overlap(write.region, region):
                continue
            for earlier, own in written:
                if earlier.time >= write.time or not self._overlap(own, write.region):
                    continue
                if self._unchanged(write, earlier):
                    continue
                fault = self._written_over(tensor, write, earlier)
                mild = fault.or_milder(mild)
                if not mild.mild:
                    return mild
        return mild

    def _written_over(self, tensor: Tensor, write: _Write, earlier: _Write) -> WrongOutput:
        """Returns the fault of a tensor, for a write that changes bytes that an earlier write stored."""
        stand_in = self.stand_ins.get(write.tensor)
        if stand_in is not None:
            if write.copied is not None and write.copied is earlier.copied:
                raise Unmodelled("the tensor that was joined instead of a part may overlap adjacent parts")
            return WrongOutput(Fault(FaultKind.WHOLE_OVER_OTHERS, stand_in.part.split))
        lost = tensor.original.name
        fault = Fault(FaultKind.OVERWRITTEN, write.dispatch.node, (lost,), operator=write.dispatch.name)
        return WrongOutput(fault, write.dispatch.rectifies, write.dispatch.turns_signs)

    def _reaching(self, write: _Write, region: BufferView, *, alone: bool) -> WrongOutput | None:
        """Returns the fault that a read of `region` inherits from a write, None if the region has right values;
        `alone`: no other write made the tensor. Raises Unmodelled if that is not known."""
        fault = write.fault
        if fault is None or fault.extent is Extent.ALL:
            return fault
        if fault.extent is Extent.SOME:
            if region != write.region:
                raise Unmodelled("a part of a partially wrong tensor may be right")
            return fault
        first, rest = at_first_index(write.region)
        if not self._overlap(rest, region):
            return None
        if not self._overlap(first, region):
            return replace(fault, extent=Extent.ALL) if alone else replace(fault, extent=Extent.SOME)
        of_region = at_first_index(region)
        apart = alone and not self._overlap(of_region[0], rest) and not self._overlap(of_region[1], first)
        return fault if apart else replace(fault, extent=Extent.SOME)

    def _displaced(self, tensor: Tensor, region: BufferView) -> WrongOutput | None:
        """Returns the fault if, within the region, a Join copied a Split's whole input in place of a part that begins
        elsewhere; None otherwise. Raises Unmodelled if the region may hold the right values."""
        for stand_in in self.displaced.get(tensor, ()):
            if not self._overlap(stand_in.place, region):
                continue
            split = stand_in.part.split
            for other, write in self.joined.get((split, stand_in.place.buffer), ()):
                if other is not stand_in and self._overlap(write.region, stand_in.place):
                    raise Unmodelled(
                        "the tensor that is joined instead of two parts of a Split may contain the right one"
                    )
            return WrongOutput(Fault(FaultKind.WHOLE_FIRST, split))
        return None

    def _overlap(self, one: BufferView, other: BufferView) -> bool:
        self._spend()
        return overlap(one, other)

    def _spend(self) -> None:
        self.budget -= 1
        if self.budget < 0:
            raise Unmodelled("too many tensors share memory to be modelled")
