"""dmlsplit why: files, formats, exit statuses, commands as checks, and a line for each mistake. What is reduced is
tested in tests/reducing."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import HOSTILE, HOSTILE_SHOWN, environment, posix
from tests.cli.conftest import command as words_of
from tests.models import text

GLU = """(float[1,8,4,4] x) => (float[1,4,4,4] o)
{ y = Exp(x)  z = Softmax(y)  a, b = Split<axis=1>(z)  s = Sigmoid(b)  m = Mul(a, s)  o = Neg(m) }"""
OPERATORS = ("Exp", "Softmax", "Split", "Sigmoid", "Mul", "Neg")
NAMES = {"model.onnx", "inputs.0.npy", "onnx.0.npy", "directml.0.npy", "why.json", "explain.json", "explain.txt"}


@pytest.fixture
def glu(tmp_path):
    model = text(GLU)
    onnx.save(model, tmp_path / "glu.onnx")
    return model


def program(tmp_path, body):
    """A command that has the model's bytes as `model`, and the operators of GLU in it as `ops`.

    It imports nothing, since it is run once for each model.
    """
    ops = f"[op for op in {OPERATORS} if op.encode() in model]"
    (tmp_path / "check.py").write_text(f"import sys\nmodel = open(sys.argv[1], 'rb').read()\nops = {ops}\n{body}\n")
    return f"{Path(sys.executable).as_posix()} -I -S check.py"


def test_the_folder(cli, glu, tmp_path):
    status, out, err = cli("why", "glu.onnx", "--onnxruntime", "1.24.4", "-o", "small")
    assert (status, err) == (1, "")
    assert "graph/fused-wrongly: 3 of 6 nodes" in out
    assert set(os.listdir(tmp_path / "small")) == NAMES
    said = json.loads((tmp_path / "small" / "why.json").read_text())
    assert (said["class"], said["nodes"], said["node"]) == ("graph/fused-wrongly", 3, "m")
    model = onnx.load(tmp_path / "small" / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Split", "Sigmoid", "Mul"]
    z, right, wrong = (np.load(tmp_path / "small" / f"{name}.0.npy") for name in ("inputs", "onnx", "directml"))
    a, b = z[:, :4], z[:, 4:]
    assert np.allclose(right, a / (1 + np.exp(-b)), atol=1e-5)
    assert np.allclose(wrong, b / (1 + np.exp(-b)), atol=1e-5)  # what DirectML 1.13.1 to 1.15.4 compute of it


ENDS = """import os, signal
if os.path.exists('found') or NOW:
    os.kill(os.getppid(), signal.NAME)
elif 'Sigmoid' in ops and len(ops) < 6:
    open('found', 'w').close()
