"""Rules about bindings: about one DML_BINDING_DESC, in the order in which builds check them, and about a whole
table."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.enums import BindingType
from dmlsplit.rules._model import BindingRule, Finding, Findings, Notice
from dmlsplit.rules._sources import BIND_INPUTS, BIND_OUTPUTS, BINDING, BUFFER_BINDING, OBSERVED_DEVICE, OURS
from dmlsplit.rules._views import Aspect, BindingView, SlotKind

REMOVES: Final = "the device is removed"
CRASHES: Final = "the process ends"
WARNS: Final = "accepted; a warning here"
REFUSED: Final = "accepted; the dispatch is refused here"


def _type_name(type: int) -> str:
    return BindingType(type).name if type in BindingType.__members__.values() else str(type)


@BindingRule(
    "binding/crash",
    "The build reads through a null pointer, or past a struct.",
    "BindInputs of an initializer reads Desc of type NONE; a NONE with any Desc removes the device instead. "
    "Where nothing belongs, a BUFFER_ARRAY of no entries passes for nothing and is then read as a DML_BUFFER_BINDING, "
    "which is longer: some such calls end the process, some do not.",
    basis=Basis.OBSERVED,
    outcome=CRASHES,
    sources=(OBSERVED_DEVICE,),
    spoils={Aspect.READABLE},
)
def crash(b: BindingView) -> Findings:
    if b.slot.kind is SlotKind.ARRAY and b.type == BindingType.NONE and b.is_null:
        yield Finding("Desc", "is null, of type NONE: this ends the process", "a BUFFER_ARRAY", None)
    if b.slot.misreads_array and b.type == BindingType.BUFFER_ARRAY and not b.is_null and not b.ranges:
        message = "is an array of no entries, read as a DML_BUFFER_BINDING: this may end the process"
        yield Finding("Desc", message, "NONE", "BUFFER_ARRAY")


@BindingRule(
    "binding/not-allowed",
    "The persistent resource of an initializer is bound.",
    "An initializer has none: the persistent resources of its operators are its outputs. Not even NONE is taken.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED_DEVICE, BINDING),
)
def not_allowed(b: BindingView) -> Findings:
    if b.slot.kind is SlotKind.NO_CALL:
        yield Finding("", f"{b.slot.tensor} may not be bound, not even to NONE", "no call", _type_name(b.type))


_TYPES: Final = {SlotKind.BUFFER: BindingType.BUFFER, SlotKind.ARRAY: BindingType.BUFFER_ARRAY}


@BindingRule(
    "binding/type-mismatch",
    "The type of a binding is not that of the place it is bound to.",
    "A tensor at execution, and a persistent resource, takes a BUFFER. An initializer takes one BUFFER_ARRAY for each "
    "operator as its inputs, with an entry for every input of the operator.",
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
    yield Finding("Type", f"is {_type_name(b.type)}, {b.slot.tensor} takes {name}", name, _type_name(b.type))


@BindingRule(
    "binding/null",
    "The Desc of a BUFFER or BUFFER_ARRAY, or the Buffer that a place needs, is a null pointer.",
    "Only type NONE goes without a Desc. A null Buffer binds nothing, which is right only where nothing belongs.",
    sources=(BUFFER_BINDING, OBSERVED_DEVICE),
)
def null(b: BindingView) -> Findings:
    if b.slot.kind is not SlotKind.NO_CALL and b.type in (BindingType.BUFFER, BindingType.BUFFER_ARRAY):
        if b.is_null:
            yield Finding("Desc", f"is null, of type {_type_name(b.type)}", "a pointer", None)
        elif b.slot.kind is SlotKind.BUFFER and b.type == BindingType.BUFFER and b.ranges[0].buffer_size is None:
            yield Finding("Buffer", f"is null, {b.slot.tensor} needs {b.slot.size} bytes", "a buffer", None)


@BindingRule(
    "binding/not-wanted",
    "A buffer is bound where nothing may be.",
    "An input that is OWNED_BY_DML is bound at initialization only, any other one at execution only; Split and Join "
    "need no temporary resource, and a persistent one only for owned inputs. Nothing is NONE, or the range "
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
    message = f"{found} bound to {b.slot.tensor}, where nothing belongs: {b.slot.why}"
    yield Finding("", message, "NONE", _type_name(b.type))


@BindingRule(
    "binding/array-count",
    "The array bound to an initializer has another number of entries than the operator has inputs.",
    "Every input of the operator has an entry, in order; {NULL, 0, 0} stands for one that is not OWNED_BY_DML.",
    sources=(BINDING, OBSERVED_DEVICE),
)
def array_count(b: BindingView) -> Findings:
    expected, actual = len(b.slot.entries), len(b.ranges)
    if b.slot.kind is SlotKind.ARRAY and b.type == BindingType.BUFFER_ARRAY and not b.is_null and actual != expected:
        message = f"is {actual}, {b.slot.tensor} has {expected} inputs"
        yield Finding("BindingCount", message, expected, actual)


@BindingRule(
    "binding/offset-misaligned",
    "The offset of a bound range is no multiple of the alignment that it needs.",
    "That is 16 bytes, or GuaranteedBaseOffsetAlignment where it is larger; 256 for a persistent resource.",
    sources=(BUFFER_BINDING, BINDING, OBSERVED_DEVICE),
)
def offset_misaligned(b: BindingView) -> Findings:
    bound = b.range
    if bound is not None and bound.offset % b.slot.alignment != 0:
        message = f"is {bound.offset}, no multiple of the {b.slot.alignment} bytes that {b.slot.tensor} needs"
        yield Finding("Offset", message, b.slot.alignment, bound.offset)


@BindingRule(
    "binding/size-too-small",
    "A bound range is smaller than what it is bound to.",
    "SizeInBytes is at least the tensor's TotalTensorSizeInBytes, or the PersistentResourceSize; it may be larger, and "
    "need not be a multiple of 4.",
    sources=(BUFFER_BINDING, OBSERVED_DEVICE),
)
def size_too_small(b: BindingView) -> Findings:
    bound = b.range
    if bound is not None and bound.size_in_bytes < b.slot.size:
        message = f"is {bound.size_in_bytes}, the {b.slot.size_name} of {b.slot.tensor} is {b.slot.size}"
        yield Finding("SizeInBytes", message, b.slot.size, bound.size_in_bytes)


@BindingRule(
    "binding/out-of-range",
    "A bound range reaches past the end of its resource.",
    "Offset + SizeInBytes is at most the resource's size.",
    sources=(BUFFER_BINDING, OBSERVED_DEVICE),
)
def out_of_range(b: BindingView) -> Findings:
    bound = b.range
    if bound is not None and bound.wrapped_end > (bound.buffer_size or 0):
        size, end = bound.buffer_size, bound.wrapped_end
        message = f"{bound.size_in_bytes} bytes from offset {bound.offset} on end at {end}, the buffer has {size}"
        yield Finding("SizeInBytes", message, size, end)


@BindingRule(
    "binding/range-wraps",
    "Offset + SizeInBytes wraps at 2^64, and the build does not notice that the range lies outside its resource.",
    "Every build takes such a binding. A GPU then reads or writes outside the buffer, so that the dispatch is refused "
    "here.",
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
        message = f"{bound.size_in_bytes} bytes from offset {bound.offset} on wrap at 2^64; the buffer has {size}"
        yield Finding("SizeInBytes", message, size, end)


TABLE_TOO_SMALL: Final = Notice(
    "binding/table-too-small",
    "SizeInDescriptors of a binding table is less than RequiredDescriptorCount.",
    "Split needs two descriptors an output, Join two an input, an initializer none; more are taken.",
    (OBSERVED_DEVICE, BINDING),
    basis=Basis.OBSERVED,
    outcome="E_INVALIDARG",
)
COUNT_MISMATCH: Final = Notice(
    "binding/count-mismatch",
    "BindInputs or BindOutputs is called with another number of bindings than the operator has tensors.",
    "Every tensor has a binding, those that are OWNED_BY_DML the type NONE; an initializer has one input and one "
    "output for each of its operators. 0 bindings are taken: they unbind.",
    (BIND_INPUTS, BIND_OUTPUTS, OBSERVED_DEVICE),
    outcome=REMOVES,
)
UNBOUND: Final = Notice(
    "binding/unbound",
    "A dispatch is recorded while something that it needs is not bound.",
    "It needs all inputs that are not OWNED_BY_DML, all outputs, and the persistent resource where its size is not 0; "
    "at initialization the inputs that are OWNED_BY_DML, and the persistent resources. Of an operator compiled with "
    "DESCRIPTORS_VOLATILE, which may be bound until the GPU executes, the builds do not ask it; here recording "
    "executes, and the dispatch is refused.",
    (OBSERVED_DEVICE, BINDING),
    basis=Basis.OBSERVED,
    outcome=REMOVES,
)
OTHER_TABLE: Final = Notice(
    "binding/table-of-another",
    "A dispatch is recorded with a binding table that was made for another dispatchable.",
    "A second operator compiled from the same descriptor is another one; Reset gives a table to it.",
    (OBSERVED_DEVICE, BINDING),
    basis=Basis.OBSERVED,
    outcome=REMOVES,
)


# The documentation forbids these, but builds accept them.
_HAZARD: Final = (BINDING, BIND_OUTPUTS, OBSERVED_DEVICE)
OUTPUTS_OVERLAP: Final = Notice(
    "binding/outputs-overlap",
    "The writable ranges of two outputs overlap.",
    "DirectML may write everything from the offset up to TotalTensorSizeInBytes, or PersistentResourceSize where an "
    "initializer writes. The builds accept it, write elements only, and run one dispatch an output, in order, without "
    "a barrier: here the later output wins, a GPU need not agree.",
    _HAZARD,
    Severity.WARNING,
    outcome=WARNS,
)
INPUT_OVERLAPS_OUTPUT: Final = Notice(
    "binding/input-overlaps-output",
    "The range of an input overlaps the writable range of an output.",
    "Split and Join do not support execution in place. The builds accept it; what a dispatch reads after another has "
    "written is then what was written, and within one dispatch nothing is promised.",
    _HAZARD,
    Severity.WARNING,
    outcome=WARNS,
)
PERSISTENT_OVERLAPS_OUTPUT: Final = Notice(
    "binding/persistent-overlaps-output",
    "The persistent resource overlaps the writable range of an output.",
    "It holds the inputs that are OWNED_BY_DML, which the dispatch then overwrites while it reads them. The builds "
    "accept it.",
    _HAZARD,
    Severity.WARNING,
    outcome=WARNS,
)
INITIALIZER_SHARES: Final = Notice(
    "binding/initializer-shares-resource",
    "A resource is bound as an input and as an output of an initializer.",
    "At initialization no resource may be both, even where the ranges are apart. The builds accept it.",
    _HAZARD,
    Severity.WARNING,
    outcome=WARNS,
)

BINDING_RULES: Final = tuple([rule for rule in tuple(globals().values()) if isinstance(rule, BindingRule)])
