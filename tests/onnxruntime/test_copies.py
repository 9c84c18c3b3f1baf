"""Copies between devices, and what prevents the capture of a graph: small models in onnx's text form."""

from __future__ import annotations

import pytest

from tests.onnxruntime.placements import TAKES, placed, where


def test_copies_and_capture():
    found = placed("(float[4,4] x) => (float[4,4] y) { a = Relu(x) b = Round(a) y = Sigmoid(b) }", opset=22)
    assert where(found) == {"a": "DML", "b": "CPU", "y": "DML"}
    assert found.copies == (1, 1)
    assert found.capture_prevented_by == "2 tensors are copied between the CPU and the device"


@pytest.mark.parametrize(
    ("behind", "version", "copies"),
    [
        ("o = Add(a, d)", "1.24.4", (0, 1)),
        ("o = Add(a, d)", "1.30.0", (0, 0)),
        ("b = Add(a, d) o = Relu(b)", "1.24.4", (0, 1)),
        ("b = Add(a, d) o = Relu(b)", "1.30.0", (0, 1)),
    ],
)
def test_what_follows_a_conv_on_the_cpu(behind, version, copies):
    """From 1.30.0 on a shift becomes a part of its weights; an activation on DirectML stays there."""
    found = placed(
        f"""(float[1,2,4,4] x) => (float[?,?,?,?] o) <float[2,2,1,1] w = {{1,2,3,4}}, float[1,2,1,1] d = {{1,2}}> {{
            a = Conv(x, w) {behind}
        }}""",
        version,
        opset=22,
    )
    assert found.copies == copies


def test_an_input_that_both_read_is_copied():
    found = placed("(float[4,4] x) => (float[4,4] y, float[4,4] z) { y = Relu(x) z = Round(x) }", opset=22)
    assert found.copies == (0, 1)


@pytest.mark.parametrize(
    ("more", "given", "copies"),
    [
        ("", "", (0, 1)),
        ("s = Sqrt(d)", "", (0, 2)),
        ("s = Div(d, d)", "", (0, 3)),
        ("s = Round(d)", "", (0, 1)),
        ("s = Sqrt(d)", ", float[N,3] d", (0, 2)),
    ],
)
def test_each_reader_of_a_dequantize_linear_copies_its_own(more, given, copies):
    """One of FLOAT8 is on the CPU, as are a Round of opset 22; the other readers are on DirectML."""
    shown = ", float[N,3] s" if more else ""
    found = placed(
        f"""(float8e5m2[N,3] x) => (float[N,3] y{shown}{given}) <float k = {{1.0}}> {{
            d = DequantizeLinear(x, k) y = Neg(d) {more} }}""",
        opset=22,
    )
    assert found.copies == copies


@pytest.mark.parametrize(
    ("before", "copies"),
    [("a = Abs(x) b = Abs(x)", (0, 1)), ("a = Abs(x) b = Exp(x)", (0, 0)), ("a = Abs(x) b = Identity(a)", (0, 0))],
    ids=["equal nodes", "others", "an Identity that stays"],
)
def test_a_graph_that_reads_a_tensor_under_two_names(before, copies):
    """What the graph around computes once is one tensor, which the Scan reads on the CPU and the Neg on DirectML."""
    scan = "Scan<num_scan_inputs = 1, body = s (float[3] l) => (float[3] m) { m = Exp(l) }>(a)"
    found = placed(
        f"""(float[2,3] x, bool c) => (float[2,3] y, float[2,3] z, float[2,3] w) {{
            {before} {TAKES % (f"v = {scan} p = Neg(b)", "q = Neg(x)")} z = Sqrt(a) w = Sqrt(b) }}""",
        "1.20.1",
        13,
    )
    assert found.copies == copies