sys.exit('Sigmoid' in ops)"""
"""Sends a signal behind the first model that is smaller and wrong."""


@posix
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", -15), ("SIGINT", 130)])
@pytest.mark.parametrize("kept", [True, False])
def test_a_signal_leaves_the_smallest_model_so_far(glu, tmp_path, name, status, kept):
    asks = program(tmp_path, ENDS.replace("NAME", name).replace("NOW", "False"))
    line = words_of("why", "glu.onnx", "--check", asks, *(["-o", "small"] if kept else []))
    done = subprocess.run(line, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (status, "")
    where = "in small" + os.sep + "model.onnx" if kept else "still wrong; -o keeps them"
    found = re.fullmatch(
        rf"dmlsplit: ended after \d checks, with (\d) of 6 nodes {re.escape(where)}",
        done.stderr.strip().splitlines()[-1],
    )
    assert found is not None
    assert int(found[1]) < 6
    if kept:
        assert sorted(os.listdir(tmp_path / "small")) == ["model.onnx", "why.json"]
        model = onnx.load(tmp_path / "small" / "model.onnx")
        onnx.checker.check_model(model, full_check=True)
        assert "Sigmoid" in {node.op_type for node in model.graph.node}
        said = json.loads((tmp_path / "small" / "why.json").read_text())
        assert (said["class"], said["ended"], said["nodes"]) == ("new", True, len(model.graph.node))


@posix
def test_a_signal_before_anything_is_removed_keeps_nothing(glu, tmp_path):
    asks = program(tmp_path, ENDS.replace("NAME", "SIGTERM").replace("NOW", "True"))
    line = words_of("why", "glu.onnx", "--check", asks, "-o", "small")
    done = subprocess.run(line, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (done.returncode, (tmp_path / "small").exists()) == (-15, False)


def test_the_same_command_gives_the_same_bytes(cli, glu, tmp_path):
    for name in ("one", "two"):
        cli("why", "glu.onnx", "-o", name, "--seed", "7")
    for name in NAMES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_what_another_reduction_left_is_removed(cli, glu, tmp_path):
    onnx.save(text("(float[6,6] x) => (float o) { y = Exp(x)  o = Det(y) }"), tmp_path / "m.onnx")
    cli("why", "glu.onnx", "--onnxruntime", "1.24.4", "-o", "small")
    (tmp_path / "small" / "notes.npy").write_bytes(b"mine")
    cli("why", "m.onnx", "--rule", "placement/operator", "-o", "small")
    assert set(os.listdir(tmp_path / "small")) == {*NAMES, "notes.npy"} - {"directml.0.npy"}


@pytest.mark.parametrize("name", ["model.onnx", "inputs.7.npy", "explain.txt"])
def test_what_no_reduction_left_is_kept(cli, glu, tmp_path, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_bytes(b"mine")
    status, out, err = cli("why", "glu.onnx", "--onnxruntime", "1.24.4", "-o", "mine")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{os.path.join('mine', name)}: it exists already" in err
    assert os.listdir(tmp_path / "mine") == [name]
    assert (tmp_path / "mine" / name).read_bytes() == b"mine"


def test_a_message_names_the_member(cli, tmp_path):
    onnx.save(text("(float[3,6] x) => (float[2,6] a) { a, b = Split<axis=0, num_outputs=0>(x) }"), tmp_path / "m.onnx")
    out = cli("why", "m.onnx", "--onnxruntime", "1.24.4").out
    assert re.search(r"^  a: num_outputs: ", out, re.MULTILINE), out


def test_a_session_over_the_directml_of_a_windows(cli, tmp_path):
    body = "(float[1,4,4,4] x) => (float[1,4,4,4] o) <float k = {2}> { y = Exp(x)  z = Abs(y)  o = Mul(z, k) }"
    onnx.save(text(body), tmp_path / "m.onnx")
    status, out, err = cli("why", "m.onnx", "--onnxruntime", "1.24.4")
    assert (status, out, err) == (0, "m.onnx: it has no known fault\n", "")
    status, out, err = cli("why", "m.onnx", "--onnxruntime", "1.24.4", "--windows", "11-22H2")
    assert (status, err, "graph/constant-node: 1 of 3 nodes" in out) == (1, "", True)


def test_json(cli, glu):
    status, out, _ = cli("why", "glu.onnx", "--onnxruntime", "1.24.4", "--format", "json")
    said = json.loads(out)
    assert (status, said["file"], said["class"], said["nodes_before"]) == (1, "glu.onnx", "graph/fused-wrongly", 6)
    assert said["inputs"] == {"names": ["z"], "why": ""}


def test_a_note_is_no_error(cli, tmp_path):
    onnx.save(text("(float[6,6] x) => (float o) { y = Exp(x)  o = Det(y) }"), tmp_path / "m.onnx")
    status, out, _ = cli("why", "m.onnx")
    assert (status, "placement/operator" in out) == (0, True)
    assert cli("why", "m.onnx", "--rule", "model/rank").status == 2
    status, out, _ = cli("why", "m.onnx", "--rule", "placement/operator")
    assert (status, "1 of 2 nodes" in out) == (0, True)


def test_a_model_that_is_not_loaded_fails_before_anything_is_unknown(cli, tmp_path):
    """check, levels and why say the same of a name that is written twice, beside a node whose shape is not known."""
    body = "(float[1,8,4,4] x, float[] a) => (float[] y) { y, b = Split<axis=2>(x)  y = Concat<axis=1>(a, b) }"
    onnx.save(text(body), tmp_path / "m.onnx")
    status, out, _ = cli("why", "m.onnx", "--format", "json")
    said = json.loads(out)
    assert (status, said["class"], said["severity"], said["others"]) == (1, "session-fails", "error", [])
    for command in (("check",), ("check", "--onnxruntime", "1.24.4"), ("levels",), ("levels", "--runtimes")):
        status, out, _ = cli(*command, "m.onnx", "--format", "json")
        assert (status, "y is computed twice" in out) == (1, True)
    refused = [operator["refused"] for operator in json.loads(cli("levels", "m.onnx", "--format", "json").out)]
    assert [[each["diagnostics"][0]["rule"] for each in found] for found in refused] == [["graph/not-loaded"]] * 2


def test_a_command_that_calls_something_else_wrong(cli, glu, tmp_path):
    command = program(tmp_path, "sys.exit('Softmax' in ops)")
    status, out, err = cli("why", "glu.onnx", "--check", command, "-o", "small")
    assert (status, "new: 1 of 6 nodes" in out) == (1, True)
    assert re.search(r"^dmlsplit: .*6 nodes", err, re.MULTILINE), "progress, as a check may take long"
    (node,) = onnx.load(tmp_path / "small" / "model.onnx").graph.node
    assert node.op_type == "Softmax"


def test_a_command_that_calls_wrong_what_a_rule_explains(cli, glu, tmp_path):
    command = program(tmp_path, "sys.exit({'Mul', 'Sigmoid', 'Split'} <= {*ops})")
    status, out, _ = cli("why", "glu.onnx", "--check", f"{command} {{}}", "--onnxruntime", "1.24.4")
    assert (status, "graph/fused-wrongly: 3 of 6 nodes" in out) == (1, True)


def test_other_statuses_are_unclear(cli, glu, tmp_path):
    body = "if len(ops) == 3: sys.exit(5)\nsys.exit('Softmax' in ops)"
    status, out, _ = cli("why", "glu.onnx", "--check", program(tmp_path, body), "--format", "json")
    assert (status, json.loads(out)["class"], json.loads(out)["unclear"] > 0) == (1, "new", True)


def test_weights_are_those_that_keep_it_wrong(cli, tmp_path):
    """The command looks for a number that random weights do not have."""
    model = text("(float[1,100] x) => (float[1,100] o) { y = Exp(x)  o = Mul(y, w) }")
    weights = np.full(100, 42, np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    command = program(tmp_path, "import struct\nsys.exit(struct.pack('<f', 42) * 100 in model)")
    status, out, _ = cli("why", "m.onnx", "--check", command, "--format", "json", "-o", "small")
    assert (status, json.loads(out)["weights"], json.loads(out)["nodes"]) == (1, [], 1)
    (left,) = onnx.load(tmp_path / "small" / "model.onnx").graph.initializer
    assert (onnx.numpy_helper.to_array(left) == 42).all()


def test_weights_in_other_files_are_not_read_for_random_ones(cli, glu, tmp_path):
    model = text(
        "(float[1,8,4,4] x) => (float[1,4,4,4] o) { c = Conv(x, w) "
        + GLU.split("y = Exp(x)  z = Softmax(y)")[1].replace("(z)", "(c)")
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((8, 8, 1, 1), np.float32), "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").write_bytes(b"")
    assert cli("why", "m.onnx", "--onnxruntime", "1.24.4").status == 1


def assigned(tmp_path, *nodes, wrap=lambda found: found):
    """Writes subgraphs of one node each: provider, name, operator."""
    found = [{"ep_name": ep, "nodes": [{"name": name, "domain": "", "op_type": op}]} for ep, name, op in nodes]
    (tmp_path / "assigned.json").write_text(json.dumps(wrap(found)))


DML, CPU = "DmlExecutionProvider", "CPUExecutionProvider"
ALIKE = [
    (DML, name, op) for name, op in zip("yzasmo", ["Exp", "Softmax", "Split", "Sigmoid", "Mul", "Neg"], strict=True)
]


@pytest.fixture
def named(tmp_path):
    model = text(GLU.replace("Sigmoid(b)", "Tanh(b)"))
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, tmp_path / "named.onnx")


@pytest.mark.parametrize("wrap", [lambda found: found, lambda found: {"subgraphs": found, "version": "1.24.4"}])
def test_a_machine_that_ran_a_node_elsewhere(cli, named, tmp_path, wrap):
    nodes = [(ep, name, "Tanh" if name == "s" else op) for ep, name, op in ALIKE]
    assigned(tmp_path, *nodes[:3], (CPU, "s", "Tanh"), *nodes[4:], wrap=wrap)
    command = ("why", "named.onnx", "--onnxruntime", "1.24.4", "--runtime-json", "assigned.json", "--format", "json")
    status, out, err = cli(*command)
    said = json.loads(out)
    assert (status, err, said["class"]) == (0, "", None)
    difference = {"node": "s", "op": "Tanh", "predicted": "DML", "machine": "CPU"}
    assert said["machine"] == {"alike": 5, "differences": [difference], "counts": [], "unpredicted": 0}


def test_nodes_without_names_are_counted(cli, named, tmp_path):
    assigned(tmp_path, (DML, "", "Exp"), (CPU, "", "Neg"), (DML, "", "Mul"), (DML, "", "Mul"), ("Other", "y2", "Tanh"))
    command = ("why", "named.onnx", "--onnxruntime", "1.24.4", "--runtime-json", "assigned.json")
    said = json.loads(cli(*command, "--format", "json").out)["machine"]
    assert (said["alike"], said["differences"], said["unpredicted"]) == (0, [], 5)
    counts = {(each["op"], each["provider"]): (each["predicted"], each["machine"]) for each in said["counts"]}
    assert counts == {
        ("Neg", "CPU"): (0, 1),
        ("Neg", "DML"): (1, 0),
        ("Tanh", "DML"): (1, 0),
        ("Tanh", "Other"): (0, 1),
    }  # not of Mul, of which the machine has more than the model
    assert "Neg on CPU: 0 predicted, 1 there" in cli(*command).out


def test_a_machine_beside_a_model_that_is_wrong(cli, glu, tmp_path):
    assigned(tmp_path)
    status, out, _ = cli("why", "glu.onnx", "--onnxruntime", "1.24.4", "--runtime-json", "assigned.json")
    assert (status, "graph/fused-wrongly" in out) == (1, True)


@pytest.mark.parametrize(
    ("text_", "place"),
    [
        ("[", "1:"),
        ("3", "1:1"),
        ('{"subgraph": []}', "1:1"),
        ('[{"ep_name": "x"}]', "1:2"),
        ('[{"ep_name": "x", "nodes": [{"name": "a"}]}]', "1:29"),
        ('[{"ep_name": 3, "nodes": []}]', "1:2"),
        ("[{}, []]", "1:2"),
    ],
)
def test_assignments_of_another_form(cli, glu, tmp_path, text_, place):
    (tmp_path / "assigned.json").write_text(text_)
    status, out, err = cli("why", "glu.onnx", "--runtime-json", "assigned.json")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"assigned.json:{place}" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.onnx",), "none.onnx: No such file"),
        (("text.onnx",), "text.onnx: "),
        (("glu.onnx", "--rule", "graph/empty"), "glu.onnx: .*graph/empty.*graph/fused-wrongly"),
        (("glu.onnx", "--rule", "graph/nonsense"), "graph/nonsense"),
        (("glu.onnx", "--onnxruntime", "9"), "'9'"),
        (("glu.onnx", "--check", "'"), "--check"),
        (("glu.onnx", "--check", ""), "--check"),
        (("glu.onnx", "--check", "no-such-program"), "no-such-program"),
        (("glu.onnx", "--check", f"{Path(sys.executable).as_posix()} -c pass"), "status 0"),
        (("glu.onnx", "-o", "text.onnx"), "text.onnx is a file"),
        (("glu.onnx", "--runtime-json", "none.json"), "none.json: No such file"),
        ((), "MODEL"),
    ],
)
def test_a_mistake_is_one_line(cli, glu, tmp_path, arguments, said):
    (tmp_path / "text.onnx").write_text("no model")
    status, out, err = cli("why", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert re.search(said, err)


def test_names_are_made_printable(cli, tmp_path):
    model = text(GLU)
    model.graph.node[4].name = name = HOSTILE.replace("\ud800", "")
    onnx.save(model, tmp_path / "hostile.onnx")
    out = cli("why", "hostile.onnx", "--onnxruntime", "1.24.4", "-o", "small").out
    assert name not in out
    assert HOSTILE_SHOWN.removesuffix(r"\ud800") in out


@posix
def test_nothing_is_written_where_a_file_cannot_be(cli, glu, tmp_path):
    (tmp_path / "small" / "why.json").mkdir(parents=True)
    status, _, err = cli("why", "glu.onnx", "-o", "small")
    assert (status, err.count("\n"), os.listdir(tmp_path / "small")) == (2, 1, ["why.json"])


def test_the_model_is_not_replaced(cli, glu, tmp_path):
    (tmp_path / "glu.onnx").rename(tmp_path / "model.onnx")
    before = (tmp_path / "model.onnx").read_bytes()
    status, _, err = cli("why", "model.onnx", "-o", ".")
    assert (status, err.count("\n")) == (2, 1)
    assert (tmp_path / "model.onnx").read_bytes() == before
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_a_type_without_a_kernel_is_named(cli, tmp_path):
    onnx.save(text("(double[2] x) => (double[2] y) { y = Softmax(x) }"), tmp_path / "m.onnx")
    out = cli("why", "m.onnx", "--onnxruntime", "1.24.4", "--rule", "placement/types").out
    assert "  y: Softmax of DOUBLE: DirectML has no kernel for the node's element types" in out
