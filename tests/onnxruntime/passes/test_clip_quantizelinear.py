"""The rule dmlsplit.onnxruntime.passes.clip_quantizelinear: all models were asked of 1.18.0 and 1.19.2."""

from __future__ import annotations

import pytest

from tests.onnxruntime.placements import placed, where


def quantized(body, kind, zero, version, opset=21):
    given = "float s = {0.5}, float lo = {-100000}, float hi = {100000}, float least = {0}, int8 one = {1}"
    return placed(
        f"(float[2,4] x) => ({kind}[2,4] y) <{given}, {kind} z = {{{zero}}}> {{ {body} y = QuantizeLinear(t, s, z) }}",
        version,
        opset,
    )


@pytest.mark.parametrize(
    ("body", "kind", "zero", "removed"),
    [
        ("t = Relu(x)", "uint8", 0, True),
        ("t = Relu(x)", "uint8", 3, False),
        ("t = Relu(x)", "int8", -128, True),
        ("t = Relu(x)", "int8", 0, False),
        ("t = Relu(x)", "int16", -32768, True),
        ("t = Relu(x)", "float8e5m2", 0, True),
        ("t = Relu(x)", "float8e5m2", 1, True),
        ("n = Neg(x) t = Clip(n, lo, hi)", "uint8", 3, True),
        ("n = Neg(x) t = Clip(n, least, hi)", "uint8", 3, False),
        ("t = Clip(x)", "uint8", 3, True),
        ("n = Neg(x) t = Clip(n, lo)", "uint8", 3, True),
        ("n = Neg(x) t = Clip(n, , hi)", "uint8", 3, True),
        ("n = Neg(x) t = Clip(n, , least)", "uint8", 3, False),
    ],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.19.2"])
def test_what_changes_nothing(body, kind, zero, removed, version):
    found = quantized(body, kind, zero, version)
    assert found.created is True
    assert (where(found)["t"] == "folded") is (removed and version == "1.18.0")


@pytest.mark.parametrize(
    ("body", "kind", "created"),
    [
        ("t = Clip(x, lo, hi)", "uint8", False),
        ("t = Clip(x, least, hi)", "uint8", False),
        ("n = Neg(x) t = Clip(n, lo, hi)", "float8e5m2", False),
        ("n = Neg(x) t = Clip(n, least, hi)", "float8e5m2", False),
        ("t = Clip(x)", "uint8", True),
    ],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.19.2"])
def test_clips_that_fail_the_session(body, kind, created, version):
    """One of three inputs, none of which a node computes, is not removed as expected."""
    found = quantized(body, kind, 0, version)
    assert found.created is (created or version != "1.18.0")
    if not found.created:
        assert "its removal fails" in found.failure.message


@pytest.mark.parametrize("version", ["1.18.0", "1.19.2"])
def test_it_is_removed_before_constants_are_folded(version):
    """A DequantizeLinear of a constant is folded with one node behind it."""
    found = placed(
        """(float[2,4] x) => (float[2,4] y) <uint8[2,4] w = {1,2,3,4,5,6,7,8}, float s = {0.5}, float u = {0.25},
           uint8 o = {0}> { d = DequantizeLinear(w, s, o) t = Relu(d) q = QuantizeLinear(t, u, o)
           e = DequantizeLinear(q, u, o) y = Add(e, x) }""",
        version,
    )
    assert [where(found)[name] == "folded" for name in "dqe"] == [version != "1.18.0"] * 2 + [False]
