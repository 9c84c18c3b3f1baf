"""check and others with versions of ONNX Runtime as targets."""

import json

import numpy as np
import pytest
from onnx import helper, numpy_helper

import dmlsplit as dml
from dmlsplit.checking.files import judge_file
from dmlsplit.checking.question import Question
from dmlsplit.formats import onnx as front_end
from dmlsplit.models import inference
from dmlsplit.models.inference import Inference
from dmlsplit.onnxruntime.prediction import answer_json, on_onnxruntime
from dmlsplit.targets.runtime_versions import NEWEST, runtimes
from dmlsplit.targets.target import find_target
from tests.cli.conftest import BAD, GOOD, MALFORMED
from tests.effort import calls
from tests.models import FLOAT, model, node, value

KEYS = ["schema", "file", "index", "operator", "judged_by", "ok", "hresult", "diagnostics", "onnxruntime"]
SPLIT = node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2, name="s")
VERSION = ["--onnxruntime", "1.24.4"]


def write(path, nodes, shape=("n", 4), data_type=FLOAT, opset=18, outputs="ab", **more):
    made = model(nodes, [value("x", shape, data_type)], tuple(outputs), opset, ir_version=8, **more)
    path.write_bytes(made.SerializeToString())


def asked(cli, *arguments):
    status, out, err = cli("check", "m.onnx", "--format", "json", *arguments)
    assert err == ""
    return status, json.loads(out)


def test_an_answer_has_one_more_key(cli, tmp_path):
    write(tmp_path / "m.onnx", [SPLIT], (2, 4))
    status, (answer,) = asked(cli, *VERSION)
    assert (status, list(answer), answer["judged_by"]) == (0, [*KEYS, "model"], "onnxruntime 1.24.4")
    assert answer["ok"] is True
    (found,) = on_onnxruntime(tmp_path / "m.onnx", "1.24.4")
    assert answer["onnxruntime"] == json.loads(json.dumps(answer_json(found.answer)))
    assert answer["onnxruntime"]["outcome"] == "DML"
    assert answer["onnxruntime"]["compile"] == {"call": "CompileGraph", "flags": 0}
    assert "onnxruntime" not in asked(cli, "--directml", "1.15.4")[1][0]


def test_sizes_are_the_first_runs_or_overrides_at_session_creation(cli, tmp_path):
    write(tmp_path / "m.onnx", [SPLIT])
    for given, outcome, at in (
        ([], "unknown", "run"),
        (["--dim", "n=3"], "DML", "run"),
        (["--shape", "x:3,4"], "DML", "run"),
        (["--free-dimension", "n=3"], "DML", "init"),
        (["--free-dimension", "n=3", "--shape", "x:3,4"], "DML", "init"),
    ):
        status, (answer,) = asked(cli, *VERSION, *given)
        assert (status, answer["onnxruntime"]["outcome"], answer["onnxruntime"]["at"]) == (0, outcome, at), given
        sizes = [operator["Desc"]["InputTensor"]["Desc"]["Sizes"] for operator in answer["onnxruntime"]["operators"]]
        assert sizes == ([[1, 1, 3, 4]] if given else [])


def test_a_failing_session_is_not_ok_and_the_cpu_is_only_said(cli, tmp_path):
    write(tmp_path / "m.onnx", [node("Split", ["x"], ["", "b"], axis=1, num_outputs=2, name="s")], (2, 4), outputs="b")
    status, (answer,) = asked(cli, *VERSION)
    assert (status, answer["ok"], answer["hresult"]) == (1, False, "0x80070057")
    assert answer["onnxruntime"]["outcome"] == "session-fails"
    assert answer["diagnostics"][-1]["rule"] == "onnxruntime/output-omitted"
    write(tmp_path / "m.onnx", [SPLIT], (2, 4), data_type=11)
    status, (answer,) = asked(cli, *VERSION, "--assume", "no-float64")
    assert (status, answer["ok"], answer["hresult"]) == (0, True, None)
    assert answer["onnxruntime"]["outcome"] == "CPU"
    assert [(d["rule"], d["severity"]) for d in answer["diagnostics"]] == [("onnxruntime/double-on-cpu", "warning")]
    assert asked(cli, *VERSION)[1][0]["onnxruntime"]["outcome"] == "DML"
    flags = asked(cli, *VERSION, "--assume", "compute-only")[1][0]["onnxruntime"]["compile"]["flags"]
    assert flags == dml.ExecutionFlags.DESCRIPTORS_VOLATILE


