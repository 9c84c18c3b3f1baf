"""Dispatchables: compiled operators and initializers, with the bindings that each of them requires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from dmlsplit.descriptors.descs import OperatorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.descriptors.enums import (
    MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    PERSISTENT_BUFFER_ALIGNMENT,
    TEMPORARY_BUFFER_ALIGNMENT,
    ExecutionFlags,
    TensorFlags,
)
from dmlsplit.descriptors.geometry import Geometry, TensorLayout
from dmlsplit.device.state import State
from dmlsplit.native.core import Plan
from dmlsplit.native.plans import plan_of
from dmlsplit.rules import BindingSlot, SlotKind

if TYPE_CHECKING:  # most programs use no graph
    from dmlsplit.device.dispatches import Shaders
    from dmlsplit.graphs import GraphDesc

_BOUND_LATER: Final = "it is not OWNED_BY_DML and is bound at execution"
_BOUND_EARLIER: Final = "it is OWNED_BY_DML and is bound at initialization"


def _persistent_slot(name: str, size: int) -> BindingSlot:
    return _resource_slot(name, size, "PersistentResourceSize", PERSISTENT_BUFFER_ALIGNMENT)


def _temporary_slot(size: int = 0) -> BindingSlot:
    return _resource_slot("the temporary resource", size, "TemporaryResourceSize", TEMPORARY_BUFFER_ALIGNMENT)


def _resource_slot(name: str, size: int, size_name: str, alignment: int) -> BindingSlot:
    if size == 0:
        return BindingSlot(name, SlotKind.NOTHING, why="its size is 0", misreads_array=True)
    return BindingSlot(name, SlotKind.BUFFER, size, size_name, alignment)


class BindingProperties(NamedTuple):
    """DML_BINDING_PROPERTIES; sizes in bytes."""

    required_descriptor_count: int
    temporary_resource_size: int
    persistent_resource_size: int


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """IDMLOperator: an operator that the build creates, although `report` may call it unsafe. Created by a Device."""

    _state: State
    desc: OperatorDesc
    report: Report


class DispatchableOperator:
    """IDMLCompiledOperator. Created by a Device."""

    def __init__(self, operator: Operator, flags: ExecutionFlags) -> None:
        self._state = operator._state
        self.operator = operator
        self.flags = flags
        self.initializations = 0
        """The number of dispatched initializers with this operator."""
        # No build creates an operator with null pointers.
        self.geometry = Geometry.of(operator.desc)
        self.inputs, self.outputs = self.geometry.inputs, self.geometry.outputs
        self.exceeds_totals = any(tensor.extent * tensor.bits > tensor.total * 8 for tensor in self.geometry.tensors)
        """True where elements lie behind the end of their tensor, because sizes in bytes wrap."""
        self._plans: dict[int | None, Plan] = {}
        self.persistent_offsets, size = _persistent_placement(self.inputs)
        """The offset of each owned input in the persistent resource; None for inputs bound at execution."""
        multiple = self._state.release.traits.persistent_size_multiple
        size = -(-size // multiple) * multiple
        self.binding_properties = BindingProperties(2 * len(self.geometry.parts), 0, size)
        self.persistent_slot = _persistent_slot("the persistent resource", size)
        self.temporary_slot = _temporary_slot()
        self.initial_slots = tuple(
            BindingSlot(tensor.name, SlotKind.NOTHING, why=_BOUND_LATER) if at is None else _tensor_slot(tensor)
            for tensor, at in zip(self.inputs, self.persistent_offsets, strict=True)
        )
        """The entries of the array to bind at initialization."""
        self.input_slots = tuple(
            _tensor_slot(tensor)
            if at is None
            else BindingSlot(tensor.name, SlotKind.NOTHING, why=_BOUND_EARLIER, misreads_array=True)
            for tensor, at in zip(self.inputs, self.persistent_offsets, strict=True)
        )
        self.output_slots = tuple(map(_tensor_slot, self.outputs))

    def plan(self, part: int | None = None) -> Plan:
        """Returns the plan that copies all parts or, if `part` is given, only that part, with the whole's base address
        at that part.

        Only for operators whose elements lie within their tensors' total sizes.
        """
        if part not in self._plans:
            geometry = self.geometry if part is None else self.geometry.of_part(part)
            self._plans[part] = plan_of(geometry)
        return self._plans[part]

    @property
    def desc(self) -> OperatorDesc:
        return self.operator.desc

    @property
    def name(self) -> str | None:
        return self.operator.report.operator


class DispatchableGraph:
    """IDMLCompiledOperator of a graph. Created by a Device.

    Graphs bind nothing at initialization. The sizes in `binding_properties` are the emulation's own, because no build's
    were observed.
    """

    persistent_offsets: tuple[int | None, ...] = ()
    inputs: tuple[TensorLayout, ...] = ()
    persistent_slot = _persistent_slot("the persistent resource", 0)

    def __init__(self, state: State, desc: GraphDesc, report: Report, flags: ExecutionFlags, shaders: Shaders) -> None:
        self._state = state
        self.desc = desc
        self.report = report
        self.flags = flags
        self.shaders = shaders
        self.initializations = 0
        """The number of dispatched initializers with this graph."""
        views = sum(len(shader.reads) + 1 for shader in shaders.shaders)
        self.binding_properties = BindingProperties(views, shaders.temporary_size, 0)
        self.temporary_slot = _temporary_slot(shaders.temporary_size)
        used = {edge.graph_input_index for edge in desc.input_edges}
        self.input_slots = tuple([_end_slot(f"Inputs[{i}]", tensor, i in used) for i, tensor in enumerate(desc.inputs)])
        self.initial_slots = tuple(
            [slot._replace(kind=SlotKind.NOTHING, why=_BOUND_LATER) for slot in self.input_slots]
        )
        self.output_slots = tuple([_end_slot(f"Outputs[{i}]", tensor, True) for i, tensor in enumerate(desc.outputs)])

    @property
    def name(self) -> str | None:
        return self.report.operator


class OperatorInitializer:
    """IDMLOperatorInitializer of any number of compiled operators. Created by a Device."""

    name = None
    persistent_slot = BindingSlot("the persistent resource of an initializer", SlotKind.NO_CALL)
    temporary_slot = _temporary_slot()

    def __init__(self, state: State, operators: Sequence[CompiledDispatchable]) -> None:
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


CompiledDispatchable: TypeAlias = DispatchableOperator | DispatchableGraph
"""IDMLCompiledOperator."""
Dispatchable: TypeAlias = CompiledDispatchable | OperatorInitializer
COMPILED: Final = (DispatchableOperator, DispatchableGraph)
DISPATCHABLES: Final = (*COMPILED, OperatorInitializer)


def _end_slot(name: str, tensor: TensorDesc | None, used: bool) -> BindingSlot:
    if not used:
        return BindingSlot(name, SlotKind.NOTHING, why="nothing uses it", misreads_array=True)
    size = 0 if tensor is None else tensor.total_tensor_size_in_bytes or 0
    return BindingSlot(name, SlotKind.BUFFER, size, alignment=MINIMUM_BUFFER_TENSOR_ALIGNMENT)


def _tensor_slot(tensor: TensorLayout) -> BindingSlot:
    alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, tensor.alignment)
    return BindingSlot(tensor.name, SlotKind.BUFFER, tensor.total, alignment=alignment)


def _persistent_placement(inputs: Sequence[TensorLayout]) -> tuple[list[int | None], int]:
    """Returns the byte offsets in the persistent resource to which initialization copies each owned input (None for
    others), and the end of the last one.

    Each one follows the previous one, at a multiple of 16 or of its GuaranteedBaseOffsetAlignment (at most 256).
    Source: observed PersistentResourceSize and copies of the builds that compile.
    """
    offsets: list[int | None] = []
    end = 0
    for tensor in inputs:
        if not tensor.flags & TensorFlags.OWNED_BY_DML:
            offsets.append(None)
            continue
        wanted = min(tensor.alignment, PERSISTENT_BUFFER_ALIGNMENT)
        alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, wanted)
        offset = -(-end // alignment) * alignment
        offsets.append(offset)
        end = offset + tensor.total
    return offsets, end
