"""Kernels that copy elements: rearranged, repeated, or selected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.enums import TensorDataType
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


_PADDING: Final = {b"constant": "CONSTANT", b"reflect": "REFLECTION", b"edge": "EDGE"}


def pad(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    own, data_type, mode = f.shape(f.value(0)), f.data_type(f.value(0)), f.number("mode", b"constant")
    pads = f.ints("pads", ()) if f.opset < 11 else f.constants(1) or ()
    if mode not in _PADDING or len(pads) != 2 * len(own) or min(pads) < 0 or f.value(3) is not None:
        raise NotDescribedError("its mode, its axes or a negative padding is not derived")
    if data_type not in (TensorDataType.FLOAT32, TensorDataType.FLOAT16):
        raise NotDescribedError("the padding of this element type is not derived")
    value = f.number("value", 0.0) if f.opset < 11 else f.scalar(2)
    missing = (0,) * max(MIN_RANK - len(own), 0)
    members = {
        "InputTensor": f.input(0),
        "OutputTensor": f.output,
        "PaddingMode": _PADDING[mode],
        "PaddingValueDataType": data_type,
        "PaddingValue": value or 0.0,
        "DimensionCount": len(own) + len(missing),
        "StartPadding": (*missing, *pads[: len(own)]),
        "EndPadding": (*missing, *pads[len(own) :]),
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
        taken = range(*slice(start, end, step).indices(sizes[axis])) if step > 0 else range(0)
        if not taken:
            raise NotDescribedError("a negative step, or an empty result, is not derived")
        offsets[axis], strides[axis] = taken[0], step
        lengths[axis] = min(max(end + sizes[axis] if end < 0 else end, 0), sizes[axis]) - taken[0]
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