def test_over_the_dll_of_a_windows(cli, tmp_path):
    """The DLL is too old for a session, or there is none: said of each node, by one rule."""
    write(tmp_path / "m.onnx", [SPLIT], (2, 4))
    for name, said in (("10-22H2", "has 2_0"), ("11-21H2", "has 4_0"), ("10-1809", "has no DirectML.dll")):
        status, (answer,) = asked(cli, *VERSION, "--windows", name)
        (found,) = answer["diagnostics"]
        assert (status, answer["onnxruntime"]["outcome"], found["rule"]) == (
            1,
            "session-fails",
            "onnxruntime/no-device",
        )
        assert said in found["message"]
    for name in ("11-22H2", "11-24H2"):
        status, (answer,) = asked(cli, *VERSION, "--windows", name)
        assert (status, answer["onnxruntime"]["outcome"]) == (0, "DML")
    status, (answer,) = asked(cli, "--windows-ml", "2.1")
    assert (status, answer["judged_by"]) == (0, "Windows ML 2.1.71 (onnxruntime 1.24.6)")
    status, (answer,) = asked(cli, "--windows-ml", "2.5")
    assert (status, answer["onnxruntime"]["outcome"]) == (0, "DML")
    assert answer["judged_by"] == "Windows ML 2.5.96 (onnxruntime 1.28.3)"


def test_several_versions_tell_what_an_upgrade_breaks(cli, tmp_path):
    write(tmp_path / "m.onnx", [SPLIT], (2, 4), opset=22)
    several = ["--onnxruntime", "1.20.1", "--onnxruntime", "1.24.4", "--directml", "1.15.4"]
    status, answers = asked(cli, *several)
    assert (status, [answer["ok"] for answer in answers]) == (1, [True, False, True])
    assert [answer["judged_by"] for answer in answers] == [
        "directml 1.15.4",
        "onnxruntime 1.20.1",
        "onnxruntime 1.24.4",
    ]
    lines = cli("check", "m.onnx", *several).out.splitlines()
    assert lines[0] == (
        "m.onnx: onnxruntime 1.20.1: session fails: the model has opset 22, but 1.20.1 supports up to 21"
    )
    assert lines[1].startswith("m.onnx: onnxruntime 1.24.4: session created; 1 node: 1 on DirectML")
    _, head, row, changed, *_ = lines[4:]
    assert changed == (
        "m.onnx: breaks: 1 node from as it is with directml 1.15.4 to session-fails with onnxruntime 1.20.1: s"
    )
    assert head.split("  ")[-2:] == ["onnxruntime 1.20.1", "onnxruntime 1.24.4"]
    assert row.split()[-3:] == ["is", "session-fails", "DML"]


def test_what_is_no_node_of_an_onnx_model_is_judged_by_the_directml_inside(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join([GOOD, BAD, MALFORMED]))
    result = cli("check", "a.jsonl", "--onnxruntime", "1.18.0", "--format", "json")
    answers = json.loads(result.out)
    assert (result.status, [list(answer) for answer in answers]) == (2, [KEYS] * 3)
    assert [answer["onnxruntime"] for answer in answers] == [None] * 3
    inside = json.loads(cli("check", "a.jsonl", "--directml", "1.14.1", "--format", "json").out)
    assert [answer["diagnostics"] for answer in answers] == [answer["diagnostics"] for answer in inside]


def test_a_file_is_read_and_inferred_once_for_all_versions(tmp_path, monkeypatch):
    nodes = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=1, num_outputs=2, name="s")]
    write(tmp_path / "m.onnx", nodes, (2, 4))
    inferred = []
    infer = Inference.infer_shapes
    monkeypatch.setattr(
        Inference, "infer_shapes", lambda self, made, **how: inferred.append(made) or infer(self, made, **how)
    )

    def judged(*versions):
        targets = tuple(find_target(onnxruntime=version) for version in versions)
        return lambda: list(judge_file(str(tmp_path / "m.onnx"), Question(targets)))

    several = "1.20.1", "1.24.4", "1.30.0"
    judged(*several)()  # reads the tables of each
    once = len(inferred)
    alone, three = calls(judged("1.24.4")), calls(judged(*several))
    assert len(inferred) == 3 * once
    assert three < 1.8 * alone, (three, alone)


