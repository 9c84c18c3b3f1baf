"""Models that onnx would infer slowly are inferred in parts, and nothing else comes of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from dmlsplit.formats.onnx.protobuf import all_graphs, values_of
from dmlsplit.models import inference, inference_parts
from tests.formats.onnx_families import FAMILIES

SIZE = 12


def types(model):
    """The types of all tensors, by graph and name, without the symbols that inference makes up."""
    found = []
    for graph in all_graphs(model.graph):
        known = {value.name: value.type for value in values_of(graph)}
        for kind in known.values():
            for dim in kind.tensor_type.shape.dim:
                if dim.dim_param.startswith("unk__"):
                    dim.ClearField("dim_param")
        found.append({name: kind.SerializeToString(deterministic=True) for name, kind in known.items()})
    return found


def answer(model):
    try:
        return inference.Inference().infer_shapes(model)
    except inference.InferenceError as error:
        return str(error)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_inferred_in_parts_is_what_is_inferred_at_once(family, monkeypatch):
    model = FAMILIES[family](SIZE)
    whole = answer(model)
    monkeypatch.setattr(inference, "_MOST_COPIED", -1)
    monkeypatch.setattr(inference, "_names_copied", lambda graph, around=0: 0)
    monkeypatch.setattr(inference_parts, "MOST_NODES", 2)
    monkeypatch.setattr(inference._worker, "answers", inference.Answers())
    parts = answer(model)
    if isinstance(whole, str) or isinstance(parts, str):
        assert parts == whole
        return
    assert [node.SerializeToString() for node in parts.graph.node if not node.attribute] == [
        node.SerializeToString() for node in whole.graph.node if not node.attribute
    ]
    assert types(parts) == types(whole)


def copied(family, size, monkeypatch):
    """The names that onnx copies to infer a model of a family."""
    model, count = FAMILIES[family](size), 0
    infer = inference._worker.infer

    def noted(request, seconds):
        nonlocal count
        count += inference._names_copied(type(model).FromString(request[1:]).graph)
        return infer(request, seconds)

    monkeypatch.setattr(inference._worker, "infer", noted)
    inference.Inference().infer_shapes(model)
    monkeypatch.undo()
    return count


@pytest.mark.parametrize("family", ["ifs", "constants in branches", "names known around"])
def test_names_that_are_copied_grow_as_the_model_does(family, monkeypatch):
    monkeypatch.setattr(inference, "_MOST_COPIED", 1)
    small = copied(family, 256, monkeypatch)
    monkeypatch.setattr(inference, "_MOST_COPIED", 1)
    assert copied(family, 1024, monkeypatch) < 5 * small


class TestTheAnswers:
    def test_the_oldest_ones_are_forgotten(self):
        answers = inference.Answers(most=30)
        for request in (b"one", b"two", b"three"):
            answers.keep(request, inference._Answer(request * 2, b"!"))
        assert [answers.to(request) and answers.to(request).model for request in (b"one", b"two", b"three")] == [
            None,
            b"twotwo",
            b"threethree",
        ]

    def test_one_that_is_too_large_is_not_kept(self):
        answers = inference.Answers(most=30)
        answers.keep(b"small", inference._Answer(b""))
        answers.keep(b"large", inference._Answer(bytes(26)))
        assert answers.to(b"large") is None
        assert answers.to(b"small") is not None
        answers.keep(b"next", inference._Answer(b""))
        assert answers.to(b"next") is not None

    def test_a_model_is_inferred_once_for_all_versions(self, monkeypatch):
        monkeypatch.setattr(inference._worker, "answers", inference.Answers())
        models = [FAMILIES[family](SIZE) for family in ("ifs", "loops")]
        asked = []
        infer = inference._worker.infer
        monkeypatch.setattr(inference._worker, "infer", lambda *request: asked.append(request) or infer(*request))
        for model in models * 2:
            inference.Inference().infer_shapes(model)
        assert len(asked) == 2


class TestTheProcess:
    @pytest.mark.parametrize("data_prop", [False, True])
    @pytest.mark.parametrize("family", FAMILIES)
    def test_it_answers_as_the_package_does(self, family, data_prop):
        model = FAMILIES[family](SIZE)
        try:
            expected = onnx.shape_inference.infer_shapes(model, data_prop=data_prop)
        except Exception as error:
            with pytest.raises(inference.InferenceError, match=f"^{re.escape(str(error))}$"):
                inference._worker.infer(bytes([data_prop]) + model.SerializeToString(), 60)
        else:
            answer = inference._worker.infer(bytes([data_prop]) + model.SerializeToString(), 60)
            assert onnx.ModelProto.FromString(answer.model) == expected

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux lists a process's files in /proc")
    def test_it_loads_onnxs_extension_module_alone(self, monkeypatch):
        monkeypatch.setattr(inference._worker, "answers", inference.Answers())
        inference.Inference().infer_shapes(FAMILIES["ifs"](SIZE))
        loaded = Path(f"/proc/{inference._worker._process.pid}/maps").read_text()
        assert "onnx_cpp2py_export" in loaded
        assert "numpy" not in loaded

    def test_without_the_function_it_asks_the_package(self):
        missing = "import _worker\ndef missing(): raise ImportError\n_worker.inference = missing\n_worker.main()"
        folders = [str(Path(inference.__file__).parent), *sys.path]
        model = FAMILIES["ifs"](SIZE)
        request = b"\1" + model.SerializeToString()
        done = subprocess.run(
            [sys.executable, "-P", "-S", "-c", missing, "1e10", "32"],
            input=len(request).to_bytes(8, "little") + request,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
            capture_output=True,
            check=True,
        )
        assert done.stdout[8:9] == b"\1"
        assert onnx.ModelProto.FromString(done.stdout[9:]) == onnx.shape_inference.infer_shapes(model, data_prop=True)
