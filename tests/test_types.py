"""The types of public calls: mypy agrees with what tests/typed_calls.py says, and no signature hides behind Any."""

import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path

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


def public_calls():
    for name in ("compile", "legalize", "split", "join", "CompiledOperator", "BoundOperator", "Legalization", "Buffer"):
        found = getattr(dml, name)
        if inspect.isclass(found):
            members = [(n, m) for n, m in vars(found).items() if not n.startswith("_") or n in ("__call__", "__init__")]
            yield from ((f"{name}.{n}", getattr(m, "__func__", m)) for n, m in members if callable(m))
        else:
            yield name, found


@pytest.mark.parametrize(("name", "call"), list(public_calls()))
def test_no_signature_hides_behind_any(name, call):
    """Neither by that word nor by an array of no element type, which is one of Any."""
    for signature in map(inspect.signature, [*typing.get_overloads(call), call]):
        annotations = [str(p.annotation) for p in signature.parameters.values()] + [str(signature.return_annotation)]
        assert not [a for a in annotations if re.search(r"\bAny\b|\bnp\.ndarray\b(?!\[)", a)]


KIND_DECIDES = [
    dml.CompiledOperator.__call__,
    dml.CompiledOperator.dispatch,
    dml.CompiledOperator.bind,
    dml.Legalization.execute,
    dml.Legalization.dispatch,
]


@pytest.mark.parametrize("call", KIND_DECIDES, ids=lambda call: call.__qualname__)
def test_each_kind_has_a_signature(call):
    kinds = [str(inspect.signature(overload).parameters["self"].annotation) for overload in typing.get_overloads(call)]
    assert [re.search(r"\[(\w+)\]", kind)[1] for kind in kinds] == ["SplitOperatorDesc", "JoinOperatorDesc"]
