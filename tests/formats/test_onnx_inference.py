"""Models that onnx would infer slowly are inferred in parts, and nothing else comes of it."""

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
    monkeypatch.setattr(inference._worker, "last", None)
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
