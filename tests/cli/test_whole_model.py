"""The head of a model's report: whether there is a session, where its nodes run, and what is asked of that in CI."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from dmlsplit import check_files
from dmlsplit.targets.runtime_versions import NEWEST
from tests import models

NEW = ("--onnxruntime", "1.24.4")
ISLAND = "(float[1,4,8,8] x, float[4,4,1,1] w) => (float[1,4,8,8] y) { a = Relu(x) c = Conv(a, w) y = Sigmoid(c) }"
WITH_SPLIT = "(float[4,2] x) => (float[2,2] a, float[2,2] b) { y = Relu(x) a, b = Split(y) }"
WITHOUT_KERNEL = "(double[2] x) => (double[2] y) { y = Acos(x) }"


@pytest.fixture
def model(tmp_path):
    def written(body, opset=13, name="m.onnx"):
        (tmp_path / name).write_bytes(models.text(body, opset).SerializeToString())
        return name

    return written


def head(cli, *arguments):
    return [line.removeprefix("m.onnx: ").strip() for line in cli("check", *arguments).out.splitlines()]


def test_the_first_lines(cli, model):
    lines = head(cli, model(ISLAND, 22), *NEW)
    assert lines[:3] == [
        "onnxruntime 1.24.4: session created; 3 nodes: 2 on DirectML, 1 on the CPU",
        "2 fused graphs of 1, 1 nodes, right; copies: 1 to the CPU, 1 from it; "
        "graph capture: no, 2 tensors are copied between the CPU and the device",
        "on the CPU: 1 Conv: the operator changed at this opset, and DirectML's kernels are for an older one "
        "(version 22, kernels for 11) (c)",
    ]
    assert lines[-1] == "0 operators; 2 warnings; 3 nodes: 2 on DirectML, 1 on the CPU; 2 fused graphs: 2 right"


def test_of_many_graphs_the_first_sizes_are_shown(cli, model):
    islands = " ".join(f"a{i} = Relu(x{i}) x{i + 1} = Conv(a{i}, w)" for i in range(7))
    body = f"(float[1,4,8,8] x0, float[4,4,1,1] w) => (float[1,4,8,8] x7) {{ {islands} }}"
    assert head(cli, model(body, 22), *NEW)[1].startswith("7 fused graphs of 1, 1, 1, 1, 1, 1, ... nodes, right; ")


def test_what_comes_of_the_graphs(cli, model):
    ends = "(float[1,4,4,8] x, float[1,4,4,8] y) => (float[1,8,4,8] a, float[1,4,4,8] b)"
    body = f"{ends} {{ v = Hardmax(x) j = Concat<axis=1>(v, y) a = Relu(j) b = Neg(v) }}"
    unknown = model(body, 13)
    assert "unknown (Hardmax); copies" in head(cli, unknown, *NEW)[1]
    wrong = model(body.replace("Hardmax", "Tanh"), 13, "wrong.onnx")
    assert head(cli, unknown, wrong, *NEW)[-1].endswith("; 2 fused graphs: 1 wrong, 1 unknown")
    found = cli("check", unknown, *NEW, "--fail-on", "unknown", "--format", "github")
    assert (found.status, "whether 1 of its fused graphs is right is not known" in found.out) == (1, True)


def test_of_a_graph_that_ends_the_process_one_error_is_said(cli, model):
    ends = "(float[1,4,4,8] z, float[1,8,4,8] x) => (float[1,4,4,8] o) <int64[2] k = {4,4}>"
    gate = "r = Tanh(z)  a, b = Split<axis=1>(x, k)  p = Mul(r, b)  s = Sigmoid(r)  o = Mul(p, s)"
    lines = head(cli, model(f"{ends} {{ {gate} }}", 17), *NEW)
    errors = [line.split()[0] for line in lines if line.startswith("error[")]
    assert errors == ["error[graph/fusion-crashes]"]
    other = f"{ends.replace('o)', 'o, float[?,?,?,?] c, float[?,?,?,?] d)')} {{ {gate} c, d = Split<axis=1>(r, h) }}"
    lines = head(cli, model(other.replace("{4,4}>", "{4,4}, int64[2] h = {2,2}>"), 17), *NEW)
    refused = [line for line in lines if line.startswith("error[onnxruntime/graph-refused]")]
    assert len(refused) == 1, lines
    assert refused[0].endswith(
        "CompileGraph crashes the process for a fused graph, at o (graph/fusion-crashes); "
        "apply the remedy of the rule that the message names, at the node that breaks it"
    )


def test_a_session_that_fails(cli, model):
    lines = head(cli, model(WITHOUT_KERNEL), *NEW)
    assert lines[-1].endswith("; 1 node would be placed: 1 on the CPU")
    assert lines[0] == (
        "onnxruntime 1.24.4: session fails at y: neither DirectML nor the CPU has a kernel for y, "
        "Acos of DOUBLE in opset 13; 1 node would be placed: 1 on the CPU"
    )


@pytest.mark.parametrize(
    ("body", "opset", "version", "why"),
    [
        (WITHOUT_KERNEL, 13, "1.24.4", "neither DirectML nor the CPU has a kernel for y, Acos of DOUBLE in opset 13"),
        (ISLAND, 22, "1.18.0", "the model has opset 22, but 1.18.0 supports up to 21"),
        (
            WITH_SPLIT.replace("Split", "Split<num_outputs=2>"),
            22,
            "1.14.1",
            "the model has opset 22, but 1.14.1 supports up to 18",
        ),
    ],
    ids=["no kernel", "not loaded", "not observed"],
)
def test_a_session_that_fails_is_an_error(cli, model, body, opset, version, why):
    """Also where no Split or Concat says so: the model has none, or what the version does of nodes is not known."""
    found = cli("check", model(body, opset), "--onnxruntime", version)
    (said,) = [line for line in found.out.splitlines() if "error[" in line]
    assert "error[model/session-fails] " in said
    assert f"the session is not created: {why}" in said
    assert "; run dmlsplit why" not in said  # no other node causes it
    assert found.status == 1


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("(float[4] x) => (float[?] y) { y = Relu(x, x) }", "model/session-fails"),
        ("(float[4] x) => (float[?] y, float[?] a, float[?] b) { y = Relu(x, x) a, b = Split(x) }", "graph/not-loaded"),
    ],
)
def test_a_node_that_its_operator_does_not_allow_fails_the_session(cli, model, body, rule):
    """In no version; a Split of the model says it for a level or a release, too."""
    path, why = model(body, 13), "Relu y reads 2 tensors, not 1; the model is not loaded"
    assert head(cli, path, *NEW)[0] == f"onnxruntime 1.24.4: session fails at y: {why}"
    said = cli("check", path, *(() if "Split" in body else ("--onnxruntime", "1.24.4")))
    assert f"error[{rule}]" in said.out
    assert why in said.out
    assert said.status == 1
    for targets in (["--onnxruntime", "1.24.4"], ["--feature-level", "2_0"]):
        mended = cli("legalize", path, *targets, "-o", "fixed.onnx")
        assert mended.out.splitlines()[1:] == [f"  y: {why}"]
        assert mended.status == 1


def test_a_session_that_fails_at_a_split_is_said_of_the_split(cli, model):
    found = cli("check", model(WITH_SPLIT, 22), "--onnxruntime", "1.18.0")
    assert "error[onnxruntime/opset-too-new]" in found.out
    assert "model/session-fails" not in found.out


def test_a_split_and_its_graph_are_known_alike(cli, model):
    """Nothing works in place on a part of what is quantized again: the graph is compiled in any layout."""
    file = model(
        """(uint8[2,4] x) => (uint8[2,2] y, uint8[2,2] z) <float s = {0.1}, float t = {0.2}, uint8 k = {3}> {
            d = DequantizeLinear(x, s, k) a, b = Split<axis=1>(d)
            y = QuantizeLinear(a, t, k) z = QuantizeLinear(b, t, k) }""",
        13,
    )
    out = cli("check", file, *NEW).out
    assert out.endswith("1 operator: 1 ok; 4 nodes: 4 on DirectML; 1 fused graph: 1 right\n")


def test_a_folded_node_is_folded_in_the_table_as_in_the_head(cli, model):
    folded = "(float[4] x) => (float[4] y) <float[2] k = {1, 2}> { c = Concat<axis = 0>(k, k) y = Add(x, c) }"
    lines = head(cli, model(folded), *NEW)
    assert lines[0] == "onnxruntime 1.24.4: session created; 2 nodes: 1 on DirectML, 1 folded"
    assert next(line.split()[-1] for line in lines if line.startswith("c ")) == "folded"


def test_nothing_comes_of_the_graphs_of_a_session_that_fails(cli, model):
    """But where one of them is why it fails: that is counted."""
    file = model("(float[1,2,2,2,3,4] a, float[1,2,2,2,4,5] b) => (float[1,2,2,2,3,5] y) { y = MatMul(a, b) }")
    out = cli("check", file, *NEW).out
    assert "session fails at y: " in out
    assert "fused graph" not in out
    assert "graph capture" not in out
    found = cli("check", file, *NEW, "--select", "placement/", "--require-capture")
    assert (found.status, "demands: its session fails\n" in found.out) == (1, True)
    halves = "(float[1,4,4,8] x) => (float[1,2,4,8] a) { v = Tanh(x) p, q = Split<axis=1>(v) a = Sigmoid(p) }"
    out = cli("check", model(halves, 13), *NEW).out
    assert "  1 fused graph of 3 nodes, refused\n" in out
    assert out.endswith("; 1 fused graph: 1 refused\n")


def test_versions_are_columns(cli, model):
    body = "(float[2,4] x) => (float[2,4] y) { a = Relu(x) y = Transpose<perm=[0,1]>(a) }"
    lines = head(cli, model(body, 21), "--onnxruntime", "1.20.1", *NEW)
    assert [line.split(":")[0] for line in lines if "session created" in line] == [
        "onnxruntime 1.20.1",
        "onnxruntime 1.24.4",
    ]
    assert "changes: 1.20.1 -> 1.24.4: 1 on the CPU -> on DirectML (y)" in lines


@pytest.mark.parametrize(
    ("asked", "version"),
    [
        (["--feature-level", "5_0"], NEWEST.version),
        (["--directml", "1.15.1"], "1.19.2"),
        (["--directml", "1.14.1"], "1.18.0"),  # 1.18.1, which ships it too, is like 1.18.0
        (["--directml", "1.8.0"], NEWEST.version),  # the version that ships it was not observed
    ],
)
def test_without_a_runtime_nothing_is_said_of_the_model(cli, model, asked, version):
    *_, hint, summary = cli("check", model(WITH_SPLIT), *asked).out.splitlines()
    assert hint.startswith(f"hint: no session was judged; --onnxruntime {version} ")
    assert summary == "1 operator: 1 ok"


@pytest.mark.parametrize(
    ("body", "opset", "options", "status"),
    [
        (ISLAND, 21, ["--require-dml", "1", "--require-capture"], 0),
        (ISLAND, 22, [], 0),
        (ISLAND, 22, ["--require-dml", "0.6"], 0),
        (ISLAND, 22, ["--require-dml", "0.7"], 1),
        (ISLAND, 22, ["--require-capture"], 1),
        (WITHOUT_KERNEL, 13, ["--require-dml", "0.5"], 1),
    ],
)
def test_what_is_required(cli, model, body, opset, options, status):
    found = cli("check", model(body, opset), *NEW, *options)
    assert found.status == status
    assert bool(re.search(r"error\[require/", found.out)) is bool(status)
    assert not found.err


def test_unknown_counts(cli, tmp_path):
    body = "(float[2,2] x) => (float[2,2] y) { y = com.microsoft.GemmFastGelu(x, x) }"
    made = models.text(body, domains=["com.microsoft"])
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    assert [cli("check", "m.onnx", *NEW, *more).status for more in ((), ("--fail-on", "unknown"))] == [0, 1]


@pytest.mark.parametrize("options", [["--require-dml", "0.5"], ["--require-capture"]])
def test_what_is_required_needs_a_runtime(cli, model, options):
    found = cli("check", model(ISLAND), *options)
    assert (found.status, "need --onnxruntime" in found.err) == (2, True)


@pytest.mark.parametrize("part", ["2", "-1", "half"])
def test_a_part_is_between_0_and_1(cli, model, part):
    assert cli("check", model(ISLAND), *NEW, "--require-dml", part).status == 2


def test_json_has_the_model_once(cli, model):
    (first, *_) = answers = json.loads(cli("check", model(WITH_SPLIT), *NEW, "--format", "json").out)
    assert [("model" in answer) for answer in answers] == [True] + [False] * (len(answers) - 1)
    assert first["model"]["counts"]["DML"] == 2
    (alone,) = json.loads(cli("check", model(ISLAND), *NEW, "--format", "json").out)
    assert (alone["operator"], len(alone["model"]["nodes"])) == (None, 3)
    (line,) = cli("check", model(ISLAND), *NEW, "--format", "jsonl").out.splitlines()
    assert json.loads(line) == alone


def test_other_formats(cli, model, tmp_path):
    name = model(WITH_SPLIT)
    assert cli("check", name, *NEW, "--format", "junit").out.count("<testcase") == 1
    assert json.loads(cli("check", name, *NEW, "--format", "sarif").out)["runs"][0]["results"] == []
    pytest.importorskip("jinja2")
    assert "session created; 2 nodes: 2 on DirectML" in cli("check", name, *NEW, "--format", "html").out


def test_problems_stand_before_the_table_the_most_serious_first(cli, model):
    body = """(float[4,2] x, float[N,2] z) => (float[M,2] a, float[2,2] c, float[2,2] d) {
        a, b = Split<num_outputs=2>(z) c, d = Split<num_outputs=2>(x) e, f = Split<num_outputs=3>(x)
    }"""
    lines = head(cli, model(body, 18), *NEW)
    kinds = [line.split("[")[0] for line in lines if "[" in line and line.split("[")[0] in ("error", "warning", "note")]
    table = next(i for i, line in enumerate(lines) if line.startswith("Node "))
    problems = [i for i, line in enumerate(lines) if line.startswith(("error[", "warning["))]
    assert problems
    assert max(problems) < table
    assert kinds.index("error") < kinds.index("warning")


def test_nodes_that_compute_with_sizes_are_one_line(cli, model):
    body = """(float[N,6] x) => (float[M] y) {
        s = Shape(x) one = Constant<value_ints=[1]>() n = Add(s, one)
        m = ReduceProd<keepdims=1>(n) y = ConstantOfShape(m)
    }"""
    lines = head(cli, model(body, 17), *NEW)
    assert [line for line in lines if line.startswith("on the CPU")] == [
        "on the CPU: 2 nodes: they compute sizes, which ONNX Runtime leaves there (1 Add, 1 ReduceProd)"
    ]


RANK_AND_OPSET = """(float[1,2,3,4,5] x, float[1,2,3,5,2] z) => (float[1,2,3,4,2] y) {
    s = Sin(x) y = MatMul(s, z)
}"""


def test_findings_about_the_model_are_the_most_serious_first(cli, model):
    found = cli("check", model(RANK_AND_OPSET, 22), *NEW)
    rules = [line.split("[")[1].split("]")[0] for line in found.out.splitlines() if "[model/" in line]
    assert rules == ["model/rank", "model/opset-without-kernels"]
    assert found.status == 1


def test_the_page_has_the_findings_about_the_model(cli, model):
    pytest.importorskip("jinja2")
    page = cli("check", model(ISLAND, 22), *NEW, "--format", "html").out
    assert "warning[model/cpu-island] c: 1 Conv on the CPU is between nodes on DirectML" in page
    assert "<dt>warnings</dt><dd>2</dd>" in page


def test_json_has_the_operators_that_kernels_submit(cli, model):
    (answer,) = json.loads(cli("check", model(ISLAND, 21), *NEW, "--format", "json").out)
    submitted = {each["node"]: [one["Type"] for one in each["submitted"]] for each in answer["model"]["operators"]}
    assert submitted == {"a": ["DML_OPERATOR_ACTIVATION_RELU"], "y": ["DML_OPERATOR_CONVOLUTION"]}
    assert [each["not_judged"] for each in answer["model"]["operators"]] == [None, None]


@pytest.mark.parametrize(
    "words", [["check", "--require-dml", "nan"], ["why", "--timeout", "nan"], ["check", "--require-dml", "NaN"]]
)
def test_what_is_no_number_is_no_bound(cli, words):
    found = cli(*words, *NEW, "model.onnx")
    assert (found.status, found.err.count("\n")) == (2, 1)
    assert f"Invalid value for '{words[1]}': '{words[2]}' is not a number" in found.err


@pytest.mark.parametrize(
    ("body", "cast"),
    [
        ("(double[2,8] x) => (double[2,8] y) { y = Erf(x) }", "DOUBLE to FLOAT"),
        ("(double[2,8] x) => (double[2,8] y) { y = Gelu(x) }", "DOUBLE to FLOAT16"),  # FLOAT has a kernel of the CPU
        ("(bfloat16[2,8] x) => (bfloat16[2,8] y) { y = Add(x, x) }", "BFLOAT16 to FLOAT"),
        ("(string[2] x) => (string[2] y) { y = com.microsoft.Gelu(x) }", ""),
    ],
    ids=["double", "expanded", "bfloat16", "no type helps"],
)
def test_a_type_without_a_kernel_has_advice(cli, model, body, cast):
    """tf2onnx exports a Gelu with an Erf of DOUBLE."""
    found = cli("check", model(body, 20), "--onnxruntime", "1.24.4")
    (said,) = [line for line in found.out.splitlines() if "error[model/session-fails]" in line]
    advice = f"; what helps: a cast of {cast} around it, which rounds differently, or a model of that type"
    assert (advice in said) is bool(cast)
    assert found.status == 1


@pytest.mark.parametrize(
    ("body", "ok", "rules"),
    [
        (WITHOUT_KERNEL, False, ["model/session-fails"]),
        ("(float[1,2,2,2,3,4] a, float[1,2,2,2,4,5] b) => (float[1,2,2,2,3,5] y) { y = MatMul(a, b) }", False, None),
        (ISLAND, True, ["model/opset-without-kernels", "model/cpu-island"]),
    ],
)
def test_a_model_without_operators_has_a_report_if_something_is_wrong_with_it(cli, model, tmp_path, body, ok, rules):
    file = model(body, 22 if body is ISLAND else 13)
    (report,) = check_files([tmp_path / file], onnxruntime="1.24.4")
    assert (report.ok, report.operator) == (ok, None)
    found = [each.rule for each in report.model.diagnostics]
    assert found == (["model/rank"] if rules is None else rules)
    (answer,) = json.loads(cli("check", file, *NEW, "--format", "json").out)
    assert answer["ok"] is ok


def test_a_model_that_is_right_has_no_report(model, tmp_path):
    assert list(check_files([tmp_path / model(ISLAND)], onnxruntime="1.24.4")) == []


def test_an_error_beside_the_operators_is_a_report(model, tmp_path):
    """The other node's fault is in no report about an operator."""
    beside = (
        "(float[1,2,2,2,3,4] x, float[1,2,2,2,4,5] b, float[4] z) => (float[1,2,2,2,3,5] y, float[2] p, float[2] q)"
    )
    file = model(f"{beside} {{ y = MatMul(x, b) p, q = Split(z) }}")
    first, split = check_files([tmp_path / file], onnxruntime="1.24.4")
    assert (first.ok, first.operator, [each.rule for each in first.errors]) == (False, None, ["model/rank"])
    assert split.operator == "Split"


