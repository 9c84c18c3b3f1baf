"""ONNX Runtime, asked about models: placement of every node, what fails, what DirectML is given."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import dmlsplit as dml
from dmlsplit.cli import main
from dmlsplit.formats import any_operator_json
from dmlsplit.library import ask_model
from tests.models import array, graph, model, node, value


@pytest.fixture
def mixed(tmp_path):
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Split", ["a"], ["b", "c"], name="split", axis=1, num_outputs=2),
        node("Concat", ["c", "b"], ["d"], axis=1),
        node("Shape", ["d"], ["s"], name="shape"),
        node("StringNormalizer", ["t"], ["u"], name="text"),
    ]
    inputs = [value("x", [1, 4, 3, 3]), value("t", [2], TensorProto.STRING)]
    outputs = [value("d", None), value("s", None, TensorProto.INT64), value("u", None, TensorProto.STRING)]
    path = tmp_path / "mixed.onnx"
    onnx.save(model(nodes, inputs, outputs, ir_version=8), path)
    return path


def test_every_node_has_its_place(onnxruntime, mixed):
    answer = ask_model(str(mixed), "1.24.4")
    assert (answer.created, answer.failure) == (True, None)
    assert answer.nodes == {"a": "DML", "split": "DML", "d": "DML", "shape": "folded", "text": "CPU"}
    assert set(answer.operators) == {f"DML_OPERATOR_{name}" for name in ("ACTIVATION_RELU", "SPLIT", "JOIN")}
    assert answer.refused == ()
    descs = [any_operator_json.loads(json.dumps(each.operator)) for each in answer.submitted]
    assert [type(desc).__name__ for desc in descs].count("AnyOperatorDesc") == 1
    assert {desc.output_tensor.sizes for desc in descs if isinstance(desc, dml.JoinOperatorDesc)} == {(1, 4, 3, 3)}
    assert sum(each.count for each in answer.submitted) == sum(answer.operators.values())
    assert {each.hresult for each in answer.submitted} == {0}
    assert len(json.loads(json.dumps(answer.to_dict()))["submitted"]) == len(descs)
    assert [(len(graph.nodes), graph.inputs, graph.outputs, graph.hresult) for graph in answer.graphs] == [(3, 1, 1, 0)]


def test_where_all_nodes_are_in_one_place(onnxruntime, tmp_path):
    then = graph([node("Relu", ["x"], ["p"], name="in")], [], [value("p", None)], name="t")
    other = graph([node("Abs", ["x"], ["q"])], [], [value("q", None)], name="e")
    nodes = [node("If", ["k"], ["y"], name="if", then_branch=then, else_branch=other)]
    inputs = [value("x", [1, 4]), value("k", [], TensorProto.BOOL)]
    onnx.save(model(nodes, inputs, [value("y", None)], ir_version=8), tmp_path / "if.onnx")
    answer = ask_model(str(tmp_path / "if.onnx"), "1.24.4")
    assert set(answer.nodes) == {"if", "if.then_branch/in", "if.else_branch/q"}
    assert set(answer.nodes.values()) <= {"DML", "CPU"}


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
@pytest.mark.parametrize(("op_type", "place"), [("Det", "CPU"), ("Relu", "DML")])
@pytest.mark.parametrize("opset", [11, 21])
def test_where_all_nodes_are_on_one_provider(onnxruntime, tmp_path, op_type, place, opset, version):
    nodes = [node(op_type, ["x"], ["y"], name="n"), node("Shape", ["x"], ["s"], name="shape")]
    outputs = [value("y", None), value("s", None, TensorProto.INT64)]
    made = model(nodes, [value("x", [3, 3])], outputs, opset=opset, ir_version=8)
    onnx.save(made, tmp_path / "one.onnx")
    answer = ask_model(str(tmp_path / "one.onnx"), version)
    assert answer.nodes == {"n": place, "shape": "folded"}
    assert answer.added == {}


def test_a_failure_is_in_onnxruntimes_own_words(onnxruntime, tmp_path):
    nodes = [node(name, ["x"], [name], name="twice") for name in ("Relu", "Abs")]
    onnx.save(
        model(nodes, [value("x", [1, 6])], [value("Relu", None), value("Abs", None)], ir_version=8),
        tmp_path / "bad.onnx",
    )
    answer = ask_model(str(tmp_path / "bad.onnx"), "1.24.4")
    assert not answer.created
    assert answer.failure.startswith("CreateSession: [1] Load model from Z:")
    assert answer.failure.endswith("two nodes with same node name (twice).")
    assert (answer.nodes, answer.operators) == ({}, {})


def test_weights_beside_the_model(onnxruntime, tmp_path):
    conv = node("Conv", ["x", "w"], ["y"], name="conv")
    weights = array("w", np.ones((2, 4, 1, 1), np.float32))
    made = model([conv], [value("x", [1, 4, 3, 3])], [value("y", None)], initializers=[weights], ir_version=8)
    onnx.save(made, tmp_path / "w.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    answer = ask_model(str(tmp_path / "w.onnx"), "1.24.4")
    assert (answer.created, answer.nodes) == (True, {"conv": "DML"})


def test_what_is_no_model(onnxruntime, tmp_path):
    (tmp_path / "x.onnx").write_bytes(b"\xff\xff")
    with pytest.raises(dml.InputError, match="it is not an ONNX model"):
        ask_model(str(tmp_path / "x.onnx"), "1.24.4")
    with pytest.raises(dml.InputError, match="No such file"):
        ask_model(str(tmp_path / "absent.onnx"), "1.24.4")


def test_the_command(onnxruntime, mixed, capsys):
    assert main(["ask", str(mixed), "--onnxruntime", "1.24.4", "--format", "json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert (answer["created"], answer["nodes"]["text"], answer["onnxruntime"]) == (True, "CPU", "1.24.4")
    assert main(["ask", str(mixed), str(mixed.with_name("absent.onnx")), "--onnxruntime", "1.24.4"]) == 2
    shown = capsys.readouterr()
    assert "creates a session" in shown.out
    assert shown.err.count("\n") == 1
