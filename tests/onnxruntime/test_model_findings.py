"""Findings about a model as a whole: each rule's models, and the boundaries of what helps."""

from __future__ import annotations

from itertools import pairwise

import onnx
import pytest

from dmlsplit.formats.sessions import Inputs
from dmlsplit.onnxruntime.older_opset import older_opset
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.prediction import session
from dmlsplit.rules import RULES
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests import models

MODEL_RULES = RULES.values_of("model")


def sessions_of(text, opset):
    model = models.text(text, opset, domains=["com.microsoft", "acme"])
    onnx.checker.check_model(model)
    return OnnxSessions(model, lambda *_: None)


def findings(text, opset, version="1.24.4"):
    return sessions_of(text, opset).of(find_runtime(version), SessionOptions()).placement.diagnostics


def older(text, opset, version="1.24.4"):
    session = sessions_of(text, opset).of(find_runtime(version))
    return older_opset(session.graphs, lambda: session.graphs_as_written)


@pytest.mark.parametrize("rule", MODEL_RULES, ids=lambda rule: rule.id)
def test_the_rules_models(rule):
    """The bad model breaks the rule, the good one none."""
    assert rule.cure
    assert rule.id in {found.rule for found in findings(rule.bad.graph, rule.bad.opset, rule.examples_for)}
    assert findings(rule.good.graph, rule.good.opset, rule.examples_for) == ()


@pytest.mark.parametrize("behind", ["y = Exp(h)", "y = Mul(h, half)"], ids=["read", "put into it"])
def test_a_rank_that_fails_the_session_is_one_finding(behind):
    """No operator is made of it, so what DirectML's tables say of the number of dimensions is the same fault."""
    text = (
        "(float[1,2,3,4,5] x, float[1,2,3,5,5] z) => (float[1,2,3,4,5] y) <float half = {0.5}> { h = MatMul(x, z) "
        + behind
        + " }"
    )
    assert [found.rule for found in findings(text, 17)] == ["model/rank"]


CONV = "(float[1,4,8,8] x, float[4,4,1,1] w) => (float[1,4,8,8] y) { a = Relu(x) y = Conv(a, w) }"
TRANSPOSE = "(float[2,3] x) => (float[3,2] y) { y = Transpose<perm=[1,0]>(x) }"
POOL = "(float[1,1,8,8] x) => (float[?,?,?,?] y) { y = MaxPool<kernel_shape=[2,2],ceil_mode=CEIL>(x) }"
IN_A_BRANCH = """(bool c, float[1,4,8,8] x, float[4,4,1,1] w) => (float[?,?,?,?] y) {
    y = If(c) <
        then_branch = t () => (float[?,?,?,?] a) { a = Conv(x, w) },
        else_branch = e () => (float[?,?,?,?] b) { b = Abs(x) }
    >
}"""


@pytest.mark.parametrize(
    ("text", "opset", "version", "wanted"),
    [
        (CONV, 22, "1.24.4", 21),
        (CONV, 22, "1.30.0", 21),
        (CONV, 21, "1.24.4", None),
        (TRANSPOSE, 23, "1.24.4", 22),
        (TRANSPOSE, 22, "1.24.4", None),
        (TRANSPOSE, 21, "1.20.1", 20),
        (POOL.replace("CEIL", "0"), 22, "1.24.4", 21),
        # both go to DirectML at 21, one of them at 22
        ("(float[2,3] x) => (float[3,2] y) { a = Transpose<perm=[1,0]>(x) y = Sin(a) }", 23, "1.24.4", 21),
        (IN_A_BRANCH, 22, "1.24.4", 20),  # If 21 has no kernel, If 20 has one
    ],
)
def test_the_opset_with_most_nodes_on_directml(text, opset, version, wanted):
    found = older(text, opset, version)
    assert (None if found is None else (found.opset, found.why)) == (None if wanted is None else (wanted, ""))


