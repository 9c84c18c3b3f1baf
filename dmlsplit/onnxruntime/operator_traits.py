"""The table of operator traits: what ONNX Runtime does with a node of each operator of the default domain.

A row has the properties of an operator except its placement, which is recorded (`operators`). An operator without a row
becomes one or more DirectML operators of unknown types, and passes that are not modelled may change it. The DirectML
operators were observed: a model of each ONNX operator at opset 17, with ONNX Runtime 1.18.0, 1.24.4 and 1.30.0, which
agree unless a row says otherwise. Memory sharing with a Concat was measured for 74 operators, executed by 1.24.4 with
DirectML 1.15.4; an operator with the same DirectML operator as one of these counts as measured.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dmlsplit.graphs.operators import BY_NUMBER, Family
from dmlsplit.onnxruntime.facts import Sizes
from dmlsplit.system.records import record


class Kind(enum.Enum):
    """How well an operator's use of memory in a graph is known."""

    __hash__ = object.__hash__  # Enum.__hash__ hashes the name, in Python

    OBSERVED = "it is a row of dmlsplit.graphs.operators"
    WHOLE = "it works on whole tensors: never in place, and its output may lie in a Join"
    CONVOLUTION = "as WHOLE in four dimensions and more, as PACKED below"
    NORMALIZATION = "as BLOCK in four dimensions and more, as PACKED below"
    BLOCK = "as WHOLE, and its output lies in a Join as one block only; what it reads lies in no rows of one"
    PACKED = "it is described with other sizes than a Join: its output lies in none, what it reads in no rows of one"
    APART = "never in place, and its output lies in no Join"
    COPIES = "an identity, or one that moves elements"
    NOT_IN_PLACE = "it cannot work in place; whether its output lies in a Join was not observed"
    UNKNOWN = "nothing is known of it"


FAMILIES: Final[Mapping[Kind, tuple[Family, Family, Family]]] = {
    Kind.WHOLE: (Family.WHOLE, Family.WHOLE, Family.WHOLE),
    Kind.BLOCK: (Family.BLOCK, Family.BLOCK, Family.BLOCK),
    Kind.PACKED: (Family.PACKED, Family.PACKED, Family.PACKED),
    Kind.APART: (Family.APART, Family.APART, Family.APART),
    Kind.NOT_IN_PLACE: (Family.APART, Family.WHOLE, Family.WHOLE),
    Kind.COPIES: (Family.APART, Family.WHOLE, Family.UNARY),
    Kind.UNKNOWN: (Family.APART, Family.WHOLE, Family.UNARY),
}
"""The families that are assumed for an operator of each kind, ordered by how much memory they share, the least
first."""

_BY_RANK: Final[Mapping[Kind, tuple[Kind, Kind]]] = {
    Kind.CONVOLUTION: (Kind.PACKED, Kind.WHOLE),
    Kind.NORMALIZATION: (Kind.PACKED, Kind.BLOCK),
}
"""For operators that differ by rank: the kind for fewer dimensions than a Join has, and the kind for others."""
_RANK_OF_JOINS: Final = 4


