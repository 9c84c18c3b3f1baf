"""The rewrites, in their order: each is tried, and what the target takes first is the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dmlsplit.descriptors import BufferTensorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.diagnostics import Diagnostic, Report
from dmlsplit.enums import HResult, OperatorType, TensorDataType
from dmlsplit.layout import ELEMENT_BITS
from dmlsplit.legalize._build import Built, Operand, build, data_types, dimension_counts
from dmlsplit.legalize._loops import Loops, bits_joined, divided, folded, loops_of, of_rank, without
from dmlsplit.legalize._words import no_rewriting, steps
from dmlsplit.legalize.result import BufferKind, Legalization, Region
from dmlsplit.rules import RULES, Judge
from dmlsplit.validation import faults, in_descriptor_order, operator_type
from dmlsplit.validation import judge as judge_descriptor


def legalized(desc: OperatorDesc, judge: Judge) -> Legalization:
    """`legalize` for one judge."""
    kind = operator_type(desc)
    report = judge_descriptor(desc, judge)
    whole, parts = _tensors(desc)
    if report.ok:
        return _as_it_is(desc, report, kind, whole, parts)
    wrong = faults(desc)
    if wrong:
        known = {(d.rule, d.path) for d in report.diagnostics}
        hidden = [d for d in wrong if (d.rule, d.path) not in known]
        return Legalization.refused(desc, replace(report, diagnostics=in_descriptor_order(report.diagnostics, hidden)))
    task = Task(desc, kind, judge, whole, parts)
    found = next(task.single_operators(), None) if task.parts else []
    if found is None:
        reason = RULES["legalize/no-rewriting"].diagnostic("", no_rewriting(task.loops, judge, kind, whole.data_type))
        return Legalization.refused(desc, replace(report, diagnostics=(*report.diagnostics, reason)))
    return Legalization(
        desc,
        True,
        _report(kind, judge, [judge_descriptor(built.operator, judge) for built in found]),
        tuple([built.operator for built in found]),
        tuple([built.parts for built in found]),
        tuple([built.regions for built in found]),
        tuple(steps(desc, found)),
    )


class Task:
    """An operator without faults that the target refuses, and what it is rewritten from."""

    def __init__(
        self,
        desc: OperatorDesc,
        kind: OperatorType,
        judge: Judge,
        whole: BufferTensorDesc,
        parts: Sequence[BufferTensorDesc],
    ) -> None:
        self.kind = kind
        self.judge = judge
        self.own_type = whole.data_type
        self.parts = [(i, part) for i, part in enumerate(parts) if 0 not in (part.sizes or ())[: part.dimension_count]]
        self.dimension_counts = dimension_counts(judge, kind)
        if not self.parts:
            return
        inner: BufferKind = "output" if kind is OperatorType.SPLIT else "input"
        outer: BufferKind = "input" if kind is OperatorType.SPLIT else "output"
        self.operands = [_operand(outer, 0, whole), *[_operand(inner, i, part) for i, part in self.parts]]
        self.own_loops = loops_of(whole, [part for _, part in self.parts], desc.axis)
        self.loops = folded(self.own_loops)

    def single_operators(self) -> Iterator[list[Built]]:
        """Rewritings into one operator, the smallest change first."""
        for data_type in data_types(self.judge, self.kind, self.own_type):
            bits = ELEMENT_BITS[data_type]
            same = bits == ELEMENT_BITS[self.own_type]
            as_given = divided(self.own_loops if same else bits_joined(self.own_loops), bits)
            if as_given is not None:
                yield from self._accepted(
                    without(as_given, len(as_given.sizes) - 1) if same else as_given, data_type, same
                )
            as_few = divided(self.loops, bits)
            if as_few is not None:
                yield from self._accepted(without(as_few, as_few.sizes.index(min(as_few.sizes))), data_type, False)

    def _accepted(self, loops: Loops, data_type: TensorDataType, own: bool) -> Iterator[list[Built]]:
        """The operator of loops in elements, if the target takes it. `own`: the dimensions are the original's."""
        ranked = of_rank(loops, self.dimension_counts)
        if ranked is None:
            return
        built = build(self.kind, ranked, data_type, self.operands, keep_strides=own and ranked == loops)
        if built is not None and judge_descriptor(built.operator, self.judge).ok:
            yield [built]


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
    regions = [Region("input", i, 0, tensor.total_tensor_size_in_bytes or 0) for i, tensor in enumerate(inputs)]
    regions += [Region("output", i, 0, tensor.total_tensor_size_in_bytes or 0) for i, tensor in enumerate(outputs)]
    return Legalization(desc, True, report, (desc,), (tuple(range(len(parts))),), (tuple(regions),))


def _report(kind: OperatorType, judge: Judge, reports: Sequence[Report]) -> Report:
    """One report for several accepted operators: each thing is said once."""
    found: dict[Diagnostic, None] = dict.fromkeys(d for report in reports for d in report.diagnostics)
    return Report(tuple(found), judge.name, HResult.S_OK, kind.c_name)
