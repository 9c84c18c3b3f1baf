"""The layer over DirectML: programs get the real library's answers, and what they ask is written as it was."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from onnx import TensorProto

import dmlsplit as dml
from dmlsplit.cli import main
from dmlsplit.formats import any_operator_json, cstruct
from dmlsplit.formats.graph_json import loads as load_graph
from dmlsplit.graphs import EXAMPLES
from dmlsplit.library import harness as harnesses
from dmlsplit.library import layer
from dmlsplit.library.asking import graph_steps
from dmlsplit.library.catalogue import LINUX, WINDOWS, find_build
from dmlsplit.library.errors import Unavailable
from dmlsplit.library.fetching import checked_folder, is_added
from dmlsplit.library.harness import harness
from dmlsplit.library.image import image
from dmlsplit.library.process import CRASH, Library
from dmlsplit.library.sessions import OnnxRuntime, Query, RunInput
from dmlsplit.rules import RULES
from tests.directml.generator import descriptor
from tests.directml.graphs import random_graph
from tests.directml.programs import program
from tests.models import model, node, value

SEED = 20261123
SILENT = {"DMLSPLIT_LAYER_MESSAGES": "none"}
HERE = Path(__file__).parent


def layer_of(platform):
    try:
        return layer.built(platform)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def linux(newest, tmp_path_factory):
    """A folder with the newest build for Linux beneath the layer."""
    layer_of(LINUX)
    folder = tmp_path_factory.mktemp("linux")
    shutil.copy(checked_folder(newest) / "libdirectml.so", folder)
    layer.install(folder)
    return folder / "libdirectml.so"


@pytest.fixture(scope="module")
def windows(onnxruntime, tmp_path_factory):
    """A folder with ONNX Runtime 1.24.4 and its DirectML beneath the layer."""
    layer_of(WINDOWS)
    folder = tmp_path_factory.mktemp("windows")
    for path in checked_folder(onnxruntime).glob("*.dll"):
        shutil.copy(path, folder)
    layer.install(folder)
    return folder


def calls(lines):
    """Each call with its return; None for a call that did not return."""
    found = {}
    for line in map(json.loads, lines):
        if "Call" in line:
            key = line["Process"], line["Number"]
            assert key not in found
            found[key] = [line, None]
        else:
            key = line["Process"], line["Return"]
            assert found[key][1] is None
            assert line["Microseconds"] >= 0
            found[key][1] = line
    return list(found.values())


def operator_of(line):
    return any_operator_json.loads(json.dumps({key: line[key] for key in ("Type", "Desc")}))


def replies(library, commands, environment: Mapping[str, str] = SILENT):
    made = harness(LINUX)
    with Library(replace(made, environment={**made.environment, **environment}), library) as asked:
        return asked.replies(commands)


def test_a_library_for_linux_answers_as_without_the_layer(newest, linux, tmp_path):
    """Descriptors whose arrays may be shorter than is said of them, each at the end of what can be read, and programs
    that create, compile, bind and dispatch."""
    descs = [descriptor(SEED, i) for i in range(200)]
    programs = [" ; ".join(step.words for step in program(SEED, i, newest.name)) for i in range(60)]
    graphs = [random_graph(SEED, i) for i in range(30)]
    sessions = [f"session {steps}" for steps in (*programs, *(" ; ".join(graph_steps(each)) for each in graphs))]
    commands = [*(f"create {image(desc)}" for desc in descs), *sessions]
    lines = tmp_path / "calls.jsonl"
    expected = replies(checked_folder(newest) / "libdirectml.so", commands)
    assert replies(linux, commands, {**SILENT, "DMLSPLIT_LAYER_FILE": str(lines)}) == expected
    assert any(each.startswith(CRASH) for each in expected)
    written = [each for each in calls(lines.read_text("utf-8").splitlines()) if each[0]["Call"] == "CreateOperator"]
    for desc, reply, (call, returned) in zip(descs, expected[:200], written[:200], strict=True):
        assert (returned is None) == reply.startswith(CRASH)
        assert returned is None or returned["HRESULT"] == f"0x{reply}"
        if call.get("Whole", True):
            assert operator_of(call) == cstruct.read(cstruct.write(desc).operator_desc_address)
    assert sum("Whole" in call for call, _ in written) < 40


def test_graphs_are_written_with_their_operators(newest, linux, tmp_path):
    graphs = [random_graph(SEED + 1, i) for i in range(20)]
    path = tmp_path / "%p.jsonl"
    replies(
        linux,
        [f"session {' ; '.join(graph_steps(graph))}" for graph in graphs],
        {
            **SILENT,
            "DMLSPLIT_LAYER_FILE": str(path),
        },
    )
    files_written = [each for each in tmp_path.iterdir() if each.suffix == ".jsonl"]
    lines = [line for each in files_written for line in each.read_text("utf-8").splitlines()]
    assert all(each.stem.isdigit() for each in files_written)
    compiled = [line for line in map(json.loads, lines) if line.get("Call") == "CompileGraph"]
    read = [load_graph(json.dumps({key: line[key] for key in ("Type", "Desc")})) for line in compiled]
    for found, graph in zip(read, graphs, strict=True):
        assert found.nodes == graph.nodes
        assert found.intermediate_edges == graph.intermediate_edges
        assert (found.input_edges, found.output_edges) == (graph.input_edges, graph.output_edges)


def test_check_reads_what_was_written(linux, tmp_path, capsys):
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2))
    good = dml.SplitOperatorDesc.from_lengths(whole, 2, (2, 4))
    relu = dml.AnyOperatorDesc("ACTIVATION_RELU", {"InputTensor": whole, "OutputTensor": whole})
    bad = replace(good, axis=9)
    path = tmp_path / "calls.jsonl"
    replies(
        linux,
        [f"create {image(desc)}" for desc in (good, relu, bad)],
        {
            **SILENT,
            "DMLSPLIT_LAYER_FILE": str(path),
        },
    )
    assert main(["check", str(path), "--feature-level", "6_4", "--format", "jsonl"]) == 1
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["ok"] for answer in answers] == [True, True, False]
    assert answers[2]["diagnostics"][0]["rule"] == "split/axis-out-of-range"


def asked_directly(library, commands, environment):
    """The harness's standard error."""
    made = harness(LINUX)
    done = subprocess.run(
        made.command(library, []),
        input="\n".join(commands) + "\n",
        env={**os.environ, **made.environment, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stderr


def test_a_failing_call_is_explained(linux, tmp_path):
    """The rule is one that breaks at the device's feature level, and stands behind its summary."""
    descs = [
        desc for desc in (descriptor(SEED + 2, i) for i in range(120)) if not dml.validate(desc, feature_level="6_4").ok
    ][:40]
    path = tmp_path / "calls.jsonl"
    said = asked_directly(linux, [f"create {image(desc)}" for desc in descs], {"DMLSPLIT_LAYER_FILE": str(path)})
    explained = 0
    returned = [each for call, each in calls(path.read_text("utf-8").splitlines()) if call["Call"] == "CreateOperator"]
    for desc, each in zip(descs, returned, strict=True):
        if each is None or int(each["HRESULT"], 16) == 0:
            continue
        message = each["Message"]
        assert f"dmlsplit: {message}\n" in said
        assert message.startswith("CreateOperator returned 0x80070057 (E_INVALIDARG) [call ")
        rule = re.search(r"([^:]*) \(((?:tensor|split|join)/[a-z0-9-]+)\)$", message)
        if rule is None:
            assert "memory that cannot be read" in message
            continue
        assert rule[2] in {found.rule for found in dml.validate(desc, feature_level="6_4").diagnostics}
        assert message.endswith(f": {RULES[rule[2]].summary} ({rule[2]})")
        explained += 1
    assert explained > 20


@pytest.mark.parametrize("rule", ["graph/edge-twice", "graph/memory-too-small"])
def test_a_failing_graph_is_explained_by_its_line(linux, tmp_path, capsys, rule):
    graph = EXAMPLES[rule](False)
    command = f"session {' ; '.join(graph_steps(graph))}"
    path = tmp_path / "calls.jsonl"
    said = asked_directly(linux, [command], {"DMLSPLIT_LAYER_FILE": str(path)})
    returned = r"dmlsplit: CompileGraph returned 0x80070057 \(E_INVALIDARG\) \[call \d+, thread \d+\]: "
    assert re.fullmatch(rf"{returned}`dmlsplit check {re.escape(str(path))}` says more\n", said)
    assert main(["check", str(path), "--format", "jsonl"]) == 1
    judged = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rule in {found["rule"] for each in judged for found in each["diagnostics"]}
    without = asked_directly(linux, [command], {})
    assert re.fullmatch(rf"{returned}with DMLSPLIT_LAYER_FILE=FILE, `dmlsplit check FILE` says more\n", without)


def test_messages_go_where_they_are_sent(linux):
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2))
    bad = f"create {image(dml.SplitOperatorDesc.from_lengths(whole, 2, (2, 3)))}"
    assert "(split/axis-sizes-sum)" in asked_directly(linux, [bad], {})
    assert asked_directly(linux, [bad], SILENT) == ""
    unknown = asked_directly(
        linux, [bad], {**SILENT, "DMLSPLIT_LAYER_DIRECTML": "9.9", "DMLSPLIT_LAYER_CALLBACK": "no_such"}
    )
    assert "DMLSPLIT_LAYER_DIRECTML=9.9: no release is known by this name" in unknown
    assert "DMLSPLIT_LAYER_CALLBACK=no_such: the program exports no such function" in unknown
    absent = asked_directly(linux, [bad], {**SILENT, "DMLSPLIT_LAYER_FILE": "/no/such/folder/file"})
    assert absent == "dmlsplit: DMLSPLIT_LAYER_FILE=/no/such/folder/file: the file cannot be written\n"


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """The program layer_objects."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no c++ on the path")
    includes = [f"-I{folder}" for folder in (harnesses.SOURCES, harnesses.c_library() / "include")]
    sources = ("device", "library", "objects", "recording", "messages", "platform_linux")
    files = [HERE / "layer_objects.cpp", *(harnesses.SOURCES / f"{name}.cpp" for name in sources)]
    binary = tmp_path_factory.mktemp("objects") / "objects"
    command = [compiler, "-std=c++17", "-O0", "-rdynamic", *includes, *files, "-ldl", "-pthread", "-o", binary]
    subprocess.run(command, check=True, timeout=300)
    return binary


@pytest.mark.parametrize("name", [None, "tensorflow-directml-1.15.8"])
def test_objects_are_those_of_the_real_library(newest, objects, tmp_path, name):
    """Identity, references, private data and devices of all objects; threads; a callback that gets the lines. In the
    older build DMLCreateDevice calls DMLCreateDevice1 by its name, which is the layer's."""
    build = newest if name is None else find_build(name)
    if not is_added(build):
        pytest.skip(f"dmlsplit library add {name} has not been run")
    real = checked_folder(build) / "libdirectml.so"
    folder = tmp_path / "layer"
    folder.mkdir()
    shutil.copy(real, folder)
    layer_of(LINUX)
    layer.install(folder)

    def run(library, environment):
        variables = {**os.environ, **harness(LINUX).environment, **SILENT, **environment}
        done = subprocess.run([objects, library], env=variables, capture_output=True, text=True, timeout=60, check=True)
        assert done.stderr == ""
        return done.stdout

    file, heard = tmp_path / "calls.jsonl", tmp_path / "heard"
    expected = run(real, {})
    for environment in (
        {},
        {"DMLSPLIT_LAYER_FILE": str(file)},
        {"DMLSPLIT_LAYER_CALLBACK": "on_layer", "LAYER_HEARD": str(heard)},
    ):
        assert run(folder / "libdirectml.so", environment) == expected
    for path in (file, heard):
        written = [call for call, _ in calls(line for line in path.read_text("utf-8").splitlines() if line[0] == "{")]
        assert [call["Call"] for call in written if call["Call"].startswith("DMLCreate")] == CREATED
        of_threads = [call for call in written if call["Thread"] != written[0]["Thread"]]
        sizes = [tuple(call["Desc"]["InputTensor"]["Desc"]["Sizes"][2:]) for call in of_threads]
        assert sorted(sizes) == [(k, i) for k in range(1, 9) for i in range(1, 201)]
        assert len({call["Thread"] for call in of_threads}) == 8


