"""Executes a recorded dispatch: its copies, and their diagnostics.

DirectML runs one dispatch for each output of a Split or input of a Join, in order and without barriers. If no buffers
overlap, one run of the C core does all of them; otherwise they run one after another, each reading what the earlier
ones wrote.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Severity
from dmlsplit.descriptors.location import Location, Step
from dmlsplit.device.bindings import BufferBinding
from dmlsplit.device.dispatchables import Dispatchable, DispatchableGraph, DispatchableOperator, OperatorInitializer
from dmlsplit.device.table import BindingTable
from dmlsplit.native import core
from dmlsplit.native.buffer import Buffer
from dmlsplit.native.threads import thread_count
from dmlsplit.rules import BindingSlot, Rule, SlotKind
from dmlsplit.rules.binding import (
    INITIALIZER_SHARES,
    INPUT_OVERLAPS_OUTPUT,
    OUTPUTS_OVERLAP,
    PERSISTENT_OVERLAPS_OUTPUT,
)
from dmlsplit.rules.device import ORDER_NOT_PROMISED
from dmlsplit.system.records import record

if TYPE_CHECKING:
    import numpy.typing as npt

Run = Callable[[], None]
_OVERLAPPING = ("tensor/output-elements-overlap", "tensor/output-overlap-undecided")


class MemoryRange(NamedTuple):
    """The address of a tensor's first element, and the number of bytes from there on that may be touched."""

    buffer: Buffer
    offset: int
    size: int
    binding: Location
    """The call that bound the memory."""

    @property
    def address(self) -> int:
        return self.buffer.address + self.offset

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        return self.buffer.array[self.offset : self.offset + self.size]


def prepared(dispatchable: Dispatchable, table: BindingTable) -> tuple[Run | None, list[Diagnostic]]:
    """Returns a function that runs a dispatch (None if running it is impossible) and its diagnostics. Everything must
    be bound in the table."""
    if isinstance(dispatchable, DispatchableOperator):
        return _of_operator(dispatchable, table)
    if isinstance(dispatchable, DispatchableGraph):
        return _of_graph(dispatchable, table)
    return _of_initializer(dispatchable, table)


def _of_operator(op: DispatchableOperator, table: BindingTable) -> tuple[Run | None, list[Diagnostic]]:
    """Returns a function that runs an operator's copies, and warnings; or None and the reasons, if the copies would
    access memory outside a buffer."""
    persistent = table.persistent
    inputs: list[MemoryRange] = []
    bound_inputs: list[tuple[MemoryRange, BindingSlot]] = []
    for i, (slot, ranges, at) in enumerate(
        zip(op.input_slots, table.input_ranges(), op.persistent_offsets, strict=True)
    ):
        if at is None:
            inputs.append(_memory_range(ranges[0], "BindInputs", i))
            bound_inputs.append((inputs[-1], slot))
        else:
            assert persistent is not None
            assert persistent.buffer is not None
            offset, size = persistent.offset + at, op.inputs[i].total
            inputs.append(MemoryRange(persistent.buffer, offset, size, Location.of("BindPersistentResource")))
    outputs = [_memory_range(ranges[0], "BindOutputs", i) for i, ranges in enumerate(table.output_ranges())]
    report = op.operator.report
    # Larger ranges do not help: if the size wraps, the build's indices may wrap too.
    if op.exceeds_totals:
        return None, [d for d in report.diagnostics if d.severity is Severity.ERROR and d.basis is Basis.OURS]
    written = _Written(list(zip(outputs, op.output_slots, strict=True)))
    found = written.overlapping_each_other()
    for memory, slot in bound_inputs:
        found += written.overlapping(INPUT_OVERLAPS_OUTPUT, memory, slot)
    if persistent is not None:
        memory = _memory_range(persistent, "BindPersistentResource")
        found += written.overlapping(PERSISTENT_OVERLAPS_OUTPUT, memory, op.persistent_slot)
    unordered = [d for d in report.diagnostics if d.rule in _OVERLAPPING]
    for d in unordered:
        message = f"{d.message}: which value remains is not defined"
        found.append(ORDER_NOT_PROMISED.diagnostic(d.location, message, expected=d.expected, actual=d.actual))
    whole, parts = op.geometry.roles.whole_and_parts([*inputs, *outputs])
    return _copies(op, whole, parts, bool(unordered)), found


def _of_initializer(initializer: OperatorInitializer, table: BindingTable) -> tuple[Run, list[Diagnostic]]:
    """Returns a function that copies owned inputs into the persistent resources, and warnings."""
    copies: list[tuple[MemoryRange, MemoryRange]] = []
    outputs: list[tuple[MemoryRange, BindingSlot]] = []
    for i, (op, sources, target, slot) in enumerate(
        zip(initializer.operators, table.input_ranges(), table.output_ranges(), initializer.output_slots, strict=True)
    ):
        if slot.size == 0:
            continue
        place = _memory_range(target[0], "BindOutputs", i)
        outputs.append((place, slot))
        for k, (tensor, at) in enumerate(zip(op.inputs, op.persistent_offsets, strict=True)):
            if at is not None:
                source = _memory_range(sources[k], "BindInputs", i, "Bindings", k)
                copies.append((source._replace(size=tensor.total), place._replace(offset=place.offset + at)))
    found = _Written(outputs).overlapping_each_other()
    targets = {id(target.buffer): target for _, target in copies}
    for source, _ in copies:
        shared = targets.get(id(source.buffer))
        if shared is not None:
            message = f"the resource is also bound as {shared.binding}"
            found.append(INITIALIZER_SHARES.diagnostic(source.binding, message, expected="another resource"))

    def run() -> None:
        for source, target in copies:
            target.bytes[: source.size] = source.bytes

    return run, found


