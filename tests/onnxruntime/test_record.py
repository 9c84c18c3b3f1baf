"""What a model submits, as a DxDispatch model."""

from __future__ import annotations

import json

import pytest

from dmlsplit.cli import main
from dmlsplit.onnxruntime.prediction import on_onnxruntime
from tests.onnxruntime.models import described
from tests.onnxruntime.record import document, sample_of, summary

pytestmark = pytest.mark.onnxruntime

SPLIT = {"type": "FLOAT", "shape": [1, 2, 6, 4], "axis": 2, "lens": [2, 4], "n": 2, "how": "auto", "opset": 17}


def test_the_document_holds_what_was_submitted(made, runtime, tmp_path, capsys):
    sample = described("between", {**SPLIT, "ctx": "between"})
    record = runtime.ask(sample.query)
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps(document(record, made.version)), "utf-8")
    (node,) = on_onnxruntime(sample.model, made.version)
    assert len(json.loads(path.read_text("utf-8"))["dispatchables"]) == len(node.answer.operators) == 1
    assert main(["check", "--format", "json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["ok"]
    assert "CompileGraph flags 0 0x00000000 (1)" in summary(record)


def test_what_is_refused_is_in_the_document_as_well(made, runtime):
    record = runtime.ask(described("omitted", {**SPLIT, "ctx": "emptyname"}).query)
    recorded = document(record, made.version)
    assert list(recorded["dispatchables"]) == ["operator0"]
    assert recorded["commands"] == []
    assert "session fails" in recorded["$comment"]


def test_a_file_with_open_sizes_is_run_with_given_ones(made, runtime, tmp_path):
    import onnx

    path = tmp_path / "model.onnx"
    onnx.save(described("open", {**SPLIT, "shape": ["N", 2, 6, 4], "ctx": "alone"}).model, path)
    with pytest.raises(SystemExit, match="the shape of x is open"):
        sample_of(path, {"y": (1,)})
    recorded = document(runtime.ask(sample_of(path, {"x": (3, 2, 6, 4)}).query), made.version)
    (operator,) = recorded["dispatchables"].values()
    assert operator["Desc"]["InputTensor"]["Desc"]["Sizes"] == [3, 2, 6, 4]
