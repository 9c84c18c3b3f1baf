"""Rules about TotalTensorSizeInBytes and GuaranteedBaseOffsetAlignment."""

from __future__ import annotations

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.enums import MINIMUM_BUFFER_TENSOR_ALIGNMENT, UINT64_MAX, UINT_MAX
from dmlsplit.rules import _examples as eg
from dmlsplit.rules._model import Finding, Findings, TensorRule, type_name
from dmlsplit.rules._sources import BUFFER_DESC, HEADER, OBSERVED, OURS
from dmlsplit.rules._views import EXTENT, Aspect, TensorView
from dmlsplit.targets.releases import SizeArithmetic


@TensorRule(
    "tensor/implied-size-too-large",
    "The size that Sizes, Strides and DataType imply does not fit into TotalTensorSizeInBytes.",
    "No value of the UINT64 member is large enough. DirectML builds compute the implied size with fewer bits and may "
    "accept a wrapped size; the operator then reads or writes outside its buffers.",
    sources=(BUFFER_DESC, HEADER),
    needs=EXTENT | {Aspect.SPAN},
    spoils={Aspect.TOTAL},
    bad=lambda: eg.split((1, 1, 2**31, 1), 2, (2**30, 2**30), strides=(0, 0, 2**32 - 1, 1)),
    good=lambda: eg.split((1, 1, 2**31, 1), 2, (2**30, 2**30), strides=(0, 0, 1, 1)),
)
def implied_size_too_large(t: TensorView) -> Findings:
    implied = t.exact_implied_size
    # If a total is given, a release that wraps the implied size may accept it: see tensor/implied-size-wraps.
    if implied > UINT64_MAX and (t.target.release is None or t.desc.total_tensor_size_in_bytes is None):
        message = f"cannot be large enough: Sizes and Strides imply {implied} bytes"
        yield Finding("TotalTensorSizeInBytes", message, UINT64_MAX, implied)


@TensorRule(
    "tensor/total-size-too-small",
    "TotalTensorSizeInBytes is less than the implied size.",
    "The implied size is that of DMLCalcBufferTensorSize: the bytes up to the end of the last element, rounded up to "
    "a multiple of 4 (9 FLOAT16 elements need 20). With strides, the position of the last element counts, not the "
    "number of elements.",
    sources=(BUFFER_DESC, OBSERVED),
    needs=EXTENT | {Aspect.TOTAL},
    spoils={Aspect.TOTAL},
    bad=lambda: eg.split(total_tensor_size_in_bytes=47),
    good=lambda: eg.split(total_tensor_size_in_bytes=48),
)
def total_size_too_small(t: TensorView) -> Findings:
    total = t.desc.total_tensor_size_in_bytes
    implied = t.implied_size(t.target.arithmetic)
    if total is not None and total < implied:
        message = f"is {total}; DataType, Sizes and Strides imply at least {implied}"
        yield Finding("TotalTensorSizeInBytes", message, implied, total)


@TensorRule(
    "tensor/implied-size-wraps",
    "TotalTensorSizeInBytes is too small, but the release accepts it because its own computation wraps.",
    "Releases compute the size that strides imply with too few bits: up to DirectML 1.8.0 as bytes in 32 bits, later "
    "as elements in 32 bits, then as bytes or bits in 64 bits. The operator is created, and a GPU then reads or "
    "writes outside the bound buffer; at best, Direct3D returns zeros and drops writes there.",
    basis=Basis.OURS,
    sources=(OURS, OBSERVED),
    needs=EXTENT | {Aspect.TOTAL, Aspect.SPAN, Aspect.STRIDES_GIVEN},
    bad=lambda: eg.split((1, 1, 3, 1), 2, (1, 2), strides=(0, 0, 2**30, 1), total_tensor_size_in_bytes=8),
    good=lambda: eg.split((1, 1, 3, 1), 2, (1, 2), strides=(0, 0, 2**30, 1), total_tensor_size_in_bytes=2**33 + 4),
    examples_for="1.8.0",
)
def implied_size_wraps(t: TensorView) -> Findings:
    total, exact = t.desc.total_tensor_size_in_bytes, t.exact_implied_size
    if t.target.arithmetic is not SizeArithmetic.EXACT and total is not None and total < exact:
        accepted = f"the release accepts it, because it computes {t.implied_size(t.target.arithmetic)}"
        message = f"is {total}, but {exact} is implied; {accepted}; a GPU then reads or writes outside the bound buffer"
        yield Finding("TotalTensorSizeInBytes", message, exact, total)


