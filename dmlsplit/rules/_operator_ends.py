"""When a build does not return from CreateOperator: one function for each cause, one table of the operators and
levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc
from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.rules._any_view import AnyView, steps_to
from dmlsplit.rules._model import Finding, Findings

_AT_6_2: Final = FeatureLevel.FL_6_2


def ends(o: AnyView) -> Findings:
    """Yields a finding for each reason why a build's CreateOperator does not return."""
    for operators_of, levels, looks in _ENDS:
        if o.schema.name in operators_of and o.level in levels and o.support.facts:
            yield from looks(o)


def _gather_ends(o: AnyView) -> Findings:
    indices, count, axis = o.tensors.get("IndicesTensor"), o.members["IndexDimensions"], o.members["Axis"]
    if indices is None:
        return
    if first_beyond(indices, count) is None:
        if axis + 1 < count <= indices.dimension_count:
            message = f"is {count}, more than the dimensions up to Axis ({axis}): this build writes before an array"
            yield Finding("IndexDimensions", message, axis + 1, count)
        return
    whole = o.tensors.get("InputTensor")
    more = _in_use(indices) - count
    if whole is not None and _in_use(whole) < more <= axis:
        message = f"is {count}, IndicesTensor has {more} more dimensions: this build writes past the end of an array"
        yield Finding("IndexDimensions", message, _in_use(indices), count)


def _in_use(tensor: BufferTensorDesc) -> int:
    """Returns the number of dimensions left when leading ones of size 1 are dropped; 0 if all are of size 1."""
    sizes = tensor.sizes or ()
    return next((len(sizes) - i for i, size in enumerate(sizes) if size != 1), 0)


def _index_ends(o: AnyView) -> Findings:
    indices, count = o.tensors.get("IndicesTensor"), o.members["InputDimensionCount"]
    sizes = None if indices is None else indices.sizes
    if sizes and count < sizes[-1] <= len(sizes):
        message = f"is {sizes[-1]}, InputDimensionCount is {count}: this build refuses it or crashes"
        yield Finding(("IndicesTensor", "Sizes", len(sizes) - 1), message, count, sizes[-1])


def _window_ends(o: AnyView) -> Findings:
    whole, spatial = o.tensors.get("InputTensor"), o.members["DimensionCount"]
    if whole is not None and whole.dimension_count > spatial + 2 > 3:
        count = whole.dimension_count
        message = f"is {count}, a batch, channels and {spatial} dimensions have windows: this build crashes"
        yield Finding(("InputTensor", "DimensionCount"), message, spatial + 2, count)


def first_beyond(indices: BufferTensorDesc, count: int) -> int | None:
    """Returns the first dimension before the last `count` whose size is not 1; None if there is none."""
    sizes = indices.sizes or ()
    return next((i for i, size in enumerate(sizes[: max(0, len(sizes) - count)]) if size != 1), None)


def _block_ends(o: AnyView) -> Findings:
    size = o.members["BlockSize"]
    if size and size * size % 2**32 == 0:
        yield Finding("BlockSize", f"is {size}: its square is 0 in 32 bits, and this build divides by it", 65535, size)


def _fused_ends(o: AnyView) -> Findings:
    for member in o.schema.members:
        value = o.members[member.name]
        entries = value if isinstance(value, tuple) else (value,)
        for i, each in enumerate(entries) if member.type in ("operator", "operators") else ():
            if isinstance(each, AnyOperatorDesc) and each.operator.name == "ACTIVATION_PARAMETERIZED_RELU":
                message = "ACTIVATION_PARAMETERIZED_RELU has a tensor, which is null in a fused operator"
                steps = (member.name, i, "Type") if member.type == "operators" else (member.name, "Type")
                yield Finding(steps, f"{message}: this build crashes", "an activation without tensors", None)


def _fused_ends_in_1_3(o: AnyView) -> Findings:
    if o.target.release is not None and o.target.release.directml == "1.3.0-dev2":
        yield from _fused_ends(o)


def _null_ends(o: AnyView) -> Findings:
    for name in ("InputTensor", "ScaleTensor"):
        if o.members[name] is None:
            yield Finding(name, "is null, and this build dereferences it before any check, and crashes", "a tensor")


