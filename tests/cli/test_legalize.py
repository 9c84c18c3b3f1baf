"""legalize, and the fix that check names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.formats.any_operator_json import dumps as dumps_any
from tests.cli.conftest import BAD, GOOD, HOSTILE, HOSTILE_SHOWN, INT64, MALFORMED, OTHER, X

T = dml.TensorDataType
ODD = dml.dumps(dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(T.UINT8, (1, 1, 2, 3)), 2, (1, 1)))
ROOT = Path(__file__).parents[2]
MODELS = ROOT / "tests/data/dxdispatch"


@pytest.mark.parametrize(
    ("lines", "status"),
    [([GOOD], 0), ([INT64, OTHER, GOOD], 0), ([INT64, BAD], 1), ([ODD], 1), ([ODD, MALFORMED, INT64], 2), ([], 0)],
)
def test_exit_status(cli, tmp_path, lines, status):
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    result = cli("legalize", "a.jsonl", "--feature-level", "1_0", "-o", "out.json")
    assert result.status == status
    assert (tmp_path / "out.json").exists() == (status == 0)
    if status:
        assert "dmlsplit: out.json: not written" in result.err
    else:
        assert cli("run", "out.json").status == 0


def test_text(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join([INT64, GOOD, ODD, OTHER]))
    begins = [
        "a.jsonl:1:1: DML_OPERATOR_SPLIT: runs on feature level 1_0 as UINT32 {1,1,6,4}",
        "  before:",
        "    DML_OPERATOR_SPLIT on Axis 0",
        "      from INT64 {6,2}, 96 bytes",
        "      to   INT64 {2,2}, 32 bytes",
        "      to   INT64 {4,2}, 64 bytes",
        "  after:",
        "    DML_OPERATOR_SPLIT on Axis 2",
        "      from UINT32 {1,1,6,4}, 96 bytes in input 0",
        "      to   UINT32 {1,1,2,4}, 32 bytes in output 0",
        "      to   UINT32 {1,1,4,4}, 64 bytes in output 1",
        "  - INT64 is copied as UINT32, 2 for each element",
        "  - Sizes {6,2} on Axis 0 become {1,1,6,4} on Axis 2",
        "a.jsonl:2:1: ok: DML_OPERATOR_SPLIT (feature level 1_0, S_OK)",
        "  accepted as it is",
        "a.jsonl:3:1: not ok: DML_OPERATOR_SPLIT (feature level 1_0, HRESULT 0x80070057)",
        *[line for line in cli("check", "a.jsonl", "--feature-level", "1_0").out.splitlines() if "a.jsonl:3:" in line][
            1:
        ],
        "a.jsonl:3:1: error[legalize/no-rewriting] ",
        "a.jsonl:4:10: not judged",
        "a.jsonl:4:10: note[input/operator-not-judged] ",
    ]
    lines = cli("legalize", "a.jsonl", "--feature-level", "1_0").out.splitlines()
    assert [line[: len(start)] for line, start in zip(lines, begins, strict=True)] == begins


def test_the_target_may_be_a_release(cli, tmp_path):
    (tmp_path / "a.json").write_text(INT64)
    assert "runs on directml 1.5.1 as UINT32 {6,4}" in cli("legalize", "a.json", "--directml", "1.5.1").out
    assert "accepted as it is" in cli("legalize", "a.json").out
    several = cli("legalize", "a.json", "--directml", "1.5.1", "--directml", "1.8.0")
    assert (several.status, several.out) == (2, "")
    assert "one release at a time" in several.err


def test_of_many_operators_accepted_as_they_are_the_first_are_shown(cli, tmp_path):
    line = json.dumps(json.loads(INT64)) + "\n"
    (tmp_path / "a.jsonl").write_text(line * 12)
    found = cli("legalize", "a.jsonl")
    assert (found.status, found.out.count("accepted as it is")) == (0, 10)
    assert found.out.splitlines()[-1] == "a.jsonl: 2 more accepted as they are (--verbose shows all)"
    everything = cli("legalize", "a.jsonl", "--verbose").out
    assert (everything.count("accepted as it is"), "more accepted" in everything) == (12, False)
    rewritten = cli("legalize", "a.jsonl", "--directml", "1.5.1").out
    assert (rewritten.count("runs on directml 1.5.1"), "more accepted" in rewritten) == (12, False)


def test_one_target(cli, tmp_path):
    (tmp_path / "a.json").write_text(INT64)
    for name in ("legalize", "draw", "check"):
        result = cli(name, "a.json", "--feature-level", "2_0", "--feature-level", "3_0")
        assert (result.status, result.out) == (2, "")
        assert "one level at a time" in result.err
        assert cli(name, "a.json", "--feature-level", "5_0", "--feature-level", "5.0").status == 0


def test_to_standard_output(cli, tmp_path):
    """- is standard output, for a program behind a pipe: the model and nothing else."""
    (tmp_path / "a.json").write_text(INT64)
    status, out, err = cli("legalize", "a.json", "--feature-level", "1_0", "-o", "-")
    assert (status, err) == (0, "")
    assert cli("legalize", "a.json", "--feature-level", "1_0", "-o", "b.json").status == 0
    assert out == (tmp_path / "b.json").read_text()
    assert cli("check", "b.json", "-o", "-") == cli("check", "b.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "b.json"]


def test_the_input_is_not_replaced(cli, tmp_path):
    (tmp_path / "a.json").write_text(INT64)
    result = cli("legalize", "a.json", "--feature-level", "1_0", "-o", "a.json")
    assert result.status == 2
    assert "would replace an input file" in result.err
    assert (tmp_path / "a.json").read_text() == INT64


@pytest.mark.parametrize("level", ["1_0", "2_1", "4_1"])
@pytest.mark.parametrize("name", sorted(path.name for path in MODELS.glob("*.json")))
def test_a_legalised_model_prints_what_the_model_prints(cli, tmp_path, name, level):
    shutil.copy(MODELS / name, tmp_path / "model.json")
    expected = cli("run", "model.json")
    assert expected.status == 0
    assert cli("legalize", "model.json", "--feature-level", level, "-o", "lower.json").status == 0
    assert cli("run", "lower.json") == expected
    for line in cli("check", "lower.json", "--feature-level", level, "--format", "jsonl").out.splitlines():
        assert json.loads(line)["ok"]


def test_check_names_the_fix(cli, tmp_path):
    (tmp_path / "a b.jsonl").write_text("\n".join([INT64, BAD, ODD, GOOD]))
    result = cli("check", "a b.jsonl", "--feature-level", "2_0")
    fixes = [line for line in result.out.splitlines() if ": fix: " in line]
    assert fixes == [
        "a b.jsonl:1:1: fix: runs on 2_0 as UINT32 {1,1,6,4}: dmlsplit legalize 'a b.jsonl' --feature-level 2_0"
    ]
    releases = cli("check", "a b.jsonl", "--directml", "1.5.1", "--directml", "1.15.4").out
    assert "fix: runs on 1.5.1 as UINT32 {6,4}: dmlsplit legalize 'a b.jsonl' --directml 1.5.1" in releases
    assert releases.count(": fix: ") == 1


def test_the_json_of_check_is_as_it_was(cli, tmp_path):
    (tmp_path / "a.json").write_text(INT64)
    (answer,) = json.loads(cli("check", "a.json", "--feature-level", "2_0", "--format", "json").out)
    assert answer == {**dml.validate(dml.loads(INT64), feature_level="2_0").located(lambda path: None).to_dict()} | {
        "file": "a.json",
        "diagnostics": answer["diagnostics"],
    }


def test_names_are_shown_not_obeyed(cli, tmp_path):
    model = {"resources": {}, "dispatchables": {HOSTILE: json.loads(INT64)}, "commands": []}
    (tmp_path / "a.json").write_text(json.dumps(model))
    result = cli("legalize", "a.json", "--feature-level", "1_0", "-o", "b.json")
    assert result.status == 0
    assert f"'{HOSTILE_SHOWN}'" in result.out
    assert "\x1b" not in result.out + (tmp_path / "b.json").read_text()
    assert cli("run", "b.json").status == 0


def test_a_malformed_model_is_one_line(cli, tmp_path):
    for commands in ("[1]", "{}", '[{"type": "dispatch", "dispatchable": "s"}]'):
        text = f'{{"resources": {{}}, "dispatchables": {{"s": {INT64}}}, "commands": {commands}}}'
        (tmp_path / "a.json").write_text(text)
        result = cli("legalize", "a.json", "--feature-level", "1_0", "-o", "b.json")
        assert result.status == 2
        assert result.err.startswith("dmlsplit: a.json:1:")
        assert result.err.count("\n") == 1
        assert not (tmp_path / "b.json").exists()


@pytest.mark.parametrize("text", [MALFORMED, "", "[" * 1000, '{"Type": 1e999}'])
def test_what_cannot_be_read_is_one_line(cli, tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    result = cli("legalize", "a.json", "--feature-level", "1_0", "-o", "b.json")
    assert result.status == 2
    assert result.err.startswith("dmlsplit: a.json:1:")
    assert result.err.count("\n") == 1


class TestOtherOperators:
    RELU = dml.AnyOperatorDesc("ACTIVATION_RELU", dict.fromkeys(("InputTensor", "OutputTensor"), X))

    def written(self, path, *operators):
        """A DxDispatch model of them."""
        dispatchables = {f"op{i}": json.loads(each) for i, each in enumerate(operators)}
        path.write_text(json.dumps({"resources": {}, "dispatchables": dispatchables, "commands": []}))

    def test_one_that_is_taken_stays_in_its_model(self, cli, tmp_path):
        self.written(tmp_path / "model.json", INT64, dumps_any(self.RELU))
        assert cli("legalize", "model.json", "--feature-level", "3_0", "-o", "out.json").status == 0
        found = json.loads((tmp_path / "out.json").read_text())["dispatchables"]
        assert found["op1"] == json.loads(dumps_any(self.RELU))
        assert found["op0"] != json.loads(INT64)

    def test_one_that_is_refused_has_no_rewriting(self, cli, tmp_path):
        self.written(tmp_path / "model.json", GOOD, dumps_any(self.RELU).replace("FLOAT32", "FLOAT64"))
        status, out, _ = cli("legalize", "model.json", "--feature-level", "3_0", "-o", "out.json")
        assert (status, (tmp_path / "out.json").exists()) == (1, False)
        assert "error[operator/data-type-not-supported]" in out

    def test_alone_it_is_in_no_model(self, cli, tmp_path):
        (tmp_path / "relu.json").write_text(dumps_any(self.RELU))
        assert cli("legalize", "relu.json", "--feature-level", "3_0").status == 0
        status, out, _ = cli("legalize", "relu.json", "--feature-level", "3_0", "-o", "out.json")
        assert (status, (tmp_path / "out.json").exists()) == (1, False)
        assert "not written" in out


def test_nothing_is_written_for_a_model_without_operators(cli, tmp_path):
    pytest.importorskip("onnx")
    from tests import models

    model = models.text("(float[2] x) => (float[2] y) { y = Relu(x) }")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    result = cli("legalize", "m.onnx", "--feature-level", "2_1", "-o", "o.json")
    assert (result.status, (tmp_path / "o.json").exists()) == (1, False)
    assert result.err.startswith("dmlsplit: o.json: not written")


def test_no_openvino_model_is_written(cli, tmp_path):
    (tmp_path / "m.jsonl").write_text(GOOD + "\n")
    result = cli("legalize", "m.jsonl", "--feature-level", "2_1", "-o", "o.xml")
    assert (result.status, (tmp_path / "o.xml").exists()) == (2, False)
    assert "o.xml: no OpenVINO model is written" in result.err
