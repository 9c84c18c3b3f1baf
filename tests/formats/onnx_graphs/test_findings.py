"""What check says of models whose graphs come out wrong, and of their right twins."""

from __future__ import annotations

import json

import onnx
import pytest

from dmlsplit import Severity, check_files
from dmlsplit.cli import main
from dmlsplit.onnxruntime import SessionOptions, find_runtime
from dmlsplit.onnxruntime.findings import findings
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.targets.runtime_versions import NEWEST
from tests.effort import calls
from tests.formats.onnx_graphs import models, patterns
from tests.formats.onnx_graphs.recorded import parts_of, session_model
from tests.models import Sketch, text


def block(words: str, cure: str = "none") -> onnx.ModelProto:
    return patterns.pattern({"model": words, "cure": cure})


GLU = "(float[1,8,4,4] x) => (float[1,4,4,4] o) { a, b = Split<axis=1>(x)  s = Sigmoid(b)  o = Mul(a, s) }"
OPEN_GLU = GLU.replace("[1,", "[N,")
JOINED = """(float[1,4,4,4] x, float[1,4,4,4] y) => (float[1,8,4,4] r, float[1,4,4,4] z)
{ z = Tanh(x)  j = Concat<axis=1>(z, y)  r = Relu(j) }"""
CUT = "(float[1,8,4,4] x) => (float[1,4,4,4] o) { v = Sigmoid(x)  a, b = Split<axis=1>(v)  o = Tanh(a) }"
SCALED = """(float[1,8,4,4] x, float[1,4,4,4] y) => (float[1,4,4,4] o, float[1,4,4,4] b)
{ a, b = Split<axis=1>(x)  p = Mul(y, a)  s = Sigmoid(a)  o = Mul(p, s) }"""
REPEATED = "(float[1,4,4,4] x) => (float[1,8,4,4] o) { v = Tanh(x)  o = Concat<axis=1>(v, v) }"

WRONG = {
    "a GLU": (text(GLU), FaultKind.GATE, "a", "two-slices"),
    "a Conformer's convolution": (block("Conformer convolution"), FaultKind.GATE, None, "two-slices"),
    "an attention gate": (block("attention gate"), FaultKind.GATE, None, "two-slices"),
    "a SwiGLU in another order": (block("SwiGLU reordered"), FaultKind.GATE, None, "two-slices"),
    "a scaled SiLU": (text(SCALED), FaultKind.PRODUCT, "a", "reshape-factor"),
    "a residual around a Concat": (
        block("residual: v + Conv(Relu(Concat"),
        FaultKind.OVERWRITTEN,
        None,
        "operator-first",
    ),
    "a scaled residual": (block("residual: v + Conv(MulC(Concat"), FaultKind.OVERWRITTEN, None, "max-input"),
    "a state beside a Concat": (block("streaming state"), FaultKind.OVERWRITTEN, None, "max-input"),
    "an output beside a Concat": (text(JOINED), FaultKind.OVERWRITTEN, "j", "operator-first"),
    "Sigmoid, Split, Tanh": (text(CUT), FaultKind.REFUSED, "a", "gather"),
    "Sigmoid, Split, Relu": (text(CUT.replace("Tanh", "Relu")), FaultKind.REFUSED, "a", "operator-first"),
    "an output before a Sigmoid": (text(JOINED.replace("Relu", "Sigmoid")), FaultKind.OVERWRITTEN, "j", "max-input"),
    "a dead Split": (models.dead({"model": "dead Split of the input"}), FaultKind.DEAD, None, "remove-dead"),
}
"""The model, the fault, the node that it is said of where it has a name, and the cure."""

