from __future__ import annotations

import io
import json
import os
import stat
import sys
from types import SimpleNamespace

import pytest

import dmlsplit as dml
from tests.cli.conftest import BAD, GOOD, HOSTILE, HOSTILE_SHOWN, INT64, MALFORMED, OTHER, WARNED, X, posix

KEYS = ["schema", "file", "index", "operator", "judged_by", "ok", "hresult", "diagnostics"]
DIAGNOSTIC_KEYS = [
    "rule",
    "severity",
    "basis",
    "path",
    "line",
    "column",
    "message",
    "expected",
    "actual",
    "reference",
]


@pytest.mark.parametrize(
    ("lines", "options", "status"),
    [
        ([GOOD], [], 0),
        ([GOOD, BAD, GOOD], [], 1),
        ([WARNED], [], 0),
        ([WARNED], ["--fail-on", "warning"], 1),
        ([OTHER], ["--fail-on", "warning"], 0),
        ([MALFORMED, GOOD], [], 2),
        ([BAD, MALFORMED, BAD], [], 2),
        ([BAD], ["--ignore", "split/axis-sizes-sum"], 0),
        ([BAD], ["--ignore", "split/"], 0),
        ([BAD], ["--select", "tensor/"], 0),
        ([BAD], ["--select", "tensor/", "--select", "split/axis-sizes-sum"], 1),
        ([BAD], ["--select", "split/", "--ignore", "split/axis-sizes-sum"], 0),
        ([MALFORMED], ["--ignore", "input/malformed"], 2),
        ([INT64], ["--feature-level", "4_1"], 0),
        ([INT64], ["--feature-level", "DML_FEATURE_LEVEL_4_0"], 1),
        ([INT64], ["--feature-level", "3.1"], 1),
    ],
)
def test_exit_status(cli, tmp_path, lines, options, status):
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert cli("check", "a.jsonl", *options).status == status


def test_text(cli, tmp_path):
    (tmp_path / "good.json").write_text(GOOD)
    (tmp_path / "a.jsonl").write_text("\n".join([BAD, "", MALFORMED, OTHER, WARNED]))
    result = cli("check", "good.json", "a.jsonl", "--feature-level", "5_0")
    lines = result.out.splitlines()
    column = BAD.index('"OutputTensors": ') + len('"OutputTensors": ') + 1
    begins = [
        "good.json:1:1: ok: DML_OPERATOR_SPLIT (feature level 5_0, S_OK)",
        "a.jsonl:1:1: not ok: DML_OPERATOR_SPLIT (feature level 5_0, HRESULT 0x80070057)",
        f"a.jsonl:1:{column}: error[split/axis-sizes-sum] OutputTensors: ",
        "a.jsonl:3:10: not read",
        "a.jsonl:3:10: error[input/malformed] ",
        "a.jsonl:4:10: not judged",
        "a.jsonl:5:1: ok: DML_OPERATOR_SPLIT (feature level 5_0, S_OK)",
        "a.jsonl:4:10: note[input/operator-not-judged] ",
        "a.jsonl:5:",
    ]
    assert [line[: len(start)] for line, start in zip(lines, begins, strict=False)] == begins
    assert ": warning[split/outputs-beyond-count] " in lines[8]
    assert lines[-1] == "5 operators: 2 ok, 1 not ok, 1 not judged, 1 not read; 2 errors, 1 warning, 1 note"
    assert result.err.startswith("dmlsplit: a.jsonl:3:10: ")
    assert result.err.count("\n") == 1


