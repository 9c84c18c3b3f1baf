"""Where every node of a model goes, and what follows of it: small models in onnx's text form."""

from __future__ import annotations

import numpy
import pytest
from onnx import helper

import dmlsplit as dml
from dmlsplit.formats.sessions import Inputs
from dmlsplit.onnxruntime import explain
from dmlsplit.onnxruntime.graphs_of_model import graphs_of_model
from dmlsplit.onnxruntime.node_placement import placed as placed_in
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.rules import RULES
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.model_placements import Provider, Why, changes
from tests import models
from tests.onnxruntime.placements import placed, placed_model, reason, where

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
        **dict.fromkeys(("n", "v.body/h", "v.body/o"), "DML"),
        **dict.fromkeys(("f", "g", "v", "y"), "CPU"),
    }
    assert reason(found, "y") is Why.SIZES


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


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("(double[2] x) => (double[2] y) { y = Relu(x) }", ("DOUBLE",)),
        # only the type of the data matters: indices may be of either type
        ("(double[2] x, int64[1] i) => (double[1] y) { y = Gather(x, i) }", None),
        ("(int64[2] x, int64[2] z) => (int64[2] y) { y = Mod(x, z) }", ("INT64",)),
    ],
)
def test_types_without_a_kernel(text, types):
    (node, *_) = placed(text).nodes.values()
    assert (node.provider, node.why, node.types) == (
        (Provider.CPU, Why.TYPES, types) if types else (Provider.DML, None, ())
    )


def test_what_no_provider_has_fails_the_session():
    found = placed("(int8[2] x) => (int8[2] y) { y = Sin(x) }")
    assert found.created is not True


@pytest.mark.parametrize("version", ["1.22.0", "1.30.0"])
@pytest.mark.parametrize(
    ("rows", "axes", "created"),
    [("2", "", False), ("N", "", True), ("2", "int64[1] a, ", True)],
    ids=["known", "open sizes", "computed axes"],
)
def test_a_kernel_that_cannot_be_made_where_nothing_is_fused(rows, axes, created, version):
    """It is made with the session where all that it needs is known, else at the first Run. Observed."""
    given = "" if axes else "<int64[1] a = {1}>"
    found = placed(
        f"""({axes}int64[{rows},3] x, float[2] z, bool c) => (int64[{rows},1] y, float[2] w) {given} {{
            y = ReduceMean(x, a)
            w = If(c) <then_branch = t () => (float[2] p) {{ p = Abs(z) }},
                       else_branch = e () => (float[2] q) {{ q = Neg(z) }}> }}""",
        version,
        21,
    )
    assert found.created is created
    assert created or found.failure.node == "y"


@pytest.mark.parametrize(("version", "created"), [("1.24.4", True), ("1.30.0", False)])
def test_a_kernel_that_cannot_be_made_and_reads_a_constant_of_the_graph_around(version, created):
    """From 1.30.0 on such a constant is known as the session is made. Observed."""
    found = placed(
        """(int64[2,3] x, bool c) => (int64[2,1] y) <int64[1] a = {1}> {
            y = If(c) <then_branch = t () => (int64[2,1] p) { p = ReduceMean(x, a) },
                       else_branch = e () => (int64[2,1] q) { q = ReduceMax(x, a) }> }""",
        version,
        18,
    )
    assert found.created is created


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


def test_a_type_that_was_seen_with_no_operator():
    found = placed(
        "(int64[2] x) => (float[?,?] y) { a = ConstantOfShape<value = float8e4m3fn[1] v {56}>(x) y = Cast<to=1>(a) }",
        opset=20,
    )
    assert (found.created, where(found)["a"]) == (None, "unknown")


@pytest.mark.parametrize(("given", "created"), [("float16", True), ("float", False)])
def test_what_the_cpu_computes_in_float_alone(given, created):
    """Tensors of FLOAT16 are cast around it, if an input is one."""
    found = placed(f"({given}[2,3] x) => (float16[2,3] y) {{ y = RandomUniformLike<dtype = 10>(x) }}", opset=21)
    assert (found.created, where(found)["y"]) == (created, "CPU")


