"""Graphs on the command line: check by every target and in every format, levels, and what is malformed."""

from __future__ import annotations

import json

import pytest

import dmlsplit as dml
from dmlsplit import graphs
from dmlsplit.formats.graph_json import dumps
from dmlsplit.graphs.examples import Sketch
from dmlsplit.report.formats import FORMATS
from dmlsplit.rules.graph import GRAPH_RULES

GLU = graphs.EXAMPLES["graph/fused-wrongly"]


@pytest.fixture
def glu(tmp_path):
    (tmp_path / "glu.json").write_text(dumps(GLU(False), 1))
    return "glu.json"


@pytest.mark.parametrize(
    ("target", "outputs", "compiles"),
    [
        (("--directml", "1.15.4"), ["wrong"], True),
        (("--directml", "1.12.1"), ["right"], True),
        (("--onnxruntime", "1.24.4"), ["wrong"], True),
        (("--onnxruntime", "1.16.3"), ["right"], True),
        (("--feature-level", "6_4"), ["wrong"], True),
        (("--feature-level", "5_0"), ["right"], True),
        (("--feature-level", "1_0"), ["unknown"], None),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_an_answer_by_each_kind_of_target(cli, glu, target, outputs, compiles):
    status, out, _ = cli("check", glu, *target, "--format", "jsonl")
    answer = json.loads(out)
    assert answer["operator"] == "DML_GRAPH"
    assert answer["graph"] == {"compiles": compiles, "outputs": outputs}
    assert answer["ok"] is ("wrong" not in outputs)
    assert status == int(not answer["ok"])
    keys = ["diagnostics", "graph", *(["onnxruntime"] if target[0] == "--onnxruntime" else [])]
    assert list(answer)[-len(keys) :] == keys


def test_several_files_in_processes(cli, glu, tmp_path):
    (tmp_path / "again.json").write_text((tmp_path / glu).read_text())
    out = cli("check", glu, "again.json", "--jobs", "2").out
    assert out.count("not ok: DML_GRAPH (directml 1.15.4, S_OK); outputs: 1 wrong\n") == 2


def test_several_releases_at_once(cli, glu):
    out = cli("check", glu, "--directml", "1.12.1", "--directml", "1.15.4").out
    assert "ok: DML_GRAPH (directml 1.12.1, S_OK); outputs: 1 right\n" in out
    assert "not ok: DML_GRAPH (directml 1.15.4, S_OK); outputs: 1 wrong\n" in out
    assert "1 operator, 1 verdict that depends on the release" in out


@pytest.mark.parametrize("id", graphs.EXAMPLES)
def test_every_rules_examples(cli, tmp_path, id):
    (tmp_path / "a.jsonl").write_text("".join(f"{dumps(graphs.EXAMPLES[id](cured))}\n" for cured in (False, True)))
    out = cli("check", "a.jsonl", "--directml", GRAPH_RULES[id].examples_for, "--format", "jsonl").out
    bad, good = map(json.loads, out.splitlines())
    assert {d["rule"] for d in bad["diagnostics"]} == {id}
    assert all(d["line"] == 1 and d["column"] for d in bad["diagnostics"])
    assert good["ok"]
    assert set(good["graph"]["outputs"]) == {"right"}


def test_a_node_that_is_refused_is_named_with_its_place(cli, tmp_path):
    g = Sketch()
    x = g.input(1, 8, 1, 16)
    form = json.loads(dumps(g.graph(*g.split(x, 1, (4, 4)))))
    form["Desc"]["Nodes"][0]["Desc"]["Axis"] = 5
    (tmp_path / "a.json").write_text(json.dumps(form, indent=1))
    status, out, _ = cli("check", "a.json", "--format", "json")
    (answer,) = json.loads(out)
    (found,) = answer["diagnostics"]
    assert (status, answer["hresult"], answer["graph"]["compiles"]) == (1, "0x80070057", False)
    assert (found["rule"], found["path"]) == ("split/axis-out-of-range", "Nodes[0].Axis")
    lines = json.dumps(form, indent=1).splitlines()
    assert '"Axis": 5' in lines[found["line"] - 1]


def test_all_nodes_that_are_refused_are_named():
    part, x = dml.BufferTensorDesc(1, (1, 3, 1, 16)), dml.BufferTensorDesc(1, (1, 8, 1, 16))
    node = dml.SplitOperatorDesc(x, [part, part], 1)
    desc = graphs.GraphDesc([x], [part] * 4, [node, node], [], [])
    assert {str(d.location)[:8] for d in dml.validate(desc).errors} == {"Nodes[0]", "Nodes[1]"}


def test_the_text_names_what_helps(cli, glu):
    assert f"glu.json:1:1: fix: {GRAPH_RULES['graph/fused-wrongly'].cure}" in cli("check", glu).out


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_the_finding(cli, glu, tmp_path, format):
    if format == "html":
        pytest.importorskip("jinja2")
    status, out, err = cli("check", glu, "--format", format)
    assert (status, err) == (1, "")
    assert "graph/fused-wrongly" in out
    assert "Outputs[0]" in out


def test_the_page_tells_releases_apart(cli, glu):
    pytest.importorskip("jinja2")
    out = cli("check", glu, "--format", "html").out
    assert "<b>Releases 1.13.1 to 1.15.4</b>" in out
    assert 'aria-label="not known"' in out  # of levels without a build


def test_malformed_graphs_name_their_place(cli, tmp_path):
    form = json.loads(dumps(GLU(False)))
    del form["Desc"]["Nodes"]
    (tmp_path / "a.json").write_text(json.dumps(form))
    (tmp_path / "b.json").write_text('{"Type": "DML_GRAPH", "Desc": null}')
    (tmp_path / "c.json").write_text('{"Type": "DML_GRAPH"}')
    for name, reason in (("a", "Field 'Nodes' is required."), ("b", "expected an object"), ("c", "Field 'Desc'")):
        status, _, err = cli("check", f"{name}.json")
        assert status == 2
        assert err.startswith(f"dmlsplit: {name}.json:1:")
        assert reason in err


def test_levels(cli, glu):
    out = cli("levels", glu, "--releases").out
    assert "DML_GRAPH: right on 1.0.200610 to 1.12.1\n" in out
    assert "wrong or refused on 1.13.1 to 1.15.4:" in out
    (answer,) = json.loads(cli("levels", glu, "--json").out)
    assert answer["feature_levels"][-1] == "6_1"
    assert answer["unknown"] == ["1_0", "2_0", "4_0", "5_1", "6_0"]
    assert answer["refused"][0]["diagnostics"][0]["rule"] == "graph/fused-wrongly"


def test_levels_of_a_graph_that_nobody_knows(cli, tmp_path):
    (tmp_path / "a.json").write_text(dumps(graphs.EXAMPLES["graph/unknown"](False)))
    status, out, _ = cli("levels", "a.json", "--releases")
    assert status == 0
    assert "a.json:1:1: DML_GRAPH: not known\n" in out


def test_files_from_python(cli, glu):
    (report,) = dml.check_files([glu], directml="1.15.4")
    assert isinstance(report, dml.GraphReport)
    assert (report.file, report.outputs) == (glu, ("wrong",))
