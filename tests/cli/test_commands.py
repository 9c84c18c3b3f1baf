"""levels, rule, plan, doctor, run."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit import _native, graphs
from dmlsplit.cli import cli as group
from dmlsplit.cli import config, doctor
from dmlsplit.formats.graph_json import loads as load_graph
from dmlsplit.rules import RULES, DescriptorRule, NodeRule
from tests.cli.conftest import BAD, GOOD, INT64, MALFORMED, OTHER


@pytest.mark.parametrize("name", list(group.commands))
def test_help_has_an_example(cli, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = cli(name, "--help")
    assert (status, err) == (0, "")
    assert f"  dmlsplit {name}" in out
    assert max(map(len, out.splitlines())) <= 80


class TestLevels:
    def test_tables_fit_80_columns(self, cli):
        status, out, err = cli("levels")
        assert (status, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 80
        assert "3_0-4_0  InputTensors  Array of inputs  4-5         FLOAT32 FLOAT16 UINT32\n" in out
        assert "1_0-2_0  OutputTensors  Array of outputs  4           FLOAT32 FLOAT16 UINT32\n" in out

    def test_json_is_the_tables_at_every_level(self, cli):
        found = {}
        for operator in json.loads(cli("levels", "--json").out)["operators"]:
            for table in operator["tables"]:
                for level in table["feature_levels"]:
                    found[operator["operator"], level] = [
                        (t["tensor"], t["kind"], tuple(t["dimension_counts"]), frozenset(t["data_types"]), t["source"])
                        for t in table["tensors"]
                    ]
        assert found == {
            (operator.c_name, str(level)): [
                (t.tensor, t.kind, t.dimension_counts, frozenset(d.name for d in t.data_types), t.source)
                for t in dml.tensor_support(operator, level)
            ]
            for operator in (dml.OperatorType.SPLIT, dml.OperatorType.JOIN)
            for level in dml.FeatureLevel
        }

    def test_file(self, cli, tmp_path):
        (tmp_path / "a.jsonl").write_text(f"{GOOD}\n{INT64}\n{OTHER}\n")
        status, out, err = cli("levels", "a.jsonl")
        assert (status, err) == (0, "")
        lines = out.splitlines()
        assert lines[:3] == [
            "a.jsonl:1:1: DML_OPERATOR_SPLIT: taken by 1_0-6_4",
            "a.jsonl:2:1: DML_OPERATOR_SPLIT: taken by 4_1-6_4",
            "  refused by 1_0-2_0:",
        ]
        assert lines[3] == "    error[tensor/data-type-not-supported] InputTensor.DataType: is INT64;"
        assert {line for line in lines if line.startswith("  refused by")} == {
            "  refused by 1_0-2_0:",
            "  refused by 2_1:",
            "  refused by 3_0-4_0:",
        }
        assert "a.jsonl:3:10: operator: not judged" in lines
        assert max(map(len, lines)) <= 80
        assert lines[-17].split() == ["#0", "#1"]
        matrix = {line.split()[0]: line.split()[1:] for line in lines[-16:-1]}
        assert [label.rstrip("*") for label in matrix] == [str(level) for level in dml.FeatureLevel]
        assert [label[:-1] for label in matrix if label.endswith("*")] == ["1_0", "2_0", "4_0", "5_1", "6_0"]
        assert [cells[1] for cells in matrix.values()] == ["(yes)"] * 6 + ["yes"] * 9
        assert "(yes): with rewriting, as dmlsplit legalize shows" in lines
        assert "  with rewriting taken by 1_0-2_1, as UINT32 {1,1,6,4}" in lines
        assert "  with rewriting taken by 3_0-4_0, as UINT32 {6,4}" in lines
        assert lines[-1].startswith("* no build of this level was observed")

    def test_file_by_release(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(INT64)
        status, out, _ = cli("levels", "a.json", "--releases")
        assert status == 0
        assert max(map(len, out.splitlines())) <= 80
        assert "taken by 1.7.0 to 1.15.4" in out
        (answer,) = json.loads(cli("levels", "a.json", "--releases", "--json").out)
        taken = list(dict.fromkeys(r.directml for r in dml.supported_releases(dml.loads(INT64))))
        assert answer["releases"] == taken
        refused = [name for refusal in answer["refused"] for name in refusal["releases"]]
        assert refused + taken == list(dict.fromkeys(r.directml for r in dml.releases()))

    def test_a_matrix_of_many_operators_fits_80_columns(self, cli, tmp_path):
        (tmp_path / "a.jsonl").write_text(f"{GOOD}\n" * 30)
        out = cli("levels", "a.jsonl").out
        assert max(map(len, out.splitlines())) <= 80
        assert [cell for line in out.splitlines() for cell in line.split() if cell.startswith("#")] == [
            f"#{i}" for i in range(30)
        ]

    def test_releases(self, cli):
        status, out, _ = cli("levels", "--releases")
        assert status == 0
        assert max(map(len, out.splitlines())) <= 80
        rows = json.loads(cli("levels", "--releases", "--json").out)["releases"]
        assert [row["name"] for row in rows] == [release.name for release in dml.releases()]
        assert [row["packages"] for row in rows] == [list(release.packages) for release in dml.releases()]
        versions = [line.split()[0] for line in out.splitlines() if line and not line.startswith(" ")]
        assert versions[2:] == list(dict.fromkeys(release.directml for release in dml.releases()))
        words = set(out.replace(",", " ").replace(";", " ").split())
        assert words >= {version for r in dml.releases() for _, versions in r.shipped for version in versions}

    def test_file_json_agrees_with_the_api(self, cli, tmp_path):
        (tmp_path / "a.jsonl").write_text(f"{GOOD}\n{INT64}\n{BAD}\n{MALFORMED}\n{OTHER}\n")
        status, out, _ = cli("levels", "a.jsonl", "--json")
        assert status == 2
        answers = json.loads(out)
        for answer, text in zip(answers, [GOOD, INT64, BAD], strict=False):
            desc = dml.loads(text)
            levels = [str(level) for level in dml.supported_feature_levels(desc)]
            assert answer["feature_levels"] == levels
            assert answer["minimum_feature_level"] == (levels[0] if levels else None)
            refused = [level for refusal in answer["refused"] for level in refusal["feature_levels"]]
            assert sorted(levels + refused) == sorted(map(str, dml.FeatureLevel))
            rewritten = [level for level in refused if dml.legalize(desc, feature_level=level).ok]
            assert answer["with_rewriting"] == rewritten
            assert answer["diagnostics"] == []
        assert [[d["rule"] for d in answer["diagnostics"]] for answer in answers[3:]] == [
            ["input/malformed"],
            ["input/operator-not-judged"],
        ]
        assert len({tuple(answer) for answer in answers}) == 1

    @pytest.mark.parametrize(("text", "status"), [(BAD, 1), (MALFORMED, 2)], ids=["taken by none", "malformed"])
    def test_status(self, cli, tmp_path, text, status):
        (tmp_path / "a.json").write_text(text)
        assert cli("levels", "a.json").status == status


class TestRule:
    def test_list_has_every_rule_on_a_line(self, cli):
        lines = cli("rule").out.splitlines()
        assert [line.split("  ")[0] for line in lines] == list(RULES)
        assert all(rule.summary in line for rule, line in zip(RULES.values(), lines, strict=True))

    @pytest.mark.parametrize("id", RULES)
    def test_text(self, cli, id):
        status, out, err = cli("rule", id)
        assert (status, err) == (0, "")
        words, rule = " ".join(out.split()), RULES[id]
        for expected in (id, rule.summary, rule.explanation, *(source.title for source in rule.sources)):
            assert " ".join(expected.split()) in words
        examples = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        if isinstance(rule, NodeRule):
            assert examples == [json.loads(json.dumps(node.to_dict())) for node in (rule.bad, rule.good)]
        elif id in graphs.EXAMPLES:
            assert [load_graph(json.dumps(example)) for example in examples] == list(map(graphs.EXAMPLES[id], (0, 1)))
        else:
            makers = (rule.bad, rule.good) if isinstance(rule, DescriptorRule) else ()
            assert [dml.loads(json.dumps(example)) for example in examples] == [make() for make in makers]

    def test_json(self, cli):
        answers = json.loads(cli("rule", "--json").out)
        assert [answer["id"] for answer in answers] == list(RULES)
        assert json.loads(cli("rule", answers[5]["id"], "--json").out) == answers[5]
        for answer, rule in zip(answers, RULES.values(), strict=True):
            assert answer["sources"]
            for name in ("bad", "good"):
                found = answer[name]
                if isinstance(rule, NodeRule):
                    assert found == json.loads(json.dumps(getattr(rule, name).to_dict()))
                elif rule.id in graphs.EXAMPLES:
                    assert load_graph(json.dumps(found)) == graphs.EXAMPLES[rule.id](name == "good")
                elif isinstance(rule, DescriptorRule):
                    assert dml.loads(json.dumps(found)) == getattr(rule, name)()
                else:
                    assert found is None

    @pytest.mark.parametrize(
        ("id", "suggestion"),
        [
            ("split/axis-out-of-rnage", "did you mean split/axis-out-of-range?"),
            ("size-mismatch", "did you mean split/size-mismatch or join/size-mismatch?"),
            ("nothing\x1b[31m", "'dmlsplit rule' lists them"),
        ],
        ids=["typo", "no scope", "hostile"],
    )
    def test_unknown(self, cli, id, suggestion):
        status, out, err = cli("rule", id)
        assert (status, out) == (2, "")
        assert suggestion in err
        assert err.startswith("dmlsplit: there is no rule '")
        assert err.removesuffix("\n").isprintable()


class TestPlan:
    def test_describes_the_compiled_plan(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(GOOD)
        status, out, err = cli("plan", "a.json")
        assert (status, err) == (0, "")
        described = dml.compile(dml.loads(GOOD)).plan.describe().splitlines()
        assert out.splitlines()[1:] == [f"  {line}" for line in described]

    def test_faulty_and_malformed(self, cli, tmp_path):
        (tmp_path / "a.jsonl").write_text(f"{BAD}\n{MALFORMED}\n{OTHER}\n")
        status, out, err = cli("plan", "a.jsonl")
        assert status == 2
        assert "error[split/axis-sizes-sum] OutputTensors: " in out
        assert err == "dmlsplit: a.jsonl:2:10: the JSON text ends too early\n"
        (tmp_path / "b.json").write_text(BAD)
        assert cli("plan", "b.json").status == 1

    def test_undecided_overlap_has_no_plan(self, cli, tmp_path):
        bad = RULES["tensor/output-overlap-undecided"].bad
        (tmp_path / "a.json").write_text(dml.dumps(bad()))
        status, out, _ = cli("plan", "a.json")
        assert status == 1
        assert "  no plan: " in out

    def test_without_the_extension(self, cli, tmp_path, monkeypatch):
        monkeypatch.setattr(_native, "IMPORT_ERROR", "No module named 'dmlsplit._ffi'")
        (tmp_path / "a.json").write_text(GOOD)
        status, out, err = cli("plan", "a.json")
        assert (status, out) == (2, "")
        assert err.startswith("dmlsplit: the C extension of dmlsplit is missing")


class TestDoctor:
    def test_says_what_is_there(self, cli):
        status, out, err = cli("doctor")
        assert (status, err) == (0, "")
        for kernel in _native.kernels():
            assert f"kernel       {kernel.name} ({kernel.isa}): " in out
        assert f"extension    {_native.version()}\n" in out
        assert f"python       CPython {sys.version.split()[0]}" in out or "PyPy" in out

    def test_missing_extension(self, cli, monkeypatch):
        monkeypatch.setattr(_native, "IMPORT_ERROR", "No module named 'dmlsplit._ffi'")
        status, out, _ = cli("doctor")
        assert status == 1
        assert "extension    missing (No module named 'dmlsplit._ffi'): operators can be judged, but not run" in out

    def test_extension_of_another_version(self, cli, monkeypatch):
        monkeypatch.setattr(doctor, "__version__", "99.0")
        status, out, _ = cli("doctor")
        assert status == 1
        assert "which is not that of the package (99.0); reinstall dmlsplit" in out

    def test_extension_without_a_function(self, cli, monkeypatch):
        def missing():
            raise AttributeError("dmlsplit_cpu_features")

        monkeypatch.setattr(_native, "cpu_features", missing)
        status, out, _ = cli("doctor")
        assert status == 1
        assert "left over from another version (dmlsplit_cpu_features)" in out

    def test_optional_packages(self, cli, monkeypatch):
        monkeypatch.setattr(doctor, "OPTIONAL_PACKAGES", {"click": "none", "no_such_package": "extra"})
        status, out, _ = cli("doctor")
        assert status == 0
        assert "no_such_package not installed; pip install 'dmlsplit[extra]'\n" in out
        assert "click        8." in out


def model(operator: str, *commands: dict[str, object], **resources: object) -> str:
    values = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 12, "valueStart": 1, "valueDelta": 1}}
    zeros = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 6, "value": 0}}
    names = ("Out0", "Out1", "Out2")
    dispatch = {
        "type": "dispatch",
        "dispatchable": "cut",
        "bindings": {"InputTensor": "In", "OutputTensors": list(names)},
    }
    return json.dumps(
        {
            "resources": {"In": values, **dict.fromkeys(names, zeros), **resources},
            "dispatchables": {"cut": json.loads(operator)},
            "commands": [dispatch, *commands],
        }
    )


PRINT = {"type": "print", "resource": "Out1"}


class TestRun:
    def test_prints(self, cli, tmp_path):
        (tmp_path / "model.json").write_text(model(GOOD, PRINT))
        assert cli("run", "model.json") == (0, "Resource 'Out1': 5, 6, 0, 0, 0, 0\n", "")

    def test_faulty_descriptor(self, cli, tmp_path):
        (tmp_path / "model.json").write_text(model(BAD, PRINT))
        status, out, err = cli("run", "model.json")
        assert (status, out) == (1, "")
        assert err.startswith("dmlsplit: model.json:1:")
        assert "error[split/axis-sizes-sum] OutputTensors: have sizes" in err

    @pytest.mark.parametrize("text", [MALFORMED, "[]", model(OTHER)], ids=["truncated", "no object", "other operator"])
    def test_malformed(self, cli, tmp_path, text):
        (tmp_path / "model.json").write_text(text)
        status, out, err = cli("run", "model.json")
        assert (status, out) == (2, "")
        assert err.startswith("dmlsplit: model.json:1:")
        assert err.count("\n") == 1

    def test_on_the_device_of_a_release(self, cli, tmp_path):
        rows = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (6, 2))
        two_dimensions = dml.dumps(dml.SplitOperatorDesc.from_lengths(rows, 0, (2, 1, 3)))
        (tmp_path / "model.json").write_text(model(two_dimensions, PRINT))
        assert cli("run", "model.json", "--directml", "1.5.1") == (0, "Resource 'Out1': 5, 6, 0, 0, 0, 0\n", "")
        status, out, err = cli("run", "model.json", "--directml", "tensorflow-directml-1.15.3.dev200619")
        assert (status, out) == (1, "")
        assert "error[tensor/dimension-count-not-supported] InputTensor.DimensionCount: is 2" in err
        status, out, err = cli("run", "model.json", "--directml", "1.14.0")
        assert (status, out) == (2, "")
        assert "the nearest are '1.13.1' and '1.14.1'" in err

    def test_what_is_forbidden_but_accepted_is_a_warning(self, cli, tmp_path):
        overlapping = json.loads(model(GOOD, PRINT))
        (command,) = (c for c in overlapping["commands"] if c["type"] == "dispatch")
        outputs = command["bindings"]["OutputTensors"]
        command["bindings"]["OutputTensors"] = [outputs[0]] * len(outputs)
        (tmp_path / "model.json").write_text(json.dumps(overlapping))
        status, _, err = cli("run", "model.json")
        assert status == 0
        assert "warning[binding/outputs-overlap] BindOutputs[1]" in err

    def test_missing(self, cli):
        assert cli("run", "nowhere.json") == (2, "", "dmlsplit: nowhere.json: No such file or directory\n")

    def test_failed_write_is_reported_and_the_rest_goes_on(self, cli, tmp_path):
        (tmp_path / "out").mkdir()
        write = {"type": "writeFile", "resource": "Out1", "targetPath": "out"}
        (tmp_path / "model.json").write_text(model(GOOD, write, PRINT))
        status, out, err = cli("run", "model.json")
        assert (status, out) == (2, "Resource 'Out1': 5, 6, 0, 0, 0, 0\n")
        assert "failed to write resource 'Out1' to 'out'" in err
        assert err.count("\n") == 1

    def test_allow_path(self, cli, tmp_path):
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "model.json").write_text(
            model(GOOD, {"type": "writeFile", "resource": "Out1", "targetPath": "../out.dat"})
        )
        refused = cli("run", "folder/model.json")
        assert (refused.status, refused.out) == (2, "")
        assert "--allow-path DIR" in refused.err
        assert not (tmp_path / "out.dat").exists()
        assert cli("run", "folder/model.json", "--allow-path", ".").status == 0
        assert (tmp_path / "out.dat").stat().st_size == 24

    def test_allow_path_nowhere(self, cli, tmp_path):
        (tmp_path / "model.json").write_text(model(GOOD))
        status, _, err = cli("run", "model.json", "--allow-path", "nowhere")
        assert status == 2
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "status", "err"),
    [
        (MemoryError(), 2, "dmlsplit: there is not enough memory\n"),
        (KeyboardInterrupt(), 130, "\n"),
        (BrokenPipeError(), 141, ""),
        (PermissionError(13, "Permission denied", "a\x1bb"), 2, "dmlsplit: a\\x1bb: Permission denied\n"),
        (dml.InputError("bad\nthing", file="f", line=1, column=2), 2, "dmlsplit: f:1:2: bad thing\n"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), 2, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_way_to_fail(cli, monkeypatch, error, status, err):
    def fail():
        raise error

    monkeypatch.setattr(_native, "version", fail)
    result = cli("doctor")
    assert (result.status, result.out) == (status, "")
    assert result.err.count("\n") <= 1
    assert err is None or result.err == err


class TestConfig:
    def test_headers_sources_and_the_linker(self, cli):
        status, out, _ = cli("config", "--cflags", "--sources", "--libs")
        include, *words = shlex.split(out)
        assert status == 0
        assert (Path(include.removeprefix("-I")) / "dmlsplit.h").is_file()
        assert {Path(word).name for word in words if word.endswith(".c")} >= {"dms_plan.c", "avx2.c"}
        assert words[-1] == "-pthread" or sys.platform == "win32"
        assert (Path(cli("config", "--cmake-dir").out.strip()) / "CMakeLists.txt").is_file()

    def test_nothing_asked(self, cli):
        assert cli("config").status == 2

    def test_an_installation_without_headers(self, cli, monkeypatch, tmp_path):
        monkeypatch.setattr(config, "PLACES", (tmp_path,))
        status, out, err = cli("config", "--cflags")
        assert (status, out) == (2, "")
        assert "no headers" in err
