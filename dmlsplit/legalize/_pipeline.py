"""The rewrites, in their order: each is tried, and what the target takes first is the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

from dmlsplit.descriptors import BufferTensorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc, operands
from dmlsplit.diagnostics import Diagnostic, Report
from dmlsplit.enums import HResult, OperatorType, TensorDataType
from dmlsplit.layout import ELEMENT_BITS
from dmlsplit.legalize._build import Operand, build, data_types, dimension_counts, regions
from dmlsplit.legalize._cut import MOST_OPERATORS, Box, Cutter, inputs_cut
from dmlsplit.legalize._loops import bits_joined, divided, folded, loops_of, of_rank, without
from dmlsplit.legalize._temporary import Stage
from dmlsplit.legalize._words import no_rewriting, steps
from dmlsplit.legalize.result import BufferKind, Legalization, Region
from dmlsplit.location import Location
from dmlsplit.rules import RULES
from dmlsplit.target import Target
from dmlsplit.validation import evaluate, faults, in_descriptor_order, operator_type

FEW_OPERATORS: Final = 32
"""More are worse than a temporary buffer, if that needs fewer."""


def rewritten(desc: OperatorDesc, target: Target) -> Legalization:
    """What `legalize` answers for one target."""
    kind = operator_type(desc)
    report = evaluate(desc, target)
    whole, parts = _tensors(desc)
    if report.ok:
        return _as_it_is(desc, report, kind, whole, parts)
    wrong = faults(desc)
    if wrong:
        known = {(d.rule, d.path) for d in report.diagnostics}
        hidden = [d for d in wrong if (d.rule, d.path) not in known]
        return Legalization.refused(desc, replace(report, diagnostics=in_descriptor_order(report.diagnostics, hidden)))
    task = Task(desc, kind, target, whole, parts)
    found = task.rewriting() if task.parts else Rewriting([])
    if found is None:
        words = no_rewriting(task.loops, target, kind, whole.data_type, exceeded=task.exceeded)
        reason = RULES["legalize/no-rewriting"].diagnostic(Location(), words)
        return Legalization.refused(desc, replace(report, diagnostics=(*report.diagnostics, reason)))
    return Legalization(
        desc,
        True,
        _report(kind, target, [built.report for built in found.operators]),
        tuple([built.operator for built in found.operators]),
        tuple([built.parts for built in found.operators]),
        tuple([built.regions for built in found.operators]),
        tuple(steps(desc, found.operators, found.temporary_bytes)),
        found.temporary_bytes,
    )


class Accepted(NamedTuple):
    """An operator, the target's report, the Region of each of its tensors, and which parts its parts are."""

    operator: OperatorDesc
    report: Report
    regions: tuple[Region, ...]
    parts: tuple[int, ...]


class Rewriting(NamedTuple):
    """Operators to be dispatched in order, and the size of their temporary buffer."""

    operators: list[Accepted]
    temporary_bytes: int = 0


class Plan(NamedTuple):
    """Several operators, not yet built: copies, a box to be cut, copies; `operators` is their number together."""

    operators: int
    data_type: TensorDataType
    cutter: Cutter
    box: Box
    before: tuple[Box, ...]
    after: tuple[Box, ...]