@record
class OperatorTraits:
    """A row of the table. Omitted fields were not observed, or do not apply."""

    name: str
    dml: int | None = None
    """The DML_OPERATOR_TYPE of the operator that it becomes; None if it is unknown."""
    kind: Kind = Kind.UNKNOWN
    """If omitted, OBSERVED for a DirectML operator that is a row of dmlsplit.graphs.operators."""
    broadcasts: bool = False
    """It computes element by element, and broadcasts its inputs."""
    cpu_inputs: tuple[int, ...] = ()
    """The inputs that the CPU reads. The nodes that compute them do not keep the operator on the CPU."""
    shaping: Sizes = ()
    """The inputs whose elements determine the sizes of outputs. A Run has them all; an optimized session knows those
    that it folds, the results of constants and of static shapes, and infers sizes again."""
    fused_with: int | None = None
    """It is fused only with this number of inputs."""
    absorbs: frozenset[str] = frozenset()
    """The activations that are fused into it from level 2 on, if nothing else reads the tensor between them."""
    absorbs_at_outputs: bool = False
    """An activation was observed to be fused into it even if its output is also a graph output."""
    followed: bool = False
    """Only the passes that have a module change it if it is next to other such operators."""
    kept: bool = False
    """Optimization may fuse others into it; it remains one node."""
    takes_weights: bool = False
    """It is part of fused patterns with weights: GELUs, normalizations and the like."""
    merges: bool = False
    """Optimization fuses it with its neighbours even without weights."""
    core: tuple[frozenset[str], frozenset[str]] | None = None
    """The conditions for being the middle of a fused pattern: the operators of the pattern in front of it, an empty set
    for any, and those behind it."""
    data_dependent: bool = False
    """Only a Run determines its output sizes, unless inference knows them."""
    on_cpu: bool = False
    """Its kernel leaves its result on the CPU."""
    random: bool = False
    """Two equal nodes compute different values, so it is not folded."""
    computed: bool = False
    """It is not folded, even if all inputs are constant."""
    may_vanish: bool = False
    """It is removed if it has no effect."""
    movable: bool = False
    """An elementwise operator of one tensor that may be moved over a Split or Concat: its result for an element is
    rounded at most once, at any position."""

    def kind_of(self, rank: int) -> Kind:
        """Returns the kind of the operator on tensors of this rank."""
        return _BY_RANK[self.kind][rank >= _RANK_OF_JOINS] if self.kind in _BY_RANK else self.kind


FUSED_ADD: Final = "FusedAdd"
"""An Add or Sum with a fused activation."""
RESHAPED_GEMM: Final = "ReshapedGemm"
"""A Gemm between two Reshapes, in place of a MatMul of more dimensions and an Add; no activation is fused into it."""
FUSED_MATMUL: Final = "FusedMatMul"
"""A MatMul with a factor, of com.microsoft; no activation is fused into it."""
MATMUL_INTEGER_TO_FLOAT: Final = "MatMulIntegerToFloat"
"""A MatMulInteger and the product with its scales, of com.microsoft; DirectML gets one operator."""
QUICK_GELU: Final = "QuickGelu"
"""The fused x * Sigmoid(alpha * x), of com.microsoft; DirectML gets two operators for it, three if alpha is not 1."""
GELU: Final = "ContributedGelu"
"""The Gelu of com.microsoft."""
BIAS_GELU: Final = "BiasGelu"
"""A Gelu of the sum with a vector, of com.microsoft."""
FAST_GELU: Final = "FastGelu"
"""A Gelu with a hyperbolic tangent, of com.microsoft; DirectML gets one operator."""
SKIP_LAYER_NORMALIZATION: Final = "SkipLayerNormalization"
"""A LayerNormalization of a sum, of com.microsoft."""
FUSED_MATMUL_SOFTMAX: Final = "FusedMatMulActivation"
"""A FusedMatMul and the Softmax behind it, of com.microsoft."""
QUANTIZED: Final = {
    "Add": "QLinearAdd",
    "AveragePool": "QLinearAveragePool",
    "Concat": "QLinearConcat",
    "Conv": "QLinearConv",
    "GlobalAveragePool": "QLinearGlobalAveragePool",
    "LeakyRelu": "QLinearLeakyRelu",
    "MatMul": "QLinearMatMul",
    "Sigmoid": "QLinearSigmoid",
    "Softmax": "QLinearSoftmax",
}
"""Maps operators to those that compute the same with quantized elements: ONNX's for a Conv and a MatMul,
com.microsoft's for the others."""
PACKED_PRODUCT: Final = "MatMulNBits"
"""A MatMul with constant quantized weights, of com.microsoft."""
MEMCPY_FROM_HOST: Final = "MemcpyFromHost"
MEMCPY_TO_HOST: Final = "MemcpyToHost"
"""ONNX Runtime's own copies between devices, of the default domain."""

_RECTIFIERS: Final = frozenset({"Relu", "LeakyRelu"})
_ACTIVATIONS: Final = _RECTIFIERS | frozenset(
    ["Sigmoid", "Tanh", "Elu", "Selu", "HardSigmoid", "Softplus", "Softsign", "ThresholdedRelu"]
)

_GELU: Final = (frozenset({"Div", "Mul"}), frozenset({"Add"}))
_MEAN: Final = (frozenset[str](), frozenset({"Add", "Sub"}))
_ATTENTION: Final = (frozenset[str](), frozenset({"MatMul"}))

