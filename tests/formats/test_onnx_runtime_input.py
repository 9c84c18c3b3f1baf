"""What is asked of ONNX Runtime: how it is given, what the model does not have, what contradicts itself."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import dmlsplit.formats.onnx
from dmlsplit.checking.node_verdicts import graph_diagnostics, judged_in_session
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.prediction import answer_json, on_onnxruntime
from dmlsplit.system.errors import InputError
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.target import find_target
from tests.formats.answers import SPLIT, VERSION, X, ask, outcome, rules, session
from tests.models import FLOAT, model, node, text, value


def test_an_output_that_a_call_gives_no_name_has_one():
    function = '<domain: "own", opset_import: ["" : 17]> F (w) => (o, u) { o, u = Split<axis=1>(w) }'
    (found,) = on_onnxruntime(
        text('(float[4,6] x) => (float[?,?] y) { y, "" = own.F(x) }', functions=function), VERSION
    )
    assert found.answer.outcome == "DML"
    with pytest.raises(InputError, match="F omits outputs of the function that it calls"):
        on_onnxruntime(text("(float[4,6] x) => (float[?,?] y) { y = own.F(x) }", functions=function), VERSION)


def test_sizes_of_the_run_reach_nodes_further_down():
    nodes = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=1, name="S")]
    found = ask(nodes, [value("x", ["N", 6])], ["a", "b"], given={"run_shapes": {"x": (5, 6)}})
    assert outcome(found) == [("S", "DML", "run", 0)]
    assert found[0].answer.operators[0].input_tensor.sizes == (1, 1, 5, 6)


def test_a_free_dimension_is_static():
    found = ask([SPLIT], [value("x", ["N", 6])], ["a", "b"], given={"free_dimensions": {"N": 3}})
    assert outcome(found) == [("S", "DML", "init", 0)]


def test_values_of_the_run_are_lengths():
    nodes = [node("Split", ["x", "lengths"], ["a", "b"], axis=1, name="S")]
    inputs = [X, value("lengths", [2], TensorProto.INT64)]
    given = {"run_shapes": {"x": (2, 6)}, "run_values": {"lengths": (1, 5)}}
    found = ask(nodes, inputs, ["a", "b"], given=given)
    assert [part.sizes[-1] for part in found[0].answer.operators[0].output_tensors] == [1, 5]


def test_a_function_is_followed():
    body = [
        node("Split", ["v"], ["p", "q"], axis=1, name="cut"),
        node("Concat", ["q", "p"], ["w"], axis=1, name="join"),
    ]
    swap = helper.make_function("own", "Swap", ["v"], ["w"], body, [helper.make_opsetid("", 17)])
    found = ask([node("Swap", ["x"], ["y"], domain="own", name="call")], [X], ["y"], functions=[swap])
    assert outcome(found) == [("call/cut", "DML", "init", 0), ("call/join", "DML", "init", 0)]


@pytest.mark.parametrize("taken", ["u", "F_0/t", "F_0/t_2", "k/unknown", "e/known", "e/known4"])
def test_calls_without_names_write_names_of_their_own(taken):
    """A call in the graph and one in a branch, each the first node there; `taken`: a name of the model's own."""
    function = '<domain: "own", opset_import: ["" : 17]> F (v) => (w) { t = Relu(v) w = Tanh(t) }'
    branch = "b{0} () => (float[2,6] o{0}) {{ o{0} = own.F(x) }}"
    words = f"""(float[2,6] x, bool c, float[2,2] k) => (float[2,6] z, float[2,3] a, float[2,3] b, float[2,2] m) {{
        y = own.F(x)
        z = If (c) <then_branch = {branch.format(1)}, else_branch = {branch.format(2)}>
        "{taken}" = Einsum<equation="ij,jk->ik">(k, k)
        e = Shape(x)
        r = Reshape(y, e)
        m = Neg("{taken}")
        a, b = Split<axis=1>(r)
    }}"""
    for version in (VERSION, "1.19.2"):
        found = on_onnxruntime(text(words, functions=function), version)
        assert outcome(found) == [("a", "DML", "run", 0)]


