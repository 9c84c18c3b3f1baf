"""The messages of DirectML's own debug layer for each rule, as observed; the layer reports only a descriptor's first
fault.

Names in braces are placeholders: the tensor by the layer's name, the value found (`actual`), the limit (`expected`).
`product` is a number of elements modulo 2^32; `last`, the last dimension's index, wraps if there are no dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BUILD: Final = "DirectML 1.9.0"
"""The build whose DirectML.Debug.dll was observed."""

_STRIDES: Final = (
    "The strides for tensor '{tensor}' are self-overlapping, which is invalid for output tensors. The provided sizes "
    "were {sizes} and the provided strides were {strides}. Overlapped strides occur if any logical element in the "
    "tensor shares a physical memory location with any other logical element, for example in the case of "
    "broadcasting. Unlike input tensors, outputs must not have overlapped strides (including broadcasting.)"
)
_ALIGNMENT: Final = (
    "A GuaranteedBaseOffsetAlignment of '{actual}' for tensor '{tensor}' is invalid. If supplied, the "
    "GuaranteedBaseOffsetAlignment must be a power of two which is greater or equal to the "
    "DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, which is 16 bytes. Specifying a value of 0 is also valid, and equivalent to "
    "DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT."
)
_DATA_TYPE: Final = "{tensor}: '{actual}' is not a valid value for attribute DataType"
_UNSUPPORTED: Final = (
    "{operator}: invalid input tensor data type. The input tensor data type supplied was DML_TENSOR_DATA_TYPE_UNKNOWN, "
    "but this is unsupported by the operator. The supported input data types for this operator are: {types}."
)
_INPUT_ELEMENTS: Final = (
    "tensor 'InputTensors' requires an element count in the range [0, 2147483647], but {product} was provided."
)
_DATA_TYPES: Final = (
    "Mismatched tensor data types. Tensor '{other}' has DataType of {expected}, while tensor '{tensor}' has DataType "
    "of {actual}. Both tensors are expected to have the same DataType."
)
_DIMENSIONS: Final = (
    "Tensors {other} and {tensor} must have the same dimension count, but {expected} and {actual} were provided."
)

_MESSAGES: Final[Mapping[str, str | tuple[str, ...]]] = {
    "tensor/type-not-buffer": "An invalid or unsupported tensor type was supplied for tensor '{tensor}'. The only "
    "supported type for this tensor is DML_TENSOR_TYPE_BUFFER.",
    "tensor/desc-null": "{tensor}: the field 'Desc' of 'DML_TENSOR_DESC' may not be NULL.",
    "tensor/data-type-unknown": (_DATA_TYPE, _UNSUPPORTED),
    "tensor/data-type-not-supported": _DATA_TYPE,
    "tensor/flags-unknown": "An invalid flag was specified in tensor '{tensor}'.",
    "tensor/output-owned-by-dml": "DML_TENSOR_FLAG_OWNED_BY_DML was set on tensor '{tensor}', but this flag is not "
    "valid for output tensors.",
    "tensor/dimension-count-out-of-range": "An invalid dimension count of {actual} was specified in tensor '{tensor}' "
    "which is not between 1 and 8.",
    "tensor/sizes-null": "{tensor}: the field 'Sizes' of 'DML_BUFFER_TENSOR_DESC' may not be NULL.",
    "tensor/size-zero": "An invalid size was specified in tensor '{tensor}'. Zero-sized dimensions are not valid.",
    "tensor/element-count-too-large": (
        "Tensor '{tensor}' exceeds the maximum size. The total number of elements in a tensor may not exceed "
        "UINT32_MAX.",
        _INPUT_ELEMENTS,
    ),
    "tensor/output-stride-zero": _STRIDES,
    "tensor/output-strides-equal": _STRIDES,
    "tensor/output-span-too-small": _STRIDES,
    "tensor/output-span-wraps": _STRIDES,
    "tensor/total-size-too-small": "The TotalTensorSizeInBytes of '{actual}' for tensor '{tensor}' does not meet the "
    "minimum size required for this tensor, which is {expected} bytes. The minimum size is implied by the tensor's "
    "sizes, strides, and data type, and may be calculated using DMLCalcBufferTensorSize. The TotalTensorSizeInBytes of "
    "a tensor must always equal or exceed the minimum.",
    "tensor/total-size-too-large": "The TotalTensorSizeInBytes of '{actual}' for tensor '{tensor}' exceeds the "
    "maximum. The total size of a buffer tensor may not exceed UINT32_MAX elements. For example, this implies that "
    "TotalTensorSizeInBytes may not exceed 16GB for a FLOAT32 tensor.",
    "tensor/alignment-not-power-of-two": _ALIGNMENT,
    "tensor/alignment-below-element-size": _ALIGNMENT,
    "tensor/alignment-below-16": _ALIGNMENT,
    "split/output-count-zero": "DML_OPERATOR_SPLIT: attribute 'OutputCount' must be '1' or bigger, but '{actual}' was "
    "provided.",
    "split/outputs-null": "A valid description for tensor 'Output[0]' is required, but none was supplied.",
    "split/axis-out-of-range": "DML_OPERATOR_SPLIT: 'Axis' must be in the range [0, {last}], but '{actual}' was "
    "provided.",
    "split/data-type-mismatch": _DATA_TYPES,
    "split/dimension-count-mismatch": _DIMENSIONS,
    "split/size-mismatch": "The output sizes of a split must be equal to the input sizes, except along the split axis.",
    "split/axis-sizes-sum": "Along the split axis, the sum of output sizes must be equal to the input size.",
    "join/input-count-zero": "DML_OPERATOR_JOIN: attribute 'InputCount' must be '1' or bigger, but '{actual}' was "
    "provided.",
    "join/input-element-count-too-large": _INPUT_ELEMENTS,
    "join/axis-out-of-range": "DML_OPERATOR_JOIN: 'DML_OPERATOR_JOIN' must be in the range [0, {last}], but '{actual}' "
    "was provided.",
    "join/data-type-mismatch": _DATA_TYPES,
    "join/dimension-count-mismatch": _DIMENSIONS,
    "join/size-mismatch": "the input sizes must be equal to the output sizes except along the join axis, but {actual} "
    "and {expected} were provided at index {dimension}.",
    "join/axis-sizes-sum": "DML_OPERATOR_JOIN: the sum of input sizes must be equal to the output size along the join "
    "axis.",
}
MESSAGES: Final[Mapping[str, tuple[str, ...]]] = {
    rule: (said,) if isinstance(said, str) else said for rule, said in _MESSAGES.items()
}
"""Messages by rule. The layer does not distinguish rules that share a message."""
