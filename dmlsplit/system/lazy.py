"""Modules that import their names on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping


def lazy(module: str, names: Mapping[str, str], submodules: Collection[str] = ()) -> Callable[[str], object]:
    """Returns a `__getattr__` for a module: `names` maps each name to the module that defines it, `submodules` are
    submodules to import under their own names. It raises AttributeError for other names."""

    def __getattr__(name: str) -> object:
        if name in submodules:
            return importlib.import_module(f"{module}.{name}")
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(names[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return __getattr__
