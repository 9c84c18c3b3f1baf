"""check, levels and plan with models of frameworks, many files, and SARIF."""

import json
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import onnx
import pytest

import dmlsplit as dml
from dmlsplit.report.formats import FORMATS
from dmlsplit.targets.runtime_versions import NEWEST
from tests.cli.conftest import BAD, GOOD, HOSTILE, on_terminal, posix
from tests.models import BOOL, FLOAT, model, node, value
from tests.report.sarif_schema import faults

KEYS = ["schema", "file", "index", "operator", "judged_by", "ok", "hresult", "diagnostics"]


def write(path, nodes, shape=(2, 4), data_type=FLOAT, opset=18):
    path.write_bytes(model(nodes, [value("x", shape, data_type)], opset=opset).SerializeToString())


@pytest.fixture
def models(tmp_path):
    """good, bad, open (a symbolic size), rank (an unknown rank), none and broken .onnx in the current folder."""
    write(tmp_path / "good.onnx", [node("Split", ["x"], ["a", "b"], axis=-1, num_outputs=2, name="s")], data_type=BOOL)
    write(tmp_path / "bad.onnx", [node("Split", ["x"], ["a", "b"], name="t")])
    write(tmp_path / "open.onnx", [node("Split", ["x"], ["a", "b"], num_outputs=2, name="u")], ("n", 4))
    write(tmp_path / "rank.onnx", [node("Concat", ["x", "x"], ["a"], axis=0, name="v")], None)
    write(tmp_path / "none.onnx", [node("Relu", ["x"], ["a"])])
    (tmp_path / "broken.onnx").write_bytes(b"\xff")
    return tmp_path


def test_a_table_the_diagnostics_and_a_summary(cli, models):
    status, out, err = cli("check", "good.onnx", "bad.onnx", "--feature-level", "1_0")
    lines = out.splitlines()
    assert (status, err) == (1, "")
    assert lines[0].startswith("good.onnx: 1 Split or Concat")
    assert lines[1].split() == [
        "Node",
        "Operator",
        "Whole",
        "Axis",
        "Lengths",
        "Verdict",
        "Level",
        "feature",
        "level",
        "1_0",
    ]
    assert lines[2].split()[:9] == ["s", "Split", "18", "BOOL", "[2,", "4]", "1", "[2,", "2]"]
    assert "ok" in lines[2]
    assert "3_0" in lines[2]
    assert "rewritten: " in lines[2]
    assert any("note[node/rewritten] s: " in line for line in lines)
    assert any(line.startswith("bad.onnx: error[onnx/split-or-num-outputs-missing] t.num_outputs: ") for line in lines)
    assert any(line.startswith("bad.onnx: warning[node/runtime-differs] t.num_outputs: ") for line in lines)
    assert lines[-1] == "2 operators: 1 ok, 1 not ok; 1 error, 1 warning, 1 note"


def test_legalize_takes_the_sizes_that_check_takes(cli, models):
    result = cli("legalize", "open.onnx", "--dim", "n=3", "--feature-level", "1_0", "-o", "lower.json")
    assert (result.status, result.err) == (0, "")
    assert "as FLOAT32 {1,1,3,4}" in result.out
    assert cli("run", "lower.json").out.splitlines() == [
        "Resource 'u output 0': 1, 2, 3, 4, 5, 6, 7, 8",
        "Resource 'u output 1': 9, 10, 11, 12",
    ]


def test_a_model_without_split(cli, models):
    status, out, err = cli("check", "none.onnx")
    assert (status, err) == (0, "")
    note, hint, summary = out.splitlines()
    said = "none.onnx: note[input/no-split] there is no Split and no Concat"
    assert note == said
    asked = f"--onnxruntime {NEWEST.version}"
    assert hint == f"hint: no session was judged; {asked} says whether the model loads and where its nodes run"
    assert summary == "0 operators"
    assert said in cli("check", "none.onnx", "--onnxruntime", "1.24.4").out.splitlines()
    assert json.loads(cli("check", "none.onnx", "--format", "json").out) == []


