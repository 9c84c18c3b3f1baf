"""dmlsplit.onnxruntime.support_queries. Each model was asked of all versions."""

from __future__ import annotations

import pytest

from dmlsplit.verdicts.model_placements import Why
from tests import models
from tests.onnxruntime.placements import placed_model, reason, where


def found(text, opset):
    made = models.text(text, opset, domains=["com.microsoft"])
    return [placed_model(made, version) for version in ("1.18.0", "1.24.4", "1.30.0")]


@pytest.mark.parametrize(
    ("order", "provider"), [("", "DML"), (", storage_order = 0", "DML"), (", storage_order = 1", "CPU")]
)
def test_the_order_of_the_indices_of_a_pool_without_them(order, provider):
    node = f"MaxPool<kernel_shape = [2,2]{order}>(x)"
    for each in found(f"(float[1,1,4,4] x) => (float[?,?,?,?] y) {{ y = {node} }}", 12):
        assert where(each) == {"y": provider}
        assert provider == "DML" or reason(each, "y") is Why.ATTRIBUTES


@pytest.mark.parametrize(
    ("attributes", "more", "outputs", "provider"),
    [
        ("num_heads = 2", "", "y", "DML"),
        ("num_heads = 2, unidirectional = 0", ", , , a", "y", "DML"),
        ("num_heads = 2, unidirectional = 1", "", "y", "CPU"),
        ("num_heads = 2, do_rotary = 1", "", "y", "CPU"),
        ("num_heads = 2, past_present_share_buffer = 1", "", "y", "CPU"),
        ("num_heads = 2", ", , p", "y", "CPU"),
        ("num_heads = 2", ", , , , l", "y", "CPU"),
        ("num_heads = 2", "", "y, r", "CPU"),
    ],
)
def test_attentions(attributes, more, outputs, provider):
    given = "float[1,4,8] x, float[8,24] w, float[24] b, float[2,1,2,3,4] p, float[1,2,4,4] a, int32 l"
    shown = ", ".join(f"float[] {name}" for name in outputs.split(", "))
    node = f"com.microsoft.Attention<{attributes}>(x, w, b{more})"
    for each in found(f"({given}) => ({shown}) {{ [n] {outputs} = {node} }}", 17):
        assert where(each) == {"n": provider}


@pytest.mark.parametrize(
    ("node", "outputs", "provider"),
    [
        ("com.microsoft.SkipLayerNormalization(x, x, s, s)", "y, , , z", "DML"),
        ("com.microsoft.SkipLayerNormalization(x, x, s, s)", "y, z", "CPU"),
        ("com.microsoft.SkipLayerNormalization(x, x, s, s)", "y, , z", "CPU"),
        ("com.microsoft.SkipSimplifiedLayerNormalization(x, x, s)", "y, , , z", "DML"),
        ("com.microsoft.SkipSimplifiedLayerNormalization(x, x, s)", "y, z", "CPU"),
        ("SimplifiedLayerNormalization(x, s)", "y, z", "CPU"),
        ("SimplifiedLayerNormalization(x, s)", "y", "DML"),
    ],
)
def test_normalizations_with_statistics(node, outputs, provider):
    shown = ", ".join(f"float[] {name}" for name in outputs.replace(", ,", ",").replace(", ,", ",").split(", "))
    for each in found(f"(float[2,3,4] x, float[4] s) => ({shown}) {{ [n] {outputs} = {node} }}", 17):
        assert where(each) == {"n": provider}
