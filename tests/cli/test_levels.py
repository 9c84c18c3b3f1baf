"""dmlsplit levels."""

from __future__ import annotations

import json
import re

import pytest

import dmlsplit as dml
from dmlsplit.checking.columns import LEVELS, RELEASES, RUNTIMES
from dmlsplit.formats import any_operator_json
from dmlsplit.targets.runtime_versions import NEWEST
from tests.cli.conftest import BAD, GOOD, INT64, MALFORMED, OTHER
from tests.models import GLU, node, value
from tests.models import model as onnx_model
from tests.models import text as model_text


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
        assert lines[3].startswith("    error[tensor/data-type-not-supported] InputTensor.DataType: ")
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


class TestGraphs:
    """A node whose graph comes out wrong is shown as one that is refused."""

    @pytest.fixture
    def glu(self, cli, tmp_path):
        (tmp_path / "glu.onnx").write_bytes(GLU.SerializeToString())
        return "glu.onnx"

    def test_what_is_refused_or_not_known_is_not_said_to_be_refused_by_all(self, cli, glu):
        found = cli("levels", glu, "--runtimes")
        assert found.status == 0
        assert "'cut' Split: not known to be taken by any ONNX Runtime version\n" in found.out
        assert "  not known of 1.9.0-1.16.3\n" in found.out

    @pytest.mark.parametrize(
        ("option", "asked"),
        [([], LEVELS), (["--releases"], RELEASES), (["--runtimes"], RUNTIMES)],
        ids=["levels", "releases", "runtimes"],
    )
    def test_each_column_says_what_check_says(self, cli, glu, option, asked):
        answers = json.loads(cli("levels", glu, *option, "--json").out)
        for column in asked.columns:
            name = f"--{column.target.kind.replace('_', '-')}"
            checked = json.loads(cli("check", glu, name, column.label, "--format", "json").out)
            for answer, found in zip(answers, checked, strict=True):
                refused = {label: item["diagnostics"] for item in answer["refused"] for label in item[asked.key]}
                rules = [d["rule"] for d in found["diagnostics"] if d["severity"] == "error"]
                assert [d["rule"] for d in refused.get(column.label, [])] == rules
                outcome = (found.get("onnxruntime") or {}).get("outcome")
                doubts = any(d["rule"] == "graph/unknown" for d in found["diagnostics"])
                unknown = not rules and (outcome == "unknown" or doubts)
                assert (column.label in answer["unknown"]) == unknown
                taken = (*answer[asked.key], *answer.get("on_cpu", ()))
                assert (column.label in taken) == (not rules and not unknown)

    def test_the_releases_that_fuse_wrongly(self, cli, glu):
        cut, alone = json.loads(cli("levels", glu, "--releases", "--json").out)
        wrong = ["1.13.1", "1.14.1", "1.14.2", "1.15.1", "1.15.2", "1.15.4"]
        assert [item["releases"] for item in cut["refused"]] == [wrong]
        assert cut["releases"] == [label for label in RELEASES.labels if label not in wrong]
        assert alone["releases"] == RELEASES.labels

    def test_of_a_level_that_no_runtime_stands_for_it_is_not_known(self, cli, glu):
        cut, _ = json.loads(cli("levels", glu, "--json").out)
        assert cut["feature_levels"] == ["3_1", "5_0", "5_2", "6_1"]
        assert [item["feature_levels"] for item in cut["refused"]] == [["6_2", "6_3", "6_4"]]
        assert "4_1" in cut["unknown"]
        out = cli("levels", glu).out
        assert "not known of 1_0-3_0, 4_0-4_1, 5_1, 6_0:" in out
        assert "graph/unknown" in out

    def test_the_text_has_the_reason(self, cli, glu):
        status, out, _ = cli("levels", glu, "--releases")
        assert status == 0
        assert "refused by 1.13.1 to 1.15.4:" in out
        assert "graph/fused-wrongly" in out
        assert cli("levels", glu, "--runtimes").status == 0, "the versions that were not observed are not known"


