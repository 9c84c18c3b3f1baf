"""Operators beside Split and Concat: whether ONNX Runtime's DirectML execution provider takes them, as far as known.

Only what decides about a Split or Concat nearby is here: whether a node shares its fused graph, and whether it computes
with sizes on the CPU. Observed: a model of each operator at each opset, element type and version of ONNX Runtime. A
kernel of an older opset is not used for a model of an opset that changed the operator: it then runs on the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from dmlsplit.targets.runtime_versions import Runtime, key_of


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FLOATS: Final = frozenset({"FLOAT", "FLOAT16"})
_NUMBERS: Final = _FLOATS | {"INT32", "INT64"}
_SCALARS: Final = _words("FLOAT FLOAT16 DOUBLE BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64")
Limits: TypeAlias = tuple[tuple[str, int], ...]
"""Of versions of ONNX Runtime, the oldest first: the newest opset that the operator's kernels are for from then on."""

_UNCHANGED: Final[Limits] = ()
_CHANGED_22: Final[Limits] = (("1.18.0", 21),)
_PAD: Final[Limits] = (("1.18.0", 18), ("1.20.0", 20), ("1.22.0", 22))
_RESIZE: Final[Limits] = (("1.18.0", 17), ("1.20.0", 26))
_FOUR_BIT_1_20: Final[Limits] = (("1.18.0", 20), ("1.20.0", 22))
_FOUR_BIT_1_22: Final[Limits] = (("1.18.0", 20), ("1.21.0", 22))


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An operator that the execution provider implements."""

    types: frozenset[str]
    """Element types of the first input that are taken at every opset from 14 on."""
    limits: Limits = _UNCHANGED
    cpu_inputs: tuple[int, ...] = ()
    """Inputs that have to be constants for a fused graph: the CPU reads them."""
    in_graph: bool = True
    inputs_in_graph: int | None = None
    """The number of inputs with which alone it can be in a fused graph."""

    def takes(self, data_type: str | None, opset: int, runtime: Runtime) -> bool | None:
        """Whether the execution provider takes a node; None where that is not known."""
        newest = [newest for version, newest in self.limits if key_of(version) <= runtime.key]
        if newest and opset > newest[-1]:
            return False
        if data_type in self.types:
            return True if opset >= 14 or data_type in _FLOATS or self.types == _SCALARS else None
        never = data_type in ("STRING", "BFLOAT16") or (data_type == "DOUBLE" and "DOUBLE" not in self.types)
        return False if never else None


def _rows(names: str, row: Neighbour) -> dict[str, Neighbour]:
    return dict.fromkeys(names.split(), row)


NEIGHBOURS: Final[Mapping[str, Neighbour]] = {
    **_rows("Relu", Neighbour(_FLOATS | {"INT32"})),
    **_rows("LeakyRelu Sigmoid Tanh Sqrt Exp Log Ceil Floor Erf Reciprocal PRelu", Neighbour(_FLOATS)),
    **_rows("Softmax LogSoftmax MatMul Pow ReduceMean", Neighbour(_FLOATS)),
    **_rows(
        "Elu Selu HardSigmoid Softplus Softsign Round Sin Cos Tan Atan HardSwish Mish", Neighbour(_FLOATS, _CHANGED_22)
    ),
    **_rows("Conv MaxPool AveragePool GlobalAveragePool GlobalMaxPool", Neighbour(_FLOATS, _CHANGED_22)),
    **_rows("Abs Neg Sign Add Sub Mul Div", Neighbour(_NUMBERS)),
    **_rows("Max Min", Neighbour(_NUMBERS, inputs_in_graph=2)),
    **_rows("ReduceSum", Neighbour(_NUMBERS, cpu_inputs=(1,))),
    **_rows("Clip", Neighbour(_NUMBERS, cpu_inputs=(1, 2))),
    **_rows("BatchNormalization Gemm LayerNormalization", Neighbour(_FLOATS)),
    **_rows("ConvTranspose InstanceNormalization", Neighbour(_FLOATS, _CHANGED_22)),
    **_rows("Resize", Neighbour(_FLOATS, _RESIZE, cpu_inputs=(1, 2, 3))),
    **_rows("TopK", Neighbour(_FLOATS, cpu_inputs=(1,))),
    **_rows("Sum Mean", Neighbour(_FLOATS, inputs_in_graph=2)),
    **_rows("LRN DepthToSpace SpaceToDepth", Neighbour(_FLOATS)),
    **_rows("Pad", Neighbour(_FLOATS, _PAD, cpu_inputs=(1, 2, 3))),
    **_rows("Dropout", Neighbour(_FLOATS, in_graph=False)),
    **_rows("Where Gather", Neighbour(_SCALARS)),
    **_rows("Slice", Neighbour(_SCALARS, cpu_inputs=(1, 2, 3, 4))),
    **_rows("Tile Expand", Neighbour(_SCALARS, cpu_inputs=(1,))),
    **_rows("Identity Transpose Flatten", Neighbour(_SCALARS, _FOUR_BIT_1_22)),
    **_rows("Cast", Neighbour(_SCALARS, _FOUR_BIT_1_20)),
    **_rows("Reshape Squeeze Unsqueeze", Neighbour(_SCALARS, _FOUR_BIT_1_20, cpu_inputs=(1,))),
    **_rows("Shape", Neighbour(_SCALARS, _FOUR_BIT_1_20, in_graph=False)),
    **_rows("Size", Neighbour(_SCALARS, _FOUR_BIT_1_22, in_graph=False)),
}
"""By operator of the default domain."""

CONTRIBUTED: Final[Mapping[str, Neighbour]] = {
    **_rows("QuickGelu Gelu BiasGelu FusedMatMul SkipLayerNormalization", Neighbour(_FLOATS)),
    **_rows("FusedConv", Neighbour(frozenset())),
}
"""The same of ONNX Runtime's own, com.microsoft."""

DOMAINS: Final = frozenset({""}) | _words(
    "ai.onnx.ml ai.onnx.training ai.onnx.preview.training com.microsoft com.microsoft.nchwc com.microsoft.dml "
    "com.microsoft.experimental com.ms.internal.nhwc"
)
"""Those that ONNX Runtime has operators of."""

FOUR_BITS: Final = frozenset({"INT4", "UINT4", "FLOAT4E2M1"})
"""Types that kernels of few operators and versions take."""

CPU_INPUTS: Final[Mapping[str, tuple[int, ...]]] = {
    **{operator: row.cpu_inputs for operator, row in NEIGHBOURS.items()},
    "Split": (1,),
    "ConstantOfShape": (0,),
    "Range": (0, 1, 2),
    **dict.fromkeys(("OneHot", "TopK", "CumSum", "Upsample"), (1,)),
    **dict.fromkeys(("Pad", "Resize"), (1, 2, 3)),
}
"""Inputs that the CPU reads, of operators whose types are not followed here, too: what computes them does not keep the
operator on the CPU."""

DATA_DEPENDENT: Final = frozenset(
    {"NonZero", "Unique", "Compress", "NonMaxSuppression", "SequenceAt", "ConcatFromSequence", "StringSplit"}
)
"""Operators whose outputs have sizes that nothing but a run gives, unless inference knows them."""

ON_CPU: Final = _words(
    "SplitToSequence SequenceAt SequenceConstruct ConcatFromSequence SequenceEmpty Loop Scan StringNormalizer "
    "TfIdfVectorizer Unique Compress Det Multinomial"
)
"""Operators that the execution provider does not implement, or those of sequences, which it never fuses."""

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
