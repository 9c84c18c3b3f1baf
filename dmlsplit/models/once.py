"""A cache in which each value is computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError, EncodeError

from dmlsplit.system.errors import InputError

T = TypeVar("T")
_NOT_MADE: Final[Any] = object()


class Once:
    """A cache of values, or of the InputErrors raised instead."""

    def __init__(self) -> None:
        self._made: dict[object, Any] = {}
        self._failed: dict[object, InputError] = {}

    def __call__(self, key: object, make: Callable[[], T]) -> T:
        """Returns the value for `key`; `make()` computes it at the first call only. Raises the InputError that `make()`
        raised, and InputError for graphs nested too deeply."""
        found: T = self._made.get(key, _NOT_MADE)  # hashed once: hashing takes longer than everything else here
        if found is not _NOT_MADE:
            return found
        if key not in self._failed:
            try:
                found = self._made[key] = make()
                return found
            except InputError as error:
                self._failed[key] = error
            except (RecursionError, DecodeError, EncodeError):  # protobuf has its own limit of 100 messages
                self._failed[key] = InputError("its graphs are nested too deeply")
        raise self._failed[key].with_traceback(None)

    def values(self) -> Iterable[object]:
        """Returns the values computed so far."""
        return self._made.values()
