"""DxDispatch models of any operators, in every form that such models have: read, judged, asked and compiled."""

from __future__ import annotations

import json

import pytest

from dmlsplit.cli import main
from tests.formats.models import chain


def tensor(*sizes, data_type="FLOAT32", **members):
    return {"DataType": data_type, "Sizes": list(sizes), **members}


def operator(name, desc, **members):
    return {"type": name, "desc": desc, **members}


def same(*sizes, **members):
    return {"InputTensor": tensor(*sizes), "OutputTensor": tensor(*sizes), **members}


CONVOLUTION = {
    "InputTensor": tensor(1, 2, 5, 5),
    "FilterTensor": tensor(4, 2, 3, 3),
    "OutputTensor": tensor(1, 4, 3, 3),
    "Mode": "DML_CONVOLUTION_MODE_CROSS_CORRELATION",
    "Direction": "FORWARD",
    "DimensionCount": 2,
    **{name: [1, 1] for name in ("Strides", "Dilations")},
    **{name: [0, 0] for name in ("StartPadding", "EndPadding", "OutputPadding")},
    "GroupCount": 1,
}
GEMM = {
    "ATensor": tensor(1, 1, 4, 8),
    "BTensor": tensor(1, 1, 8, 2, Flags=["DML_TENSOR_FLAG_OWNED_BY_DML"]),
    "OutputTensor": tensor(1, 1, 4, 2),
    "TransA": "NONE",
    "TransB": "DML_MATRIX_TRANSFORM_NONE",
    "Alpha": 1,
    "Beta": 0.5,
}
ELUS = [{"Type": "ACTIVATION_ELU", "Alpha": alpha} for alpha in (0.25, 2)]
RNN = {
    "InputTensor": tensor(1, 3, 2, 4),
    "WeightTensor": tensor(1, 2, 6, 4),
    "RecurrenceTensor": tensor(1, 2, 6, 6),
    "OutputSingleTensor": tensor(1, 2, 2, 6),
    "ActivationDescCount": 2,
    "ActivationDescs": ELUS,
    "Direction": "DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL",
}
CLIP = {
    "InputTensor": tensor(7, data_type="DML_TENSOR_DATA_TYPE_FLOAT16"),
    "OutputTensor": tensor(7, data_type="FLOAT16"),
    "MinMaxDataType": "FLOAT16",
    "Min": "-inf",
    "Max": 6,
}
UPSAMPLE = {
    "InputTensor": tensor(1, 1, 2, 3),
    "OutputTensor": tensor(1, 1, 4, 9),
    "ScaleSize": {"Width": 3, "Height": 2},
    "InterpolationMode": "LINEAR",
}
SUM = {"InputTensor": tensor(1, 1, 3, 5), "OutputTensor": tensor(1, 1, 3, 1), "Function": "SUM", "Axes": [3]}
FUSED = {name: tensor(5) for name in ("ATensor", "BTensor", "OutputTensor")} | {"FusedActivation": ELUS[0]}
PRODUCT = same(1, 1, 2, 4, Axis=3, AxisDirection="INCREASING", HasExclusiveProduct=False)
FLAGS = ["DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION"]
DISPATCHABLES = {
    "conv": operator("DML_OPERATOR_CONVOLUTION", CONVOLUTION),
    "gemm": operator("GEMM", GEMM, dmlCompileType="DmlCompileGraph", executionFlags=FLAGS, bindings={"BTensor": "b"}),
    "rnn": operator("DML_OPERATOR_RNN", RNN),
    "clip": operator("DML_OPERATOR_ELEMENT_WISE_CLIP1", CLIP),
    "upsample": operator("DML_OPERATOR_UPSAMPLE_2D", UPSAMPLE),
    "sum": operator("DML_OPERATOR_REDUCE", SUM),
    "fused": operator("DML_OPERATOR_ELEMENT_WISE_ADD1", FUSED),
    "scaled": operator("DML_OPERATOR_ELEMENT_WISE_IDENTITY", same(3, ScaleBias={"Scale": 2, "Bias": -1})),
    "product": operator("DML_OPERATOR_CUMULATIVE_PRODUCT", PRODUCT),
    "inline": {"Type": "DML_OPERATOR_ELEMENT_WISE_CLIP", **same(9), "Min": -2.5, "Max": 2.5},
}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"resources": {}, "dispatchables": DISPATCHABLES, "commands": []}))
    return str(path)


def test_a_model_is_judged_and_asked(newest, model, capsys):
    assert main(["check", model, "--directml", newest.name, "--ask", "--format", "json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert len(answers) == len(DISPATCHABLES)
    assert {(answer["ok"], answer["library"]["accepted"]) for answer in answers} == {(True, True)}
    assert main(["ask", model, "--directml", newest.name, "--compile", "--format", "json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert [answer["name"] for answer in answers] == list(DISPATCHABLES)
    assert all(answer["compiled"] and answer["dispatches"] > 0 for answer in answers)
    (gemm,) = (answer for answer in answers if answer["name"] == "gemm")
    assert gemm["persistent_bytes"] > 0


def test_a_graph_is_asked_with_the_operators_that_it_names(newest, tmp_path, capsys):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(chain()))
    assert main(["check", str(path), "--directml", newest.name, "--ask"]) == 0
    assert main(["ask", str(path), "--directml", newest.name]) == 0
    path.write_text(json.dumps(chain(IntermediateEdges=[])))
    assert main(["check", str(path), "--directml", newest.name, "--format", "json"]) == 1
    capsys.readouterr()
    assert main(["ask", str(path), "--directml", newest.name, "--format", "json"]) == 1
    assert [answer["hresult"] for answer in json.loads(capsys.readouterr().out)] == ["0x00000000", "0x80070057"]


def test_what_is_no_operator_is_named_and_the_rest_is_asked(newest, tmp_path, capsys):
    others = {"graph": operator("DML_GRAPH_DESC", {}), "shader": {"type": "hlsl"}, "conv": DISPATCHABLES["conv"]}
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"resources": {}, "dispatchables": others, "commands": []}))
    assert main(["ask", str(path), "--directml", newest.name]) == 2
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 2
    assert "accepts it" in shown.out
