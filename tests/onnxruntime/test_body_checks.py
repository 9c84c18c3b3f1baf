"""dmlsplit.onnxruntime.body_checks. Each model was asked of 1.18.0, 1.24.4 and 1.30.0."""

from __future__ import annotations

import pytest

from tests.onnxruntime.placements import placed

LOOP = """({c} c, float[2,3] x, int64 m) => (float[2,3] y) {{ [l] y = Loop(m, c, x)
    <body = b ({i} i, {k} k, {s} s) => (bool ko, float[2,3] so) {{ ko = Identity(k) so = Relu(s) }}> }}"""
SCAN = """(float[{n}] a, float[{b}] b) => (float[3] f, float[4,3] y) {{ [n] f, y = Scan<num_scan_inputs = 1{axes},
    body = g ({s} s, {v} v) => (float[3] so, float[3] yo) {{ so = Add(s, v) yo = Identity(so) }}>(a, b) }}"""


@pytest.mark.parametrize(
    ("types", "created"),
    [
        ({}, True),
        ({"c": "bool[1]"}, False),
        ({"k": "bool[1]"}, False),
        ({"c": "bool[1]", "k": "bool[1]"}, True),
        ({"c": "bool[N]", "k": "bool[1]"}, True),
        ({"i": "int64[1]"}, True),
        ({"s": "float[2,3,1]"}, True),
        ({"s": "float[2,4]"}, True),
    ],
    ids=str,
)
def test_the_condition_of_a_loop_keeps_its_shape(types, created):
    found = placed(LOOP.format(**{"c": "bool", "i": "int64", "k": "bool", "s": "float[2,3]"} | types))
    assert found.created is created
    if not created:
        assert found.failure.node == "l"


@pytest.mark.parametrize(
    ("types", "created"),
    [
        ({}, True),
        ({"s": "float[3,1]"}, False),
        ({"s": "float[4]"}, False),
        ({"s": "float[Q]"}, True),
        ({"v": "float[1,3]"}, False),
        ({"v": "float[4]"}, False),
        ({"n": "N"}, True),
        ({"axes": ", scan_input_axes = [1]"}, False),
        ({"axes": ", scan_input_axes = [1]", "b": "3,4"}, True),
        ({"axes": ", scan_input_axes = [-1]", "b": "3,4"}, True),
    ],
    ids=str,
)
def test_states_and_slices_of_a_scan_have_the_shapes_of_the_body(types, created):
    found = placed(SCAN.format(**{"n": "3", "b": "4,3", "axes": "", "s": "float[3]", "v": "float[3]"} | types))
    assert found.created is created
    if not created:
        assert found.failure.message.startswith("Scan n hands a tensor of the shape ")


@pytest.mark.parametrize("opset", [7, 10])
def test_control_flow_of_old_opsets(opset):
    """Its kernels are there since opset 1; those of the nodes in it since 7."""
    assert placed(LOOP.format(c="bool", i="int64", k="bool", s="float[2,3]"), opset=opset).created is True
    branch = "() => (float[2,3] p) { p = Neg(x) }"
    text = "(bool c, float[2,3] x) => (float[2,3] y) { y = If<then_branch = t %s, else_branch = e %s>(c) }"
    assert placed(text % (branch, branch.replace("p", "q")), opset=opset).created is True