GATES = (*NEW, "--onnxruntime", "1.23.2", "--require-dml", "0.9", "--require-capture", "--fail-on", "unknown")
MISSED = ["require/dml", "require/capture"]
UNKNOWN = "(float[2,2] x) => (float[2,2] y) { y = com.microsoft.GemmFastGelu(x, x) }"


@pytest.fixture
def gated(cli, model, tmp_path):
    """Runs the check of a model with an island, and of one with an operator that is not known, in a format."""
    made = models.text(UNKNOWN, domains=["com.microsoft"])
    (tmp_path / "u.onnx").write_bytes(made.SerializeToString())

    def run(format_):
        found = cli("check", model(ISLAND, 22), "u.onnx", *GATES, "--format", format_)
        assert found.status == 1
        return found.out

    return run


def test_json_has_missed_requirements(gated):
    found = [each for each in json.loads(gated("json")) if not each["ok"]]
    assert [(each["file"], each["judged_by"].split()[1]) for each in found] == [
        (file, version) for file in ("m.onnx", "u.onnx") for version in ("1.24.4", "1.23.2")
    ]
    rules = [[each["rule"] for each in answer["diagnostics"]] for answer in found]
    assert rules == [MISSED, MISSED, [*MISSED, "require/known"], [*MISSED, "require/known"]]


