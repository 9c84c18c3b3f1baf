"""Converts integers: those that callers pass or users type, with errors that name the argument, and to 32 bits."""

from __future__ import annotations

import operator
import re
from typing import Final

_DECIMAL: Final = r" *(-?[0-9]{1,18}) *"
"""Compiled on first use."""


def signed(number: int) -> int:
    """Returns the value of a number's low 32 bits as a signed integer in two's complement: 2**31 gives -2**31."""
    return (number + 2**31) % 2**32 - 2**31


def integer(value: object, name: str) -> int:
    """Returns `value` (an int, a numpy integer, a 0-d array of one) as an int. Raises TypeError, which names the
    argument `name`, for others."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: {value!r} is not an integer") from None


def integers(values: object, name: str) -> tuple[int, ...]:
    """Returns the elements of a sequence as ints, each converted as `integer` does. Raises TypeError, which names the
    argument `name`, for a value that is not a sequence, for a string, for a set (it has no order), and for an element
    that is not an integer."""
    if type(values) is tuple:
        for value in values:
            if type(value) is not int:
                break
        else:
            return values
    items = values if isinstance(values, (tuple, list)) else _listed(values, name)
    try:
        return tuple(map(operator.index, items))
    except TypeError:  # element names are built only for the error
        return tuple([integer(item, f"{name}[{i}]") for i, item in enumerate(items)])


def _listed(values: object, name: str) -> list[object]:
    try:
        if isinstance(values, (str, bytes, set, frozenset)):
            raise TypeError
        return list(values)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise TypeError(f"{name}: {values!r} is not a sequence of integers") from None


def parsed_integer(text: str) -> int:
    """Returns the number that a user typed: at most 18 ASCII digits, with spaces around them. Raises ValueError for
    anything else, such as 4_0, +4 or digits that are not ASCII."""
    match = re.fullmatch(_DECIMAL, text)
    if match is None:
        raise ValueError(f"'{text}' is not an integer")
    return int(match[1])