def test_versions_that_are_asked_together_answer_as_each_alone(cli, tmp_path):
    """A Resize of opset 18 has a kernel from 1.19 on only: the graph around it is another one then."""
    nodes = [node("Mish", ["x"], ["m"]), SPLIT, node("Relu", ["a"], ["c"]), node("Concat", ["m", "b"], ["d"], axis=1)]
    nodes += [node("Tanh", ["d"], ["e"]), node("Resize", ["e", "", "scales"], ["f"])]
    scales = numpy_helper.from_array(np.ones(4, np.float32), "scales")
    write(tmp_path / "m.onnx", nodes, (2, 4, 1, 1), opset=18, outputs="cf", initializers=[scales])
    versions = ("1.18.0", "1.19.2", "1.20.1", "1.24.4", "1.30.0")
    together = asked(cli, *[word for version in versions for word in ("--onnxruntime", version)])[1]
    for version in versions:
        alone = asked(cli, "--onnxruntime", version)[1]
        assert [answer for answer in together if answer["onnxruntime"]["version"] == version] == alone
    flags = {answer["onnxruntime"]["version"]: answer["onnxruntime"]["compile"] for answer in together}
    assert flags["1.18.0"] != flags["1.19.2"], "Resize of opset 18 is in the fused graph from 1.19 on"


@pytest.mark.parametrize("way", ["option", "configuration"])
def test_a_version_without_a_patch_number(cli, tmp_path, way):
    write(tmp_path / "m.onnx", [SPLIT], (2, 4))
    given = ["--onnxruntime", "1.24"]
    if way == "configuration":
        (tmp_path / "dmlsplit.toml").write_text('onnxruntime = "1.24"\n')
        given = []
    (answer,) = json.loads(cli("check", "m.onnx", *given, "--format", "json").out)
    assert answer["onnxruntime"]["version"] == "1.24.4"
    (report,) = dml.check_files(["m.onnx"], onnxruntime="1.24")
    assert report.judged_by == answer["judged_by"] == "onnxruntime 1.24.4"


def test_processes_give_the_same(cli, tmp_path):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.onnx", [SPLIT], (2, 4))
    alone = cli("check", "a.onnx", "b.onnx", *VERSION, "--format", "jsonl")
    assert cli("check", "a.onnx", "b.onnx", *VERSION, "--format", "jsonl", "--jobs", "2") == alone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--onnxruntime", "1.2"], "unknown version of ONNX Runtime '1.2'; known: "),
        ([*VERSION, "--feature-level", "3_0"], "--feature-level and --onnxruntime exclude each other"),
        ([*VERSION, "--free-dimension", "n"], "--free-dimension n: NAME=4 is expected"),
        ([*VERSION, "--free-dimension", "m=4"], "there is no symbolic dimension 'm'"),
        ([*VERSION, "--free-dimension", "n=4", "--dim", "n=3"], "dimension 'n' is both 3 and 4"),
        ([*VERSION, "--assume", "nothing"], "'nothing' is not one of 'no-float64'"),
    ],
)
def test_usage(cli, tmp_path, arguments, message):
    write(tmp_path / "m.onnx", [SPLIT])
    status, _, err = cli("check", "m.onnx", *arguments)
    assert (status, err.count("\n")) == (2, 1)
    assert message in err


