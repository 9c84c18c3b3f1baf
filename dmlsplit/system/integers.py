"""Integers that callers pass, or users type: what is none is refused by the argument's name."""

from __future__ import annotations

import operator
import re
from typing import Final

_DECIMAL: Final = re.compile(r" *(-?[0-9]{1,18}) *")


def integer(value: object, name: str) -> int:
    """The int that `value` stands for as an index does: an int, numpy's, a 0-d array of them; TypeError for others."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: {value!r} is not an integer") from None


def integers(values: object, name: str) -> tuple[int, ...]:
    """The same of a sequence, of which a string is none; TypeError."""
    items = values if isinstance(values, (tuple, list)) else _listed(values, name)
    try:
        return tuple(map(operator.index, items))
    except TypeError:  # names are made where one is needed
        return tuple([integer(item, f"{name}[{i}]") for i, item in enumerate(items)])


def _listed(values: object, name: str) -> list[object]:
    try:
        if isinstance(values, (str, bytes)):
            raise TypeError
        return list(values)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise TypeError(f"{name}: {values!r} is not a sequence of integers") from None


def parsed_integer(text: str) -> int:
    """A number as users type it: 18 ASCII digits at most, spaces around them; ValueError for 4_0, +4, other digits."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not an integer")
    return int(match[1])
