"""What is not known is neither right nor wrong: counts, exit statuses and reports tell it apart."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from dmlsplit.checking.columns import LEVELS, RELEASES, RUNTIMES
from tests.models import GLU, model, node, text, value


@pytest.fixture
def unknown(tmp_path):
    """A model with a Concat of unknown rank, and a Split that is right."""
    nodes = [node("Concat", ["x", "x"], ["a"], axis=0, name="open"), node("Split", ["y"], ["b", "c"], name="cut")]
    made = model(nodes, [value("x", None), value("y", (4, 2))], ["a", "b", "c"], opset=13, ir_version=8)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    return ("check", "m.onnx", "--onnxruntime", "1.24")


def test_the_summary_and_the_table(cli, unknown):
    status, out, _ = cli(*unknown)
    assert status == 0
    assert out.splitlines()[-1].startswith("2 operators: 1 ok, 1 unknown")
    assert [line.split().count("unknown") > 0 for line in out.splitlines()[5:7]] == [True, False]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ([], 0),
        (["--fail-on", "error"], 0),
        (["--fail-on", "unknown"], 1),
        (["--fail-on", "error", "--fail-on", "unknown"], 1),
        (["--fail-on", "unknown", "--ignore", "onnxruntime/", "--ignore", "node/"], 0),
    ],
)
def test_the_exit_status(cli, unknown, options, status):
    assert cli(*unknown, *options).status == status


def test_flags_of_a_graph_that_is_known_to_be_right_are_nothing_unknown(cli, tmp_path):
    """Of a GELU with a divisor of its own it is not known how many nodes are left; that decides about flags alone."""
    made = text(
        """(float[2,6] x) => (float[?,?] o, float[?,?] b) <float r = {1.5}, float one = {1}, float h = {0.5}> {
            a, b = Split<axis=1>(x) d = Div(a, r) e = Erf(d) f = Add(e, one) g = Mul(a, f) o = Mul(g, h)
        }"""
    )
    (tmp_path / "gelu.onnx").write_bytes(made.SerializeToString())
    status, out, _ = cli("check", "gelu.onnx", "--onnxruntime", "1.24.4", "--fail-on", "unknown", "--format", "json")
    compiled = json.loads(out)[-1]["onnxruntime"]["compile"]
    assert (status, compiled) == (0, {"call": "CompileGraph", "flags": None})


def test_unknown_alone_does_not_fail_for_warnings(cli, tmp_path, unknown):
    (tmp_path / "glu.onnx").write_bytes(GLU.SerializeToString())
    level = ("check", "glu.onnx", "--feature-level", "4_1", "--format", "json")
    found, _ = json.loads(cli(*level).out)
    assert [(d["rule"], d["severity"]) for d in found["diagnostics"]] == [("graph/unknown", "note")]
    assert cli(*level, "--fail-on", "warning").status == 0
    assert cli(*level, "--fail-on", "unknown").status == 1
    assert (
        cli("check", "glu.onnx", "--feature-level", "4_1")
        .out.splitlines()[-1]
        .startswith("2 operators: 1 ok, 1 unknown")
    )


@pytest.mark.parametrize(("said", "status"), [('"unknown"', 1), ('["warning", "unknown"]', 1), ('["error"]', 0)])
def test_in_configuration(cli, tmp_path, unknown, said, status):
    (tmp_path / "dmlsplit.toml").write_text(f"fail-on = {said}\n")
    assert cli(*unknown).status == status


def test_junit_skips_it(cli, unknown):
    cases = ET.fromstring(cli(*unknown, "--format", "junit").out).findall(".//testcase")
    assert [[child.tag for child in case] for case in cases] == [["skipped", "system-out"], []]
    assert "unknown" in cases[0].find("skipped").get("message")


def test_sarif_has_the_verdict(cli, unknown):
    (run,) = json.loads(cli(*unknown, "--format", "sarif").out)["runs"]
    assert {result["properties"]["verdict"] for result in run["results"]} == {"unknown"}


def test_annotations_end_with_the_counts(cli, unknown):
    assert cli(*unknown, "--format", "github").out.splitlines()[-1].startswith("2 operators: 1 ok, 1 unknown")


def test_the_page_counts_it_and_has_its_column(cli, unknown):
    pytest.importorskip("jinja2")
    out = cli(*unknown, "--format", "html").out
    assert "<dt>unknown</dt><dd>1</dd>" in out
    assert "<option>unknown</option>" in out
    assert 'colspan="1">ONNX Runtime</th>' in out
    assert "2 Splits and Concats" in out


def test_a_page_says_of_a_graph_what_check_says(cli, tmp_path):
    pytest.importorskip("jinja2")
    (tmp_path / "glu.onnx").write_bytes(GLU.SerializeToString())
    out = cli("check", "glu.onnx", "--onnxruntime", "1.24.4", "--onnxruntime", "1.20.1", "--format", "html").out
    assert 'colspan="2">ONNX Runtime</th>' in out
    head = out[out.index('<table class="common">') : out.index("</header>")]
    assert "1.0.200610 to 1.12.1" in head
    assert "1.15.4" not in head
    cut, alone = out.split('<tr data-detail="')[-2:]
    words = [piece.split('"')[0] for piece in cut.split('aria-label="')[1:]]
    assert (words[:15].count("runs"), words[:15].count("not known"), words[12:15]) == (4, 8, ["refused"] * 3)
    assert words[15 + 19 :] == ["refused"] * 2
    assert {piece.split('"')[0] for piece in alone.split("</table>")[0].split('aria-label="')[1:]} == {"runs"}


def test_equal_descriptors_of_other_graphs_are_not_one(cli, tmp_path):
    """Of two Splits alike, one becomes part of a graph that comes out wrong."""
    pytest.importorskip("jinja2")
    (tmp_path / "glu.onnx").write_bytes(GLU.SerializeToString())
    out = cli("check", "glu.onnx", "--directml", "1.12.1", "--format", "html").out
    assert out.count('<article class="operator"') == 2


def test_what_legalize_leaves_since_too_little_is_known(cli, tmp_path, unknown):
    for target in (("--onnxruntime", "1.24.4"), ("--feature-level", "5_0")):
        status, out, _ = cli("legalize", "m.onnx", *target, "-o", "fixed.onnx")
        assert (status, out.count("\n")) == (0, 3)
        assert "  not known of open: " in out
        cli("legalize", "m.onnx", *target, "--format", "html", "-o", "page.html")
        assert "Not known of open: " in (tmp_path / "page.html").read_text("utf-8")
    assert "  not known: the behaviour of 1.9.0" in cli("legalize", "m.onnx", "--onnxruntime", "1.9.0", "--dry-run").out


def test_many_unknown_nodes_are_one_line(cli, tmp_path):
    nodes = [node("Split", ["x"], [f"a{i}", f"b{i}"], name=f"s{i}") for i in range(9)]
    made = model(nodes, [value("x", None)], ["a0"], opset=13, ir_version=8)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    out = cli("legalize", "m.onnx", "--onnxruntime", "1.24.4", "--dry-run").out
    assert [line.partition(":")[0] for line in out.splitlines()[1:]] == ["  not known of s0, s1, s2, ..."]


@pytest.fixture
def behind_another(tmp_path):
    """A Split of what an operator gives of which nothing is known."""
    nodes = [node("Other", ["x"], ["y"], domain="own"), node("Split", ["y"], ["a", "b"], name="cut")]
    made = model(nodes, [value("x", (4, 2))], ["a", "b"], opset=13, domains=["own"], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())


@pytest.mark.parametrize("command", [["legalize", "--feature-level", "6_4"], ["plan"]], ids=["legalize", "plan"])
def test_a_node_without_an_operator_is_not_ok(cli, behind_another, command):
    assert cli(*command, "m.onnx").out.startswith("m.onnx: unknown: 'cut' Split (")


@pytest.mark.parametrize(("options", "columns"), [([], LEVELS), (["--releases"], RELEASES), (["--runtimes"], RUNTIMES)])
def test_a_node_without_an_operator_is_unknown_to_all(cli, behind_another, options, columns):
    (found,) = json.loads(cli("levels", "m.onnx", *options, "--format", "json").out)
    assert (found["unknown"], found["refused"]) == (columns.labels, [])