@pytest.mark.parametrize(
    ("text", "opset", "why"),
    [
        (
            POOL.replace("CEIL", "1"),
            22,
            "y: MaxPool 12 is not MaxPool 22: its ceil_mode of 1 is defined differently in the older version",
        ),
        (
            "(float[2] x, float8e8m0[2] z, int64[1] i) => (float[2] y, float8e8m0[1,2] t) "
            "{ y = Sin(x) t = Unsqueeze(z, i) }",
            24,
            "t: Unsqueeze 23 is not Unsqueeze 24: its data is FLOAT8E8M0",
        ),
        (
            "(float[1,1,1,1,1,1,1,2,3] x) => (float[?,?,?,?,?,?,?,?,?] y) { y = Transpose(x) }",
            23,
            "y: DirectML's kernel does not accept tensors of rank 9",
        ),
        (
            "(float[2,4] x, float[4] s) => (float[2,4] y, float[2,4] z) { y = Sin(x) z = RMSNormalization(x, s) }",
            23,
            "z: RMSNormalization is new in opset 23",
        ),
    ],
)
def test_what_is_something_else_at_the_older_opset(text, opset, why):
    found = older(text, opset)
    assert found is not None
    assert found.why == why


def test_the_finding_names_what_moves():
    (found, *_) = findings(CONV, 23)
    assert (found.rule, found.path, found.expected, found.actual) == ("model/opset-without-kernels", "y", 21, 23)
    assert "1 node (1 Conv) runs on the CPU at opset 23" in found.message


def test_what_a_session_removes_moves_nowhere():
    (found, *_) = findings(
        "(float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y) { c = Conv(x, w) r = Relu(c) y = Identity(r) }", 23
    )
    assert found.rule == "model/opset-without-kernels"
    assert "1 node (1 Conv) runs on the CPU at opset 23" in found.message


CUBIC = """(float[1,1,4,4] x) => (float[?,?,?,?] y) {
    k = Constant<value_floats=[1.0,1.0,2.0,2.0]>() a = Relu(x) r = Resize<mode="cubic">(a, , k) y = Sigmoid(r)
}"""


def island_of(text, opset):
    found = [each for each in findings(text, opset) if each.rule == "model/cpu-island"]
    return [(each.path, each.actual, each.message.split("each Run copies ")[1]) for each in found]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = Relu(x) s = Sin(a) y = Relu(s)", "1 Sin on the CPU is between"),
        ("a = Relu(x) s = Sin(a) t = Cos(s) y = Relu(t)", "1 Sin, 1 Cos on the CPU are between"),
        ("a = Relu(x) s = Sin(a) b = Relu(s) t = Sin(b) y = Relu(t)", "2 islands (s, t) of 2 Sin are between"),
    ],
)
def test_the_finding_says_how_many_are_on_the_cpu(text, said):
    found = findings(f"(float[4] x) => (float[4] y) {{ {text} }}", 22)
    assert [each.message.startswith(said) for each in found if each.rule == "model/cpu-island"] == [True]


