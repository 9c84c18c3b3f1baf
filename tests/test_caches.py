"""What a process keeps of all the files that it reads: a bounded number of answers."""

import functools
import importlib
import inspect
import pkgutil

import dmlsplit

OF_THE_PACKAGE = {
    "dmlsplit.formats.cstruct.operator_struct",
    "dmlsplit.library.harness.harness",
    "dmlsplit.rules._scope",
    "dmlsplit.targets.operator_support._support",
    "dmlsplit.targets.operator_support.recorded_values",
    "dmlsplit.targets.operator_tables._facts",
    "dmlsplit.targets.runtime_versions._traits_of",
    "dmlsplit.targets.runtime_versions.key_of",
    "dmlsplit.verdicts.validation._accepted",
}
"""Functions whose strings are names in the package's own tables."""


def unbounded():
    """The functions with a cache without a bound, by their names."""
    for module in pkgutil.walk_packages(dmlsplit.__path__, "dmlsplit."):
        if module.name.endswith("__main__") or "._" in module.name:
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, functools._lru_cache_wrapper) and value.cache_info().maxsize is None:
                yield f"{value.__module__}.{value.__qualname__}", value


def test_no_cache_grows_by_the_names_in_files():
    found = {name: inspect.signature(function).parameters.values() for name, function in unbounded()}
    by_name = {name for name, given in found.items() if any("str" in str(each.annotation) for each in given)}
    assert by_name == OF_THE_PACKAGE
