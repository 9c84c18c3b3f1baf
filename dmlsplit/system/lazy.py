"""Modules that import their names on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping


def lazy(
    module: str, names: Mapping[str, str], submodules: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a module. `names` maps modules to the names taken from each, separated by
    spaces; `submodules` are submodules to import under their own names. `__getattr__` raises AttributeError for other
    names."""
    sources = {name: source for source, taken in names.items() for name in taken.split()}

    def __getattr__(name: str) -> object:
        if name in submodules:
            return importlib.import_module(f"{module}.{name}")
        if name not in sources:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(sources[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[module]), *sources, *submodules})

    return __getattr__, __dir__