def test_one_answer_a_node(cli, models):
    status, out, _ = cli("check", "good.onnx", "bad.onnx", "open.onnx", "--format", "jsonl")
    answers = [json.loads(line) for line in out.splitlines()]
    assert status == 1
    assert all(list(answer) == KEYS for answer in answers)
    assert [(a["file"], a["operator"], a["ok"], a["hresult"]) for a in answers] == [
        ("good.onnx", "Split", True, "0x00000000"),
        ("bad.onnx", "Split", False, None),
        ("open.onnx", "Split", True, None),
    ]
    assert cli("check", "rank.onnx", "--fail-on", "warning").status == 1


def test_open_sizes_are_answered_for_all_of_them(cli, models):
    """What holds for the sizes that the condition names is no warning; what else there is to say is one line a file."""
    both = [node("Split", ["x"], ["a", "b"], num_outputs=2, name="u"), node("Concat", ["a", "x"], ["c"], axis=0)]
    write(models / "several.onnx", both, ("n", 4))
    status, out, _ = cli("check", "several.onnx", "--feature-level", "3_0", "--fail-on", "warning")
    table = " ".join(out.split())
    assert status == 0
    assert "3_0 as it is if [1]" in table
    assert "[1] n at least 2, at most 4,294,967,295 elements" in table
    assert "shape-unknown" not in out
    assert out.count("node/sizes-open") == 1
    assert "2 nodes (u, c): open sizes; to pass it: --dim n=NUMBER; rewritten if a size is 0" in out
    answers = json.loads(cli("check", "several.onnx", "--feature-level", "2_0", "--format", "json").out)
    for answer in answers:
        [diagnostic] = answer["diagnostics"]
        assert (answer["ok"], diagnostic["severity"]) == (True, "note")
        assert diagnostic["message"].startswith("rewritten (")
        assert diagnostic["expected"] == "to pass it: --dim n=NUMBER"


def test_where_the_inputs_are_known_the_hint_names_the_tensor(cli, models):
    """Two tensors whose sizes depend on data: each option that is named works, and both make the node known."""
    found = [node("NonZero", ["x"], ["i"]), node("NonZero", ["y"], ["j"]), node("Concat", ["i", "j"], ["a"], axis=1)]
    inputs = [value("x", (2, 4)), value("y", (2, 4))]
    (models / "nonzero.onnx").write_bytes(model([*found], inputs).SerializeToString())
    (answer,) = json.loads(cli("check", "nonzero.onnx", "--format", "json").out)
    (diagnostic,) = answer["diagnostics"]
    assert diagnostic["rule"] == "node/sizes-open"
    assert diagnostic["expected"] == "to pass it: --shape i:2,?; to pass it: --shape j:2,?"
    given = ["--shape", "i:2,3", "--shape", "j:2,5"]
    (answer,) = json.loads(cli("check", "nonzero.onnx", *given, "--format", "json").out)
    assert (answer["ok"], answer["diagnostics"]) == (True, [])


def test_in_a_function_no_option_names_a_tensor(cli, models):
    body = [node("NonZero", ["p"], ["i"]), node("Concat", ["i", "i"], ["q"], axis=-1)]
    function = onnx.helper.make_function("f", "F", ["p"], ["q"], body, [onnx.helper.make_opsetid("", 18)])
    made = model([node("F", ["x"], ["a"], domain="f")], [value("x", (2, 4))], functions=[function], domains=["f"])
    (models / "f.onnx").write_bytes(made.SerializeToString())
    (answer,) = json.loads(cli("check", "f.onnx", "--format", "json").out)
    assert "--shape" not in str(answer["diagnostics"])


def test_shapes_and_sizes(cli, models):
    unknown = cli("check", "open.onnx").out
    assert "--dim n=NUMBER" in unknown
    for given in (["--dim", "n=6"], ["--shape", "x:6,4"], ["--shape", "x:6,?"]):
        assert "[3, 3]" in cli("check", "open.onnx", *given).out
    status, _, err = cli("check", "open.onnx", "--dim", "m=6")
    assert status == 2
    assert "there is no symbolic dimension 'm'; the model has n" in err
    # Of several models, not each has to have it.
    assert cli("check", "open.onnx", "good.onnx", "--dim", "m=6").status == 0


