"""Rules about DML_TENSOR_DESC and DML_BUFFER_TENSOR_DESC, up to Sizes, in member order."""

from __future__ import annotations

import math
from functools import cache

from dmlsplit.descriptors.descs import BufferTensorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.enums import (
    TENSOR_DIMENSION_COUNT_MAX1,
    UINT_MAX,
    FeatureLevel,
    TensorDataType,
    TensorFlags,
    TensorType,
)
from dmlsplit.rules import _examples as eg
from dmlsplit.rules._model import Finding, Findings, TensorRule, type_name
from dmlsplit.rules._sources import (
    BUFFER_DESC,
    CONSTANTS,
    DATA_TYPE,
    HEADER,
    JOIN_DESC,
    OBSERVED,
    OURS,
    SPLIT_DESC,
    TENSOR_DESC,
    TENSOR_FLAGS,
    TENSOR_TYPE,
)
from dmlsplit.rules._views import DIMENSIONS, Aspect, TensorView
from dmlsplit.system.printable import span_of


@TensorRule(
    "tensor/null",
    "A tensor is a null pointer.",
    "Split and Join have no optional tensors. Every observed DirectML build dereferences a null InputTensor and "
    "crashes the process, so check this before the call.",
    sources=(HEADER, SPLIT_DESC, JOIN_DESC),
    needs={Aspect.READABLE},
    spoils={Aspect.DESC},
    bad=lambda: eg.with_input(None),
    good=lambda: eg.split(),
)
def null(t: TensorView) -> Findings:
    if t.tensor is None:
        yield Finding("", "is null; a tensor is required", "a DML_TENSOR_DESC", None)


@TensorRule(
    "tensor/type-not-buffer",
    "DML_TENSOR_DESC.Type is not DML_TENSOR_TYPE_BUFFER.",
    "BUFFER (1) is the only kind of tensor that DirectML has. A struct filled with zeros has INVALID (0).",
    sources=(TENSOR_TYPE, TENSOR_DESC),
    bad=lambda: eg.with_input(TensorDesc(TensorType.INVALID, eg.tensor(eg.WHOLE))),
    good=lambda: eg.with_input(TensorDesc(TensorType.BUFFER, eg.tensor(eg.WHOLE))),
)
def type_not_buffer(t: TensorView) -> Findings:
    if t.tensor is not None and t.tensor.type != TensorType.BUFFER:
        yield Finding("Type", f"is {int(t.tensor.type)}, must be BUFFER (1)", "BUFFER", int(t.tensor.type))


@TensorRule(
    "tensor/desc-null",
    "DML_TENSOR_DESC.Desc is a null pointer.",
    "Desc points to the DML_BUFFER_TENSOR_DESC with the tensor's members. DirectML builds dereference a null Desc of "
    "an input and crash the process.",
    sources=(TENSOR_DESC, HEADER),
    needs={Aspect.READABLE},
    spoils={Aspect.DESC},
    bad=lambda: eg.with_input(TensorDesc(TensorType.BUFFER, None)),
    good=lambda: eg.split(),
)
def desc_null(t: TensorView) -> Findings:
    if t.tensor is not None and t.tensor.desc is None:
        yield Finding("Desc", "is null", "a DML_BUFFER_TENSOR_DESC", None)


@TensorRule(
    "tensor/data-type-unknown",
    "DataType is UNKNOWN or not a value of DML_TENSOR_DATA_TYPE.",
    "UNKNOWN (0) exists for optional attributes of other operators; a tensor always has a type.",
    sources=(DATA_TYPE, BUFFER_DESC),
    needs={Aspect.DESC},
    spoils={Aspect.DATA_TYPE},
    bad=lambda: eg.split(data_type=0, total_tensor_size_in_bytes=48),
    good=lambda: eg.split(),
)
def data_type_unknown(t: TensorView) -> Findings:
    if not t.bits:
        message = f"is {type_name(t.desc.data_type)}, which is not a tensor data type"
        yield Finding("DataType", message, "a DML_TENSOR_DATA_TYPE other than UNKNOWN", type_name(t.desc.data_type))


