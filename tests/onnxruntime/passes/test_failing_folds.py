"""dmlsplit.onnxruntime.passes.failing_folds. Each model was asked of all versions."""

from __future__ import annotations

import pytest

from tests import models
from tests.onnxruntime.placements import placed_model, where

DATA = "float[2,3] d = {1, 2, 3, 4, 5, 6}"
FAILS = (False, True)
"""Whether 1.24.4 and 1.30.0 create the session."""
FOLDS = (True, True)


@pytest.mark.parametrize(
    ("node", "indices", "answers"),
    [
        ("Gather(d, i)", "int64[1] i = {1}", FOLDS),
        ("Gather(d, i)", "int64[1] i = {-2}", FOLDS),
        ("Gather(d, i)", "int64[1] i = {2}", FAILS),
        ("Gather(d, i)", "int32[1] i = {-3}", FAILS),
        ("Gather<axis = 1>(d, i)", "int64[1] i = {2}", FOLDS),
        ("Gather<axis = -1>(d, i)", "int64[1] i = {3}", FAILS),
        ("GatherElements(d, i)", "int64[1,3] i = {0, 2, 1}", FAILS),
        ("GatherElements<axis = 1>(d, i)", "int64[1,1] i = {2}", FOLDS),
        ("GatherND(d, i)", "int64[1,2] i = {1, 2}", FOLDS),
        ("GatherND(d, i)", "int64[1,2] i = {1, -4}", FAILS),
        ("GatherND<batch_dims = 1>(d, i)", "int64[2,1] i = {2, 0}", FOLDS),
        ("GatherND<batch_dims = 1>(d, i)", "int64[2,1] i = {3, 0}", FAILS),
        ("ScatterElements(d, i, u)", "int64[1,3] i = {0, 1, 2}, float[1,3] u = {0, 0, 0}", FAILS),
        ("ScatterElements(d, i, u)", "int64[1,1] i = {1}, float[1,1] u = {0}", FOLDS),
        ("ScatterND(d, i, u)", "int64[1,2] i = {1, 3}, float[1] u = {0}", FAILS),
        ("ScatterND(d, i, u)", "int64[1,2] i = {1, 2}, float[1] u = {0}", FOLDS),
    ],
)
def test_an_index_outside_of_a_constant(node, indices, answers):
    body = f"g = {node} h = ReduceSum<keepdims = 0>(g) y = Mul(x, h)"
    made = models.text(f"(float[1] x) => (float[?] y) <{DATA}, {indices}> {{ {body} }}", 17)
    assert tuple([placed_model(made, version).created for version in ("1.24.4", "1.30.0")]) == answers
    assert placed_model(made, "1.18.0").created is answers[0]


def test_the_failure_names_the_index():
    made = models.text(
        f"(float[1] x) => (float[1,3] y) <{DATA}, int64[1] i = {{5}}> {{ g = Gather(d, i) y = Mul(x, g) }}"
    )
    failure = placed_model(made).failure
    assert failure.message == "g is folded, which fails: its index 5 is not among 2 elements"


@pytest.mark.parametrize(
    ("node", "answers"),
    [
        ("g, t = Split<axis = 1>(e)", (False, False)),
        ("g, t = MaxPool<kernel_shape = [1,1]>(f)", FAILS),
        ("g, t = Split<axis = 1>(x)", (False, False)),
        ("g, t = MaxPool<kernel_shape = [1,1]>(v)", FOLDS),
    ],
    ids=["a Split", "another", "a Split that is not folded", "another that is not folded"],
)
def test_an_output_without_a_name(node, answers):
    body = f"{node} h = ReduceSum<keepdims = 0>(g) y = Mul(z, h)"
    constants = "float[1,2] e = {1, 2}, float[1,1,2,2] f = {1, 2, 3, 4}"
    inputs = "float[1] z, float[2,2] x, float[1,1,2,2] v"
    made = models.text(f"({inputs}) => (float[?] y) <{constants}> {{ {body} }}", 17)
    made.graph.node[0].output[1] = ""
    assert tuple([placed_model(made, version).created for version in ("1.24.4", "1.30.0")]) == answers


def test_an_index_outside_of_a_shape():
    """A Gather that is not folded runs with the session; onnx's inference refuses it."""
    body = "s = Shape(x) g = Gather(s, i) y = Expand(z, g)"
    text = f"(float[SIZES] x, float[1] z) => (float[?] y) <int64[1] i = {{5}}> {{ {body} }}"
    static, opened = [models.text(text.replace("SIZES", sizes)) for sizes in ("2,3", "N,3")]
    for version, answers in (("1.18.0", (False, True)), ("1.24.4", (False, True)), ("1.30.0", (True, True))):
        assert (placed_model(static, version).created, placed_model(opened, version).created) == answers
    assert where(placed_model(static, "1.30.0"))["g"] == "DML"


def test_an_index_outside_of_an_input():
    made = models.text("(float[4] d) => (float y) <int64 i = {4}> { y = Gather(d, i) }")
    for version in ("1.18.0", "1.24.4", "1.30.0"):
        assert placed_model(made, version).created is True


@pytest.mark.parametrize("node", ["Gather<axis = 4294967296>(s, i)", "Concat<axis = 4294967296>(s, i)"])
def test_an_axis_of_more_than_32_bits(node):
    """Asked of 1.20.1, 1.24.4 and 1.30.0: inference takes it for 0."""
    made = models.text(f"(float[2,3] x) => (int64[?] y) <int64[1] i = {{0}}> {{ s = Shape(x) g = {node} y = Neg(g) }}")
    for version, created in (("1.20.1", False), ("1.24.4", False), ("1.30.0", True)):
        assert placed_model(made, version).created is created