RIGHT = {
    "a GLU of open sizes": text(OPEN_GLU),
    "SwiGLU": block("SwiGLU: "),
    "GEGLU": block("GEGLU"),
    "WaveNet": block("WaveNet"),
    "DenseNet": block("DenseNet block"),
    "DenseNet, flat": block("DenseNet without BN: flat"),
    "U-Net": block("U-Net"),
    "C2f": block("YOLO C2f"),
    "SPPF": block("SPPF"),
    "rotary, by Split": block("rotary by Split, q from Mul"),
    "rotary, by Slice": block("rotary by Slice, q from input"),
    "an input of the Concat that is used earlier": block("residual: v + Conv(BN(Concat"),
    "names the other way round": text(JOINED.replace("z", "a")),
    "a constant that is joined": text(
        "(float[2,6] x) => (float[2,8] r) <float[2,2] w = {1,2,3,4}> { j = Concat<axis=1>(w, x)  r = Relu(j) }"
    ),
    "a Split that is refused by itself": text(
        "(float[3,2] x) => (float[3,2] b) <int64[2] l = {0,2}> { , b = Split<axis=1>(x, l) }"
    ),
    "blocks of no whole vectors": text(
        CUT.replace("Tanh(a)", "Tanh(b)").replace("4,4]", "3,1]").replace("1,8,", "1,6,").replace("1,4,", "1,3,")
    ),
    "an input of the Concat of no whole vectors": text(
        JOINED.replace("1,4,4,4", "1,3,3,3").replace("1,8,4,4", "1,6,3,3")
    ),
}


def found_in(model: onnx.ModelProto, version: str = "1.24.4", **options):
    return findings(session_model(model), find_runtime(version), SessionOptions(**options))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_models_are_found_with_the_cure(name):
    model, fault, path, cure = WRONG[name]
    finding, *others = found_in(model)
    assert (finding.fault.kind, others) == (fault, [])
    assert path in (None, finding.path)
    assert (finding.cure.name if finding.cure else None) == cure
    assert finding.diagnostic.severity is Severity.ERROR
    assert finding.diagnostic.rule == fault.rule


@pytest.mark.parametrize("name", RIGHT)
def test_their_right_twins_are_not(name):
    assert found_in(RIGHT[name]) == ()


TWO_GATES = """(float[1,16,4,4] x) => (float[1,4,4,4] o)
{ a, b = Split<axis=1>(x)  s = Sigmoid(b)  p = Mul(a, s)  c, d = Split<axis=1>(p)  t = Sigmoid(d)  o = Mul(c, t) }"""


def test_a_fault_behind_another_is_found_as_well():
    """Both gates are wrong, in one graph; its output is wrong by the first one."""
    first, second = found_in(text(TWO_GATES))
    assert (first.path, first.outputs, second.path, second.outputs) == ("a", ("o",), "c", ("o",))
    assert [each.fault.kind for each in (first, second)] == [FaultKind.GATE] * 2


def test_without_fusion_nothing_is_wrong():
    assert found_in(text(GLU), graph_fusion=False) == ()
    assert found_in(WRONG["a dead Split"][0], graph_fusion=False) == ()


def test_the_releases_are_named():
    (gate,) = found_in(text(GLU))
    (affected,) = gate.affected
    assert (affected.directml[0], affected.directml[-1]) == ("1.13.1", "1.15.4")
    assert (affected.versions[0], affected.versions[-1]) == ("1.17.0", NEWEST.version)
    assert (affected.assumed[0], *affected.assumed[-2:]) == ("1.17.0", "1.17.3", "1.18.1")
    assert gate.fault.tensors == ("b", "a")
    (joined,) = found_in(text(JOINED))
    assert (joined.outputs, joined.leave, joined.culprit.op) == (("z",), True, "Relu")


@pytest.mark.parametrize(
    ("directml", "wrong"), [("1.8.0", False), ("1.12.1", False), ("1.13.1", True), ("1.15.4", True)]
)
def test_check_by_release(tmp_path, directml, wrong):
    path = tmp_path / "glu.onnx"
    onnx.save(text(GLU), path)
    (report,) = check_files([path], directml=directml)
    assert report.ok is not wrong
    assert {d.rule for d in report.diagnostics if d.rule.startswith("graph/")} == (
        {"graph/fused-wrongly"} if wrong else set()
    )


