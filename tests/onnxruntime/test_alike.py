"""SessionGraph.alike: what is true of one node must be true of all nodes that are like it."""

from __future__ import annotations

import pytest

from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests import models

TWO = "(float[4,4] x, float[4,4] z, int64[1] n, int64[1] m) => (float[4,4] a, float[4,4] b)"
CONSTANTS = "<int64[1] one = {1}, int64[1] two = {2}>"


def alike(text, level=99):
    options = SessionOptions(optimization=level)
    sessions = OnnxSessions(models.text(text, 17), no_external_data)
    return sessions.of(find_runtime("1.24.4"), options).graphs[-1].alike


@pytest.mark.parametrize(
    ("constants", "nodes"),
    [
        ("", "a = Relu(x) b = Relu(z)"),
        ("", "a = Mul(x, z) b = Mul(z, x)"),
        ("", "a = Softmax<axis = 0>(x) b = Softmax<axis = 0>(z)"),
        (CONSTANTS, "a = CumSum(x, one) b = CumSum(z, one)"),
    ],
)
def test_nodes_that_differ_in_names_only_are_alike(constants, nodes):
    assert alike(f"{TWO} {constants} {{ {nodes} }}") == [0, 0]


@pytest.mark.parametrize(
    ("constants", "nodes"),
    [
        ("", "a = Relu(x) b = Sigmoid(z)"),
        ("", "a = Softmax<axis = 0>(x) b = Softmax<axis = 1>(z)"),
        (CONSTANTS, "a = CumSum(x, one) b = CumSum(z, two)"),
        ("", "a = Clip(x, , x) b = Clip(z, z)"),
        ("", "a = Cast<to = 1>(x) b = Cast<to = 1>(n)"),
        ("", "a = CumSum(x, n) b = CumSum(z, m)"),
    ],
)
def test_nodes_that_differ_in_operator_attributes_constants_or_types_are_not(constants, nodes):
    assert alike(f"{TWO} {constants} {{ {nodes} }}") == [0, 1]


def test_nodes_that_read_positions_which_other_nodes_compute_are_like_no_other():
    reads = "a = Slice(x, one, j) b = Slice(z, one, k)"
    found = alike(f"{TWO} {CONSTANTS} {{ j = Add(one, one) k = Add(one, two) {reads} }}", level=0)
    assert found[2:] == [2, 3]


def test_nodes_with_open_sizes_are_like_no_other():
    assert alike("(float[N] x, float[N] z) => (float[N] a, float[N] b) { a = Relu(x) b = Relu(z) }") == [0, 1]
