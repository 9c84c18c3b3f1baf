"""Models of legalised operators: what they print at every level is what the operators print as they are."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.formats.dxdispatch import read
from dmlsplit.formats.dxdispatch.write import new_model, rewritten_model
from dmlsplit.formats.jsontext import JsonText
from dmlsplit.system.errors import InputError
from tests.formats.models import dispatch, printed, split, values
from tests.strategies import valid_operator

T = dml.TensorDataType


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def shown(folder, model):
    path = folder / "model.json"
    path.write_text(json.dumps(model))
    text, result = printed(read(path))
    assert result.exit_status == 0
    return text


@settings(max_examples=100)
@given(valid_operator(), st.sampled_from(["1_0", "2_1", "3_0"]))
def test_a_rewriting_prints_the_same(folder, d, level):
    found = dml.legalize(d, feature_level=level)
    if found.ok:
        as_it_is = dml.legalize(d, feature_level="6_4")
        assert shown(folder, new_model([("s", found)])) == shown(folder, new_model([("s", as_it_is)]))


def test_many_operators_in_one_model(folder):
    x = dml.BufferTensorDesc(T.INT64, (1, 1, 1, 4))
    found = dml.legalize(dml.SplitOperatorDesc.from_lengths(x, 3, (1, 0, 3)), feature_level="3_0")
    model = new_model([(None, found), ("operator", found), ("mine", found)])
    assert sorted(model["dispatchables"]) == ["mine", "operator", "operator 2"]
    expected = "Resource '{0} output 0': 1\nResource '{0} output 2': 2, 3, 4\n"
    assert shown(folder, model) == "".join(map(expected.format, ["operator", "operator 2", "mine"]))


def test_offsets_and_a_temporary_buffer(folder):
    strides = (3000, 901, 251, 70, 20, 3)
    x = dml.BufferTensorDesc(T.INT32, (2, 3, 2, 3, 2, 3), strides=strides)
    parts = [dml.BufferTensorDesc(T.INT32, (2, 3, 2, 3, 2, n)) for n in (1, 2)]
    found = dml.legalize(dml.SplitOperatorDesc(x, parts, 5), feature_level="2_1")
    assert found.temporary_bytes > 0
    text = shown(folder, new_model([("s", found)]))
    first, second = ([int(n) for n in line.split(": ")[1].split(", ")] for line in text.splitlines())
    offsets = [
        1 + sum(i * s for i, s in zip(index, strides[:5], strict=True))
        for index in [
            (a, b, c, e, f) for a in range(2) for b in range(3) for c in range(2) for e in range(3) for f in range(2)
        ]
    ]
    assert first == offsets
    assert second == [offset + n for offset in offsets for n in (3, 6)]


def test_a_binding_at_an_offset_stays_there(folder):
    """`s` is rank 1, so that level 2_1 needs a rewriting; its input begins at the fourth element."""
    model = {
        "resources": {"X": values(12), "Y": values(2, 90), "Z": values(2, 90), "W": values(9, 70)},
        "dispatchables": {"s": split(2, 2)},
        "commands": [
            dispatch(inputs={"name": "X", "elementOffset": 4}),
            dispatch(inputs={"name": "X", "elementOffset": 16, "elementSizeInBytes": 2}, outputs=["W", "Z"]),
            *({"type": "print", "resource": name} for name in "YZW"),
        ],
    }
    d = dml.loads(json.dumps(model["dispatchables"]["s"]))
    found = dml.legalize(d, feature_level="2_1")
    assert found.operators != (d,)
    lower = rewritten_model(JsonText(json.dumps(model)), {"s": found})
    assert shown(folder, lower) == shown(folder, model)
    unsaid = {**model, "resources": {**model["resources"], "X": {"initialValues": [{"type": "FLOAT32", "value": 1}]}}}
    with pytest.raises(InputError, match="elementSizeInBytes"):
        rewritten_model(JsonText(json.dumps(unsaid)), {"s": found})


def test_an_operator_without_elements_is_left_out(folder):
    text = json.dumps({"resources": {}, "dispatchables": {"s": split(0, 0)}, "commands": []})
    found = dml.legalize(dml.loads(json.dumps(split(0, 0))), feature_level="6_4")
    assert rewritten_model(JsonText(text), {"s": found}) == {"resources": {}, "dispatchables": {}, "commands": []}
    assert new_model([("s", found)])["commands"] == []


@pytest.mark.parametrize("dispatchable", [[2], {}, None, 7])
def test_a_dispatch_of_what_is_no_name(dispatchable):
    command = {"type": "Dispatch", "dispatchable": dispatchable}
    text = json.dumps({"resources": {}, "dispatchables": {}, "commands": [command]})
    with pytest.raises(dml.InputError, match="dispatchable: expected a string") as info:
        rewritten_model(JsonText(text), {})
    assert info.value.column == text.index('"dispatchable": ') + len('"dispatchable": ') + 1