@pytest.mark.parametrize(
    ("text", "opset", "found"),
    [
        (CUBIC, 17, [("r", 2, "2 tensors, 320 bytes; to move it to DirectML: Resize: another value of mode")]),
        # it is at the end: the output is copied anyway
        ("(float[4] x) => (float[4] y) { a = Relu(x) y = Sin(a) }", 22, []),
        ("(float[4] x) => (float[4] y) { a = Sin(x) y = Relu(a) }", 22, []),
        # both are one island, and what one reads of the other is not copied
        (
            "(float[4] x) => (float[4] y) { a = Relu(x) s = Sin(a) t = Cos(s) y = Relu(t) }",
            22,
            [("s", 2, "2 tensors, 32 bytes; to move them to DirectML: Cos: opset 21, Sin: opset 21")],
        ),
        # two islands of the same operators are one finding
        (
            "(float[N] x) => (float[N] y) { a = Relu(x) s = Sin(a) b = Relu(s) t = Sin(b) y = Relu(t) }",
            22,
            [("s", 4, "4 tensors, all of unknown size; to move them to DirectML: Sin: opset 21")],
        ),
        # the same opset moves two islands of other operators
        (
            "(float[4] x) => (float[4] y) { a = Relu(x) s = Sin(a) b = Relu(s) t = Cos(b) y = Relu(t) }",
            22,
            [("s", 4, "4 tensors, 64 bytes; to move them to DirectML: Cos: opset 21, Sin: opset 21")],
        ),
        # and something else moves these
        (
            """(float[1,1,4,4] x) => (float[?,?,?,?] y) { k = Constant<value_floats=[1.0,1.0,2.0,2.0]>() a = Relu(x)
                s = Sin(a) b = Relu(s) r = Resize<mode="cubic">(b, , k) y = Sigmoid(r) }""",
            17,
            [("r", 2, "2 tensors, 320 bytes; to move it to DirectML: Resize: another value of mode")],
        ),
        # one of the tensors has a known size
        (
            "(float[1,1,4,4] x, float[1,1,K,K] w) => (float[?,?,?,?] y) {"
            " a = Relu(x) k = Relu(w) c = Conv(a, k) y = Relu(c) }",
            22,
            [("c", 3, "3 tensors, 64 bytes and 2 of unknown size; to move it to DirectML: Conv: opset 21")],
        ),
        # a size that a kernel reads on the CPU is no copy
        (
            "(float[2,3] x) => (float[?,?] y) { a = Relu(x) n = NonZero(a) s = Shape(n) y = Expand(a, s) }",
            17,
            [],
        ),
    ],
)
def test_islands(text, opset, found):
    assert island_of(text, opset) == found


def test_an_island_without_a_kernel_of_its_type():
    text = "(float[4] x) => (float[4] y) { a = Relu(x) d = Cast<to=11>(a) e = Relu(d) f = Cast<to=1>(e) y = Relu(f) }"
    ((path, copies, said),) = island_of(text, 17)
    assert (path, copies) == ("e", 2)
    assert (
        said == "2 tensors, 64 bytes; to move it to DirectML: Relu: a cast of DOUBLE to FLOAT around it, which rounds "
        "differently"
    )


def test_an_operator_without_a_kernel_on_directml():
    text = """(float[4] x, float[4] u) => (float[?] y) { a = Relu(x) b = Greater(a, u)
        s = Compress<axis=0>(a, b) y = Relu(s) }"""
    ((path, copies, said),) = island_of(text, 17)
    assert (path, copies) == ("s", 3)
    assert said.endswith("; to move it to DirectML: Compress: replace it, DirectML has no kernel")


@pytest.mark.parametrize("size", ["N", "unk__7"])
def test_open_sizes_name_the_symbols_of_the_inputs(size):
    """Converters from TensorFlow name open sizes as onnx's inference does."""
    (found,) = findings(f"(float[{size},4] x) => (float[?,?] y) {{ a = Relu(x) y = Sigmoid(a) }}", 17)
    assert (found.rule, f"--free-dimension {size}=NUMBER" in found.message) == ("model/open-sizes", True)


def advice_about_open_sizes(text, **sizes):
    inputs = Inputs(free_dimensions=sizes)
    session = sessions_of(text, 17).of(find_runtime("1.24.4"), SessionOptions(), inputs)
    (found,) = (each for each in session.tried_placement.diagnostics if each.rule == "model/open-sizes")
    return found.message.partition("is created; ")[2]


def test_fixing_sizes_is_not_advised_where_the_fused_graph_is_wrong_then():
    text = """(float[N,4] x) => (float[N,2] y) <int64[2] l = {2, 2}> {
        a, b = Split<axis=1>(x, l) g = Sigmoid(b) y = Mul(a, g) }"""
    assert advice_about_open_sizes(text) == (
        "with fixed sizes a fused graph is wrong (graph/fused-wrongly at a): leave them open, or fix them in the file "
        "with dmlsplit legalize --free-dimension N=NUMBER, which mends the graph"
    )


