"""What optimization leaves of a model, which decides where nodes go: sizes, constants, equal nodes."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests import models
from tests.onnxruntime.placements import placed, where

NOTHING_READS = {
    "the type that a Cast stands for": ("float8e5m2[2] x, float[2] s", 23, "n = Neg(s) r = CastLike(x, n)", "n"),
    "a type that is read": ("float8e5m2[2] x, float[2] s", 23, "n = Neg(s) c = CastLike(x, n) r = Add(n, c)", None),
    "the type of a CastLike with a kernel": ("float16[2] x, float[2] s", 19, "n = Neg(s) r = CastLike(x, n)", None),
    "a Bernoulli": ("float[2] x, float[2] s", 17, "d = Bernoulli(x) r = Neg(s)", "d"),
    "a Bernoulli of open sizes": ("float[N] x, float[2] s", 17, "d = Bernoulli(x) r = Neg(s)", None),
    "what reads a Bernoulli": ("float[2] x, float[2] s", 17, "d = Bernoulli(x) t = Tanh(d) r = Neg(s)", "d"),
    "what reads a Bernoulli that is read": (
        *("float[2] x, float[2] s", 17),
        *("d = Bernoulli(x) t = Tanh(d) r = Add(d, s)", None),
    ),
    "a loss in a loss": (
        "float[3,5] x, int64[3] t, float[2] s",
        23,
        "d = SoftmaxCrossEntropyLoss(x, t) r = Neg(s)",
        "d",
    ),
    "a Where behind a comparison on the CPU": ("double[3,5] x, float[2] s", 17, "d = LeakyRelu(x) r = Neg(s)", "d"),
    "a loss that ends on the CPU": (
        *("double[3,5] x, int64[3] t, float[2] s", 17),
        *("d = NegativeLogLikelihoodLoss(x, t) r = Neg(s)", None),
    ),
}


@pytest.mark.parametrize("name", NOTHING_READS)
def test_a_fused_graph_in_place_of_a_node_whose_results_nothing_reads(name):
    inputs, opset, body, node = NOTHING_READS[name]
    found = placed(f"({inputs}) => (float[2] r) {{ {body} }}", opset=opset)
    assert found.created is (node is None)
    assert (found.failure and found.failure.node) == node


@pytest.mark.parametrize(
    ("body", "opset", "version", "created"),
    [
        ("n = Not(a) c = Where(n, n, b)", 12, "1.24.4", False),
        ("n = Not(a) c = Where(n, b, n)", 12, "1.18.0", False),
        ("n = Not(a) c = Where(n, n, b)", 16, "1.24.4", True),
        ("n = Not(a) c = Where(n, n, b)", 16, "1.30.0", False),
        ("z = Identity(a) n = Not(z) c = Where(n, n, b)", 12, "1.24.4", False),
        ("z = And(a, b) n = Not(z) c = Where(n, n, b)", 12, "1.24.4", True),
        ("n = Not(a) d = Where(n, a, b) c = Where(d, n, b)", 12, "1.24.4", False),
        ("n = Not(a) d = Or(n, b) c = Where(n, n, d)", 12, "1.24.4", True),
        ("n = Not(a) c = Where(b, n, a)", 12, "1.24.4", True),
        ("c = Not(a) d = Where(c, c, b)", 12, "1.24.4", True),
        ("m = Not(a) n = Not(m) c = Where(n, n, b)", 12, "1.24.4", False),
        ("n = Not(t) c = Where(n, n, b)", 12, "1.24.4", False),
    ],
)
def test_a_where_that_reads_a_not_twice(body, opset, version, created):
    found = placed(
        f"(bool[2,3] a, bool[2,3] b) => (bool[2,3] c, bool[2,3] e) <bool[1] t = {{1}}> {{ {body} e = Xor(a, b) }}",
        version,
        opset,
    )
    assert found.created is created
    assert created or (found.failure.node == "c" and ", but the Not that" in found.failure.message)


def test_sizes_that_rounds_of_inference_do_not_reach(monkeypatch):
    layers = " ".join(f"s{i} = Shape(x{i}) m{i} = Mul(s{i}, one) x{i + 1} = Reshape(x{i}, m{i})" for i in range(6))
    text = f"(float[2,3] x0) => (float[?,?] y) <int64[2] one = {{1, 1}}> {{ {layers} y = Relu(x6) }}"
    assert set(where(placed(text)).values()) == {"folded", "DML"}
    monkeypatch.setattr("dmlsplit.onnxruntime.scopes._LARGE", 0)
    monkeypatch.setattr("dmlsplit.onnxruntime.scopes._ROUNDS_OF_LARGE", 3)
    found = placed(text)
    assert [where(found)[name] for name in ("s0", "m0", "s1", "m1")] == ["folded"] * 4
    assert [where(found)[name] for name in ("s5", "m5", "x6", "y")] == ["unknown", "unknown", "DML", "DML"]
    assert (found.created, found.copies, found.capture) == (None, None, None)


@pytest.mark.parametrize(("data_type", "created"), [("float16", True), ("float", False)])
def test_a_constant_of_half_precision_is_cast_for_the_cpu(data_type, created):
    """Its elements are read as the model is optimized; those of another constant that the CPU reads are lost."""
    values = ", ".join(["1"] * 128)
    found = placed(
        f"""({data_type}[1,4,8,8] x) => ({data_type}[?,?,?,?] y) <bool c = {{1}}> {{
            y = If(c) <
                then_branch = t () =>
                    ({data_type}[?,?,?,?] a) <{data_type}[2,4,4,4] k = {{{values}}}> {{ a = Conv(x, k) }},
                else_branch = e () => ({data_type}[?,?,?,?] b) {{ b = Abs(x) }}> }}""",
        opset=22,
    )
    assert found.created is created


def test_what_reads_a_shape_that_is_equal_to_a_later_one_is_folded():
    found = placed(
        """(float[2,3] x) => (int64[2] y, int64[2] z) {
            a = Exp(x) s = Shape(a) y = Abs(s) r = Shape(a) z = Neg(r) }"""
    )
    assert set(where(found).values()) == {"folded"}


def test_equal_nodes_are_merged_before_anything_is_folded():
    found = placed(
        """(float[2,3] x, bool c) => (float[2,3] u, float[2,3] y) {
            b = Neg(x) a = Neg(x) u = Abs(a)
            y = If(c) <
                then_branch = t () => (float[2,3] p) { s = Shape(b) p = ConstantOfShape(s) },
                else_branch = e () => (float[2,3] q) { q = Exp(x) }
            > }"""
    )
    assert (where(found)["b"], where(found)["a"]) == ("DML", "folded")


@pytest.mark.parametrize(("read", "place", "copies"), [("string", "CPU", (1, 1)), ("float16", "DML", (0, 0))])
def test_a_shape_reads_what_a_cast_in_front_of_it_reads(read, place, copies):
    found = placed(
        f"""({read}[N,3] x, float[2,3] z) => (float[?,?] y) <int64[2] one = {{1,1}}> {{
            c = Cast<to = 1>(x) s = Shape(c) m = Mul(s, one) y = Expand(z, m) }}"""
    )
    assert (where(found)["c"], where(found)["s"], found.copies) == ("folded", place, copies)


LOOP = """y, w, u = Loop(n, t, x) <
    body = b (int64 i, bool g, float[N,3] s) => (bool h, float[N,3] r, int64[2] q, int64[2] p)
    <int64[2] k = {1,1}, int64[2] l = {1,1}> {
        h = Identity(g) r = Relu(s) z = Shape(s) e = Mul(z, k) f = Mul(z, l) q = Abs(e) p = Neg(f) }>"""


@pytest.mark.parametrize(
    ("body", "names", "places"),
    [
        (
            """<int64[2] k = {1,1}, int64[2] l = {1,1}> {
            y = Relu(x) z = Shape(x) e = Mul(z, k) f = Mul(z, l) w = Abs(e) u = Neg(f)""",
            "ef",
            ["folded", "CPU"],
        ),
        ("{ " + LOOP, ["y.body/e", "y.body/f"], ["CPU", "CPU"]),
        (
            """<int64[2] k = {1,1}, int64[2] l = {1,1}> { z = Shape(x) e = Mul(z, k) f = Mul(z, l) w = Abs(e) u = Neg(f)
            y = Loop(n, t, x) <body = b (int64 i, bool g, float[N,3] s) => (bool h, float[N,3] r) {
                h = Identity(g) o = Expand(s, k) r = Relu(o) }>""",
            "ef",
            ["CPU", "CPU"],
        ),
        (
            """<int64[2] k = {1,1}, bool c = {1}> { z = Shape(x) e = Mul(z, k) w = Abs(e) y = Relu(x)
            u = If(c) <then_branch = m () => (int64[2] p) <int64[2] l = {1,1}> { [f] o = Mul(z, l) p = Neg(o) },
                       else_branch = j () => (int64[2] q) { q = Abs(z) }>""",
            ["e", "u.then_branch/f"],
            ["CPU", "CPU"],
        ),
    ],
    ids=["of the model", "of a Loop", "read in a Loop", "of a taken branch"],
)
def test_equal_constants_are_shared(body, names, places):
    """They are, with what is computed of them, in the model's own graph, unless a graph inside a node reads one."""
    found = placed(f"(int64 n, bool t, float[N,3] x) => (float[?,?] y, int64[?,?] w, int64[?,?] u) {body} }}")
    assert [where(found)[name] for name in names] == places


@pytest.mark.parametrize(
    ("version", "opset", "inferred"),
    [("1.24.4", 16, True), ("1.24.4", 15, False), ("1.30.0", 15, False), ("1.23.2", 16, False)],
)
def test_sizes_behind_a_function_without_inference(version, opset, inferred):
    found = placed(
        """(float[2,3] x, float[2,3] z) => (float[2,3] y) {
            a = Relu(x) b = GreaterOrEqual(a, z) c = Not(b) y = Cast<to=1>(c) }""",
        version,
        opset,
    )
    assert [node.graph for node in found.nodes.values()] == ([0] * 4 if inferred else [0, None, None, None])


@pytest.mark.parametrize(("declared", "place"), [("", "DML"), (", float[1,3] t", "folded")])
def test_sizes_of_what_is_taken_from_a_sequence(declared, place):
    found = placed(
        f"""(float[4,3] x) => (int64[2] y) <int64 z = {{0}}{declared}> {{
            s = SplitToSequence(x) t = SequenceAt(s, z) y = Shape(t) }}"""
    )
    assert where(found)["y"] == place
    assert found.copies == ((0, 1) if place == "DML" else (0, 0))


def test_a_declared_symbol_gives_way_to_the_size_that_is_computed():
    found = placed(
        """(float[4,3] x) => (float[N,M] y) <int64[1] first = {0}, int64[1] rest = {-1}> {
            w = Relu(x) a = Shape(w) b = Gather(a, first) d = Concat<axis=0>(b, rest) y = Reshape(w, d) }"""
    )
    assert [found.nodes[name].graph for name in "wy"] == [0, 0]


@pytest.mark.parametrize(("behind", "created"), [("Sigmoid(b)", False), ("Relu(b)", False), ("Abs(b)", True)])
def test_an_activation_that_is_put_into_a_mean_variance_normalization(behind, created):
    found = placed(
        f"(float[2,3,4,5] x) => (float[2,3,4,5] y) {{ b = MeanVarianceNormalization(x) c = {behind} y = Neg(c) }}",
        opset=13,
    )
    assert found.created is created
    assert (found.failure is None) is created
    assert created or found.failure.node == "b"


@pytest.mark.parametrize(
    ("version", "opset", "place"), [("1.24.4", 20, "CPU"), ("1.24.4", 19, "DML"), ("1.19.2", 20, "DML")]
)
def test_a_gelu_that_optimization_makes_is_on_the_cpu(version, opset, place):
    found = placed(
        """(float[2,6] x) => (float[2,6] y) <float r = {1.4142135}, float one = {1.0}, float half = {0.5}> {
            n = Neg(x) d = Div(n, r) e = Erf(d) a = Add(e, one) p = Mul(n, a) g = Mul(p, half) y = Tanh(g) }""",
        version,
        opset,
    )
    assert where(found)["g"] == place
    assert found.copies == ((1, 1) if place == "CPU" else (0, 0))
    assert found.capture is (place == "DML")


@pytest.mark.parametrize(("version", "merged"), [("1.18.0", True), ("1.19.2", False)])
def test_shapes_of_equal_sizes_are_taken_of_one_tensor(version, merged):
    """The Shape of the first tensor is the other one then, and nothing else is read of the Neg."""
    found = placed(
        """(float[N,3] x, float[1,1] z) => (float[?,?] y, float[?,?] w) {
            a = Shape(x) y = Expand(z, a) n = Neg(x) b = Shape(n) c = Abs(b) w = Expand(z, c) }""",
        version,
    )
    assert where(found) == {
        "a": "folded" if merged else "DML",
        "n": "DML",
        "b": "DML",
        "c": "CPU",
        "y": "DML",
        "w": "DML",
    }


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("d = Dropout(x) y = Relu(d)", "folded"),
        ("d = Cast<to=1>(x) y = Relu(d)", "folded"),
        ("d = Dropout(c) y = Add(x, d)", "folded"),
        ("y = Relu(x) d = Dropout(c)", "CPU"),
    ],
    ids=["a Dropout", "a Cast", "of a constant", "of a constant that is an output"],
)
def test_a_node_that_does_nothing_is_taken_out(body, place):
    outputs = "float[2] y, float[2] d" if place == "CPU" else "float[2] y"
    found = placed(f"(float[2] x) => ({outputs}) <float[2] c = {{1.0, 2.0}}> {{ {body} }}")
    assert where(found)["d"] == place
    assert found.capture is True


@pytest.mark.parametrize(("version", "folded"), [("1.24.4", True), ("1.30.0", False)])
def test_a_constant_whose_sizes_are_not_inferred(version, folded):
    found = placed(
        """(float[2] x) => (int64[?,?] y, float[2] z) <float[2] c = {0.0, 1.0}> {
            n = NonZero(c) y = Abs(n) z = Relu(x) }""",
        version,
    )
    assert (where(found)["n"] == "folded") is folded


@pytest.mark.parametrize(
    ("version", "opset", "folded"), [("1.24.4", 18, True), ("1.24.4", 19, False), ("1.30.0", 19, True)]
)
def test_the_shape_of_a_new_reshape_is_computed_up_to_1_24_4(version, opset, folded):
    found = placed(
        """(float[N,3,4] x) => (float[?,?] y) <int64 zero = {0}, int64[1] axis = {0}, int64[1] rest = {-1}> {
            a = Shape(x) b = Gather(a, zero) c = Unsqueeze(b, axis) d = Concat<axis=0>(c, rest) y = Reshape(x, d) }""",
        version,
        opset,
    )
    assert (where(found)["d"] == "folded") is folded


@pytest.mark.parametrize(("sizes", "session"), [((1, 1), True), ((1, 2), True), ((2, 2), False)])
def test_a_resize_leaves_sizes_of_1_out(sizes, session):
    batch, channels = sizes
    found = placed(
        f"""(float[{batch},{channels},3,4,5] x) => (float[?,?,?,?,?] y) {{
            k = Constant<value_floats=[1.0,1.0,2.0,2.0,2.0]>() y = Resize(x, , k)
        }}"""
    )
    assert (found.created, (found.failure or ("",))[0]) == (session, "" if session else "y")


COPIES_OF_BODIES = {"Elu": (3, 3), "Softplus": (1, 1), "Mish": (1, 1), "HardSwish": (4, 1)}


@pytest.mark.parametrize("op", COPIES_OF_BODIES)
@pytest.mark.parametrize(("opset", "created"), [(18, True), (19, False)])
def test_a_body_counts_up_to_the_opset_that_changes_its_operators(op, opset, created):
    """The bodies of opset 18 have a CastLike, or an operator of DOUBLE whose body has one. Asked of 1.18.0, 1.24.4."""
    found = placed(f"(double[2,3] x) => (double[2,3] y) {{ y = {op}(x) }}", opset=opset)
    assert found.created is created
    assert not created or found.copies == COPIES_OF_BODIES[op]


@pytest.mark.parametrize(("shaped", "place"), [("a", "DML"), ("s", "folded")])
def test_an_identity_beside_a_name_that_a_graph_in_a_node_had(shaped, place):
    """The graph has the name x, which took the place of a, even after the Shape that read it is folded."""
    found = placed(
        f"""(float[2,3] x, float[2,3] w) => (float[2,3] y, float[2,3] z) {{
            a = Identity(x) b = Identity(a) z = Neg(x)
            y = Scan<num_scan_inputs = 1, body = g (float[3] s) => (float[3] t) {{
                h = Shape({shaped}) u = ReduceMax(b) c = ConstantOfShape(h) t = Add(s, u) }}>(w) }}"""
    )
    assert (where(found)["a"], where(found)["b"]) == ("folded", place)


PRODUCT = """(float[2,3,4] x) => (float[2,3,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}, float[2] b = {1,2}> {
    a = Relu(x) m = MatMul(a, w) n = Add(m, b) y = Sigmoid(n) }"""


@pytest.mark.parametrize(
    ("version", "opset", "sizes", "copies"),
    [
        ("1.20.1", 21, [4], (0, 0)),
        ("1.22.0", 21, [5], (0, 0)),
        ("1.24.4", 22, [5], (0, 0)),
        ("1.23.2", 23, [1, 1, 1], (2, 2)),
        ("1.24.4", 23, [1, 1, 1], (2, 2)),
        ("1.30.0", 24, [1, 1, 1], (2, 2)),
    ],
)
def test_nodes_that_optimization_creates_run_where_the_opset_has_kernels_of_their_operators(
    version, opset, sizes, copies
):
    """The Reshapes around the Gemm have no kernel of DirectML from opset 23 on."""
    found = placed(PRODUCT, version, opset)
    assert [graph.least for graph in found.graphs] == [graph.most for graph in found.graphs] == sizes
    assert found.copies == copies
    assert set(where(found).values()) == {"DML"}


@pytest.mark.parametrize("versions", [("1.20.1", "1.24.4"), ("1.24.4", "1.20.1")])
def test_the_operators_of_a_version_are_those_of_the_nodes_that_it_creates(versions):
    sessions = OnnxSessions(models.text(PRODUCT, 21), lambda *_: None)
    found = {
        version: [node.path for node in sessions.of(find_runtime(version), SessionOptions()).placement.operators]
        for version in versions
    }
    assert found == {"1.20.1": ["a", "m", "n", "y"], "1.24.4": ["a", "n", "n", "n", "y"]}


ROW = "<int64[2] s = {4,6}, int64[3] t = {2,3,4}>"


@pytest.mark.parametrize(
    ("shape", "version", "opset", "size"),
    [
        ("t", "1.20.1", 18, 3),
        ("t", "1.22.0", 18, 2),
        ("t", "1.24.4", 19, 3),
        ("t", "1.30.0", 19, 2),
        ("k", "1.20.1", 18, 2),
        ("k", "1.24.4", 18, 2),
    ],
)
def test_the_reshape_in_place_of_a_row_of_reshapes(shape, version, opset, size):
    """A Reshape whose shape k is computed cannot be in a fused graph; the one in its place can."""
    found = placed(
        f"""(float[6,4] x, int64[3] k) => (float[2,3,4] y) {ROW} {{
            a = Relu(x) b = Reshape(a, s) y = Reshape(b, {shape}) }}""",
        version,
        opset,
    )
    assert [graph.most for graph in found.graphs] == [size]
    assert (where(found)["y"], found.nodes["y"].graph) == ("DML", None if (shape, version) == ("k", "1.20.1") else 0)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("e = Expand(r, s) y = Identity(r) z = Neg(x)", False),
        ("y = Identity(r) e = Expand(r, s) z = Neg(x)", False),
        ("y = Identity(r) e = Expand(r, s) z = Neg(e)", True),
    ],
)
def test_an_identity_of_an_output_whose_other_readers_are_removed(body, left):
    """Observed with 1.24.4: an Expand to the sizes that its tensor has is removed after its Shape is folded."""
    found = placed(f"(float[2,3] x) => (float[2,3] y, float[2,3] z) {{ r = Sinh(x) s = Shape(r) {body} }}")
    assert where(found)["y"] == ("DML" if left else "folded")