def test_a_function_that_calls_itself_is_one_clear_error():
    endless = helper.make_function(
        "own", "F", ["v"], ["w"], [node("F", ["v"], ["w"], domain="own")], [helper.make_opsetid("", 17)]
    )
    with pytest.raises(InputError, match=r"^function own:F calls itself"):
        ask([node("F", ["x"], ["y"], domain="own")], [X], ["y"], functions=[endless])


def test_the_json_of_an_answer():
    (found,) = ask([SPLIT], [X], ["a", "b"])
    written = json.loads(json.dumps(answer_json(found.answer)))
    assert list(written) == ["version", "outcome", "at", "operators", "hresults", "compile"]
    assert written["operators"][0]["Type"] == "DML_OPERATOR_SPLIT"
    assert (written["hresults"], written["compile"]) == (["0x00000000"], {"call": "CompileGraph", "flags": 0})


def test_a_path_and_bytes_are_read_alike(tmp_path):
    made = session([SPLIT], [X], ["a", "b"])
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    assert on_onnxruntime(path, VERSION) == on_onnxruntime(made.SerializeToString(), VERSION)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"run_shapes": {"z": (1,)}}, "there is no tensor 'z'"),
        ({"run_shapes": {"x": (3, 6)}}, "the model has"),
        ({"free_dimensions": {"N": 1}}, "there is no symbolic dimension 'N'"),
        ({"run_values": {"z": (1,)}}, "there is no tensor 'z'"),
    ],
)
def test_what_the_model_does_not_have(given, message):
    with pytest.raises(InputError, match=message):
        ask([SPLIT], [X], ["a", "b"], given=given)


def test_what_is_no_model():
    with pytest.raises(InputError, match="not an ONNX model"):
        on_onnxruntime(b"\xff\xff", VERSION)
    with pytest.raises(ValueError, match="unknown version"):
        on_onnxruntime(session([SPLIT], [X], ["a", "b"]), "0.1")


