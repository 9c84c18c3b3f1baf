"""Describes the changes of a rewriting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dmlsplit.descriptors.dims import braced
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.descriptors.geometry import Geometry
from dmlsplit.descriptors.layout import ELEMENT_BITS


def steps(original: Geometry, made: Sequence[Geometry], temporary_bytes: int) -> Iterator[str]:
    """Yields the differences between a rewriting's operators and the original, as text, one phrase each."""
    whole = original.whole
    left_out = [part for part in original.parts if part.is_empty]
    if left_out:
        yield f"{', '.join([part.name for part in left_out])} without elements: omitted"
    if not made:
        yield "no elements at all: nothing to run"
        return
    made_whole, made_parts = made[-1].whole, made[-1].parts
    if made_whole.data_type != whole.data_type:
        yield _type_step(whole.data_type, made_whole.data_type)
    if len(made) > 1:
        if temporary_bytes:
            yield f"{len(made)} operators one after another, some through a temporary buffer"
            yield f"a temporary buffer of {temporary_bytes} bytes"
        else:
            yield f"{len(made)} operators one after another, each on a part of the buffers"
        return
    if made_whole.sizes != whole.sizes:
        before, after = braced(whole.sizes), braced(made_whole.sizes)
        yield f"Sizes {before} on Axis {original.axis} become {after} on Axis {made[0].axis}"
    kept = [part for part in original.parts if not part.is_empty]
    if len(made_parts) > len(kept):
        yield f"inputs with too many elements are bound as several: {len(made_parts)} instead of {len(kept)}"
        return
    pairs = list(zip([whole, *kept], [made_whole, *made_parts], strict=True))
    if any(a.total > b.total for a, b in pairs):
        yield "TotalTensorSizeInBytes becomes the implied size if it was too large"
    if any(a.alignment > b.alignment for a, b in pairs):
        yield "GuaranteedBaseOffsetAlignment below 16 becomes 0, which has the same meaning"


def _type_step(own: int, new: int) -> str:
    bits, new_bits = ELEMENT_BITS[own], ELEMENT_BITS[new]
    names = f"{TensorDataType(own).name} is copied as {TensorDataType(new).name}"
    if new_bits == bits:
        return f"{names}, the same bits"
    if new_bits > bits:
        return f"{names}, {new_bits // bits} elements in each"
    return f"{names}, {bits // new_bits} for each element"
