"""Kernels that copy elements: rearranged, repeated, or selected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.models.graph import Value
from dmlsplit.onnxruntime.facts import MIN_RANK
from dmlsplit.onnxruntime.kernels.facts import KernelFacts, NotDescribedError, padded
from dmlsplit.onnxruntime.operator_traits import RESHAPED_GEMM


def moved(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    """Returns a copy with the input's sizes on both sides; behind a Gemm of more than two dimensions, with the sizes of
    the matrix."""
    sizes = f.shape(f.value(0))
    if any(each.op_type == RESHAPED_GEMM for each in f.node.producers):
        sizes = (math.prod(sizes[:-1]), sizes[-1])
    members = {"InputTensor": f.tensor(f.value(0), sizes), "OutputTensor": f.tensor(f.node.outputs[0], sizes)}
    return [AnyOperatorDesc("ELEMENT_WISE_IDENTITY", members)]


def transpose(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    """Returns a copy whose input has its strides in the order of the Transpose."""
    own = f.shape(f.value(0))
    order = f.ints("perm", tuple(reversed(range(len(own)))))
    strides = [math.prod(own[i + 1 :]) for i in order]
    source = f.tensor(f.value(0), tuple([own[i] for i in order]), strides, least=1)
    target = f.tensor(f.node.outputs[0], least=1)
    return [AnyOperatorDesc("ELEMENT_WISE_IDENTITY", {"InputTensor": source, "OutputTensor": target})]


def expand(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.node.outputs[0])
    members = {"InputTensor": f.broadcast(0, whole), "OutputTensor": f.output}
    return [AnyOperatorDesc("ELEMENT_WISE_IDENTITY", members)]


_PADDING: Final = {b"constant": "CONSTANT", b"reflect": "REFLECTION", b"edge": "EDGE", b"wrap": "WRAP"}
_PADDED: Final = frozenset({TensorDataType.FLOAT32, TensorDataType.FLOAT16, TensorDataType.INT32})


def pad(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    own, data_type, mode = f.shape(f.value(0)), f.data_type(f.value(0)), f.number("mode", b"constant")
    given = f.ints("pads", ()) if f.opset < 11 else f.constants(1) or ()
    asked = f.constants(3) if f.opset >= 18 else None
    axes = tuple(range(len(own))) if asked is None else tuple([axis % len(own) for axis in asked])
    if mode not in _PADDING or len(given) != 2 * len(axes) or len(set(axes)) < len(axes):
        raise NotDescribedError("its mode or its axes are not derived")
    if data_type not in _PADDED:
        raise NotDescribedError("the padding of this element type is not derived")
    value = f.number("value", 0.0) if f.opset < 11 else f.scalar(2)
    rank = max(len(own), MIN_RANK)
    pads = {axis + rank - len(own): (given[i], given[i + len(axes)]) for i, axis in enumerate(axes)}
    start, end = zip(*[pads.get(i, (0, 0)) for i in range(rank)], strict=True)
    members = {
        "InputTensor": f.input(0),
        "OutputTensor": f.output,
        "PaddingMode": _PADDING[mode],
        "PaddingValueDataType": data_type,
        "PaddingValue": (int if data_type is TensorDataType.INT32 else float)(value or 0),
        "DimensionCount": rank,
        "StartPadding": [size % 2**32 for size in start],
        "EndPadding": [size % 2**32 for size in end],
    }
    return [AnyOperatorDesc("PADDING1", members)]


def tile(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    """Returns a repetition without the dimensions whose size is 1 before and after it."""
    given = zip(f.shape(f.value(0)), f.constants(1) or (), strict=True)
    kept = [(size, count) for size, count in given if size * count != 1]
    sizes, repeats = tuple([size for size, _ in kept]), padded(tuple([count for _, count in kept]))
    members = {
        "InputTensor": f.tensor(f.value(0), sizes),
        "OutputTensor": f.tensor(f.node.outputs[0], tuple([size * count for size, count in kept])),
        "RepeatsCount": len(repeats),
        "Repeats": repeats,
    }
    return [AnyOperatorDesc("TILE", members)]


_ORDERS: Final = {b"DCR": "DEPTH_COLUMN_ROW", b"CRD": "COLUMN_ROW_DEPTH"}


def depth_to_space(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    order = _ORDERS[f.number("mode", b"DCR")]
    members = {"InputTensor": f.input(0), "OutputTensor": f.output, "BlockSize": f.number("blocksize", 1)}
    return [AnyOperatorDesc("DEPTH_TO_SPACE1", {**members, "Order": order})]


def slice_(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    sizes = f.shape(f.value(0))
    rank = len(sizes)
    if f.opset < 10:
        starts, ends = f.ints("starts", ()), f.ints("ends", ())
        axes, steps = f.ints("axes", tuple(range(len(starts)))), (1,) * len(starts)
    else:
        starts, ends = f.constants(1) or (), f.constants(2) or ()
        given, steps = f.constants(3), f.constants(4) or (1,) * len(starts)
        axes = tuple(range(len(starts))) if given is None else given
    offsets, lengths, strides = [0] * rank, list(sizes), [1] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        first, last, _ = slice(start, end, step).indices(sizes[axis])
        if not range(first, last, step):
            raise NotDescribedError("an empty result is not derived")
        offsets[axis], strides[axis] = (first if step > 0 else last + 1), step
        lengths[axis] = abs(last - first)
    members = {
        "InputTensor": f.tensor(f.value(0), least=1),
        "OutputTensor": f.tensor(f.node.outputs[0], least=1),
        "DimensionCount": rank,
        "InputWindowOffsets": offsets,
        "InputWindowSizes": lengths,
        "InputWindowStrides": strides,
    }
    return [AnyOperatorDesc("SLICE1", members)]


def gather(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    own, indices = f.shape(f.value(0)), f.shape(f.value(1))
    axis = f.number("axis", 0) % len(own)
    result = f.shape(f.node.outputs[0])
    rank = max(len(own), len(indices), len(result), 1)
    members = {
        "InputTensor": f.tensor(f.value(0), own, least=rank),
        "IndicesTensor": f.tensor(f.value(1), indices, least=rank),
        "OutputTensor": f.tensor(f.node.outputs[0], result, least=rank),
        "Axis": axis + rank - len(own),
        "IndexDimensions": len(indices),
    }
    return [AnyOperatorDesc("GATHER", members)]


def gather_elements(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    members = {
        "InputTensor": f.tensor(f.value(0), least=1),
        "IndicesTensor": f.tensor(f.value(1), least=1),
        "OutputTensor": f.tensor(f.node.outputs[0], least=1),
        "Axis": f.number("axis", 0) % len(f.shape(f.value(0))),
    }
    return [AnyOperatorDesc("GATHER_ELEMENTS", members)]


def gather_nd(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    values = {"InputTensor": f.value(0), "IndicesTensor": f.value(1), "OutputTensor": f.node.outputs[0]}
    members = {**_of_one_rank(f, values), **_ranks(f), "BatchDimensionCount": f.number("batch_dims", 0)}
    return [AnyOperatorDesc("GATHER_ND1", members)]


def scatter_nd(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    values = dict(zip(("InputTensor", "IndicesTensor", "UpdatesTensor"), map(f.value, range(3)), strict=True))
    members = {**_of_one_rank(f, {**values, "OutputTensor": f.node.outputs[0]}), **_ranks(f)}
    return [AnyOperatorDesc("SCATTER_ND", members)]


def _of_one_rank(f: KernelFacts, values: Mapping[str, Value | None]) -> Mapping[str, BufferTensorDesc]:
    """Returns the descriptors of tensors with leading 1s up to the highest of their ranks."""
    rank = max([len(f.shape(value)) for value in values.values()])
    return {name: f.tensor(value, least=rank) for name, value in values.items()}


def _ranks(f: KernelFacts) -> Mapping[str, int]:
    """Returns the ranks that the node's first tensor and its indices have in the model."""
    return {"InputDimensionCount": len(f.shape(f.value(0))), "IndicesDimensionCount": len(f.shape(f.value(1)))}


def scatter_elements(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    rank = len(f.shape(f.value(0)))
    if f.number("reduction", b"none") != b"none":
        raise NotDescribedError("a reduction is not derived")
    members = {
        "InputTensor": f.input(0),
        "IndicesTensor": f.input(1),
        "UpdatesTensor": f.input(2),
        "OutputTensor": f.output,
        "Axis": f.number("axis", 0) % rank + max(MIN_RANK - rank, 0),
    }
    return [AnyOperatorDesc("SCATTER_ELEMENTS", members)]
