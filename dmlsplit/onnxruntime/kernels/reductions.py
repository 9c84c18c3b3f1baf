"""Kernels of reductions, normalizations and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc
from dmlsplit.onnxruntime.facts import MIN_RANK
from dmlsplit.onnxruntime.kernels.facts import KernelFacts, NotDescribedError, Sizes, padded


def batch_normalization(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.value(0))
    vector = (1, f.shape(f.value(1))[0], *(1,) * (max(len(whole), MIN_RANK) - 2))
    names = ("ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor")
    members = {
        "InputTensor": f.tensor(f.value(0), _behind(whole)),
        **{name: f.tensor(f.value(i), vector) for i, name in enumerate(names, 1)},
        "OutputTensor": f.tensor(f.node.outputs[0], _behind(whole)),
        "Spatial": True,
        "Epsilon": f.number("epsilon", 1e-5),
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("BATCH_NORMALIZATION", members)]


def _behind(sizes: Sizes) -> Sizes:
    """Returns sizes with trailing 1s up to four dimensions."""
    return (*sizes, *(1,) * (MIN_RANK - len(sizes)))


def layer_normalization(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.value(0))
    rank = max(len(whole), MIN_RANK)
    axis = f.number("axis", -1) % len(whole)
    if any(value.name for value in f.node.outputs[1:]):
        raise NotDescribedError("its mean and deviation are not derived")

    def parameter(index: int) -> BufferTensorDesc | None:
        value = f.value(index)
        sizes = padded(f.shape(value), len(whole)) if value is not None else ()
        return None if value is None else f.tensor(value, _behind(sizes))

    members = {
        "InputTensor": f.tensor(f.value(0), _behind(whole)),
        "ScaleTensor": parameter(1),
        "BiasTensor": parameter(2),
        "OutputTensor": f.tensor(f.node.outputs[0], _behind(whole)),
        "AxisCount": rank - axis,
        "Axes": tuple(range(axis, rank)),
        "UseMean": True,
        "UseVariance": True,
        "Epsilon": f.number("epsilon", 1e-5),
    }
    return [AnyOperatorDesc("MEAN_VARIANCE_NORMALIZATION2", members)]


def skip_layer_normalization(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    """Returns the one or two operators that add two or three tensors, and the operator that normalizes the sum."""
    own = f.shape(f.value(0))
    whole = (own[0], *own[1:-1], *(1,) * (3 - len(own)), own[-1], 1)
    vector = (1, 1, own[-1], 1)
    x, y = (f.tensor(f.value(i), whole) for i in (0, 1))
    sums = [{"ATensor": x, "BTensor": y, "OutputTensor": x}]
    if f.value(4) is not None:
        sums.append({"ATensor": x, "BTensor": f.tensor(f.value(4), whole, (0, 0, 1, 0)), "OutputTensor": x})
    normalized = {
        "InputTensor": x,
        "ScaleTensor": f.tensor(f.value(2), vector),
        "BiasTensor": None if f.value(3) is None else f.tensor(f.value(3), vector),
        "OutputTensor": f.tensor(f.node.outputs[0], whole),
        "AxisCount": 2,
        "Axes": (2, 3),
        "UseMean": True,
        "UseVariance": True,
        "Epsilon": f.number("epsilon", 1e-5),
    }
    last = AnyOperatorDesc("MEAN_VARIANCE_NORMALIZATION2", normalized)
    return [*(AnyOperatorDesc("ELEMENT_WISE_ADD", members) for members in sums), last]


def instance_normalization(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    whole = _behind(f.shape(f.value(0)))
    vector = (1, whole[1], *(1,) * (len(whole) - 2))
    axes = tuple(range(2, max(len(f.shape(f.value(0))), MIN_RANK)))
    members = {
        "InputTensor": f.tensor(f.value(0), whole),
        "ScaleTensor": f.tensor(f.value(1), vector),
        "BiasTensor": f.tensor(f.value(2), vector),
        "OutputTensor": f.tensor(f.node.outputs[0], whole),
        "AxisCount": len(axes),
        "Axes": axes,
        "NormalizeVariance": True,
        "Epsilon": f.number("epsilon", 1e-5),
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("MEAN_VARIANCE_NORMALIZATION1", members)]


SOFTMAX: Final = {"Softmax": "SOFTMAX1", "LogSoftmax": "LOG_SOFTMAX1", "Hardmax": "HARDMAX1"}


def softmax(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    own = f.shape(f.value(0))
    rank = max(len(own), MIN_RANK)
    axis = f.number("axis", -1 if f.opset >= 13 else 1) % max(len(own), 1) + rank - len(own)
    axes = (axis,) if f.opset >= 13 else tuple(range(axis, rank))
    members = {"InputTensor": f.input(0), "OutputTensor": f.output, "AxisCount": len(axes), "Axes": axes}
    return [AnyOperatorDesc(f"ACTIVATION_{SOFTMAX[f.node.op_type]}", members)]


REDUCE: Final = {
    "ReduceMean": "AVERAGE",
    "ReduceSum": "SUM",
    "ReduceMax": "MAX",
    "ReduceMin": "MIN",
    "ReduceProd": "MULTIPLY",
    "ReduceL1": "L1",
    "ReduceL2": "L2",
    "ReduceLogSum": "LOG_SUM",
    "ReduceLogSumExp": "LOG_SUM_EXP",
    "ReduceSumSquare": "SUM_SQUARE",
}


def reduce(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    own = f.shape(f.value(0))
    given = f.ints("axes", ()) or (f.constants(1) if len(f.node.inputs) > 1 else None) or ()
    if not given and f.number("noop_with_empty_axes", 0):
        raise NotDescribedError("a reduction of no axes is not derived")
    axes = tuple([axis % len(own) for axis in given]) or tuple(range(len(own)))
    if len(set(axes)) < len(axes):
        raise NotDescribedError("a reduction of one axis twice is not derived")
    result = tuple([1 if i in axes else size for i, size in enumerate(own)])
    members = {
        "Function": REDUCE[f.node.op_type],
        "InputTensor": f.tensor(f.value(0), own, least=1),
        "OutputTensor": f.tensor(f.node.outputs[0], result, least=1),
        "AxisCount": len(axes),
        "Axes": axes,
    }
    return [AnyOperatorDesc("REDUCE", members)]


ARGUMENTS: Final = {"ArgMax": "ARGMAX", "ArgMin": "ARGMIN"}


def argument(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    own = f.shape(f.value(0))
    axis = f.number("axis", 0) % len(own)
    members = {
        "InputTensor": f.tensor(f.value(0), least=1),
        "OutputTensor": f.tensor(f.node.outputs[0], (*own[:axis], 1, *own[axis + 1 :]), least=1),
        "AxisCount": 1,
        "Axes": (axis,),
        "AxisDirection": "DECREASING" if f.number("select_last_index", 0) else "INCREASING",
    }
    return [AnyOperatorDesc(ARGUMENTS[f.node.op_type], members)]


def cumulative_sum(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    rank, axis = len(f.shape(f.value(0))), f.scalar(1)
    if axis is None:
        raise NotDescribedError("its axis is not known")
    members = {
        "InputTensor": f.input(0),
        "OutputTensor": f.output,
        "Axis": int(axis) % rank + max(MIN_RANK - rank, 0),
        "AxisDirection": "DECREASING" if f.number("reverse", 0) else "INCREASING",
        "HasExclusiveSum": bool(f.number("exclusive", 0)),
    }
    return [AnyOperatorDesc("CUMULATIVE_SUMMATION", members)]