def test_junit_has_missed_requirements(gated):
    (suite,) = ElementTree.fromstring(gated("junit"))
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert (suite.get("failures"), len(set(failed))) == ("4", 4)
    assert {case.find("failure").get("type") for case in suite if case.get("name") in failed} == {"require/dml"}


def test_annotations_have_missed_requirements(gated):
    titles = re.findall(r"::error file=(.).onnx,title=([^:]*)::", gated("github"))
    assert titles == [("m", rule) for rule in MISSED * 2] + [("u", rule) for rule in [*MISSED, "require/known"] * 2]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("(float[1,4] x) => (float[1,2] y) { y, z = Split<axis=1>(x) }", "1.24.4"),
        (
            "(float[N,4] x) => (float[?,?] y) { s = Shape(x) t = Concat<axis=0>(s) y = Reshape(x, t) }",
            "in part on the CPU",
        ),
        ("(float[1,4] x) => (double[1,2] y) { c = Cast<to=11>(x) y, z = Split<axis=1>(c) }", "1.24.4"),
    ],
    ids=["taken", "on the CPU", "of DOUBLE"],
)
def test_the_page_says_which_versions_take_every_operator(cli, model, body, said):
    page = cli("check", model(body, 13), *NEW, "--format", "html").out
    (row,) = re.findall(r"<tr><th[^>]*>ONNX Runtime versions</th>(.*?)</tr>", page, re.DOTALL)
    assert said in row