def test_the_advice_says_what_is_wrong_with_a_batch_of_one():
    """The part of a single sample is contiguous, so that its reader runs in place."""
    text = """(float[N,8,16] x) => (float[N,4,16] y) <int64[2] l = {4, 4}> {
        r = Sigmoid(x) a, b = Split<axis=1>(r, l) y = Neg(b) }"""
    said = advice_about_open_sizes(text)
    assert said.startswith("if they are always the same")
    assert said.endswith(
        "; with N = 1, the session is not created at a: CompileGraph refuses a fused graph, at r "
        "(graph/memory-too-small): dmlsplit legalize --free-dimension N=NUMBER mends the file if it can"
    )


def test_sizes_that_are_given_are_kept_in_a_trial():
    text = """(float[N,4,M] x) => (float[N,2,M] y) <int64[2] l = {2, 2}> {
        a, b = Split<axis=1>(x, l) g = Sigmoid(b) y = Mul(a, g) }"""
    said = advice_about_open_sizes(text, M=3)
    assert said.startswith("with fixed sizes a fused graph is wrong")
    assert "--free-dimension N=NUMBER, which" in said


@pytest.mark.parametrize(
    ("text", "is_advised"),
    [
        ("(float[N,4] x) => (float[N,4] y) { a = Relu(x) y = Sigmoid(a) }", True),
        # a kernel with more dimensions than it takes is refused when the session is created
        ("(float[N,2,2,4,4] x) => (float[N,2,2,4,4] y) { a = Relu(x) b = MatMul(a, a) y = Sigmoid(b) }", False),
        # the sizes of a trial are no sizes of this model
        ("(float[N,4] x) => (float[3,M] y) <int64[2] k = {3, -1}> { a = Reshape(x, k) y = Sigmoid(a) }", True),
        # what is wrong is so with open sizes as well
        ("(float[N,4] x, float[N,4] h) => (float[N,4] y, float[N,4] n) { n = Add(x, h) y = Relu(n) }", True),
        # what fails at Run is an error of its own
        (
            """(float[N,4] x) => (float[?,?] y) { s = Shape(x) c = Concat<axis=0>(k, e) a = Relu(x)
                r = Reshape<allowzero=1>(a, c) y = Sigmoid(r) }""".replace(
                " y) {", " y) <int64[1] k = {4}, int64[1] e = {-1}> {"
            ),
            True,
        ),
        # its window is larger than the input for the sizes of a trial alone
        ("(float[1,1,N] x, float[1,1,500] w) => (float[1,1,M] y) { a = Conv(x, w) y = Sigmoid(a) }", True),
    ],
    ids=["right", "not created", "contradicted", "wrong anyway", "fails at Run", "too small"],
)
def test_fixing_sizes_is_tried_before_it_is_advised(text, is_advised):
    said = advice_about_open_sizes(text)
    assert said.startswith(
        "if they are always the same" if is_advised else "leave them open: with fixed sizes the session"
    )


@pytest.mark.parametrize(("count", "spent"), [(2, 4), (2_000, 2_000), (2_001, 0)])
def test_trials_are_bounded_by_the_nodes_of_a_model(count, spent):
    made = sessions_of(f"(float[N] x) => (float[N] y) {{ {' '.join(chain(count))} }}", 17)
    made.of(find_runtime("1.24.4"), SessionOptions()).tried_placement  # noqa: B018
    assert made.spent_on_advice == spent


def chain(count):
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    return (f"{after} = Exp({before})" for before, after in pairwise(names))


OF_UNKNOWN_RANK = """(float[N,4] x) => (float[?,?] y)
    <int64[1] zero = {0}, int8[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}, int8 wz = {0}, float ws = {0.5},
     float[3] b = {1,2,3}> {
    s = Shape(x) n = Gather(s, zero) t = Slice(s, zero, n) r = Reshape(x, t)
    q, qs, qz = DynamicQuantizeLinear(r) i = MatMulInteger(q, w, qz, wz) f = Cast<to=1>(i) m = Mul(qs, ws)
    p = Mul(f, m) y = Add(p, b) }"""


