"""Operators beside Split and Concat: whether ONNX Runtime's DirectML execution provider takes them, as far as known.

Only what decides about a Split or Concat nearby is here: whether a node shares its fused graph, and whether it computes
with sizes on the CPU. Source: OperatorRegistration.cpp of ONNX Runtime; the rows marked so were observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_FLOATS: Final = frozenset({"FLOAT", "FLOAT16"})
_SIGNED: Final = _FLOATS | {"INT8", "INT16", "INT32"}
_SCALARS: Final = frozenset(
    {
        *("FLOAT", "FLOAT16", "DOUBLE", "BOOL"),
        *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
    }
)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An operator that the execution provider implements."""

    types: frozenset[str]
    """Element types of the first input that are certainly taken; of others nothing is known but `never`."""
    cpu_inputs: tuple[int, ...] = ()
    """Inputs that have to be constants for a fused graph: the CPU reads them."""
    merges: bool = False
    """Optimization may remove the node or merge it with another."""
    in_graph: bool = True

    def takes(self, data_type: str | None) -> bool | None:
        """Whether the execution provider takes this element type; None where that is not known."""
        if data_type is None:
            return None
        if data_type in self.types:
            return True
        if data_type in ("STRING", "BFLOAT16") or (data_type == "DOUBLE" and self.types in (_FLOATS, _SIGNED)):
            return False
        return None


def _rows(names: str, row: Neighbour) -> dict[str, Neighbour]:
    return dict.fromkeys(names.split(), row)


NEIGHBOURS: Final[Mapping[str, Neighbour]] = {
    **_rows("Relu", Neighbour(_SIGNED, merges=True)),
    **_rows("LeakyRelu Sigmoid Tanh Elu Selu HardSigmoid Softplus Softsign PRelu", Neighbour(_FLOATS, merges=True)),
    **_rows("Sqrt Exp Log Ceil Floor Round Sin Cos Tan Atan Erf Reciprocal", Neighbour(_FLOATS, merges=True)),
    **_rows("Abs Neg Sign", Neighbour(_FLOATS | {"INT32"}, merges=True)),
    **_rows("Add Sub Mul Div", Neighbour(_FLOATS | {"INT32"}, merges=True)),
    **_rows("Pow Max Min Where", Neighbour(_FLOATS, merges=True)),
    **_rows("Clip", Neighbour(_FLOATS, (1, 2), merges=True)),
    **_rows("Conv ConvTranspose BatchNormalization InstanceNormalization", Neighbour(_FLOATS, merges=True)),
    **_rows("MatMul Gemm Softmax LogSoftmax", Neighbour(_FLOATS, merges=True)),
    **_rows("MaxPool AveragePool GlobalAveragePool GlobalMaxPool", Neighbour(_FLOATS, merges=True)),
    **_rows("Identity Dropout", Neighbour(_SCALARS, merges=True)),
    **_rows("Transpose", Neighbour(_SCALARS, merges=True)),
    **_rows("Flatten", Neighbour(_SCALARS, merges=True)),
    **_rows("Reshape Squeeze Unsqueeze", Neighbour(_SCALARS, (1,), merges=True)),
    **_rows("Slice", Neighbour(_FLOATS, (1, 2, 3, 4), merges=True)),
    **_rows("Gather Cast", Neighbour(_SCALARS, merges=True)),
    **_rows("Tile Expand", Neighbour(_FLOATS, (1,), merges=True)),
    **_rows("Shape Size", Neighbour(_SCALARS, in_graph=False)),
    **_rows("ReduceMean ReduceSum ReduceMax ReduceMin", Neighbour(_FLOATS, (1,), merges=True)),
    **_rows("Resize", Neighbour(_FLOATS, (1, 2, 3), merges=True)),
}
"""By operator of the default domain."""

ON_CPU: Final = frozenset(
    {
        *("SplitToSequence", "SequenceAt", "SequenceConstruct", "ConcatFromSequence", "SequenceEmpty"),
        *("Loop", "Scan", "StringNormalizer", "TfIdfVectorizer", "Unique", "Compress", "Det", "Multinomial"),
    }
)
"""Operators that the execution provider does not implement."""

STAYING: Final = frozenset({"Relu"})
"""Operators that optimization leaves alone behind and in front of a Split or Concat: observed."""

ELEMENTWISE: Final = frozenset(
    {
        *("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "Selu", "HardSigmoid", "Softplus", "Softsign", "Clip"),
        *("Sqrt", "Exp", "Log", "Ceil", "Floor", "Round", "Sin", "Cos", "Abs", "Neg", "Erf", "Reciprocal"),
        *("Add", "Sub", "Mul", "Div"),
    }
)
"""Operators that DirectML executes in place, or fuses."""

KEEPS_ON_CPU: Final = frozenset({"Shape", "Size"})
"""Operators whose result the execution provider's kernels leave on the CPU."""

SMALL_INITIALIZER: Final = 100
"""Elements up to which an initializer does not keep a node from the CPU."""
