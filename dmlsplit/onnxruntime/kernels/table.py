"""The operators that the kernels of nodes submit: one row for each ONNX operator, a function from a node's facts to
descriptors.

Tensors have at least four dimensions, with leading 1s; broadcast tensors have strides of 0. The flag OWNED_BY_DML,
which weights in fused graphs have, is omitted. Sources: DmlOperator*.cpp and OperatorHelper.cpp of ONNX Runtime;
compared with what its versions submit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlsplit.onnxruntime.kernels.copies import (
    depth_to_space,
    expand,
    gather,
    gather_elements,
    gather_nd,
    moved,
    pad,
    scatter_elements,
    scatter_nd,
    slice_,
    tile,
    transpose,
)
from dmlsplit.onnxruntime.kernels.elementwise import (
    BINARY,
    ELEMENTWISE,
    binary,
    cast,
    clip,
    elementwise,
    gelu,
    pow_,
    prelu,
    quick_gelu,
    round_,
    where,
    with_activation,
)
from dmlsplit.onnxruntime.kernels.facts import ACTIVATIONS, Kernel
from dmlsplit.onnxruntime.kernels.products import (
    WITH_TRANSFORMS,
    fused_matmul,
    fused_matmul_softmax,
    gemm,
    matmul,
    reshaped_gemm,
)
from dmlsplit.onnxruntime.kernels.reductions import (
    ARGUMENTS,
    REDUCE,
    SOFTMAX,
    argument,
    batch_normalization,
    cumulative_sum,
    instance_normalization,
    layer_normalization,
    reduce,
    skip_layer_normalization,
    softmax,
)
from dmlsplit.onnxruntime.kernels.windows import WITH_RESAMPLE3, conv, lrn, pool, resize
from dmlsplit.onnxruntime.operator_traits import (
    BIAS_GELU,
    FAST_GELU,
    FUSED_ADD,
    FUSED_MATMUL,
    FUSED_MATMUL_SOFTMAX,
    GELU,
    QUICK_GELU,
    RESHAPED_GEMM,
    SKIP_LAYER_NORMALIZATION,
)

KERNELS: Final[Mapping[str, Kernel]] = {
    **dict.fromkeys(ACTIVATIONS, with_activation),
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys((*BINARY, FUSED_ADD), binary),
    **dict.fromkeys(("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"), moved),
    **dict.fromkeys(("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"), pool),
    **dict.fromkeys(SOFTMAX, softmax),
    **dict.fromkeys(REDUCE, reduce),
    **dict.fromkeys(ARGUMENTS, argument),
    **dict.fromkeys((GELU, BIAS_GELU, FAST_GELU), gelu),
    QUICK_GELU: quick_gelu,
    SKIP_LAYER_NORMALIZATION: skip_layer_normalization,
    "Cast": cast,
    "Round": round_,
    "PRelu": prelu,
    "Pad": pad,
    "Resize": resize,
    "Tile": tile,
    "DepthToSpace": depth_to_space,
    "LayerNormalization": layer_normalization,
    "InstanceNormalization": instance_normalization,
    "ConvTranspose": conv,
    "Pow": pow_,
    "Where": where,
    "Clip": clip,
    "Transpose": transpose,
    "Expand": expand,
    "Conv": conv,
    "Gemm": gemm,
    "MatMul": matmul,
    FUSED_MATMUL: fused_matmul,
    FUSED_MATMUL_SOFTMAX: fused_matmul_softmax,
    RESHAPED_GEMM: reshaped_gemm,
    "BatchNormalization": batch_normalization,
    "LRN": lrn,
    "Slice": slice_,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "CumSum": cumulative_sum,
}
"""Keyed by ONNX operator; an operator without a row is not judged."""

CHANGED: Final[Mapping[str, tuple[int, ...]]] = {
    "Resize": WITH_RESAMPLE3,
    FUSED_MATMUL: WITH_TRANSFORMS,
    FUSED_MATMUL_SOFTMAX: WITH_TRANSFORMS,
}
"""The operators whose kernels submit something else from a version of ONNX Runtime on, and that version: the functions
in KERNELS read no other version."""
