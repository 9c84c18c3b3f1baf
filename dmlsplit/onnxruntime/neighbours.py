"""Operators beside Split and Concat: what decides whether a node shares their fused graph, or computes with sizes.

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
"""Those that ONNX Runtime has operators of."""

FOUR_BITS: Final = frozenset({"INT4", "UINT4", "FLOAT4E2M1"})
"""Types that kernels of few operators and versions take."""

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
"""Inputs that the CPU reads, of operators whose types are not followed here, too: what computes them does not keep the
operator on the CPU."""

FUSED_WITH: Final = dict.fromkeys(_words("Max Min Sum Mean"), 2)
"""Operators that can be in a fused graph with this number of inputs alone."""

DATA_DEPENDENT: Final = frozenset(
    {"NonZero", "Unique", "Compress", "NonMaxSuppression", "SequenceAt", "ConcatFromSequence", "StringSplit"}
)
"""Operators whose outputs have sizes that nothing but a run gives, unless inference knows them."""

ACTIVATIONS: Final = _words("Relu LeakyRelu Sigmoid Tanh Elu Selu HardSigmoid Softplus Softsign ThresholdedRelu")
ABSORBS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        ("Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "Gemm", "MatMul"), ACTIVATIONS
    ),
    **dict.fromkeys(("Add", "Sum"), frozenset({"Relu", "LeakyRelu"})),
}
"""Operators, and the activations that are put into them where nothing else reads what is between, from level 2 on."""

STAYING: Final = _words(
    "Relu LeakyRelu Sigmoid Tanh Elu Selu HardSigmoid Softplus Softsign Abs Neg Exp Log Sqrt Ceil Floor Sin Cos Add "
    "Sub Mul Max Min Slice Tile Split Concat"
)
"""Operators that optimization leaves alone among each other, but for the pairs of ABSORBS and x * Sigmoid(x)."""

IN_PATTERNS: Final = frozenset({"Sigmoid", "Tanh", "Sqrt", "Exp", "Elu"})
"""Those of them that optimization looks for among weights: GELUs, normalizations and the like."""

KEPT: Final = frozenset({"Conv", "ConvTranspose", "MaxPool", "Split", "Concat"})
"""Operators that optimization may give more to do, and leaves as a node each."""

TRANSPOSABLE: Final = _words(
    "Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Celu Clip Cos Cosh Elu Erf Exp Floor HardSigmoid HardSwish "
    "Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh "
    "Softplus Softsign Sqrt Tan Tanh ThresholdedRelu CastLike Dropout Gelu Add And BitShift Div Equal Greater "
    "GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or Pow PRelu Sub Sum Where Xor ReduceL1 ReduceL2 "
    "ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare ArgMax ArgMin "
    "Softmax LogSoftmax Hardmax Concat Flatten Pad Reshape Shape Slice Split Squeeze Tile Transpose Unsqueeze "
    "QuantizeLinear DequantizeLinear Resize Upsample MaxPool"
)
"""Operators of the default domain that optimization may move a Transpose over; it stops at any other."""

KEEPS_ON_CPU: Final = frozenset({"Shape", "Size"})
"""Operators whose result the execution provider's kernels leave on the CPU."""

SMALL_INITIALIZER: Final = 100
"""Elements up to which an initializer does not keep a node from the CPU."""
