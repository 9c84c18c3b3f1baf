"""Rules of what is bound: of one DML_BINDING_DESC, in the order in which they are asked, and of a whole table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dmlsplit.diagnostics import Basis, Severity
from dmlsplit.enums import BindingType
from dmlsplit.rules._model import (
    BIND_INPUTS,
    BIND_OUTPUTS,
    BINDING,
    BUFFER_BINDING,
    OBSERVED_DEVICE,
    OURS,
    BindingView,
    Check,
    Finding,
    Findings,
    Rule,
    Wanted,
)

_BINDING_RULES: Final[list[Rule]] = []
REMOVES: Final = "the device is removed"
CRASHES: Final = "the process ends"
WARNS: Final = "accepted; a warning here"
REFUSED: Final = "accepted; the dispatch is refused here"


def _rule(id: str, summary: str, explanation: str, **fields: Any) -> Callable[[Check[BindingView]], Check[BindingView]]:
    def add(check: Check[BindingView]) -> Check[BindingView]:
        settings = {"severity": Severity.ERROR, "basis": Basis.DOCUMENTED, "outcome": REMOVES, **fields}
        _BINDING_RULES.append(Rule(id, summary=summary, explanation=explanation, binding_check=check, **settings))
        return check

    return add


def _type_name(type: int) -> str:
    return BindingType(type).name if type in BindingType.__members__.values() else str(type)


@_rule(
    "binding/crash",
    "The build reads through a null pointer, or past a struct.",
    "BindInputs of an initializer reads Desc of type NONE; a NONE with any Desc removes the device instead. "
    "Where nothing belongs, a BUFFER_ARRAY of no entries passes for nothing and is then read as a DML_BUFFER_BINDING, "
    "which is longer: some such calls end the process, some do not.",
    basis=Basis.OBSERVED,
    outcome=CRASHES,
    sources=(OBSERVED_DEVICE,),
    bad_steps="table = device.create_binding_table(device.create_operator_initializer([compiled()]))\n"
    "table.bind_inputs([None])",
    good_steps="table = device.create_binding_table(device.create_operator_initializer([compiled()]))\n"
    "table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(None, 0, 0)])])",
)
def _crash(b: BindingView) -> Findings:
    if b.place.wanted is Wanted.ARRAY and b.type == BindingType.NONE and b.is_null:
        return [Finding("Desc", "is null, of type NONE: this ends the process", "a BUFFER_ARRAY", None)]
    if b.place.misreads_array and b.type == BindingType.BUFFER_ARRAY and not b.is_null and not b.ranges:
        message = "is an array of no entries, read as a DML_BUFFER_BINDING: this may end the process"
        return [Finding("Desc", message, "NONE", "BUFFER_ARRAY")]
    return None


@_rule(
    "binding/not-allowed",
    "The persistent resource of an initializer is bound.",
    "An initializer has none: the persistent resources of its operators are its outputs. Not even NONE is taken.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED_DEVICE, BINDING),
    bad_steps="table = device.create_binding_table(device.create_operator_initializer([compiled()]))\n"
    "table.bind_persistent_resource(None)",
    good_steps="table.bind_persistent_resource(None)",
)
def _not_allowed(b: BindingView) -> Findings:
    if b.place.wanted is not Wanted.NO_CALL:
        return None
    return [Finding("", f"{b.place.tensor} may not be bound, not even to NONE", "no call", _type_name(b.type))]


_TYPES: Final = {Wanted.BUFFER: BindingType.BUFFER, Wanted.ARRAY: BindingType.BUFFER_ARRAY}


@_rule(
    "binding/type-mismatch",
    "The type of a binding is not that of the place it is bound to.",
    "A tensor at execution, and a persistent resource, takes a BUFFER. An initializer takes one BUFFER_ARRAY for each "
    "operator as its inputs, with an entry for every input of the operator.",
    sources=(BIND_INPUTS, BINDING, OBSERVED_DEVICE),
    bad_steps="table.bind_inputs([None])",
    good_steps="table.bind_inputs([dml.BufferBinding(x, 0, 48)])",
)
def _type_mismatch(b: BindingView) -> Findings:
    if b.place.wanted is Wanted.NO_CALL or _crash(b):
        return None
    expected = _TYPES.get(b.place.wanted)
    if b.type == expected or (expected is None and b.type <= BindingType.BUFFER_ARRAY):
        return None
    name = BindingType.NONE.name if expected is None else expected.name
    return [Finding("Type", f"is {_type_name(b.type)}, {b.place.tensor} takes {name}", name, _type_name(b.type))]


@_rule(
    "binding/null",
    "The Desc of a BUFFER or BUFFER_ARRAY, or the Buffer that a place needs, is a null pointer.",
    "Only type NONE goes without a Desc. A null Buffer binds nothing, which is right only where nothing belongs.",
    sources=(BUFFER_BINDING, OBSERVED_DEVICE),
    bad_steps="table.bind_inputs([dml.BufferBinding(None, 0, 48)])",
    good_steps="table.bind_inputs([dml.BufferBinding(x, 0, 48)])",
)
def _null(b: BindingView) -> Findings:
    if b.place.wanted is Wanted.NO_CALL or b.type not in (BindingType.BUFFER, BindingType.BUFFER_ARRAY):
        return None
    if b.is_null:
        return [Finding("Desc", f"is null, of type {_type_name(b.type)}", "a pointer", None)]
    if b.place.wanted is Wanted.BUFFER and b.type == BindingType.BUFFER and b.ranges[0].buffer_size is None:
        return [Finding("Buffer", f"is null, {b.place.tensor} needs {b.place.size} bytes", "a buffer", None)]
    return None


@_rule(
    "binding/not-wanted",
    "A buffer is bound where nothing may be.",
    "An input that is OWNED_BY_DML is bound at initialization only, any other one at execution only; Split and Join "
    "need no temporary resource, and a persistent one only for owned inputs. Nothing is NONE, or the range "
    "{NULL, 0, 0}.",
    sources=(BIND_INPUTS, BINDING, OBSERVED_DEVICE),
    bad_steps="table.bind_temporary_resource(dml.BufferBinding(x, 0, 256))",
    good_steps="table.bind_temporary_resource(dml.BufferBinding(None, 0, 0))",
)
def _not_wanted(b: BindingView) -> Findings:
    if b.place.wanted is not Wanted.NOTHING or b.is_null:
        return None
    if b.type == BindingType.BUFFER and not b.ranges[0].is_empty:
        found = "a buffer is" if b.ranges[0].buffer_size is not None else "a null Buffer with an offset or a size is"
    elif b.type == BindingType.BUFFER_ARRAY and b.ranges:
        found = f"an array of {len(b.ranges)} is"
    else:
        return None
    message = f"{found} bound to {b.place.tensor}, where nothing belongs: {b.place.why}"
    return [Finding("", message, "NONE", _type_name(b.type))]


@_rule(
    "binding/array-count",
    "The array bound to an initializer has another number of entries than the operator has inputs.",
    "Every input of the operator has an entry, in order; {NULL, 0, 0} stands for one that is not OWNED_BY_DML.",
    sources=(BINDING, OBSERVED_DEVICE),
    bad_steps="table = device.create_binding_table(device.create_operator_initializer([compiled()]))\n"
    "table.bind_inputs([dml.BufferArrayBinding([])])",
    good_steps="table = device.create_binding_table(device.create_operator_initializer([compiled()]))\n"
    "table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(None, 0, 0)])])",
)
def _array_count(b: BindingView) -> Findings:
    expected, actual = len(b.place.entries), len(b.ranges)
    if b.place.wanted is not Wanted.ARRAY or b.type != BindingType.BUFFER_ARRAY or b.is_null or actual == expected:
        return None
    message = f"is {actual}, {b.place.tensor} has {expected} inputs"
    return [Finding("BindingCount", message, expected, actual)]


@_rule(
    "binding/offset-misaligned",
    "The offset of a bound range is no multiple of the alignment that it needs.",
    "That is 16 bytes, or GuaranteedBaseOffsetAlignment where it is larger; 256 for a persistent resource.",
    sources=(BUFFER_BINDING, BINDING, OBSERVED_DEVICE),
    bad_steps="table.bind_inputs([dml.BufferBinding(x, 8, 48)])",
    good_steps="table.bind_inputs([dml.BufferBinding(x, 16, 48)])",
)
def _offset_misaligned(b: BindingView) -> Findings:
    bound = b.range
    if bound is None or bound.offset % b.place.alignment == 0:
        return None
    message = f"is {bound.offset}, no multiple of the {b.place.alignment} bytes that {b.place.tensor} needs"
    return [Finding("Offset", message, b.place.alignment, bound.offset)]


@_rule(
    "binding/size-too-small",
    "A bound range is smaller than what it is bound to.",
    "SizeInBytes is at least the tensor's TotalTensorSizeInBytes, or the PersistentResourceSize; it may be larger, and "
    "need not be a multiple of 4.",
    sources=(BUFFER_BINDING, OBSERVED_DEVICE),
    bad_steps="table.bind_inputs([dml.BufferBinding(x, 0, 47)])",
    good_steps="table.bind_inputs([dml.BufferBinding(x, 0, 48)])",
)
def _size_too_small(b: BindingView) -> Findings:
    bound = b.range
    if bound is None or bound.size_in_bytes >= b.place.size:
        return None
    message = f"is {bound.size_in_bytes}, the {b.place.size_name} of {b.place.tensor} is {b.place.size}"
    return [Finding("SizeInBytes", message, b.place.size, bound.size_in_bytes)]


@_rule(
    "binding/out-of-range",
    "A bound range reaches past the end of its resource.",
    "Offset + SizeInBytes is at most the resource's size.",
    sources=(BUFFER_BINDING, OBSERVED_DEVICE),
    bad_steps="table.bind_inputs([dml.BufferBinding(x, 224, 48)])",
    good_steps="table.bind_inputs([dml.BufferBinding(x, 208, 48)])",
)
def _out_of_range(b: BindingView) -> Findings:
    bound = b.range
    if bound is None or bound.buffer_size is None:
        return None
    end = bound.wrapped_end
    if end <= bound.buffer_size:
        return None
    message = (
        f"{bound.size_in_bytes} bytes from offset {bound.offset} on end at {end}, the buffer has {bound.buffer_size}"
    )
    return [Finding("SizeInBytes", message, bound.buffer_size, end)]


@_rule(
    "binding/range-wraps",
    "Offset + SizeInBytes wraps at 2^64, and the build does not notice that the range lies outside its resource.",
    "Every build takes such a binding. A GPU then reads or writes outside the buffer, so that the dispatch is refused "
    "here.",
    basis=Basis.OURS,
    outcome=REFUSED,
    sources=(OURS, OBSERVED_DEVICE),
    bad_steps="table.bind_inputs([dml.BufferBinding(x, 2**64 - 16, 48)])\n"
    "table.bind_outputs([dml.BufferBinding(a), dml.BufferBinding(b)])\n"
    "device.record_dispatch(op, table)",
    good_steps="table.bind_inputs([dml.BufferBinding(x, 16, 48)])\n"
    "table.bind_outputs([dml.BufferBinding(a), dml.BufferBinding(b)])\n"
    "device.record_dispatch(op, table)",
)
def _range_wraps(b: BindingView) -> Findings:
    bound = b.range
    if bound is None or bound.offset + bound.size_in_bytes < 2**64:
        return None
    if bound.wrapped_end > (bound.buffer_size or 0):
        return None  # refused
    message = (
        f"{bound.size_in_bytes} bytes from offset {bound.offset} on wrap at 2^64; the buffer has {bound.buffer_size}"
    )
    return [Finding("SizeInBytes", message, bound.buffer_size, bound.offset + bound.size_in_bytes)]


BINDING_RULES: Final = tuple(_BINDING_RULES)
"""Of one DML_BINDING_DESC."""
CRASH: Final = BINDING_RULES[0]

_OUTPUTS = "table.bind_outputs([dml.BufferBinding(a), dml.BufferBinding(b)])\n"
_RUN = "device.record_dispatch(op, table)"

TABLE_TOO_SMALL: Final = Rule(
    "binding/table-too-small",
    Severity.ERROR,
    Basis.OBSERVED,
    "SizeInDescriptors of a binding table is less than RequiredDescriptorCount.",
    "Split needs two descriptors an output, Join two an input, an initializer none; more are taken.",
    (OBSERVED_DEVICE, BINDING),
    bad_steps="device.create_binding_table(op, 3)",
    good_steps="device.create_binding_table(op, 4)",
    outcome="E_INVALIDARG",
)
COUNT_MISMATCH: Final = Rule(
    "binding/count-mismatch",
    Severity.ERROR,
    Basis.DOCUMENTED,
    "BindInputs or BindOutputs is called with another number of bindings than the operator has tensors.",
    "Every tensor has a binding, those that are OWNED_BY_DML the type NONE; an initializer has one input and one "
    "output for each of its operators. 0 bindings are taken: they unbind.",
    (BIND_INPUTS, BIND_OUTPUTS, OBSERVED_DEVICE),
    bad_steps="table.bind_outputs([dml.BufferBinding(a)])",
    good_steps="table.bind_outputs([dml.BufferBinding(a), dml.BufferBinding(b)])",
    outcome=REMOVES,
)
UNBOUND: Final = Rule(
    "binding/unbound",
    Severity.ERROR,
    Basis.OBSERVED,
    "A dispatch is recorded while something that it needs is not bound.",
    "It needs all inputs that are not OWNED_BY_DML, all outputs, and the persistent resource where its size is not 0; "
    "at initialization the inputs that are OWNED_BY_DML, and the persistent resources. Of an operator compiled with "
    "DESCRIPTORS_VOLATILE, which may be bound until the GPU executes, the builds do not ask it; here recording "
    "executes, and the dispatch is refused.",
    (OBSERVED_DEVICE, BINDING),
    bad_steps=_OUTPUTS + _RUN,
    good_steps="table.bind_inputs([dml.BufferBinding(x)])\n" + _OUTPUTS + _RUN,
    outcome=REMOVES,
)
OTHER_TABLE: Final = Rule(
    "binding/table-of-another",
    Severity.ERROR,
    Basis.OBSERVED,
    "A dispatch is recorded with a binding table that was made for another dispatchable.",
    "A second operator compiled from the same descriptor is another one; Reset gives a table to it.",
    (OBSERVED_DEVICE, BINDING),
    bad_steps="other = initialized(compiled())\ntable.bind_inputs([dml.BufferBinding(x)])\n"
    + _OUTPUTS
    + "device.record_dispatch(other, table)",
    good_steps="other = initialized(compiled())\ntable.reset(other)\ntable.bind_inputs([dml.BufferBinding(x)])\n"
    + _OUTPUTS
    + "device.record_dispatch(other, table)",
    outcome=REMOVES,
)


def _hazard(id: str, summary: str, explanation: str, bad_steps: str, good_steps: str) -> Rule:
    sources = (BINDING, BIND_OUTPUTS, OBSERVED_DEVICE)
    warning, documented = Severity.WARNING, Basis.DOCUMENTED
    return Rule(
        id,
        warning,
        documented,
        summary,
        explanation,
        sources,
        bad_steps=bad_steps,
        good_steps=good_steps,
        outcome=WARNS,
    )


OUTPUTS_OVERLAP: Final = _hazard(
    "binding/outputs-overlap",
    "The writable ranges of two outputs overlap.",
    "DirectML may write everything from the offset up to TotalTensorSizeInBytes, or PersistentResourceSize where an "
    "initializer writes. The builds accept it, write elements only, and run one dispatch an output, in order, without "
    "a barrier: here the later output wins, a GPU need not agree.",
    "table.bind_inputs([dml.BufferBinding(x, 0, 48)])\n"
    "table.bind_outputs([dml.BufferBinding(x, 64, 16), dml.BufferBinding(x, 64, 32)])\n" + _RUN,
    "table.bind_inputs([dml.BufferBinding(x, 0, 48)])\n"
    "table.bind_outputs([dml.BufferBinding(x, 64, 16), dml.BufferBinding(x, 80, 32)])\n" + _RUN,
)
INPUT_OVERLAPS_OUTPUT: Final = _hazard(
    "binding/input-overlaps-output",
    "The range of an input overlaps the writable range of an output.",
    "Split and Join do not support execution in place. The builds accept it; what a dispatch reads after another has "
    "written is then what was written, and within one dispatch nothing is promised.",
    "table.bind_inputs([dml.BufferBinding(x, 0, 48)])\n"
    "table.bind_outputs([dml.BufferBinding(x, 32, 16), dml.BufferBinding(b)])\n" + _RUN,
    "table.bind_inputs([dml.BufferBinding(x, 0, 48)])\n"
    "table.bind_outputs([dml.BufferBinding(x, 48, 16), dml.BufferBinding(b)])\n" + _RUN,
)
PERSISTENT_OVERLAPS_OUTPUT: Final = _hazard(
    "binding/persistent-overlaps-output",
    "The persistent resource overlaps the writable range of an output.",
    "It holds the inputs that are OWNED_BY_DML, which the dispatch then overwrites while it reads them. The builds "
    "accept it.",
    "table = device.create_binding_table(owned)\ntable.bind_inputs([None])\n"
    "table.bind_persistent_resource(dml.BufferBinding(x, 0, 48))\n"
    "table.bind_outputs([dml.BufferBinding(x, 32, 16), dml.BufferBinding(b)])\ndevice.record_dispatch(owned, table)",
    "table = device.create_binding_table(owned)\ntable.bind_inputs([None])\n"
    "table.bind_persistent_resource(dml.BufferBinding(x, 0, 48))\n"
    "table.bind_outputs([dml.BufferBinding(x, 48, 16), dml.BufferBinding(b)])\ndevice.record_dispatch(owned, table)",
)
INITIALIZER_SHARES: Final = _hazard(
    "binding/initializer-shares-resource",
    "A resource is bound as an input and as an output of an initializer.",
    "At initialization no resource may be both, even where the ranges are apart. The builds accept it.",
    "both = dml.Buffer(512)\n"
    "init = device.create_operator_initializer([compiled(flags=flags.OWNED_BY_DML)])\n"
    "table = device.create_binding_table(init)\n"
    "table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(both, 0, 48)])])\n"
    "table.bind_outputs([dml.BufferBinding(both, 256, 48)])\ndevice.record_dispatch(init, table)",
    "init = device.create_operator_initializer([compiled(flags=flags.OWNED_BY_DML)])\n"
    "table = device.create_binding_table(init)\n"
    "table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(x, 0, 48)])])\n"
    "table.bind_outputs([dml.BufferBinding(persistent, 0, 48)])\ndevice.record_dispatch(init, table)",
)

RULES: Final = (
    *BINDING_RULES,
    TABLE_TOO_SMALL,
    COUNT_MISMATCH,
    UNBOUND,
    OTHER_TABLE,
    OUTPUTS_OVERLAP,
    INPUT_OVERLAPS_OUTPUT,
    PERSISTENT_OVERLAPS_OUTPUT,
    INITIALIZER_SHARES,
)