@TensorRule(
    "tensor/total-size-too-large",
    "TotalTensorSizeInBytes exceeds 2^32 - 1 elements.",
    "The documented limit is 2^32 - 1 elements, 16 GB for FLOAT32. Builds of level 6_4 enforce it to the byte; older "
    "builds round the total down to whole elements and accept up to one element more.",
    sources=(BUFFER_DESC, OBSERVED),
    needs={Aspect.DESC, Aspect.DATA_TYPE, Aspect.ELEMENT_COUNT, Aspect.TOTAL},
    spoils={Aspect.TOTAL},
    limit=True,
    bad=lambda: eg.split(total_tensor_size_in_bytes=4 * (2**32 - 1) + 1),
    good=lambda: eg.split(total_tensor_size_in_bytes=4 * (2**32 - 1)),
)
def total_size_too_large(t: TensorView) -> Findings:
    total = t.desc.total_tensor_size_in_bytes
    limit = UINT_MAX * t.bits // 8
    if t.target.total_counts_whole_elements:
        limit += (t.bits - 1) // 8
    if total is not None and total > limit:
        message = f"is {total}; the maximum is {limit} (2^32 - 1 elements of {type_name(t.desc.data_type)})"
        yield Finding("TotalTensorSizeInBytes", message, limit, total)


@TensorRule(
    "tensor/total-size-beyond-documentation",
    "TotalTensorSizeInBytes exceeds 2^32 - 1 elements by a part of an element, which the release accepts.",
    "Releases up to level 6_2 divide the total by the element size and drop the remainder; the documentation and "
    "level 6_4 do not.",
    severity=Severity.NOTE,
    basis=Basis.OBSERVED,
    sources=(OBSERVED, BUFFER_DESC),
    needs={Aspect.DESC, Aspect.DATA_TYPE, Aspect.ELEMENT_COUNT, Aspect.TOTAL},
    bad=lambda: eg.split(total_tensor_size_in_bytes=4 * (2**32 - 1) + 3),
    good=lambda: eg.split(total_tensor_size_in_bytes=4 * (2**32 - 1)),
    examples_for="1.13.1",
)
def total_size_beyond_documentation(t: TensorView) -> Findings:
    total = t.desc.total_tensor_size_in_bytes
    limit = UINT_MAX * t.bits // 8
    if total is not None and total > limit and t.target.total_counts_whole_elements:
        message = f"is {total}; the documentation allows {limit}, but this release ignores a part of an element"
        yield Finding("TotalTensorSizeInBytes", message, limit, total)


@TensorRule(
    "tensor/alignment-not-power-of-two",
    "GuaranteedBaseOffsetAlignment is neither 0 nor a power of two.",
    "The member guarantees an alignment, in bytes, of the bound offset; 0 guarantees only the 16 bytes that always "
    "hold.",
    sources=(BUFFER_DESC,),
    needs={Aspect.DESC},
    spoils={Aspect.ALIGNMENT},
    bad=lambda: eg.split(guaranteed_base_offset_alignment=48),
    good=lambda: eg.split(guaranteed_base_offset_alignment=64),
)
def alignment_not_power_of_two(t: TensorView) -> Findings:
    alignment = t.desc.guaranteed_base_offset_alignment
    if alignment & (alignment - 1) != 0:
        message = f"is {alignment}, must be 0 or a power of two"
        yield Finding("GuaranteedBaseOffsetAlignment", message, "0 or a power of two", alignment)


@TensorRule(
    "tensor/alignment-below-element-size",
    "GuaranteedBaseOffsetAlignment is smaller than an element.",
    "The offset of an element is always a multiple of its size.",
    sources=(BUFFER_DESC,),
    needs={Aspect.DESC, Aspect.DATA_TYPE, Aspect.ALIGNMENT},
    spoils={Aspect.ALIGNMENT},
    bad=lambda: eg.split(guaranteed_base_offset_alignment=2),
    good=lambda: eg.split(guaranteed_base_offset_alignment=16),
)
def alignment_below_element_size(t: TensorView) -> Findings:
    alignment = t.desc.guaranteed_base_offset_alignment
    if 0 < alignment * 8 < t.bits:
        size = t.bits // 8
        message = f"is {alignment}, must be 0 or at least {size}, the size of {type_name(t.desc.data_type)}"
        yield Finding("GuaranteedBaseOffsetAlignment", message, size, alignment)


@TensorRule(
    "tensor/alignment-below-16",
    "GuaranteedBaseOffsetAlignment is a power of two below 16.",
    "The documentation requires at least the element size, so 8 would be enough for FLOAT32; every observed build "
    "refuses 1, 2, 4 and 8 whatever the data type. 0 has the same meaning and is accepted.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED, BUFFER_DESC),
    needs={Aspect.DESC, Aspect.ALIGNMENT},
    spoils={Aspect.ALIGNMENT},
    limit=True,
    bad=lambda: eg.split(guaranteed_base_offset_alignment=8),
    good=lambda: eg.split(guaranteed_base_offset_alignment=16),
)
def alignment_below_16(t: TensorView) -> Findings:
    alignment = t.desc.guaranteed_base_offset_alignment
    if 0 < alignment < MINIMUM_BUFFER_TENSOR_ALIGNMENT:
        limit = MINIMUM_BUFFER_TENSOR_ALIGNMENT
        message = f"is {alignment}; every observed build accepts 0 or at least {limit}"
        message += ", although the documentation requires only the element size"
        yield Finding("GuaranteedBaseOffsetAlignment", message, limit, alignment)
