"""Kernels of matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc
from dmlsplit.onnxruntime.kernels.facts import KernelFacts, NotDescribedError, Sizes


def gemm(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    fused = f.node.proto.op_type == "MatMul"  # fused with the Add behind it
    whole = f.shape(f.node.outputs[0])
    a, b = f.number("transA", 0), f.number("transB", 0)
    members = {
        "ATensor": f.input(0),
        "BTensor": f.input(1),
        "CTensor": None if f.value(2) is None else f.broadcast(2, whole),
        "OutputTensor": f.output,
        "TransA": "TRANSPOSE" if a and not fused else "NONE",
        "TransB": "TRANSPOSE" if b and not fused else "NONE",
        "Alpha": f.number("alpha", 1.0),
        "Beta": f.number("beta", 1.0),
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("GEMM", members)]


def reshaped_gemm(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    """Returns a Gemm whose first input has all dimensions except the last merged."""
    left, columns = f.shape(f.value(0)), f.shape(f.node.outputs[0])[-1]
    rows = math.prod(left[:-1])
    fused = f.node.proto.op_type == "MatMul"  # fused with the Add behind it
    members = {
        "ATensor": f.tensor(f.value(0), (rows, left[-1])),
        "BTensor": f.input(1),
        "CTensor": f.broadcast(2, (rows, columns)),
        "OutputTensor": f.tensor(f.node.outputs[0], (rows, columns)),
        "TransA": "NONE",
        "TransB": "TRANSPOSE" if not fused and f.number("transB", 0) else "NONE",
        "Alpha": 1.0,
        "Beta": 1.0,
    }
    return [AnyOperatorDesc("GEMM", members)]


WITH_TRANSFORMS: Final = (1, 20)
"""The first version that sets a transform for a transposed matrix of a FusedMatMul; older versions set strides."""


def fused_matmul(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    """Returns a product of tensors with transposed axes, times a factor; its tensors have as many dimensions as the
    node's."""
    matrices = [_matrices(f, index, letter) for index, letter in enumerate("AB")]
    rank = max(len(sizes) for sizes, _ in matrices)
    (a, of_a), (b, of_b) = (
        ((1,) * (rank - len(sizes)) + sizes, (0,) * (rank - len(sizes)) + strides) for sizes, strides in matrices
    )
    batch = tuple(map(max, a[:-2], b[:-2]))
    transforms = f.graph.runtime.key >= WITH_TRANSFORMS
    members = {
        "ATensor": _repeated(f, 0, a, of_a, batch),
        "BTensor": _repeated(f, 1, b, of_b, batch),
        "CTensor": None,
        "OutputTensor": f.tensor(f.node.outputs[0], least=1),
        "TransA": "TRANSPOSE" if transforms and f.number("transA", 0) else "NONE",
        "TransB": "TRANSPOSE" if transforms and f.number("transB", 0) else "NONE",
        "Alpha": f.number("alpha", 1.0),
        "Beta": 0.0,
        "FusedActivation": None,
    }
    return [AnyOperatorDesc("GEMM", members)]


def fused_matmul_softmax(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    """Returns a FusedMatMul with a fused Softmax over one axis, even in old opsets."""
    (product,) = fused_matmul(f)
    axis = f.number("activation_axis", -1) % len(f.shape(f.node.outputs[0]))
    softmax = AnyOperatorDesc("ACTIVATION_SOFTMAX1", {"AxisCount": 1, "Axes": (axis,)}, fused=True)
    return [AnyOperatorDesc("GEMM", {**product.members, "FusedActivation": softmax})]


def _matrices(f: KernelFacts, index: int, letter: str) -> tuple[Sizes, Sizes]:
    """Returns the sizes and strides of the input at `index`, its axes in the order given by the attributes for `letter`
    ("A" or "B")."""
    own = f.shape(f.value(index))
    if len(own) < 2:
        raise NotDescribedError("vectors are not derived")
    order = list(range(len(own)))
    if f.number(f"transBatch{letter}", 0):
        order = [*order[1:-1], 0, order[-1]]
    if f.number(f"trans{letter}", 0) and f.graph.runtime.key < WITH_TRANSFORMS:
        order[-2:] = order[:-3:-1]
    strides = [math.prod(own[i + 1 :]) for i in range(len(own))]
    return tuple([own[i] for i in order]), tuple([strides[i] for i in order])


def _repeated(f: KernelFacts, index: int, sizes: Sizes, strides: Sizes, batch: Sizes) -> BufferTensorDesc:
    """Returns the descriptor of an input whose matrices are repeated along the leading dimensions `batch`."""
    along = [stride if size == own else 0 for size, own, stride in zip(batch, sizes, strides, strict=False)]
    return f.tensor(f.value(index), (*batch, *sizes[-2:]), (*along, *strides[-2:]), least=1)


def matmul(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    a, b = f.shape(f.value(0)), f.shape(f.value(1))
    if len(a) < 2 or len(b) < 2:
        raise NotDescribedError("vectors are not derived")
    batch = f.shape(f.node.outputs[0])[:-2]
    members = {
        "ATensor": f.repeated(f.value(0), (*batch, *a[-2:])),
        "BTensor": f.repeated(f.value(1), (*batch, *b[-2:])),
        "CTensor": None,
        "OutputTensor": f.output,
        "TransA": "NONE",
        "TransB": "NONE",
        "Alpha": 1.0,
        "Beta": 0.0,
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("GEMM", members)]