def test_the_page_of_a_model_without_operators_names_who_judged_it(cli, model):
    body = model("(float[1,4] x) => (float[1,4] y) { y = Relu(x) }", 17)
    assert "Judged by onnxruntime 1.24.4." in cli("check", body, *NEW, "--format", "html").out
    assert "Judged by" not in cli("check", body, "--format", "html").out


def test_sarif_and_the_page_have_missed_requirements(gated):
    (run,) = json.loads(gated("sarif"))["runs"]
    errors = [each["ruleId"] for each in run["results"] if each["level"] == "error"]
    assert errors == MISSED * 2 + [*MISSED, "require/known"] * 2
    pytest.importorskip("jinja2")
    assert gated("html").count("error[require/dml]") == 4


def test_a_missed_part_names_the_nodes_that_compute_sizes(cli, model):
    body = "(float[N,4] x) => (float[?,?] y) { a = Relu(x) s = Shape(a) t = Mul(s, s) y = Reshape(a, t) }"
    lines = cli("check", model(body, 17), *NEW, "--require-dml", "1").out.splitlines()
    (missed,) = (line for line in lines if "require/dml" in line)
    assert (
        " nodes are on DirectML (1 of the others computes sizes, which belong on the CPU); --require-dml is 1" in missed
    )


def test_what_fails_the_check_fails_its_case(cli, model, tmp_path):
    """A warning about a model, and an operator that is not known."""
    out = cli("check", model(ISLAND, 22), *NEW, "--fail-on", "warning", "--format", "junit").out
    assert ElementTree.fromstring(out)[0].get("failures") == "1"
    made = models.text(
        "(float[4,2] x) => (float[2,2] a, float[2,2] b) { y = com.microsoft.GemmFastGelu(x, x) a, b = Split(y) }",
        domains=["com.microsoft"],
    )
    (tmp_path / "u.onnx").write_bytes(made.SerializeToString())
    for more, counts in (((), ("0", "1")), (("--fail-on", "unknown"), ("2", "0"))):
        (suite,) = ElementTree.fromstring(cli("check", "u.onnx", *NEW, "--format", "junit", *more).out)
        assert (suite.get("failures"), suite.get("skipped")) == counts


@pytest.mark.parametrize("setting", ["require-dml = 0.7", "require-dml = 1", "require-capture = true"])
def test_a_project_requires(cli, model, tmp_path, setting):
    (tmp_path / "dmlsplit.toml").write_text(f'onnxruntime = "1.24.4"\n{setting}\n')
    assert [cli("check", model(ISLAND, opset)).status for opset in (21, 22)] == [0, 1]


@pytest.mark.parametrize(
    "setting", ["require-dml = 2", "require-dml = nan", "require-dml = true", "require-capture = 1"]
)
def test_what_a_project_cannot_require(cli, model, tmp_path, setting):
    (tmp_path / "dmlsplit.toml").write_text(f'onnxruntime = "1.24.4"\n{setting}\n')
    found = cli("check", model(ISLAND))
    assert (found.status, setting.split()[0] in found.err) == (2, True)
