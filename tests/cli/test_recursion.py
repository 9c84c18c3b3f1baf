"""Functions that call themselves: every command says the same. ONNX Runtime 1.30.0 refuses such a model; the process of
1.18.0 to 1.24.4 ends."""

from __future__ import annotations

import onnx
import pytest

from dmlsplit.onnxruntime import session
from tests.models import model, node, value

IMPORTS = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("l", 1)]


def calls(name):
    return node(name, ["a"], ["b"], domain="l")


FUNCTIONS = {
    "itself": {"F": calls("F")},
    "one another": {"F": calls("G"), "G": calls("F")},
    "behind another": {"F": calls("G"), "G": calls("G")},
    "not called": {"F": node("Relu", ["a"], ["b"]), "G": calls("H"), "H": calls("G")},
}


def recursive(which, before=()):
    made = [onnx.helper.make_function("l", name, ["a"], ["b"], [body], IMPORTS) for name, body in which.items()]
    nodes = [*before, node("F", ["x"], ["y"], domain="l", name="call")]
    return model(nodes, [value("x", [2, 3])], ["y"], 17, functions=made, domains=["l"], ir_version=8)


SPLIT = node("Split", ["x"], ["p", "q"], axis=0, name="s")


@pytest.mark.parametrize("target", [(), ("--onnxruntime", "1.24.4"), ("--onnxruntime", "1.30.0")])
@pytest.mark.parametrize("before", [(), (SPLIT,)], ids=["alone", "beside a Split"])
@pytest.mark.parametrize(
    ("which", "name"), [("itself", "l:F"), ("one another", "l:F"), ("behind another", "l:G")], ids=str
)
def test_check_and_legalize_do_not_read_the_model(cli, tmp_path, which, name, before, target):
    (tmp_path / "m.onnx").write_bytes(recursive(FUNCTIONS[which], before).SerializeToString())
    for command in (("check", "m.onnx"), ("legalize", "m.onnx", "-o", "o.onnx")):
        result = cli(*command, *target)
        assert result.status == 2
        assert f"dmlsplit: m.onnx: function {name} calls itself" in result.err.splitlines()
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4", "1.30.0"])
def test_no_version_creates_a_session(version):
    found = session(recursive(FUNCTIONS["itself"]), version)
    assert (found.created, found.failure.message) == (False, "function l:F calls itself; the model is not loaded")


def test_functions_that_are_not_called_are_refused_by_new_versions():
    assert session(recursive(FUNCTIONS["not called"]), "1.24.4").created is True
    found = session(recursive(FUNCTIONS["not called"]), "1.30.0")
    assert found.created is False
    assert found.failure.message.endswith(" calls itself: 1.30.0 does not load the model")


def test_a_chain_of_functions_is_followed_once():
    """A walk from every function took time with the square of their number."""
    chain = {f"F{i}": calls(f"F{i + 1}") for i in range(3000)}
    made = recursive({"F": calls("F0"), **chain, "F3000": calls("F3000")})
    assert session(made, "1.24.4").failure.message == "function l:F3000 calls itself; the model is not loaded"
