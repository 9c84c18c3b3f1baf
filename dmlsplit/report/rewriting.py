"""Legalisations in words: in a few for a line beside a refusal, in full for `dmlsplit legalize`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from dmlsplit.descriptors import BufferTensorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.enums import TensorDataType
from dmlsplit.formats.jsontext import printable
from dmlsplit.legalize import Legalization, Region
from dmlsplit.rules import Judge

MOST_SHOWN = 8
"""Operators of a rewriting, and tensors of an operator, that are shown."""


def summary(found: Legalization) -> str:
    """What an operator that has a rewriting runs as: `UINT32 {1,1,8,16}`, `3 operators of UINT32`."""
    if not found.operators:
        return "nothing, since it has no elements"
    whole = _buffer(_tensors(found.operators[-1])[0])
    name = TensorDataType(whole.data_type).name
    if len(found.operators) > 1:
        memory = f" and {found.temporary_bytes} bytes of temporary memory" if found.temporary_bytes else ""
        return f"{len(found.operators)} operators of {name}{memory}"
    return f"{name} {_sizes(whole)}"


def fix(found: Legalization, file: str, judge: Judge) -> str:
    """The line that names the rewriting, and the command that shows it."""
    release = judge.release
    name = str(judge.feature_level) if release is None else release.directml or release.name
    option = "--feature-level" if release is None else "--directml"
    command = f"dmlsplit legalize {shlex.quote(printable(file, None))} {option} {name}"
    return f"runs on {name} as {summary(found)}: {command}"


def lines(found: Legalization) -> Iterator[str]:
    """The operator before and after, and the steps."""
    if found.desc is not None:
        yield "before:"
        yield from _operator_lines(found.desc, None)
    if found.ok:
        yield "after:" if found.operators else "after: no operator"
        for operator, regions in zip(found.operators[:MOST_SHOWN], found.bindings, strict=False):
            yield from _operator_lines(operator, regions)
        if len(found.operators) > MOST_SHOWN:
            yield f"  ... and {len(found.operators) - MOST_SHOWN} operators more"
    for step in found.steps:
        yield f"- {step}"


def _operator_lines(desc: OperatorDesc, regions: Sequence[Region] | None) -> Iterator[str]:
    whole, parts = _tensors(desc)
    inputs, outputs = ([whole], parts) if isinstance(desc, SplitOperatorDesc) else (parts, [whole])
    is_split = isinstance(desc, SplitOperatorDesc)
    yield f"  {'DML_OPERATOR_SPLIT' if is_split else 'DML_OPERATOR_JOIN'} on Axis {desc.axis}"
    for i, (role, tensor) in enumerate(
        [("from", tensor) for tensor in inputs] + [("to", tensor) for tensor in outputs]
    ):
        if i > MOST_SHOWN:
            yield f"    ... and {len(inputs) + len(outputs) - i} tensors more"
            return
        yield f"    {role:<4} {_tensor_text(tensor)}{'' if regions is None else _region_text(regions[i])}"


def _tensor_text(tensor: TensorDesc | None) -> str:
    if tensor is None or tensor.desc is None:
        return "null"
    desc = tensor.desc
    name = desc.data_type.name if isinstance(desc.data_type, TensorDataType) else str(desc.data_type)
    strides = "" if desc.strides is None else f" strides {_braced(desc.strides[: desc.dimension_count])}"
    return f"{name} {_sizes(desc)}{strides}, {desc.total_tensor_size_in_bytes} bytes"


def _region_text(region: Region) -> str:
    place = f" at byte {region.offset}" if region.offset else ""
    return f" in {region.buffer} {region.index}{place}"


def _sizes(desc: BufferTensorDesc) -> str:
    return "null" if desc.sizes is None else _braced(desc.sizes[: desc.dimension_count])


def _braced(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def _buffer(tensor: TensorDesc | None) -> BufferTensorDesc:
    assert tensor is not None  # the operators of a rewriting have no null pointers
    assert tensor.desc is not None
    return tensor.desc


def _tensors(desc: OperatorDesc) -> tuple[TensorDesc | None, Sequence[TensorDesc | None]]:
    if isinstance(desc, SplitOperatorDesc):
        return desc.input_tensor, (desc.output_tensors or ())[: desc.output_count]
    return desc.output_tensor, (desc.input_tensors or ())[: desc.input_count]
