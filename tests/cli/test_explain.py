"""dmlsplit explain: formats, exit statuses and a line for each mistake. What is explained is tested in
tests/onnxruntime/test_explaining.py."""

import json
import re

import onnx
import pytest

from dmlsplit.cli.explain import _completed
from dmlsplit.onnxruntime import explain
from dmlsplit.report import explained
from tests.cli.conftest import HOSTILE, HOSTILE_SHOWN
from tests.models import text

GLU = """(float[1,8,4,4] x) => (float[1,4,4,4] o)
{ a, b = Split<axis=1>(x)  s = Sigmoid(b)  o = Mul(a, s) }"""


@pytest.fixture
def glu(tmp_path):
    model = text(GLU)
    onnx.save(model, tmp_path / "glu.onnx")
    return model


def test_a_row_for_each_step(cli, glu):
    status, out, err = cli("explain", "glu.onnx", "s", "--onnxruntime", "1.24.4")
    head, *lines = out.splitlines()
    found = explain(glu, "s", "1.24.4")
    assert (status, err, "Sigmoid s" in head, "1.24.4" in head) == (1, "", True, True)
    words = [re.split(r"  +", line.strip(), maxsplit=1)[0] for line in lines]
    first = ["placement", "part 0", "compiled", "submitted", "finding"]
    assert words == [*first, "unchanged"]
    _, *lines = cli("explain", "glu.onnx", "s", "--onnxruntime", "1.24.4", "--verbose").out.splitlines()
    assert [re.split(r"  +", line.strip(), maxsplit=1)[0] for line in lines] == [
        *first,
        *(step.name for step in found.steps),
    ]


def test_passes_that_change_the_node_are_shown(cli, tmp_path):
    onnx.save(
        text("(float[2,3] x, float[3,4] w, float[4] b) => (float[2,4] y) { m = MatMul(x, w) y = Add(m, b) }"), "m.onnx"
    )
    out = cli("explain", "m.onnx", "m", "--onnxruntime", "1.24.4").out
    assert re.search(r"^  matmul_add_fusion +fused", out, re.MULTILINE)


def test_what_fails_the_session_is_shown_of_its_node(cli, tmp_path):
    onnx.save(
        text("(float[1,2,2,2,3,4] a, float[1,2,2,2,4,5] b) => (float[1,2,2,2,3,5] y) { y = MatMul(a, b) }"), "m.onnx"
    )
    status, out, _ = cli("explain", "m.onnx", "y", "--onnxruntime", "1.24.4")
    assert (status, "error[model/rank]" in out) == (1, True)
    assert re.search(r"^  session +fails at y: ", out, re.MULTILINE)
    said = json.loads(cli("explain", "m.onnx", "y", "--format", "json").out)
    assert (said["failure"]["node"], [each["rule"] for each in said["diagnostics"]]) == ("y", ["model/rank"])


def test_a_node_that_does_not_exist_names_some_that_do(cli, glu):
    assert cli("explain", "glu.onnx", "nothing-like-it").err.rstrip().endswith("there are a, s, o")


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_rows_fit_a_terminal(glu, columns):
    found = explain(glu, "s", "1.24.4")
    said = explained.text(found, columns)
    assert max(map(len, said.splitlines())) <= columns < max(map(len, explained.text(found).splitlines()))
    assert said.split() == explained.text(found).split()


def test_json_is_the_value(cli, glu):
    status, out, _ = cli("explain", "glu.onnx", "a", "--onnxruntime", "1.24.4", "--format", "json")
    said = json.loads(out)
    assert (status, said.pop("file")) == (1, "glu.onnx")
    assert said == json.loads(json.dumps(explain("glu.onnx", "a", "1.24.4").to_dict()))


@pytest.mark.parametrize("format_", ["text", "json", "html"])
def test_a_file_gets_what_is_printed(cli, glu, tmp_path, format_):
    printed = cli("explain", "glu.onnx", "0", "--format", format_)
    written = cli("explain", "glu.onnx", "0", "--format", format_, "-o", "out")
    assert (written.status, written.out, written.err) == (printed.status, "", "")
    assert (tmp_path / "out").read_text("utf-8") == printed.out != ""
    assert cli("explain", "glu.onnx", "0", "-o", "glu.onnx").status == 2


def test_a_node_without_faults(cli, tmp_path):
    onnx.save(text(GLU.replace("Sigmoid", "Tanh")), tmp_path / "tanh.onnx")
    assert cli("explain", "tanh.onnx", "a").status == 0


def test_sizes_are_given_as_to_check(cli, tmp_path):
    onnx.save(text(GLU.replace("[1,", "[N,")), tmp_path / "open.onnx")
    for option, in_graph in (("--dim", False), ("--free-dimension", True)):
        out = cli("explain", "open.onnx", "a", option, "N=1", "--format", "json").out
        assert json.loads(out)["placement"]["in_graph"] is in_graph


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("glu.onnx", "zz"), "glu.onnx: .*'zz'"),
        (("glu.onnx", "7"), "glu.onnx: .*7"),
        (("none.onnx", "a"), "none.onnx: No such file"),
        (("text.onnx", "a"), "text.onnx: "),
        (("glu.onnx", "a", "--onnxruntime", "9"), "'9'"),
        (("glu.onnx", "a", "--dim", "M=1"), "glu.onnx: .*'M'"),
        (("glu.onnx",), "NODE"),
    ],
)
def test_a_mistake_is_one_line(cli, glu, tmp_path, arguments, said):
    (tmp_path / "text.onnx").write_text("no model")
    status, out, err = cli("explain", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert re.search(said, err)


@pytest.mark.parametrize("format_", ["text", "html"])
def test_names_are_made_printable(cli, tmp_path, format_):
    model = text(GLU)
    model.graph.node[2].name = name = HOSTILE.replace("\ud800", "")
    onnx.save(model, tmp_path / "hostile.onnx")
    out = cli("explain", "hostile.onnx", "o", "--format", format_).out
    shown = HOSTILE_SHOWN.removesuffix(r"\ud800")
    assert name not in out
    assert shown in out


def test_the_shell_completes_nodes(glu, tmp_path):
    class Context:
        params = {"file": str(tmp_path / "glu.onnx")}

    assert _completed(Context, None, "") == ["a"]
    Context.params = {"file": "none"}
    assert _completed(Context, None, "") == []
