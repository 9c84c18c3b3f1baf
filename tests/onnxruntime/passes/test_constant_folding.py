"""The pass dmlsplit.onnxruntime.passes.constant_folding."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.constant_folding import constant_folding
from tests.onnxruntime.passes import after, graph_of
from tests.onnxruntime.placements import TAKES, placed, where

HEAD = (
    "(float[2,6] x, float[N,6] y, int64[1] l) => (float[?,?] o) "
    "<int64[1] one = {1}, float two = {2}, float[2] v = {1, 2}>"
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("k = Constant<value_float = 2.0>() o = Mul(x, k)", ["o = Mul(x,k)"]),
        ("k = Neg(two) m = Abs(k) o = Mul(x, m)", ["o = Mul(x,m)"]),
        ("s = Shape(x) g = Gather(s, one) h = Mul(g, one) o = Expand(x, h)", ["o = Expand(x,h)"]),
        ("s = Shape(y) o = Expand(y, s)", ["s = Shape(y)", "o = Expand(y,s)"]),
        ("k = RandomNormalLike(two) o = Mul(x, k)", ["k = RandomNormalLike(two)", "o = Mul(x,k)"]),
        (
            "k = SplitToSequence(one) m = SequenceLength(k) f = Cast<to=1>(m) o = Mul(x, f)",
            ["k = SplitToSequence(one)", "m = SequenceLength(k)", "f = Cast(m)", "o = Mul(x,f)"],
        ),
        ("q, s, z = DynamicQuantizeLinear(v) o = Mul(x, s)", ["o = Mul(x,s)"]),
        ("k = Add(l, one) o = Expand(x, k)", ["k = Add(l,one)", "o = Expand(x,k)"]),
        ("s = Size(x) f = Cast<to=1>(s) o = Mul(y, f)", ["s = Size(x)", "f = Cast(s)", "o = Mul(y,f)"]),
        ("r = Relu(x) a, b = Split(r) s = Shape(a) t = Shape(b) u = Mul(s, t) o = Expand(y, u)", ["o = Expand(y,u)"]),
        ("a, b = Split(x) s = Shape(a) o = Expand(b, s)", ["a,b = Split(x)", "o = Expand(b,s)"]),
        ("a = Neg(x) b = Mul(a, a) s = Shape(b) o = Expand(a, s)", ["a = Neg(x)", "o = Expand(a,s)"]),
        ("o = Relu(x) s = Shape(o) t = Mul(s, s)", ["o = Relu(x)"]),
    ],
    ids=[
        *(
            "a Constant",
            "one after another",
            "static sizes",
            "open sizes",
            "random",
            "a sequence",
            "quantized",
            "an input",
            "a Size",
        ),
        *("what is computed for Shapes", "what is read besides", "what is read elsewhere", "an output"),
    ],
)
def test_what_is_known_before_the_session_is_made(body, expected):
    assert after(constant_folding, f"{HEAD} {{ {body} }}") == expected


def test_what_the_cpu_has_no_kernel_for_is_not_folded():
    head = "(float[2] x) => (float[2] o) <float[2] c = {1.0, 2.0}>"
    body = "h = HardSwish(c) k = Celu(c) m = Mul(h, k) o = Add(x, m)"
    assert after(constant_folding, f"{head} {{ {body} }}") == ["h = HardSwish(c)", "m = Mul(h,k)", "o = Add(x,m)"]


def test_what_is_folded_is_a_constant():
    graph = graph_of(f"{HEAD} {{ k = Neg(two) o = Mul(x, k) }}")
    constant_folding(graph)
    assert (graph.folded, "k" in graph.constants, "o" in graph.constants) == ({0}, True, False)


def test_what_a_node_reads_itself_and_folded_shapes_in_its_graph():
    """The graph reads it no longer: the Identity goes, though the graph has the name of what that reads. Observed."""
    body = "s = Shape(a) z = ConstantOfShape(s) g = Add(z, r) h = ReduceMax<keepdims = 0>(g) p = Add(l, h)"
    scan = f"Scan<num_scan_inputs = 1, body = b (float[3] l) => (float[3] p) {{ {body} }}>(a)"
    found = placed(f"(float[2,3] x) => (float[?,?] o) {{ r = Relu(x) a = Identity(r) o = {scan} }}")
    assert where(found)["a"] == "folded"


@pytest.mark.parametrize(
    ("body", "created"),
    [
        ("z = Sqrt(w) s = Shape(n) y = ConstantOfShape(s)", True),
        ("s = Shape(n) y = ConstantOfShape(s) z = Sqrt(w)", False),
        ("s = Shape(e) y = ConstantOfShape(s) z = Sqrt(w)", False),
    ],
    ids=["the If is taken later", "the If is taken first", "the removed one is read"],
)
def test_what_an_if_reads_in_place_of_a_removed_node(body, created):
    """It counts as read until the If is visited, from the last output on. Observed."""
    outputs = ", ".join(f"float[2,3] {name}" for name in ("zy" if created else "yz"))
    taken = TAKES.replace("y = If(c)", "w = If(t)") % ("p = Relu(e)", "q = Neg(e)")
    found = placed(
        f"(float[2,3] x) => ({outputs}) <bool t = {{1}}> {{ n = Celu(x) e = Dropout(n) {taken} {body} }}", "1.18.0", 13
    )
    assert found.created is created


def test_an_if_in_a_branch_that_is_taken_later():
    """Its place among the branch's nodes says nothing of nodes around the branch. Observed."""
    inner = TAKES.replace("y = If(c)", "i = If(t)").replace(" p)", " r)").replace(" q)", " u)") % (
        "r = Exp(a)",
        "u = Neg(a)",
    )
    before = "k = Tanh(x) l = Round(k)"
    found = placed(
        f"""(float[2,3] x) => (float[2,3] y, float[2,3] z) <bool t = {{1}}> {{
            a = Cosh(x) s = Shape(a) y = ConstantOfShape(s)
            z = If(t) <then_branch = g () => (float[2,3] p) {{ {inner} {before} m = Abs(l) p = Add(i, m) }},
                       else_branch = h () => (float[2,3] q) {{ q = Abs(x) }}> }}"""
    )
    assert found.created is False


