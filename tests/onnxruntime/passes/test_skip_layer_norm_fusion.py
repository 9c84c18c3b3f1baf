"""The pass dmlsplit.onnxruntime.passes.skip_layer_norm_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.skip_layer_norm_fusion import skip_layer_norm_fusion
from tests.onnxruntime.passes import after, graph_of

HEAD = "({0}[{1}] x, {0}[{1}] y, {0}[4] h) => ({0}[{1}] o{2})"
GIVEN = "<{0}[4] g = {{1,1,1,1}}, {0}[4] b = {{0,0,0,0}}, {0}[4] c = {{1,2,3,4}}>"
NORM = "o = LayerNormalization(s, g, b)"


def model(body: str, more: str = "", element: str = "float", shape: str = "2,3,4") -> str:
    return f"{HEAD.format(element, shape, more)} {GIVEN.format(element)} {{ {body} }}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"s = Add(x, y) {NORM}", "x,y,g,b"),
        (f"t = Add(x, c) s = Add(t, y) {NORM}", "x,y,g,b,c"),
        (f"t = Add(y, c) s = Add(x, t) {NORM}", "x,y,g,b,c"),
        (f"t = Add(c, y) s = Add(x, t) {NORM}", "x,t,g,b"),  # the vector has to be the second input
        (f"t = Add(y, h) s = Add(x, t) {NORM}", "x,t,g,b"),  # and a constant
        ("s = Add(x, y) o = LayerNormalization(s, g)", "x,y,g,"),
    ],
)
def test_sums(body, expected):
    assert after(skip_layer_norm_fusion, model(body))[-1] == f"o = SkipLayerNormalization({expected})"


@pytest.mark.parametrize(("shape", "left"), [("N,3,4", 1), ("N,M,4", 1), ("N,?,4", 2)])
def test_open_sizes_have_the_same_symbol(shape, left):
    """As ONNX Runtime fuses them, asked live of 1.18.0 to 1.30.0."""
    assert len(after(skip_layer_norm_fusion, model(f"s = Add(x, y) {NORM}", shape=shape))) == left


@pytest.mark.parametrize(("version", "left"), [("1.23.2", 1), ("1.24.4", 2)])
def test_a_scale_of_two_dimensions(version, left):
    body = "s = Add(x, y) o = LayerNormalization<axis=1>(s, p)"
    made = model(body).replace("float[4] h)", "float[3,4] p)")
    assert len(after(skip_layer_norm_fusion, made, version=version)) == left


@pytest.mark.parametrize(("given", "epsilon"), [("", 1e-5), ("<epsilon=0.25>", 0.25)])
def test_its_epsilon(given, epsilon):
    graph = graph_of(model(f"s = Add(x, y) o = LayerNormalization{given}(s, g, b)"))
    skip_layer_norm_fusion(graph)
    (node,) = graph.nodes
    assert [each.f for each in node.proto.attribute] == [pytest.approx(epsilon)]
    assert sorted(node.origins) == [0, 1]


@pytest.mark.parametrize(
    ("body", "more", "options"),
    [
        (f"s = Add(x, y) {NORM}", ", float[2,3,4] s", {}),
        (f"s = Add(x, y) {NORM} r = Relu(s)", ", float[2,3,4] r", {}),
        (f"s = Add(x, y) {NORM}", "", {"shape": "3,4"}),
        (f"s = Add(x, y) {NORM}", "", {"shape": "1,2,3,4"}),
        (f"s = Add(x, h) {NORM}", "", {}),
        (f"s = Add(x, y) {NORM}", "", {"element": "double"}),
    ],
    ids=["an output", "read twice", "two dimensions", "four dimensions", "a vector", "double"],
)
def test_nodes_that_stay(body, more, options):
    assert [each.split(" = ")[1].split("(")[0] for each in after(skip_layer_norm_fusion, model(body, more, **options))][
        :2
    ] == ["Add", "LayerNormalization"]


@pytest.mark.parametrize(
    ("added", "version", "expected"),
    [
        ("Add(c, p)", "1.24.4", "x,t,g,b"),
        ("Add(c, p)", "1.30.0", "p,x,g,b,c"),
        ("Add(p, c)", "1.24.4", "x,p,g,b,c"),
        ("Add(c, r)", "1.30.0", "x,t,g,b"),
    ],
    ids=["the vector first", "in a newer version", "the vector last", "of no product"],
)
def test_a_vector_that_is_added_to_a_product(added, version, expected):
    """As ONNX Runtime fuses it, asked live; of no product it has to be the second input."""
    body = f"p = MatMul(y, w) r = Relu(y) t = {added} s = Add(x, t) {NORM}"
    made = model(body, shape="N,M,4").replace("float[4] h)", "float[4,4] w)")
    found = after(skip_layer_norm_fusion, made, version=version)[-1]
    assert found == f"o = SkipLayerNormalization({expected})"
