"""dmlsplit support."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

import dmlsplit as dml


def test_a_table(cli):
    status, out, err = cli("support", "gemm", "--directml", "1.15.4")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "DML_OPERATOR_GEMM, directml 1.15.4"
    assert [line.split() for line in lines[2:6]] == [
        ["ATensor", "2-4", "FLOAT32", "FLOAT16"],
        ["BTensor", "2-4", "FLOAT32", "FLOAT16"],
        ["CTensor", "optional", "2-4", "FLOAT32", "FLOAT16"],
        ["OutputTensor", "2-4", "FLOAT32", "FLOAT16"],
    ]
    assert lines[-1] == "recorded: DirectML 1.15.4"


def test_json_is_tensor_support(cli):
    (table,) = json.loads(cli("support", "54", "--feature-level", "3.0", "--format", "json").out)["tables"]
    assert table["feature_levels"] == ["3_0"]
    assert table["releases"] == []
    assert [
        (row["tensor"], row["optional"], tuple(row["dimension_counts"]), set(row["data_types"]), row["source"])
        for row in table["tensors"]
    ] == [
        (row.tensor, row.optional, row.dimension_counts, {each.name for each in row.data_types}, row.source)
        for row in dml.tensor_support("GEMM", "3_0")
    ]


def test_settings_are_named(cli):
    (table,) = json.loads(cli("support", "REDUCE", "--format", "json").out)["tables"]
    assert table["settings"]["Function=L2"]["InputTensor"] == ["FLOAT32", "FLOAT16"]
    assert "Function=SUM" not in table["settings"]
    assert "With Function=L2: InputTensor FLOAT32 FLOAT16" in cli("support", "REDUCE").out


def test_all_has_each_target_once(cli):
    tables = json.loads(cli("support", "CAST", "--all", "--format", "json").out)["tables"]
    assert [level for table in tables for level in table["feature_levels"]] == [str(each) for each in dml.FeatureLevel]
    assert [name for table in tables for name in table["releases"]] == [each.name for each in dml.releases()]
    for one, next_one in pairwise(tables):
        assert (one["tensors"], one["releases"]) != (next_one["tensors"], next_one["releases"])


def test_all_operators(cli):
    found = json.loads(cli("support", "--format", "json").out)
    assert [each["operator"] for each in found] == [each.c_name for each in dml.operators()]


def test_an_operator_that_the_level_lacks(cli):
    status, out, _ = cli("support", "QUANTIZE", "--feature-level", "5_0")
    assert status == 0
    assert "introduced with feature level 6_3" in out
    assert cli("support", "QUANTIZE", "--feature-level", "5_0", "--format", "webnn").out == "{}\n"


def test_webnn(cli):
    found = json.loads(cli("support", "GEMM", "--format", "webnn").out)
    assert list(found) == ["gemm", "matmul"]
    assert found["gemm"]["c"] == {"dataTypes": ["float32", "float16"], "rankRange": {"min": 2, "max": 4}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("GEMN",), "GEMN is not an operator; did you mean GEMM?"),
        (("9999",), "9999 is not an operator"),
        (("GEMM", "--feature-level", "9_9"), "9_9"),
        (("GEMM", "--directml", "nothing"), "nothing"),
        (("GEMM", "--all", "--directml", "1.15.4"), "exclude each other"),
        (("GEMM", "--all", "--format", "webnn"), "--all"),
    ],
)
def test_mistakes_are_one_line(cli, arguments, words):
    status, out, err = cli("support", *arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