def test_only_directml_1_10_1_forgets_a_place(tmp_path):
    path = tmp_path / "twice.onnx"
    onnx.save(text(REPEATED), path)
    for directml, wrong in (("1.9.0", False), ("1.10.1", True), ("1.12.0", False)):
        (report,) = check_files([path], directml=directml)
        assert any(d.rule == "graph/place-not-written" for d in report.diagnostics) is wrong


@pytest.mark.parametrize("format", ["text", "json", "sarif", "html"])
def test_every_format_shows_it(tmp_path, capsys, format):
    path = tmp_path / "glu.onnx"
    onnx.save(text(GLU), path)
    assert main(["check", str(path), "--onnxruntime", "1.24.4", "--format", format]) == 1
    out = capsys.readouterr().out
    assert "graph/fused-wrongly" in out
    if format == "json":
        (answer,) = json.loads(out)
        assert answer["ok"] is False


def test_in_a_function_the_node_is_named_by_its_call():
    function = """<domain: "own", opset_import: ["" : 17]> glu (x) => (o)
        { a, b = Split<axis=1>(x)  s = Sigmoid(b)  o = Mul(a, s) }"""
    model = text("(float[1,8,4,4] x) => (float[1,4,4,4] o) { o = own.glu(x) }", functions=function)
    model.graph.node[0].name = "gate"
    (finding,) = found_in(model)
    assert finding.path.startswith("gate/")


def test_without_a_split_a_finding_is_on_the_node_at_fault():
    product = (
        "(float[1,8,4,4] x, float[1,8,4,4] y) => (float[1,8,4,4] o) { p = Mul(y, x)  s = Sigmoid(x)  o = Mul(p, s) }"
    )
    (finding,) = found_in(text(product))
    assert (finding.path, finding.fault.kind) == ("o", FaultKind.PRODUCT)


def test_an_unwritten_output_is_reported_beside_a_concat():
    s = Sketch()
    x, y = s.input("x", 1, 4, 4, 4), s.input("y", 1, 4, 4, 4)
    h = s("Add", x, y)
    s.outputs = [h, s.named(s.concat(s("Relu", h), y), "o")]
    (finding,) = found_in(s.inferred())
    assert (finding.fault.kind, finding.outputs) == (FaultKind.UNWRITTEN, (h,))
    assert found_in(s.inferred(), optimization=1) == ()


def test_names_of_a_model_are_not_taken_for_places_in_a_graph():
    model = text(GLU)
    for node in model.graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = name.replace("b", "graph input 7 of node 99")
    (finding,) = found_in(model)
    assert finding.fault.tensors == ("graph input 7 of node 99", "a")


def test_work_is_linear_in_the_faults():
    def work(count):
        nodes = [
            f"a{i}, b{i} = Split<axis=1>(h{i})  s{i} = Sigmoid(b{i})  o{i} = Mul(a{i}, s{i})  " for i in range(count)
        ]
        nodes = [node + f"h{i + 1} = Concat<axis=1>(o{i}, y)" for i, node in enumerate(nodes)]
        outputs = ", ".join(f"float[1,4,4,4] o{i}" for i in range(count))
        model = session_model(
            onnx.shape_inference.infer_shapes(
                text(f"(float[1,8,4,4] h0, float[1,4,4,4] y) => ({outputs}) {{ {' '.join(nodes)} }}")
            )
        )
        return calls(lambda: findings(model, find_runtime("1.24.4")))

    assert work(80) < 3 * work(40)


def rules_of(model: onnx.ModelProto) -> list[str]:
    return [finding.diagnostic.rule for finding in found_in(model)]


BEHIND = "(float[1,8,4,4] x, float[8,8,1,1] w) => (float[1,4,4,4] o) { t = Transpose<perm=[0,1,3,2]>(x)  "
GATE = "a, b = Split<axis=1>(u)  s = Sigmoid(b)  o = Mul(a, s) }"


@pytest.mark.parametrize("body", ["Conv(t, w)", "Tanh(t)"])
def test_a_transpose_that_stays_in_front(body):
    assert rules_of(text(f"{BEHIND} u = {body}  {GATE}")) == ["graph/fused-wrongly"]