@pytest.mark.parametrize(
    ("axis", "opset", "left"),
    [
        ("", 12, False),
        ("<axis = 1>", 12, False),
        ("<axis = -2>", 12, False),
        ("<axis = 2>", 12, True),
        ("<axis = -1>", 12, True),
        ("<axis = 2>", 13, False),
    ],
)
def test_transposes_around_a_softmax_that_makes_its_tensor_a_matrix(axis, opset, left):
    """Up to opset 12 none is moved over it that moves dimensions across the axis. Observed with 1.18.0 to 1.24.4."""
    found = placed(
        f"""(double[2,3,4] x) => (double[2,3,4] y) {{
            t = Transpose<perm = [0, 2, 1]>(x) u = LogSoftmax{axis}(t) y = Transpose<perm = [0, 2, 1]>(u)
        }}""",
        opset=opset,
    )
    assert where(found) == {"t": "DML" if left else "folded", "u": "CPU", "y": "DML" if left else "folded"}
    assert found.copies == ((1, 1) if left else (0, 0))


TURNED = "Transpose<perm = [2, 0, 1]>"
PAIRED = "<float s = {0.5}, uint8 z = {3}>"


@pytest.mark.parametrize("first", ["Neg(x)", "DequantizeLinear(x, s, z)"])
@pytest.mark.parametrize("last", [TURNED, "Neg"])
@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_a_quantization_over_which_a_transpose_is_moved(first, last, version):
    """It stays: the Transpose between it and what is in front is behind it then. Observed with both versions."""
    given, result = "float" if first == "Neg(x)" else "uint8", "3,4,2" if last == TURNED else "4,2,3"
    found = placed(
        f"""({given}[2,3,4] x) => (float[{result}] y, float[4,2,3] w) {PAIRED} {{
            n = {first} a = {TURNED}(n) q = QuantizeLinear(a, s, z)
            d = DequantizeLinear(q, s, z) y = {last}(d) e = DequantizeLinear(q, s, z) w = Neg(e)
        }}""",
        version,
        16,
    )
    assert where(found)["q"] == ("DML" if last == TURNED else "folded")


