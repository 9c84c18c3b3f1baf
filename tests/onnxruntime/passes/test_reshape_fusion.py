"""The pass dmlsplit.onnxruntime.passes.reshape_fusion."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from dmlsplit.models.graph import Doubt
from dmlsplit.onnxruntime.passes.constant_folding import constant_folding
from dmlsplit.onnxruntime.passes.matmul_add_fusion import matmul_add_fusion
from dmlsplit.onnxruntime.passes.reshape_fusion import contiguous_reshapes, reshape_fusion
from dmlsplit.onnxruntime.passes.skip_layer_norm_fusion import skip_layer_norm_fusion
from tests import models
from tests.onnxruntime.passes import after, graph_of
from tests.onnxruntime.placements import placed, placed_model

HEAD = "(float[N,M,K,6] x, float[N,M,K,6] y, int64[1] n) => (float[?,?] o)"
CONSTANTS = (
    "<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] axes = {0}, int64[1] six = {6}, "
    "int64[1] rest = {-1}>"
)


def size(name: str, place: str) -> str:
    """The nodes that take one size of x."""
    return f"{name}s = Shape(x) {name}g = Gather({name}s, {place}) {name} = Unsqueeze({name}g, axes) "


def fused(body: str):
    """The nodes of a model that are folded by the pass, and the doubts about the others, by first output."""
    graph = graph_of(f"{HEAD} {CONSTANTS} {{ {body} }}")
    constant_folding(graph)
    before = {node: node.outputs[0].name for node in graph.nodes}
    reshape_fusion(graph)
    doubts = {name: node.doubts for node, name in before.items() if node in graph and node.doubts}
    return {name for node, name in before.items() if node not in graph}, doubts


@pytest.mark.parametrize(
    ("body", "folded", "doubts"),
    [
        ("c = Concat<axis=0>(n, six) o = Reshape(x, c)", {"c"}, {}),
        (
            size("a", "zero") + "c = Concat<axis=0>(a, rest) o = Reshape(x, c)",
            {"c", "a", "ag", "as"},
            {},
        ),
        (
            size("a", "one") + "c = Concat<axis=0>(a, six) o = Reshape(x, c)",
            {"c", "a", "ag", "as"},
            {},
        ),
        (
            "s = Shape(x) p, q, r, t = Split(s) c = Concat<axis=0>(p, six) o = Reshape(x, c)",
            {"c"},
            {"p": {Doubt.CONSTANT}},
        ),
        (
            size("a", "zero") + "c = Concat<axis=0>(a, rest) b = Reshape(x, c) o = Expand(b, as)",
            {"c", "a", "ag"},
            {},
        ),
        (
            size("a", "one") + size("b", "two") + "c = Concat<axis=0>(a, b) o = Reshape(x, c)",
            set(),
            {},
        ),
        (
            size("a", "one") + size("b", "two") + "d = Add(a, six) c = Concat<axis=0>(d, b) o = Reshape(x, c)",
            set(),
            {"c": {Doubt.CONSTANT}},
        ),
        ("c = Concat<axis=0>(n, n) d = Cast<to=7>(c) o = Reshape(x, d)", set(), {"c": {Doubt.CONSTANT}}),
        ("c = Concat<axis=0>(n, rest) d = Neg(c) o = Reshape(x, d)", set(), {}),
        ("c = Concat<axis=0>(n, rest) o = Reshape<allowzero=1>(x, c)", set(), {}),
        ("c = Concat<axis=0>(n, rest) p = Reshape(x, c) q = Reshape(y, c) o = Add(p, q)", set(), {}),
    ],
    ids=[
        "an element that is not known",
        "a size in its place",
        "a size elsewhere",
        "two outputs",
        "a shape that is read besides",
        "two sizes elsewhere",
        "an element that may be another's",
        "a Cast",
        "no Reshape",
        "zeros that are no sizes",
        "two readers",
    ],
)
def test_what_becomes_of_a_concat(body, folded, doubts):
    assert fused(body) == (folded, doubts)


@pytest.mark.parametrize(
    ("x", "y", "parts", "is_folded"),
    [
        ("B,6,2,4", "B,6,8", "a, m, c", True),
        ("B,6,2,4", "B,6,8", "a, c, m", True),
        ("2,6,2,4", "2,B,8", "a, m, c", True),
        ("B,6,2,4", "C,6,8", "a, m, c", False),
        ("B,6,2,4", "?,6,8", "a, m, c", False),
        ("?,6,2,4", "?,6,8", "a, m, c", False),
        ("B,6,2,4", "B,6,8", "m, a, c", False),
        ("S,B,2,4", "B,S,8", "a, m, c", False),
    ],
    ids=[
        "a symbol",
        "another order",
        "a number",
        "other symbols",
        "one is unknown",
        "both are unknown",
        "elsewhere",
        "swapped",
    ],
)
@pytest.mark.parametrize("version", ["1.24.4", "1.30.0"])
def test_a_size_of_another_tensor(x, y, parts, is_folded, version):
    """Asked of both versions."""
    model = (
        f"(float[{x}] x, float[{y}] y) => (float[?,?,?] o) <int64 i = {{0}}, int64[1] m = {{-1}}, int64[1] c = {{8}}, "
        "int64[1] axes = {0}> { s = Shape(y) g = Gather(s, i) a = Unsqueeze(g, axes) "
        f"k = Concat<axis=0>({parts}) o = Reshape(x, k) }}"
    )
    left = after(reshape_fusion, model, 17, version)
    assert (left == ["o = Reshape(x,k)"]) == (is_folded and version == "1.30.0")


RESHAPED = (
    "(float[6,4] x, int64[2] k) => (float[?,?,?] o) <int64[2] s = {4,6}, int64[3] t = {2,3,4}, int64[1] axes = {0}, "
    "float[4,2] w = {1,2,3,4,5,6,7,8}, float[2] b = {1,2}>"
)


@pytest.mark.parametrize(
    ("body", "opset", "version", "expected"),
    [
        ("a = Reshape(x, s) o = Reshape(a, t)", 18, "1.24.4", ["o = Reshape(x)"]),
        ("a = Reshape(x, s) o = Reshape(a, t)", 18, "1.20.1", ["a = Reshape(x,s)", "o = Reshape(a,t)"]),
        ("a = Reshape(x, s) o = Reshape(a, t)", 19, "1.24.4", ["a = Reshape(x,s)", "o = Reshape(a,t)"]),
        ("a = Reshape(x, s) o = Reshape(a, t)", 19, "1.30.0", ["o = Reshape(x)"]),
        ("a = Reshape(x, t) c = Unsqueeze(a, axes) d = Squeeze(c, axes) o = Neg(d)", 18, "1.24.4", 2),
        ("a = Unsqueeze(x, axes) o = Reshape(a, t)", 18, "1.24.4", 2),
        ("a = Reshape(x, k) o = Reshape(a, t)", 18, "1.24.4", ["o = Reshape(x)"]),
        ("a = Reshape(x, s) o = Reshape(a, k)", 18, "1.24.4", 2),
        ("a = Reshape<allowzero=1>(x, s) o = Reshape(a, t)", 18, "1.24.4", 2),
        ("a = Reshape(x, s) o = Reshape<allowzero=1>(a, t)", 18, "1.24.4", ["o = Reshape(x)"]),
        ("a = Reshape(x, s) o = Reshape<allowzero=1>(a, t)", 18, "1.30.0", 2),
        ("a = Reshape(x, s) c = Reshape(a, t) d = Relu(a) e = ReduceSum<keepdims=0>(d) o = Add(c, e)", 18, "1.24.4", 5),
        ("a = Reshape(x, s) o = Flatten(a)", 18, "1.24.4", 2),
    ],
    ids=[
        "two",
        "an old version",
        "a new opset",
        "a new opset in a new version",
        "other operators",
        "no Reshape in front",
        "a computed shape in front",
        "a computed shape",
        "zeros that are no sizes",
        "such zeros behind",
        "such zeros behind in a new version",
        "another reader",
        "another operator",
    ],
)
def test_reshapes_in_a_row_become_one(body, opset, version, expected):
    found = after(contiguous_reshapes, f"{RESHAPED} {{ {body} }}", opset, version)
    assert expected in (found, len(found))


def test_a_reshape_is_fused_with_those_around_a_product():
    def change(graph):
        matmul_add_fusion(graph)
        contiguous_reshapes(graph)
        assert [(node.name, node.index, node.absorbed, node.is_inserted) for node in graph.nodes] == [
            ("o/Reshape", 0, (), False),
            ("o/product", 2, (1,), False),
            ("o", 2, (), True),
        ]

    after(change, f"{RESHAPED} {{ a = Reshape(x, t) m = MatMul(a, w) o = Add(m, b) }}")


@pytest.mark.parametrize(
    ("shape", "behind", "version", "failing"),
    [
        ("s = Shape(z)", "Reshape(a, t)", "1.24.4", "r"),
        ("s = Shape(z)", "Reshape(a, t)", "1.30.0", "r"),
        ("s = Shape(z)", "Reshape(a, t)", "1.20.1", None),
        ("s = Identity(k)", "Reshape(a, t)", "1.24.4", None),
        ("s = Shape(z)", "Reshape(a, k)", "1.24.4", None),
        ("s = Shape(x)", "Reshape(a, t)", "1.24.4", None),
    ],
    ids=["computed", "a new version", "an old version", "an input", "not static", "folded"],
)
def test_a_reshape_to_a_computed_shape_fails_where_it_is_merged(shape, behind, version, failing):
    found = placed(
        f"(float[6,4] x, float[A,B] z, int64[2] k) => (float[?,?] y) <int64[2] t = {{4,6}}> "
        f"{{ {shape} a = Reshape(x, s) r = {behind} y = Relu(r) }}",
        version,
        18,
    )
    assert (found.created, found.failure and found.failure.node) == (failing is None, failing)


HEADS = """(float[B,S,8] x) => (float[B,S,8] o) <float[8,8] w = {ONES}, int64 i = {0}, int64 j = {1}, int64[1] z = {0},
    int64[1] n = {2}, int64[1] d = {4}, int64[1] e = {8}, float[8] g = {1,1,1,1,1,1,1,1}> {
    s = Shape(x) b = Gather(s, i) u = Unsqueeze(b, z) t = Gather(s, j) v = Unsqueeze(t, z)
    c = Concat<axis=0>(u, v, n, d) r = Reshape(x, c) h = Transpose<perm=[0,2,1,3]>(r) p = Softmax(h) m = Mul(p, h)
    k = Transpose<perm=[0,2,1,3]>(m) f = Concat<axis=0>(u, v, e) q = Reshape(k, f) a = Add(q, x)
    o = LayerNormalization(a, g) }""".replace("ONES", ",".join("1" * 64))


@pytest.mark.parametrize(("version", "left"), [("1.24.4", 1), ("1.30.0", 0)])
def test_shapes_that_follow_from_a_constant(version, left):
    """As ONNX Runtime infers them before it looks again, asked live: the second Concat then has the batch and the
    length of what is reshaped."""
    graph = graph_of(HEADS, 17, version)
    reshape_fusion(graph)
    assert sum(node.op_type == "Concat" for node in graph.nodes) == left
    assert graph.found_shapes["r"] == ("B", "S", 2, 4)
    assert graph.found_shapes["k"] == ("B", "S", 2, 4)
    skip_layer_norm_fusion(graph)
    assert graph.nodes[-1].op_type == ("LayerNormalization" if left else "SkipLayerNormalization")


@pytest.mark.parametrize(("declared", "nodes"), [(None, 5), ("batch", 4), ("other", 5)])
def test_a_size_that_the_file_declares_is_kept(declared, nodes):
    """The Concat becomes the constant [-1, 6, 8]; the sum and its LayerNormalization are one if its sizes are equal.
    Asked of 1.18.0, 1.22.0, 1.24.4 and 1.30.0."""
    made = models.text(
        """(float[batch,6,8] x) => (float[?,?,?] y) <float[8] g = {1,1,1,1,1,1,1,1}, int64[2] flat = {-1, 8},
            int64 z = {0}, int64[1] zz = {0}, int64[1] six = {6}, int64[1] eight = {8}> {
            a = Reshape(x, flat) b = Exp(a) s = Shape(x) i = Gather(s, z) j = Unsqueeze(i, zz)
            c = Concat<axis=0>(j, six, eight) r = Reshape(b, c) u = Add(x, r) y = LayerNormalization(u, g, g)
        }""",
        17,
    )
    if declared is not None:
        made.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, [declared, 6, 8]))
    for version in ("1.18.0", "1.24.4", "1.30.0"):
        assert placed_model(made, version).running == nodes
