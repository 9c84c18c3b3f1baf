"""What can be dispatched: compiled operators and initializers, with what each wants bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from dmlsplit import _native
from dmlsplit._binding import BoundTensor
from dmlsplit.descriptors import BufferTensorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.device.state import State
from dmlsplit.diagnostics import Report
from dmlsplit.enums import (
    MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    PERSISTENT_BUFFER_ALIGNMENT,
    ExecutionFlags,
    TensorFlags,
)
from dmlsplit.rules import BindingSlot, SlotKind

_BOUND_LATER: Final = "it is not OWNED_BY_DML, and bound at execution"
_BOUND_EARLIER: Final = "it is OWNED_BY_DML, and bound at initialization"
_NO_TEMPORARY: Final = BindingSlot("the temporary resource", SlotKind.NOTHING, why="its size is 0", misreads_array=True)


class BindingProperties(NamedTuple):
    """DML_BINDING_PROPERTIES; sizes in bytes."""

    required_descriptor_count: int
    temporary_resource_size: int
    persistent_resource_size: int


class Operator:
    """IDMLOperator: an operator that the build creates. `report` may still call it unsafe. Made by a Device."""

    def __init__(self, state: State, desc: OperatorDesc, report: Report) -> None:
        self._state = state
        self.desc = desc
        self.report = report


class CompiledOperator:
    """IDMLCompiledOperator. Made by a Device."""

    def __init__(self, operator: Operator, flags: ExecutionFlags) -> None:
        self._state = operator._state
        self.operator = operator
        self.flags = flags
        self.initializations = 0
        """How often an initializer with this operator was dispatched."""
        desc = operator.desc
        self.is_split = isinstance(desc, SplitOperatorDesc)
        if isinstance(desc, SplitOperatorDesc):
            whole, array, count, path = desc.input_tensor, desc.output_tensors, desc.output_count, "OutputTensors"
        else:
            whole, array, count, path = desc.output_tensor, desc.input_tensors, desc.input_count, "InputTensors"
        descs = [_present(tensor) for tensor in (array or ())[:count]]
        self.parts = [BoundTensor(f"{path}[{i}]", _buffer(tensor), self.is_split) for i, tensor in enumerate(descs)]
        single = _present(whole)
        self.whole = BoundTensor("InputTensor" if self.is_split else "OutputTensor", _buffer(single), not self.is_split)
        inputs, input_descs = ([self.whole], [single]) if self.is_split else (self.parts, descs)
        outputs, output_descs = (self.parts, descs) if self.is_split else ([self.whole], [single])
        self.inputs, self.outputs = inputs, outputs
        self.axis = desc.axis
        self.lengths = [part.sizes[desc.axis] for part in self.parts]
        self._plans: dict[int | None, _native.Plan] = {}
        self.persistent_offsets, size = _persistent_placement(input_descs)
        """Where an owned input lies in the persistent resource; None for one that is bound at execution."""
        multiple = self._state.release.traits.persistent_size_multiple
        size = -(-size // multiple) * multiple
        self.binding_properties = BindingProperties(2 * count, 0, size)
        self.persistent_slot = _persistent_slot("the persistent resource", size)
        self.temporary_slot = _NO_TEMPORARY
        self.initial_slots = tuple(
            BindingSlot(t.path, SlotKind.NOTHING, why=_BOUND_LATER) if at is None else _tensor_slot(t, d)
            for t, d, at in zip(inputs, input_descs, self.persistent_offsets, strict=True)
        )
        """The entries of the array that is bound at initialization."""
        self.input_slots = tuple(
            _tensor_slot(t, d)
            if at is None
            else BindingSlot(t.path, SlotKind.NOTHING, why=_BOUND_EARLIER, misreads_array=True)
            for t, d, at in zip(inputs, input_descs, self.persistent_offsets, strict=True)
        )
        self.output_slots = tuple(_tensor_slot(t, d) for t, d in zip(outputs, output_descs, strict=True))

    def plan(self) -> _native.Plan:
        """The copies of all parts; only for operators whose elements lie within their tensors' totals."""
        return self._plan(None, self.whole.sizes, self.parts)

    def part_plan(self, i: int) -> _native.Plan:
        """The copy of one part alone; the whole begins where that part does."""
        part = self.parts[i]
        return self._plan(i, part.sizes, [part])

    def _plan(self, key: int | None, sizes: tuple[int, ...], parts: Sequence[BoundTensor]) -> _native.Plan:
        if key not in self._plans:
            self._plans[key] = _native.Plan(
                _native.SPLIT if self.is_split else _native.JOIN,
                self.whole.dtype.itemsize,
                sizes,
                self.whole.strides,
                self.axis,
                [part.sizes[self.axis] for part in parts],
                [stride for part in parts for stride in part.strides],
                overlap_allowed=True,  # DirectML runs such an operator, too
            )
        return self._plans[key]

    @property
    def desc(self) -> OperatorDesc:
        return self.operator.desc

    @property
    def name(self) -> str | None:
        return self.operator.report.operator


class OperatorInitializer:
    """IDMLOperatorInitializer of any number of compiled operators. Made by a Device."""

    name = None
    persistent_slot = BindingSlot("the persistent resource of an initializer", SlotKind.NO_CALL)
    temporary_slot = _NO_TEMPORARY

    def __init__(self, state: State, operators: Sequence[CompiledOperator]) -> None:
        self._state = state
        self.operators = tuple(operators)
        self.binding_properties = BindingProperties(0, 0, 0)
        self.input_slots = tuple(
            BindingSlot(f"operator {i}", SlotKind.ARRAY, entries=op.initial_slots) for i, op in enumerate(operators)
        )
        self.output_slots = tuple(
            _persistent_slot(f"the persistent resource of operator {i}", op.binding_properties.persistent_resource_size)
            for i, op in enumerate(operators)
        )


Dispatchable: TypeAlias = CompiledOperator | OperatorInitializer


def _present(tensor: TensorDesc | None) -> TensorDesc:
    # No build creates an operator with null pointers.
    assert tensor is not None
    return tensor


def _buffer(tensor: TensorDesc) -> BufferTensorDesc:
    assert tensor.desc is not None
    return tensor.desc


def _tensor_slot(tensor: BoundTensor, desc: TensorDesc) -> BindingSlot:
    alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, desc.guaranteed_base_offset_alignment)
    return BindingSlot(tensor.path, SlotKind.BUFFER, tensor.total, alignment=alignment)


def _persistent_slot(name: str, size: int) -> BindingSlot:
    if size == 0:
        return BindingSlot(name, SlotKind.NOTHING, why="its size is 0", misreads_array=True)
    return BindingSlot(name, SlotKind.BUFFER, size, "PersistentResourceSize", PERSISTENT_BUFFER_ALIGNMENT)


def _persistent_placement(inputs: Sequence[TensorDesc]) -> tuple[list[int | None], int]:
    """Where initialization copies each owned input to, and the end of the last one.

    Each lies behind the one before, at a multiple of 16 or of its GuaranteedBaseOffsetAlignment, of which no more than
    256 counts. Source: observed, PersistentResourceSize of the builds that compile, and what they were seen to copy.
    """
    offsets: list[int | None] = []
    end = 0
    for tensor in inputs:
        if not tensor.flags & TensorFlags.OWNED_BY_DML:
            offsets.append(None)
            continue
        wanted = min(tensor.guaranteed_base_offset_alignment, PERSISTENT_BUFFER_ALIGNMENT)
        alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, wanted)
        offset = -(-end // alignment) * alignment
        offsets.append(offset)
        end = offset + (tensor.total_tensor_size_in_bytes or 0)
    return offsets, end