def test_transposes_without_a_permutation_stay():
    """Observed with 1.18.0, 1.20.1 and 1.24.4."""
    found = placed("(float[2,3] x) => (float[2,3] o) { a = Transpose(x) b = Transpose(a) o = Relu(b) }")
    assert where(found) == {"a": "DML", "b": "DML", "o": "DML"}


SWAPPED = "Transpose<perm = [1, 0]>"
FACTORS = "(float[2,4] x, float[2,4] w) => (float[4,4] y)"


@pytest.mark.parametrize(
    ("body", "failing"),
    [
        (f"t = {SWAPPED}(x) y = Gemm(t, w)", ""),
        (f"g = Gemm<transA = 1>(x, w) y = {SWAPPED}(g)", ""),
        (f"t = {SWAPPED}(x) g = Gemm(t, w) y = Relu(g)", "g"),
        ("g = Gemm<transA = 1>(x, w) y = Relu(g)", "g"),
    ],
)
@pytest.mark.parametrize("opset", [17, 21])
def test_a_gemm_without_c_fails_with_an_activation_alone(body, failing, opset):
    """A Transpose that is fused into it is none. Observed with 1.22.0 to 1.30.0."""
    found = placed(f"{FACTORS} {{ {body} }}", opset=opset)
    assert found.created is not bool(failing)
    assert (found.failure.node if found.failure else "") == failing


