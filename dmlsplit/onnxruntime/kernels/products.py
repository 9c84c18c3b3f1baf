"""Kernels of matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.onnxruntime.kernels.facts import KernelFacts, NotDescribedError


def gemm(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    fused = f.node.proto.op_type == "MatMul"  # with the Add behind it
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
    """A Gemm whose first input has its first dimensions merged."""
    left, columns = f.shape(f.value(0)), f.shape(f.value(1))[-1]
    rows = math.prod(left[:-1])
    members = {
        "ATensor": f.tensor(f.value(0), (rows, left[-1])),
        "BTensor": f.input(1),
        "CTensor": f.broadcast(2, (rows, columns)),
        "OutputTensor": f.tensor(f.node.outputs[0], (rows, columns)),
        "TransA": "NONE",
        "TransB": "NONE",
        "Alpha": 1.0,
        "Beta": 1.0,
    }
    return [AnyOperatorDesc("GEMM", members)]


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