def test_a_tensor_that_is_removed_is_not_copied():
    """The Exp is removed with the Shape of it. The Softplus is on the CPU, the Reshape on DirectML. Observed."""
    taken = TAKES.replace("y = If(c)", "w = If(t)").replace(" p)", " r)").replace(" q)", " u)")
    inner = f"{taken % ('r = Exp(x)', 'u = Neg(x)')} s = Shape(w) p = Reshape(w, s) k = Softplus(w)"
    found = placed(
        f"""(float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) <bool t = {{1}}> {{
            y, z = If(c) <then_branch = a () => (float[2,3] p, float[2,3] k) {{ {inner} }},
                          else_branch = b () => (float[2,3] q, float[2,3] l) {{ q = Neg(x) l = Abs(x) }}> }}""",
        opset=22,
    )
    assert where(found)["y.then_branch/w.then_branch/r"] == "folded"
    assert found.copies == (0, 0)


@pytest.mark.parametrize("version", ["1.20.1", "1.24.4"])
def test_a_function_in_a_function_copies(version):
    """Mish is made of a Softplus, which is made of operators on both providers."""
    found = placed("(double[N,3] x) => (double[N,3] y) { z = Abs(x) w = Mish(z) y = Neg(w) }", version, 18)
    assert found.copies == (1, 1)


@pytest.mark.parametrize(
    ("text", "where_it_is"),
    [
        ("(float[2,3] d, int64[?] q) {", {"n": "DML", "q": "CPU"}),
        ("(int64[?] q) <float[2,3] d> {", {"n": "folded", "q": "folded"}),
        ("(int64[?] q, float[?,?] w) <float[2,3] d> { w = Neg(d)", {"n": "DML", "q": "CPU"}),
    ],
    ids=["an output", "the first reader", "the second reader"],
)
def test_what_the_file_says_of_a_dequantize_linear_is_not_said_of_its_copies(text, where_it_is):
    text = text.replace("{", "{ d = DequantizeLinear(x, s)")
    found = placed(f"(int8[N,3] x, float s) => {text} n = Shape(d) q = Abs(n) }}")
    assert where(found) | where_it_is == where(found)


@pytest.mark.parametrize(("version", "captured"), [("1.24.4", True), ("1.30.0", False)])
@pytest.mark.parametrize("beside", ["", "w = Relu(z)", "w = Shape(z)"], ids=["alone", "beside another", "folded"])
def test_capture_of_nodes_on_the_cpu(version, captured, beside):
    """From 1.30.0 on a node has to be on DirectML, if any is left."""
    outputs = {"": "", "w = Relu(z)": ", float[2] w", "w = Shape(z)": ", int64[1] w"}[beside]
    found = placed(f"(double[2] x, float[2] z) => (double[2] y{outputs}) {{ y = Relu(x) {beside} }}", version)
    assert found.capture is (captured or beside == "w = Relu(z)")


@pytest.mark.parametrize(
    ("body", "copies", "captured"),
    [
        ("k = Abs(n) y = Reshape(x, k)", (1, 0), True),
        ("k = Abs(n) y = Reshape(x, k) z = Relu(y)", (1, 0), True),
        ("k = Abs(n) y = Reshape(x, k) w = Cast<to=8>(k)", (1, 0), False),
        ("y = Reshape(x, n) w = Cast<to=8>(n)", (0, 0), True),
    ],
)
def test_what_kernels_of_directml_read_on_the_cpu_prevents_no_capture(body, copies, captured):
    found = placed(f"(float[2,3] x, int64[1] n) => (float[?] y) {{ {body} }}")
    assert (found.copies, found.capture) == (copies, captured)


def test_a_model_without_nodes_is_captured():
    found = placed("(float[2] x) => (int64[1] y) { a = Relu(x) y = Shape(a) }", "1.30.0")
    assert found.capture is True


