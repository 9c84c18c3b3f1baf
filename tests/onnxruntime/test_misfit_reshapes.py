"""dmlsplit.onnxruntime.misfit_reshapes. Each model was asked of 1.20.1 and 1.24.4."""

from __future__ import annotations

import pytest

from tests import models
from tests.onnxruntime.placements import placed_model

FOLDED = "r is folded, and its shape [2] does not fit a tensor of {}"
REFUSED = "CompileGraph refuses a fused graph, at r: its shape [2] does not fit a tensor of {}"
CONSTANTS = "<int64[1] s = {2}, int64[1] three = {3}, int64 none = {1}, float k = {1.0}>"


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("(float[3] x) => (float[2] y) %s { [r] y = Reshape(x, s) }", ""),
        ("(float[3] x) => (float[2] y) %s { a = Relu(x) [r] y = Reshape(a, s) }", ""),
        ("(float[3] x) => (float[2] z) %s { [r] y = Reshape(x, s) z = Relu(y) }", REFUSED.format([3])),
        ("(float x) => (float[2] z) %s { [r] y = Reshape(x, s) z = Relu(y) }", REFUSED.format([])),
        ("(float[3] x) => (float[1] z) %s { [r] y = Reshape(x, s) z, u = Split<axis = 0>(y) }", REFUSED.format([3])),
        ("(float[N] x) => (float[2] z) %s { [r] y = Reshape(x, s) z = Relu(y) }", ""),
        ("(double[3] x) => (double[2] z) %s { [r] y = Reshape(x, s) z = Relu(y) }", ""),
        ("(float[3] x) => (float[2] y) %s { [r] y = Reshape(k, s) }", FOLDED.format([])),
        ("(float[3] x) => (float[2] y) %s { c = ConstantOfShape(three) [r] y = Reshape(c, s) }", FOLDED.format([3])),
    ],
    ids=["alone", "last", "read", "scalar", "split", "open", "on the CPU", "constant", "computed constant"],
)  # fmt: skip
def test_a_shape_of_another_number_of_elements(text, failure):
    made = models.text(text % CONSTANTS, 17)
    for version in ("1.20.1", "1.24.4"):
        found = placed_model(made, version)
        assert found.created is (not failure)
        assert not failure or (found.failure.message, found.failure.node) == (failure, "r")


def test_two_reshapes_in_a_row_are_one_from_1_21_on():
    made = models.text("(float[3] x) => (float[2] z) <int64[1] s = {2}> { y = Reshape(x, s) z = Reshape(y, s) }", 17)
    assert [placed_model(made, version).created for version in ("1.20.1", "1.24.4")] == [False, True]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("y = Expand(x, t)", "e: its shape [2, 3] does not fit a tensor of [3, 3]"),
        ("m = Neg(t) y = Expand(x, m)", "e: its shape [-2, -3] does not fit a tensor of [3, 3]"),
        ("p = Shape(v) y = Expand(x, p)", None),
        ("p = Shape(n) y = Expand(x, p)", None),
    ],
    ids=["shape", "negative", "fits", "open"],
)
def test_an_expand_by_a_folded_shape(text, failure):
    inputs = "float[3,3] x, float[2,3] w, float[3,1] v, float[N,3] n"
    made = models.text(f"({inputs}) => (float[?,?] y) {{ t = Shape(w) {text} }}", 17)
    (expand,) = [node for node in made.graph.node if node.op_type == "Expand"]
    expand.name = "e"
    for version in ("1.20.1", "1.24.4"):
        found = placed_model(made, version)
        assert found.created is (failure is None)
        assert (found.failure and found.failure.message) == failure


@pytest.mark.parametrize(
    ("text", "created"),
    [
        ("c = ConstantOfShape(t) y = MatMul(c, c)", False),
        ("r = Reshape(x, t) y = Add(r, q)", False),
        ("m = Mul(t, minus) y = Reshape(x, m)", False),
        ("r = Reshape(x, t) y = Add(r, x)", True),
    ],
    ids=["product", "sum", "negative", "fits"],
)
def test_nodes_whose_sizes_are_known_once_a_shape_is_folded(text, created):
    inputs, constants = "float[2,3] x, float[2,3] w, float[4] q", "int64[1] minus = {-1}"
    made = models.text(f"({inputs}) => (float[?,?] y) <{constants}> {{ t = Shape(w) {text} }}", 17)
    for version in ("1.20.1", "1.24.4"):
        found = placed_model(made, version)
        assert found.created is created
        assert created or ", once what it reads is folded: " in found.failure.message


@pytest.mark.parametrize(
    ("text", "created"),
    [
        ("(float x) => (float y) <int64[1] a = {0}, B> { c = Identity(a) y = Slice(x, s, e, c) }", False),
        ("(float[4,8] x) => (float[1,8] y) <int64[1] a = {2}, B> { c = Add(a, z) y = Slice(x, s, e, c) }", False),
        ("(float[4,8] x) => (float[1,8] y) <int64[1] a = {0}, B> { c = Add(a, z) y = Slice(x, s, e, c) }", True),
        ("(float[4,3] x) => (float[1,4,3] y) <int64[1] a = {5}, B> { c = Add(a, z) y = Unsqueeze(x, c) }", False),
        ("(float[4,3] x) => (float[4,3] y) <int64[1] a = {0}, B> { c = Add(a, z) y = Squeeze(x, c) }", False),
        (
            "(float[4,3] x) => (float[4,5] y, int64[4,5] i) <int64[1] a = {5}, B> { c = Add(a, z) y, i = TopK(x, c) }",
            False,
        ),
    ],
)
def test_declared_sizes_of_what_reads_folded_ones(text, created):
    """Asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0: the model declares all sizes, and inference still looks."""
    text = text.replace("B>", "int64[1] s = {0}, int64[1] e = {1}, int64[1] z = {0}>")
    for version in ("1.18.0", "1.24.4"):
        found = placed_model(models.text(text), version)
        assert found.created is created
        assert created or ", once what it reads is folded: " in found.failure.message