@pytest.mark.parametrize(
    ("version", "opset", "before", "behind"),
    [
        ("1.20.1", 19, (0, 0), (0, 0)),
        ("1.20.1", 21, (0, 1), (1, 0)),
        ("1.24.4", 23, (0, 1), (1, 0)),
        ("1.30.0", 23, (0, 0), (0, 0)),
    ],
)
def test_transposes_of_opset_21_stay_beside_a_gemm(version, opset, before, behind):
    """Up to 1.24. They are on the CPU here; from 1.30 on, the Gemm that replaces both is on DirectML."""
    found = [
        placed(f"{FACTORS} {{ {body} }}", version, opset)
        for body in (f"t = {SWAPPED}(x) y = Gemm(t, w)", f"g = Gemm<transA = 1>(x, w) y = {SWAPPED}(g)")
    ]
    assert [each.copies for each in found] == [before, behind]
    assert [each.capture for each in found] == [copies == (0, 0) for copies in (before, behind)]


@pytest.mark.parametrize(
    ("body", "opset", "created"),
    [
        (f"t = {SWAPPED}(x) d = DequantizeLinear(w, s, z) y = MatMul(t, d)", 17, True),
        (f"t = {SWAPPED}(x) d = DequantizeLinear(w, s, z) y = MatMul(t, d)", 21, False),
        (f"t = {SWAPPED}(x) d = DequantizeLinear(w, s, z) e = Neg(d) y = MatMul(t, e)", 21, True),
        (f"n = {SWAPPED}(x) t = Neg(n) d = DequantizeLinear(w, s, z) y = MatMul(t, d)", 21, True),
    ],
)
@pytest.mark.parametrize("version", ["1.20.1", "1.24.4", "1.30.0"])
def test_a_fused_product_by_a_matrix_of_a_dequantization(body, opset, created, version):
    """Observed with 1.20.1, 1.22.0, 1.24.4 and 1.30.0."""
    found = placed(f"(float[2,4] x, uint8[2,4] w) => (float[4,4] y) {PAIRED} {{ {body} }}", version, opset)
    assert found.created is created