@TensorRule(
    "tensor/data-type-not-supported",
    "The operator does not accept this data type at the given feature level or release.",
    "Split and Join accept 8-bit integers from feature level 2_1 on and 64-bit types from 4_1 on; they never accept "
    "4-bit types. Because both only move bits, a supported type of the same width does the same work. FLOAT64 "
    "requires a device with double-precision operations, and up to DirectML 1.12.0 the 8-bit types require typed UAV "
    "loads.",
    sources=(SPLIT_DESC, JOIN_DESC),
    needs={Aspect.DESC, Aspect.DATA_TYPE},
    limit=True,
    bad=lambda: eg.split(data_type=TensorDataType.INT64),
    good=lambda: eg.split(data_type=TensorDataType.INT32),
    examples_for=FeatureLevel.FL_4_0,
)
def data_type_not_supported(t: TensorView) -> Findings:
    if t.desc.data_type not in t.support.data_types:
        supported = _type_names(t.support.data_types)
        actual = type_name(t.desc.data_type)
        need = t.target.lacking.get(t.desc.data_type)
        reason = f", which requires {need}" if need else ""
        yield Finding("DataType", f"is {actual}{reason}; {t.support.tensor} accepts {supported}", supported, actual)


@TensorRule(
    "tensor/flags-unknown",
    "Flags has a bit that is not in DML_TENSOR_FLAGS.",
    "OWNED_BY_DML (1) is the only flag.",
    sources=(TENSOR_FLAGS,),
    needs={Aspect.DESC},
    spoils={Aspect.FLAGS},
    bad=lambda: eg.split(flags=2),
    good=lambda: eg.split(flags=TensorFlags.OWNED_BY_DML),
)
def flags_unknown(t: TensorView) -> Findings:
    flags = int(t.desc.flags)
    if flags > TensorFlags.OWNED_BY_DML:
        yield Finding("Flags", f"is 0x{flags:X}; the only flag is OWNED_BY_DML (1)", "NONE or OWNED_BY_DML", flags)


@TensorRule(
    "tensor/output-owned-by-dml",
    "An output has the flag OWNED_BY_DML.",
    "The flag makes DirectML copy a tensor when the operator is initialized and own it from then on; only inputs can "
    "be read at that time.",
    sources=(TENSOR_FLAGS, OBSERVED),
    needs={Aspect.DESC, Aspect.FLAGS, Aspect.OUTPUT},
    bad=lambda: eg.copy_to(eg.WHOLE, flags=TensorFlags.OWNED_BY_DML),
    good=lambda: eg.split(flags=TensorFlags.OWNED_BY_DML),
)
def output_owned_by_dml(t: TensorView) -> Findings:
    if t.desc.flags:
        yield Finding("Flags", "is OWNED_BY_DML, which is allowed for inputs only", "NONE", "OWNED_BY_DML")


@TensorRule(
    "tensor/dimension-count-out-of-range",
    f"DimensionCount is not in 1 to {TENSOR_DIMENSION_COUNT_MAX1}.",
    "DML_TENSOR_DIMENSION_COUNT_MAX1 limits every tensor. A scalar is described with one dimension of size 1.",
    sources=(CONSTANTS, BUFFER_DESC),
    needs={Aspect.DESC},
    spoils={Aspect.DIMENSION_COUNT},
    limit=True,
    bad=lambda: eg.split((1,) * 7 + (6, 2), 7),
    good=lambda: eg.split((1,) * 6 + (6, 2), 6),
)
def dimension_count_out_of_range(t: TensorView) -> Findings:
    count = t.desc.dimension_count
    if not (1 <= count <= TENSOR_DIMENSION_COUNT_MAX1):
        limit = f"1-{TENSOR_DIMENSION_COUNT_MAX1}"
        yield Finding("DimensionCount", f"is {count}, outside {limit}", limit, count)


@TensorRule(
    "tensor/dimension-count-not-supported",
    "The operator does not accept this number of dimensions at the given feature level or release.",
    "Split accepts 4 dimensions up to level 2_1, and 1 to 8 from 3_0 on. Join accepts 4 up to 2_1, 4 or 5 at 3_0, "
    "and 1 to 8 above. To reach a larger count, add leading dimensions of size 1.",
    sources=(SPLIT_DESC, JOIN_DESC),
    needs={Aspect.DESC, Aspect.DIMENSION_COUNT},
    limit=True,
    bad=lambda: eg.split((1, 1, 1, 6, 2), 3),
    good=lambda: eg.split(),
    examples_for=FeatureLevel.FL_2_1,
)
def dimension_count_not_supported(t: TensorView) -> Findings:
    count = t.desc.dimension_count
    if count not in t.support.dimension_counts:
        limit = span_of(t.support.dimension_counts)
        yield Finding("DimensionCount", f"is {count}; {t.support.tensor} accepts {limit}", limit, count)