def test_a_device_that_cannot_be_watched_is_named(objects, newest, linux):
    variables = {**os.environ, **harness(LINUX).environment}
    for library, said in ((checked_folder(newest) / "libdirectml.so", ""), (linux, "its calls are not written\n")):
        command = [objects, library, "debug"]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == "by another interface: 00000000\n"
        assert done.stderr.endswith(said)
        assert done.stderr.count("\n") == said.count("\n")


CREATED = ["DMLCreateDevice1", "DMLCreateDevice1", "DMLCreateDevice", "DMLCreateDevice"]


def events_of(written):
    """What the recorder of the harness notes, from the layer's lines."""
    found = []
    numbers = {}
    for call, returned in written:
        if call["Call"] == "CreateOperator":
            numbers[call["Number"]] = len(numbers)
            desc = {key: call[key] for key in ("Type", "Desc")}
            found.append({"call": "CreateOperator", "desc": desc, "hr": returned["HRESULT"]})
        elif call["Call"] == "CompileOperator":
            operator = numbers[call["Operator"]]
            found.append({"call": "CompileOperator", "id": operator, "flags": call["Flags"], "hr": returned["HRESULT"]})
        elif call["Call"] == "CompileGraph":
            desc = call["Desc"]
            edges = {name: [list(edge.values()) for edge in desc[name]] for name in desc if name.endswith("Edges")}
            found.append(
                {
                    "call": "CompileGraph",
                    "nodes": [numbers[operator] for operator in call["Operators"]],
                    "types": [each["Type"] for each in desc["Nodes"]],
                    "inputs": len(desc["Inputs"]),
                    "outputs": len(desc["Outputs"]),
                    "edges": [edges["InputEdges"], edges["OutputEdges"], edges["IntermediateEdges"]],
                    "flags": call["Flags"],
                    "hr": returned["HRESULT"],
                }
            )
    return found


