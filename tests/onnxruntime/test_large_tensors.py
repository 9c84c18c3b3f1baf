"""dmlsplit.onnxruntime.large_tensors. Each model was asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0."""

from __future__ import annotations

import pytest

from tests import models
from tests.onnxruntime.placements import placed_model


@pytest.mark.parametrize(
    ("text", "created"),
    [
        ("(float[4294967295] x) => (float[4294967295] y) { [n] y = Relu(x) }", True),
        ("(float[4294967296] x) => (float[4294967296] y) { [n] y = Relu(x) }", False),
        ("(float[65536,65536] x) => (float[65536,65536] y) { [n] y = Relu(x) }", False),
        ("(float[N,4294967296] x) => (float[N,4294967296] y) { [n] y = Relu(x) }", True),
        ("(float[65536,65536] x) => (int64[2] y) { [n] y = Shape(x) }", True),
        ("(float[65536,65536] x, float[2] q) => (float[2] y) { [n] y = Relu(q) }", True),
        ("(float[0,4294967296] x) => (float[0,4294967296] y) { [n] y = Relu(x) }", False),
        ("(float[0,4294967295] x) => (float[0,4294967295] y) { [n] y = Relu(x) }", True),
        ("(float[2,2147483647] x, float[2147483647,3] w) => (float[2,3] y) { [n] y = MatMul(x, w) }", False),
    ],
)
def test_a_tensor_on_directml_has_less_than_2_to_the_32_elements(text, created):
    for version in ("1.18.0", "1.24.4"):
        found = placed_model(models.text(text, 17), version)
        assert found.created is created
        assert created or found.failure.message.endswith(", 2^32 elements or more")
