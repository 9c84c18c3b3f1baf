"""Operators beside Split and Concat: whether they share a fused graph with them, or compute with sizes.

The table of `operators` says where an operator is placed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DOMAINS: Final = frozenset({""}) | _words(
    "ai.onnx.ml ai.onnx.training ai.onnx.preview.training com.microsoft com.microsoft.nchwc com.microsoft.dml "
    "com.microsoft.experimental com.ms.internal.nhwc"
)
"""The domains with operators of ONNX Runtime."""

FOUR_BITS: Final = frozenset({"INT4", "UINT4", "FLOAT4E2M1"})
"""The types that only a few operators and versions have kernels for."""

CPU_INPUTS: Final[Mapping[str, tuple[int, ...]]] = {
    **dict.fromkeys(_words("Reshape Expand Tile OneHot TopK Squeeze Unsqueeze Split CumSum Trilu Upsample"), (1,)),
    **dict.fromkeys(_words("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean"), (1,)),
    **dict.fromkeys(_words("ReduceMin ReduceProd ReduceSum ReduceSumSquare"), (1,)),
    **dict.fromkeys(("Clip", "Col2Im"), (1, 2)),
    **dict.fromkeys(("Pad", "Resize"), (1, 2, 3)),
    "Slice": (1, 2, 3, 4),
    "Range": (0, 1, 2),
    "Loop": (0, 1),
    **dict.fromkeys(("ConstantOfShape", "If"), (0,)),
}
"""The inputs that the CPU reads, by operator, also for operators without observed types. Whatever computes them does
not keep the operator on the CPU."""

FUSED_WITH: Final = dict.fromkeys(_words("Max Min Sum Mean"), 2)
"""Operators that are fused only with this number of inputs."""

DATA_DEPENDENT: Final = frozenset(
    {"NonZero", "Unique", "Compress", "NonMaxSuppression", "SequenceAt", "ConcatFromSequence", "StringSplit"}
)
"""Operators with output sizes that only a run determines, unless inference knows them."""

ACTIVATIONS: Final = _words("Relu LeakyRelu Sigmoid Tanh Elu Selu HardSigmoid Softplus Softsign ThresholdedRelu")
ABSORBS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        ("Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "Gemm", "MatMul"), ACTIVATIONS
    ),
    **dict.fromkeys(("Add", "Sum"), frozenset({"Relu", "LeakyRelu"})),
}
"""Maps an operator to the activations that are fused into it from level 2 on, where nothing else reads the tensor
between them."""

STAYING: Final = _words(
    "Relu LeakyRelu Sigmoid Tanh Elu Selu HardSigmoid Softplus Softsign Abs Neg Exp Log Sqrt Ceil Floor Sin Cos Add "
    "Sub Mul Max Min Slice Tile Split Concat"
)
"""Operators that optimization leaves alone beside one another, except for the pairs of ABSORBS and x * Sigmoid(x)."""

IN_PATTERNS: Final = frozenset({"Sigmoid", "Tanh", "Sqrt", "Exp", "Elu"})
"""The operators of STAYING that are part of fused patterns with weights: GELUs, normalizations and the like."""

KEPT: Final = frozenset({"Conv", "ConvTranspose", "MaxPool", "Split", "Concat"})
"""Operators that optimization may fuse others into; each stays one node."""

TRANSPOSABLE: Final = _words(
    "Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Celu Clip Cos Cosh Elu Erf Exp Floor HardSigmoid HardSwish "
    "Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh "
    "Softplus Softsign Sqrt Tan Tanh ThresholdedRelu CastLike Dropout Gelu Add And BitShift Div Equal Greater "
    "GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or Pow PRelu Sub Sum Where Xor ReduceL1 ReduceL2 "
    "ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare ArgMax ArgMin "
    "Softmax LogSoftmax Hardmax Concat Flatten Pad Reshape Shape Slice Split Squeeze Tile Transpose Unsqueeze "
    "QuantizeLinear DequantizeLinear Resize Upsample MaxPool"
)
"""Operators of the default domain that a Transpose may be moved over."""

KEEPS_ON_CPU: Final = frozenset({"Shape", "Size"})
"""Operators whose kernels leave their result on the CPU."""

SMALL_INITIALIZER: Final = 100
"""The most elements of an initializer that lets a node stay on the CPU."""
