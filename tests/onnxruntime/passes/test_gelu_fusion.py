"""The pass dmlsplit.onnxruntime.passes.gelu_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.gelu_fusion import contributed_gelu_fusion, gelu_fusion
from tests.onnxruntime.passes import after, graph_of

HEAD = "(float[2,6] x, float[2,6] z) => (float[2,6] o)"
START = "d = Div(x, root) e = Erf(d) a = Add(e, one)"
FUSED = ["o = Gelu(x)"]


def constants(root: str = "1.4142135", one: str = "1.0", half: str = "float half = {0.5}") -> str:
    return f"<float root = {{{root}}}, float one = {{{one}}}, {half}>"


@pytest.mark.parametrize(
    "body",
    [
        f"{START} h = Mul(x, half) o = Mul(h, a)",
        f"{START} h = Mul(half, x) o = Mul(a, h)",
        f"{START} p = Mul(x, a) o = Mul(p, half)",
        "d = Div(x, root) e = Erf(d) a = Add(one, e) p = Mul(a, x) o = Mul(half, p)",
    ],
)
def test_the_orders_of_the_products(body):
    assert after(gelu_fusion, f"{HEAD} {constants()} {{ {body} }}", opset=20) == FUSED
    assert len(after(gelu_fusion, f"{HEAD} {constants()} {{ {body} }}", opset=19)) == 5
    assert after(contributed_gelu_fusion, f"{HEAD} {constants()} {{ {body} }}", opset=19) == ["o = ContributedGelu(x)"]
    assert len(after(contributed_gelu_fusion, f"{HEAD} {constants()} {{ {body} }}", opset=20)) == 5


def test_it_stands_for_its_nodes():
    graph = graph_of(f"{HEAD} {constants()} {{ n = Neg(z) {START} p = Mul(x, a) o = Mul(p, half) }}", 20)
    gelu_fusion(graph)
    assert [(node.index, sorted(node.absorbed)) for node in graph.nodes] == [(0, []), (5, [1, 2, 3, 4])]


@pytest.mark.parametrize(
    ("given", "is_fused"),
    [
        (constants("1.41421"), True),  # what some models have for the root
        (constants("1.414"), False),
        (constants(one="2.0"), False),
        (constants(half="float half = {0.25}"), False),
        (constants(half="float[1] half = {0.5}"), True),
        (constants(half="float[6] half = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5}"), False),
    ],
)
def test_its_numbers(given, is_fused):
    found = after(gelu_fusion, f"{HEAD} {given} {{ {START} p = Mul(x, a) o = Mul(p, half) }}", opset=20)
    assert (found == FUSED) is is_fused


@pytest.mark.parametrize(
    "body",
    [
        f"{START} p = Mul(z, a) o = Mul(p, half)",
        f"{START} h = Mul(z, half) o = Mul(h, a)",
        f"{START} p = Mul(x, a) q = Mul(p, half) o = Add(q, e)",
        f"{START} h = Mul(x, half) q = Mul(h, a) o = Add(q, h)",
        "d = Mul(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) o = Mul(p, half)",
        "t = Mul(x, z) d = Div(t, root) e = Erf(d) a = Add(e, one) p = Mul(t, a) o = Mul(p, half)",
    ],
    ids=[
        "another tensor",
        "half of another tensor",
        "read twice",
        "half read twice",
        "a product with the root",
        "of a product",
    ],
)
def test_nodes_that_stay(body):
    graph = graph_of(f"{HEAD} {constants()} {{ {body} }}", 20)
    before = len(graph.nodes)
    gelu_fusion(graph)
    assert len(graph.nodes) == before