def _heads_end(o: AnyView) -> Findings:
    for name in ("HeadCount", "QueryHeadCount", "KeyValueHeadCount"):
        if o.members.get(name) == 0:
            yield Finding(name, "is 0, and this build divides by it, and crashes", "at least 1", 0)


def _quantization_ends(o: AnyView) -> Findings:
    whole = o.tensors.get("InputTensor")
    if whole is None:
        if o.members["InputTensor"] is None:
            yield Finding("InputTensor", "is null: this build crashes", "a tensor", None)
        return
    name = "QuantizationTensors[0]"
    scale = o.tensors.get(name)
    if scale is None:
        return
    if scale.dimension_count > whole.dimension_count:
        count = scale.dimension_count
        message = f"is {count}, InputTensor has {whole.dimension_count}: this build crashes"
        yield Finding(steps_to(name, "DimensionCount"), message, whole.dimension_count, count)
    elif 0 in (scale.sizes or ()):
        yield Finding(steps_to(name, "Sizes"), "has a 0, and this build divides by it", "sizes of at least 1", 0)


def _fold_ends(o: AnyView) -> Findings:
    name = "OutputTensor" if o.schema.name == "FOLD" else "InputTensor"
    image, spatial = o.tensors.get(name), o.members["DimensionCount"]
    if image is not None and image.dimension_count == spatial + 1:
        count = image.dimension_count
        message = f"is {count}, a batch, channels and {spatial} dimensions are read: this build crashes"
        yield Finding((name, "DimensionCount"), message, spatial + 2, count)


def _padding_ends(o: AnyView) -> Findings:
    whole, padded, count = o.tensors.get("InputTensor"), o.tensors.get("OutputTensor"), o.members["DimensionCount"]
    if whole is not None and padded is not None and padded.dimension_count == whole.dimension_count > count:
        message = f"is {count}, the tensors have {whole.dimension_count}: this build reads past the end of the paddings"
        yield Finding("DimensionCount", message, whole.dimension_count, count)


_LEVELS: Final = frozenset(FeatureLevel)
_FROM_6_2: Final = frozenset(level for level in FeatureLevel if level >= _AT_6_2)
_FROM_4_0: Final = frozenset(level for level in FeatureLevel if level >= FeatureLevel.FL_4_0)
_UP_TO_2_1: Final = frozenset(level for level in FeatureLevel if level <= FeatureLevel.FL_2_1)
_FUSING: Final = frozenset(
    {
        *("GEMM", "BATCH_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1"),
        *("ELEMENT_WISE_ADD1", "RNN", "LSTM", "GRU"),
    }
)
_ENDS: Final[tuple[tuple[frozenset[str], frozenset[FeatureLevel], Callable[[AnyView], Findings]], ...]] = (
    (frozenset({"GATHER"}), _LEVELS, _gather_ends),
    (frozenset({"SCATTER_ND"}), _LEVELS, _index_ends),
    (frozenset({"GATHER_ND"}), _UP_TO_2_1, _index_ends),
    (frozenset({"MAX_POOLING_GRAD"}), _FROM_4_0, _window_ends),
    (frozenset({"PADDING"}), frozenset(FeatureLevel.parse(each) for each in ("3_1", "4_0", "4_1")), _padding_ends),
    (frozenset({"DEPTH_TO_SPACE", "DEPTH_TO_SPACE1"}), _LEVELS, _block_ends),
    (frozenset({"CONVOLUTION"}), _LEVELS, _fused_ends),
    (_FUSING, _UP_TO_2_1, _fused_ends),
    (_FUSING, frozenset({FeatureLevel.FL_3_0}), _fused_ends_in_1_3),
    (frozenset({"ELEMENT_WISE_QUANTIZE_LINEAR"}), _FROM_6_2, _null_ends),
    (frozenset({"MULTIHEAD_ATTENTION", "MULTIHEAD_ATTENTION1"}), _FROM_6_2, _heads_end),
    (frozenset({"QUANTIZE", "DEQUANTIZE"}), _LEVELS, _quantization_ends),
    (frozenset({"FOLD", "UNFOLD"}), _LEVELS, _fold_ends),
)
"""Operators, the feature levels at which CreateOperator does not return, and the cause."""