def test_legalize_takes_a_version_for_the_directml_inside(cli, tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    assert "accepted as it is" in cli("legalize", "a.json", *VERSION).out
    many = cli("legalize", "a.json", *VERSION, "--onnxruntime", "1.18.0")
    assert (many.status, "one release at a time" in many.err) == (2, True)


def test_a_node_is_asked(tmp_path):
    write(tmp_path / "m.onnx", [SPLIT, node("Concat", ["b", "a"], ["c"], axis=1, name="c")])
    split, _ = front_end.read(tmp_path / "m.onnx")
    assert split.on_onnxruntime("1.24.4").outcome == "unknown"
    answer = split.on_onnxruntime("1.24.4", run_shapes={"x": (3, 4)})
    assert (answer.outcome, answer.at, answer.hresults) == ("DML", "run", (0,))
    assert answer.operators[0].input_tensor.sizes == (1, 1, 3, 4)
    assert split.on_onnxruntime("1.24.4", free_dimensions={"n": 3}).at == "init"
    split, _ = front_end.read(tmp_path / "m.onnx", shapes={"x": (3, 4)})
    assert split.on_onnxruntime("1.24.4") == answer, "the sizes that it was read with are the first Run's"
    _, join = front_end.read(tmp_path / "m.onnx", dims={"n": 3})
    assert join.on_onnxruntime("1.24.4").operators[0].output_tensor.sizes == (1, 1, 3, 4)
    with pytest.raises(dml.InputError, match="there is no tensor 'y'"):
        split.on_onnxruntime("1.24.4", run_shapes={"y": (3, 4)})
    with pytest.raises(ValueError, match="unknown version"):
        split.on_onnxruntime("9")


def test_nodes_without_names_in_functions_have_their_own_answers(tmp_path):
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    split = node("Split", ["v"], ["p", "q"], axis=-1, num_outputs=2)
    inner = helper.make_function("own", "Inner", ["v"], ["p", "q"], [split], imports)
    call = node("Inner", ["v"], ["p", "q"], domain="own")
    outer = helper.make_function("own", "Outer", ["v"], ["p"], [call], imports)
    nodes = [node("Outer", ["x"], ["a"], domain="own"), node("Outer", ["a"], ["b"], domain="own")]
    nodes.append(node("Inner", ["b"], ["c", "d"], domain="own"))
    write(tmp_path / "m.onnx", nodes, (2, 16), outputs="cd", functions=[inner, outer], domains=["own"])
    found = front_end.read(tmp_path / "m.onnx")
    assert [n.on_onnxruntime("1.24.4").operators[0].input_tensor.sizes[-1] for n in found] == [16, 8, 4]


def test_check_files(tmp_path):
    write(tmp_path / "m.onnx", [SPLIT], data_type=11)
    path = tmp_path / "m.onnx"
    (report,) = dml.check_files([path], onnxruntime="1.24.4", free_dimensions={"n": 3}, assume=["no-float64"])
    assert (report.judged_by, report.answer.outcome) == (
        "onnxruntime 1.24.4 without double-precision operations",
        "CPU",
    )
    with pytest.raises(ValueError, match="exclude each other"):
        dml.check_files([path], onnxruntime="1.24.4", directml="1.15.4")


def test_sarif_and_the_page_have_the_outcome(cli, tmp_path):
    write(tmp_path / "m.onnx", [node("Split", ["x"], ["", "b"], axis=1, num_outputs=2, name="s")], (2, 4))
    log = json.loads(cli("check", "m.onnx", *VERSION, "--format", "sarif").out)
    found = {result["ruleId"]: result for result in log["runs"][0]["results"]}["onnxruntime/output-omitted"]
    assert found["properties"]["onnxruntime"]["outcome"] == "session-fails"
    assert (found["level"], found["properties"]["judgedBy"]) == ("error", "onnxruntime 1.24.4")
    page = cli("check", "m.onnx", *VERSION, "--format", "html").out
    assert "<small>session-fails</small>" in page
    assert "Judged by onnxruntime 1.24.4." in page


def test_levels_of_all_versions(cli, tmp_path):
    write(tmp_path / "m.onnx", [SPLIT], (2, 4), opset=22)
    status, out, _ = cli("levels", "m.onnx", "--runtimes")
    assert (status, out.splitlines()[0]) == (0, f"m.onnx: 's' Split: taken by 1.21.0-{NEWEST.version}")
    assert "  refused by 1.18.0-1.20.1:" in out.splitlines()
    assert {"1.20.1      no", "1.24.4     yes", "1.17.3*      ?"} <= set(out.splitlines())
    (found,) = json.loads(cli("levels", "m.onnx", "--runtimes", "--json").out)
    assert (found["runtimes"][0], found["unknown"][-1], found["on_cpu"]) == ("1.21.0", "1.17.3", [])
    assert [refusal["runtimes"][-1] for refusal in found["refused"]] == ["1.20.1"]
    write(tmp_path / "m.onnx", [SPLIT], (2, 4), data_type=8)
    status, out, _ = cli("levels", "m.onnx", "--runtimes")
    assert (status, f"  on the CPU with 1.18.0-{NEWEST.version}" in out.splitlines()) == (0, True)


def test_levels_of_descriptors_and_of_nothing(cli, tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    (found,) = json.loads(cli("levels", "a.json", "--runtimes", "--json").out)
    assert found["runtimes"] == [runtime.version for runtime in runtimes()], "the DirectML inside is asked"
    listed = json.loads(cli("levels", "--runtimes", "--json").out)["runtimes"]
    assert [row["version"] for row in listed] == found["runtimes"]
    assert "1.24.4        1.15.4    25     13  onnxruntime-directml" in cli("levels", "--runtimes").out.splitlines()
    assert "exclude each other" in cli("levels", "--runtimes", "--releases").err


def test_reading_a_model_and_asking_about_it_is_one_inference(tmp_path, monkeypatch):
    nodes = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=1, num_outputs=2, name="only-once")]
    write(tmp_path / "m.onnx", nodes, (2, 4))
    inferred = []
    infer = inference._worker.infer
    monkeypatch.setattr(inference._worker, "infer", lambda *asked: inferred.append(asked) or infer(*asked))
    (report,) = dml.check_files([tmp_path / "m.onnx"], onnxruntime="1.24.4")
    assert (report.ok, len(inferred)) == (True, 1)
