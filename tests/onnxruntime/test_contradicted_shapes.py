"""Shapes that a model declares and that are not those of its nodes. Asked of 1.18.0, 1.24.4 and 1.30.0."""

from __future__ import annotations

import onnx
import pytest

from tests import models
from tests.onnxruntime.placements import placed, placed_model

CHAIN = (
    "(float[2,3] x) => (float[2,3] y) { [p] b = Relu(x) [q] a = Exp(b) [r] c = Neg(a) [s] d = Abs(c) [t] y = Relu(d) }"
)


@pytest.mark.parametrize(
    ("declared", "output", "fused"),
    [
        ((2, 3), (2, 3), "pqrst"),
        ((2, 3, 1), (2, 3), "p"),
        ((2, 4), (2, 3), "p"),
        ((2, 3), (2, 3, 1), "pqrs"),
        ((2, 3), (2, 4), "pqrs"),
    ],
)
def test_sizes_that_contradict_each_other_are_not_known(declared, output, fused):
    made = models.text(CHAIN)
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, declared))
    made.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, output))
    found = placed_model(made)
    assert found.created is True
    assert "".join(node.path for node in found.nodes.values() if node.graph is not None) == fused


def test_a_rank_that_is_only_declared_fails_no_session():
    sizes = ",".join("2" * 8)
    assert placed(f"(float[{sizes}] x) => (float[{sizes},2] y) {{ y = Exp(x) }}").created is True
    assert placed(f"(float[{sizes},2] x) => (float[{sizes},2] y) {{ y = Exp(x) }}").created is False


def test_what_follows_is_inferred_without_what_was_declared():
    text = "(float[2,3] x, float[2,3] z) => (float[2,3] y) <float[2] a> { a = Relu(x) y = Div(a, z) }"
    made = models.text(text)
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [2]))
    assert placed_model(made).created is True


def test_a_contradiction_in_a_branch():
    branch = "() => (float[2,3] %s) { a%s = Relu(x) %s = Neg(a%s) }"
    text = "(bool c, float[2,3] x) => (float[2,3] y) { y = If<then_branch = t %s, else_branch = e %s>(c) }"
    made = models.text(text % (branch % ("p", 1, "p", 1), branch % ("q", 2, "q", 2)))
    inner = made.graph.node[0].attribute[0].g
    inner.value_info.append(onnx.helper.make_tensor_value_info("a1", onnx.TensorProto.FLOAT, [2, 3, 1]))
    assert placed_model(made).created is True


@pytest.mark.parametrize(
    ("inputs", "sizes", "session"), [("p", "2,5", False), ("p", "2,5,1", True), ("p, v", "2,5,1", False)]
)
def test_the_kernel_of_a_contradicted_tensor(inputs, sizes, session):
    """It is created alone, by the rule for all kernels outside of fused graphs: with the session, but for those that
    lack an input. Observed."""
    head = f"(float[2,3] x) => (float[{sizes}] y) <int64[4] p = {{0,1,0,1}}, float v = {{0}}>"
    assert placed(f'{head} {{ y = Pad<mode = "xyz">(x, {inputs}) }}').created is session


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_a_default_that_onnx_mistakes(version):
    """An STFT is one-sided unless it says otherwise: of 16 samples it makes 9 numbers. onnx infers 16."""
    constants = "<float[16] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, int64 step = {8}>"
    body = "s = STFT(x, step, w)  p = ReduceSumSquare<axes=[-1], keepdims=0>(s)  y = MatMul(p, m)"
    assert placed(f"(float[1,560] x, float[9,4] m) => (float[?,?,?] y) {constants} {{ {body} }}", version).created
    wrong = placed(f"(float[1,560] x, float[16,4] m) => (float[?,?,?] y) {constants} {{ {body} }}", version)
    assert (wrong.created, wrong.failure.node) == (False, "y")