class Task:
    """An operator without faults that the target refuses, and what it is rewritten from."""

    def __init__(
        self,
        desc: OperatorDesc,
        kind: OperatorType,
        target: Target,
        whole: BufferTensorDesc,
        parts: Sequence[BufferTensorDesc],
    ) -> None:
        self.kind = kind
        self.judge = target
        self.own_type = whole.data_type
        self.parts = [(i, part) for i, part in enumerate(parts) if 0 not in (part.sizes or ())[: part.dimension_count]]
        self.dimension_counts = dimension_counts(target, kind)
        if not self.parts:
            return
        inner: BufferKind = "output" if kind is OperatorType.SPLIT else "input"
        outer: BufferKind = "input" if kind is OperatorType.SPLIT else "output"
        self.operands = (_operand(outer, 0, whole), *[_operand(inner, i, part) for i, part in self.parts])
        self._data_types = data_types(target, kind, whole.data_type)
        self.own_loops = loops_of(whole, [part for _, part in self.parts], desc.axis)
        self.loops = folded(self.own_loops)
        self.exceeded = False
        """Whether a rewriting into several operators was left because of how many they are."""
        self._judged: dict[object, tuple[OperatorDesc, Report] | None] = {}
        """Operators of a rewriting into several mostly differ by their Regions only."""

    def rewriting(self) -> Rewriting | None:
        """What the target takes: one operator, else several, else several with a temporary buffer."""
        single = next(self._single_operators(), None)
        if single is not None:
            return Rewriting([single])
        many = []
        for plan in self._plans():
            if plan.operators > FEW_OPERATORS:
                many.append(plan)
                continue
            rewriting = self._built(plan)
            if rewriting is not None:
                return rewriting
        by_number = sorted(many, key=lambda plan: plan.operators)
        return next((found for found in map(self._built, by_number) if found is not None), None)

    def _single_operators(self) -> Iterator[Accepted]:
        """Rewritings into one operator, the smallest change first."""
        for data_type in self._data_types:
            bits = ELEMENT_BITS[data_type]
            same = bits == ELEMENT_BITS[self.own_type]
            as_given = divided(self.own_loops if same else bits_joined(self.own_loops), bits)
            if as_given is not None:
                loops = without(as_given, len(as_given.sizes) - 1) if same else as_given
                yield from self._accepted(Box(self.kind, loops, self.operands), data_type, own=same)
            as_few = self._elements(data_type)
            if as_few is not None:
                yield from self._accepted(as_few, data_type)
                more_inputs = inputs_cut(as_few, bits // 8) if self.kind is OperatorType.JOIN else None
                if more_inputs is not None:
                    yield from self._accepted(more_inputs, data_type)

    def _elements(self, data_type: TensorDataType) -> Box | None:
        """The loops, as few as possible, in elements of a type; None where that type does not do."""
        loops = divided(self.loops, ELEMENT_BITS[data_type])
        if loops is None:
            return None
        return Box(self.kind, without(loops, loops.sizes.index(min(loops.sizes))), self.operands)

    def _plans(self) -> Iterator[Plan]:
        """Ways into several operators: without a temporary buffer, the fewest operators first; then with one."""
        boxes = [(t, box) for t, box in ((t, self._elements(t)) for t in self._data_types) if box is not None]
        plain = [plan for t, box in boxes for plan in self._cut(t, box, self._cutter(t))]
        yield from sorted(plain, key=lambda plan: plan.operators)
        for data_type, box in boxes:
            yield from self._cut(data_type, box, self._cutter(data_type, use_temporary=True))
        for data_type, box in boxes:
            yield from self._staged(data_type, box)

    def _staged(self, data_type: TensorDataType, box: Box) -> Iterator[Plan]:
        """Inputs packed, as far as it takes; outputs packed; both. What has to be cut besides comes last."""
        cutter = self._cutter(data_type)
        to_cut = []
        for with_outputs in (False, True):
            stage = Stage(ELEMENT_BITS[data_type] // 8, self.dimension_counts)
            start = stage.outputs_packed(box) if with_outputs else box
            for made in chain([start] if stage.after else [], stage.inputs_packed(start)):
                copies = tuple(stage.before), tuple(stage.after)
                if cutter.fits(made.loops):
                    yield from self._cut(data_type, made, cutter, *copies)
                else:
                    to_cut.append((made, copies))
        for made, copies in to_cut:
            yield from self._cut(data_type, made, cutter, *copies)

    def _cut(
        self,
        data_type: TensorDataType,
        box: Box,
        cutter: Cutter,
        before: tuple[Box, ...] = (),
        after: tuple[Box, ...] = (),
    ) -> Iterator[Plan]:
        """The plan, if there is one, that cuts a box into what the target takes."""
        operators = cutter.operators(box)
        if operators is not None:
            yield Plan(len(before) + operators + len(after), data_type, cutter, box, before, after)
        else:
            self.exceeded |= cutter.exceeded

    def _cutter(self, data_type: TensorDataType, *, use_temporary: bool = False) -> Cutter:
        return Cutter(self.kind, ELEMENT_BITS[data_type] // 8, self.dimension_counts, use_temporary=use_temporary)

    def _built(self, plan: Plan) -> Rewriting | None:
        """The operators of a plan; None where there are too many, or the target refuses one."""
        if plan.operators > MOST_OPERATORS:
            self.exceeded = True
            return None
        made = []
        for box in (*plan.before, *plan.cutter.boxes(plan.box), *plan.after):
            built = next(self._accepted(box, plan.data_type), None)
            if built is None:
                return None
            made.append(built)
        ends = [
            region.offset + region.size for built in made for region in built.regions if region.buffer == "temporary"
        ]
        return Rewriting(made, max(ends, default=0))

    def _accepted(self, box: Box, data_type: TensorDataType, *, own: bool = False) -> Iterator[Accepted]:
        """The operator of loops in elements, if the target takes it. `own`: the dimensions are the original's."""
        key = (box.kind, box.loops, data_type, own, tuple([operand.described for operand in box.operands]))
        if key not in self._judged:
            self._judged[key] = self._judge(box, data_type, own=own)
        found = self._judged[key]
        if found is not None:
            operator, report = found
            bound = regions(operator, box.operands)
            yield Accepted(operator, report, bound, _parts(self.kind, operator, bound))

    def _judge(self, box: Box, data_type: TensorDataType, *, own: bool) -> tuple[OperatorDesc, Report] | None:
        ranked = of_rank(box.loops, self.dimension_counts)
        if ranked is None:
            return None
        operator = build(box.kind, ranked, data_type, box.operands, keep_strides=own and ranked == box.loops)
        if operator is None:
            return None
        report = evaluate(operator, self.judge)
        return (operator, report) if report.ok else None


def _parts(kind: OperatorType, operator: OperatorDesc, bound: Sequence[Region]) -> tuple[int, ...]:
    """The original's outputs that a split's operator writes to, its inputs that a join's reads; -1: none of these."""
    inputs = len(operands(operator)[0])
    named, buffer = (bound[inputs:], "output") if kind is OperatorType.SPLIT else (bound[:inputs], "input")
    return tuple([region.index if region.buffer == buffer else -1 for region in named])


def _tensors(desc: OperatorDesc) -> tuple[BufferTensorDesc, list[BufferTensorDesc]]:
    """The whole tensor and the parts that count, with stand-ins for null pointers."""
    if isinstance(desc, SplitOperatorDesc):
        whole, parts = desc.input_tensor, (desc.output_tensors or ())[: desc.output_count]
    else:
        whole, parts = desc.output_tensor, (desc.input_tensors or ())[: desc.input_count]
    return _buffer(whole), [_buffer(part) for part in parts]


def _buffer(tensor: TensorDesc | None) -> BufferTensorDesc:
    return BufferTensorDesc(0, None) if tensor is None or tensor.desc is None else tensor.desc


def _operand(buffer: BufferKind, index: int, tensor: BufferTensorDesc) -> Operand:
    strides = None if tensor.strides is None else tensor.strides[: tensor.dimension_count]
    return Operand(
        buffer,
        index,
        tensor.total_tensor_size_in_bytes or 0,
        strides,
        tensor.flags,
        tensor.guaranteed_base_offset_alignment,
    )


def _as_it_is(
    desc: OperatorDesc, report: Report, kind: OperatorType, whole: BufferTensorDesc, parts: Sequence[BufferTensorDesc]
) -> Legalization:
    inputs, outputs = ([whole], parts) if kind is OperatorType.SPLIT else (parts, [whole])
    bound = [Region("input", i, 0, tensor.total_tensor_size_in_bytes or 0) for i, tensor in enumerate(inputs)]
    bound += [Region("output", i, 0, tensor.total_tensor_size_in_bytes or 0) for i, tensor in enumerate(outputs)]
    return Legalization(desc, True, report, (desc,), (tuple(range(len(parts))),), (tuple(bound),))


def _report(kind: OperatorType, target: Target, reports: Sequence[Report]) -> Report:
    """One report for several accepted operators: each thing is said once."""
    found: dict[Diagnostic, None] = dict.fromkeys(d for report in reports for d in report.diagnostics)
    return Report(tuple(found), target.name, HResult.S_OK, kind.c_name)
