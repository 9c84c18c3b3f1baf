"""The importer of the C extension in the installed package, under the name that it has there."""

from __future__ import annotations

import importlib
from typing import Any, Final

_NAMES: Final = ("dmlsplit.native.core", "dmlsplit._native")
"""Today's name, and the name in commits before the packages by subject."""


def _found() -> Any:
    for name in _NAMES:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
    raise ImportError(f"dmlsplit has none of {', '.join(_NAMES)}")


core: Final[Any] = _found()