@pytest.mark.parametrize("version", ["1.20.1", "1.24.4"])
def test_a_concat_whose_equal_is_folded_is_folded(version):
    made = models.text(
        """(float[8] x, float[8] z) => (float[?,?] y, float[?,?] w) <int64[1] k = {2}, int64[1] n = {4}> {
            a = Identity(k) b = Identity(k) c = Concat<axis=0>(a, n) d = Concat<axis=0>(b, n)
            y = Reshape(x, c) w = Reshape(z, d)
        }"""
    )
    session = OnnxSessions(made, lambda *_: None).of(find_runtime(version), SessionOptions())
    assert {node.path: node.answer.outcome for node in session.nodes} == {"c": "CPU", "d": "CPU"}
    assert where(session.placement)["c"] == where(session.placement)["d"] == "folded"


@pytest.mark.parametrize("constant", ["", "k = Constant<value_ints=[1]>()"])
def test_what_a_product_with_1_reads_is_read_before_equal_nodes_are_merged(constant):
    """A Constant is no node when nodes that do nothing are removed: the walk then reaches the second Shape first."""
    initializers = "<int64[1] i = {0}, int64[1] j = {1}" + ("" if constant else ", int64[1] k = {1}") + ">"
    found = placed(
        f"""(float[N,M] x) => (int64[1] y) {initializers} {{
            {constant} s = Shape(x) t = Shape(x) a = Gather(s, i) b = Gather(t, j) p = Mul(a, k) y = Mul(p, b)
        }}"""
    )
    assert (where(found)["s"], where(found)["t"]) == ("folded", "DML")


