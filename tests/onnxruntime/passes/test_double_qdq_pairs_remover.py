"""The pass dmlsplit.onnxruntime.passes.double_qdq_pairs_remover."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.double_qdq_pairs_remover import double_qdq_pairs_remover
from tests.onnxruntime.passes import after
from tests.onnxruntime.placements import placed, where

GIVEN = """float s = {0.02}, float t = {0.1}, float[4] v = {1,1,1,1}, uint8[4] a = {0,0,0,0}, uint8 z = {0},
    uint8 w = {3}, int8 i = {0}, uint16 h = {0}"""
HEAD = f"(float[2,4] x, float q) => (float[2,4] y) <{GIVEN}>"
PAIR = "b = QuantizeLinear(x, {0}) c = DequantizeLinear(b, {0}) d = QuantizeLinear(c, {1}) y = DequantizeLinear(d, {1})"


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        ("s, z", "t, z", ["b = QuantizeLinear(x,s,z)", "y = DequantizeLinear(b,s,z)"]),
        ("t, z", "s, z", ["b = QuantizeLinear(x,s,z)", "y = DequantizeLinear(b,s,z)"]),
        ("t, w", "s, z", ["b = QuantizeLinear(x,s,z)", "y = DequantizeLinear(b,s,z)"]),
        ("s, z", "s, w", ["b = QuantizeLinear(x,c/s,c/z)", "y = DequantizeLinear(b,c/s,c/z)"]),
        ("s, z", "t", None),
        ("s, z", "v, a", None),
        ("s, z", "q, z", None),
        ("s, z", "t, i", None),
    ],
    ids=[
        "the first",
        "the second",
        "inside",
        "neither",
        "no zero point",
        "a vector",
        "an input",
        "other types",
    ],
)
def test_what_is_left_of_two_pairs(first, second, left):
    found = after(double_qdq_pairs_remover, f"{HEAD} {{ {PAIR.format(first, second)} }}")
    assert found == left if left is not None else len(found) == 4


def test_two_pairs_of_16_bits():
    """As ONNX Runtime merges them, asked live of 1.18.0 to 1.30.0."""
    found = after(double_qdq_pairs_remover, f"{HEAD} {{ {PAIR.format('s, h', 't, h')} }}", 21)
    assert found == ["b = QuantizeLinear(x,s,h)", "y = DequantizeLinear(b,s,h)"]


@pytest.mark.parametrize(
    ("more", "output"),
    [("p = Neg(c)", "p"), ("", "c"), ("p = Cast<to=6>(d)", "p")],
    ids=["read elsewhere", "an output", "another reader"],
)
def test_pairs_that_others_read(more, output):
    head = HEAD.replace("=> (", f"=> ({'int32' if 'Cast' in more else 'float'}[2,4] {output}, ")
    assert len(after(double_qdq_pairs_remover, f"{head} {{ {PAIR.format('s, z', 't, z')} {more} }}")) == 4 + bool(more)


@pytest.mark.parametrize("version", ["1.18.0", "1.20.1", "1.24.4", "1.30.0"])
def test_three_pairs(version):
    body = (
        PAIR.format("s, z", "t, z").replace("y =", "e =") + " f = QuantizeLinear(e, t, w) y = DequantizeLinear(f, t, w)"
    )
    found = where(placed(f"{HEAD} {{ {body} }}", version))
    assert [name for name in "bcdefy" if found[name] == "folded"] == list("cdef")