def recorded(events):
    """The same from the recorder's events."""
    found = []
    created = [event for event in events if event["call"] == "CreateOperator"]
    types = {event["id"]: event["desc"]["Type"] for event in created}
    first = min(types, default=0)
    for event in events:
        if event["call"] == "CreateOperator":
            found.append({key: event[key] for key in ("call", "desc", "hr")})
        elif event["call"] == "CompileOperator":
            found.append({**event, "id": event["id"] - first})
        elif event["call"] == "CompileGraph":
            ids = [each["id"] for each in event["nodes"]]
            found.append(
                {
                    "call": "CompileGraph",
                    "nodes": [each - first for each in ids],
                    "types": [types[each] for each in ids],
                    "inputs": event["inputs"],
                    "outputs": event["outputs"],
                    "edges": [event["inputEdges"], event["outputEdges"], event["intermediateEdges"]],
                    "flags": event["flags"],
                    "hr": event["hr"],
                }
            )
    return found


def models():
    """One that is fused into a graph, and one with an operator that DirectML refuses to create or that stays apart."""
    nodes = [
        node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
        node("Sigmoid", ["b"], ["s"]),
        node("Mul", ["a", "s"], ["m"]),
        node("Concat", ["m", "a"], ["y"], axis=1),
    ]
    yield model(nodes, [value("x", [1, 4, 3, 3])], [value("y", None)], ir_version=8)
    nodes = [node("Relu", ["x"], ["r"]), node("Softmax", ["r"], ["y"])]
    yield model(nodes, [value("x", ["n", 4])], [value("y", None)], ir_version=8)