@TensorRule(
    "tensor/sizes-null",
    "Sizes is a null pointer.",
    "Only Strides may be null.",
    sources=(BUFFER_DESC, HEADER),
    needs={Aspect.DESC},
    spoils={Aspect.SIZES},
    bad=lambda: eg.with_input(BufferTensorDesc(1, None, dimension_count=4, total_tensor_size_in_bytes=48)),
    good=lambda: eg.with_input(BufferTensorDesc(1, eg.WHOLE, dimension_count=4)),
)
def sizes_null(t: TensorView) -> Findings:
    if t.desc.sizes is None:
        yield Finding("Sizes", "is null", "an array of DimensionCount sizes", None)


@TensorRule(
    "tensor/sizes-too-few",
    "Sizes has fewer entries than DimensionCount says.",
    "DirectML would read past the end of the array, which is undefined behaviour; no error is guaranteed.",
    undefined=True,
    sources=(HEADER, BUFFER_DESC),
    needs=DIMENSIONS,
    spoils={Aspect.COMPLETE},
    bad=lambda: eg.with_input(eg.tensor((1, 1, 6), dimension_count=4, total_tensor_size_in_bytes=48)),
    good=lambda: eg.split(dimension_count=4, total_tensor_size_in_bytes=48),
)
def sizes_too_few(t: TensorView) -> Findings:
    if len(t.sizes) != t.desc.dimension_count:
        actual, expected = len(t.sizes), t.desc.dimension_count
        yield Finding("Sizes", f"has {actual} entries, but DimensionCount is {expected}", expected, actual)


@TensorRule(
    "tensor/sizes-too-many",
    "Sizes has more entries than DimensionCount says.",
    "DirectML ignores the surplus entries, so the tensor differs from what the array suggests.",
    severity=Severity.WARNING,
    basis=Basis.OURS,
    sources=(OURS, BUFFER_DESC),
    needs=DIMENSIONS,
    bad=lambda: eg.with_input(eg.tensor((1, 1, 6, 2, 9), dimension_count=4)),
    good=lambda: eg.split(),
)
def sizes_too_many(t: TensorView) -> Findings:
    actual, expected = len(t.desc.sizes or ()), t.desc.dimension_count
    if actual > expected:
        yield Finding("Sizes", f"has {actual} entries; DirectML reads only {expected}", expected, actual)


@TensorRule(
    "tensor/size-zero",
    "A size is 0.",
    "DirectML has no empty tensors. Omit empty parts from the operator; if no tensor has elements, do not create the "
    "operator at all.",
    sources=(BUFFER_DESC, OBSERVED),
    needs=DIMENSIONS,
    spoils={Aspect.POSITIVE},
    limit=True,
    bad=lambda: eg.split(lengths=(2, 0, 4)),
    good=lambda: eg.split(lengths=(2, 4)),
)
def size_zero(t: TensorView) -> Findings:
    if 0 in t.sizes:
        for i, size in enumerate(t.sizes):
            if size == 0:
                yield Finding(("Sizes", i), "is 0", "at least 1", 0)


@TensorRule(
    "tensor/element-count-too-large",
    "The product of Sizes exceeds 2^32 - 1.",
    "Strides do not matter: a broadcast tensor of 65536 x 65536 is refused although it needs little memory. The "
    "documentation limits only the total size.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED, BUFFER_DESC),
    needs=DIMENSIONS,
    spoils={Aspect.ELEMENT_COUNT},
    limit=True,
    bad=lambda: SplitOperatorDesc(*_broadcast(65536, 65536), 3),
    good=lambda: SplitOperatorDesc(*_broadcast(65535, 65537), 3),
)
def element_count_too_large(t: TensorView) -> Findings:
    count = math.prod(t.sizes)
    if count > UINT_MAX:
        yield Finding("Sizes", f"hold {count} elements; the maximum is {UINT_MAX}", UINT_MAX, count)


def _broadcast(rows: int, columns: int) -> tuple[BufferTensorDesc, list[BufferTensorDesc]]:
    """Returns a broadcast input of rows x columns, and two outputs that are its halves."""
    left = columns // 2
    parts = [eg.tensor((1, 1, rows, width), TensorDataType.UINT8) for width in (left, columns - left)]
    return eg.tensor((1, 1, rows, columns), TensorDataType.UINT8, strides=(0, 0, 0, 1)), parts


@cache
def _type_names(data_types: frozenset[TensorDataType]) -> str:
    return ", ".join(map(type_name, sorted(data_types)))