def test_sizes_that_are_computed_are_known_at_the_first_run():
    """As of the anchors of a detector: Range, ConstantOfShape and Expand of sizes."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Squeeze", ["n"], ["m"])]
    nodes += [node("Range", ["zero", "m", "step"], ["r"]), node("ConstantOfShape", ["n"], ["f"])]
    nodes += [node("Cast", ["r"], ["rf"], to=FLOAT), node("Add", ["f", "rf"], ["g"]), node("Expand", ["g", "n"], ["e"])]
    nodes.append(node("Concat", ["e", "g"], ["y"], axis=0, name="C"))
    constants = {"one": [1], "zero": np.int64(0), "step": np.int64(1)}
    (found,) = ask(nodes, [value("x", ["N", "M"])], ["y"], constants, given={"run_shapes": {"x": (2, 6)}})
    assert (found.answer.outcome, found.answer.at) == ("DML", "run"), "what the CPU reads does not keep it there"
    assert [part.sizes for part in found.answer.operators[0].input_tensors] == [(1, 1, 1, 6)] * 2


def twice(made):
    """A node with its first attribute given again."""
    made.attribute.append(made.attribute[0])
    return made


def choice(*outputs):
    """An If whose branches have these numbers of outputs."""
    branches = [
        helper.make_graph(
            [node("Relu", ["a"], [f"{name}{i}"]) for i in range(count)],
            name,
            [],
            [value(f"{name}{i}", [2, 3]) for i in range(count)],
        )
        for name, count in zip("te", outputs, strict=True)
    ]
    return node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])


@pytest.mark.parametrize(
    ("other", "opset", "named"),
    [
        (node("Identity", ["a"], []), 17, "Identity writes 0 tensors, not 1"),
        (node("Identity", [], ["y"]), 17, "Identity y reads 0 tensors"),
        (node("Where", ["a"], ["y"]), 17, "Where y reads 1 tensor, not 3"),
        (node("Where", ["a"], ["y"]), 1, "Where y has an operator that opset 1 does not have"),
        (node("Slice", ["a", "", ""], ["y"]), 17, "Slice y lacks an input"),
        (node("Cast", ["a"], ["y"]), 17, "Cast y lacks the attribute to"),
        (node("Relu", ["a"], ["y"], alpha=1.0), 17, "Relu y has the attribute alpha, which its operator does not have"),
        (node("Softmax", ["a"], ["y"], axis=1.0), 17, "Softmax y has an attribute axis of the type FLOAT, not INT"),
        (twice(node("Softmax", ["a"], ["y"], axis=1)), 17, "Softmax y has the attribute axis 2 times"),
        (choice(1, 2), 17, "If y has a else_branch with 2 outputs, not 1"),
        (node("Unheard", ["a"], ["y"]), 17, "Unheard y has an operator that opset 17 does not have"),
        (node("ScaledTanh", ["a"], ["y"]), 10, "ScaledTanh y has an operator that opset 10 does not have"),
        (twice(node("Concat", ["a", "a"], ["y"], axis=1)), 17, "Concat y has the attribute axis 2 times"),
        (node("Split", [], ["y", "z"], axis=1), 17, "Split y has no inputs"),
        (node("Split", ["", "a"], ["y", "z"], axis=1), 17, "Split y lacks an input"),
        (node("Concat", ["a", "", "a"], ["y"], axis=1), 17, "Concat y lacks an input"),
        (node("Max", ["a", "", "a"], ["y"]), 17, "Max y lacks an input"),
    ],
    ids=[
        "output",
        "inputs",
        "two-inputs",
        "operator",
        "unnamed-input",
        "missing",
        "unknown",
        "type",
        "twice",
        "bodies",
        "none",
        "removed",
        "Concat",
        "Split without inputs",
        "Split of nothing",
        "gap",
        "gap of a Max",
    ],
)
def test_a_node_that_contradicts_its_operator_is_one_clear_error(other, opset, named):
    with pytest.raises(InputError) as error:
        ask([SPLIT, other], [X], ["a", "b"], opset=opset)
    assert str(error.value).startswith(named)


@pytest.mark.parametrize(
    ("body", "path", "why"),
    [
        ("[n] b = And(x, x) y = Neg(x)", "n", "And n reads x of the type FLOAT, which its operator does not accept"),
        ("[a] y = Add(x, n)", "a", "Add a reads tensors of the types FLOAT and INT64, which must be one"),
        ("[c] y = Concat<axis = 0>(x, n)", "c", "Concat c reads tensors of the types FLOAT and INT64"),
        ("[s] y, z = Split(x, x)", "s", "Split s reads x of the type FLOAT, which its operator does not accept"),
        ("[s] y, i = Split(n)", "s", "Split s writes y of the type INT64, but the model declares FLOAT"),
        (
            "[k] y = If(c) <then_branch = t () => (float[2,3] r) { [m] r = Mul(x, n) }, "
            "else_branch = e () => (float[2,3] q) { q = Neg(x) }>",
            "k.then_branch/m",
            "Mul m reads tensors of the types FLOAT and INT64, which must be one",
        ),
    ],
    ids=["input", "two inputs", "Concat", "lengths", "output", "branch"],
)
def test_types_that_an_operator_does_not_take_fail_the_session(body, path, why):
    """Observed with 1.18.0, 1.20.1, 1.24.4 and 1.30.0."""
    made = text(f"(float[2,3] x, int64[2,3] n, bool c) => (float[?,?] y) {{ {body} }}")
    answer = OnnxSessions(made, lambda *_: None).of(find_runtime(VERSION)).placement
    assert (answer.created, answer.failure.node) == (False, path)
    assert answer.failure.message.startswith(why)


@pytest.mark.parametrize(
    ("other", "opset"),
    [
        (node("LayerNormalization", ["a", "s"], ["y"]), 13),
        (node("ThresholdedRelu", ["a"], ["y"]), 9),
        (node("ScaledTanh", ["a"], ["y"], alpha=1.0, beta=1.0), 9),
    ],
    ids=lambda each: getattr(each, "op_type", None),
)
def test_operators_that_onnxruntime_adds_are_loaded(other, opset):
    """Observed: it has these at opsets in which ONNX does not."""
    made = session([node("Relu", ["x"], ["a"]), other], [X, value("s", [6])], ["y"], opset=opset)
    assert OnnxSessions(made, lambda *_: None).of(find_runtime(VERSION)).placement.created is not False


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("[m] y = MatMul(x, x)", "m"),
        ("y = MatMul(x, x)", "y"),
        ("y = MatMul(x, x) z = MatMul(x, y)", ""),
        ("[r] y = Relu<alpha = 1>(x)", "r"),
        (
            "[k] y = If(c) <then_branch = t () => (float[2,3] r) { [m] r = Relu() }, "
            "else_branch = e () => (float[2,3] q) { q = Neg(x) }>",
            "k.then_branch/m",
        ),
    ],
    ids=["name", "output", "one of two", "attribute", "branch"],
)
def test_the_failure_names_the_node_as_its_findings_do(body, path):
    made = text(f"(float[2,3] x, bool c) => (float[?,?] y) {{ {body} }}")
    answer = OnnxSessions(made, lambda *_: None).of(find_runtime(VERSION)).placement
    assert (answer.created, answer.failure.node) == (False, path)
    assert [each.location.node for each in answer.diagnostics] == [path]


@pytest.mark.parametrize("attribute", ["__note", "note"])
def test_attributes_that_an_operator_may_have_besides(attribute):
    """Observed: names with two underscores anywhere, all names at a LayerNormalization."""
    other = node("LayerNormalization", ["a", "a"], ["y"], **{attribute: 1})
    assert outcome(ask([SPLIT, other], [X], ["b", "y"])) == [("S", "DML", "init", 0)]
    if attribute == "__note":
        other = node("Relu", ["a"], ["y"], **{attribute: 1})
        assert outcome(ask([SPLIT, other], [X], ["b", "y"])) == [("S", "DML", "init", 0)]


@pytest.mark.parametrize(
    "body",
    [
        "(float[4,6] x, bool c) => (float[?,?] y, float[1] nothing) { y = Relu(x) }",
        "(float[4,6] x, bool c) => (float[?,?] y) { r = Relu(x) y = If(c) "
        "<then_branch = t () => (float[4,6] r) {}, else_branch = e () => (float[4,6] n) { n = Neg(x) }> }",
    ],
    ids=["graph", "branch"],
)
def test_an_output_that_nothing_writes_fails_the_session(body):
    """Observed, also for a branch whose output is a tensor of the graph around it."""
    sessions = OnnxSessions(text(body), lambda *_: None)
    answer = sessions.of(find_runtime(VERSION)).placement
    assert answer.created is False
    assert "nothing writes the output" in answer.failure.message


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("r = MatMul(x, x) y = Relu(r)", "MatMul: Incompatible dimensions for matrix multiplication"),
        ("r = Relu(x) y = Transpose<perm = [2, 1, 0]>(r)", "Transpose: Invalid attribute perm {2, 1, 0}"),
        ("[named] r = own.Any(x) [added] y = Add(x, three) z = Relu(r)", "Add added: Incompatible dimensions"),
        ("b = Cast<to = 9>(x) y = Not(b)", "Not: Inferred elem type differs from existing elem type"),
        (
            "y = If(c) <then_branch = t () => (float[2,3] r) { r = MatMul(x, x) }, "
            "else_branch = e () => (float[2,3] n) { n = Neg(x) }>",
            "MatMul: Incompatible dimensions for matrix multiplication",
        ),
    ],
    ids=["sizes", "rank", "beside an unknown operator", "declared type", "in a branch"],
)
def test_a_node_that_cannot_be_inferred_fails_the_session(body, why):
    """Observed: ONNX Runtime infers every node when it loads a model."""
    head = "(float[2,3] x, float[4] three, bool c) => (float[?,?] y)"
    answer = OnnxSessions(text(f"{head} {{ {body} }}", domains=["own"]), lambda *_: None).of(find_runtime(VERSION))
    assert answer.placement.created is False
    assert answer.placement.failure.message.startswith(why)


@pytest.mark.parametrize(
    "name", ["two\nlines", "a): [ShapeInferenceError] n", "(op_type:Relu, node name: b", "\x1b[31m"]
)
def test_a_name_hides_no_node_that_cannot_be_inferred(name):
    nodes = [node("MatMul", ["x", "x"], ["r"], name=name), node("Relu", ["x"], ["y"])]
    answer = OnnxSessions(session(nodes, [X], ["y"]), lambda *_: None).of(find_runtime(VERSION)).placement
    assert answer.created is False
    assert answer.failure.message.isprintable()


@pytest.mark.parametrize(
    "body",
    ["r = Relu(x) y = Abs(r)", "r = com.microsoft.Gelu(x) y = Relu(r)"],
    ids=["declared sizes", "an operator that onnx does not know"],
)
def test_what_onnx_alone_cannot_infer_fails_no_session(body):
    """Observed: ONNX Runtime warns of declared sizes that differ, and knows operators of its own."""
    made = text(f"(float[2,3] x) => (float[7] y) {{ {body} }}", domains=["com.microsoft"])
    assert OnnxSessions(made, lambda *_: None).of(find_runtime(VERSION)).placement.created is True


def test_an_opset_that_no_int_holds_is_too_new():
    found = ask([SPLIT, node("Relu", ["a"], ["y"])], [X], ["b", "y"], opset=2**62)
    assert rules(found) == [["opset-too-new"]]


def test_what_keeps_a_model_from_being_predicted_is_found_once(monkeypatch):
    from dmlsplit.onnxruntime import onnx_session

    tried = []

    def refuse(proto):
        tried.append(proto)
        raise InputError("it contradicts itself")

    monkeypatch.setattr(onnx_session, "check_nodes", refuse)
    nodes = [node("Split", ["x"], [f"a{i}", f"b{i}"], axis=1, name=f"S{i}") for i in range(5)]
    for each in dmlsplit.formats.onnx.read(model(nodes, [X], ["a0"], opset=13, ir_version=8)):
        (unknown,) = graph_diagnostics(each.in_session.sessions, each.in_session.place, find_target())
        assert (unknown.rule, unknown.location.node) == ("graph/unknown", each.path)
        assert "it contradicts itself" in unknown.message
        assert (
            graph_diagnostics(each.in_session.sessions, each.in_session.place, find_target(onnxruntime=VERSION)) == ()
        )
        answer = judged_in_session(each, find_target(onnxruntime=VERSION)).answer
        assert [d.message for d in answer.diagnostics] == ["it contradicts itself"]
    assert len(tried) == 1


@pytest.mark.parametrize("outputs", [[], ["y", "z"], ["y", ""], [""]])
def test_a_concat_without_one_output_is_not_loaded(outputs):
    nodes = [node("Concat", ["x", "x"], outputs, axis=1, name="C"), node("Relu", ["x"], ["r"])]
    assert outcome(ask(nodes, [X], ["r"])) == [("C", "session-fails", "init", None)]


@pytest.mark.parametrize("element_type", [0, 99])
def test_an_initializer_of_a_type_that_there_is_not(element_type):
    weight = TensorProto(name="w", data_type=element_type, dims=[2, 3])
    concat = node("Concat", ["x", "w"], ["y"], axis=0, name="C")
    inputs, outputs = [value("x", [2, 3], element_type)], [value("y", None, element_type)]
    found = on_onnxruntime(session([concat], inputs, outputs, [weight], opset=13), VERSION)
    assert [str(each.answer.outcome) for each in found] == ["session-fails"] * (element_type != 0)


@pytest.mark.parametrize(
    ("call", "body", "fails"),
    [
        ("own.F(x)", "(v) => (w) { w = Relu(v) }", False),
        ("own.F(x)", "(v) => (w) { w = ai.onnx.Relu(v) }", True),
        ("Relu(x)", "(v) => (w) { w = ai.onnx.Relu(v) }", False),
        ("own.F(x)", "(v) => (w, u) { w = Relu(v) }", True),
        ("Relu(x)", "(v) => (w, u) { w = Relu(v) }", True),
    ],
)
def test_a_function_that_names_ai_onnx_or_does_not_write_an_output_is_not_loaded(call, body, fails):
    """Seen with versions 1.18.0 to 1.30.0: the former where it is called, the latter wherever it is."""
    function = f'<domain: "own", opset_import: ["" : 17, "ai.onnx" : 17]> F {body}'
    results = "r, s" if ", " in body and "own" in call else "r"
    words = f"(float[4,6] x) => (float[4,3] y, float[4,3] z) {{ {results} = {call}  y, z = Split<axis=1>(r) }}"
    found = on_onnxruntime(text(words, functions=function), VERSION)
    assert [str(each.answer.outcome) for each in found] == ["session-fails" if fails else "DML"]


@pytest.mark.parametrize(
    ("call", "body", "fails"),
    [
        ("r = own.F(x, x)", "w = Relu(v)", True),
        ("r, s = own.F(x)", "w = Relu(v)", True),
        ("r = own.F(x)", "w = own.F2(v, v)", True),
        ("r = Relu(x)", "w = own.F2(v, v)", False),
        ("r = own.F(x)", "w = own.F2(v)", False),
    ],
    ids=["inputs", "outputs", "in a function", "in one that is not called", "as many"],
)
def test_a_call_with_more_inputs_or_outputs_than_its_function_is_not_loaded(call, body, fails):
    """Seen with 1.18.0, 1.20.1, 1.24.4 and 1.30.0."""
    functions = f"""
        <domain: "own", opset_import: ["" : 17, "own" : 1]> F (v) => (w) {{ {body} }}
        <domain: "own", opset_import: ["" : 17]> F2 (v) => (w) {{ w = Relu(v) }}"""
    made = text(
        f"(float[4,6] x) => (float[4,3] y, float[4,3] z) {{ {call} y, z = Split<axis=1>(r) }}", functions=functions
    )
    placement = OnnxSessions(made, lambda *_: None).of(find_runtime(VERSION)).placement
    assert placement.created is not fails


@pytest.mark.parametrize(
    ("domain", "opset", "created"),
    [
        ("com.microsoft", 1, True),
        ("com.microsoft", 2, False),
        ("ai.onnx.ml", 5, True),
        ("ai.onnx.ml", 6, False),
        ("com.ms.internal.nhwc", 7, True),
        ("elsewhere", 7, True),
    ],
)
@pytest.mark.parametrize("in_function", [False, True], ids=["model", "function"])
def test_opsets_that_domains_do_not_have_are_not_loaded(domain, opset, created, in_function):
    """Seen with 1.18.0, 1.20.1, 1.24.4 and 1.30.0, also where nothing is of the domain."""
    functions = '<domain: "own", opset_import: ["" : 17]> F (v) => (w) { w = Relu(v) }'
    made = text("(float[4,6] x) => (float[4,6] y) { y = Relu(x) }", functions=functions)
    (made.functions[0] if in_function else made).opset_import.add(domain=domain, version=opset)
    assert OnnxSessions(made, lambda *_: None).of(find_runtime(VERSION)).placement.created is created


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ([SPLIT, node("Relu", ["b"], ["a"])], "a"),
        ([SPLIT, node("Relu", ["b"], ["k"])], "k"),
        ([node("Split", ["x"], ["a", "a"], axis=1)], "a"),
        ([node("Transpose", ["x"], ["t"]), node("Split", ["t"], ["a", "b"]), node("Relu", ["x"], ["t"])], "t"),
    ],
)
def test_a_name_that_is_computed_twice(nodes, name):
    with pytest.raises(InputError, match=f"^{name} is computed twice"):
        ask(nodes, [X, value("k", [4, 3])], ["a"])


TAKEN = "then_branch = t () => (float[2] p) { p = Relu(x) }"
IF = f"y = If(c) <{TAKEN}, else_branch = e () => (float[2] q) {{ %s }}>"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = Add(x, y)", "y reads what is computed from its own result"),
        ("a = Add(x, b) b = Relu(a) y = Relu(x)", "a reads what is computed from its own result"),
        ("y = Relu(a) a = Add(x, b) b = Relu(a)", "a reads what is computed from its own result"),
        ("y = Relu(a) a = Relu(x)", ""),
        ("y = Add(x, k) k = Constant<value_float = 1.0>()", ""),
        (IF % "q = Add(x, y)", "y reads what is computed from its own result"),
        (IF % "q = Relu(r) r = Relu(q)", "q reads r, which is not computed before it"),
        (IF % "q = Relu(r) r = Relu(x)", "q reads r, which is not computed before it"),
        (IF % "q = Add(x, k) k = Constant<value_float = 1.0>()", "q reads k, which is not computed before it"),
        (
            IF
            % f"s = If(c) <{TAKEN}, else_branch = e2 () => (float[2] q2) {{ q2 = Relu(r) }}> r = Neg(x) q = Add(s, r)",
            "s reads r",
        ),
        (IF % "q = Relu(r)" + " r = Relu(x)", ""),
    ],
)
def test_the_order_of_nodes(body, message):
    """Asked of 1.20.1, 1.24.4 and 1.30.0: in any order, but for cycles and for graphs inside nodes."""
    made = text(f"(float[2] x, bool c) => (float[2] y) {{ {body} }}")
    session = OnnxSessions(made, lambda *_: None)
    if not message:
        assert session.of(find_runtime(VERSION)).placement.created is True
        return
    found = session.of(find_runtime(VERSION)).placement
    assert (found.created, found.failure.message.startswith(message)) == (False, True)


def test_a_name_that_two_inputs_have():
    with pytest.raises(InputError, match=r"^k is an input twice"):
        ask([SPLIT], [X, value("k", [4]), value("k", [4])], ["a"])


CONSTANTS = [node("Constant", [], ["k"], value_float=1.0, name="same"), node("Add", ["a", "k"], ["c"], name="add")]


@pytest.mark.parametrize(
    ("nodes", "given", "fails"),
    [
        ([SPLIT, *CONSTANTS], {}, False),
        ([SPLIT, *CONSTANTS], {"k": np.float32(2)}, False),
        ([SPLIT, CONSTANTS[0], *CONSTANTS], {}, False),
        ([SPLIT, node("Relu", ["a"], ["c"], name="same"), node("Neg", ["c"], ["d"], name="same")], {}, True),
        ([SPLIT, node("Relu", ["a"], ["c"], name=SPLIT.name)], {}, True),
        ([SPLIT, node("Relu", ["a"], ["c"]), node("Neg", ["c"], ["d"])], {}, False),
    ],
    ids=["a Constant", "and an initializer", "two Constants", "two nodes", "the Split's", "no names"],
)
def test_names_of_nodes(nodes, given, fails):
    """A Constant is an initializer, also of a name that there is; two nodes of one name are not loaded (observed of
    1.19.2 and 1.24.4)."""
    found = ask(nodes, [X], ["b", nodes[-1].output[0]], initializers=given)
    assert [str(each.answer.outcome) for each in found] == ["session-fails" if fails else "DML"]
    if fails:
        assert "two nodes have the name" in found[0].answer.diagnostics[-1].message


@pytest.mark.parametrize("called", [True, False])
def test_names_of_nodes_of_a_function_that_is_called(called):
    body = [node("Relu", ["v"], ["u"], name="same"), node("Neg", ["u"], ["w"], name="same")]
    made = helper.make_function("own", "F", ["v"], ["w"], body, [helper.make_opsetid("", 17)])
    nodes = [SPLIT, node("F", ["a"], ["c"], domain="own") if called else node("Abs", ["a"], ["c"])]
    found = ask(nodes, [X], ["b", "c"], functions=[made])
    assert [str(each.answer.outcome) for each in found] == ["session-fails" if called else "DML"]


def test_a_branch_may_have_the_name_of_a_node_around_it_and_no_two_of_its_own():
    inputs = [X, value("k", [], TensorProto.BOOL)]
    for names, expected in (((SPLIT.name, "n"), "DML"), (("n", "n"), "session-fails")):
        body = [node("Relu", ["a"], ["r"], name=names[0]), node("Neg", ["r"], ["s"], name=names[1])]
        branch = helper.make_graph(body, "one", [], [onnx.ValueInfoProto(name="s")])
        found = ask([SPLIT, node("If", ["k"], ["y"], then_branch=branch, else_branch=branch)], inputs, ["y", "b"])
        assert [str(each.answer.outcome) for each in found] == [expected]


def test_a_sigmoid_of_another_domain_has_any_outputs():
    nodes = [SPLIT, node("Sigmoid", ["b"], [], domain="own"), node("Mul", ["a", "b"], ["y"])]
    made = session(nodes, [X], ["y"])
    made.opset_import.append(helper.make_opsetid("own", 1))
    assert [str(found.answer.outcome) for found in on_onnxruntime(made, VERSION)] == ["unknown"]


def test_a_name_that_nothing_gives():
    with pytest.raises(InputError, match=r"^nothing computes missing"):
        ask([SPLIT, node("Concat", ["a", "missing"], ["y"], axis=1)], [X], ["y"])


def test_a_name_that_nothing_gives_within_a_branch():
    """What is around a branch is known in it, and what is in another one is not."""
    one = helper.make_graph([node("Relu", ["a"], ["r"])], "one", [], [onnx.ValueInfoProto(name="r")])
    other = helper.make_graph([node("Relu", ["r"], ["s"])], "other", [], [onnx.ValueInfoProto(name="s")])
    inputs = [X, value("k", [], TensorProto.BOOL)]
    with pytest.raises(InputError, match=r"^nothing computes r"):
        ask([SPLIT, node("If", ["k"], ["y"], then_branch=one, else_branch=other)], inputs, ["y"])
    found = ask([SPLIT, node("If", ["k"], ["y"], then_branch=one, else_branch=one)], inputs, ["y"])
    assert [str(each.answer.outcome) for each in found] == ["DML"]


def test_numbers_of_tensors_where_the_model_imports_no_opset():
    made = session([SPLIT, node("Identity", ["a"], [])], [X], ["b"])
    del made.opset_import[:]
    made.opset_import.append(helper.make_opsetid("own", 1))
    with pytest.raises(InputError, match="Identity writes 0 tensors"):
        on_onnxruntime(made, VERSION)


@pytest.mark.parametrize("extra", [node("Relu", ["b"], ["a"]), node("Relu", ["missing"], ["r"])])
@pytest.mark.parametrize("version", ["1.18.1", VERSION])
def test_a_model_that_is_not_loaded_fails_at_every_node(extra, version):
    (found,) = dmlsplit.formats.onnx.read(session([SPLIT, extra], [X], ["b"]))
    answer = found.on_onnxruntime(version)
    assert (str(answer.outcome), answer.at, answer.operators) == ("session-fails", "init", ())
    assert [d.rule for d in answer.diagnostics] == ["onnxruntime/session-fails-elsewhere"]
    assert answer.diagnostics[0].severity is Severity.ERROR
    for target in ({}, {"directml": "1.15.4"}, {"feature_level": "2_1"}):
        (known,) = graph_diagnostics(found.in_session.sessions, found.in_session.place, find_target(**target))
        assert (known.rule, known.severity) == ("graph/not-loaded", Severity.ERROR)