def test_capture_where_the_elements_of_a_constant_are_lost():
    """Nothing is fused where it is captured: the constant is read outside of fused graphs."""
    found = placed(
        """(float[32] x) => (float[32] y) <bool c = {1}> {
            y = If(c) <
                then_branch = t () => (float[32] a) {
                    n = Constant<value_ints = [32]>()
                    k = ConstantOfShape<value = float[1] {1}>(n)
                    a = Add(x, k)
                },
                else_branch = e () => (float[32] b) { b = Abs(x) }
            >
        }"""
    )
    assert (found.created, found.capture) == (True, False)
    assert "128 bytes or more" in str(found.capture_prevented_by)


@pytest.mark.parametrize(("opset", "copies"), [(22, (0, 0)), (23, (1, 2))])
def test_copies_around_nodes_that_optimization_makes(opset, copies):
    """A product of three dimensions becomes a Gemm between two Reshapes, which are on the CPU from opset 23 on."""
    found = placed(
        """(float[2,3,4] x) => (float[2,3,5] y) <float[4,5] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1},
            float[5] b = {1,1,1,1,1}> { m = MatMul(x, w) a = Add(m, b) y = Sigmoid(a) }""",
        opset=opset,
    )
    assert found.copies == copies


@pytest.mark.parametrize(("data_type", "copies"), [("float16", (0, 2)), ("float", (0, 2))])
def test_the_sizes_of_what_the_cpu_pads(data_type, copies):
    """Pad of opset 21 is on the CPU there; its Shape has the sizes on the CPU, whichever provider has it."""
    found = placed(
        f"""({data_type}[N,8,8] x) => ({data_type}[3,6,6] y) <int64[3] s = {{3, 6, 6}}> {{
            y = CenterCropPad(x, s) }}""",
        "1.20.1",
        21,
    )
    assert found.copies == copies


QUANTIZED = """(uint8[2,3] x) => (float[2,3] r) <float s = {1}, uint8 z = {0}, float one = {1}, float half = {0.5},
    float two = {2}, float root = {1.4142135}, float cubed = {3}, float cube = {0.044715}, float pi = {0.7978846},
    float epsilon = {0.00001}, float[3] w = {1, 2, 3}, int64[1] last = {-1}> { d = DequantizeLinear(x, s, z) %s }"""
GELU = "a = Div(%(x)s, root) e = Erf(a) p = Add(e, one) m = Mul(p, %(x)s) r = Mul(m, half)"
LAYER_NORM = """m = ReduceMean(%(x)s, last) b = Sub(%(x)s, m) q = Pow(b, two) v = ReduceMean(q, last)
    a = Add(v, epsilon) t = Sqrt(a) n = Div(b, t) k = Mul(n, w) r = Add(k, w)"""
FAST_GELU = """p = Pow(%(x)s, cubed) q = Mul(p, cube) a = Add(%(x)s, q) b = Mul(a, pi) t = Tanh(b) f = Add(t, one)
    g = Mul(%(x)s, half) k = Mul(g, f) r = Neg(k)"""


@pytest.mark.parametrize(
    ("body", "copies", "behind_identity"),
    [
        ("g = Sigmoid(%(x)s) r = Mul(g, %(x)s)", 2, 2),
        ("h = Mul(%(x)s, two) g = Sigmoid(h) r = Mul(g, %(x)s)", 2, 2),
        (GELU, 2, 0),
        (LAYER_NORM, 2, 1),
        (FAST_GELU, 3, 3),
    ],
    ids=["QuickGelu", "QuickGelu of a product", "Gelu", "LayerNormalization", "FastGelu"],
)
def test_nodes_that_read_a_dequantization_are_not_fused(body, copies, behind_identity):
    """Each reads one of its own. Those behind one Identity share that in front of it, until nodes are placed."""
    found = placed(QUANTIZED % (body % {"x": "d"}), "1.30.0", 23)
    assert found.copies == (0, copies)
    found = placed(QUANTIZED % ("i = Identity(d) " + body % {"x": "i"}), "1.30.0", 23)
    assert found.copies == (0, behind_identity)


