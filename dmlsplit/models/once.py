"""A cache in which each value is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, EncodeError

from dmlsplit.system.errors import InputError

T = TypeVar("T")


class Once:
    """A cache of values, and of InputErrors that were raised in their place."""

    def __init__(self) -> None:
        self._made: dict[object, Any] = {}

    def __call__(self, key: object, make: Callable[[], T]) -> T:
        """The value of `make()`, called the first time only. Raises the InputError that it raised, and InputError
        for graphs nested too deeply."""
        if key not in self._made:
            try:
                self._made[key] = make()
            except InputError as error:
                self._made[key] = error
            except (RecursionError, DecodeError, EncodeError):  # protobuf has its own limit, of 100 messages
                self._made[key] = InputError("its graphs are nested too deeply")
        found: T | InputError = self._made[key]
        if isinstance(found, InputError):
            raise found.with_traceback(None)
        return found