@pytest.mark.parametrize(("rank", "session"), [(4, True), (5, False)])
def test_a_rank_that_fails_the_session(rank, session):
    sizes = ",".join(["1"] * (rank - 2))
    found = placed(f"(float[{sizes},2,3] x, float[{sizes},3,4] z) => (float[{sizes},2,4] y) {{ y = MatMul(x, z) }}")
    assert (found.created, (found.failure or ("",))[0]) == (session, "" if session else "y")


@pytest.mark.parametrize(
    ("body", "session"),
    [
        ("y: int64[?,?] = NonZero(x)", False),
        ("u = MeanVarianceNormalization<axes = [0, 1]>(x) y: int64[?] = Shape(z)", False),
        ("s = SequenceConstruct(x) y: int64 = SequenceLength(s)", True),
        ("s = SequenceConstruct(x) a = SequenceAt(s, i) y: int64[?] = Shape(a)", True),
    ],
)
def test_a_rank_of_a_kernel_whose_results_have_unknown_sizes(body, session):
    """What it reads decides. One that makes a sequence has no operator of DirectML. Observed with 1.20.1, 1.24.4."""
    kind = body[body.index("y: ") + 3 : body.rindex(" =")]
    text = f"(float[2,1,1,1,2,1,3,2,4] x, float[?] z, int64 i) => ({kind} y) {{ {body.replace(f'y: {kind}', 'y')} }}"
    assert placed(text).created is session


@pytest.mark.parametrize(("behind", "session"), [("Tanh(v)", False), ("If(c) <{}, {}>", True)])
@pytest.mark.parametrize("rank", [5, 9, 10])
@pytest.mark.parametrize("node", ["Trilu(w)", "Resize(w, , k)"])
def test_a_rank_that_only_fused_graphs_refuse(behind, session, rank, node):
    """A graph with an If inside has no fused graphs; a Trilu or Resize by itself takes any rank. Observed."""
    sizes, scales = ",".join(["2"] * rank), ",".join(["2.0"] * rank)
    one = "{} () => (float[2,3] {}) {{ {} = {}(v) }}"
    behind = behind.format(
        one.format("then_branch = f", "n", "n", "Neg"), one.format("else_branch = g", "o", "o", "Abs")
    )
    found = placed(
        f"""(bool c, float[{sizes}] w, float[2,3] x) => (float[2,3] y) {{
            v = Round(x) y = If(c) <
                then_branch = t () => (float[2,3] a) {{ a = Identity(v) }},
                else_branch = e () => (float[2,3] b) {{
                    k = Constant<value_floats = [{scales}]>() q = {node} b = {behind} }}
            >
        }}""",
        opset=18,
    )
    assert (found.created, (found.failure or ("",))[0]) == (session, "" if session else "y.else_branch/q")


NINE = "2,2,2,2,2,2,3,2,4"


@pytest.mark.parametrize(
    ("node", "opset", "session"),
    [
        ("Slice(x, i, j)", 13, True),
        ("Slice(x, i, j, i)", 13, True),
        ("Slice(x, i, j, i, j)", 13, False),
        ("Slice<axes = [0], starts = [0], ends = [1]>(x)", 9, False),
        ("Pad(x, p)", 13, True),
        ("Pad(x, p, v)", 13, False),
        ("Pad(x, p, v)", 18, True),
        ("Pad(x, q, , i)", 18, True),
        ("Pad(x, q, v, i)", 18, False),
        ("Clip(x, v)", 13, True),
        ("Clip(x, v, w)", 13, False),
        ("ReduceMean<axes = [0]>(x)", 13, False),
        ("ReduceMean(x)", 18, True),
        ("ReduceMean(x, i)", 18, False),
        ("Squeeze(x)", 13, True),
        ("Resize(x, s)", 10, False),
        ("Resize(x, , s)", 13, True),
        ("Trilu(x, k)", 14, False),
        ("Trilu(x)", 14, True),
        ("Split(x)", 13, True),
        ("Split(x, l)", 13, False),
        ("Split(x)", 11, False),
    ],
)
def test_a_rank_beside_an_input_that_is_left_out(node, opset, session):
    """Outside of fused graphs, a kernel without one of its inputs for the CPU is created at the first Run. Observed
    with 1.18.0 and 1.24.4; the Scan keeps fused graphs out of the model."""
    first = "y, z = Split" if node.startswith("Split") else "y = " + node.partition("(")[0]
    found = placed(
        f"""(float[{NINE}] x, float[3] a, float[5,3] b) => (float y, float[5,3] d)
            <int64[1] i = {{0}}, int64[1] j = {{1}}, int64[18] p = {{1{",0" * 17}}}, int64[2] q = {{1,0}},
             int64 k = {{0}}, float v = {{0.0}}, float w = {{1.0}}, int64[2] l = {{1,1}},
             float[9] s = {{1,1,1,1,1,1,1,1,2}}> {{
            {first}({node.partition("(")[2]}
            c, d = Scan(a, b) <
                num_scan_inputs: int = 1,
                body: graph = g (float[3] e, float[3] f) => (float[3] m, float[3] n) {{ m = Add(e, f) n = Identity(m) }}
            >
        }}""",
        opset=opset,
    )
    assert found.created is session


