"""What was changed, and why nothing could be, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from dmlsplit.descriptors import BufferTensorDesc, OperatorDesc, SplitOperatorDesc, operands
from dmlsplit.enums import OperatorType, TensorDataType
from dmlsplit.layout import ELEMENT_BITS
from dmlsplit.legalize._build import data_types, dimension_counts
from dmlsplit.legalize._cut import MOST_OPERATORS
from dmlsplit.legalize._loops import Loops, divided, tensor_of, without
from dmlsplit.legalize._temporary import is_nested
from dmlsplit.target import Target


class HasOperator(Protocol):
    """What is said of an accepted operator needs its descriptor only."""

    @property
    def operator(self) -> OperatorDesc: ...


def steps(desc: OperatorDesc, found: Sequence[HasOperator], temporary_bytes: int) -> Iterator[str]:
    """How the operators differ from the original."""
    whole, parts, path = _tensors(desc)
    left_out = [i for i, part in enumerate(parts) if 0 in _sizes(part)]
    if left_out:
        names = ", ".join(f"{path}[{i}]" for i in left_out)
        yield f"{names} without elements: left out"
    if not found:
        yield "no elements at all: nothing to run"
        return
    made, made_parts, _ = _tensors(found[-1].operator)
    if made.data_type != whole.data_type:
        yield _type_step(whole.data_type, made.data_type)
    if len(found) > 1:
        if temporary_bytes:
            yield f"{len(found)} operators one after another, some by way of a temporary buffer"
            yield f"a temporary buffer of {temporary_bytes} bytes"
        else:
            yield f"{len(found)} operators one after another, each on a part of the buffers"
        return
    if _sizes(made) != _sizes(whole):
        before, after = braced(_sizes(whole)), braced(_sizes(made))
        yield f"Sizes {before} on Axis {desc.axis} become {after} on Axis {found[0].operator.axis}"
    kept = [part for i, part in enumerate(parts) if i not in left_out]
    if len(made_parts) > len(kept):
        yield f"inputs of too many elements are bound as several: {len(made_parts)} in place of {len(kept)}"
        return
    pairs = list(zip([whole, *kept], [made, *made_parts], strict=True))
    if any((a.total_tensor_size_in_bytes or 0) > (b.total_tensor_size_in_bytes or 0) for a, b in pairs):
        yield "TotalTensorSizeInBytes becomes the implied size where it was too large"
    if any(a.guaranteed_base_offset_alignment > b.guaranteed_base_offset_alignment for a, b in pairs):
        yield "GuaranteedBaseOffsetAlignment below 16 becomes 0, which promises as much"


def _type_step(own: int, new: int) -> str:
    bits, new_bits = ELEMENT_BITS[own], ELEMENT_BITS[new]
    names = f"{TensorDataType(own).name} is moved as {TensorDataType(new).name}"
    if new_bits == bits:
        return f"{names}, the same bits"
    if new_bits > bits:
        return f"{names}, {new_bits // bits} elements in each"
    return f"{names}, {bits // new_bits} for each element"


def no_rewriting(loops: Loops, target: Target, kind: OperatorType, own: int, *, exceeded: bool) -> str:
    """What stands in the way of every rewriting; `exceeded`: there are some, into too many operators."""
    types = data_types(target, kind, own)
    divisions = [divided(loops, ELEMENT_BITS[t]) for t in types]
    fitting = [elements for elements in divisions if elements is not None]
    if not fitting:
        least = min(ELEMENT_BITS[t] for t in types)
        return (
            f"no rewriting for {target.name}: pieces of {TensorDataType(own).name} begin or end within {least} bits, "
            "the least that it moves"
        )
    rank = min(len(without(elements, elements.sizes.index(min(elements.sizes))).sizes) for elements in fitting)
    most = max(dimension_counts(target, kind))
    reason, hindrance = "sizes, strides or counts of elements exceed what it takes", ""
    if rank > most:
        reason = f"{rank} dimensions are left after folding, it takes {most}"
        outputs = range(1, len(loops.strides)) if kind is OperatorType.SPLIT else range(1)
        interleave = not all(is_nested(*tensor_of(loops, i)) for i in outputs)
        hindrance = "the elements of an output interleave" if interleave else "one tensor of it would be too large"
        hindrance = f"; a temporary buffer does not help, since {hindrance}"
    limit = "no parts of it begin at multiples of 16 bytes"
    if exceeded:
        limit = f"several operators would be more than {MOST_OPERATORS}"
    return f"no rewriting for {target.name}: {reason}, and {limit}{hindrance}"


def braced(numbers: Sequence[int]) -> str:
    """{1,1,6,2}: sizes as Microsoft's pages write them."""
    return "{" + ",".join(map(str, numbers)) + "}"


def _sizes(tensor: BufferTensorDesc) -> tuple[int, ...]:
    return (tensor.sizes or ())[: tensor.dimension_count]


def _tensors(desc: OperatorDesc) -> tuple[BufferTensorDesc, list[BufferTensorDesc], str]:
    """The whole tensor, the parts, and what their array is called."""
    inputs, outputs = operands(desc)
    if isinstance(desc, SplitOperatorDesc):
        return inputs[0], outputs, "OutputTensors"
    return outputs[0], inputs, "InputTensors"
