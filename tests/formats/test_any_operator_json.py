"""Operators other than Split and Join in JSON text that nobody has checked."""

import json

import pytest

import dmlsplit as dml
from dmlsplit.formats import any_operator_json
from dmlsplit.formats.operator_files import read_operators
from tests.any_operators import accepted, any_of

OPERATORS = [any_operator_json.to_json(desc) for desc in accepted() if isinstance(desc, dml.AnyOperatorDesc)]
LONG = "\x1b" + "n" * 10_000


def changed(operator, member, value):
    return json.dumps({**operator, "Desc": {**operator["Desc"], member: value}})


@pytest.mark.parametrize(
    "text",
    [
        changed(OPERATORS[0], LONG, 1),
        json.dumps({"Type": LONG, "Desc": {}}),
        json.dumps({"Type": "GEMM", "Desc": {"TransA": LONG}}),
        json.dumps({"Type": "ELEMENT_WISE_IDENTITY", "Desc": {"ScaleBias": {"Scale": 1, "Bias": 0, LONG: 1}}}),
    ],
    ids=["member", "operator", "enum", "pair"],
)
def test_names_in_messages_are_short_and_printable(text):
    with pytest.raises(dml.InputError) as error:
        any_operator_json.loads(text)
    assert error.value.message.isprintable()
    assert "nnn" in error.value.message
    assert len(error.value.message) < 400


def test_a_total_of_0_in_a_model_is_noted_of_every_tensor_of_every_operator():
    """DxDispatch computes it, whatever the member's name."""
    for operator, desc in zip(
        OPERATORS, filter(lambda each: isinstance(each, dml.AnyOperatorDesc), accepted()), strict=True
    ):
        for name, value in operator["Desc"].items():
            if not (isinstance(value, dict) and value.get("Type") == "BUFFER"):
                continue
            total = value["Desc"]["TotalTensorSizeInBytes"]
            zero = {**value, "Desc": {**value["Desc"], "TotalTensorSizeInBytes": 0}}
            model = {"dispatchables": {"InputTensor": json.loads(changed(operator, name, zero))}}
            (entry,) = read_operators(json.dumps(model).encode(), kind="json")
            assert entry.other == any_of(desc)
            assert [(note.path, note.rule, note.expected) for note in entry.notes] == [
                (f"{name}.TotalTensorSizeInBytes", "input/total-size-computed", total)
            ]


@pytest.mark.parametrize("text", [None, 3, {}])
def test_what_is_no_text_is_refused_by_its_type(text):
    with pytest.raises(TypeError, match=f"JSON text is a string or bytes, not {type(text).__name__}"):
        dml.loads(text)
