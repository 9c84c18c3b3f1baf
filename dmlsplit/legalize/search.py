"""Searches for a rewriting: tries attempts in order and returns the first that the target accepts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

from dmlsplit.descriptors.call_types import DescT
from dmlsplit.descriptors.descs import OperatorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.descriptors.enums import HResult, OperatorType, TensorDataType
from dmlsplit.descriptors.geometry import ROLES, Geometry, members_of
from dmlsplit.descriptors.layout import ELEMENT_BITS
from dmlsplit.descriptors.location import Location
from dmlsplit.legalize._build import BufferSlice, build, regions
from dmlsplit.legalize._cut import MOST_OPERATORS, TOO_MANY_OPERATORS, Box, Cutter, inputs_cut
from dmlsplit.legalize._loops import loops_of
from dmlsplit.legalize._obstacles import Obstacle, Obstacles, indivisible, refused, too_many_dimensions
from dmlsplit.legalize._temporary import TemporaryPacking
from dmlsplit.legalize.in_words import steps
from dmlsplit.legalize.regions import Region
from dmlsplit.legalize.result import Legalization
from dmlsplit.rules import RULES
from dmlsplit.targets.target import Target
from dmlsplit.verdicts.validation import evaluate, with_faults

FEW_OPERATORS: Final = 32
"""With more operators than this, a temporary buffer is tried, and used if that needs fewer operators."""


UNSIGNED: Final = (TensorDataType.UINT64, TensorDataType.UINT32, TensorDataType.UINT16, TensorDataType.UINT8)
"""The types used to move bits; all integer and float types of one width move the same bits."""


def legalized(desc: DescT, target: Target) -> Legalization[DescT]:
    """As `legalize`, for one target. Equal descriptors share a result: all calls of a function have the same nodes."""
    found: Legalization[DescT] = _kept(desc, target)
    return found


@lru_cache(maxsize=256)
def _kept(desc: Any, target: Target) -> Any:
    return rewritten(desc, target)


def rewritten(desc: DescT, target: Target) -> Legalization[DescT]:
    """Returns the same as `legalized`, without its cache."""
    report = evaluate(desc, target)
    invalid = None if report.ok else with_faults(desc, report)
    if invalid is not None:
        return Legalization(desc, False, invalid)
    if report.ok:
        members = members_of(desc)  # a Geometry takes longer
        inputs, outputs = members.roles.sides((members.whole,), members.parts)
        bound = [Region("input", i, 0, _total(tensor)) for i, tensor in enumerate(inputs)]
        bound += [Region("output", i, 0, _total(tensor)) for i, tensor in enumerate(outputs)]
        return Legalization(desc, True, report, (desc,), (tuple(range(members.part_count)),), (tuple(bound),))
    original = Geometry.of(desc)
    is_empty = all(part.is_empty for part in original.parts)
    found = OperatorSequence([]) if is_empty else Search(original, target).rewriting()
    if isinstance(found, Obstacles):
        reason = RULES["legalize/no-rewriting"].diagnostic(Location(), f"no rewriting for {target.name}: {found.words}")
        return Legalization(desc, False, replace(report, diagnostics=(*report.diagnostics, reason)))
    made = found.operators
    said = dict.fromkeys(d for accepted in made for d in accepted.report.diagnostics)  # each diagnostic once
    return Legalization(
        desc,
        True,
        Report(tuple(said), target.name, HResult.S_OK, original.kind.c_name),
        tuple([accepted.operator for accepted in made]),
        tuple([accepted.parts for accepted in made]),
        tuple([accepted.regions for accepted in made]),
        tuple(steps(original, [accepted.geometry for accepted in made], found.temporary_bytes)),
        found.temporary_bytes,
    )


def _total(tensor: TensorDesc | None) -> int:
    """Returns the bytes of a tensor of an operator without faults."""
    assert tensor is not None
    assert tensor.desc is not None
    return tensor.desc.total_tensor_size_in_bytes or 0


def movable_types(target: Target, kind: OperatorType, own: int) -> tuple[TensorDataType, ...]:
    """Returns the data types, accepted by a target for all tensors of an operator, that may move elements of type
    `own`.

    The first is `own` itself if accepted, else an accepted unsigned type of the same width, else the widest narrower
    unsigned type. All wider unsigned types follow, widest first: the caller must check that the size of each row is a
    multiple of such an element. Never empty, since every target accepts UINT32.
    """
    rows = target.support[kind]
    taken = frozenset.intersection(*[row.data_types for row in rows])
    bits = ELEMENT_BITS[own]
    same = [t for t in (TensorDataType(own), *UNSIGNED) if t in taken and ELEMENT_BITS[t] == bits]
    narrower = [t for t in UNSIGNED if t in taken and ELEMENT_BITS[t] < bits]
    wider = [t for t in UNSIGNED if t in taken and ELEMENT_BITS[t] > bits]
    return (*(same or narrower)[:1], *wider)


def dimension_counts(target: Target, kind: OperatorType) -> tuple[int, ...]:
    """Returns the numbers of dimensions that the target accepts for every tensor of the operator."""
    rows = target.support[kind]
    return tuple([n for n in rows[0].dimension_counts if all(n in row.dimension_counts for row in rows)])


class Accepted(NamedTuple):
    """An accepted operator: the target's report, the Region of each tensor, and the index of the original's part for
    each part."""

    operator: OperatorDesc
    geometry: Geometry
    report: Report
    regions: tuple[Region, ...]
    parts: tuple[int, ...]


class OperatorSequence(NamedTuple):
    """Operators to be dispatched in order, and the size of their temporary buffer."""

    operators: list[Accepted]
    temporary_bytes: int = 0


class Draft(NamedTuple):
    """A sequence of operators, not yet built: copies, a box to cut, copies; `operators` is their total number."""

    operators: int
    data_type: TensorDataType
    cutter: Cutter
    box: Box
    before: Sequence[Box]
    after: Sequence[Box]


class Search:
    """Searches for operators that move the elements of a valid, non-empty operator."""

    def __init__(self, original: Geometry, target: Target) -> None:
        self._kind = kind = original.kind
        self._target = target
        self._own_type = original.whole.data_type
        self._dimension_counts = dimension_counts(target, kind)
        self._data_types = movable_types(target, kind, self._own_type)
        roles = original.roles
        kept = [(i, part) for i, part in enumerate(original.parts) if not part.is_empty]
        self._operands = (
            BufferSlice.of(roles.whole_side, 0, original.whole),
            *[BufferSlice.of(roles.part_side, i, part) for i, part in kept],
        )
        self._own_loops = loops_of(original.whole, [part for _, part in kept], original.axis)
        self._loops = self._own_loops.folded()
        self._judged: dict[object, tuple[OperatorDesc, Geometry, Report] | Obstacle] = {}
        """Caches judgements: the operators of a rewriting into several mostly differ in their Regions only."""

    def rewriting(self) -> OperatorSequence | Obstacles:
        """Returns operators that the target accepts: one if possible, else several, else several with a temporary
        buffer; or the obstacles to each of these."""
        refusal = Obstacles([], [], [])
        for found in self._single_operators():
            if isinstance(found, Accepted):
                return OperatorSequence([found])
            refusal.one.append(found)
        for draft, obstacles in self._drafts(refusal):
            built = self._built(draft) if isinstance(draft, Draft) else draft
            if isinstance(built, OperatorSequence):
                return built
            obstacles.append(built)
        return refusal

    def _drafts(self, refusal: Obstacles) -> Iterator[tuple[Draft | Obstacle, list[Obstacle]]]:
        """Yields drafts as they are found, each with the list that its obstacles are added to; drafts of many operators
        come last."""
        boxes = [(t, box) for t in self._data_types if isinstance(box := self._elements(t), Box)]
        many: list[tuple[Draft, list[Obstacle]]] = []
        for obstacles, drafts in ((refusal.cut, self._cut_drafts(boxes)), (refusal.packed, self._packed_drafts(boxes))):
            for draft in drafts:
                if isinstance(draft, Draft) and draft.operators > FEW_OPERATORS:
                    many.append((draft, obstacles))
                else:
                    yield draft, obstacles
        yield from sorted(many, key=lambda item: item[0].operators)

    def _single_operators(self) -> Iterator[Accepted | Obstacle]:
        """Yields rewritings into one operator, smallest change first, or the obstacle to each."""
        for data_type in self._data_types:
            bits = ELEMENT_BITS[data_type]
            same = bits == ELEMENT_BITS[self._own_type]
            as_given = (self._own_loops if same else self._own_loops.bits_joined()).divided(bits)
            if as_given is not None:
                loops = as_given.without(len(as_given.sizes) - 1) if same else as_given
                yield self._accepted(Box(self._kind, loops, self._operands), data_type, own=same)
            as_few = self._elements(data_type)
            if not isinstance(as_few, Box):
                yield as_few
                continue
            yield self._accepted(as_few, data_type)
            more_inputs = inputs_cut(as_few, bits // 8) if self._kind is OperatorType.JOIN else None
            if more_inputs is not None:
                yield self._accepted(more_inputs, data_type)

    def _elements(self, data_type: TensorDataType) -> Box | Obstacle:
        """Returns the operator as the fewest possible loops, in elements of a data type; an Obstacle if runs of
        contiguous memory are not multiples of such an element."""
        loops = self._loops.divided(ELEMENT_BITS[data_type])
        if loops is None:
            return indivisible(self._own_type, ELEMENT_BITS[data_type])
        return Box(self._kind, loops.without(loops.sizes.index(min(loops.sizes))), self._operands)

    def _cut_drafts(self, boxes: Sequence[tuple[TensorDataType, Box]]) -> Iterator[Draft | Obstacle]:
        """Yields drafts of operators on sub-ranges of the buffers, the fewest operators first; then those with lead-in
        steps in a temporary buffer. Yields an Obstacle for a data type without a draft."""
        found = [self._draft(t, box, self._cutter(t)) for t, box in boxes]
        yield from sorted([draft for draft in found if isinstance(draft, Draft)], key=lambda draft: draft.operators)
        yield from [draft for draft in found if not isinstance(draft, Draft)]
        for data_type, box in boxes:
            yield self._draft(data_type, box, self._cutter(data_type, use_temporary=True))

    def _packed_drafts(self, boxes: Sequence[tuple[TensorDataType, Box]]) -> Iterator[Draft | Obstacle]:
        """Yields drafts with as many inputs packed as possible; then outputs; then both. Drafts that must also be cut
        come last."""
        for data_type, box in boxes:
            cutter = self._cutter(data_type)
            to_cut = []
            for with_outputs in (False, True):
                packing = TemporaryPacking(ELEMENT_BITS[data_type], self._dimension_counts)
                start = packing.outputs_packed(box) if with_outputs else box
                for made in chain([start] if packing.after else [], packing.inputs_packed(start)):
                    copies = tuple(packing.before), tuple(packing.after)
                    if cutter.obstacle(made.loops) is None:
                        yield self._draft(data_type, made, cutter, *copies)
                    else:
                        to_cut.append((made, copies))
                yield from packing.obstacles
            for made, copies in to_cut:
                yield self._draft(data_type, made, cutter, *copies)

    def _draft(
        self, data_type: TensorDataType, box: Box, cutter: Cutter, before: Sequence[Box] = (), after: Sequence[Box] = ()
    ) -> Draft | Obstacle:
        """Returns the draft that cuts a box into operators that the target accepts, between the copies `before` and
        `after`; an Obstacle if that is not possible."""
        operators = cutter.operators(box)
        if isinstance(operators, int):
            return Draft(len(before) + operators + len(after), data_type, cutter, box, before, after)
        return operators

    def _cutter(self, data_type: TensorDataType, *, use_temporary: bool = False) -> Cutter:
        return Cutter(self._kind, ELEMENT_BITS[data_type], self._dimension_counts, use_temporary=use_temporary)

    def _built(self, draft: Draft) -> OperatorSequence | Obstacle:
        """Returns the operators of a draft with the bytes of their temporary buffer; an Obstacle if there are too many,
        or if the target refuses one."""
        if draft.operators > MOST_OPERATORS:
            return TOO_MANY_OPERATORS
        made = []
        for box in (*draft.before, *draft.cutter.boxes(draft.box), *draft.after):
            built = self._accepted(box, draft.data_type)
            if not isinstance(built, Accepted):
                return built
            made.append(built)
        temporary = [region for built in made for region in built.regions if region.buffer == "temporary"]
        return OperatorSequence(made, max((region.offset + region.size for region in temporary), default=0))

    def _accepted(self, box: Box, data_type: TensorDataType, *, own: bool = False) -> Accepted | Obstacle:
        """Returns the operator of a box whose loops count elements of `data_type`; an Obstacle if the target refuses
        it. `own`: keeps the original's dimensions."""
        key = (box.kind, box.loops, data_type, own, tuple([operand.described for operand in box.operands]))
        if key not in self._judged:
            self._judged[key] = self._operator(box, data_type, own=own)
        found = self._judged[key]
        if isinstance(found, Obstacle):
            return found
        operator, geometry, report = found
        bound = regions(geometry, box.operands)
        return Accepted(operator, geometry, report, bound, _parts(self._kind, geometry, bound))

    def _operator(
        self, box: Box, data_type: TensorDataType, *, own: bool
    ) -> tuple[OperatorDesc, Geometry, Report] | Obstacle:
        ranked = box.loops.of_rank(self._dimension_counts)
        if ranked is None:
            return too_many_dimensions(len(box.loops.sizes), max(self._dimension_counts))
        operator = build(box.kind, ranked, data_type, box.operands, keep_strides=own and ranked == box.loops)
        if isinstance(operator, Obstacle):
            return operator
        report = evaluate(operator, self._target)
        if not report.ok:
            return refused(report.errors[0].path, report.errors[0].message)
        return operator, Geometry.of(operator), report


def _parts(kind: OperatorType, operator: Geometry, bound: Sequence[Region]) -> tuple[int, ...]:
    """Returns the numbers of the original's outputs that a split's operator writes, or of its inputs that a join's
    operator reads; -1 for others.

    `kind` is the original's: an operator of a join's rewriting may be a copy, which is a split.
    """
    side = ROLES[kind].part_side
    named = bound[: len(operator.inputs)] if side == "input" else bound[len(operator.inputs) :]
    return tuple([region.index if region.buffer == side else -1 for region in named])
