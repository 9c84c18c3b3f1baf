"""The pass dmlsplit.onnxruntime.passes.qdq_propagation: each model was asked of 1.20.1, 1.24.4 and 1.30.0."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests.models import text

GIVEN = "float s = {1}, float8e5m2 z = {0}, int64[4] k = {2,3,5,4}, int64[1] none = {0}, int64[1] one = {1}"
QUANTIZED = "d = DequantizeLinear(x, s, z) "


def placement(body, opset=19, version="1.24.4", given="float8e5m2", optimization=99):
    head = f"({given}[2,3,4,5] x, float8e5m2 v) => (float[?,?,?,?] y) <{GIVEN.replace('float8e5m2', given)}>"
    sessions = OnnxSessions(text(f"{head} {{ {body} }}", opset), lambda *_: None)
    return sessions.of(find_runtime(version), SessionOptions(optimization=optimization)).placement


@pytest.mark.parametrize("version", ["1.20.1", "1.24.4", "1.30.0"])
@pytest.mark.parametrize(
    "moving",
    [
        "r = Reshape(d, k)",
        "r = Transpose(d)",
        "r = Slice(d, none, one)",
        "u = Unsqueeze(d, none) r = Squeeze(u, none)",
        "r = MaxPool<kernel_shape = [2,2]>(d)",
    ],
    ids=["Reshape", "Transpose", "Slice", "Unsqueeze", "MaxPool"],
)
def test_floats_of_8_bits_are_not_moved(moving, version):
    found = placement(f"{QUANTIZED} {moving} y = Relu(r)", version=version)
    assert found.created is False
    assert "is left to move the elements of x" in found.failure.message


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (f"{QUANTIZED} r = Reshape(d, k) y = Relu(r)", {"given": "uint8"}),
        (f"{QUANTIZED} r = Reshape(d, k) y = Relu(r)", {"opset": 23}),
        (f"{QUANTIZED} r = Reshape(d, k) y = Relu(r)", {"optimization": 1}),
        (f"{QUANTIZED} y = Relu(d)", {}),
        ("d = DequantizeLinear(x, s, v) r = Reshape(d, k) y = Relu(r)", {}),
    ],
    ids=["of integers", "on the CPU", "not optimized", "computed with", "a zero point that is no constant"],
)
def test_others_are(body, changes):
    assert placement(body, **changes).created is True