class TestModels:
    """Of many nodes of which the same is said, once."""

    @pytest.fixture
    def many(self, cli, tmp_path):
        """Six Splits alike, one of three dimensions, and one of no known rank."""
        nodes = [node("Split", [f"x{i}"], [f"a{i}", f"b{i}"], axis=1, num_outputs=2, name=f"n{i}") for i in range(8)]
        shapes = [*[(2, 4, 6, 8)] * 6, (2, 4, 6), None]
        inputs = [value(f"x{i}", shape) for i, shape in enumerate(shapes)]
        outputs = [name for i in range(8) for name in (f"a{i}", f"b{i}")]
        (tmp_path / "m.onnx").write_bytes(onnx_model(nodes, inputs, outputs, ir_version=8).SerializeToString())
        return "m.onnx"

    def test_equal_answers_are_one(self, cli, many):
        out = cli("levels", many).out
        assert "m.onnx: 6 of 8 nodes (n0, n1, n2, ...): taken by 1_0-6_4\n" in out
        head, counts = out[out.index(" #0") :].splitlines()[:2]
        assert (head.split(), counts.split()) == (["#0", "#6", "#7"], ["x6"])
        (row,) = [line for line in out.splitlines() if line.startswith("2_1 ")]
        assert row.split()[1:] == ["yes", "(yes)", "yes"]
        assert len(json.loads(cli("levels", many, "--json").out)) == 8

    def test_answers_that_name_other_tensors_are_one_too(self, cli, tmp_path):
        """Of many gates that come out wrong the first one's reasons are shown."""
        nodes, inputs = [], [value(f"x{i}", (1, 8, 4, 4 + i)) for i in range(20)]
        for i in range(20):
            nodes += [node("Split", [f"x{i}"], [f"p{i}", f"q{i}"], axis=1, num_outputs=2, name=f"n{i}")]
            nodes += [node("Sigmoid", [f"q{i}"], [f"g{i}"]), node("Mul", [f"p{i}", f"g{i}"], [f"a{i}"])]
        made = onnx_model(nodes, inputs, [f"a{i}" for i in range(20)], ir_version=8)
        (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
        out = cli("levels", "m.onnx", "--releases").out
        assert out.startswith("m.onnx: 20 of 60 nodes (n0, n1, n2, ...): taken by 1.0.200610 to 1.12.1\n")
        assert "the reasons of n0 (--verbose shows all):" in out
        assert out.count("graph/fused-wrongly") == 1
        assert cli("levels", "m.onnx", "--releases", "--verbose").out.count("graph/fused-wrongly") == 20

    def test_each_by_itself(self, cli, many):
        out = cli("levels", many, "--verbose").out
        assert out.count("DML_OPERATOR_SPLIT: taken by 1_0-6_4") == 6
        assert out.count("InputTensor.DimensionCount") + out.count("OutputTensors[1].DimensionCount") == 2

    @pytest.mark.parametrize(
        ("option", "left_out"),
        [
            ([], "7 taken by all feature levels"),
            (["--releases"], "7 taken by all releases"),
        ],
        ids=["levels", "releases"],
    )
    def test_without_what_all_take(self, cli, many, option, left_out):
        out = cli("levels", many, "--only-problems", *option).out
        assert out.startswith(f"{left_out} left out\n")
        assert "n0" not in out
        assert "'n6'" in out

    @pytest.mark.parametrize("columns", [60, 80, 200])
    def test_lines_fit_a_terminal(self, cli, many, monkeypatch, columns):
        monkeypatch.setattr("dmlsplit.cli._streams.width", lambda: columns)
        for option in ("--verbose", "--releases", "--runtimes"):
            lines = [line for line in cli("levels", many, option).out.splitlines() if not line.startswith("m.onnx:")]
            assert max(map(len, lines)) <= columns

    def test_faults_of_one_rule_are_one_line(self, cli, many):
        out = " ".join(cli("levels", many).out.split())
        assert re.search(r"error\[[a-z/-]+\] InputTensor.DimensionCount: [^;]*; [^;]*; and 2 more like it", out)


def test_other_operators_are_asked_of_all_columns(cli, tmp_path):
    relu = dict.fromkeys(("InputTensor", "OutputTensor"), dml.BufferTensorDesc(dml.TensorDataType.INT8, (1, 2, 3, 4)))
    (tmp_path / "relu.json").write_text(any_operator_json.dumps(dml.AnyOperatorDesc("ACTIVATION_RELU", relu)))
    for option, expected in ((None, ["5_1", "6_4"]), ("--releases", ["1.10.1", "1.15.4"])):
        (found,) = json.loads(cli("levels", "relu.json", *filter(None, [option]), "--format", "json").out)
        taken = next(value for value in found.values() if isinstance(value, list) and expected[-1] in value)
        assert expected[0] in taken
        assert not {"2_1", "4_1", "1.0.200610"} & set(taken)


@pytest.mark.parametrize("options", [[], ["--releases"], ["--runtimes"], ["--only-problems"]], ids=str)
def test_a_file_without_operators_is_said_to_have_none(cli, tmp_path, options):
    (tmp_path / "empty.jsonl").write_text("")
    status, out, err = cli("levels", "empty.jsonl", *options)
    assert (status, err) == (0, "")
    assert out == "empty.jsonl: there is no operator to ask about\n"
    assert cli("levels", "empty.jsonl", *options, "--format", "json").out == "[]\n"


def test_a_model_without_a_split_is_sent_to_check(cli, tmp_path):
    onnx = pytest.importorskip("onnx")
    onnx.save(model_text("(float[2] x) => (float[2] y) { y = Relu(x) }"), tmp_path / "m.onnx")
    status, out, _ = cli("levels", "m.onnx")
    hint = f"'check --onnxruntime {NEWEST.version}' judges a whole model, also by several versions"
    assert (status, out) == (0, f"m.onnx: no Split and no Concat; {hint}\n")


def test_equal_reasons_are_said_once(cli, tmp_path):
    """What is wrong on levels between which others are not known."""
    body = "{ c = Concat<axis=1>(x, h) n = Add(x, h) y = Relu(n) }"
    part = "float[1,4,8,8]"
    text = f"({part} x, {part} h) => (float[1,8,8,8] c, {part} n, {part} y) {body}"
    (tmp_path / "m.onnx").write_bytes(model_text(text, 13).SerializeToString())
    out = cli("levels", "m.onnx").out
    assert out.count("error[graph/output-not-written]") == 1
    assert "  refused by 3_1, 5_0, 5_2, 6_1-6_4:\n" in out
