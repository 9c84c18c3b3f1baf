"""Describes legalizations: the changes one by one, in a few words for a line next to a refusal, in full for `dmlsplit
legalize`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.dims import braced
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.descriptors.geometry import Geometry, TensorLayout
from dmlsplit.descriptors.layout import ELEMENT_BITS
from dmlsplit.system.printable import printable
from dmlsplit.targets.target import Target

if TYPE_CHECKING:
    from dmlsplit.legalize.regions import Region
    from dmlsplit.legalize.result import Legalization

MOST_SHOWN = 8
"""The most operators of a rewriting, and the most tensors of an operator, that are shown."""


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


def summary(found: Legalization) -> str:
    """Returns a rewriting in a few words: the data type and the sizes of its operator, "UINT32 {1,1,8,16}", or the
    number of its operators, "3 operators of UINT32"."""
    if not found.operators:
        return "nothing, because it has no elements"
    whole = Geometry.of(found.operators[-1]).whole
    name = TensorDataType(whole.data_type).name
    if len(found.operators) > 1:
        memory = f" and {found.temporary_bytes} bytes of temporary memory" if found.temporary_bytes else ""
        return f"{len(found.operators)} operators of {name}{memory}"
    return f"{name} {braced(whole.sizes)}"


def fix(found: Legalization, file: str, target: Target) -> str:
    """Returns the line that names the rewriting, and the command that shows it for `file`."""
    name, option = target.short_name, f"--{target.kind.replace('_', '-')}"
    command = f"dmlsplit legalize {shlex.quote(printable(file, None))} {option} {name}"
    return f"runs on {name} as {summary(found)}: {command}"


def lines(found: Legalization) -> Iterator[str]:
    """Yields the lines that show an operator before and after its rewriting, and the steps."""
    assert found.desc is not None  # it is None only if there is no rewriting
    yield "before:"
    yield from _operator_lines(found.desc, None)
    yield "after:" if found.operators else "after: no operator"
    for operator, regions in zip(found.operators[:MOST_SHOWN], found.bindings, strict=False):
        yield from _operator_lines(operator, regions)
    if len(found.operators) > MOST_SHOWN:
        yield f"  ... and {len(found.operators) - MOST_SHOWN} more operators"
    for step in found.steps:
        yield f"- {step}"


def _operator_lines(desc: OperatorDesc, regions: Sequence[Region] | None) -> Iterator[str]:
    geometry = Geometry.of(desc)
    tensors = geometry.tensors
    yield f"  {geometry.kind.c_name} on Axis {geometry.axis}"
    for i, tensor in enumerate(tensors):
        if i == MOST_SHOWN + 1:
            yield f"    ... and {len(tensors) - i} tensors more"
            return
        place = "" if regions is None else _region_text(regions[i])
        yield f"    {'to' if tensor.is_output else 'from':<4} {_tensor_text(tensor)}{place}"


def _tensor_text(tensor: TensorLayout) -> str:
    strides = "" if tensor.strides is None else f" strides {braced(tensor.strides)}"
    return f"{TensorDataType(tensor.data_type).name} {braced(tensor.sizes)}{strides}, {tensor.total} bytes"


def _region_text(region: Region) -> str:
    place = f" at byte {region.offset}" if region.offset else ""
    return f" in {region.buffer} {region.index}{place}"
