"""Checks what a caller passes about a model: facts by name, the model itself, and folders.

A value of a wrong type raises TypeError, which names the argument and the place in it; a size that is no size raises
InputError, a ValueError.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from dmlsplit.descriptors.dims import Dim
from dmlsplit.formats.sessions import Inputs
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

T = TypeVar("T")


def given_size(value: object, what: str) -> int:
    """Returns a caller's size as an int. Raises InputError, which names it `what`, if it is not an integer from 0 to
    2**63 - 1."""
    try:
        size = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{what}: {printable(repr(value), 60)} is not a size") from None
    if not 0 <= size < 2**63:
        raise InputError(f"{what}: {size} is not a size")
    return size


def shapes_of(given: object, argument: str = "shapes") -> dict[str, tuple[Dim, ...]]:
    """Returns a caller's shapes by name, {} for None. A size is an integer, a symbol, or None for an unknown one."""
    return _by_name(given, argument, "a sequence of sizes", _shape)


def sizes_of(given: object, argument: str = "dims") -> dict[str, int]:
    """Returns a caller's sizes of symbolic dimensions by name, {} for None."""
    return _by_name(given, argument, "a size", _size)


def values_of(given: object, argument: str = "values") -> dict[str, Any]:
    """Returns a caller's elements of tensors by name, {} for None."""
    return _by_name(given, argument, "a sequence of numbers", _values)


def inputs_of(
    shapes: object = None, dims: object = None, values: object = None, free_dimensions: object = None, prefix: str = ""
) -> Inputs:
    """Returns a caller's facts about a model's inputs; the names of all arguments but `free_dimensions` begin with
    `prefix`."""
    return Inputs(
        shapes_of(shapes, f"{prefix}shapes"),
        sizes_of(dims, f"{prefix}dims"),
        values_of(values, f"{prefix}values"),
        sizes_of(free_dimensions, "free_dimensions"),
    )


def check_source(source: object) -> None:
    """Raises TypeError for what is neither a path, nor bytes, nor a protobuf message with a graph."""
    if not isinstance(source, (str, bytes, os.PathLike)) and not hasattr(source, "opset_import"):
        raise TypeError(f"source: a path, bytes or an onnx.ModelProto is expected, not {_kind(source)}")


def _by_name(given: object, argument: str, expected: str, read: Callable[[str, str, object], T | None]) -> dict[str, T]:
    """Returns the values that `read` returns for the values of a mapping; it gets the argument, the name and the value,
    and returns None for a value of a wrong type."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{argument}: a mapping of names is expected, not {_kind(given)}")
    found = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise TypeError(f"{argument}: a name is a string, not {_kind(name)}: {printable(repr(name), 60)}")
        made = read(argument, name, value)
        if made is None:
            raise TypeError(f"{argument}[{printable(repr(name), 60)}]: {expected} is expected, not {_kind(value)}")
        found[name] = made
    return found


def _shape(argument: str, name: str, value: object) -> tuple[Dim, ...] | None:
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return None
    if not isinstance(value, Sequence) and not (isinstance(value, np.ndarray) and value.ndim == 1):
        return None
    what = f"shape of '{printable(name)}'"
    return tuple(
        [
            size if size is None or isinstance(size, str) else given_size(size, f"{what}, dimension {i}")
            for i, size in enumerate(value)
        ]
    )


def _size(argument: str, name: str, value: object) -> int:
    return given_size(value, f"dimension '{printable(name)}'")


def _values(argument: str, name: str, value: object) -> Any:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"values of '{printable(name)}': {error}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"values of '{printable(name)}': {array.dtype} is not a numeric type")
    return array.tolist()


def _kind(value: object) -> str:
    return type(value).__name__
