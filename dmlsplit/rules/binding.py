"""Rules about bindings: about one DML_BINDING_DESC, in the order in which builds check them, and about a whole
table."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.enums import BindingType
from dmlsplit.rules._bindings import BindingRule, BindingView, SlotKind
from dmlsplit.rules._model import Finding, Findings, Notice
from dmlsplit.rules._sources import BIND_INPUTS, BIND_OUTPUTS, BINDING, BUFFER_BINDING, OBSERVED_DEVICE, OURS
from dmlsplit.rules._views import Aspect

REMOVES: Final = "the device is removed"
CRASHES: Final = "the process crashes"
WARNS: Final = "accepted; reported as a warning"
REFUSED: Final = "accepted; the emulation refuses the dispatch"


def _type_name(type: int) -> str:
    return BindingType(type).name if type in BindingType.__members__.values() else str(type)


@BindingRule(
    "binding/crash",
    "The build dereferences a null pointer, or reads past the end of a struct.",
    "BindInputs of an initializer reads the Desc of a binding of type NONE, and crashes if it is null; with any "
    "other Desc, the device is removed. Where no resource may be bound, a BUFFER_ARRAY without entries is accepted "
    "and then read as a DML_BUFFER_BINDING, which is longer; some of these calls crash the process.",
    basis=Basis.OBSERVED,
    outcome=CRASHES,
    sources=(OBSERVED_DEVICE,),
    spoils={Aspect.READABLE},
)
def crash(b: BindingView) -> Findings:
    if b.slot.kind is SlotKind.ARRAY and b.type == BindingType.NONE and b.is_null:
        yield Finding("Desc", "is null, with type NONE: this crashes the process", "a BUFFER_ARRAY", None)
    if b.slot.misreads_array and b.type == BindingType.BUFFER_ARRAY and not b.is_null and not b.ranges:
        message = "is an array without entries, read as a DML_BUFFER_BINDING: this may crash the process"
        yield Finding("Desc", message, "NONE", "BUFFER_ARRAY")


@BindingRule(
    "binding/not-allowed",
    "The persistent resource of an initializer is bound.",
    "An initializer has no persistent resource: those of its operators are its outputs. Even NONE is refused.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED_DEVICE, BINDING),
)
def not_allowed(b: BindingView) -> Findings:
    if b.slot.kind is SlotKind.NO_CALL:
        yield Finding("", f"{b.slot.tensor} must not be bound, not even to NONE", "no call", _type_name(b.type))


_TYPES: Final = {SlotKind.BUFFER: BindingType.BUFFER, SlotKind.ARRAY: BindingType.BUFFER_ARRAY}


@BindingRule(
    "binding/type-mismatch",
    "The type of a binding does not match the slot it is bound to.",
    "A tensor at execution, and a persistent resource, requires a BUFFER. As inputs, an initializer requires one "
    "BUFFER_ARRAY for each operator, with an entry for every input of the operator.",
    sources=(BIND_INPUTS, BINDING, OBSERVED_DEVICE),
    needs={Aspect.READABLE},
)
def type_mismatch(b: BindingView) -> Findings:
    if b.slot.kind is SlotKind.NO_CALL:
        return
    expected = _TYPES.get(b.slot.kind)
    if b.type == expected or (expected is None and b.type <= BindingType.BUFFER_ARRAY):
        return
    name = BindingType.NONE.name if expected is None else expected.name
    yield Finding("Type", f"is {_type_name(b.type)}, {b.slot.tensor} requires {name}", name, _type_name(b.type))


@BindingRule(
    "binding/null",
    "The Desc of a BUFFER or BUFFER_ARRAY, or a required Buffer, is a null pointer.",
    "Only type NONE may have a null Desc. A null Buffer binds nothing, which is correct only if no resource may be "
    "bound.",
    sources=(BUFFER_BINDING, OBSERVED_DEVICE),
)
def null(b: BindingView) -> Findings:
    if b.slot.kind is not SlotKind.NO_CALL and b.type in (BindingType.BUFFER, BindingType.BUFFER_ARRAY):
        if b.is_null:
            yield Finding("Desc", f"is null, with type {_type_name(b.type)}", "a pointer", None)
        elif b.slot.kind is SlotKind.BUFFER and b.type == BindingType.BUFFER and b.ranges[0].buffer_size is None:
            yield Finding("Buffer", f"is null, {b.slot.tensor} requires {b.slot.size} bytes", "a buffer", None)


@BindingRule(
    "binding/not-wanted",
    "A buffer is bound where none is allowed.",
    "Inputs that are OWNED_BY_DML are bound at initialization only, and all others at execution only. Split and Join "
    "need no temporary resource, and a persistent one only for owned inputs. To bind nothing, use NONE or the range "
    "{NULL, 0, 0}.",
    sources=(BIND_INPUTS, BINDING, OBSERVED_DEVICE),
)
def not_wanted(b: BindingView) -> Findings:
    if b.slot.kind is not SlotKind.NOTHING or b.is_null:
        return
    if b.type == BindingType.BUFFER and not b.ranges[0].is_empty:
        found = "a buffer is" if b.ranges[0].buffer_size is not None else "a null Buffer with an offset or a size is"
    elif b.type == BindingType.BUFFER_ARRAY and b.ranges:
        found = f"an array of {len(b.ranges)} is"
    else:
        return
    message = f"{found} bound to {b.slot.tensor}, where nothing may be bound: {b.slot.why}"
    yield Finding("", message, "NONE", _type_name(b.type))


@BindingRule(
    "binding/array-count",
    "The number of entries in an array bound to an initializer differs from the operator's number of inputs.",
    "The array has an entry for every input of the operator, in order: {NULL, 0, 0} for inputs that are not "
    "OWNED_BY_DML.",
    sources=(BINDING, OBSERVED_DEVICE),
)
def array_count(b: BindingView) -> Findings:
    expected, actual = len(b.slot.entries), len(b.ranges)
    if b.slot.kind is SlotKind.ARRAY and b.type == BindingType.BUFFER_ARRAY and not b.is_null and actual != expected:
        message = f"is {actual}, {b.slot.tensor} has {expected} inputs"
        yield Finding("BindingCount", message, expected, actual)


@BindingRule(
    "binding/offset-misaligned",
    "The offset of a bound range is not a multiple of the required alignment.",
    "The alignment is 16 bytes, or GuaranteedBaseOffsetAlignment if that is larger; 256 bytes for a persistent "
    "resource.",
    sources=(BUFFER_BINDING, BINDING, OBSERVED_DEVICE),
)
def offset_misaligned(b: BindingView) -> Findings:
    bound = b.range
    if bound is not None and bound.offset % b.slot.alignment != 0:
        message = f"is {bound.offset}, not a multiple of the {b.slot.alignment} bytes that {b.slot.tensor} requires"
        yield Finding("Offset", message, b.slot.alignment, bound.offset)


@BindingRule(
    "binding/size-too-small",
    "A bound range is smaller than the tensor or resource that it is bound to.",
    "SizeInBytes must be at least the tensor's TotalTensorSizeInBytes, or the PersistentResourceSize. It may be "
    "larger, and need not be a multiple of 4.",
    sources=(BUFFER_BINDING, OBSERVED_DEVICE),
)
def size_too_small(b: BindingView) -> Findings:
    bound = b.range
    if bound is not None and bound.size_in_bytes < b.slot.size:
        message = f"is {bound.size_in_bytes}, the {b.slot.size_name} of {b.slot.tensor} is {b.slot.size}"
        yield Finding("SizeInBytes", message, b.slot.size, bound.size_in_bytes)


@BindingRule(
    "binding/out-of-range",
    "A bound range extends past the end of its resource.",
    "Offset + SizeInBytes must not exceed the resource's size.",
    sources=(BUFFER_BINDING, OBSERVED_DEVICE),
)
def out_of_range(b: BindingView) -> Findings:
    bound = b.range
    if bound is not None and bound.wrapped_end > (bound.buffer_size or 0):
        size, end = bound.buffer_size, bound.wrapped_end
        message = f"{bound.size_in_bytes} bytes at offset {bound.offset} end at {end}; the buffer has {size} bytes"
        yield Finding("SizeInBytes", message, size, end)


@BindingRule(
    "binding/range-wraps",
    "Offset + SizeInBytes wraps at 2^64, and the build does not detect that the range is outside its resource.",
    "Every build accepts such a binding. A GPU would then read or write outside the buffer, so the emulation refuses "
    "the dispatch.",
    basis=Basis.OURS,
    outcome=REFUSED,
    sources=(OURS, OBSERVED_DEVICE),
)
def range_wraps(b: BindingView) -> Findings:
    bound = b.range
    if bound is None or bound.wrapped_end > (bound.buffer_size or 0):
        return  # refused
    end, size = bound.offset + bound.size_in_bytes, bound.buffer_size
    if end >= 2**64:
        message = f"{bound.size_in_bytes} bytes at offset {bound.offset} wrap at 2^64; the buffer has {size} bytes"
        yield Finding("SizeInBytes", message, size, end)


TABLE_TOO_SMALL: Final = Notice(
    "binding/table-too-small",
    "SizeInDescriptors of a binding table is less than RequiredDescriptorCount.",
    "Split needs two descriptors for each output, Join two for each input, and an initializer none; more are accepted.",
    (OBSERVED_DEVICE, BINDING),
    basis=Basis.OBSERVED,
    outcome="E_INVALIDARG",
)
COUNT_MISMATCH: Final = Notice(
    "binding/count-mismatch",
    "The number of bindings passed to BindInputs or BindOutputs differs from the operator's number of tensors.",
    "Every tensor has a binding, of type NONE if it is OWNED_BY_DML. An initializer has one input and one output for "
    "each of its operators. 0 bindings are accepted and unbind all tensors.",
    (BIND_INPUTS, BIND_OUTPUTS, OBSERVED_DEVICE),
    outcome=REMOVES,
)
UNBOUND: Final = Notice(
    "binding/unbound",
    "A dispatch is recorded while a resource that it needs is not bound.",
    "An execution needs all inputs that are not OWNED_BY_DML, all outputs, and the persistent resource if its size "
    "is not 0. An initialization needs the inputs that are OWNED_BY_DML, and the persistent resources. An operator "
    "compiled with DESCRIPTORS_VOLATILE may be bound until the GPU executes, so the builds do not check it; the "
    "emulation executes when it records, and refuses the dispatch.",
    (OBSERVED_DEVICE, BINDING),
    basis=Basis.OBSERVED,
    outcome=REMOVES,
)
OTHER_TABLE: Final = Notice(
    "binding/table-of-another",
    "A dispatch is recorded with the binding table of another dispatchable.",
    "A second operator compiled from the same descriptor is a different dispatchable; Reset assigns a table to it.",
    (OBSERVED_DEVICE, BINDING),
    basis=Basis.OBSERVED,
    outcome=REMOVES,
)


# The documentation forbids these, but builds accept them.
_HAZARD: Final = (BINDING, BIND_OUTPUTS, OBSERVED_DEVICE)
OUTPUTS_OVERLAP: Final = Notice(
    "binding/outputs-overlap",
    "The writable ranges of two outputs overlap.",
    "DirectML may write all bytes from the offset up to TotalTensorSizeInBytes, or to PersistentResourceSize for an "
    "initializer. The builds accept overlaps, write only elements, and run one dispatch for each output, in order, "
    "without a barrier. In the emulation the later output wins; a GPU may behave differently.",
    _HAZARD,
    Severity.WARNING,
    outcome=WARNS,
)
INPUT_OVERLAPS_OUTPUT: Final = Notice(
    "binding/input-overlaps-output",
    "The range of an input overlaps the writable range of an output.",
    "Split and Join do not support execution in place, but the builds accept it. A dispatch that runs after another "
    "one reads what that one wrote; within one dispatch the result is not defined.",
    _HAZARD,
    Severity.WARNING,
    outcome=WARNS,
)
PERSISTENT_OVERLAPS_OUTPUT: Final = Notice(
    "binding/persistent-overlaps-output",
    "The persistent resource overlaps the writable range of an output.",
    "The persistent resource contains the inputs that are OWNED_BY_DML, which the dispatch then overwrites while it "
    "reads them. The builds accept this.",
    _HAZARD,
    Severity.WARNING,
    outcome=WARNS,
)
INITIALIZER_SHARES: Final = Notice(
    "binding/initializer-shares-resource",
    "A resource is bound both as an input and as an output of an initializer.",
    "At initialization no resource may be both, even if the ranges do not overlap. The builds accept it.",
    _HAZARD,
    Severity.WARNING,
    outcome=WARNS,
)

BINDING_RULES: Final = tuple([rule for rule in tuple(globals().values()) if isinstance(rule, BindingRule)])