def test_json_and_jsonl_are_the_same_answers(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join([GOOD, BAD, MALFORMED, OTHER]))
    document = json.loads(cli("check", "a.jsonl", "--format", "json").out)
    lines = cli("check", "a.jsonl", "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == document
    assert [list(answer) for answer in document] == [KEYS] * 4
    assert {tuple(d) for answer in document for d in answer["diagnostics"]} == {tuple(DIAGNOSTIC_KEYS)}
    assert [answer["index"] for answer in document] == [0, 1, 2, 3]
    assert [answer["ok"] for answer in document] == [True, False, False, True]
    assert [answer["hresult"] for answer in document] == ["0x00000000", "0x80070057", None, None]
    malformed = document[2]
    assert (malformed["operator"], malformed["file"]) == (None, "a.jsonl")
    [diagnostic] = malformed["diagnostics"]
    assert (diagnostic["rule"], diagnostic["line"], diagnostic["column"]) == ("input/malformed", 3, 10)


def test_json_of_nothing_is_an_empty_array(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n")
    assert json.loads(cli("check", "a.jsonl", "--format", "json").out) == []


@pytest.mark.parametrize("text", [GOOD, f"{GOOD}\n{GOOD}\n"], ids=["json", "jsonl"])
def test_standard_input(cli, monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    result = cli("check", "-")
    assert result.status == 0
    assert result.out.startswith("<stdin>:1:1: ok: DML_OPERATOR_SPLIT")
    assert result.out.count(": ok: ") == text.count("Axis")


def test_standard_input_closed(cli, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert cli("check", "-") == (2, "", "dmlsplit: standard input is closed\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere.json", "No such file or directory"), ("folder", "Is a directory"), ("no/folder.jsonl", "No such file")],
)
def test_unreadable_files_do_not_stop_the_others(cli, tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "good.json").write_text(GOOD)
    result = cli("check", name, "good.json")
    assert result.status == 2
    assert result.err.startswith(f"dmlsplit: {name}: {message}")
    assert result.err.count("\n") == 1
    assert f"{name}: error[input/malformed] {message}" in result.out
    assert "good.json:1:1: ok" in result.out


def test_a_folder_is_one_error_with_a_pattern(cli, tmp_path):
    (tmp_path / "models").mkdir()
    status, out, err = cli("check", "models/")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "models/ is a folder" in err
    assert "'models/**/*.onnx'" in err
    (tmp_path / "a.json").write_text(GOOD)
    (line,) = [line for line in cli("check", "models", "a.json").out.splitlines() if "error[input/malformed]" in line]
    assert "'models/**/*.onnx'" in line


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden here")
def test_forbidden_file(cli, tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    (tmp_path / "a.json").chmod(0)
    assert cli("check", "a.json")[::2] == (2, "dmlsplit: a.json: Permission denied\n")


def test_notes_of_a_model(cli, tmp_path):
    operator = json.loads(GOOD)
    operator["Desc"]["InputTensor"]["Desc"]["TotalTensorSizeInBytes"] = 0
    (tmp_path / "model.json").write_text(json.dumps({"dispatchables": {"cut": operator}}))
    result = cli("check", "model.json")
    assert result.status == 0
    assert ": ok: 'cut' DML_OPERATOR_SPLIT" in result.out
    assert "note[input/total-size-computed] InputTensor.TotalTensorSizeInBytes: " in result.out


@pytest.mark.parametrize("command", ["check", "levels", "plan"])
def test_hostile_names_are_shown_not_obeyed(cli, tmp_path, command):
    (tmp_path / "model.json").write_text(json.dumps({"dispatchables": {HOSTILE: json.loads(GOOD)}}))
    result = cli(command, "model.json")
    assert result.status == 0
    assert HOSTILE_SHOWN in result.out
    assert result.out.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--select", "split/axis-sizes-som"], "--select: there is no rule 'split/axis-sizes-som'; did you mean"),
        (["--ignore", "nothing-like-it"], "--ignore: there is no rule 'nothing-like-it'; 'dmlsplit rule' lists them"),
        (["--ignore", "tensors/"], "--ignore: there is no rule 'tensors/'"),
        (["--feature-level", "7_0"], "unknown feature level '7_0'; known: 1_0,"),
        (["--format", "yaml"], "'yaml' is not one of"),
        (["--no-such-option"], "No such option"),
        (["-o", "a.json"], "a.json would replace an input file"),
        (["-o", "a.json/out"], "a.json/out: Not a directory"),
        (["-o", "."], ".: Is a directory"),
        (["-o", "new/"], "new/: No such file or directory"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_usage_errors_take_one_line(cli, tmp_path, options, message):
    (tmp_path / "a.json").write_text(GOOD)
    status, out, err = cli("check", "a.json", *options)
    assert (status, out) == (2, "")
    assert err.startswith("dmlsplit: ")
    assert message in err
    assert err.count("\n") == 1
    assert (tmp_path / "a.json").read_text() == GOOD


class TestOutputFile:
    def test_new_file(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(BAD)
        printed = cli("check", "a.json", "--format", "json").out
        assert cli("check", "a.json", "--format", "json", "-o", "out.json") == (1, "", "")
        assert (tmp_path / "out.json").read_text() == printed
        assert sorted(os.listdir(tmp_path)) == ["a.json", "out.json"]

    @pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")
    def test_replaces_the_file_behind_a_link_and_keeps_its_mode(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(GOOD)
        (tmp_path / "old").write_text("old")
        (tmp_path / "old").chmod(0o640)
        (tmp_path / "link").symlink_to("old")
        assert cli("check", "a.json", "-o", "link").status == 0
        assert (tmp_path / "link").is_symlink()
        assert "1 operator: 1 ok" in (tmp_path / "old").read_text()
        assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o640

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
    def test_device_is_written_not_replaced(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(GOOD)
        result = cli("check", "a.json", "-o", "/dev/full")
        assert result == (2, "", "dmlsplit: /dev/full: No space left on device\n")
        assert stat.S_ISCHR(os.stat("/dev/full").st_mode)

    def test_failure_leaves_the_old_file_and_nothing_else(self, cli, tmp_path, monkeypatch):
        def full(source, target):
            raise OSError(28, "No space left on device", source)

        (tmp_path / "a.json").write_text(GOOD)
        (tmp_path / "out").write_text("old")
        monkeypatch.setattr(os, "replace", full)
        result = cli("check", "a.json", "-o", "out")
        assert result == (2, "", "dmlsplit: out: No space left on device\n")
        assert (tmp_path / "out").read_text() == "old"
        assert sorted(os.listdir(tmp_path)) == ["a.json", "out"]

    def test_usage_error_while_open(self, cli, tmp_path, monkeypatch):
        """Standard input turns out to be closed after the output was opened."""
        monkeypatch.setattr(sys, "stdin", None)
        (tmp_path / "out").write_text("old")
        assert cli("check", "-", "-o", "out").status == 2
        assert (tmp_path / "out").read_text() == "old"
        assert os.listdir(tmp_path) == ["out"]


class TestJudges:
    def test_several_releases_tell_what_an_upgrade_changes(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(INT64)
        args = ("check", "a.json", "--directml", "1.5.1", "--directml", "1.15.4")
        status, out, _ = cli(*args)
        assert status == 1
        assert "a.json:1:1: not ok: DML_OPERATOR_SPLIT (directml 1.5.1, HRESULT 0x80070057)" in out
        assert "a.json:1:1: ok: DML_OPERATOR_SPLIT (directml 1.15.4, S_OK)" in out
        assert out.splitlines()[-1].startswith("1 operator, 1 verdict that depends on the release: 1 ok, 1 not ok")
        answers = [json.loads(line) for line in cli(*args, "--format", "jsonl").out.splitlines()]
        assert [(a["judged_by"], a["ok"]) for a in answers] == [("directml 1.5.1", False), ("directml 1.15.4", True)]

    def test_the_newest_release_judges_by_default(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(GOOD)
        (answer,) = json.loads(cli("check", "a.json", "--format", "json").out)
        assert answer["judged_by"] == "directml 1.15.4"

    def test_a_package_names_a_release_too(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(INT64)
        result = cli("check", "a.json", "--directml", "tensorflow-directml-1.15.4.dev201216", "--format", "json")
        (answer,) = json.loads(result.out)
        assert (answer["judged_by"], answer["hresult"]) == ("tensorflow-directml-1.15.4.dev201216", "0x80000003")

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (
                ["--directml", "1.14.0"],
                "unknown DirectML release '1.14.0'; the nearest are '1.13.1' and '1.14.1', which",
            ),
            (["--feature-level", "7_0"], "unknown feature level '7_0'; known: 1_0"),
            (["--feature-level", "3_0", "--directml", "1.8.0"], "exclude each other"),
        ],
    )
    def test_usage(self, cli, tmp_path, args, message):
        (tmp_path / "a.json").write_text(GOOD)
        status, out, err = cli("check", "a.json", *args)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert message in err

    def test_a_crash_is_reported_without_a_code(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(dml.dumps(dml.SplitOperatorDesc(None, [X], 0)))
        (answer,) = json.loads(cli("check", "a.json", "--format", "json").out)
        assert (answer["ok"], answer["hresult"]) == (False, None)
        assert [d["rule"] for d in answer["diagnostics"]] == ["split/crash"]
        assert "no HRESULT" in cli("check", "a.json").out


def test_what_is_not_shown_counts_for_ok_all_the_same(cli, tmp_path):
    (tmp_path / "a.json").write_text(BAD)
    status, out, _ = cli("check", "a.json", "--ignore", "split/", "--format", "jsonl")
    answer = json.loads(out)
    assert (status, answer["ok"], answer["hresult"], answer["diagnostics"]) == (0, False, "0x80070057", [])


def test_a_file_given_twice_is_two_operators(cli, tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    assert cli("check", "a.json", "a.json").out.endswith("2 operators: 2 ok\n")


@pytest.mark.parametrize("format_", ["text", "json", "jsonl", "sarif", "html"])
def test_a_long_name_is_repeated_in_part(cli, tmp_path, format_):
    """Every fault names its operator: of a name of 100,000 characters and 50 faults, that would be 5 MB."""
    x = '{"DataType": "FLOAT32", "Sizes": [1, 2]}'
    split = f'{{"Type": "SPLIT", "Desc": {{"InputTensor": {x}, "OutputTensors": [{", ".join([x] * 50)}], "Axis": 1, '
    operator = f'{split}"OutputCount": 50}}}}'.replace("[1, 2]", "[3, 2]", 1)
    name = f"first{'n' * 100_000}last"
    (tmp_path / "m.json").write_text(f'{{"resources": {{}}, "dispatchables": {{"{name}": {operator}}}}}')
    options = ("--format", format_, "-o", "out", "--write-baseline", "known.json")
    assert cli("check", "m.json", *options).status == 0
    assert (tmp_path / "out").stat().st_size < 300_000
    known = (tmp_path / "known.json").read_text()
    assert len(known) < 200_000
    assert known.count('"name": "firstnnn') == known.count('nnnlast"') >= 50
    assert cli("check", "m.json", "--baseline", "known.json").status == 0


@posix
def test_patterns_follow_no_links_to_folders(cli, tmp_path):
    """Two that lead back are 2**40 ways to a file."""
    for folder in ("models", "models/deep", "models/.hidden", "models/in[1]"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.json").write_text(GOOD)
    (tmp_path / "models" / "again").symlink_to(".")
    for pattern in ("models/**/*.json", "**/*.json", "models/**/**/*.json"):
        done = cli("check", pattern, "--format", "jsonl")
        files = [json.loads(line)["file"] for line in done.out.splitlines()]
        assert files == ["models/a.json", "models/deep/a.json", "models/in[1]/a.json"]