def _of_graph(op: DispatchableGraph, table: BindingTable) -> tuple[Run, list[Diagnostic]]:
    """Returns a function that runs a graph's shaders, and warnings."""
    memory: dict[str, npt.NDArray[np.uint8]] = {}
    bound: list[tuple[MemoryRange, BindingSlot]] = []
    outputs: list[tuple[MemoryRange, BindingSlot]] = []
    for call, side, slots, ranges, found in (
        ("BindInputs", "input", op.input_slots, table.input_ranges(), bound),
        ("BindOutputs", "output", op.output_slots, table.output_ranges(), outputs),
    ):
        for i, (slot, binding) in enumerate(zip(slots, ranges, strict=True)):
            if slot.kind is SlotKind.BUFFER:
                place = _memory_range(binding[0], call, i)
                memory[f"{side} {i}"] = place.bytes
                found.append((place, slot))
    written = _Written(outputs)
    warnings = written.overlapping_each_other()
    for place, slot in bound:
        warnings += written.overlapping(INPUT_OVERLAPS_OUTPUT, place, slot)
    temporary = np.zeros(0, np.uint8)
    if table.temporary is not None:
        temporary = _memory_range(table.temporary, "BindTemporaryResource").bytes
    return op.shaders.run(memory, temporary), warnings


class _Written:
    """The writable ranges of a dispatch's outputs, from the offset on up to TotalTensorSizeInBytes."""

    def __init__(self, outputs: Sequence[tuple[MemoryRange, BindingSlot]]) -> None:
        ranges = sorted((memory.address, memory.address + slot.size, i) for i, (memory, slot) in enumerate(outputs))
        self._outputs = outputs
        self._begins = [begin for begin, _, _ in ranges]
        # For each range, the one of those up to it that reaches furthest.
        self._furthest = list(itertools.accumulate(ranges, _reaching_further))
        self._ranges = ranges

    def overlapping_each_other(self) -> list[Diagnostic]:
        found = []
        for before, (begin, _, i) in zip(self._furthest, self._ranges[1:], strict=False):
            if before[1] > begin:
                first, second = sorted((i, before[2]))
                found.append(_overlap(OUTPUTS_OVERLAP, *self._outputs[second], self._outputs[first][1]))
        return found

    def overlapping(self, rule: Rule, memory: MemoryRange, slot: BindingSlot) -> list[Diagnostic]:
        """Returns a diagnostic of `rule` if `memory` overlaps an output, about the output that reaches furthest among
        the outputs that begin below the end of `memory`; [] if it overlaps none."""
        below = bisect_left(self._begins, memory.address + slot.size)
        if below == 0 or self._furthest[below - 1][1] <= memory.address:
            return []
        return [_overlap(rule, memory, slot, self._outputs[self._furthest[below - 1][2]][1])]


def _reaching_further(a: tuple[int, int, int], b: tuple[int, int, int]) -> tuple[int, int, int]:
    return a if a[1] >= b[1] else b


def _overlap(rule: Rule, memory: MemoryRange, slot: BindingSlot, other: BindingSlot) -> Diagnostic:
    message = f"the range of {slot.tensor} overlaps the writable range of {other.tensor}"
    return rule.diagnostic(memory.binding, message, expected="ranges apart")


def _memory_range(binding: BufferBinding, *steps: Step) -> MemoryRange:
    assert binding.buffer is not None
    return MemoryRange(binding.buffer, binding.offset, binding.size_in_bytes, Location(steps))


@record
class _Bound:
    """A call of the C core on addresses; it keeps their memory alive, because the table may be bound again during
    the run."""

    function: Callable[..., object]
    arguments: tuple[Any, ...]
    memory: tuple[MemoryRange, ...]

    def __call__(self) -> None:
        self.function(*self.arguments)


def _copies(op: DispatchableOperator, whole: MemoryRange, parts: Sequence[MemoryRange], one_thread: bool) -> Run:
    """Returns a function that runs the copies between a whole tensor and its parts; `one_thread` keeps them in
    order."""
    plan = op.plan()
    vector = core.pointers([core.address(part.address) for part in parts])
    begin = core.address(whole.address)
    if plan.ranges_apart(begin, vector):
        threads = 1 if one_thread else thread_count(None, plan.bytes)
        return _Bound(*plan.bound_call(begin, vector, threads), (whole, *parts))

    def one_after_another() -> None:
        geometry = op.geometry
        sides = geometry.roles.sides
        stride = geometry.whole.byte_strides[geometry.axis]
        place = whole.address
        for i, (part, length) in enumerate(zip(parts, geometry.lengths, strict=True)):
            plan = op.plan(i)
            source, target = sides(place, part.address)
            read, _ = sides(plan.whole_range, plan.part_range(0))
            # The kernels require source and target to be disjoint, so all reads precede the writes.
            copied = core.buffer(core.bytes_at(source, read.end), False)
            from_or_to, moved = sides(copied, core.address(target))
            plan.run(from_or_to, core.pointers([moved]))
            place += length * stride

    return one_after_another
