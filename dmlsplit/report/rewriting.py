"""Legalisations in words: in a few for a line beside a refusal, in full for `dmlsplit legalize`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from dmlsplit.descriptors import BufferTensorDesc, OperatorDesc, SplitOperatorDesc, operands
from dmlsplit.enums import TensorDataType
from dmlsplit.legalize import Legalization, Region
from dmlsplit.printable import printable
from dmlsplit.target import Target
from dmlsplit.validation import operator_type

MOST_SHOWN = 8
"""Operators of a rewriting, and tensors of an operator, that are shown."""


def summary(found: Legalization) -> str:
    """What an operator that has a rewriting runs as: `UINT32 {1,1,8,16}`, `3 operators of UINT32`."""
    if not found.operators:
        return "nothing, since it has no elements"
    last = found.operators[-1]
    inputs, outputs = operands(last)
    whole = (inputs if isinstance(last, SplitOperatorDesc) else outputs)[0]
    name = TensorDataType(whole.data_type).name
    if len(found.operators) > 1:
        memory = f" and {found.temporary_bytes} bytes of temporary memory" if found.temporary_bytes else ""
        return f"{len(found.operators)} operators of {name}{memory}"
    return f"{name} {_sizes(whole)}"


def fix(found: Legalization, file: str, target: Target) -> str:
    """The line that names the rewriting, and the command that shows it."""
    release = target.release
    name = target.short_name
    option = "--feature-level" if release is None else "--directml"
    command = f"dmlsplit legalize {shlex.quote(printable(file, None))} {option} {name}"
    return f"runs on {name} as {summary(found)}: {command}"


def lines(found: Legalization) -> Iterator[str]:
    """An operator that has a rewriting before and after, and the steps."""
    assert found.desc is not None  # only what has no rewriting may lack it
    yield "before:"
    yield from _operator_lines(found.desc, None)
    yield "after:" if found.operators else "after: no operator"
    for operator, regions in zip(found.operators[:MOST_SHOWN], found.bindings, strict=False):
        yield from _operator_lines(operator, regions)
    if len(found.operators) > MOST_SHOWN:
        yield f"  ... and {len(found.operators) - MOST_SHOWN} operators more"
    for step in found.steps:
        yield f"- {step}"


def _operator_lines(desc: OperatorDesc, regions: Sequence[Region] | None) -> Iterator[str]:
    inputs, outputs = operands(desc)
    yield f"  {operator_type(desc).c_name} on Axis {desc.axis}"
    for i, tensor in enumerate([*inputs, *outputs]):
        if i == MOST_SHOWN + 1:
            yield f"    ... and {len(inputs) + len(outputs) - i} tensors more"
            return
        place = "" if regions is None else _region_text(regions[i])
        yield f"    {'from' if i < len(inputs) else 'to':<4} {_tensor_text(tensor)}{place}"


def _tensor_text(tensor: BufferTensorDesc) -> str:
    strides = "" if tensor.strides is None else f" strides {_braced(tensor.strides[: tensor.dimension_count])}"
    name = TensorDataType(tensor.data_type).name
    return f"{name} {_sizes(tensor)}{strides}, {tensor.total_tensor_size_in_bytes} bytes"


def _region_text(region: Region) -> str:
    place = f" at byte {region.offset}" if region.offset else ""
    return f" in {region.buffer} {region.index}{place}"


def _sizes(desc: BufferTensorDesc) -> str:
    return _braced((desc.sizes or ())[: desc.dimension_count])


def _braced(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"
