"""dmlsplit ask and dmlsplit library: what is printed, and the exit statuses."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import replace

import pytest

import dmlsplit as dml
from dmlsplit.library import fetching
from tests.cli.conftest import BAD, GOOD, MALFORMED
from tests.library.conftest import NEWEST, newest

__all__ = ["newest"]

RELEASE = NEWEST.name
RELU = json.dumps(
    {
        "Type": "DML_OPERATOR_ACTIVATION_RELU",
        "Desc": {name: {"DataType": "FLOAT32", "Sizes": [1, 2, 3, 4]} for name in ("InputTensor", "OutputTensor")},
    }
)
NO_STRUCT = RELU.replace("OutputTensor", "OutputTensors")
NO_INPUT = dml.dumps(replace(dml.loads(GOOD), input_tensor=None))


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A machine without any build."""
    monkeypatch.setenv("DMLSPLIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_operators_of_a_file(cli, newest, tmp_path):
    (tmp_path / "x.jsonl").write_text("\n".join([RELU, BAD, NO_INPUT, GOOD]))
    result = cli("ask", "x.jsonl", "--directml", RELEASE, "--format", "jsonl")
    assert (result.status, result.err) == (1, "")
    answers = [json.loads(line) for line in result.out.splitlines()]
    assert [answer["hresult"] for answer in answers] == ["0x00000000", "0x80070057", None, "0x00000000"]
    assert [answer["ended_the_process"] for answer in answers] == [False, False, True, False]
    assert [answer["operator"] for answer in answers] == ["DML_OPERATOR_ACTIVATION_RELU", *["DML_OPERATOR_SPLIT"] * 3]
    assert {(answer["file"], answer["build"], answer["compiled"]) for answer in answers} == {("x.jsonl", RELEASE, None)}
    assert [answer["index"] for answer in answers] == [0, 1, 2, 3]


def test_what_is_accepted_and_compiled(cli, newest, tmp_path):
    (tmp_path / "x.json").write_text(RELU)
    result = cli("ask", "x.json", "--compile", "--format", "json")
    assert result.status == 0
    (answer,) = json.loads(result.out)
    assert (answer["compiled"], answer["dispatches"], answer["temporary_bytes"]) == (True, 1, 0)
    shown = cli("ask", "x.json", "--compile", "--directml", RELEASE).out
    assert shown.startswith(f"x.json: DML_OPERATOR_ACTIVATION_RELU: {RELEASE} accepts and compiles it: 1 dispatch, ")


def test_a_model_of_dxdispatch_with_any_operator(cli, newest, tmp_path):
    operators = {"relu": json.loads(RELU), "split": json.loads(GOOD)}
    relu = operators["relu"]
    operators["relu"] = {"type": relu["Type"], "desc": relu["Desc"], "bindings": {}}
    (tmp_path / "model.json").write_text(json.dumps({"dispatchables": operators, "resources": {}, "commands": []}))
    result = cli("ask", "model.json", "--format", "jsonl")
    assert result.status == 0
    assert [json.loads(line)["name"] for line in result.out.splitlines()] == ["relu", "split"]


def test_what_cannot_be_read_is_one_line_each_and_the_rest_is_asked(cli, newest, tmp_path):
    (tmp_path / "x.jsonl").write_text("\n".join([NO_STRUCT, MALFORMED, RELU]))
    result = cli("ask", "x.jsonl", "--format", "jsonl")
    assert result.status == 2
    assert [json.loads(line)["index"] for line in result.out.splitlines()] == [2]
    first, second = result.err.splitlines()
    assert first.startswith("dmlsplit: x.jsonl:1:")
    assert "DML_ACTIVATION_RELU_OPERATOR_DESC has no OutputTensors; did you mean OutputTensor?" in first
    assert second.startswith("dmlsplit: x.jsonl:2:")


def test_a_graph_that_cannot_be_read_is_named_by_its_member(cli, newest, tmp_path):
    tensor = {"DataType": "FLOAT32", "Sizes": [4]}
    relu = {"Type": "DML_OPERATOR_ACTIVATION_RELU", "Desc": {"InputTensor": tensor, "OutputTensors": tensor}}
    edges = {"InputEdges": [], "OutputEdges": [], "IntermediateEdges": []}
    graph = {"Type": "DML_GRAPH", "Desc": {"Inputs": [tensor], "Outputs": [tensor], "Nodes": [relu], **edges}}
    (tmp_path / "x.json").write_text(json.dumps(graph))
    result = cli("ask", "x.json")
    assert (result.status, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert "OutputTensors" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x.json", "--directml", "9.9"], "unknown DirectML release '9.9'"),
        (["x.json", "--directml", "onnxruntime-1.24.4"], "ONNX Runtime, which is asked about models"),
        (["m.onnx"], "m.onnx: a model needs a version of ONNX Runtime: --onnxruntime 1.24.4"),
        (["m.onnx", "--onnxruntime", "0.1"], "no build of 'onnxruntime-0.1' can be asked; known: onnxruntime-1.18.0"),
        (["x.json", "--onnxruntime", "1.24.4"], "x.json: operators need a DirectML release: --directml"),
        (["."], ". is a folder"),
        (["m.xml"], "m.xml: an OpenVINO model cannot be asked about"),
    ],
)
def test_wrong_usage(cli, tmp_path, arguments, said):
    for name in ("x.json", "m.onnx"):
        (tmp_path / name).write_text(RELU)
    result = cli("ask", *arguments)
    assert (result.status, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1


@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="no build can be run here")
def test_without_a_build_one_line_says_what_fetches_one(cli, empty, tmp_path):
    (tmp_path / "x.json").write_text(RELU)
    result = cli("ask", "x.json")
    assert (result.status, result.out) == (2, "")
    assert f"'dmlsplit library add {RELEASE}' fetches it, 66 MB (terms: " in result.err
    assert result.err.count("\n") == 1
    assert not empty.exists()


def test_the_builds(cli, empty):
    listed = cli("library", "list").out.splitlines()
    assert any(line.split()[:3] == [RELEASE, "1.13.1", "6_2"] and "66 MB" in line for line in listed)
    assert any(line.startswith("debug-layer") for line in listed)
    assert any(line.startswith("onnxruntime-1.24.4") for line in listed)
    assert str(empty) in listed[-1]
    assert cli("library", "remove", RELEASE).out == f"{RELEASE} is not here\n"
    assert "did you mean onnxruntime-1.24.4?" in cli("library", "add", "1.24.4").err
    wrong = cli("library", "add", "torch-directml-0.2.6")
    assert (wrong.status, wrong.err.count("\n")) == (2, 1)


def test_adding_says_what_it_fetches_before_it_does(cli, empty, monkeypatch):
    fetched = []

    def download(build, directory):
        fetched.append(build.name)
        raise fetching.Unavailable("no network")

    monkeypatch.setattr(fetching, "_download", download)
    monkeypatch.setattr(fetching, "require_platform", lambda: None)
    result = cli("library", "add", RELEASE)
    assert (result.status, fetched) == (2, [RELEASE])
    assert "pip fetches torch-directml 0.2.5.dev240914, 66 MB" in result.out
    assert "LICENSE and NOTICE of torch-directml" in result.out
    assert result.err == "dmlsplit: no network\n"
    assert list(empty.rglob("*.so")) == []


def test_removing(cli, empty):
    place = empty / "directml" / RELEASE
    place.mkdir(parents=True)
    (place / "libdirectml.so").write_bytes(b"")
    assert cli("library", "remove", RELEASE).out == f"{place} is removed\n"
    assert not place.exists()
