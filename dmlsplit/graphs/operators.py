"""The operators that were observed beside a Split or Join in a graph, and how DirectML.h spells them.

Every other operator has a number only: a graph that has it compiles to something that was not observed.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final


class Family(enum.Enum):
    """Operators that CompileGraph treats alike."""

    ACTIVATION = "activation"
    """DML_OPERATOR_ACTIVATION_*: one input, one output, element by element."""
    UNARY = "element-wise, unary"
    BINARY = "element-wise, binary"
    IDENTITY = "identity"
    """DML_OPERATOR_ELEMENT_WISE_IDENTITY: taken out of the graph where nothing needs the copy."""
    SLICE = "slice"
    SPLIT = "split"
    JOIN = "join"
    WHOLE = "of whole tensors"
    """A convolution, a product of matrices, a normalization: never in place, and its output may lie in a Join."""
    APART = "of whole tensors, with memory of its own"
    """Never in place, and its output lies in no Join."""

    @property
    def computes(self) -> bool:
        """True where each output element depends only on the input elements at the same index."""
        return self in (Family.ACTIVATION, Family.UNARY, Family.BINARY, Family.IDENTITY)


@dataclass(frozen=True, slots=True)
class OperatorInfo:
    """One row: the name without DML_OPERATOR_, the number, and the members in the order of the struct.

    A member whose name ends in "Tensor" is a tensor; the last one is the output.
    """

    name: str
    number: int
    family: Family
    members: tuple[str, ...]
    first_level_ranks: tuple[int, ...] = (4, 5)
    """The ranks that builds of feature level 2_1 accept; all later builds accept 1 to 8."""

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(name for name in self.members if name.endswith("Tensor"))


_IO: Final = ("InputTensor", "OutputTensor")
_SCALED: Final = (*_IO, "ScaleBias")
_ABO: Final = ("ATensor", "BTensor", "OutputTensor")
_WINDOW: Final = (*_IO, "DimensionCount", "InputWindowOffsets", "InputWindowSizes", "InputWindowStrides")

OPERATORS: Final = (
    OperatorInfo("ELEMENT_WISE_IDENTITY", 1, Family.IDENTITY, _SCALED),
    OperatorInfo("ELEMENT_WISE_ABS", 2, Family.UNARY, _SCALED, (4,)),
    OperatorInfo("ELEMENT_WISE_ADD", 4, Family.BINARY, _ABO),
    OperatorInfo("ELEMENT_WISE_DIVIDE", 10, Family.BINARY, _ABO),
    OperatorInfo("ELEMENT_WISE_EXP", 11, Family.UNARY, _SCALED),
    OperatorInfo("ELEMENT_WISE_MAX", 21, Family.BINARY, _ABO, (4,)),
    OperatorInfo("ELEMENT_WISE_MIN", 23, Family.BINARY, _ABO, (4,)),
    OperatorInfo("ELEMENT_WISE_MULTIPLY", 24, Family.BINARY, _ABO),
    OperatorInfo("ELEMENT_WISE_RECIP", 27, Family.UNARY, _SCALED),
    OperatorInfo("ELEMENT_WISE_SUBTRACT", 30, Family.BINARY, _ABO),
    OperatorInfo("ELEMENT_WISE_TANH", 84, Family.UNARY, _SCALED, (4,)),
    OperatorInfo("ELEMENT_WISE_CLIP1", 153, Family.UNARY, (*_SCALED, "MinMaxDataType", "Min", "Max")),
    OperatorInfo("ELEMENT_WISE_NEGATE", 156, Family.UNARY, _IO),
    OperatorInfo("ACTIVATION_ELU", 35, Family.ACTIVATION, (*_IO, "Alpha")),
    OperatorInfo("ACTIVATION_HARD_SIGMOID", 37, Family.ACTIVATION, (*_IO, "Alpha", "Beta")),
    OperatorInfo("ACTIVATION_IDENTITY", 38, Family.ACTIVATION, _IO),
    OperatorInfo("ACTIVATION_LEAKY_RELU", 39, Family.ACTIVATION, (*_IO, "Alpha")),
    OperatorInfo("ACTIVATION_LINEAR", 40, Family.ACTIVATION, (*_IO, "Alpha", "Beta")),
    OperatorInfo("ACTIVATION_PARAMETRIC_SOFTPLUS", 43, Family.ACTIVATION, (*_IO, "Alpha", "Beta")),
    OperatorInfo("ACTIVATION_RELU", 44, Family.ACTIVATION, _IO),
    OperatorInfo("ACTIVATION_SIGMOID", 47, Family.ACTIVATION, _IO),
    OperatorInfo("ACTIVATION_SOFTPLUS", 49, Family.ACTIVATION, (*_IO, "Steepness")),
    OperatorInfo("ACTIVATION_SOFTSIGN", 50, Family.ACTIVATION, _IO),
    OperatorInfo("ACTIVATION_TANH", 51, Family.ACTIVATION, _IO),
    OperatorInfo("SLICE1", 111, Family.SLICE, _WINDOW),
    OperatorInfo("SPLIT", 62, Family.SPLIT, ()),
    OperatorInfo("JOIN", 63, Family.JOIN, ()),
)

BY_NUMBER: Final = {row.number: row for row in OPERATORS}
BY_NAME: Final = {row.name: row for row in OPERATORS}
PREFIX: Final = "DML_OPERATOR_"

MULTIPLY: Final = BY_NAME["ELEMENT_WISE_MULTIPLY"].number
SIGMOID: Final = BY_NAME["ACTIVATION_SIGMOID"].number
RELU: Final = BY_NAME["ACTIVATION_RELU"].number
LEAKY_RELU: Final = BY_NAME["ACTIVATION_LEAKY_RELU"].number
SPLIT: Final = BY_NAME["SPLIT"].number
JOIN: Final = BY_NAME["JOIN"].number


def operator_number(name: str) -> int:
    """The DML_OPERATOR_TYPE of a name in this table, with or without DML_OPERATOR_; ValueError for any other."""
    row = BY_NAME.get(name.removeprefix(PREFIX))
    if row is None:
        raise ValueError(f"unknown operator {name!r}; give its DML_OPERATOR_TYPE as a number")
    return row.number


def operator_name(number: int) -> str:
    """DML_OPERATOR_...; of an operator without a row its number."""
    row = BY_NUMBER.get(number)
    return PREFIX + row.name if row else f"{PREFIX}TYPE({number})"


def short_name(number: int) -> str:
    """The name in messages: SIGMOID, MULTIPLY."""
    row = BY_NUMBER.get(number)
    return re.sub("^(ELEMENT_WISE|ACTIVATION)_", "", row.name) if row else f"operator {number}"
