"""The pass dmlsplit.onnxruntime.passes.matmul_integer_to_float: asked of 1.18.0, 1.19.2, 1.20.1, 1.21.0, 1.22.0, 1.24.4
and 1.30.0."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.matmul_integer_to_float import matmul_integer_to_float
from tests.onnxruntime.passes import after, graph_of, left
from tests.onnxruntime.placements import placed

WEIGHTS = ",".join("1" * 24)
GIVEN = (
    f"uint8[6,4] w = {{{WEIGHTS}}}, uint8 v = {{3}}, float k = {{0.5}}, float[4] b = {{1,2,3,4}}, float[1] c = {{1}}"
)
TYPES = "(float[2,6] x, float[2,4] g) => (float[?,?] y, float[?,?] extra)"
HEAD = f"{TYPES} <{GIVEN}>"
FRONT = "q, s, z = DynamicQuantizeLinear(x) p = MatMulInteger(q, w, z, v)"
SCALED = f"{FRONT} f = Cast<to=1>(p) t = Mul(s, k)"
FRONT_NODE = "q,s,z = DynamicQuantizeLinear(x)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{SCALED} y = Mul(f, t)", "y = MatMulIntegerToFloat(q,w,s,k,z,v)"),
        (f"{SCALED} y = Mul(t, f)", "y = MatMulIntegerToFloat(q,w,s,k,z,v)"),
        (f"{SCALED} m = Mul(f, t) y = Add(m, b)", "y = MatMulIntegerToFloat(q,w,s,k,z,v,b)"),
        (
            f"{SCALED.replace(', z, v)', ')')} m = Mul(f, t) y = Add(m, b)",
            "y = MatMulIntegerToFloat(q,w,s,k,,,b)",
        ),
        (f"{SCALED.replace(', v)', ')')} y = Mul(f, t)", "y = MatMulIntegerToFloat(q,w,s,k,z,)"),
    ],
    ids=["a product", "its factors the other way round", "a vector", "no zero points", "one zero point"],
)
def test_what_is_fused(body, expected):
    assert after(matmul_integer_to_float, f"{HEAD} {{ {body} }}") == [FRONT_NODE, expected]


@pytest.mark.parametrize(
    ("body", "add"),
    [
        (f"{SCALED} m = Mul(f, t) y = Add(b, m)", "y = Add(b,m)"),
        (f"{SCALED} m = Mul(f, t) y = Add(m, c)", "y = Add(m,c)"),
        (f"{SCALED} m = Mul(f, t) y = Add(m, g)", "y = Add(m,g)"),
        (f"{SCALED} m = Mul(f, t) y = Add(m, m)", "y = Add(m,m)"),
    ],
    ids=["in front", "one number", "no constant", "itself"],
)
def test_an_add_that_is_left(body, add):
    fused = "m = MatMulIntegerToFloat(q,w,s,k,z,v)"
    assert after(matmul_integer_to_float, f"{HEAD} {{ {body} }}") == [FRONT_NODE, fused, add]


@pytest.mark.parametrize(
    "body",
    [
        f"{SCALED} y = Mul(f, t) extra = Relu(f)",
        f"{SCALED} y = Mul(f, t) extra = Relu(t)",
        f"{SCALED} y = Mul(f, t) extra = Cast<to=1>(p)",
        f"{SCALED} y = Mul(f, k)",
        f"{SCALED} y = Mul(f, f)",
        f"{SCALED} a = Add(s, k) y = Mul(f, a)",
    ],
    ids=["the numbers are read", "so is the scale", "so is the product", "one scale", "a square", "a sum"],
)
def test_what_is_left(body):
    graph = graph_of(f"{HEAD} {{ {body} }}")
    before = left(graph)
    matmul_integer_to_float(graph)
    assert left(graph) == before


def test_the_node_has_the_name_of_the_product():
    graph = graph_of(f"{HEAD} {{ {SCALED.replace('p = ', '[product] p = ')} y = Mul(f, t) }}")
    matmul_integer_to_float(graph)
    assert graph.nodes[-1].proto.name == "product"


LARGE = "float[20000,40000] x, uint8[40000,20000] w"


@pytest.mark.parametrize(
    ("inputs", "version", "fused"),
    [
        (LARGE, "1.20.1", True),
        (LARGE, "1.22.0", False),
        (LARGE.replace("20000,40000", "N,40000"), "1.22.0", True),
        (LARGE.replace("40000]", "20000]").replace("[40000", "[20000"), "1.22.0", True),
        ("float[300,2,2000] x, uint8[2000,1000] w", "1.22.0", True),
        ("float[600,2,2000] x, uint8[2000,1000] w", "1.22.0", False),
    ],
    ids=["before", "large factors", "an open size", "smaller ones", "a batch", "a larger batch"],
)
def test_large_products(inputs, version, fused):
    """More than 4 GB of FLOAT, with what one factor is repeated for the other."""
    body = f"{SCALED.replace(', v)', ')')} y = Mul(f, t)"
    found = after(
        matmul_integer_to_float, f"({inputs}) => (float[?,?] y) <float k = {{0.5}}> {{ {body} }}", 17, version
    )
    assert any("MatMulIntegerToFloat" in line for line in found) is fused


UNRANKED = "x = Reshape(given, sizes)"


@pytest.mark.parametrize(
    ("front", "version", "created"),
    [
        (UNRANKED, "1.20.1", True),
        (UNRANKED, "1.21.0", False),
        (UNRANKED, "1.30.0", False),
        ("x = Relu(given)", "1.30.0", True),
    ],
)
def test_a_factor_without_a_rank_ends_the_process(front, version, created):
    """Asked live; common_old.onnx of ddddocr has one, behind a DynamicQuantizeLSTM."""
    head = f"(float[N,K] given, int64[R] sizes) => (float[?,?] y) <{GIVEN}>"
    found = placed(f"{head} {{ {front} {SCALED} y = Mul(f, t) }}", version=version)
    assert (found.created, found.failure and found.failure.node) == (created, None if created else "y")


def test_a_factor_without_a_rank_that_is_quantized_elsewhere():
    body = "q = Reshape(given, sizes) p = MatMulInteger(q, w) f = Cast<to=1>(p) t = Mul(s, k) y = Mul(f, t)"
    head = "(uint8[N,K] given, int64[R] sizes, float s) => (float[?,?] y)"
    assert placed(f"{head} <{GIVEN}> {{ {body} }}").created