def test_transposes_are_moved_once():
    """Reshapes that meet as Transposes between them cancel become one, over which no Transpose is moved any more. The
    same Reshapes side by side become one before that. Observed with 1.22.0 to 1.30.0."""
    head = "(float[1,3,4] x) => (float[4,1,3] y) <int64[3] s = {4,1,3}, int64[2] m = {4,3}>"
    start = "t = Transpose<perm=[0,2,1]>(x) r = Reshape(t, m)"
    between = "a = Transpose<perm=[1,0]>(r) b = Transpose<perm=[1,0]>(a) q = Reshape(b, s) y = Relu(q)"
    beside = "q = Reshape(r, s) y = Relu(q)"
    found = where(placed(f"{head} {{ {start} {between} }}"))
    assert found == {"t": "DML", "r": "DML", "a": "folded", "b": "folded", "q": "DML", "y": "DML"}
    assert where(placed(f"{head} {{ {start} {beside} }}")) == {"t": "folded", "r": "folded", "q": "folded", "y": "DML"}


@pytest.mark.parametrize("axis", [-1, 3])
def test_a_softmax_behind_a_product_with_a_transpose_on_the_cpu(axis):
    """The Transpose of opset 23 has no kernel on DirectML; the product has, and takes both. Observed with 1.24.4."""
    found = placed(
        f"""(float[1,2,6,4] x, float[1,2,6,4] y) => (float[1,2,6,6] o) {{
            t = Transpose<perm = [0,1,3,2]>(y) m = MatMul(x, t) o = Softmax<axis = {axis}>(m)
        }}""",
        opset=23,
    )
    assert (found.running, where(found)["o"]) == (1, "DML")


def test_a_factor_that_is_a_running_sum_of_sizes():
    """CumSum is folded as other operators on sizes are: the factor is 1. Observed with 1.24.4."""
    found = placed(
        """(float[1,6,8] x) => (float[1,6,8] y) <int64 zero = {0}> {
            a = Neg(x) s = Shape(a) c = CumSum(s, zero) g = Gather(c, zero) f = Cast<to = 1>(g)
            m = Mul(a, f) y = Relu(m)
        }"""
    )
    assert where(found)["m"] == "folded"


@pytest.mark.parametrize("version", ["1.20.1", "1.24.4", "1.30.0"])
def test_a_gemm_between_quantizations(version):
    """DirectML has no operator for it: the Gemm and its quantizations stay. Observed."""
    found = placed(
        """(uint8[2,4] x) => (uint8[2,1] y) <float s = {0.5}, uint8 z = {0}, uint8[4,1] w = {1,2,3,4}> {
            a = DequantizeLinear(x, s, z) b = DequantizeLinear(w, s, z) g = Gemm(a, b) y = QuantizeLinear(g, s, z)
        }""",
        version,
        opset=14,
    )
    assert where(found)["g"] == "DML"
