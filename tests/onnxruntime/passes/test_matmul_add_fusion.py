"""The pass dmlsplit.onnxruntime.passes.matmul_add_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.matmul_add_fusion import later_matmul_add_fusion, matmul_add_fusion
from tests.onnxruntime.passes import after
from tests.onnxruntime.placements import placed

HEAD = (
    "(float[2,3] x, float[2,4] y, float[5,2,3] z, float[5,3,3] z2) => (float[?,?] o) "
    "<float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, "
    "float[4] r = {1,2,3,4}, float[2,1] c = {1,2}, float one = {1}, float[1,2,4] t = {1,2,3,4,5,6,7,8}, "
    "float[1,4] q = {1,2,3,4}, float[3] r3 = {1,2,3}>"
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = MatMul(x, w) o = Add(a, r)", ["o = Gemm(x,w,r)"]),
        ("a = MatMul(x, w) o = Add(c, a)", ["o = Gemm(x,w,c)"]),
        ("a = MatMul(x, w) o = Add(a, y)", ["o = Gemm(x,w,y)"]),
        ("a = MatMul(x, w) o = Add(a, one)", ["a = MatMul(x,w)", "o = Add(a,one)"]),
        ("a = MatMul(x, w) o = Add(a, t)", ["a = MatMul(x,w)", "o = Add(a,t)"]),
        (
            "a = MatMul(z, w) o = Add(r, a)",
            ["o/product = ReshapedGemm(o/Reshape,w,r)", "o/Reshape = Reshape(z)", "o = Reshape(o/product)"],
        ),
        (
            "a = MatMul(r3, w) o = Add(a, r)",
            ["o/product = ReshapedGemm(o/Reshape,w,r)", "o/Reshape = Reshape(r3)", "o = Reshape(o/product)"],
        ),
        ("a = MatMul(z, w) o = Add(a, q)", ["a = MatMul(z,w)", "o = Add(a,q)"]),
        ("a = MatMul(z, z2) o = Add(a, r3)", ["a = MatMul(z,z2)", "o = Add(a,r3)"]),
        ("a = MatMul(x, w) o = Add(a, a)", ["a = MatMul(x,w)", "o = Add(a,a)"]),
        ("a = MatMul(x, w) b = Add(a, r) o = Mul(a, b)", ["a = MatMul(x,w)", "b = Add(a,r)", "o = Mul(a,b)"]),
    ],
    ids=[
        "a row",
        "a column",
        "a matrix",
        "a scalar",
        "more dimensions",
        "stacked",
        "a vector",
        "stacked, a matrix",
        "stacked, both",
        "twice",
        "another reader",
    ],
)
def test_a_gemm_is_made_of_matrices(body, expected):
    assert after(matmul_add_fusion, f"{HEAD} {{ {body} }}") == expected


@pytest.mark.parametrize(
    ("read", "added", "fused"),
    [
        ("float[n,3]", "float[n,4]", True),
        ("float[n,3]", "float[n,1]", True),
        ("float[n,3]", "float[m,4]", False),
        ("float[?,3]", "float[?,4]", False),
        ("float[n,3]", "float[1,n]", False),
        ("double[2,3]", "double[4]", False),
    ],
    ids=["rows", "a column", "other rows", "unnamed rows", "other columns", "DOUBLE"],
)
def test_open_sizes_and_types(read, added, fused):
    """As ONNX Runtime fuses them, asked live."""
    kind = read.split("[")[0]
    body = f"({read} x, {kind}[3,4] w, {added} z) => ({kind}[?,?] o) {{ a = MatMul(x, w) o = Add(a, z) }}"
    assert (after(matmul_add_fusion, body) == ["o = Gemm(x,w,z)"]) is fused


@pytest.mark.parametrize(
    ("last", "third", "version", "products", "left"),
    [
        ("Add(u, r3)", "MatMul(n, v)", "1.22.0", 4, 4),
        ("Mul(u, r3)", "MatMul(n, v)", "1.22.0", 1, 1),
        ("Add(u, r3)", "Abs(n)", "1.22.0", 0, 0),
        ("Add(u, r3)", "MatMul(n, v)", "1.24.4", 4, 0),
    ],
    ids=["an attention", "without its last sum", "of two products", "in a newer version"],
)
def test_what_may_be_an_attention(last, third, version, products, left):
    """As ONNX Runtime leaves it, asked live."""
    head = HEAD.replace("float[5,3,3] z2", "float[3,3] v").replace("float[?,?] o", "float[?,?,?] o")
    body = f"""n = LayerNormalization(z, r3) a = MatMul(n, v) b = Add(a, r3) k = MatMul(n, v) d = Add(k, r3) e = {third}
        f = Add(e, r3) g = Mul(b, d) h = Mul(g, f) u = MatMul(h, v) l = {last} o = Add(l, n)"""
    counts = []

    def change(graph):
        for each in (matmul_add_fusion, later_matmul_add_fusion):
            each(graph)
            counts.append(sum(node.op_type == "MatMul" for node in graph.nodes))

    after(change, f"{head} {{ {body} }}", version=version)
    assert counts == [products, left]


@pytest.mark.parametrize(
    ("normalized", "nodes"),
    [
        ("n = LayerNormalization(x, r, r)", 25),
        (
            """m = ReduceMean<axes = [-1], keepdims = 1>(x) e = Sub(x, m) p = Pow(e, two)
            v = ReduceMean<axes = [-1], keepdims = 1>(p) w = Add(v, one) s = Sqrt(w) q = Div(e, s) t = Mul(q, r)
            n = Add(t, r)""",
            21,
        ),
    ],
    ids=["of the file", "made of others"],
)
def test_an_attention_behind_a_layer_normalization(normalized, nodes):
    """The pass comes before the one that makes LayerNormalizations. Asked of 1.23.2, 1.24.4 and 1.30.0."""

    def product(source, name, shape):
        return f"{name}1 = MatMul({source}, {name}w) {name}2 = Add({name}1, r) {name}3 = Reshape({name}2, {shape})"

    weights = ", ".join(f"float[4,4] {name}w = {{{', '.join(['1'] * 16)}}}" for name in "abco")
    body = f"""(float[2,3,4] x) => (float[?,?,?] y) <
        {weights}, float[4] r = {{1,1,1,1}}, float one = {{1}}, float two = {{2}},
        int64[4] split = {{2,3,2,2}}, int64[3] whole = {{2,3,4}}
    > {{
        {normalized} {product("n", "a", "split")} {product("n", "b", "split")} {product("n", "c", "split")}
        at = Transpose<perm = [0,2,1,3]>(a3) bt = Transpose<perm = [0,2,3,1]>(b3) ct = Transpose<perm = [0,2,1,3]>(c3)
        k = MatMul(at, bt) kd = Div(k, two) ks = Softmax<axis = 3>(kd) l = MatMul(ks, ct)
        lt = Transpose<perm = [0,2,1,3]>(l) lr = Reshape(lt, whole)
        o1 = MatMul(lr, ow) o2 = Add(o1, r) sum = Add(o2, n) y = Exp(sum)
    }}"""
    for version in ("1.23.2", "1.30.0"):
        assert placed(body, version).running == nodes