_row = OperatorTraits
_ROWS: Final = (
    _row("Abs", 2, broadcasts=True, followed=True, movable=True),
    _row("Acos", 3),
    _row("Acosh", 86),
    _row(
        "Add",
        4,
        broadcasts=True,
        absorbs=_RECTIFIERS,
        followed=True,
        may_vanish=True,
        absorbs_at_outputs=True,
    ),
    _row("And", 14),
    _row("ArgMax", 138),
    _row("ArgMin", 137),
    _row("Asin", 5),
    _row("Asinh", 85),
    _row("Atan", 6, broadcasts=True),
    _row("Atanh", 87),
    _row("AveragePool", 56, kind=Kind.WHOLE),
    _row(
        "BatchNormalization", 72, kind=Kind.NORMALIZATION, absorbs=_ACTIVATIONS, followed=True, absorbs_at_outputs=True
    ),
    _row("Cast", 61, broadcasts=True, may_vanish=True),
    _row("CastLike", computed=True),
    _row("Ceil", 7, broadcasts=True, followed=True, movable=True),
    _row("Celu", 128, broadcasts=True),
    _row("Clip", 153, broadcasts=True, cpu_inputs=(1, 2), followed=True, movable=True),
    _row("Col2Im", cpu_inputs=(1, 2)),
    _row("Compress", data_dependent=True),
    _row("Concat", 63, followed=True, kept=True),
    _row("ConcatFromSequence", data_dependent=True),
    _row("ConstantOfShape", cpu_inputs=(0,), shaping=(0,)),
    _row("Conv", 53, kind=Kind.CONVOLUTION, absorbs=_ACTIVATIONS, followed=True, kept=True, absorbs_at_outputs=True),
    _row("ConvTranspose", 53, kind=Kind.CONVOLUTION, absorbs=_ACTIVATIONS, followed=True, kept=True),
    _row("Cos", 9, broadcasts=True, followed=True),
    _row("Cosh", 83),
    _row("CumSum", 105, cpu_inputs=(1,)),
    _row("DepthToSpace", 113, kind=Kind.WHOLE),
    _row("DequantizeLinear", computed=True),
    _row("Div", 10, broadcasts=True, followed=True, may_vanish=True),
    _row("Dropout", computed=True),
    _row("Einsum", 54, kind=Kind.APART),
    _row("Elu", 35, broadcasts=True, followed=True, takes_weights=True),
    _row("Equal", 15),
    _row("Erf", 81, broadcasts=True, followed=True, merges=True, core=_GELU),
    _row("Exp", 11, broadcasts=True, followed=True, takes_weights=True),
    _row("Expand", 1, kind=Kind.NOT_IN_PLACE, cpu_inputs=(1,), shaping=(1,)),
    _row("Flatten", 1, kind=Kind.COPIES),
    _row("Floor", 12, broadcasts=True, followed=True, movable=True),
    _row("Gather", 67, kind=Kind.WHOLE),
    _row("GatherElements", 107),
    _row("GatherND", 140),
    _row("Gelu", 157, broadcasts=True),
    _row("Gemm", 54, kind=Kind.WHOLE, absorbs=_ACTIVATIONS, followed=True, absorbs_at_outputs=True),
    _row("GlobalAveragePool", 56, kind=Kind.WHOLE, followed=True),
    _row("GlobalMaxPool", 58, kind=Kind.WHOLE),
    _row("Greater", 16),
    _row("GreaterOrEqual", 126),
    _row("HardSigmoid", 37, broadcasts=True, followed=True),
    _row("HardSwish", kind=Kind.WHOLE),
    _row("Hardmax", 160, kind=Kind.NOT_IN_PLACE),
    _row("Identity", 1, kind=Kind.COPIES, may_vanish=True),
    _row("If", cpu_inputs=(0,), followed=True),
    _row("InstanceNormalization", 115, kind=Kind.NORMALIZATION, absorbs=_ACTIVATIONS),
    _row("LRN", 74, kind=Kind.WHOLE),
    _row("LayerNormalization", 171, kind=Kind.NORMALIZATION),
    _row("LeakyRelu", 39, broadcasts=True, followed=True, movable=True),
    _row("Less", 17),
    _row("LessOrEqual", 127),
    _row("Log", 13, broadcasts=True, followed=True),
    _row("LogSoftmax", 159, kind=Kind.WHOLE),
    _row("Loop", cpu_inputs=(0, 1)),
    _row("LpNormalization", 75, kind=Kind.WHOLE),
    _row("LpPool", 57, kind=Kind.NOT_IN_PLACE),
    _row("MatMul", 54, kind=Kind.WHOLE, absorbs=_ACTIVATIONS, absorbs_at_outputs=True),
    _row("Max", 21, broadcasts=True, fused_with=2, followed=True),
    _row("MaxPool", 58, kind=Kind.WHOLE, followed=True, kept=True),
    _row("Mean", 22, broadcasts=True, fused_with=2, followed=True),
    _row("MeanVarianceNormalization", absorbs=_ACTIVATIONS, absorbs_at_outputs=True),
    _row("Min", 23, broadcasts=True, fused_with=2, followed=True),
    _row("Mod", 102, broadcasts=True),
    _row("Mul", 24, broadcasts=True, followed=True, may_vanish=True),
    _row("Multinomial", random=True),
    _row("Neg", 156, broadcasts=True, followed=True, movable=True),
    _row("NonMaxSuppression", data_dependent=True),
    _row("NonZero", data_dependent=True),
    _row("Not", 18),
    _row("OneHot", cpu_inputs=(1,), shaping=(1,)),
    _row("Or", 19),
    _row("PRelu", 42, broadcasts=True),
    _row("Pad", 155, kind=Kind.WHOLE, cpu_inputs=(1, 2, 3), shaping=(1,)),
    _row("Pow", 25, broadcasts=True, followed=True),
    _row("QLinearConv", followed=True, kept=True),
    _row("QLinearMatMul", followed=True, kept=True),
    _row("RandomNormal", random=True),
    _row("RandomNormalLike", random=True),
    _row("RandomUniform", random=True),
    _row("RandomUniformLike", random=True),
    _row("Range", cpu_inputs=(0, 1, 2), shaping=(0, 1, 2)),
    _row("Reciprocal", 27, broadcasts=True, followed=True),
    _row("ReduceL1", 55, kind=Kind.WHOLE, cpu_inputs=(1,)),
    _row("ReduceL2", 55, kind=Kind.WHOLE, cpu_inputs=(1,)),
    _row("ReduceLogSum", 55, kind=Kind.WHOLE, cpu_inputs=(1,)),
    _row("ReduceLogSumExp", 55, kind=Kind.WHOLE, cpu_inputs=(1,)),
    _row("ReduceMax", 55, kind=Kind.WHOLE, cpu_inputs=(1,)),
    _row("ReduceMean", 55, kind=Kind.WHOLE, cpu_inputs=(1,), followed=True, merges=True, core=_MEAN),
    _row("ReduceMin", 55, kind=Kind.WHOLE, cpu_inputs=(1,)),
    _row("ReduceProd", 55, kind=Kind.WHOLE, cpu_inputs=(1,)),
    _row("ReduceSum", 55, kind=Kind.WHOLE, cpu_inputs=(1,), shaping=(1,)),
    _row("ReduceSumSquare", 55, kind=Kind.WHOLE, cpu_inputs=(1,)),
    _row("Relu", 44, broadcasts=True, followed=True, movable=True),
    _row("Reshape", 1, kind=Kind.COPIES, cpu_inputs=(1,), shaping=(1,)),
    # DML_OPERATOR_RESAMPLE2, 161, up to 1.18.0; DML_OPERATOR_RESAMPLE3, 175, from 1.19.0 on
    _row("Resize", kind=Kind.WHOLE, cpu_inputs=(1, 2, 3), shaping=(2, 3)),
    _row("Round", 99, broadcasts=True, followed=True),
    _row("ScatterElements", 94),
    _row("ScatterND", 109),
    _row("Selu", 45, broadcasts=True, followed=True),
    _row("SequenceAt", data_dependent=True),
    _row("SequenceConstruct", computed=True),
    _row("SequenceLength", on_cpu=True),
    _row("SequenceMap", computed=True),
    _row("Shape", on_cpu=True),
    _row("Sigmoid", 47, broadcasts=True, followed=True, takes_weights=True),
    _row("Sign", 79, broadcasts=True, followed=True, movable=True),
    _row("Sin", 28, broadcasts=True, followed=True),
    _row("Sinh", 82, broadcasts=True),
    _row("Size", on_cpu=True),
    _row("Slice", 111, cpu_inputs=(1, 2, 3, 4), shaping=(1, 2, 3, 4), followed=True),
    _row("Softmax", 158, kind=Kind.WHOLE, core=_ATTENTION),
    _row("Softplus", 49, broadcasts=True, followed=True),
    _row("Softsign", 50, broadcasts=True, followed=True),
    _row("SpaceToDepth", 68, kind=Kind.WHOLE),
    _row("Split", 62, cpu_inputs=(1,), shaping=(1,), followed=True, kept=True),
    _row("SplitToSequence", computed=True),
    _row("Sqrt", 29, broadcasts=True, followed=True, takes_weights=True),
    _row("Squeeze", 1, kind=Kind.COPIES, cpu_inputs=(1,), shaping=(1,), followed=True),
    _row("StringSplit", data_dependent=True),
    _row("Sub", 30, broadcasts=True, followed=True, may_vanish=True),
    _row("Sum", 4, broadcasts=True, fused_with=2, absorbs=_RECTIFIERS, followed=True),
    _row("Tan", 31, broadcasts=True),
    _row("Tanh", 51, broadcasts=True, followed=True, takes_weights=True),
    _row("ThresholdedRelu", 52, broadcasts=True, movable=True),
    _row("Tile", 70, kind=Kind.WHOLE, cpu_inputs=(1,), shaping=(1,), followed=True),
    _row("TopK", 112, kind=Kind.NOT_IN_PLACE, cpu_inputs=(1,), shaping=(1,)),
    _row("Transpose", 1, kind=Kind.COPIES),
    _row("Trilu", cpu_inputs=(1,)),
    _row("Unique", data_dependent=True),
    _row("Unsqueeze", 1, kind=Kind.COPIES, cpu_inputs=(1,), shaping=(1,), followed=True),
    _row("Upsample", cpu_inputs=(1,), shaping=(1,)),
    _row("Where", 88, kind=Kind.WHOLE, broadcasts=True),
    _row("Xor", 20),
    _row(FUSED_ADD, 89, followed=True),  # DML_OPERATOR_ELEMENT_WISE_ADD1
    _row(FUSED_MATMUL, 54, kind=Kind.WHOLE),
    _row(MATMUL_INTEGER_TO_FLOAT, 170, followed=True),
    _row(QUICK_GELU, followed=True),
    _row(GELU, 157, followed=True),
    _row(BIAS_GELU, followed=True),
    _row(FAST_GELU, followed=True),
    _row(SKIP_LAYER_NORMALIZATION, followed=True),
    _row(FUSED_MATMUL_SOFTMAX, kind=Kind.NOT_IN_PLACE),
    _row(RESHAPED_GEMM, 54, kind=Kind.NOT_IN_PLACE),
    *[_row(name, followed=True, kept=True) for name in QUANTIZED.values() if name[7:] not in ("Conv", "MatMul")],
    _row(PACKED_PRODUCT, followed=True),
    _row(MEMCPY_FROM_HOST, cpu_inputs=(0,)),
    _row(MEMCPY_TO_HOST, on_cpu=True),
)


def _completed(row: OperatorTraits) -> OperatorTraits:
    known = row.kind is Kind.UNKNOWN and row.dml in BY_NUMBER
    return replace(row, kind=Kind.OBSERVED) if known else row


UNKNOWN: Final = OperatorTraits("")


class _Table(dict[str, OperatorTraits]):
    def __missing__(self, op_type: str) -> OperatorTraits:
        return UNKNOWN


OPERATORS: Final[Mapping[str, OperatorTraits]] = _Table((row.name, _completed(row)) for row in _ROWS)
"""The rows by operator; UNKNOWN for an operator without one."""
row_of: Final = OPERATORS.__getitem__
"""Returns the row of an operator of the default domain; UNKNOWN for any other. It is called about ten times for each
node."""