def test_an_opset_that_is_not_loaded():
    found = placed(SMALL, "1.20.1", opset=22)
    assert (found.created, found.failure) == (False, ("", "the model has opset 22, but 1.20.1 supports up to 21"))
    assert (found.nodes, found.on_dml, found.capture) == ({}, 0.0, None)


def test_a_version_that_was_not_observed():
    found = placed(SMALL, "1.16.3")
    assert (found.created, found.failure) == (None, ("", "the behaviour of 1.16.3 was not observed"))
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
    found = placed("(float[2,2] x) => (float[2,2] y) { y = com.microsoft.GemmFastGelu(x, x) }")
    assert [(node.provider, node.why) for node in found.nodes.values()] == [(Provider.UNKNOWN, Why.UNASKED)]
    assert (found.created, found.copies, found.capture) == (None, None, None)


def test_what_an_upgrade_changes():
    text = "(float[4,4] x) => (float[4,4] y) { y = Identity(x) }"
    found = [placed(text, version, opset=21) for version in ("1.20.1", "1.24.4")]
    assert changes(found) == {"y": (Provider.CPU, Provider.DML)}


def test_reasons_are_rules():
    assert {str(why) for why in Why} == {rule.id for rule in RULES.values_of("placement")}
    assert reason(placed("(float[4] x) => (bfloat16[4] y) { a = Cast<to=16>(x) y = Relu(a) }"), "y") in Why


@pytest.mark.parametrize(
    ("text", "running"),
    [
        (SMALL, 2),
        # the Relu is fused into the Conv
        ("(float[1,1,4,4] x, float[1,1,1,1] w) => (float[1,1,4,4] y) { a = Conv(x, w) y = Relu(a) }", 1),
        ("(float[1,4,8] x) => (float[1,4,8] y) { a = Transpose<perm=[0,2,1]>(x) y = Transpose<perm=[0,2,1]>(a) }", 1),
        ("(float[4,4] x, int64[4] t) => (float l) { l = SoftmaxCrossEntropyLoss(x, t) }", 12),
        ("(float[4] x) => (float[4] y) { a = Relu(x) y = HardSwish(a) }", 3),
    ],
    ids=["all", "fused", "moved", "expanded", "on DirectML"],
)
def test_how_many_nodes_run(text, running):
    assert placed(text).running == running


