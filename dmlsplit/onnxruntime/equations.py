"""The equations of Einsums that DirectML computes; the others are left to the CPU.

Source: QueryEinSum of DmlOperatorEinSum.cpp and EinSumHelper of OperatorHelper.cpp of ONNX Runtime; observed with all
versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

_MOST_TERMS: Final = 3
"""Two inputs and the output."""
_ELLIPSIS: Final = "."
_PRODUCTS: Final = frozenset(
    {
        *("ab,bc->ac", "abc,acd->abd", "abcd,abde->abce"),
        *("ab,ac->bc", "abc,abd->acd", "abcd,abce->abde"),
        *("ab,cb->ac", "abc,adc->abd", "abcd,abed->abce"),
        *("abcd,adce->abce", "abcd,abce->adce", "abcd,aecd->abce"),
        *("a,b->ab", "a,a->"),
    }
)
"""The products that 1.18 takes, with labels in the order of their first use: of matrices; of matrices of which the
first, or the second, is transposed; of matrices with a batch around the rows; of vectors."""
_SUMS: Final = frozenset({"ab->a", "ab->b"})


@lru_cache(maxsize=1024)
def is_computed_by_dml(equation: str, any_product: bool) -> bool:
    """True if DirectML computes an Einsum with this equation. `any_product`: the version takes every equation of one or
    two inputs without an ellipsis; False if it takes only those for which DirectML has another operator."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if _ELLIPSIS in equation or len(terms) >= _MOST_TERMS:
        return False
    if any_product:
        return True
    if not arrow:
        output = "".join(sorted(label for label in set(inputs) - {","} if inputs.count(label) == 1))
    if len(terms) == 1 and len(output) in (0, len(inputs)):
        return True  # a copy, a Transpose, a sum of all
    named = _renamed([*terms, output])
    return f"{','.join(named[:-1])}->{named[-1]}" in _PRODUCTS | _SUMS or set(named) == {named[-1]}


def _renamed(terms: Sequence[str]) -> list[str]:
    """Returns the terms with the labels a, b, c ... in the order of their first use."""
    labels: Mapping[str, str] = {label: chr(ord("a") + i) for i, label in enumerate(dict.fromkeys("".join(terms)))}
    return ["".join(map(labels.__getitem__, term)) for term in terms]
