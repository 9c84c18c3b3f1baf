"""The arithmetic of the operators observed next to Split and Join in graphs, element by element, in numpy.

A GPU rounds differently: its results may differ in the last bits. FLOAT16 is computed in 32 bits. Source: the pages of
the operators' structs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.schema import find_operator
from dmlsplit.graphs.operators import BY_NUMBER, Family
from dmlsplit.graphs.program import Unmodelled

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"
Function: TypeAlias = Callable[..., Array]
"""Takes the arrays of the inputs, then the struct's scalar members in order."""


def sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * x))  # unlike 1 / (1 + exp(-x)), this does not overflow


def swish(x: Array, *factors: Array) -> Array:
    """Returns x * sigmoid(x) * the product of `factors`, element by element; CompileGraph fuses these nodes into one
    dispatch."""
    product = x * sigmoid(x)
    for factor in factors:
        product = product * factor
    return product


def softplus(x: Array, steepness: float) -> Array:
    return np.logaddexp(0, steepness * x) / steepness


_erf: Final = np.vectorize(math.erf, otypes=[np.float64])  # numpy has no erf


FUNCTIONS: Final[Mapping[str, Function]] = {
    "ELEMENT_WISE_ABS": np.abs,
    "ELEMENT_WISE_ADD": np.add,
    "ELEMENT_WISE_ATAN": np.arctan,
    "ELEMENT_WISE_DIVIDE": np.divide,
    "ELEMENT_WISE_ERF": _erf,
    "ELEMENT_WISE_EXP": np.exp,
    "ELEMENT_WISE_FLOOR": np.floor,
    "ELEMENT_WISE_MAX": np.maximum,
    "ELEMENT_WISE_MIN": np.minimum,
    "ELEMENT_WISE_MULTIPLY": np.multiply,
    "ELEMENT_WISE_NEGATE": np.negative,
    "ELEMENT_WISE_POW": np.power,
    "ELEMENT_WISE_RECIP": np.reciprocal,
    "ELEMENT_WISE_SIGN": np.sign,
    "ELEMENT_WISE_SIN": np.sin,
    "ELEMENT_WISE_SQRT": np.sqrt,
    "ELEMENT_WISE_SUBTRACT": np.subtract,
    "ELEMENT_WISE_TANH": np.tanh,
    "ACTIVATION_ELU": lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "ACTIVATION_GELU": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "ACTIVATION_HARD_SIGMOID": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "ACTIVATION_LEAKY_RELU": lambda x, alpha: np.where(x < 0, alpha * x, x),
    "ACTIVATION_LINEAR": lambda x, alpha, beta: alpha * x + beta,
    "ACTIVATION_PARAMETRIC_SOFTPLUS": lambda x, alpha, beta: alpha * np.logaddexp(0, beta * x),
    "ACTIVATION_PARAMETERIZED_RELU": lambda x, slope: np.where(x < 0, slope * x, x),
    "ACTIVATION_RELU": lambda x: np.maximum(x, 0),
    "ACTIVATION_SCALED_ELU": lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "ACTIVATION_SIGMOID": sigmoid,
    "ACTIVATION_SOFTPLUS": softplus,
    "ACTIVATION_SOFTSIGN": lambda x: x / (1 + np.abs(x)),
    "ACTIVATION_TANH": np.tanh,
}
"""Maps an operator's name, without DML_OPERATOR_, to its function. Identities, Slices, Splits and Joins only move
elements."""


def copied(x: Array) -> Array:
    return x


def function_of(node: AnyOperatorDesc) -> Function:
    """Returns the function that computes an operator's output from its inputs. Raises Unmodelled if the operator, or a
    value of one of its members, is not emulated."""
    row = BY_NUMBER.get(node.type)
    if row is None:
        raise Unmodelled(f"operator {node.type} is not emulated")
    if node.members.get("ScaleBias") is not None:
        raise Unmodelled("a scale and bias are not emulated")
    if row.family in (Family.IDENTITY, Family.SLICE) or row.name == "ACTIVATION_IDENTITY":
        return copied
    compute = FUNCTIONS.get(row.name)
    if compute is None:
        raise Unmodelled(f"{row.name} is not emulated")
    numbers: list[float] = []
    for member in find_operator(row.number).members:
        if member.type == "float":
            value = node.members.get(member.name)
            if not isinstance(value, (int, float)):
                raise Unmodelled(f"{row.name} needs {member.name}")
            numbers.append(float(np.float32(value)))
    return lambda *inputs: compute(*inputs, *numbers)


def applied(function: Function, inputs: Sequence[Array], dtype: npt.DTypeLike) -> Array:
    """Returns the function's result for these inputs as an array of `dtype`; it is computed in 32 bits, and 16-bit
    results are rounded once."""
    if function is copied:
        return inputs[0]
    with np.errstate(all="ignore"):  # infinities and NaN are valid results
        return function(*[x.astype(np.float32, copy=False) for x in inputs]).astype(dtype, copy=False)
