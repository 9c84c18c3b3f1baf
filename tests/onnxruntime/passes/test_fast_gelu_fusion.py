"""The passes dmlsplit.onnxruntime.passes.fast_gelu_fusion and bias_gelu_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.bias_gelu_fusion import bias_gelu_fusion
from dmlsplit.onnxruntime.passes.fast_gelu_fusion import fast_gelu_fusion
from dmlsplit.onnxruntime.passes.gelu_fusion import contributed_gelu_fusion
from tests.onnxruntime.passes import after, graph_of, left

HEAD = "(float[2,3,4] w, float[4] v, float[2,3,4] z) => (float[2,3,4] o{})"
GIVEN = (
    "<float three = {3}, float k = {0.044715}, float c = {0.7978845608}, float one = {1}, float half = {0.5}, "
    "float root = {1.4142135}>"
)
POWER = "p = Pow(x, three) q = Mul(p, k) r = Add(x, q) s = Mul(r, c)"
PRODUCT = "p = Mul(x, k) q = Mul(x, p) r = Add(q, one) t = Mul(x, c) s = Mul(t, r)"
END = "h = Tanh(s) a = Add(h, one) l = Mul(x, half) u = Mul(l, a) o = Neg(u)"
GELU = "d = Div(x, root) e = Erf(d) a = Add(e, one) l = Mul(x, a) u = Mul(l, half) o = Neg(u)"


def model(body: str, more: str = "") -> str:
    return f"{HEAD.format(more)} {GIVEN} {{ {body} }}"


@pytest.mark.parametrize(
    "body", [f"{POWER} {END}", f"{PRODUCT} {END}", f"{PRODUCT.replace('Mul(x, k)', 'Mul(k, x)')} {END}"]
)
def test_both_formulas(body):
    graph = graph_of(model(f"x = Abs(z) {body}"))
    fast_gelu_fusion(graph)
    assert left(graph) == ["x = Abs(z)", "u = FastGelu(x)", "o = Neg(u)"]
    assert len(graph.nodes[1].origins) == len(body.split(" = ")) - 2


@pytest.mark.parametrize(
    ("body", "more"),
    [
        (f"{POWER} {END}".replace("three", "half"), ""),
        (f"{POWER} {END}".replace("(p, k)", "(p, half)"), ""),
        (f"{POWER} {END}".replace("(h, one)", "(h, half)"), ""),
        (f"{POWER} {END}".replace("(x, half)", "(z, half)"), ""),
        (f"{POWER} {END}".replace("(x, q)", "(z, q)"), ""),
        (f"{POWER} {END}", ", float[2,3,4] h"),
        (f"{POWER} {END}", ", float[2,3,4] u"),
        (f"{PRODUCT} {END}".replace("Mul(x, p)", "Mul(z, p)"), ""),
    ],
    ids=["exponent", "factor", "summand", "half of another", "sum with another", "an output", "the last", "square"],
)
def test_nodes_that_stay(body, more):
    graph = graph_of(model(f"x = Abs(z) {body}", more))
    before = left(graph)
    fast_gelu_fusion(graph)
    assert left(graph) == before


def test_a_cast_is_a_doubt():
    body = f"x = Cast<to=1>(y) {POWER} {END}"
    graph = graph_of(f"(float16[2,3,4] y) => (float[2,3,4] o) {GIVEN} {{ {body} }}")
    fast_gelu_fusion(graph)
    assert {node.op_type for node in graph.nodes if not node.doubts} == {"Cast", "Neg"}


def both(graph):
    contributed_gelu_fusion(graph)
    fast_gelu_fusion(graph)
    bias_gelu_fusion(graph)


@pytest.mark.parametrize(
    ("start", "expected"),
    [("Add(w, v)", "(w,v)"), ("Add(v, w)", "(w,v)"), ("Add(w, z)", None), ("Add(w, one)", None)],
)
@pytest.mark.parametrize(
    ("gelu", "name", "plain"), [(GELU, "BiasGelu", "ContributedGelu"), (f"{POWER} {END}", "FastGelu", "FastGelu")]
)
def test_a_vector_in_front(start, expected, gelu, name, plain):
    found = after(both, model(f"x = {start} {gelu}"))
    if expected is None:
        assert found[1] == f"u = {plain}(x)"
    else:
        assert found == [f"u = {name}{expected}", "o = Neg(u)"]


def test_a_sum_that_is_read_elsewhere_stays():
    assert len(after(both, model(f"x = Add(w, v) {GELU} y = Abs(x)", ", float[2,3,4] y"))) == 4
