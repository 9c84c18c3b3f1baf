"""The real library, asked about operators and graphs."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.any_operator import widened
from dmlsplit.formats import any_operator_json
from dmlsplit.graphs.examples import Sketch
from dmlsplit.library import NotAdded, Unavailable, ask, ask_all, asking
from dmlsplit.library.asking import build_of, ended_by
from dmlsplit.library.catalogue import find_build
from dmlsplit.library.fetching import is_added
from dmlsplit.library.places import folder_of
from tests.library.conftest import LINUX_BUILDS, NEWEST, require

BASES = Path(__file__).parents[1] / "data" / "operators" / "base.jsonl.xz"
"""An accepted descriptor of each operator."""
KNOWS_5_1 = {"torch-directml-0.1.13.1.dev230119", "tensorflow-directml-1.15.8"}
"""Builds that say 5_0 and have the operators of 5_1."""
WHOLE = dml.BufferTensorDesc(1, (1, 1, 6, 2))
SPLIT = dml.SplitOperatorDesc.from_lengths(WHOLE, 2, (2, 1, 3))
JOIN = dml.JoinOperatorDesc.from_lengths(WHOLE, 2, (2, 4))


def bases():
    with lzma.open(BASES, "rt", encoding="utf-8") as lines:
        return [any_operator_json.loads(line) for line in lines]


def operator(name, **changed):
    """The base of an operator with other members."""
    members = next(members for schema, members in map(widened, bases()) if schema.name == name)
    return dml.AnyOperatorDesc(name, {**members, **changed})


@pytest.mark.parametrize("build", LINUX_BUILDS, ids=str)
def test_every_operator_of_a_builds_level_is_created(build):
    if build is not NEWEST and not is_added(build):
        pytest.skip(f"dmlsplit library add {build} has not been run")
    require(build)
    level = dml.FeatureLevel.FL_5_1 if build.name in KNOWS_5_1 else build.feature_level
    asked = bases()
    schemas = [widened(base)[0] for base in asked]
    assert len({schema.number for schema in schemas}) == 177
    expected = [0 if schema.since <= level else build.release.invalid_argument for schema in schemas]
    assert [answer.hresult for answer in ask_all(asked, build, explain=False)] == expected


def test_all_that_is_created_compiles(newest):
    created = [base for base in bases() if widened(base)[0].since <= newest.feature_level]
    answers = ask_all(created, newest, compile=True, explain=False)
    assert {(answer.hresult, answer.compiled) for answer in answers} == {(0, True)}
    names = [widened(base)[0].name for base in created]
    dispatches = dict(zip(names, [answer.dispatches for answer in answers], strict=True))
    assert (dispatches["CAST"], dispatches["LSTM"], dispatches["TOP_K"]) == (1, 12, 6)


def test_what_ends_the_process_costs_its_own_answer(newest):
    crash = replace(SPLIT, input_tensor=None)
    division = operator("DEPTH_TO_SPACE", BlockSize=2**31)
    answers = ask_all([SPLIT, crash, JOIN, division, SPLIT], newest)
    assert [answer.hresult for answer in answers] == [0, None, 0, None, 0]
    assert [answer.ended_the_process for answer in answers] == [False, True, False, True, False]
    assert answers[1].reason == "the process ended by SIGSEGV"
    assert answers[3].reason == "the process ended by SIGFPE"
    assert [answer.accepted for answer in answers] == [True, False, True, False, True]


def test_the_call_that_ended_the_process(newest):
    answer = ask(replace(SPLIT, input_tensor=None), newest, compile=True)
    assert (answer.ended_the_process, answer.call, answer.compiled) == (True, "CreateOperator", None)


def test_how_a_process_ended():
    assert ended_by("11") == "the process ended by SIGSEGV"
    assert ended_by("C0000094") == "the process ended by a division by zero (0xC0000094)"
    assert ended_by("C0000420") == "the process ended by exception 0xC0000420"


def test_an_operator_newer_than_the_build(newest):
    answer = ask(operator("FOLD"), newest)
    assert answer.hresult == newest.release.invalid_argument
    assert answer.reason == "DML_OPERATOR_FOLD requires feature level 6_4, but the build has 6_2"


def test_memory(newest):
    x, w = dml.BufferTensorDesc(1, (1, 64, 56, 56)), dml.BufferTensorDesc(1, (64, 64, 3, 3))
    convolution = {"InputTensor": x, "FilterTensor": w, "OutputTensor": x, "GroupCount": 1}
    convolution |= {"StartPadding": (1, 1), "EndPadding": (1, 1), "OutputPadding": (0, 0)}
    convolution |= {"Strides": (1, 1), "Dilations": (1, 1), "Direction": "FORWARD", "Mode": "CROSS_CORRELATION"}
    answer = ask(dml.AnyOperatorDesc("CONVOLUTION", convolution), newest, compile=True)
    assert (answer.compiled, answer.temporary_bytes, answer.persistent_bytes) == (True, 1_605_632, 0)
    owned = dml.BufferTensorDesc(1, (64, 64, 3, 3), flags=dml.TensorFlags.OWNED_BY_DML)
    answer = ask(dml.AnyOperatorDesc("CONVOLUTION", {**convolution, "FilterTensor": owned}), newest, compile=True)
    assert (answer.compiled, answer.persistent_bytes) == (True, 147_456)
    assert answer.dispatches is not None


def test_a_graph(newest):
    sketch = Sketch()
    source = sketch.input(1, 1, 4, 4)
    relu = sketch("ACTIVATION_RELU", source)
    graph = sketch.graph(*[sketch("ACTIVATION_SIGMOID", each) for each in sketch.split(relu, 3, (1, 3))])
    answer = ask(graph, newest)
    assert (answer.hresult, answer.compiled, answer.call) == (0, True, "CompileGraph")
    assert answer.dispatches is not None
    assert answer.dispatches >= 3
    nodes = [replace(node, axis=7) if isinstance(node, dml.SplitOperatorDesc) else node for node in graph.nodes]
    refused = ask(replace(graph, nodes=tuple(nodes)), newest)
    assert (refused.hresult, refused.call, refused.node) == (0x80070057, "CreateOperator", 1)


def test_a_graph_of_any_operators(newest):
    gemm = operator("GEMM")
    a, b, c = gemm.inputs
    whole = gemm.outputs[0]
    relu = dml.AnyOperatorDesc("ACTIVATION_RELU", {"InputTensor": whole, "OutputTensor": whole})
    inputs = [a, b] if c is None else [a, b, c]
    edges = [dml.InputGraphEdgeDesc(i, 0, i) for i in range(len(inputs))]
    wires = [dml.IntermediateGraphEdgeDesc(0, 0, 1, 0)]
    graph = dml.GraphDesc(inputs, [whole], [gemm, relu], edges, [dml.OutputGraphEdgeDesc(1, 0, 0)], wires)
    alone = dml.GraphDesc(inputs, [whole], [gemm], edges, [dml.OutputGraphEdgeDesc(0, 0, 0)])
    answer, without = ask_all([graph, alone], newest)
    assert (answer.hresult, answer.call) == (without.hresult, without.call) == (0, "CompileGraph")
    assert answer.dispatches == without.dispatches + 1  # fusing an activation is the caller's


def test_a_node_that_does_not_say_all_of_its_struct(newest):
    tensor = dml.BufferTensorDesc(1, (1, 1, 2, 2))
    graph = dml.GraphDesc(
        [tensor],
        [tensor],
        [dml.AnyOperatorDesc.of_tensors("ACTIVATION_ELU", [tensor], [tensor])],
        [dml.InputGraphEdgeDesc(0, 0, 0)],
        [dml.OutputGraphEdgeDesc(0, 0, 0)],
    )
    with pytest.raises(ValueError, match=r"Nodes\[0\]\.Alpha: is missing"):
        ask(graph, newest)


def test_what_no_struct_holds(newest):
    with pytest.raises(ValueError, match=r"^OutputTensors\[1\]: .* an entry cannot be null"):
        ask(replace(SPLIT, output_tensors=(WHOLE, None, WHOLE)), newest)
    beyond = dml.BufferTensorDesc(1, (2**32 - 1,) * 4)
    with pytest.raises(ValueError, match=r"^BTensor\.TotalTensorSizeInBytes: "):
        ask(operator("GEMM", BTensor=beyond), newest)
    with pytest.raises(ValueError, match=r"^QuantizationTensors\[1\]\.TotalTensorSizeInBytes: "):
        ask(operator("QUANTIZE", QuantizationTensors=[WHOLE, beyond]), newest)


def test_the_build_that_is_asked(newest, tmp_path, monkeypatch):
    assert build_of("torch-directml-0.2.5.dev240914") == build_of(newest.release) == newest
    with pytest.raises(ValueError, match=r"unknown DirectML release '9\.9'"):
        build_of("9.9")
    with pytest.raises(ValueError, match="ONNX Runtime, which is asked about models"):
        build_of("onnxruntime-1.24.4")
    monkeypatch.setenv("DMLSPLIT_CACHE", str(tmp_path))
    with pytest.raises(NotAdded, match=r"'dmlsplit library add torch-directml-0\.2\.5\.dev240914' fetches it, 66 MB"):
        ask(SPLIT)
    with pytest.raises(
        NotAdded, match=r"onnxruntime-directml-1\.24\.4 is not here; .* 25 MB \(terms: ONNX Runtime: MIT"
    ):
        ask(SPLIT, "1.15.4")
    assert list(tmp_path.iterdir()) == []


def test_the_newest_build_is_the_newest_that_can_be_run(newest, tmp_path, monkeypatch):
    monkeypatch.setenv("DMLSPLIT_CACHE", str(tmp_path))
    for build in (LINUX_BUILDS[0], NEWEST, *map(find_build, ("1.15.1", "1.15.4"))):
        place = folder_of(build)
        place.mkdir(parents=True)
        (place / build.platform.library).touch()
    runs = {"linux", "windows"}

    def harness(platform):
        if platform.name not in runs:
            raise Unavailable(f"nothing runs {platform.name}")

    monkeypatch.setattr(asking, "harness", harness)
    assert build_of() == find_build("1.15.4")
    runs.remove("windows")
    assert build_of() == NEWEST
    runs.clear()
    with pytest.raises(Unavailable, match="nothing runs windows"):
        build_of()


def test_the_debug_layer_says_why(newest):
    if not is_added(find_build("debug-layer")):
        pytest.skip("the debug layer is not here")
    require(find_build("debug-layer"))
    wrong = operator("GEMM", ATensor=dml.BufferTensorDesc(12, (1, 1, 2, 3)))
    answers = ask_all([wrong, SPLIT, replace(SPLIT, axis=9)], newest)
    assert "'12' is not a valid value" in answers[0].reason
    assert answers[1].reason is None
    assert answers[2].reason
    assert ask(wrong, newest, explain=False).reason is None
    old = find_build("tensorflow-directml-1.15.8")
    if is_added(old):  # it says 5_0 and knows this operator of 5_1
        tensor = dml.BufferTensorDesc(3, (1, 2, 3, 4))
        gelu = dml.AnyOperatorDesc("ACTIVATION_GELU", {"InputTensor": tensor, "OutputTensor": tensor})
        assert "DML_TENSOR_DATA_TYPE_UINT32" in ask(gelu, old).reason


def test_json_of_every_operator():
    for base in bases():
        assert any_operator_json.loads(any_operator_json.dumps(base)) == base
    fused = operator("GEMM", FusedActivation=dml.AnyOperatorDesc("ACTIVATION_ELU", {"Alpha": 0.5}, fused=True))
    assert any_operator_json.loads(any_operator_json.dumps(fused)) == fused
    flat = {"Type": "GEMM", "FusedActivation": {"Type": "ACTIVATION_ELU", "Alpha": 0.5}}
    members = json.loads(any_operator_json.dumps(operator("GEMM")))["Desc"]
    assert any_operator_json.loads(json.dumps(members | flat)) == fused


@pytest.mark.parametrize(
    ("change", "column", "said"),
    [
        (
            {"TransA": "TRANSPOSED"},
            "TransA",
            "Desc.TransA: TRANSPOSED is not a DML_MATRIX_TRANSFORM; did you mean TRANSPOSE?",
        ),
        ({"Atensor": None}, "", "Desc: DML_GEMM_OPERATOR_DESC has no Atensor; did you mean ATensor?"),
        ({"Alpha": "x"}, "Alpha", "Desc.Alpha: expected a number, not 'x'"),
        (
            {"FusedActivation": {"Type": "ACTIVATION_ELU", "Desc": {}}},
            "FusedActivation",
            "Desc.FusedActivation.Desc.Alpha: is missing",
        ),
        (
            {"FusedActivation": {"Type": "RELUS"}},
            "FusedActivation",
            "Desc.FusedActivation.Type: RELUS is not an operator",
        ),
    ],
)
def test_errors_of_json_name_the_member_and_its_place(change, column, said):
    value = json.loads(any_operator_json.dumps(operator("GEMM")))
    value["Desc"] |= change
    text = json.dumps(value)
    with pytest.raises(dml.InputError) as error:
        any_operator_json.loads(text)
    assert error.value.message.startswith(said)
    assert error.value.line == 1
    place = text.index(f'"{column}": ') + len(f'"{column}": ') if column else text.index("{", 1)
    assert error.value.column - 1 >= place