STANDING_FOR = {
    "Bernoulli of an input": (17, "(float[4] x) => (float[4] y) { y = Bernoulli(x) }", (0, 2)),
    "Bernoulli": (17, "(float[4] x) => (float[4] y) { a = Relu(x) y = Bernoulli(a) }", (1, 1)),
    "integers of Bernoulli": (17, "(double[4] x) => (int32[4] y) { a = Abs(x) y = Bernoulli<dtype=6>(a) }", (0, 1)),
    "CenterCropPad": (
        18,
        "(float[2,4,3] x) => (float[2,2,3] y) <int64[3] s = {2, 2, 3}> { a = Round(x) y = CenterCropPad(a, s) }",
        (0, 0),
    ),
    "GroupNormalization": (
        21,
        """(float[2,4,3] x, float[4] s, float[4] b) => (float[2,4,3] y) {
            y = GroupNormalization<num_groups=2>(x, s, b) }""",
        (0, 0),
    ),
    "CastLike, whose second input nothing reads": (
        23,
        "(float[2] x, float16[2] z) => (float16[2] y, float16[2] r) { r = Relu(z) b = Abs(x) y = CastLike(b, z) }",
        (1, 0),
    ),
    "LeakyRelu": (17, "(double[2,3] x) => (double[2,3] y) { y = LeakyRelu(x) }", (2, 3)),
    "PRelu": (17, "(double[2,3] x, double[2,3] w) => (double[2,3] y) { y = PRelu(x, w) }", (1, 3)),
    "NegativeLogLikelihoodLoss": (
        13,
        "(double[2,4] x, int64[2] t) => (double y) { y = NegativeLogLikelihoodLoss(x, t) }",
        (2, 1),
    ),
    "NegativeLogLikelihoodLoss of sizes": (
        15,
        """(float[3,5] x, uint8[N,C,H] z) => (float y) {
            s = Shape(z) y = NegativeLogLikelihoodLoss(x, s) }""",
        (0, 0),
    ),
    "SoftmaxCrossEntropyLoss of DOUBLE": (
        13,
        "(double[2,4] x, int64[2] t) => (double y) { y = SoftmaxCrossEntropyLoss(x, t) }",
        (3, 2),
    ),
    "SoftmaxCrossEntropyLoss, which is not reduced": (
        13,
        '(double[2,4] x, int64[2] t) => (double[2] y) { y = SoftmaxCrossEntropyLoss<reduction="none">(x, t) }',
        (2, 2),
    ),
    "SoftmaxCrossEntropyLoss of opset 23": (
        23,
        "(float[2,4] x, int64[2] t) => (float y) { y = SoftmaxCrossEntropyLoss(x, t) }",
        (2, 4),
    ),
    "SoftmaxCrossEntropyLoss that ignores a class": (
        13,
        "(double[2,4] x, int64[2] t) => (double y) { y = SoftmaxCrossEntropyLoss<ignore_index=1>(x, t) }",
        (4, 2),
    ),
    "Mish of a constant": (
        22,
        "(float[2] x) => (float[2] y) <float[2] c = {1.0, 2.0}> { h = Mish(c) k = Neg(h) y = Add(x, k) }",
        (0, 1),
    ),
    "HardSwish of a constant": (
        22,
        "(float[2] x) => (float[2] y) <float[2] c = {1.0, 2.0}> { h = HardSwish(c) k = Neg(h) y = Add(x, k) }",
        (0, 1),
    ),
}
"""Operators for which the nodes of ONNX's function stand, on both providers: the copies that 1.24.4 makes."""


@pytest.mark.parametrize("name", STANDING_FOR)
def test_copies_between_nodes_that_stand_for_one(name):
    opset, body, copies = STANDING_FOR[name]
    assert placed(body, opset=opset).copies == copies


