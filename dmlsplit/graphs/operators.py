"""The operators observed next to a Split or Join in a graph, and their names in DirectML.h.

Any other operator is known by number only: the compilation of a graph that contains it was not observed.
"""

from __future__ import annotations

import enum
import re
from typing import Final

from dmlsplit.system.records import entity


class Family(enum.Enum):
    """Operators that CompileGraph treats alike."""

    __hash__ = object.__hash__  # Enum's own hash hashes the name in Python, which is slow

    ACTIVATION = "activation"
    """DML_OPERATOR_ACTIVATION_*: one input, one output, element by element."""
    UNARY = "element-wise, unary"
    BINARY = "element-wise, binary"
    IDENTITY = "identity"
    """DML_OPERATOR_ELEMENT_WISE_IDENTITY: removed from the graph unless the copy is needed."""
    SLICE = "slice"
    SPLIT = "split"
    JOIN = "join"
    WHOLE = "of whole tensors"
    """A convolution, a product of matrices, a normalization: never in place, and its output may lie in a Join."""
    BLOCK = "of whole tensors that are packed"
    """As WHOLE, but its output can lie in a Join only as one block, and its input cannot lie in rows of a Join."""
    PACKED = "of whole tensors that are packed, of other sizes"
    """Never in place; its output cannot lie in a Join, and its input cannot lie in rows of a Join."""
    APART = "of whole tensors, with memory of its own"
    """Never in place; its output cannot lie in a Join."""

    @property
    def computes(self) -> bool:
        """True if each output element depends only on the input elements at the same index."""
        return self in (Family.ACTIVATION, Family.UNARY, Family.BINARY, Family.IDENTITY)


@entity
class OperatorInfo:
    """One row of the table: the name without DML_OPERATOR_, and the DML_OPERATOR_TYPE."""

    name: str
    number: int
    family: Family


OPERATORS: Final = (
    OperatorInfo("ELEMENT_WISE_IDENTITY", 1, Family.IDENTITY),
    OperatorInfo("ELEMENT_WISE_ABS", 2, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_ADD", 4, Family.BINARY),
    OperatorInfo("ELEMENT_WISE_ATAN", 6, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_DIVIDE", 10, Family.BINARY),
    OperatorInfo("ELEMENT_WISE_EXP", 11, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_FLOOR", 12, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_MAX", 21, Family.BINARY),
    OperatorInfo("ELEMENT_WISE_MIN", 23, Family.BINARY),
    OperatorInfo("ELEMENT_WISE_MULTIPLY", 24, Family.BINARY),
    OperatorInfo("ELEMENT_WISE_POW", 25, Family.BINARY),
    OperatorInfo("ELEMENT_WISE_RECIP", 27, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_SIN", 28, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_SQRT", 29, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_SUBTRACT", 30, Family.BINARY),
    OperatorInfo("ELEMENT_WISE_SIGN", 79, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_ERF", 81, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_TANH", 84, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_CLIP1", 153, Family.UNARY),
    OperatorInfo("ELEMENT_WISE_NEGATE", 156, Family.UNARY),
    OperatorInfo("ACTIVATION_ELU", 35, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_HARD_SIGMOID", 37, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_IDENTITY", 38, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_LEAKY_RELU", 39, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_LINEAR", 40, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_PARAMETERIZED_RELU", 42, Family.BINARY),
    OperatorInfo("ACTIVATION_PARAMETRIC_SOFTPLUS", 43, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_RELU", 44, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_SCALED_ELU", 45, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_SIGMOID", 47, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_SOFTPLUS", 49, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_SOFTSIGN", 50, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_TANH", 51, Family.ACTIVATION),
    OperatorInfo("ACTIVATION_GELU", 157, Family.ACTIVATION),
    OperatorInfo("CUMULATIVE_SUMMATION", 105, Family.UNARY),
    OperatorInfo("SLICE1", 111, Family.SLICE),
    OperatorInfo("SPLIT", 62, Family.SPLIT),
    OperatorInfo("JOIN", 63, Family.JOIN),
)

BY_NUMBER: Final = {row.number: row for row in OPERATORS}
BY_NAME: Final = {row.name: row for row in OPERATORS}
PREFIX: Final = "DML_OPERATOR_"

MULTIPLY: Final = BY_NAME["ELEMENT_WISE_MULTIPLY"].number
SIGMOID: Final = BY_NAME["ACTIVATION_SIGMOID"].number
RELU: Final = BY_NAME["ACTIVATION_RELU"].number
ABS: Final = BY_NAME["ELEMENT_WISE_ABS"].number
NEGATE: Final = BY_NAME["ELEMENT_WISE_NEGATE"].number
ACTIVATION_IDENTITY: Final = BY_NAME["ACTIVATION_IDENTITY"].number
SIGN: Final = BY_NAME["ELEMENT_WISE_SIGN"].number
PARAMETERIZED_RELU: Final = BY_NAME["ACTIVATION_PARAMETERIZED_RELU"].number
LEAKY_RELU: Final = BY_NAME["ACTIVATION_LEAKY_RELU"].number
SPLIT: Final = BY_NAME["SPLIT"].number
JOIN: Final = BY_NAME["JOIN"].number


def operator_name(number: int) -> str:
    """Returns the C name of the operator with this DML_OPERATOR_TYPE, such as "DML_OPERATOR_ACTIVATION_RELU"; for a
    number without a row in this table, text such as "DML_OPERATOR_TYPE(53)"."""
    row = BY_NUMBER.get(number)
    return PREFIX + row.name if row else f"{PREFIX}TYPE({number})"


def short_name(number: int) -> str:
    """Returns the name used in messages, such as SIGMOID or MULTIPLY; "operator 53" for a number that is not in this
    table."""
    row = BY_NUMBER.get(number)
    return re.sub("^(ELEMENT_WISE|ACTIVATION)_", "", row.name) if row else f"operator {number}"