QUANTIZED = """uint8[2,4] w = {1,2,3,4,5,6,7,8}, float[2,4] f = {1,2,3,4,5,6,7,8}, float s = {0.5}, float u = {0.25},
    uint8 z = {3}, int64[1] k = {8}"""


@pytest.mark.parametrize(
    ("body", "folded"),
    [
        ("q = QuantizeLinear(f, s, z)", "q"),
        ("d = DequantizeLinear(w, s, z) t = Tanh(d) q = QuantizeLinear(t, u, z)", "dtq"),
        ("d = DequantizeLinear(w, s, z) t = Tanh(d) p = QuantizeLinear(t, u, z) e = DequantizeLinear(p, u, z) "
         "v = Exp(e) q = QuantizeLinear(v, u, z)", "dtpevq"),
        ("d = DequantizeLinear(w, s, z) t = Tanh(d) q = QuantizeLinear(t, o, z)", "dt"),
        ("d = DequantizeLinear(w, s, z) t = Tanh(d) q = QuantizeLinear(t, u, z) n = Neg(d)", "tq"),
        ("d = DequantizeLinear(w, s, z) t = Tanh(d) q = QuantizeLinear(t, u, z) n = Neg(t)", ""),
        ("d = DequantizeLinear(w, s, z) t = Reshape(d, k) q = QuantizeLinear(t, u, z)", ""),
        ("d = DequantizeLinear(w, s, z) t = RandomNormalLike(d) q = QuantizeLinear(t, u, z)", ""),
        ("d = DequantizeLinear(w, s, z) t = Tanh(d) r = Exp(t) q = QuantizeLinear(r, u, z)", ""),
    ],
    ids=["a constant", "a unit", "two units", "an open scale", "another reader", "another reader behind", "two inputs",
         "random", "two nodes"],
)  # fmt: skip
@pytest.mark.parametrize("version", ["1.18.0", "1.24.4", "1.30.0"])
def test_what_is_between_quantizations(body, folded, version):
    """The models were asked of these versions. A DequantizeLinear of a constant is folded with what alone is between it
    and a QuantizeLinear."""
    more, sizes = ", float[2,4] n" if "n =" in body else "", "8" if "Reshape" in body else "2,4"
    found = where(placed(f"(float o) => (uint8[{sizes}] q{more}) <{QUANTIZED}> {{ {body} }}", version))
    assert {name for name in found if found[name] == "folded"} == set(folded)


@pytest.mark.parametrize("version", ["1.24.4", "1.30.0"])
@pytest.mark.parametrize(
    "body",
    [
        "a = Range(z, n, o) y = ReduceMean(x, a)",
        "u = Reshape(n, v) c = ConstantOfShape(u) e = Cast<to=7>(c) d = Concat<axis=0>(e, v) y = Reshape(x, d)",
    ],
)
def test_what_reads_folded_numbers(body, version):
    """1.30 folds what it knows the sizes of: these follow once what the node reads is folded."""
    constants = "<int64 z = {0}, int64 o = {1}, int64[1] v = {-1}>"
    found = placed(f"(float[3,4] x) => (float[?,?] y) {constants} {{ s = Shape(x) n = Size(s) {body} }}", version, 18)
    assert found.copies == (0, 0)


@pytest.mark.parametrize(
    ("node", "version", "opset", "folded"),
    [
        ("Where(k, c, c)", "1.30.0", 17, False),
        ("Tile(c, t)", "1.30.0", 17, False),
        ("Expand(c, t)", "1.30.0", 17, True),
        ("Max(c, c)", "1.18.0", 12, True),
        ("Max(c, c)", "1.18.0", 11, False),
        ("Clip(c, l)", "1.18.0", 17, False),
        ("Clip(c, l)", "1.19.2", 17, True),
        ("LayerNormalization(c, c)", "1.19.2", 17, False),
        ("LayerNormalization(c, c)", "1.20.1", 17, True),
        ("Neg(c)", "1.30.0", 17, False),
        ("CastLike(t, c)", "1.30.0", 17, False),
    ],
)
def test_half_precision(node, version, opset, folded):
    """As ONNX Runtime folds them, asked live."""
    constants = "float16[1] c = {1}, float16 l = {0}, bool[1] k = {1}, int64[1] t = {1}"
    body = f"(float16[1] x) => (float16[?] o) <{constants}> {{ m = {node} o = Add(x, m) }}"
    assert (after(constant_folding, body, opset, version) == ["o = Add(x,m)"]) is folded