def test_a_neighbour_may_have_several_outputs():
    words = "v, i = TopK(x, k)  a, b = Split<axis=1>(v)  y = Concat<axis=0>(a, b)"
    made = text(f"(float[6,8] x) => (float[12,1] y, int64[6,2] i) <int64[1] k = {{2}}> {{ {words} }}")
    assert rules_of(made) == []


def test_numbers_that_inference_finds_count_whatever_names_the_file_has():
    model = text(GLU)
    for value in (*model.graph.output, onnx.helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, list("NCHW"))):
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_param = "unknown"
        model.graph.value_info.append(value)
    assert rules_of(model) == ["graph/fused-wrongly"]


def test_the_sizes_of_a_constant_count_though_they_are_not_worked_out_here():
    """ONNX Runtime has folded the Range before it places nodes."""
    computed = "n = Shape(x)  l = ReduceMax<keepdims=0>(n)  m = Cast<to=1>(l)  r = Range(zero, m, two)  k = Add(b, r)"
    model = text(GLU.replace("s = Sigmoid(b)", f"{computed}  s = Sigmoid(k)"))
    for name, value in (("zero", 0), ("two", 2)):
        model.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, [], [value]))
    (part,) = parts_of(session_model(model), find_runtime("1.24.4"), SessionOptions())
    assert not part.doubtful
    assert [graph.ops for graph in part.fused] == [("Split", "Add", "Sigmoid", "Mul")]


@pytest.mark.parametrize("target", [("--onnxruntime", "1.24.4"), ("--directml", "1.15.4")], ids=" ".join)
@pytest.mark.parametrize(("body", "rule"), [(CUT, "graph/memory-too-small"), (GLU, "graph/fused-wrongly")])
def test_table_counts_json_and_status_agree(tmp_path, capsys, body, rule, target):
    path = tmp_path / "model.onnx"
    onnx.save(text(body), path)
    assert main(["check", str(path), *target]) == 1
    *lines, summary = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if line.endswith(", graph not ok")]
    assert "  not ok  " in row
    assert summary.startswith("1 operator: 1 not ok; 1 error")
    assert main(["check", str(path), *target, "--format", "jsonl"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ok"], [d["rule"] for d in answer["diagnostics"]]) == (False, [rule])


def test_a_verdict_may_depend_on_the_target(tmp_path, capsys):
    path = tmp_path / "model.onnx"
    onnx.save(text(GLU), path)
    main(["check", str(path), "--directml", "1.12.1", "--directml", "1.15.4"])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("a ")]
    assert "  depends  " in row


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        (text(CUT), "graph/memory-too-small"),
        (models.dead({"model": "dead Split of the input"}), "graph/empty"),
    ],
)
def test_a_refused_graph_is_reported_once(tmp_path, model, rule):
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    errors = [error for report in check_files([path], onnxruntime="1.24.4") for error in report.errors]
    assert [error.rule for error in errors] == [rule]


def scaled_gates(count: int) -> onnx.ModelProto:
    """A Concat, and behind it one scaled SiLU after another, each of which loses an operand."""
    steps = [f"p{i} = Mul(y, x{i})  s{i} = Sigmoid(x{i})  x{i + 1} = Mul(p{i}, s{i})" for i in range(count)]
    body = "  ".join(["x0 = Concat<axis=1>(a, b)", *steps])
    return text(f"(float[1,4,4,4] a, float[1,4,4,4] b, float[1,8,4,4] y) => (float[1,8,4,4] x{count}) {{ {body} }}")


def test_the_nearest_concat_is_found_in_linear_time():
    runtime = find_runtime("1.24.4")
    (small,), (large,) = (
        [graph for part in parts_of(session_model(model), runtime, SessionOptions()) for graph in part.fused]
        for model in (scaled_gates(50), scaled_gates(200))
    )
    judged = frozenset({"Concat"})
    work = [
        calls(lambda graph=graph: [graph.nearest(node, judged) for node in range(len(graph.ops))])
        for graph in (small, large)
    ]
    assert {large.nearest(node, judged) for node in range(len(large.ops))} == {large.ops.index("Concat")}
    assert work[1] <= 5 * work[0]


