"""The types of public calls: mypy agrees with what tests/typed_calls.py says, and no signature hides behind Any."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import typing
from collections import ChainMap
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import dmlsplit as dml

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_mypy_agrees():
    pytest.importorskip("mypy")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "tests/typed_calls.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


PUBLIC = sorted(
    {f"dmlsplit.{name}" for name in dml.__all__}
    | {
        name
        for page in (ROOT / "docs" / "api").glob("*.md")
        for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)
    }
)
"""The names of the package itself, and those that the pages of the API have besides."""


@pytest.mark.parametrize("module", [dml, dml.graphs, dml.onnx, dml.onnxruntime], ids=lambda module: module.__name__)
def test_a_module_names_the_same_things_to_everybody(module):
    """To type checkers, at first use, and in __all__: of each name the same module."""
    checked, listed = {}, set()
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If):
            assert ast.unparse(node.test) == "TYPE_CHECKING"
            checked |= {alias.name: imported.module for imported in node.body for alias in imported.names}
            listed |= {alias.name for imported in node.body for alias in imported.names if alias.asname is None}
    taken = {name: source for source, names in module._NAMES.items() for name in names.split()}
    assert checked == taken | dict.fromkeys(getattr(module, "_MODULES", ()), module.__name__)
    assert module.__all__ == sorted(listed)  # the others are named `x as x`: exported, but not listed
    assert [name for name in dir(module) if name in module.__all__] == module.__all__
    for name, source in checked.items():
        assert getattr(module, name) is getattr(importlib.import_module(source), name)


def public_calls():
    """Each with the modules whose names its annotations have: a dataclass has the fields of its bases."""
    for dotted in PUBLIC:
        module, _, name = dotted.rpartition(".")
        found = inspect.unwrap(getattr(importlib.import_module(module), name))
        if inspect.isfunction(found):
            yield dotted, found, [found.__module__]
        if not inspect.isclass(found):
            continue
        modules = [cls.__module__ for cls in found.mro() if cls.__module__.startswith("dmlsplit")]
        for member, value in inspect.getmembers_static(found):
            call = getattr(value, "__func__", None) or getattr(value, "fget", None) or getattr(value, "func", value)
            is_public = not member.startswith("_") or member in ("__call__", "__init__")
            if is_public and inspect.isfunction(call) and call.__module__.startswith("dmlsplit"):
                yield f"{dotted}.{member}", call, modules


@cache
def namespace(module):
    """The names of a module, those included that it imports and defines for type checkers only."""
    names = dict(vars(module))
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                try:
                    exec(ast.unparse(statement), names)
                except ImportError:  # of a name that is there for type checkers only, too
                    there = namespace(importlib.import_module(statement.module))
                    names |= {alias.asname or alias.name: there[alias.name] for alias in statement.names}
    return names


def hides_behind_any(hint):
    """An array of no element type is one of Any; numpy's own alias has an Any for the shape."""
    parts = typing.get_args(hint)[typing.get_origin(hint) is np.ndarray :]
    return hint in (typing.Any, np.ndarray) or any(map(hides_behind_any, parts))


@pytest.mark.parametrize(("call", "modules"), [pytest.param(*rest, id=name) for name, *rest in public_calls()])
def test_no_signature_hides_behind_any(call, modules):
    names = dict(ChainMap(*[namespace(importlib.import_module(module)) for module in modules]))
    for signature in (*typing.get_overloads(call), call):
        hints = typing.get_type_hints(signature, names)
        assert not [name for name, hint in hints.items() if hides_behind_any(hint)]


@pytest.mark.parametrize("hint", [typing.Any, dict[str, typing.Any], list[np.ndarray], npt.NDArray[typing.Any] | None])
def test_any_is_found_wherever_it_stands(hint):
    assert hides_behind_any(hint)
    assert not hides_behind_any(list[npt.NDArray[np.generic]])


KIND_DECIDES = [
    dml.CompiledOperator.__call__,
    dml.CompiledOperator.dispatch,
    dml.CompiledOperator.bind,
    dml.Legalization.execute,
    dml.Legalization.dispatch,
]


@pytest.mark.parametrize("call", KIND_DECIDES, ids=lambda call: call.__qualname__)
def test_each_kind_has_a_signature(call):
    names = namespace(importlib.import_module(call.__module__))
    kinds = [str(typing.get_type_hints(overload, names)["self"]) for overload in typing.get_overloads(call)]
    assert [re.search(r"\[[\w.]*?(\w+)\]", kind)[1] for kind in kinds] == ["SplitOperatorDesc", "JoinOperatorDesc"]
