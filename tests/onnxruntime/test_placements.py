"""Where every node of a model goes, and what follows of it: small models in onnx's text form."""

from __future__ import annotations

import onnx
import pytest

import dmlsplit as dml
from dmlsplit.formats.sessions import Inputs
from dmlsplit.onnxruntime.graph_build import optimized
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.placing import placed as placed_in
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.rules import RULES
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.model_placements import Provider, Why, changes
from tests import models


def placed(text, version="1.24.4", opset=17):
    model = models.text(text, opset, domains=["com.microsoft"])
    onnx.checker.check_model(model)
    return OnnxSessions(model, lambda *_: None).of(find_runtime(version), SessionOptions()).placement


def where(found):
    return {node.path: str(node.provider) for node in found.nodes.values()}


def reason(found, path):
    (node,) = [node for node in found.nodes.values() if node.path == path]
    return node.why


SMALL = "(float[2,6] x) => (float[2,6] y) { a = Relu(x) y = Sigmoid(a) }"
SIZES = """(float[N,6] x) => (float[M] y) {
    s = Shape(x) one = Constant<value_ints=[1]>() n = Add(s, one) m = ReduceProd<keepdims=1>(n) y = ConstantOfShape(m)
}"""


def test_all_on_directml():
    found = placed(SMALL)
    assert where(found) == {"a": "DML", "y": "DML"}
    assert [size.text for size in found.graphs] == ["2"]
    assert [node.graph for node in found.nodes.values()] == [0, 0]
    assert (found.created, found.copies, found.capture, found.on_dml) == (True, (0, 0), True, 1.0)


def test_nodes_that_compute_with_sizes():
    found = placed(SIZES)
    assert where(found) == {"s": "DML", "n": "CPU", "m": "CPU", "y": "DML"}
    assert reason(found, "n") is Why.SIZES
    assert found.copies == (0, 0)


@pytest.mark.parametrize("version", ["1.24.4", "1.20.1"])
def test_the_length_of_a_sequence_is_a_size(version):
    found = placed(
        """(seq(float[2,3]) s, float[3,2,3] x) => (float[?,?,?] y) {
            n = SequenceLength(s) f = Cast<to=1>(n) g = Sqrt(f)
            v = Scan<num_scan_inputs=1, body = b (float[2,3] i) => (float[2,3] o) { h = Mul(i, g) o = Neg(h) }>(x)
            y = Relu(v)
        }""",
        version,
    )
    assert where(found) == {
        **dict.fromkeys(("n", "Scan.body/h", "Scan.body/o"), "DML"),
        **dict.fromkeys(("f", "g", "v", "y"), "CPU"),
    }
    assert reason(found, "y") is Why.SIZES