def test_nodes_of_functions_are_in_the_order_in_which_they_are_put_in():
    """A function's own nodes are added before those of the functions that it calls: seen with 1.20.1 and 1.24.4."""
    functions = """
        <domain: "own", opset_import: ["" : 17, "own" : 1]>
        F (u) => (w) { a = own.G(u)  b = Relu(u)  w = Concat <axis = 1> (a, b) }
        <domain: "own", opset_import: ["" : 17]>
        G (v) => (t) { t = Tanh(v) }"""
    body = "(float[1,4,2,2] x) => (float[1,8,2,2] y) { h = Sigmoid(x)  y = own.F(h) }"
    model = text(body, functions=functions)
    (part,) = parts_of(session_model(model), find_runtime("1.24.4"), SessionOptions())
    assert [graph.ops for graph in part.fused] == [("Sigmoid", "Tanh", "Relu", "Concat")]


@pytest.mark.parametrize(
    ("outputs", "read", "unwritten"), [("float[2,6] a, ", "x", ("a",)), ("float[2,6] a, ", "a", ()), ("", "x", ())]
)
def test_an_activation_is_put_into_a_node_beside_an_if(outputs, read, unwritten):
    """Not where a graph in the If reads what is between them. Observed: 1.24.4 makes one operator, or two."""
    body = "{0} () => (float[?,?] {0}0) {{ {0}0 = {1}(" + read + ") }}"
    choice = f"z = If (c) <then_branch = {body.format('t', 'Neg')}, else_branch = {body.format('e', 'Abs')}>"
    head = f"(float[2,6] x, bool c) => ({outputs}float[2,6] r, float[?,?] z, float[2,3] p, float[2,3] q)"
    found = found_in(text(f"{head} {{ a = Add(x, x)  r = Relu(a)  p, q = Split<axis=1>(x)  {choice} }}"))
    assert tuple(name for finding in found for name in finding.outputs) == unwritten
    assert {finding.fault.kind for finding in found} == ({FaultKind.UNWRITTEN} if unwritten else set())


OPEN = (
    "(float[n,4] x, float[1,4] s) => (float[n,4] y, float[1,4] t, float[n,2] z) "
    "<int64[1] o={0}, int64[1] l={2}, int64[1] a={1}>"
)


@pytest.mark.parametrize("fused", [True, False])
def test_an_output_that_may_have_no_elements_is_named_with_its_size(fused):
    model = text(f"{OPEN} {{ y = Relu(x)  t = Tanh(s)  z = Slice(x, o, l, a) }}")
    found = {finding.fault.tensors: finding for finding in found_in(model, graph_fusion=fused)}
    assert set(found) == {("y", "t"), ("z", "t")}
    assert {finding.fault.condition for finding in found.values()} == {"n = 0"}
    assert {finding.diagnostic.severity for finding in found.values()} == {Severity.NOTE}
    assert found_in(text("(float[n,4] x) => (float[n,4] y, float[n,4] t) { y = Relu(x)  t = Tanh(x) }")) == ()


def test_an_output_without_elements_at_the_first_run_loses_the_others(tmp_path):
    path = tmp_path / "open.onnx"
    onnx.save(text(f"{OPEN} {{ y = Relu(x)  t = Tanh(s)  z = Slice(x, o, l, a) }}"), path)
    (report,) = check_files([path], onnxruntime="1.24.4", dims={"n": 0})
    assert {d.rule for d in report.diagnostics if d.rule.startswith("graph/")} == {"graph/empty-output"}
    assert not report.ok
    assert all("request only the other outputs from Run" in d.message for d in report.errors)
    assert list(check_files([path], onnxruntime="1.24.4", dims={"n": 3})) == []


def test_outputs_that_the_cpu_computes_are_in_no_batch():
    """DirectML has no kernel for Bernoulli, and Shape leaves its result on the CPU."""
    model = text(
        "(float[1,4] x, float[0,4] q) => (float[0,4] e, int64[2] s, float[1,4] b)"
        " { e = Relu(q)  s = Shape(x)  b = Bernoulli(x) }"
    )
    assert found_in(model) == ()