@pytest.mark.parametrize(
    "option",
    [("--shape", "x"), ("--shape", "x:1,a"), ("--shape", ":1"), ("--dim", "n"), ("--dim", "n=x"), ("--dim", "=1")],
)
def test_malformed_options(cli, models, option):
    status, out, err = cli("check", "open.onnx", *option)
    assert (status, out) == (2, "")
    assert "is expected" in err


def test_many_files_in_order_and_one_broken(cli, models):
    (models / "a.json").write_text(GOOD)
    (models / "b.jsonl").write_text(BAD)
    names = ["good.onnx", "broken.onnx", "a.json", "missing.onnx", "b.jsonl", "bad.onnx"]
    alone = cli("check", *names, "--format", "jsonl")
    together = cli("check", *names, "--format", "jsonl", "--jobs", "2")
    assert alone.status == together.status == 2
    assert alone.out == together.out
    assert alone.err == together.err
    assert [json.loads(line)["file"] for line in alone.out.splitlines()] == names


@posix
def test_a_bar_for_several_files(models):
    for names, bar in ((["good.onnx"], False), (["good.onnx", "bad.onnx"], True)):
        status, out = on_terminal(models, "check", *names, "--jobs", "2")
        assert status == int(bar)
        assert ("files " in out) is bar


def test_patterns(cli, models):
    files = {json.loads(line)["file"] for line in cli("check", "*o*.onnx", "--format", "jsonl").out.splitlines()}
    assert files == {"good.onnx", "open.onnx", "broken.onnx"}
    (models / "[x].onnx").write_bytes((models / "good.onnx").read_bytes())
    assert cli("check", "[x].onnx").status == 0
    assert cli("check", "nothing*.onnx").status == 2