def test_onnxruntime_answers_as_without_the_layer(onnxruntime, windows, tmp_path, monkeypatch):
    """Under wine: sessions are made and run, by the real DirectML.dll and by the layer, which writes what the harness's
    recorder saw."""
    queries = []
    for made, shape in zip(models(), ((1, 4, 3, 3), (2, 4)), strict=True):
        run = [RunInput("x", TensorProto.FLOAT, shape)]
        queries += [
            Query(made.SerializeToString(), config=config, run=run, outputs=["y"]) for config in ({}, NO_FUSION)
        ]
    answers = []
    path = tmp_path / "calls.jsonl"
    monkeypatch.setenv("DMLSPLIT_LAYER_MESSAGES", "none")
    for folder in (checked_folder(onnxruntime), windows):
        monkeypatch.setenv("DMLSPLIT_LAYER_FILE", f"Z:{path}")
        with OnnxRuntime(folder) as runtime:
            answers.append([runtime.ask(query) for query in queries])
    assert answers[0] == answers[1]
    assert all(answer["session"] and answer["ran"] for answer in answers[0])
    events = [event for answer in answers[1] for event in answer["events"]]
    written = calls(path.read_text("utf-8").splitlines())
    assert events_of(written) == recorded(events)
    assert {"CompileGraph", "CompileOperator", "BindInputs", "BindOutputs", "RecordDispatch"} <= {
        call["Call"] for call, _ in written
    }


NO_FUSION = {"ep.dml.disable_graph_fusion": "1"}


def test_a_descriptor_that_ends_the_process_is_named_before_the_call(newest, linux, tmp_path):
    """Where the release is named: the call has a line, and no return."""
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2))
    absent = dml.TensorDesc(dml.TensorType.BUFFER, None)
    bad = dml.JoinOperatorDesc([whole, absent], whole, 2)
    path = tmp_path / "calls.jsonl"
    variables = {"DMLSPLIT_LAYER_DIRECTML": newest.name, "DMLSPLIT_LAYER_FILE": str(path)}
    said = asked_directly(linux, [f"create {image(bad)}"], variables)
    assert said.startswith("dmlsplit: CreateOperator does not return from this release: InputTensors[1]")
    assert said.endswith("(join/crash)\n")
    assert calls(path.read_text("utf-8").splitlines())[-1][1] is None