@pytest.mark.parametrize(
    ("text", "helps"),
    [
        (OF_UNKNOWN_RANK, True),
        # no size helps against this
        ("(int8[N,2] x) => (int8[N,2] y) { y = Sin(x) }", False),
    ],
    ids=["open sizes are the reason", "another reason"],
)
def test_a_session_that_fails_is_tried_with_fixed_sizes(text, helps):
    session = sessions_of(text, 17).of(find_runtime("1.24.4"), SessionOptions())
    before, after = session.placement.failure, session.tried_placement.failure
    assert before is not None
    advice = "; it is created with fixed sizes (--free-dimension N=NUMBER)" if helps else ""
    assert after == before._replace(message=before.message + advice)


def test_a_symbol_that_a_shell_would_expand_is_quoted():
    value = onnx.helper.make_tensor_value_info
    nodes = [onnx.helper.make_node("Relu", ["x"], ["a"]), onnx.helper.make_node("Sigmoid", ["a"], ["y"])]
    model = models.model(nodes, [value("x", 1, ["?", 4])], [value("y", 1, None)], opset=17, ir_version=8)
    (found,) = OnnxSessions(model, lambda *_: None).of(find_runtime("1.24.4"), SessionOptions()).placement.diagnostics
    assert "--free-dimension '?=NUMBER'" in found.message


def test_nodes_in_a_fused_graph_are_not_counted_among_those_of_open_sizes():
    # the Mul reads a result of the tensor with open sizes, and all its own sizes are known
    text = """(float[N,4] x, float[4] z) => (float[N,4] y, float[4] v) {
        a = Relu(x) b = Exp(a) c = Abs(b) y = Neg(c) m = ReduceMax<keepdims=0>(x) w = Mul(z, m) v = Neg(w)
    }"""
    session = sessions_of(text, 17).of(find_runtime("1.24.4"), SessionOptions())
    (found,) = (each for each in session.placement.diagnostics if each.rule == "model/open-sizes")
    alone = [node for node in session.placement.nodes.values() if node.provider == "DML" and node.graph is None]
    assert {each for each, node in session.placement.nodes.items() if node.graph is not None} == {"w", "v"}
    assert found.actual == len(alone) == 5


@pytest.mark.parametrize(
    ("body", "opset", "cure"),
    [
        ("(float[2] x) => (float[2] y) { y = Relu(x) }", 26, "dmlsplit legalize"),
        ("(double[2] x) => (double[2] y) { y = Acos(x) }", 17, "what helps"),
    ],
)
def test_a_failure_names_what_helps(body, opset, cure):
    model = models.text(body, 17)
    model.opset_import[0].version = opset
    made = OnnxSessions(model, lambda *_: None).of(find_runtime("1.24.4"), SessionOptions())
    (found,) = made.placement.diagnostics
    assert found.rule == "model/session-fails"
    assert cure in found.message


def test_missing_data_name_what_helps(tmp_path):
    model = models.text("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Mul(x, w) }", 17)
    (weights,) = model.graph.initializer
    weights.ClearField("float_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="w.bin")

    onnx.save(model, tmp_path / "m.onnx")
    (found,) = session(tmp_path / "m.onnx", "1.24.4").diagnostics
    assert (found.rule, "the model's folder" in found.message) == ("model/session-fails", True)


def test_a_failing_split_gives_its_reason_as_the_sessions():
    parts = "(float[?,?,?,?,?,?,?,?,?] a, float[?,?,?,?,?,?,?,?,?] b, float[2] c, float[2] d)"
    text = f"(float[1,1,1,1,1,1,1,1,4] x, float[4] z) => {parts} {{ a, b = Split<axis=8>(x) c, d = Split(z) }}"
    made = OnnxSessions(models.text(text, 13), lambda *_: None).of(find_runtime("1.24.4"), SessionOptions())
    assert made.placement.failure == ("a", "rank 9 exceeds 8")
    elsewhere = made.nodes[1].answer.diagnostics[-1]
    assert elsewhere.rule == "onnxruntime/session-fails-elsewhere"
    assert elsewhere.message.startswith("session creation fails at a: ")
