"""What a rewriting changed, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dmlsplit.descriptors import BufferTensorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.enums import TensorDataType
from dmlsplit.layout import ELEMENT_BITS
from dmlsplit.legalize._build import whole_and_parts


def steps(desc: OperatorDesc, made: Sequence[OperatorDesc], temporary_bytes: int) -> Iterator[str]:
    """How the operators of a rewriting differ from the original."""
    whole, parts = whole_and_parts(desc)
    path = "OutputTensors" if isinstance(desc, SplitOperatorDesc) else "InputTensors"
    left_out = [i for i, part in enumerate(parts) if 0 in _sizes(part)]
    if left_out:
        names = ", ".join(f"{path}[{i}]" for i in left_out)
        yield f"{names} without elements: left out"
    if not made:
        yield "no elements at all: nothing to run"
        return
    made_whole, made_parts = whole_and_parts(made[-1])
    if made_whole.data_type != whole.data_type:
        yield _type_step(whole.data_type, made_whole.data_type)
    if len(made) > 1:
        if temporary_bytes:
            yield f"{len(made)} operators one after another, some by way of a temporary buffer"
            yield f"a temporary buffer of {temporary_bytes} bytes"
        else:
            yield f"{len(made)} operators one after another, each on a part of the buffers"
        return
    if _sizes(made_whole) != _sizes(whole):
        before, after = _braced(_sizes(whole)), _braced(_sizes(made_whole))
        yield f"Sizes {before} on Axis {desc.axis} become {after} on Axis {made[0].axis}"
    kept = [part for i, part in enumerate(parts) if i not in left_out]
    if len(made_parts) > len(kept):
        yield f"inputs of too many elements are bound as several: {len(made_parts)} in place of {len(kept)}"
        return
    pairs = list(zip([whole, *kept], [made_whole, *made_parts], strict=True))
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


def _braced(numbers: Sequence[int]) -> str:
    """{1,1,6,2}: sizes as Microsoft's pages write them."""
    return "{" + ",".join(map(str, numbers)) + "}"


def _sizes(tensor: BufferTensorDesc) -> tuple[int, ...]:
    return (tensor.sizes or ())[: tensor.dimension_count]
