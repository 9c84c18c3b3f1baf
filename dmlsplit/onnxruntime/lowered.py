"""The DirectML operators that ONNX Runtime makes of the ONNX operators beside a Split or Concat.

Observed: a model of each operator at opset 17, by ONNX Runtime 1.18.0, 1.24.4 and 1.30.0, which agree unless a row says
otherwise. An operator without a row becomes one or more DirectML operators of unknown types.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dmlsplit.graphs.operators import BY_NUMBER


class Kind(enum.Enum):
    """How well an operator's use of memory in a graph is known."""

    OBSERVED = "it is a row of dmlsplit.graphs.operators"
    WHOLE = "it was observed to work on whole tensors: never in place, and its output may lie in a Join"
    COPIES = "an identity, or one that moves elements"
    NOT_IN_PLACE = "it cannot work in place; whether its output lies in a Join was not observed"
    UNKNOWN = "nothing is known of it"


@dataclass(frozen=True, slots=True)
class Lowered:
    """The DML_OPERATOR_TYPE of an operator, None where it is unknown, and its kind."""

    type: int | None
    kind: Kind


def _numbers(table: str) -> dict[str, int]:
    words = table.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


_ELEMENTWISE: Final = _numbers(
    "Relu 44 LeakyRelu 39 Sigmoid 47 Tanh 51 Elu 35 Selu 45 HardSigmoid 37 Softplus 49 Softsign 50 ThresholdedRelu 52 "
    "Celu 128 Gelu 157 Abs 2 Atan 6 Ceil 7 Cos 9 Exp 11 Floor 12 Log 13 Reciprocal 27 Sin 28 Sqrt 29 Tan 31 Sign 79 "
    "Erf 81 Sinh 82 Round 99 Clip 153 Neg 156 Cast 61 Add 4 Sum 4 Div 10 Max 21 Mean 22 Min 23 Mul 24 Pow 25 Sub 30 "
    "PRelu 42 Mod 102 Where 88"
)
_WHOLE: Final = _numbers("Conv 53 ConvTranspose 53 Gemm 54 MatMul 54 BatchNormalization 72")
_NOT_IN_PLACE: Final = _numbers(
    "AveragePool 56 GlobalAveragePool 56 MaxPool 58 GlobalMaxPool 58 LpPool 57 ReduceMean 55 ReduceSum 55 Gather 67 "
    "Tile 70 Expand 1 DepthToSpace 113 SpaceToDepth 68 InstanceNormalization 115 LayerNormalization 171 LRN 74 "
    "LpNormalization 75 Pad 155 Softmax 158 LogSoftmax 159 Hardmax 160 CumSum 105 TopK 112 Einsum 54"
)
_COPIES: Final = ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose")
FUSED_ADD: Final = "FusedAdd"
"""An Add or Sum with a fused activation."""
RESHAPED_GEMM: Final = "ReshapedGemm"
"""A Gemm between two Reshapes, in place of a MatMul of more dimensions and an Add: it takes no activation."""
IDENTITY: Final = 1
SLICE: Final = 111

LOWERED: Final[Mapping[str, Lowered]] = {
    **{name: Lowered(n, Kind.OBSERVED if n in BY_NUMBER else Kind.UNKNOWN) for name, n in _ELEMENTWISE.items()},
    **{name: Lowered(number, Kind.WHOLE) for name, number in _WHOLE.items()},
    **{name: Lowered(number, Kind.NOT_IN_PLACE) for name, number in _NOT_IN_PLACE.items()},
    **dict.fromkeys(_COPIES, Lowered(IDENTITY, Kind.COPIES)),
    "Resize": Lowered(None, Kind.NOT_IN_PLACE),  # 161 up to 1.19.2, 175 from 1.20.0 on
    RESHAPED_GEMM: Lowered(54, Kind.NOT_IN_PLACE),
    FUSED_ADD: Lowered(89, Kind.UNKNOWN),  # DML_OPERATOR_ELEMENT_WISE_ADD1
    "Split": Lowered(62, Kind.OBSERVED),
    "Concat": Lowered(63, Kind.OBSERVED),
    "Slice": Lowered(SLICE, Kind.OBSERVED),
}
"""The rows by operator of the default domain; UNKNOWN stands for any other."""

BROADCAST: Final = frozenset(_ELEMENTWISE)
"""Operators that broadcast their inputs."""

UNKNOWN: Final = Lowered(None, Kind.UNKNOWN)