NOTHING_READS = {
    "the type that a Cast stands for": ("float8e5m2[2] x, float[2] s", 23, "n = Neg(s) r = CastLike(x, n)", "n"),
    "a type that is read": ("float8e5m2[2] x, float[2] s", 23, "n = Neg(s) c = CastLike(x, n) r = Add(n, c)", None),
    "the type of a CastLike with a kernel": ("float16[2] x, float[2] s", 19, "n = Neg(s) r = CastLike(x, n)", None),
    "a Bernoulli": ("float[2] x, float[2] s", 17, "d = Bernoulli(x) r = Neg(s)", "d"),
    "a Bernoulli of open sizes": ("float[N] x, float[2] s", 17, "d = Bernoulli(x) r = Neg(s)", None),
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
    assert created or (found.failure.node == "c" and ", a Not that" in found.failure.message)


def test_a_where_in_a_branch_that_reads_a_not_twice():
    found = placed(
        """(bool k, bool[2,3] a, bool[2,3] b) => (bool[2,3] y) {
            y = If(k) <then_branch = t () => (bool[2,3] p) { n = Not(a) p = Where(n, n, b) },
                       else_branch = e () => (bool[2,3] q) { q = And(a, b) }> }""",
        opset=12,
    )
    assert found.created is True


@pytest.mark.parametrize(("rows", "provider"), [("2", "DML"), ("N", "CPU")])
def test_a_folded_shape_takes_no_strings_into_a_branch(rows, provider):
    found = placed(
        f"""(bool c, string[{rows},3] s, float[2,3] x) => (float[2,3] y, int64[?] z) {{
            y, z = If(c) <then_branch = t () => (float[2,3] a, int64[?] n) {{ n = Shape(s) a = Neg(x) }},
                          else_branch = e () => (float[2,3] b, int64[?] m) {{ b = Abs(x) m = Shape(x) }}>
        }}""",
        opset=19,
    )
    assert where(found)["y"] == provider


def test_a_folded_shape_takes_no_sizes_into_a_body():
    found = placed(
        """(float16[N,3] s, float[3,2,3] x) => (float[?,?,?] y, float q) {
            m = Size(s) f = Cast<to=1>(m) q = Sqrt(f)
            v, w = Scan<num_scan_inputs=1, body = b (float[2,3] i) => (float[2,3] o, int64[?] h) {
                h = Shape(f) o = Neg(i)
            }>(x)
            y = Relu(v)
        }"""
    )
    assert (where(found)["q"], where(found)["y"]) == ("CPU", "DML")
    assert found.copies == (0, 1)


BODY = "{ h = Neg(p) s = Shape(h) n = Abs(s) r = Reshape(h, n) e = Exp(r) a = Tanh(e) "
DEAD = BODY.replace("Tanh(e)", "Tanh(p)")
AROUND = {
    "If": """(bool c, float[2,3] x) => (float[?,?] y) { p = Relu(x)
        y = If(c) <then_branch = t () => (float[?,?] a) %s }, else_branch = e () => (float[?,?] b) { b = Abs(x) }> }""",
    "Loop": """(int64 m, bool c, float[2,3] x) => (float[?,?] y) {
        y = Loop(m, c, x) <
            body = b (int64 i, bool d, float[2,3] p) => (bool g, float[?,?] a) %s g = Identity(d) }
        > }""",
    "Scan": """(float[5,2,3] x) => (float[?,?,?] y) {
        y = Scan(x) <num_scan_inputs = 1, body = b (float[2,3] p) => (float[?,?] a) %s }> }""",
}


@pytest.mark.parametrize("op", AROUND)
def test_sizes_that_are_computed_in_a_graph_of_a_node(op):
    """They are folded there as in the model's graph; the session fails where nothing reads what is computed."""
    found = placed(AROUND[op] % BODY)
    assert "4" in [size.text for size in found.graphs]
    assert found.created is True
    assert placed(AROUND[op] % DEAD).created is False


@pytest.mark.parametrize(
    ("text", "opset", "why", "newest"),
    [
        ("(float[4,4] x) => (float[?,?] y) { y = Round(x) }", 22, Why.OPSET, 11),
        ("(float[4,4] x) => (float y) { y = Det(x) }", 17, Why.OPERATOR, None),
        (
            """(float[1,1,4,4] x) => (float[?,?,?,?] y) {
                k = Constant<value_floats=[1.0,1.0,2.0,2.0]>() y = Resize<mode="cubic">(x, , k)
            }""",
            17,
            Why.ATTRIBUTES,
            None,
        ),
    ],
)
def test_why_a_node_is_on_the_cpu(text, opset, why, newest):
    found = placed(text, opset=opset)
    (node,) = [node for node in found.nodes.values() if node.path == "y"]
    assert (node.provider, node.why, node.newest) == (Provider.CPU, why, newest)


def test_types_without_a_kernel():
    found = placed("(double[2] x) => (double[2] y) { y = Relu(x) }")
    assert [(node.provider, node.why) for node in found.nodes.values()] == [(Provider.CPU, Why.TYPES)]


def test_what_no_provider_has_fails_the_session():
    found = placed("(int8[2] x) => (int8[2] y) { y = Sin(x) }")
    assert found.created is not True


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


def test_as_many_layers_as_a_transformer_has():
    """Each reads the sizes of the one before, which a further round of inference finds."""
    layers = "".join(
        f"s{i} = Shape(r{i}) l{i} = Gather(s{i}, z) u{i} = Unsqueeze(l{i}, o) "
        f"c{i} = Concat<axis=0>(u{i}, d) q{i} = Reshape(r{i}, c{i}) r{i + 1} = Relu(q{i}) "
        for i in range(48)
    )
    found = placed(
        f"(float[4,6] x) => (float[?,?] y) <int64 z = {{0}}, int64[1] o = {{0}}, int64[1] d = {{6}}> {{"
        f"r0 = Neg(x) {layers} y = Abs(r48) }}"
    )
    assert set(where(found).values()) == {"DML", "folded"}
    assert [size.text for size in found.graphs] == [str(1 + 2 * 48 + 1)]


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


def test_copies_of_what_graphs_inside_nodes_read():
    """A graph inside a node copies what it reads from outside, where nodes on both sides in it read that."""
    found = placed(
        """(bool c, float[2,3] x) => (float[2,3] y) {
            a = Relu(x)
            y = If(c) <
                then_branch = t () => (float[2,3] b) { r = Round(a) s = Abs(a) b = Add(r, s) },
                else_branch = e () => (float[2,3] d) { d = Round(a) }
            >
        }""",
        opset=22,
    )
    assert where(found) | {"y": "CPU", "a": "DML"} == where(found)
    assert found.copies == (0, 2)


@pytest.mark.parametrize(("data_type", "provider"), [("int64", "DML"), ("bfloat16", "CPU"), ("string", "CPU")])
def test_what_the_branches_of_an_if_read_decides(data_type, provider):
    found = placed(
        f"""(bool c, float[2] x, {data_type}[N] z) => (float[2] y) {{
            y = If(c) <
                then_branch = t () => (float[2] a) {{ s = Shape(z) a = Relu(x) }},
                else_branch = e () => (float[2] b) {{ b = Abs(x) }}
            >
        }}"""
    )
    assert where(found)["y"] == provider
    assert reason(found, "y") is (Why.TYPES if provider == "CPU" else None)


@pytest.mark.parametrize(
    ("data_type", "size", "version", "session"),
    [
        ("double", 15, "1.24.4", True),
        ("double", 16, "1.24.4", False),
        ("float", 32, "1.24.4", True),
        ("double", 16, "1.23.2", True),
        ("double", 16, "1.30.0", True),
    ],
)
def test_a_constant_of_a_taken_branch(data_type, size, version, session):
    """It is lost from 128 bytes on, in 1.24.4, where a node outside of fused graphs reads it: that of DOUBLE."""
    found = placed(
        f"""({data_type}[{size}] x) => ({data_type}[{size}] y) <bool c = {{1}}> {{
            y = If(c) <
                then_branch = t () => ({data_type}[{size}] a) {{
                    n = Constant<value_ints = [{size}]>()
                    k = ConstantOfShape<value = {data_type}[1] {{1}}>(n)
                    a = Add(x, k)
                }},
                else_branch = e () => ({data_type}[{size}] b) {{ b = Abs(x) }}
            >
        }}""",
        version,
    )
    assert found.created is session


NINE = "float[2,2,2,2,2,2,3,2,4]"


@pytest.mark.parametrize(
    ("text", "created"),
    [
        (f"({NINE} x) => ({NINE} y) {{ y = Relu(x) }}", False),
        (f"(float[N,2,2,2,2,2,3,2,4] x) => ({NINE} y) {{ y = Relu(x) }}", True),
        (f"(float[N,2,2,2,2,2,3,2,4] x, {NINE} z) => ({NINE} y) {{ y = Add(x, z) }}", True),
        (f"({NINE} x, int64[9] s) => (float[?,?,?,?,?,?,?,?,?] y) {{ y = Expand(x, s) }}", True),
    ],
    ids=["static", "an open input", "one open input", "a computed size"],
)
def test_nine_dimensions_fail_where_all_sizes_are_static(text, created):
    assert placed(text).created is created


def test_a_graph_in_a_node_that_is_folded_is_not_compiled():
    """Nothing reads what the body computes first, which fails a session that has it; a Shape of its Scan is all that
    is read."""
    scan = """(float[5,2,3] x) => (float[?,?,?] y) {
        z = Scan(x) <num_scan_inputs = 1, body = b (float[2,3] p) => (float[2,3] a) { h = Exp(p) a = Abs(p) }>
        %s }"""
    found = placed(scan % "s = Shape(z) y = ConstantOfShape(s)")
    assert (found.created, found.graphs, found.capture) == (True, (), True)
    assert set(where(found).values()) == {"folded"}
    assert placed(scan % "y = Neg(z)").created is False


def test_what_only_a_taken_branch_reads_the_sizes_of_stays():
    found = placed(
        """(float[2,3] x) => (float[?,?] y) <bool c = {1}> {
            a = Exp(x)
            y = If(c) <
                then_branch = t () => (float[?,?] b) { s = Shape(a) b = ConstantOfShape(s) },
                else_branch = e () => (float[?,?] d) { d = Abs(x) }
            >
        }""",
        "1.20.1",
    )
    assert where(found)["a"] == "DML"


def test_what_a_taken_branch_computes_for_a_folded_shape():
    """It stays in the model's own graph, and fails the session; in a graph inside a node it is taken out."""
    body = """{
        a = If(c) <
            then_branch = t () => (float[3] p) { p = Exp(s) },
            else_branch = e () => (float[3] q) { q = Abs(s) }
        >
        z = Shape(a) k = ConstantOfShape<value = float[1] {2}>(z) r = Mul(s, k)
    }"""
    inside = placed(
        f"(float[2,3] x) => (float[2,3] y) <bool c = {{1}}> {{ "
        f"y = Scan<num_scan_inputs = 1, body = b (float[3] s) => (float[3] r) {body}>(x) }}"
    )
    assert (inside.created, where(inside)["Scan.body/If.then_branch/Exp"]) == (True, "folded")
    own = placed(f"(float[3] s) => (float[3] r) <bool c = {{1}}> {body}")
    assert (own.created, where(own)["If.then_branch/Exp"]) == (False, "DML")


SHAPED = "s = Shape(a) z = ConstantOfShape(s)"
TAKES = "y = If(c) <then_branch = t () => (float[2,3] p) { %s }, else_branch = e () => (float[2,3] q) { %s }>"


@pytest.mark.parametrize(
    ("branch", "other", "order", "created", "is_left"),
    [
        ("p = Abs(a)", "q = Neg(x)", "yz", True, True),
        ("p = Abs(a)", "q = Neg(x)", "zy", False, False),
        ("k = Shape(a) o = ConstantOfShape(k) p = Add(o, x)", "q = Neg(x)", "yz", False, True),
        ("k = Shape(a) o = ConstantOfShape(k) p = Add(o, x)", "q = Neg(x)", "zy", True, False),
        ("p = Abs(x)", "q = Neg(a)", "yz", False, True),
        ("p = Abs(x)", "q = Neg(a)", "zy", True, False),
    ],
)
def test_what_a_taken_branch_reads_where_its_shape_is_folded(branch, other, order, created, is_left):
    """The last output's nodes are visited first. A tensor is kept for an If that is not visited yet, even one whose
    branch does not read it, and is removed where the If is replaced before: its branch then reads what is gone.
    Observed in seven versions."""
    parts = {"y": TAKES % (branch, other), "z": SHAPED}
    outputs = ", ".join(f"float[2,3] {name}" for name in order)
    body = " ".join(parts[name] for name in order)
    found = placed(f"(float[2,3] x) => ({outputs}) <bool c = {{1}}> {{ a = Exp(x) {body} }}")
    assert (found.created, where(found)["a"]) == (created, "DML" if is_left else "folded")


@pytest.mark.parametrize(("size", "created"), [("N", True), ("2", False)])
def test_a_shape_that_is_known_only_behind_the_branches(size, created):
    """It is folded after the branch has taken its If's place, with what the branch computes for it; one that is known
    before leaves that, and nothing reads it."""
    found = placed(
        f"""(float[2,6] x, float[{size},6] z) => (int64[?] u, float[2,6] y) <bool t = {{1}}> {{
            g = Exp(x)
            w = If(t) <
                then_branch = b () => (float[?,?] p) {{ [a] p = Abs(g) }},
                else_branch = e () => (float[?,?] q) {{ q = Abs(z) }}
            >
            s = Shape(w) u = Abs(s) y = Relu(x) }}"""
    )
    assert found.created is created
    assert where(found)["If.then_branch/a"] == ("folded" if created else "DML")


def test_a_dequantize_linear_that_a_taken_branch_reads():
    """Each reader has one of its own: the Shape takes no other's along."""
    found = placed(
        f"""(int8[2,3] i, float k) => (float[2,3] z, float[2,3] y) <bool c = {{1}}> {{
            a = DequantizeLinear(i, k) {SHAPED}
            {TAKES.replace("x", "a") % ("p = Abs(a)", "q = Neg(a)")} }}"""
    )
    assert (found.created, where(found)["a"]) == (True, "DML")


@pytest.mark.parametrize(("more", "place"), [("u = ReduceMax(a)", "CPU"), ("", "folded")])
def test_a_dropout_that_a_graph_inside_a_node_reads(more, place):
    """It stays where that graph reads its input, too, even one that the node reads as well."""
    found = placed(
        f"""(float[2,3] x) => (float[2,3] y) {{ a = Neg(x) d = Dropout(a)
            y = Scan<
                num_scan_inputs = 1, body = b (float[3] s) => (float[3] r) {{ {more} t = ReduceMax(d) r = Mul(s, s) }}
            >(a) }}"""
    )
    assert where(found)["d"] == place


@pytest.mark.parametrize("version", ["1.20.1", "1.24.4"])
def test_a_function_in_a_function_copies(version):
    """Mish is made of a Softplus, which is made of operators on both providers."""
    found = placed("(double[N,3] x) => (double[N,3] y) { z = Abs(x) w = Mish(z) y = Neg(w) }", version, 18)
    assert found.copies == (1, 1)


def test_a_type_that_was_seen_with_no_operator():
    found = placed(
        "(int64[2] x) => (float[?,?] y) { a = ConstantOfShape<value = float8e4m3fn[1] v {56}>(x) y = Cast<to=1>(a) }",
        opset=20,
    )
    assert (found.created, where(found)["a"]) == (None, "unknown")


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


@pytest.mark.parametrize(("version", "place"), [("1.19.2", "CPU"), ("1.20.1", "DML")])
@pytest.mark.parametrize("source", ["", "q = SequenceConstruct(x, x)"])
def test_an_if_that_reads_a_sequence(source, version, place):
    given = "" if source else "seq(float[2,3]) q, "
    found = placed(
        f"""(bool c, {given}int64 i, float[2,3] x) => (float[2,3] y) {{ {source}
            y = If(c) <
                then_branch = t () => (float[2,3] a) {{ a = SequenceAt(q, i) }},
                else_branch = e () => (float[2,3] b) {{ b = Abs(x) }}
            > }}""",
        version,
    )
    assert where(found)["y"] == place


def test_an_if_of_a_type_without_tensors_in_directml():
    branch = "{} () => (bfloat16[2,3] a) {{ a = Identity(w) }}"
    found = placed(
        f"""(bool c, bfloat16[2,3] w) => (bfloat16[2,3] y) {{
            y = If(c) <then_branch = {branch.format("t")}, else_branch = {branch.format("e")}> }}""",
        opset=13,
    )
    assert where(found)["y"] == "CPU"


@pytest.mark.parametrize(("given", "created"), [("float16", True), ("float", False)])
def test_what_the_cpu_computes_in_float_alone(given, created):
    """Tensors of FLOAT16 are cast around it, if an input is one."""
    found = placed(f"({given}[2,3] x) => (float16[2,3] y) {{ y = RandomUniformLike<dtype = 10>(x) }}", opset=21)
    assert (found.created, where(found)["y"]) == (created, "CPU")


def test_what_a_graph_inside_a_node_of_a_taken_branch_reads_is_not_missed():
    branches = (
        "then_branch = g () => (float[2,3] v) { v = Abs(a) }, else_branch = h () => (float[2,3] w) { w = Neg(x) }"
    )
    branch = f"p = If(k) <{branches}>"
    taken = TAKES % (branch, "q = Neg(x)")
    found = placed(
        f"(float[2,3] x, bool k) => (float[2,3] z, float[2,3] y) <bool c = {{1}}> {{ a = Exp(x) {SHAPED} {taken} }}"
    )
    assert (found.created, where(found)["a"]) == (True, "folded")


def test_what_reads_a_removed_tensor_is_named():
    found = placed(
        f"(float[2,3] x) => (float[2,3] z, float[2,3] y) <bool c = {{1}}> {{ a = Exp(x) {SHAPED} "
        f"{TAKES % ('p = Abs(a)', 'q = Neg(x)')} }}"
    )
    assert found.failure.node == "If.then_branch/Abs"


def test_twins_are_merged_before_a_shape_is_folded():
    """Of two Shapes, the one that is visited first stays: the If behind it still reads the tensor."""
    found = placed(
        f"""(float[2,3] x) => (float[2,3] w, float[2,3] y, float[2,3] z) <bool c = {{1}}> {{
            a = Exp(x) r = Shape(a) w = ConstantOfShape<value = float[1] {{2}}>(r)
            {TAKES % ("p = Abs(a)", "q = Neg(x)")} {SHAPED} }}"""
    )
    assert (found.created, where(found)["a"]) == (True, "DML")


def test_what_only_a_folded_shape_in_a_branch_reads_is_read_no_more():
    """Of two equal nodes the one that is visited first stays: once its Shape is folded the other If does not lead to
    the twin any more, which was equal to it only behind the first If."""
    found = placed(
        """(float[2,3] x, bool c) => (float[2,3] u, float[2,3] y) <bool t = {1}> {
            w = If(t) <
                then_branch = t () => (float[2,3] p) { p = Identity(x) },
                else_branch = e () => (float[2,3] q) { q = Exp(x) }
            >
            b = Neg(w) a = Neg(x) u = Abs(a)
            y = If(c) <
                then_branch = t () => (float[2,3] p) { s = Shape(b) p = ConstantOfShape(s) },
                else_branch = e () => (float[2,3] q) { q = Exp(x) }
            > }"""
    )
    assert (where(found)["b"], where(found)["a"]) == ("folded", "DML")


def test_what_a_body_in_a_taken_branch_computes_for_a_folded_shape():
    """It is no tensor that the If reads from around it."""
    found = placed(
        """(float[2,3] x) => (float[2,3] y) <bool t = {1}> {
            y = If(t) <
                then_branch = t () => (float[2,3] p) {
                    p = Scan<num_scan_inputs = 1, body = b (float[3] s) => (float[3] r) {
                        a = Exp(s) z = Shape(a) k = ConstantOfShape<value = float[1] {2}>(z) r = Mul(s, k)
                    }>(x)
                },
                else_branch = e () => (float[2,3] q) { q = Exp(x) }
            > }"""
    )
    assert where(found)["If.then_branch/Scan.body/a"] == "folded"


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


@pytest.mark.parametrize(("order", "place"), [("zr", "folded"), ("rz", "DML")])
def test_in_a_graph_of_a_node_an_output_of_a_branch_has_its_first_reader_alone(order, place):
    """Where that is a Shape, what the branch computes is removed, whatever else reads it."""
    parts = {"z": "z = Shape(a) k = ConstantOfShape<value = float[1] {2}>(z)", "r": "m = Sigmoid(a)"}
    body = " ".join(parts[name] for name in order)
    choice = TAKES.replace("y = ", "a = ") % ("p = Exp(w)", "q = Abs(w)")
    found = placed(
        f"""(float[5,2,3] x, float[2,3] w) => (float[5,2,3] y) {{
            y = Scan<num_scan_inputs = 1, body = b (float[2,3] s) => (float[2,3] r) <bool c = {{1}}> {{
                {choice} {body} r = Mul(m, k) }}>(x) }}"""
    )
    assert (found.created, where(found)["Scan.body/If.then_branch/Exp"]) == (True, place)


def test_shapes_of_a_branch_and_around_it_are_not_merged():
    """A Shape around the branch, of sizes that one in the branch has too, takes along what computes its tensor."""
    found = placed(
        """(float[5,2,3] x, float[2,3] w) => (float[5,2,3] y) {
            y = Scan<num_scan_inputs = 1, body = b (float[2,3] s) => (float[2,3] r) <bool c = {1}> {
                a, g = If(c) <
                    then_branch = t () =>
                        (float[2,3] p, float[?,?] h) { p = Exp(w) k = Shape(s) h = ConstantOfShape(k) },
                    else_branch = e () => (float[2,3] q, float[?,?] m) { q = Abs(w) m = Neg(s) }
                >
                z = Shape(a) o = ConstantOfShape<value = float[1] {2}>(z) n = Mul(s, o) r = Add(n, g) }>(x) }""",
        "1.18.0",
    )
    assert (found.created, where(found)["Scan.body/If.then_branch/Exp"]) == (True, "folded")


def test_what_only_a_graph_inside_a_removed_node_reads_stays():
    """The session fails: nothing reads what its fused graph computes."""
    found = placed(
        """(float[2,3] x, float[3] w) => (float[2,3] y) {
            a = Exp(w) f = Abs(a)
            d = Scan<num_scan_inputs = 1, body = b (float[3] s) => (float[3] r) { r = Add(s, f) }>(x)
            z = Shape(d) k = ConstantOfShape<value = float[1] {2}>(z) y = Mul(x, k) }"""
    )
    assert {name: where(found)[name] for name in "afd"} == {"a": "DML", "f": "DML", "d": "folded"}
    assert found.created is False


@pytest.mark.parametrize(("computed", "is_static"), [("Identity", False), ("Abs", True)])
@pytest.mark.parametrize("choice", [False, True])
def test_what_is_declared_of_an_identity_is_lost_with_it(computed, is_static, choice):
    v = f"v = {computed}(w)"
    if choice:
        v = TAKES.replace("y = ", "v = ") % (f"p = {computed}(w)", "q = Neg(x)")
    found = placed(
        f"(float[N,3] x) => (float[2,3] y) <bool c = {{1}}, float[2,3] v> {{ w = Neg(x) {v} y = Sigmoid(v) }}"
    )
    assert [size.text for size in found.graphs] == ["1"] * is_static


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
        ("{ " + LOOP, ["Loop.body/e", "Loop.body/f"], ["CPU", "CPU"]),
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
            ["e", "If.then_branch/f"],
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


@pytest.mark.parametrize(
    ("then", "other", "is_static"),
    [
        ("float[2,3]", "float[2,3]", True),
        ("float[2,3]", "float[2,?]", True),
        ("float[2,3]", "float[?,?]", False),
        ("float[?,?]", "float[2,3]", False),
        ("float[2,3]", "float[4,3]", False),
    ],
)
@pytest.mark.parametrize("output", ["", "float[?,?] y, "])
def test_what_both_branches_declare_stays_where_one_takes_the_place(then, other, is_static, output):
    """One dimension of three elements stays so: the second size of an Expand follows from the file."""
    found = placed(
        f"""(float[1,3] x, int64[2] q, int64[2] r) => ({output}float[?,?] z, int64[2] n) <bool c = {{1}}> {{
            y = If(c) <
                then_branch = t () => ({then} a) {{ a = Expand(x, q) }},
                else_branch = e () => ({other} b) {{ b = Expand(x, r) }}
            >
            z = Relu(y) s = Shape(y) n = Abs(s)
        }}"""
    )
    assert [size.text for size in found.graphs] == ["1"] * is_static
    assert where(found)["n"] == ("folded" if is_static else "CPU")


def test_what_one_branch_gives_another_stays_where_its_shape_is_folded():
    """Each is folded before it takes its If's place, and neither takes what is around it along."""
    branches = "<then_branch = t () => (float[2,3] %s) { %s }, else_branch = e () => (float[2,3] %s) { %s }>"
    found = placed(
        f"""(float[2,3] x) => (float[2,3] z) <bool c = {{1}}> {{
            a = Log(x)
            y = If(c) {branches % ("b", "b = Exp(a)", "d", "d = Tanh(a)")}
            z = If(c) {branches % ("f", "s = Shape(y) f = ConstantOfShape(s)", "g", "g = Abs(x)")}
        }}""",
        "1.20.1",
    )
    assert where(found) | {"a": "DML", "If.then_branch/Exp": "DML"} == where(found)
    assert found.created is False


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


def test_a_constant_of_a_taken_branch_in_a_graph_of_a_node():
    """Its sizes are those of a Shape, which is folded there."""
    found = placed(
        """(int64 m, bool d, float[2,3,4,5] x) => (float[2,3,4,5] y, float[?,?,?,?,?] z) {
            y, z = Loop(m, d, x) <body = l (int64 i, bool g, float[2,3,4,5] p) =>
                (bool h, float[2,3,4,5] q, float[?,?,?,?] r) <bool c = {1}> {
                r = If(c) <
                    then_branch = t () => (float[?,?,?,?] a) { s = Shape(p) a = ConstantOfShape(s) },
                    else_branch = e () => (float[?,?,?,?] b) { b = Abs(p) }
                >
                q = Relu(p) h = Identity(g)
            }>
        }"""
    )
    assert found.created is False
    assert "128 bytes or more" in str(found.failure)


@pytest.mark.parametrize(("opset", "copies"), [(22, (0, 0)), (23, (1, 2))])
def test_copies_around_nodes_that_optimization_makes(opset, copies):
    """A product of three dimensions becomes a Gemm between two Reshapes, which are on the CPU from opset 23 on."""
    found = placed(
        """(float[2,3,4] x) => (float[2,3,5] y) <float[4,5] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1},
            float[5] b = {1,1,1,1,1}> { m = MatMul(x, w) a = Add(m, b) y = Sigmoid(a) }""",
        opset=opset,
    )
    assert found.copies == copies


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


def test_the_nodes_of_a_branch_stay_where_a_node_around_it_is_folded():
    """Nothing reads what the Abs computes: the session is not made."""
    found = placed(
        """(float[2,3] x) => (float[?,?] y) <bool c = {1}, float one = {1.0}> {
            [i] b = If(c) <then_branch = t () => (float[2,3] r) { [a] r = Abs(x) },
                       else_branch = e () => (float[2,3] s) { s = Neg(x) }>
            n = Shape(b) y = Expand(one, n) }"""
    )
    assert where(found)["i.then_branch/a"] == "DML"
    assert found.created is False


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


def test_what_stands_for_a_node_prevents_capture():
    found = placed("(float[4] x) => (float[4] y) { a = Relu(x) y = Bernoulli(a) }")
    assert (
        found.capture_prevented_by
        == "y has no kernel, and what stands for it copies tensors between the CPU and the device"
    )


def test_control_flow_prevents_capture():
    found = placed(
        """(bool c, float[2] x) => (float[2] y) {
            y = If(c) <
                then_branch = t () => (float[2] a) { a = Relu(x) }, else_branch = e () => (float[2] b) { b = Abs(x) }
            >
        }"""
    )
    assert found.capture_prevented_by == "y is control flow"


@pytest.mark.parametrize(("rank", "session"), [(4, True), (5, False)])
def test_a_rank_that_fails_the_session(rank, session):
    sizes = ",".join(["1"] * (rank - 2))
    found = placed(f"(float[{sizes},2,3] x, float[{sizes},3,4] z) => (float[{sizes},2,4] y) {{ y = MatMul(x, z) }}")
    assert (found.created, (found.failure or ("",))[0]) == (session, "" if session else "y")


@pytest.mark.parametrize(("behind", "session"), [("Tanh(v)", False), ("If(c) <{}, {}>", True)])
def test_a_rank_that_only_fused_graphs_refuse(behind, session):
    """A graph with an If inside has no fused graphs; a Trilu by itself takes any rank."""
    one = "{} () => (float[2,3] {}) {{ {} = {}(v) }}"
    behind = behind.format(
        one.format("then_branch = f", "n", "n", "Neg"), one.format("else_branch = g", "o", "o", "Abs")
    )
    found = placed(
        f"""(bool c, float[2,2,2,3,4] w, float[2,3] x) => (float[2,3] y) {{
            v = Round(x) y = If(c) <
                then_branch = t () => (float[2,3] a) {{ a = Identity(v) }},
                else_branch = e () => (float[2,3] b) {{ q = Trilu(w) b = {behind} }}
            >
        }}""",
        opset=18,
    )
    assert (found.created, (found.failure or ("",))[0]) == (session, "" if session else "If.else_branch/q")


@pytest.mark.parametrize(("sizes", "session"), [((1, 1), True), ((1, 2), True), ((2, 2), False)])
def test_a_resize_leaves_sizes_of_1_out(sizes, session):
    batch, channels = sizes
    found = placed(
        f"""(float[{batch},{channels},3,4,5] x) => (float[?,?,?,?,?] y) {{
            k = Constant<value_floats=[1.0,1.0,2.0,2.0,2.0]>() y = Resize(x, , k)
        }}"""
    )
    assert (found.created, (found.failure or ("",))[0]) == (session, "" if session else "y")


def test_an_opset_that_is_not_loaded():
    found = placed(SMALL, "1.20.1", opset=22)
    assert (found.created, found.failure) == (False, ("", "the model has opset 22, 1.20.1 loads 21"))
    assert (found.nodes, found.on_dml, found.capture) == ({}, 0.0, None)


def test_a_version_that_was_not_observed():
    found = placed(SMALL, "1.16.3")
    assert (found.created, found.failure) == (None, ("", "what 1.16.3 does was not observed"))
    assert {node.provider for node in found.nodes.values()} == {Provider.UNKNOWN}


def test_an_activation_is_not_fused_into_a_node_on_the_cpu():
    """Were it fused into the Conv, there would be one graph: of the Relu alone."""
    found = placed(
        "(float[1,4,8,8] x, float[4,4,1,1] w) => (float[1,4,8,8] y) { a = Relu(x) c = Conv(a, w) y = Sigmoid(c) }",
        opset=22,
    )
    assert [size.text for size in found.graphs] == ["1", "1"]
    assert [node.graph for node in found.nodes.values()] == [0, None, 1]


def test_what_is_not_known_is_said():
    found = placed("(float[2] x) => (float[2] y) { y = com.microsoft.Nonsense(x) }")
    assert [(node.provider, node.why) for node in found.nodes.values()] == [(Provider.UNKNOWN, Why.UNASKED)]
    assert (found.created, found.copies, found.capture) == (None, None, None)


def test_what_an_upgrade_changes():
    text = "(float[4,4] x) => (float[4,4] y) { y = Identity(x) }"
    found = [placed(text, version, opset=21) for version in ("1.20.1", "1.24.4")]
    assert changes(found) == {"y": (Provider.CPU, Provider.DML)}


def test_reasons_are_rules():
    assert {str(why) for why in Why} == {rule.id for rule in RULES.values_of("placement")}
    assert reason(placed("(float[4] x) => (bfloat16[4] y) { a = Cast<to=16>(x) y = Relu(a) }"), "y") in Why


def test_json_has_all():
    assert placed(SMALL).to_dict() == {
        "version": "1.24.4",
        "created": True,
        "failure": None,
        "counts": {"DML": 2, "CPU": 0, "both": 0, "folded": 0, "unknown": 0},
        "outcomes": {"right": 1, "wrong": 0, "refused": 0, "unknown": 0},
        "graphs": [{"least": 2, "most": 2, "outcome": "right", "undecided": []}],
        "copies": {"to_cpu": 0, "from_cpu": 0},
        "capture": True,
        "capture_prevented_by": None,
        "diagnostics": [],
        "nodes": {
            name: {"operator": op, "placement": "DML", "why": None, "version": version, "newest": None, "graph": 0}
            for name, op, version in (("a", "Relu", 14), ("y", "Sigmoid", 13))
        },
    }


def test_the_public_function():
    """As the package's users call it: by names, with sizes of the first Run."""
    model = models.text("(float[n,4] x) => (float[n,4] y) { a = Relu(x) y = Sigmoid(a) }", 17)
    found = dml.onnxruntime.session(model, "1.24.4", dims={"n": 2})
    assert (found.created, found.failure, found.capture_prevented_by) == (True, None, None)
    assert {name: str(node) for name, node in found.nodes.items()} == {"a": "DML", "y": "DML"}
    assert {node.graph for node in found.nodes.values()} == {None}
    fixed = dml.onnxruntime.session(model, "1.24.4", free_dimensions={"n": 2})
    assert {node.graph for node in fixed.nodes.values()} == {0}
    with pytest.raises(dml.InputError, match="m"):
        dml.onnxruntime.session(model, "1.24.4", dims={"m": 2})


TWO = "(float[1,4,4,8] x, float[1,4,4,8] y) => (float[1,8,4,8] a, float[1,4,4,8] b)"
HALVES = "v = Tanh(x) p, q = Split<axis=1>(v) a = Sigmoid(p)"
OUTCOMES = {
    "right": (f"{TWO} {{ v = Tanh(x) a = Concat<axis=1>(v, y) b = Neg(v) }}", []),
    "wrong": (f"{TWO} {{ v = Tanh(x) j = Concat<axis=1>(v, y) a = Relu(j) b = Neg(v) }}", []),
    "refused": (f"(float[1,4,4,8] x) => (float[1,2,4,8] a) {{ {HALVES} }}", []),
    "unknown": (f"{TWO} {{ v = Hardmax(x) j = Concat<axis=1>(v, y) a = Relu(j) b = Neg(v) }}", ["Hardmax"]),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_comes_of_each_fused_graph(outcome):
    text, undecided = OUTCOMES[outcome]
    found = placed(text, opset=13).to_dict()
    assert [(graph["outcome"], graph["undecided"]) for graph in found["graphs"]] == [(outcome, undecided)]
    assert found["outcomes"] == {"right": 0, "wrong": 0, "refused": 0, "unknown": 0} | {outcome: 1}


def session_graph(text, version):
    model = OnnxSessions(models.text(text, 17), lambda *_: None).model(Inputs())
    return SessionGraph.of_model(model, find_runtime(version), SessionOptions())[-1]


def optimized_for(text):
    """The graph after all passes, of a version that puts Reshapes around a Gemm and of one that does not."""
    model = OnnxSessions(models.text(text, 17), lambda *_: None).model(Inputs())
    runtimes = map(find_runtime, ("1.24.4", "1.20.0"))
    return [optimized(SessionGraph.of_model(model, runtime, SessionOptions())[-1]) for runtime in runtimes]


def test_sessions_share_the_passes_that_find_no_product():
    first, second = optimized_for(SMALL)
    assert first is second
    product = """(float[2,3,4] x, float[4,5] w, float[5] b) => (float[2,3,5] y) {
        a = MatMul(x, w) y = Add(a, b)
    }"""
    first, second = optimized_for(product)
    assert [node.op_type for node in first.walk()] != [node.op_type for node in second.walk()]


def test_a_node_is_placed_once_whatever_becomes_of_the_graph():
    graph = session_graph(SMALL, "1.24.4")
    for one, other in zip(graph.order, optimized(graph).walk(), strict=True):
        assert one is not other
        assert placed_in(graph, one) is placed_in(graph, other)


@pytest.mark.parametrize("op", ["Elu", "Softplus", "Mish"])
@pytest.mark.parametrize(("opset", "created"), [(18, True), (19, False)])
def test_a_body_counts_up_to_the_opset_that_changes_its_operators(op, opset, created):
    """The bodies of opset 18 have a CastLike, or a Softplus of DOUBLE, whose body has one. Asked of 1.18.0, 1.24.4."""
    found = placed(f"(double[2,3] x) => (double[2,3] y) {{ y = {op}(x) }}", opset=opset)
    assert found.created is created
    assert not created or found.copies == ((3, 3) if op == "Elu" else (1, 1))


@pytest.mark.parametrize(("data_type", "place"), [("double", "both"), ("float", "CPU")])
def test_a_type_parameter_without_tensors(data_type, place):
    """An Attention without a mask: what was recorded with a mask of DOUBLE counts. Its body is not known."""
    tensor = f"{data_type}[1,2,4,8]"
    found = placed(f"({tensor} q, {tensor} k, {tensor} v) => ({tensor} y) {{ y = Attention(q, k, v) }}", opset=23)
    assert where(found) == {"y": place}
    assert found.copies == (None if place == "both" else (0, 0))
