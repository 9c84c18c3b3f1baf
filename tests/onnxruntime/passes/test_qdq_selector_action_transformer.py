"""The pass dmlsplit.onnxruntime.passes.qdq_selector_action_transformer: asked of 1.18.0, 1.19.2, 1.20.1, 1.24.4 and
1.30.0."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.qdq_selector_action_transformer import qdq_selector_action_transformer
from tests.onnxruntime.passes import after
from tests.onnxruntime.placements import placed, where

GIVEN = "float s = {0.5}, float u = {0.25}, uint8 z = {3}, uint8 w = {3}, int64[1] k = {12}, int64[1] one = {1}"
HEAD = f"(uint8[2,6] x) => (uint8[?] y) <{GIVEN}>"
FRONT = "d = DequantizeLinear(x, s, z)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{FRONT} t = Reshape(d, k) y = QuantizeLinear(t, s, z)", ["y = Reshape(x,k)"]),
        (f"{FRONT} t = Reshape(d, k) y = QuantizeLinear(t, s, w)", ["y = Reshape(x,k)"]),
        (
            f"{FRONT} t = Reshape(d, k) n = Neg(d) y = QuantizeLinear(t, s, z)",
            ["d = DequantizeLinear(x,s,z)", "y = Reshape(x,k)", "n = Neg(d)"],
        ),
    ],
    ids=["a pair", "equal zero points", "another reader"],
)
def test_pairs_that_are_dropped(body, expected):
    assert after(qdq_selector_action_transformer, f"{HEAD} {{ {body} }}") == expected


@pytest.mark.parametrize(
    "body",
    [
        f"{FRONT} t = Reshape(d, k) y = QuantizeLinear(t, u, z)",
        f"{FRONT} t = Reshape(d, k) y = QuantizeLinear(t, s)",
        f"{FRONT} t = Relu(d) y = QuantizeLinear(t, s, z)",
        f"{FRONT} t = Reshape(d, k) n = Neg(t) y = QuantizeLinear(t, s, z)",
        "n = Neg(s) d = DequantizeLinear(x, n, z) t = Reshape(d, k) y = QuantizeLinear(t, n, z)",
    ],
    ids=["another scale", "no zero point", "no mover", "another reader", "a computed scale"],
)
def test_pairs_that_stay(body):
    found = after(qdq_selector_action_transformer, f"{HEAD} {{ {body} }}")
    assert [line.split(" ")[2].partition("(")[0] for line in found if "Linear" in line] == [
        "DequantizeLinear",
        "QuantizeLinear",
    ]


@pytest.mark.parametrize("version", ["1.18.0", "1.19.2", "1.20.1", "1.24.4", "1.30.0"])
@pytest.mark.parametrize("moving", ["Transpose(d)", "Gather(d, one)", "Slice(d, one, k)", "Flatten(d)", "Tile(d, two)"])
@pytest.mark.parametrize("given", ["uint8", "int16"])
def test_versions(moving, version, given):
    found = placed(
        f"""({given}[2,6] x) => ({given}[?,?] y) <float s = {{0.5}}, {given} z = {{3}}, int64[1] one = {{1}},
            int64[1] k = {{12}}, int64[2] two = {{2, 1}}> {{
            {FRONT} t = {moving} y = QuantizeLinear(t, s, z) }}""",
        version,
        21,
    )
    dropped = moving.startswith(("Transpose", "Gather")) or version >= "1.20"
    assert [where(found)[name] == "folded" for name in "dty"] == [dropped, False, dropped]
