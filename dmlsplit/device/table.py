"""IDMLBindingTable: the bindings of a dispatchable, judged as they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dmlsplit.descriptors.descs import _uint
from dmlsplit.descriptors.diagnostics import Diagnostic, errors_of_directml
from dmlsplit.descriptors.enums import MINIMUM_BUFFER_TENSOR_ALIGNMENT, BindingType
from dmlsplit.descriptors.location import Location
from dmlsplit.device.bindings import Binding, BindingDesc, BufferBinding, binding_desc
from dmlsplit.device.dispatchables import DISPATCHABLES, Dispatchable
from dmlsplit.device.state import State
from dmlsplit.rules import BindingSlot, BindingView, SlotKind
from dmlsplit.rules._model import findings_of
from dmlsplit.rules.binding import BINDING_RULES, COUNT_MISMATCH, TABLE_TOO_SMALL, UNBOUND, crash


class BindingTable:
    """IDMLBindingTable. Created by a Device.

    The bind methods return nothing, as in C: a violation removes the device, whose `removed_reason` says why, and on a
    removed device they do nothing. They raise DirectMLError if a binding would end the process.
    """

    def __init__(self, state: State, dispatchable: Dispatchable, size_in_descriptors: int | None) -> None:
        self._state = state
        self._assign(dispatchable, size_in_descriptors)

    def _assign(self, dispatchable: Dispatchable, size_in_descriptors: int | None) -> None:
        required_object(self._state, dispatchable, DISPATCHABLES, "a table")
        required = dispatchable.binding_properties.required_descriptor_count
        size = required if size_in_descriptors is None else _uint(size_in_descriptors, "SizeInDescriptors")
        self._state.require()
        if size < required:
            message, place = f"is {size}, RequiredDescriptorCount is {required}", Location.of("SizeInDescriptors")
            found = TABLE_TOO_SMALL.diagnostic(place, message, expected=required, actual=size)
            self._state.fail(self._state.release.invalid_argument, found, dispatchable.name)
        self.dispatchable = dispatchable
        self._inputs: list[BindingDesc] | None = None
        self._outputs: list[BindingDesc] | None = None
        self.persistent: BufferBinding | None = None
        self.temporary: BufferBinding | None = None
        # Unsafe bindings that a build accepts, by the call that made them.
        self._unsafe: dict[str, list[Diagnostic]] = {}
        self.prepared: Callable[[], None] | None = None
        """The prepared dispatch of the current bindings; `warnings` are its diagnostics."""
        self.warnings: list[Diagnostic] = []

    def reset(self, dispatchable: Dispatchable, size_in_descriptors: int | None = None) -> None:
        """Unbinds everything and gives the table to a dispatchable. Raises DirectMLError as create_binding_table
        does."""
        self._assign(dispatchable, size_in_descriptors)

    def bind_inputs(self, bindings: Sequence[Binding]) -> None:
        """Binds one binding to each input tensor; for an initializer, a BufferArrayBinding to each of its operators. An
        empty sequence unbinds all. If the build refuses a binding, nothing is bound and the device is removed. Raises
        TypeError for objects that are not bindings, DirectMLError if the build would crash."""
        found = self._bind_all("BindInputs", self.dispatchable.input_slots, bindings)
        if found is not None:
            self._inputs = found or None

    def bind_outputs(self, bindings: Sequence[Binding]) -> None:
        """Binds one binding to each output tensor; for an initializer, the persistent resource of each of its
        operators. Unbinds, removes the device and raises as `bind_inputs` does."""
        found = self._bind_all("BindOutputs", self.dispatchable.output_slots, bindings)
        if found is not None:
            self._outputs = found or None

    def bind_temporary_resource(self, binding: Binding) -> None:
        """Binds at least TemporaryResourceSize bytes, for a graph. Split and Join need none, so only None or an empty
        range is valid. Removes the device and raises as `bind_inputs` does."""
        found = self._bind_one("BindTemporaryResource", self.dispatchable.temporary_slot, binding)
        if found is not None:
            self.temporary = _buffer_of(found)

    def bind_persistent_resource(self, binding: Binding) -> None:
        """Binds the persistent resource, written by the initializer, of at least PersistentResourceSize bytes. Removes
        the device and raises as `bind_inputs` does."""
        found = self._bind_one("BindPersistentResource", self.dispatchable.persistent_slot, binding)
        if found is not None:
            self.persistent = _buffer_of(found)

    def _bind_all(
        self, call: str, slots: Sequence[BindingSlot], bindings: Sequence[Binding]
    ) -> list[BindingDesc] | None:
        """Returns the descriptors to bind; None if none may be bound: the device was removed, by this call or before.
        Raises TypeError for anything but a sequence of bindings."""
        if self._state.removed_reason is not None:
            return None
        if isinstance(bindings, (str, bytes)) or not isinstance(bindings, Sequence):
            raise TypeError(f"{call}: a sequence of bindings is expected, not {type(bindings).__name__}")
        descs = [binding_desc(binding, Location.of(call, i)) for i, binding in enumerate(bindings)]
        if descs and len(descs) != len(slots):
            message = f"{len(descs)} given, {len(slots)} required: {_tensors(slots)}"
            found = COUNT_MISMATCH.diagnostic(Location.of(call), message, expected=len(slots), actual=len(descs))
            self._state.remove([found], self.dispatchable.name)
            return None
        views = [desc.view(Location.of(call, i), slots[i]) for i, desc in enumerate(descs)]
        return descs if self._accepted(call, descs, views) else None

    def _bind_one(self, call: str, slot: BindingSlot, binding: Binding) -> BindingDesc | None:
        """Returns the descriptor to bind; None if it may not be bound: the device was removed, by this call or
        before."""
        if self._state.removed_reason is not None:
            return None
        desc = binding_desc(binding, Location.of(call))
        return desc if self._accepted(call, [desc], [desc.view(Location.of(call), slot)]) else None

    def _accepted(self, call: str, descs: Sequence[BindingDesc], views: Sequence[BindingView]) -> bool:
        """Returns True if the build accepts a call's bindings; otherwise removes the device and returns False. Raises
        DirectMLError for bindings that crash the build."""
        found = [diagnostic for view in views for diagnostic in _judge(view)]
        fatal = errors_of_directml(found)
        # The builds check each binding by itself before they compare the first one with its slot.
        if fatal and fatal[0].rule == crash.id and all(map(_sound, descs)):
            self._state.refuse(found, self.dispatchable.name)
        if fatal:
            self._state.remove(found, self.dispatchable.name)
            return False
        self._unsafe[call] = found
        self.prepared = None
        return True

    @property
    def unsafe(self) -> list[Diagnostic]:
        """The diagnostics of bindings that were accepted although their ranges lie outside their buffers."""
        return [d for found in self._unsafe.values() for d in found]

    def unbound(self) -> list[Diagnostic]:
        """Returns a diagnostic for each bind call that a dispatch requires and that was not made."""
        found = []
        for call, slots, bound in (
            ("BindInputs", self.dispatchable.input_slots, self._inputs is not None),
            ("BindOutputs", self.dispatchable.output_slots, self._outputs is not None),
            ("BindTemporaryResource", (self.dispatchable.temporary_slot,), self.temporary is not None),
            ("BindPersistentResource", (self.dispatchable.persistent_slot,), self.persistent is not None),
        ):
            needing = [
                slot.tensor
                for slot in slots
                if not bound and SlotKind.BUFFER in (slot.kind, *[entry.kind for entry in slot.entries])
            ]
            if needing:
                more = f" and {len(needing) - 1} more" if len(needing) > 1 else ""
                message = f"nothing is bound to {needing[0]}{more}"
                found.append(UNBOUND.diagnostic(Location.of(call), message, expected=len(needing), actual=0))
        return found

    def input_ranges(self) -> list[tuple[BufferBinding, ...]]:
        """Returns, for each input, the ranges bound to it: one for a BUFFER, () if nothing is bound."""
        return _ranges(self._inputs, len(self.dispatchable.input_slots))

    def output_ranges(self) -> list[tuple[BufferBinding, ...]]:
        return _ranges(self._outputs, len(self.dispatchable.output_slots))


def required_object(state: State, value: object, kinds: type | tuple[type, ...], where: str) -> None:
    """Raises TypeError if `value` is an instance of none of `kinds`, ValueError if it belongs to another device."""
    if not isinstance(value, kinds):
        raise TypeError(f"{where} cannot be created for {type(value).__name__}")
    if getattr(value, "_state", None) is not state:
        raise ValueError(f"the {type(value).__name__} belongs to another device")


def _buffer_of(bound: BindingDesc) -> BufferBinding | None:
    """Returns the bound range; None if nothing is bound."""
    desc = bound.desc
    return desc if isinstance(desc, BufferBinding) and desc.buffer is not None else None


def _judge(view: BindingView) -> Iterable[Diagnostic]:
    for rule, found in findings_of(BINDING_RULES, view):
        yield from (rule.report(view.location, finding) for finding in found)
    is_array = view.slot.kind is SlotKind.ARRAY and view.type == BindingType.BUFFER_ARRAY
    if is_array and len(view.ranges) == len(view.slot.entries):
        for i, (slot, bound) in enumerate(zip(view.slot.entries, view.ranges, strict=True)):
            entry = view.location.member("Bindings", i)
            yield from _judge(BindingView(entry, slot, BindingType.BUFFER, False, (bound,)))


def _sound(desc: BindingDesc) -> bool:
    """True if some slot would accept the binding."""
    if desc.type == BindingType.NONE:
        return True
    return desc.type <= BindingType.BUFFER_ARRAY and desc.desc is not None and all(map(_is_sound_range, desc.ranges))


def _is_sound_range(binding: BufferBinding) -> bool:
    bound = binding.range
    if bound.buffer_size is None:
        return bound.is_empty
    return bound.offset % MINIMUM_BUFFER_TENSOR_ALIGNMENT == 0 and bound.wrapped_end <= bound.buffer_size


def _ranges(descs: list[BindingDesc] | None, count: int) -> list[tuple[BufferBinding, ...]]:
    return [()] * count if descs is None else [desc.ranges for desc in descs]


def _tensors(slots: Sequence[BindingSlot]) -> str:
    if not slots:
        return "an initializer without operators"
    return slots[0].tensor if len(slots) == 1 else f"{slots[0].tensor} to {slots[-1].tensor}"
