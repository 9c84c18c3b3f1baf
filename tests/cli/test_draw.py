"""dmlsplit draw: one picture of a file's operators."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from dmlsplit.report import svg
from tests.cli.conftest import BAD, GOOD, HOSTILE, INT64, MALFORMED, OTHER
from tests.models import model, node, value

NS = "{http://www.w3.org/2000/svg}"


def headings(picture):
    found = ["".join(t.itertext()) for t in ET.fromstring(picture).iter(f"{NS}text")]
    return [t for t in found if "DML_OPERATOR" in t]


def test_one_operator(cli, tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    assert cli("draw", "a.json", "-o", "a.svg") == (0, "", "")
    picture = (tmp_path / "a.svg").read_text("utf-8")
    assert headings(picture) == ["DML_OPERATOR_SPLIT"]
    assert cli("draw", "a.json") == cli("draw", "a.json", "-o", "-") == (0, picture, "")


def test_every_operator_of_a_file(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{GOOD}\n{OTHER}\n{BAD}\n")
    status, out, err = cli("draw", "a.jsonl")
    assert (status, err) == (1, "")
    assert len(headings(out)) == 2
    assert "⚠" in out


def test_one_of_them(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{BAD}\n{GOOD}\n{MALFORMED}\n")
    status, out, err = cli("draw", "a.jsonl", "--index", "1")
    assert (status, err, len(headings(out))) == (0, "", 1)
    assert "⚠" not in out
    assert cli("draw", "a.jsonl", "--index", "0").status == 1
    assert cli("draw", "a.jsonl", "--index", "2").status == 2
    status, out, err = cli("draw", "a.jsonl", "--index", "3", "-o", "x.svg")
    assert (status, out) == (2, "")
    assert err.startswith("dmlsplit: --index: there is no operator 3; a.jsonl has 3")
    assert not (tmp_path / "x.svg").exists()


def test_names_of_a_model(cli, tmp_path):
    model = {"resources": {}, "dispatchables": {HOSTILE: json.loads(GOOD)}}
    (tmp_path / "m.json").write_text(json.dumps(model))
    status, out, err = cli("draw", "m.json")
    assert (status, err) == (0, "")
    assert headings(out) == [r"a\x1b[31m[bold red]b[/]\r\n\u202ec\ud800 DML_OPERATOR_SPLIT"]


def test_judged_by(cli, tmp_path):
    (tmp_path / "a.json").write_text(INT64)
    assert cli("draw", "a.json").status == 0
    assert cli("draw", "a.json", "--feature-level", "3_0").status == 1
    status, out, err = cli("draw", "a.json", "--directml", "1.8.0", "--directml", "1.15.4")
    assert (status, out) == (2, "")
    assert "one release at a time" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [(MALFORMED, "dmlsplit: a.json:1:10: the JSON text ends too early\n"),
     (OTHER, "dmlsplit: a.json: there is no Split or Join to draw\n")],
)  # fmt: skip
def test_nothing_to_draw(cli, tmp_path, content, message):
    (tmp_path / "a.json").write_text(content)
    (tmp_path / "a.svg").write_text("old")
    assert cli("draw", "a.json", "-o", "a.svg") == (2, "", message)
    assert (tmp_path / "a.svg").read_text() == "old"


def test_what_cannot_be_read_is_said_and_the_rest_drawn(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{MALFORMED}\n{GOOD}\n")
    status, out, err = cli("draw", "a.jsonl")
    assert (status, len(headings(out))) == (2, 1)
    assert err.startswith("dmlsplit: a.jsonl:1:")


def test_does_not_replace_its_input(cli, tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    status, _, err = cli("draw", "a.json", "-o", "a.json")
    assert status == 2
    assert "would replace an input file" in err
    assert (tmp_path / "a.json").read_text() == GOOD


def test_thousands_of_operators(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{GOOD}\n" * 1000)
    out = cli("draw", "a.jsonl").out
    assert len(headings(out)) == svg.OPERATORS_SHOWN
    assert f"… {1000 - svg.OPERATORS_SHOWN} more operators" in out


def test_nodes_of_a_model(cli, tmp_path):
    onnx = pytest.importorskip("onnx")
    from tests.models import model, node, value

    cut = node("Split", ["x"], ["a", "b"], name="cut", axis=1, num_outputs=2)
    onnx.save(model([cut], [value("x", ["batch", 4])], ir_version=9), tmp_path / "m.onnx")
    status, out, err = cli("draw", "m.onnx", "--dim", "batch=3")
    assert (status, err, headings(out)) == (0, "", ["cut DML_OPERATOR_SPLIT"])
    status, out, err = cli("draw", "m.onnx", "-o", "m.svg")
    assert (status, out) == (2, "")
    assert "--dim batch=" in err
    assert not (tmp_path / "m.svg").exists()


def test_nodes_of_which_too_little_is_known(cli, tmp_path):
    nodes = [node("Split", ["x"], ["a", "b"], num_outputs=2)]
    (tmp_path / "open.onnx").write_bytes(model(nodes, [value("x", ["n", 4])]).SerializeToString())
    status, out, err = cli("draw", "open.onnx")
    assert (status, out) == (2, "")
    assert "--dim n=NUMBER" in err
    assert err.endswith("open.onnx: nothing is drawn: too little is known of its nodes\n")