def test_what_stands_for_a_node_prevents_capture():
    found = placed("(float[4] x) => (float[4] y) { a = Relu(x) y = Bernoulli(a) }")
    assert (
        found.capture_prevented_by
        == "y has no kernel, and the nodes that replace it copy tensors between the CPU and the device"
    )


def test_control_flow_prevents_capture():
    found = placed(
        """(bool c, float[2] x) => (float[2] y) {
            y = If(c) <
                then_branch = t () => (float[2] a) { a = Relu(x) }, else_branch = e () => (float[2] b) { b = Abs(x) }
            >
        }"""
    )
    assert found.capture_prevented_by == "y is a control flow operator"


@pytest.mark.parametrize(
    ("body", "version", "opset", "copies", "capture"),
    [
        ("t = Transpose<perm=[1,0]>(x) a = Add(t, t) y = Relu(a)", "1.24.4", 23, (1, 1), False),
        ("t = Transpose<perm=[1,0]>(x) a = Add(t, t) y = Relu(a)", "1.24.4", 21, (0, 0), True),
        ("a = Add(x, x) y = Transpose<perm=[1,0]>(a)", "1.24.4", 23, (1, 0), False),
        ("d = DequantizeLinear(w, s, z) t = Transpose<perm=[1,0]>(d) y = Add(t, x)", "1.20.1", 21, None, None),
        ("d = DequantizeLinear(w, s, z) t = Transpose<perm=[1,0]>(d) y = Add(t, x)", "1.24.4", 21, (0, 0), True),
    ],
)
def test_transposes_that_are_moved_to_another_provider(body, version, opset, copies, capture):
    """A Transpose of opset 21 is on the CPU in 1.20, one of opset 23 in 1.24; it is moved over an Add on DirectML and
    into the constant of a DequantizeLinear: so these models were seen to be. What is copied is not known in the
    latter."""
    given = "<uint8[4,4] w = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}, float s = {0.5}, uint8 z = {3}>"
    found = placed(f"(float[4,4] x) => (float[4,4] y) {given} {{ {body} }}", version, opset)
    assert (found.copies, found.capture) == (copies, capture)


def test_what_takes_the_place_of_a_transpose_behind_sizes_stays_with_them():
    """The Gather behind the Shape is on the CPU, as the sizes are: nothing is copied. Observed with 1.20.1, 1.24.4."""
    found = placed(
        """(float[N,4,4,3] x) => (int64[4] y, float[?,?,?,?] z) {
            a = Relu(x) t = Transpose<perm=[1,2,3,0]>(a) y = Shape(t) z = Neg(a)
        }"""
    )
    assert (found.copies, found.capture) == ((0, 0), True)


def test_a_transpose_that_may_be_moved_over_a_shape():
    """A Gather behind the Shape takes its place, so that nothing behind it is moved over. Observed with 1.20.1 and
    1.24.4."""
    found = placed(
        """(float[N,3,4] x) => (float[?,?,?] y) {
            t = Transpose<perm = [0, 2, 1]>(x) a = Sinh(t) s = Shape(a) c = Cast<to = 6>(s) d = Cast<to = 7>(c)
            r = Reshape(a, d) y = Transpose<perm = [0, 2, 1]>(r)
        }"""
    )
    assert (where(found)["c"], found.copies) == ("CPU", (0, 0))


def test_the_reshapes_around_two_products_of_one_tensor_stay_apart():
    """Reshapes of opset 23 are on the CPU, each with a constant of its own; the move of Transposes repeats the merging
    of equal nodes. Asked of 1.24.4 and 1.30.0."""
    found = placed(
        """(float[2,2,2] x, float[2,2] v, float[2,2] w) => (float[2,2,2] o, float[2,2,2] p) <float[2] b = {1,2}> {
            c = MatMul(x, v) d = Add(c, b) o = Transpose<perm=[1,0,2]>(d) m = MatMul(x, w) p = Add(m, b)
        }""",
        opset=23,
    )
    assert found.copies == (2, 2)