@pytest.mark.parametrize(
    ("body", "older", "newer"),
    [
        ("a = Conv(x, w) y = Tanh(a)", 2, 2),
        ("a = Conv(x, w) y = HardSigmoid(a)", 2, None),
        ("a = Conv(x, w) b = MaxPool<kernel_shape = [1,1]>(a) y = Transpose<perm = [0,2,3,1]>(b)", 3, None),
        ("a = Transpose<perm = [0,3,1,2]>(x) y = Conv(a, w)", 2, None),
        ("a = Transpose<perm = [0,1,3,2]>(x) y = Conv(a, w)", 2, 2),
    ],
    ids=["alone", "an activation", "channels last behind it", "channels first in front of it", "sizes of an image"],
)
def test_what_the_cpu_may_fuse_with_its_convs(body, older, newer):
    """At opset 23, for which DirectML has none of them but Tanh; 1.30 alone does. Asked of 1.24.4 and 1.30.0."""
    text = f"(float[1,1,1,1] x, float[1,1,1,1] w) => (float[?,?,?,?] y) {{ {body} }}"
    assert placed(text, "1.24.4", 23).running == older
    assert placed(text, "1.30.0", 23).running == newer


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
        "running": 2,
        "nodes": {
            name: {
                "operator": op,
                "placement": "DML",
                "why": None,
                "version": version,
                "newest": None,
                "graph": 0,
                "types": [],
            }
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
    return graphs_of_model(model, find_runtime(version), SessionOptions())[-1]


def optimized_for(text):
    """The graph after all passes, of a version that puts Reshapes around a Gemm and of one that does not."""
    model = OnnxSessions(models.text(text, 17), lambda *_: None).model(Inputs())
    runtimes = map(find_runtime, ("1.24.4", "1.20.0"))
    return [optimized(graphs_of_model(model, runtime, SessionOptions())[-1]) for runtime in runtimes]


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


@pytest.mark.parametrize(("data_type", "place"), [("double", "both"), ("float", "CPU")])
def test_a_type_parameter_without_tensors(data_type, place):
    """An Attention without a mask: what was recorded with a mask of DOUBLE counts. Its body is not known."""
    tensor = f"{data_type}[1,2,4,8]"
    found = placed(f"({tensor} q, {tensor} k, {tensor} v) => ({tensor} y) {{ y = Attention(q, k, v) }}", opset=23)
    assert where(found) == {"y": place}
    assert found.copies == (None if place == "both" else (0, 0))


def test_a_function_that_nothing_reads():
    """The session is made where its last node is in no fused graph: the CPU reads what the nodes in front compute."""
    text = (
        "(float[3,8,8] x, float[2,3] z) => (float[2,3] y) <int64[3] s = {3,6,6}> { u = CenterCropPad(x, s) y = Exp(z) }"
    )
    assert placed(text, opset=18).created is True


@pytest.mark.parametrize(("version", "created"), [("1.18.0", False), ("1.20.1", True), ("1.22.0", True)])
def test_types_that_only_newer_versions_know(version, created):
    found = placed("(int4[2,3] x) => (int4[3,2] y) { y = Transpose<perm = [1, 0]>(x) }", version, opset=21)
    assert found.created is created
    if not created:
        assert "only other versions of " in found.failure.message


@pytest.mark.parametrize(("version", "created"), [("1.18.0", False), ("1.20.1", False), ("1.22.0", True)])
def test_types_that_only_newer_schemas_have(version, created):
    found = placed("(double[2,3] x) => (double[2,3] y) { y = com.microsoft.FastGelu(x) }", version)
    assert found.created is created
    if not created:
        assert "the type DOUBLE, which its operator does not accept" in found.failure.message


@pytest.mark.parametrize(
    ("x", "labels", "opset", "version", "created"),
    [
        ("2,5", "2", 17, "1.24.4", False),
        ("N,5", "N", 17, "1.24.4", True),
        ("N,5", "2", 17, "1.24.4", False),
        ("2,5", "2", 23, "1.24.4", False),
        ("N,5", "N", 23, "1.24.4", True),
        ("N,5", "2", 17, "1.20.1", False),
    ],
)
@pytest.mark.parametrize("data_type", ["float", "float16"])
@pytest.mark.parametrize("op", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_an_unread_loss(op, data_type, x, labels, opset, version, created):
    """Its last operator begins a fused graph where it has known sizes, behind operators that cannot be fused: those of
    the elements that are picked are the labels'."""
    found = placed(
        f"({data_type}[{x}] x, int64[{labels}] t, float[2] q) => (float[2] z) {{ [a] o = {op}(x, t) z = Relu(q) }}",
        version,
        opset=opset,
    )
    assert found.created is created


def test_an_unread_loss_of_sizes_that_the_labels_say():
    """Its schema says that it has the sizes of the scores; the operators that stand for it have those of the labels."""
    found = placed(
        """(float[N,5] x, int64[2] t, float[2] q) => (float[2] z) {
            o = NegativeLogLikelihoodLoss<reduction = "none">(x, t) z = Relu(q) }"""
    )
    assert found.created is False


@pytest.mark.parametrize(("data_type", "created"), [(10, False), (1, True)])
def test_a_kernel_that_is_refused_for_known_inputs(data_type, created):
    """It is made with the session though inference does not know what it makes: DirectML's kernel takes no depth of
    FLOAT16. Observed with 1.18.0 to 1.30.0."""
    model = models.text("(int64[2,3] i, float d, float[2] v) => (float[?,?,?] y) { y = OneHot(i, d, v) }", 16)
    del model.graph.input[1]
    model.graph.initializer.append(helper.make_tensor("d", data_type, [], [4]))
    assert placed_model(model).created is created


@pytest.mark.parametrize(("data_type", "graphs"), [("float", 1), ("float16", 0)])
def test_a_function_with_ifs_in_place_of_a_node(data_type, graphs):
    """Nothing is fused beside it, as beside any node with a graph inside; for FLOAT the CPU has a kernel. Observed with
    1.18.0 to 1.30.0."""
    found = placed(
        f"""({data_type}[2,2,3] t, float[2,3] x) => ({data_type}[?,?,?,?] g, float[2,3] y) <int64[4] s = {{2,3,4,5}}> {{
            g = AffineGrid(t, s) a = Sinh(x) y = Neg(a)
        }}""",
        opset=20,
    )
    assert len(found.graphs) == graphs


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_shapes_of_a_copy_of_a_dequantization_and_of_a_tensor_with_the_sizes_of_its_output(version):
    """The sizes that the output is declared with are not the copy's. Observed."""
    found = placed(
        """(int8[N,3] q, float[2,3] x) => (float[2,3] y, int64[2] a, int64[2] b) <float s = {1}, int8 z = {0}> {
            y = DequantizeLinear(q, s, z) a = Shape(y) b = Shape(x)
        }""",
        version,
    )
    assert where(found) == {"y": "DML", "a": "DML", "b": "folded"}


@pytest.mark.parametrize(
    ("sizes", "op_type", "created"),
    [
        ("1,6,4,6", "DepthToSpace", False),
        ("1,8,5,7", "DepthToSpace", True),
        ("1,6,5,4", "SpaceToDepth", False),
        ("1,6,4,5", "SpaceToDepth", False),
        ("1,5,4,6", "SpaceToDepth", True),
        ("N,6,4,5", "SpaceToDepth", True),
        ("1,6,1,1", "SpaceToDepth", True),
        ("1,6,1,5", "SpaceToDepth", True),
        ("1,3,4,4", "DepthToSpace", True),
    ],
)
def test_blocks_that_do_not_divide_a_tensor(sizes, op_type, created):
    """The CPU takes them. Where a size is open the kernel is made at the first Run; where none fits there is nothing to
    compute. Observed with 1.18.0 to 1.30.0."""
    found = placed(f"(float[{sizes}] x) => (float[?,?,?,?] y) {{ y = {op_type}<blocksize = 2>(x) }}")
    assert found.created is created


@pytest.mark.parametrize(("version", "expected"), [("1.18.0", "DML"), ("1.20.1", "DML"), ("1.22.0", "folded")])
@pytest.mark.parametrize("rank", ["", "[1]"])
def test_a_constant_depth_that_old_versions_do_not_infer_with(version, expected, rank):
    """Observed with these versions, 1.19.2, and 1.23.2 to 1.30.0."""
    text = f"<int64{rank} d = {{4}}, float[2] v = {{0, 1}}> {{ a = OneHot(x, d, v) s = Shape(a) }}"
    found = placed(f"(int64[2,3] x) => (int64[3] s) {text}", version)
    assert where(found) == {"a": expected, "s": expected}


@pytest.mark.parametrize("operator", ["MemcpyToHost", "MemcpyFromHost"])
def test_copies_of_constants_that_a_model_names_are_folded(operator):
    """1.30 folds only what has known sizes. Asked of 1.18.0, 1.22.0, 1.23.2, 1.24.4 and 1.30.0."""
    constant = models.array("w", numpy.ones((2, 3), numpy.float32))
    nodes = [models.node(operator, ["w"], ["b"]), models.node("Add", ["x", "b"], ["a"])]
    made = models.model(nodes, [models.value("x", [2, 3])], ["a"], 17, [constant], ir_version=8)
    versions = ("1.18.0", "1.22.0", "1.23.2", "1.24.4", "1.30.0")
    assert [placed_model(made, version).created for version in versions] == [False, False, True, True, True]


@pytest.mark.parametrize("version", ["1.18.0", "1.20.1", "1.24.4", "1.30.0"])
def test_a_graph_that_is_refused_fails_the_session_even_if_its_size_is_not_known(version):
    """The flags of the Split are not known, because the ReduceSum may be fused with its neighbours; that Mul's result
    does not fit is."""
    text = """(float[1,2,11] x, float[1,1,11] m) => (float[1,1,11] y) <int64[2] l = {1,1}> {
        p = Mul(x, m) a, b = Split<axis=1>(p, l) e = Exp(a) f = ReduceSum<keepdims=1>(e) h = Mul(e, f) i = Neg(h)
        y = Abs(i)
    }"""
    found = placed(text, version, opset=15)
    assert (found.created, found.failure.node) == (False, "p")


@pytest.mark.parametrize(("operator", "kept"), [("And", "folded"), ("Or", "folded"), ("Xor", "DML")])
def test_sizes_that_logic_decides_are_known(operator, kept):
    """With Xor the Expand repeats the tensor, otherwise it does nothing, and is removed. Asked of 1.24.4."""
    text = f"""(float[1,3] x) => (float[?,?,?] y) <int64[1] one = {{1}}, int64[1] two = {{2}}> {{
        h = Shape<start=0, end=1>(x)  w = Shape<start=1>(x)  a = Equal(h, one)  b = GreaterOrEqual(w, two)
        c = {operator}(a, b)  n = Where(c, one, two)  s = Concat<axis=0>(h, n, w)
        u = Unsqueeze(x, one)  e = Expand(u, s)  y = Neg(e)
    }}"""
    assert where(placed(text))["e"] == kept


NORMALIZED = """(float[2,8] x) => (float[2,8] y)
    <float[8] s = {1,1,1,1,1,1,1,1}, float[8] b = {0,0,0,0,0,0,0,0}, float two = {2}, float e = {0.00001}> {
    m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Pow(d, two) v = ReduceMean<axes=[-1]>(q) w = Add(v, e)
    r = Sqrt(w) n = Div(d, r) k = Mul(n, s) z = Add(k, b) y = Relu(z)
}"""


@pytest.mark.parametrize("version", ["1.18.0", "1.20.1", "1.24.4", "1.30.0"])
def test_nodes_that_are_fused_before_they_are_placed_are_where_their_node_is(version):
    found = placed(NORMALIZED, version)
    assert set(where(found).values()) == {"DML"}
    assert {node.graph for node in found.nodes.values()} == {0}
    explained = explain(models.text(NORMALIZED), "d", version)
    assert not explained.is_gone
    assert explained.placement.provider == "DML"


@pytest.mark.parametrize("axes", [(2,), (1,), (1, 2), (2, 1)])
def test_graphs_that_differ_in_what_a_softmax_reads_are_judged_apart(axes):
    # over an axis of size 1 its result is 1 everywhere, whatever the Mul in front of it computes
    nodes = [
        f"l{i} = Constant<value_ints=[8,8]>() a{i}, b{i} = Split<axis=2>(x{i}, l{i}) s{i} = Sigmoid(b{i}) "
        f"p{i} = Mul(a{i}, s{i}) y{i} = Softmax<axis={axis}>(p{i})"
        for i, axis in enumerate(axes)
    ]
    inputs = ", ".join(f"float[2,1,16] x{i}" for i in range(len(axes)))
    outputs = ", ".join(f"float[2,1,8] y{i}" for i in range(len(axes)))
    found = placed(f"({inputs}) => ({outputs}) {{ {' '.join(nodes)} }}")
    graphs = [found.graphs[found.nodes[f"y{i}"].graph] for i in range(len(axes))]
    assert [graph.outcome for graph in graphs] == ["right" if axis == 1 else "wrong" for axis in axes]


def test_the_axis_of_a_slice_of_a_scalar():
    made = "s = Identity(k) e = Identity(o) x = Relu(w) y = Slice(x, s, e) z = Relu(y)"
    found = placed(f"(float w) => (float z) <int64[1] k = {{0}}, int64[1] o = {{1}}, float y> {{ {made} }}")
    assert found.nodes["y"].provider is Provider.DML


def test_a_graph_that_leaves_an_output_of_the_model_unwritten_is_wrong():
    found = placed("(float[2,3] x, float[2,3] z) => (float[2,3] h, float[2,3] y) { h = Add(x, z) y = Relu(h) }")
    assert [graph.outcome for graph in found.graphs] == ["wrong"]


@pytest.mark.parametrize(
    ("value", "provider"), [("", "DML"), (", extrapolation_value=0.0", "DML"), (", extrapolation_value=2.5", "CPU")]
)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_resize_that_does_not_extrapolate_by_zeros_is_on_the_cpu(mode, value, provider):
    resize = f'Resize<mode="{mode}", coordinate_transformation_mode="tf_crop_and_resize"{value}>'
    constants = "<float[4] s = {1,1,2,2}, float[8] r = {0,0,0,0,1,1,1,1}>"
    found = placed(f"(float[1,1,4,4] x) => (float[?,?,?,?] y) {constants} {{ y = {resize}(x, r, s) }}")
    assert where(found)["y"] == provider


def test_copies_of_onnxruntime_in_a_file():
    """Asked of all versions. A MemcpyToHost leaves its result on the CPU, and a MemcpyFromHost reads it there; in a
    fused graph their kernels fail."""
    made = "(float[2] x) => (float[?] y) {{ [p] a = NonZero(x) [n] b = {}(a) [q] c = Cast<to=1>(b) [r] y = Relu(c) }}"
    for version in ("1.18.0", "1.24.4"):
        to_host = placed_model(models.text(made.format("MemcpyToHost"), 17), version)
        from_host = placed_model(models.text(made.format("MemcpyFromHost"), 17), version)
        assert where(to_host) == {"p": "DML", "n": "DML", "q": "CPU", "r": "CPU"}
        assert where(from_host) == {"p": "DML", "n": "DML", "q": "DML", "r": "DML"}
        assert (to_host.copies, from_host.copies) == ((0, 0), (1, 0))
        for operator in ("MemcpyToHost", "MemcpyFromHost"):
            fused = f"(float[2] x) => (float[2] y) {{ a = Relu(x) [n] y = {operator}(a) }}"
            assert placed_model(models.text(fused, 17), version).failure.node == "n"


@pytest.mark.parametrize(("sizes", "created"), [("2,6", False), ("N,6", False), ("2,N", True), ("N,M", True)])
def test_a_split_of_an_open_size_may_have_more_lengths_than_outputs(sizes, created):
    """Asked of 1.18.0, 1.24.4 and 1.30.0: inference compares them where it knows the size; else the first Run fails."""
    outputs = "float[?,?] a, float[?,?] b"
    made = models.text(f"(float[{sizes}] x) => ({outputs}) <int64[3] l = {{1, 2, 3}}> {{ a, b = Split<axis=1>(x, l) }}")
    for version in ("1.18.0", "1.24.4", "1.30.0"):
        assert placed_model(made, version).created is created


@pytest.mark.parametrize("operator", ["Adagrad", "Momentum"])
def test_operators_for_training(operator):
    """Asked of all versions."""
    given = '<alpha = 0.5, beta = 0.5, mode = "standard", norm_coefficient = 0.1>' if operator == "Momentum" else ""
    node = f"ai.onnx.preview.training.{operator}{given}(r, t, x, g, h)"
    inputs = "float r, int64 t, float[2] x, float[2] g, float[2] h"
    made = models.text(
        f"({inputs}) => (float[2] a, float[2] b) {{ [n] a, b = {node} }}", domains=["ai.onnx.preview.training"]
    )
    for version in ("1.18.0", "1.24.4", "1.30.0"):
        failure = placed_model(made, version).failure
        assert failure.message == "builds of ONNX Runtime without training have no operator for n"
