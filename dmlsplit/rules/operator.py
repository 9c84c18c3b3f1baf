"""Rules about DML_SPLIT_OPERATOR_DESC and DML_JOIN_OPERATOR_DESC, in member order. On one side is the whole tensor, on
the other an array of its parts, so a rule about both operators is declared once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.rules import _examples as eg
from dmlsplit.rules._model import THE_PAGE, Each, Finding, Findings, operator_rules, type_name
from dmlsplit.rules._sources import HEADER, JOIN_DESC, OBSERVED, OURS
from dmlsplit.rules._views import DIMENSIONS, Aspect, OperatorView, TensorView
from dmlsplit.system.printable import span_of
from dmlsplit.targets.feature_levels import documented_support

_RANK: Final = frozenset({Aspect.DESC, Aspect.DIMENSION_COUNT})
# A join compares sizes before everything else, in the dimensions that both tensors have.
_SIZES: Final = Each(DIMENSIONS | {Aspect.COMPLETE}, frozenset({Aspect.DESC, Aspect.SIZES}))

INPUT_ELEMENTS_MAX: Final = 2**31 - 1


@operator_rules(
    "join/dimension-count-differs",
    summary="The documentation and the builds of a feature level differ in the number of dimensions that they accept.",
    explanation="The page of DML_JOIN_OPERATOR_DESC allows 4 dimensions at 2_1, and 4 or 5 up to 4_0. The observed "
    "builds accept 5 at 2_1, and 1 to 8 from 3_1 on, as the release notes of DirectML 1.5.0 say. The verdict for a "
    "feature level follows the page.",
    severity=Severity.NOTE,
    basis=Basis.OBSERVED,
    sources=(OBSERVED, JOIN_DESC),
    needs_of_whole=_RANK,
    bad=lambda make: make((1, 1, 1, 6, 2), 3),
    good=lambda make: make(),
    examples_for="tensorflow-directml-1.15.3.dev200619",
)
def dimension_count_differs(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    count, level = o.whole.desc.dimension_count, o.target.feature_level
    documented = documented_support(o.type, level)[-1].dimension_counts
    observed = o.target.builds[o.type][-1].dimension_counts
    if (count in documented) != (count in observed):
        message = (
            f"is {count}: the documented table of feature level {level} allows {span_of(documented)}, "
            f"builds of that level accept {span_of(observed)}"
        )
        yield Finding("DimensionCount", message, span_of(documented), count, o.whole)


@operator_rules(
    "split/output-count-zero",
    "join/input-count-zero",
    summary="{count} is 0.",
    explanation="A {operator} has at least one {part}; with a single one, the operator is a copy.",
    sources=(THE_PAGE,),
    spoils={Aspect.ARRAY},
    bad=lambda make: eg.with_parts(make(), ()),
    good=lambda make: make(lengths=(6,)),
)
def count_zero(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    if o.count == 0:
        yield Finding(o.count_name, "is 0", "at least 1", 0)


@operator_rules(
    "split/outputs-null",
    "join/inputs-null",
    summary="{array} is a null pointer.",
    explanation="The member points to an array of {count} DML_TENSOR_DESC structs. Every observed build refuses a "
    "null OutputTensors, but dereferences a null InputTensors and crashes the process.",
    sources=(HEADER, THE_PAGE),
    needs={Aspect.ARRAY},
    spoils={Aspect.ARRAY},
    bad=lambda make: eg.with_parts(make(), None, count=1),
    good=lambda make: make(lengths=(6,)),
)
def array_null(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    if o.array is None:
        yield Finding(o.array_name, "is null", f"an array of {o.count_name} tensors", None)


@operator_rules(
    "split/output-count-exceeds-array",
    "join/input-count-exceeds-array",
    summary="{count} is larger than the number of tensors in {array}.",
    explanation="DirectML would read past the end of the array, which is undefined behaviour; no error is guaranteed.",
    sources=(HEADER, THE_PAGE),
    needs={Aspect.ARRAY},
    spoils={Aspect.ARRAY},
    undefined=True,
    bad=lambda make: eg.with_count(make(), 4),
    good=lambda make: eg.with_count(make(), 3),
)
def count_exceeds_array(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    length = len(o.array or ())
    if o.count > length:
        message = f"is {o.count}, {o.array_name} has {length} entries; DirectML would read past its end"
        yield Finding(o.count_name, message, length, o.count)


@operator_rules(
    "split/outputs-beyond-count",
    "join/inputs-beyond-count",
    summary="{array} has more tensors than {count} says.",
    explanation="DirectML ignores the surplus tensors: no {part} can be bound for them.",
    severity=Severity.WARNING,
    basis=Basis.OURS,
    sources=(OURS, OBSERVED),
    needs={Aspect.ARRAY},
    bad=lambda make: eg.with_count(make(lengths=(2, 1, 3, 4)), 3),
    good=lambda make: make(),
)
def array_exceeds_count(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    length = len(o.array or ())
    if length > o.count:
        message = f"has {length} entries; DirectML reads only {o.count} ({o.count_name})"
        yield Finding(o.array_name, message, o.count, length)


@operator_rules(
    "join/input-element-count-too-large",
    summary="An input of a join has more than 2^31 - 1 elements.",
    explanation="Only inputs of joins have this limit. The output of a join and the input of a split may have up to "
    "2^32 - 1 elements.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED,),
    needs_of_parts={Aspect.DESC, Aspect.SIZES, Aspect.COMPLETE, Aspect.ELEMENT_COUNT},
    limit=True,
    bad=lambda make: make((1, 1, 1, 2**31), 3, (2**31,), TensorDataType.UINT8),
    good=lambda make: make((1, 1, 1, 2**31), 3, (2**31 - 1, 1), TensorDataType.UINT8),
)
def input_element_count_too_large(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    for part in parts:
        count = math.prod(part.sizes)
        if count > INPUT_ELEMENTS_MAX:
            message = f"hold {count} elements; the maximum for an input of a join is {INPUT_ELEMENTS_MAX}"
            yield Finding("Sizes", message, INPUT_ELEMENTS_MAX, count, part)


@operator_rules(
    "split/axis-out-of-range",
    "join/axis-out-of-range",
    summary="Axis is not a dimension of the {whole}.",
    explanation="Axis is unsigned, from 0 to DimensionCount - 1. Convert a negative axis of ONNX or numpy first.",
    sources=(THE_PAGE,),
    needs_of_whole={Aspect.DESC},
    spoils={Aspect.AXIS},
    bad=lambda make: replace(make(lengths=(6,)), axis=4),
    good=lambda make: replace(make(lengths=(6,)), axis=3),
)
def axis_out_of_range(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    count = o.whole.desc.dimension_count
    if count == 0:
        yield Finding("Axis", f"is {o.axis}, but the tensor has no dimensions", "a dimension", o.axis)
    elif o.axis >= count:
        limit = f"0-{count - 1}"
        yield Finding("Axis", f"is {o.axis}, must be in {limit} for {count} dimensions", limit, o.axis)


@operator_rules(
    "split/data-type-mismatch",
    "join/data-type-mismatch",
    summary="An {part}'s DataType differs from the {whole}'s.",
    explanation="A {operator} does not convert elements.",
    sources=(THE_PAGE,),
    needs_of_whole={Aspect.DESC, Aspect.DATA_TYPE},
    needs_of_parts={Aspect.DESC, Aspect.DATA_TYPE},
    bad=lambda make: eg.with_part(make(), 1, eg.tensor((1, 1, 1, 2), TensorDataType.INT32)),
    good=lambda make: eg.with_part(make(), 1, eg.tensor((1, 1, 1, 2))),
)
def data_type_mismatch(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    expected = o.whole.desc.data_type
    for part in parts:
        actual = part.desc.data_type
        if actual != expected:
            message = f"is {type_name(actual)}, but {o.whole.name} has {type_name(expected)}"
            yield Finding("DataType", message, type_name(expected), type_name(actual), part)


@operator_rules(
    "split/dimension-count-mismatch",
    "join/dimension-count-mismatch",
    summary="An {part}'s DimensionCount differs from the {whole}'s.",
    explanation="DirectML does not add leading dimensions of size 1.",
    sources=(THE_PAGE,),
    needs_of_whole=_RANK,
    needs_of_parts=_RANK,
    spoils=Each(frozenset({Aspect.DIMENSION_COUNT}), frozenset()),
    bad=lambda make: eg.with_part(make(), 1, eg.tensor((1, 1, 1, 2, 1))),
    good=lambda make: eg.with_part(make(), 1, eg.tensor((1, 1, 1, 2))),
)
def dimension_count_mismatch(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    expected = o.whole.desc.dimension_count
    for part in parts:
        actual = part.desc.dimension_count
        if actual != expected:
            yield Finding("DimensionCount", f"is {actual}, but {o.whole.name} has {expected}", expected, actual, part)


@operator_rules(
    "split/size-mismatch",
    "join/size-mismatch",
    summary="An {part}'s size differs from the {whole}'s in a dimension other than Axis.",
    explanation="DirectML does not broadcast sizes of 1.",
    sources=(THE_PAGE,),
    needs={Aspect.AXIS},
    needs_of_whole=_SIZES,
    needs_of_parts=_SIZES,
    bad=lambda make: eg.with_part(make(), 1, eg.tensor((1, 1, 1, 1))),
    good=lambda make: eg.with_part(make(), 1, eg.tensor((1, 1, 1, 2))),
)
def size_mismatch(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    axis, sizes = o.axis, o.whole.sizes
    before, after = sizes[:axis], sizes[axis + 1 :]
    for part in parts:
        if part.sizes[:axis] == before and part.sizes[axis + 1 :] == after:
            continue
        for i, (actual, expected) in enumerate(zip(part.sizes, sizes, strict=False)):
            if i != axis and actual != expected:
                message = f"is {actual}, but {o.whole.name} has {expected}; only Axis ({axis}) may differ"
                yield Finding(("Sizes", i), message, expected, actual, part)


@operator_rules(
    "split/axis-sizes-sum",
    "join/axis-sizes-sum",
    summary="The {part}s' sizes on Axis do not add up to the {whole}'s.",
    explanation="The {part}s must cover the {whole} exactly; the sum does not wrap at 2^32.",
    sources=(THE_PAGE, OBSERVED),
    needs={Aspect.AXIS, Aspect.ARRAY},
    needs_of_whole=_SIZES,
    needs_of_parts=Each(_SIZES.split, _SIZES.join | {Aspect.COMPLETE}),
    needs_all_parts=Each(True, False),
    bad=lambda make: make(lengths=(2, 1, 2)),
    good=lambda make: make(lengths=(2, 1, 3)),
)
def axis_sizes_sum(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    if o.axis < len(o.whole.sizes):
        expected = o.whole.sizes[o.axis]
        actual = sum([size for part in parts for size in part.sizes[o.axis : o.axis + 1]])
        # Even if some parts of a join are unknown, the others together may already be too large.
        if actual != expected if len(parts) == len(o.parts) else actual > expected:
            message = f"have sizes on axis {o.axis} that add up to {actual}, but {o.whole.name} has {expected}"
            yield Finding(o.array_name, message, expected, actual)