def test_a_missing_package_is_named(cli, models, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    status, _, err = cli("check", "good.onnx", "--format", "json")
    assert status == 2
    assert err == "dmlsplit: good.onnx: ONNX models need the package onnx: pip install 'dmlsplit[onnx]'\n"


@pytest.mark.parametrize("format", FORMATS)
def test_operators_are_judged_without_the_package(tmp_path, format):
    (tmp_path / "a.json").write_text(GOOD)
    program = "import sys; sys.modules['onnx'] = None; from dmlsplit.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "check", str(tmp_path / "a.json"), "--format", format]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout or format == "github"


def test_levels_and_plan(cli, models):
    status, out, _ = cli("levels", "good.onnx")
    assert status == 0
    assert out.startswith("good.onnx: 's' DML_OPERATOR_SPLIT: taken by 3_0-6_4\n")
    status, out, _ = cli("levels", "open.onnx", "--dim", "n=2")
    assert "taken by 3_0-6_4" in out
    status, out, _ = cli("levels", "open.onnx")
    assert status == 0
    assert out.startswith("open.onnx: 'u' Split: taken by 3_0-6_4\n  1_0-2_1: rewritten (n at least 2, at most ")
    assert {line.split()[1] for line in out.splitlines() if line[:2] in ("1_", "6_")} == {"(yes)", "yes"}
    [answer] = json.loads(cli("levels", "open.onnx", "--json").out)
    assert (answer["minimum_feature_level"], answer["diagnostics"]) == ("3_0", [])
    assert [entry["feature_levels"][0] for entry in answer["open_sizes"]] == ["1_0", "3_0"]
    status, out, _ = cli("levels", "rank.onnx")
    assert (status, "taken by" in out) == (0, False)
    assert out.startswith("rank.onnx: 'v' Concat: not known\n    warning[node/shape-unknown] ")
    assert "\n?: too little is known\n" in out
    assert {line.split()[1] for line in out.splitlines() if line[:1].isdigit()} == {"?"}
    [answer] = json.loads(cli("levels", "rank.onnx", "--json").out)
    assert answer["minimum_feature_level"] is None
    assert [d["rule"] for d in answer["diagnostics"]] == ["node/shape-unknown"] * 2
    status, out, _ = cli("levels", "bad.onnx")
    assert status == 1
    assert "onnx/split-or-num-outputs-missing" in out
    status, out, _ = cli("plan", "good.onnx")
    assert status == 0
    assert "split, 2 parts" in out
    assert cli("plan", "bad.onnx").status == 1


def test_a_concat_is_judged_wherever_a_split_is(cli, models):
    inputs = [value("x", (2, 3)), value("z", (2, 5))]
    concat = node("Concat", ["x", "z"], ["y"], axis=-1, name="c")
    (models / "concat.onnx").write_bytes(model([concat], inputs, ["y"]).SerializeToString())
    out = cli("check", "concat.onnx", "--feature-level", "2_0").out.splitlines()
    assert out[2].split() == [
        "c", "Concat", "13", "FLOAT", "[2,", "8]", "1", "[3,", "5]", "ok", "4_1", "rewritten:", "FLOAT32", "{1,1,2,8}",
    ]  # fmt: skip
    [answer] = json.loads(cli("check", "concat.onnx", "--format", "json").out)
    assert (answer["operator"], answer["ok"], answer["hresult"]) == ("Concat", True, "0x00000000")
    assert "concat.onnx" in cli("check", "concat.onnx", "--feature-level", "2_0", "--format", "sarif").out
    assert "Concat 13" in cli("check", "concat.onnx", "--format", "html").out
    assert cli("levels", "concat.onnx").out.startswith("concat.onnx: 'c' DML_OPERATOR_JOIN: taken by 4_1-6_4\n")
    assert "join, 2 parts" in cli("plan", "concat.onnx").out
    assert cli("draw", "concat.onnx", "-o", "concat.svg").status == 0
    assert "OutputTensor" in (models / "concat.svg").read_text("utf-8")
    assert cli("legalize", "concat.onnx", "--feature-level", "2_0", "-o", "concat.json").status == 0
    assert cli("check", "concat.json", "--feature-level", "2_0").status == 0
    assert cli("run", "concat.json").out == "Resource 'c output': 1, 2, 3, 1, 2, 3, 4, 5, 4, 5, 6, 6, 7, 8, 9, 10\n"


def test_legalize(cli, models):
    status, out, _ = cli("legalize", "good.onnx", "--feature-level", "1_0", "-o", "good.json")
    assert status == 0
    assert "runs on feature level 1_0 as " in out
    assert cli("check", "good.json", "--feature-level", "1_0").status == 0
    for name, rule in (("bad", "onnx/split-or-num-outputs-missing"), ("rank", "node/shape-unknown")):
        status, out, err = cli("legalize", f"{name}.onnx", "--feature-level", "1_0", "-o", f"{name}.json")
        assert status == 1
        assert rule in out
        assert "\n  not rewritten\n" in out
        assert "not written" in err
        assert not (models / f"{name}.json").exists()
    status, out, _ = cli("legalize", "open.onnx", "--feature-level", "1_0")
    assert (status, "'u' Split: rewritten (n at least 2, at most " in out) == (0, True)
    status, out, err = cli("legalize", "open.onnx", "--feature-level", "1_0", "-o", "open.json")
    assert (status, "not rewritten without its sizes; to pass it: --dim n=NUMBER" in out) == (1, True)
    assert "not written" in err
    assert not (models / "open.json").exists()
    status, out, _ = cli("legalize", "open.onnx", "--dim", "n=6", "--feature-level", "1_0")
    assert (status, "{1,1,6,4}" in out) == (0, True)
    assert cli("legalize", "none.onnx", "--feature-level", "1_0").status == 0


def test_hostile_names_are_shown(cli, models):
    name = HOSTILE.replace("\ud800", "")
    write(models / "h.onnx", [node("Split", ["x"], ["a", "b"], num_outputs=0, name=name)])
    for options in ([], ["--format", "jsonl"], ["--format", "sarif"]):
        out = cli("check", "h.onnx", *options).out
        assert "\x1b" not in out
        assert "\u202e" not in out


class TestSarif:
    def log(self, cli, *args):
        return json.loads(cli("check", *args, "--format", "sarif").out)

    def test_the_schema(self, cli, models):
        name = HOSTILE.replace("\ud800", "")
        write(models / "h.onnx", [node("Split", ["x"], ["a", "b"], num_outputs=0, name=name)])
        (models / "b.json").write_text(BAD)
        log = self.log(cli, "b.json", "h.onnx", "bad.onnx", "open.onnx", "good.onnx", "none.onnx", "broken.onnx")
        assert len(log["runs"][0]["results"]) > 6
        assert faults(log) == []

    def test_places(self, cli, models):
        (models / "b.json").write_text(BAD)
        (models / "c d.jsonl").write_text("\n{}x")
        log = self.log(cli, "b.json", "bad.onnx", "c d.jsonl", "none.onnx")
        assert log["version"] == "2.1.0"
        [run] = log["runs"]
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert len(rules) == len(set(rules))
        results = {result["ruleId"]: result for result in run["results"]}
        for result in run["results"]:
            assert rules[result["ruleIndex"]] == result["ruleId"]
            assert result["level"] in ("error", "warning", "note")
            assert result["message"]["text"]
        [json_place] = results["split/axis-sizes-sum"]["locations"]
        assert json_place["physicalLocation"]["artifactLocation"]["uri"] == "b.json"
        assert json_place["physicalLocation"]["region"]["startLine"] == 1
        assert json_place["physicalLocation"]["region"]["startColumn"] > 1
        assert json_place["logicalLocations"][0]["fullyQualifiedName"] == "OutputTensors"
        [node_place] = results["onnx/split-or-num-outputs-missing"]["locations"]
        assert node_place["physicalLocation"] == {"artifactLocation": {"uri": "bad.onnx"}}
        assert node_place["logicalLocations"][0]["fullyQualifiedName"] == "t.num_outputs"
        assert node_place["logicalLocations"][0]["name"] == "t"
        [unread] = results["input/malformed"]["locations"]
        assert unread["physicalLocation"]["artifactLocation"]["uri"] == "c%20d.jsonl"
        assert run["invocations"] == [{"executionSuccessful": False}]

    def test_nothing_found(self, cli, models):
        (models / "a.json").write_text(GOOD)
        [run] = self.log(cli, "a.json")["runs"]
        assert run["results"] == []
        assert run["invocations"] == [{"executionSuccessful": True}]


class TestCheckFiles:
    @pytest.mark.parametrize("executor", [None, ThreadPoolExecutor, ProcessPoolExecutor])
    def test_any_executor(self, models, executor):
        names = [models / name for name in ("good.onnx", "broken.onnx", "none.onnx", "bad.onnx")]
        if executor is None:
            reports = list(dml.check_files(names, feature_level="3_0"))
        else:
            with executor(2) as running:
                reports = list(dml.check_files(names, feature_level="3_0", executor=running))
        assert [report.ok for report in reports] == [True, False, False]
        assert {report.judged_by for report in reports} == {"feature level 3_0"}
        assert reports[1].diagnostics[0].rule == "input/malformed"

    def test_targets(self, models):
        with pytest.raises(ValueError, match="exclude"):
            dml.check_files([], feature_level="3_0", directml="1.8.0")
        [report] = dml.check_files([models / "open.onnx"], dims={"n": 4}, directml="1.8.0")
        assert report.judged_by == "directml 1.8.0"
        assert not report.diagnostics


@pytest.mark.parametrize("options", [(), ("--select", "node/"), ("--ignore", "onnx/")])
def test_what_cannot_be_read_is_reported_whatever_is_selected(cli, tmp_path, options):
    body = [node("f", ["x"], ["t"], domain="d"), node("Split", ["t"], ["y", "z"], num_outputs=2)]
    own = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("d", 1)]
    made = model([node("f", ["x"], ["a"], domain="d", name="call")], [value("x", (2, 4))], opset=18)
    made.functions.append(onnx.helper.make_function("d", "f", ["x"], ["y"], body, own))
    made.opset_import.append(own[1])
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    result = cli("check", "m.onnx", "--format", "jsonl", *options)
    assert result.status == 2
    answers = [json.loads(line) for line in result.out.splitlines()]
    assert ["onnx/function-recursive"] in [[each["rule"] for each in answer["diagnostics"]] for answer in answers]


def test_a_pointer_of_git_lfs_is_said_to_be_one(cli, tmp_path):
    (tmp_path / "m.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    found = cli("check", "m.onnx")
    assert (found.status, "git lfs pull" in found.out) == (2, True)
