"""One operator in JSON: round trip, spellings, defaults, faults with their place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.json import OtherOperatorError, dumps, loads, read_operator
from dmlsplit.formats.jsontext import JsonText
from dmlsplit.system.errors import InputError
from tests.strategies import any_operator, valid_operator

F32 = dml.TensorDataType.FLOAT32
DOCUMENTED = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(F32, (1, 1, 6, 2)), 2, (2, 1, 3))
SHORT = {"DataType": "FLOAT32", "Sizes": [4]}


def split(input_tensor=SHORT, **members):
    desc = {"InputTensor": input_tensor, "OutputCount": 1, "OutputTensors": [SHORT], "Axis": 0, **members}
    return {"Type": "DML_OPERATOR_SPLIT", "Desc": desc}


def read_input(tensor):
    return loads(json.dumps(split(tensor))).input_tensor


@given(any_operator() | valid_operator(), st.sampled_from([None, 2]))
def test_round_trip(desc, indent):
    assert loads(dumps(desc, indent)) == desc


def test_shape_of_the_text():
    value = json.loads(dumps(DOCUMENTED))
    assert value["Type"] == "DML_OPERATOR_SPLIT"
    assert list(value["Desc"]) == ["InputTensor", "OutputCount", "OutputTensors", "Axis"]
    assert value["Desc"]["InputTensor"] == {
        "Type": "BUFFER",
        "Desc": {
            "DataType": "FLOAT32",
            "Flags": "NONE",
            "DimensionCount": 4,
            "Sizes": [1, 1, 6, 2],
            "Strides": None,
            "TotalTensorSizeInBytes": 48,
            "GuaranteedBaseOffsetAlignment": 0,
        },
    }


def test_a_count_that_is_left_out_is_the_length_of_its_array():
    counted = split(OutputTensors=[SHORT, SHORT])
    del counted["Desc"]["OutputCount"]
    assert loads(json.dumps(counted)).output_count == 2
    counted["Desc"]["OutputTensors"] = None
    assert loads(json.dumps(counted)).output_count == 0
    with pytest.raises(InputError, match="Field 'OutputCount' is required"):
        read_operator(JsonText(json.dumps(counted)), whole_model=True)


def test_unknown_total_is_left_out():
    huge = dml.BufferTensorDesc(F32, (2**32 - 1,) * 3)
    assert huge.total_tensor_size_in_bytes is None
    desc = dml.SplitOperatorDesc(huge, [huge], 0)
    assert "TotalTensorSizeInBytes" not in dumps(desc)
    assert loads(dumps(desc)) == desc


SPLIT = json.loads(dumps(DOCUMENTED))["Desc"]


@pytest.mark.parametrize(
    "value",
    [
        {"Type": "DML_OPERATOR_SPLIT", "Desc": SPLIT},
        {"type": "DML_OPERATOR_SPLIT", "desc": SPLIT},
        {"Type": "SPLIT", "desc": SPLIT},
        {"type": 62, **SPLIT},
        {"Type": "SPLIT", "Desc": {**SPLIT, "InputTensor": SPLIT["InputTensor"]["Desc"]}},
    ],
    ids=["upper", "lower", "without-prefix", "inline-and-number", "short-tensor"],
)
def test_spellings(value):
    assert loads(json.dumps(value)) == DOCUMENTED


def test_join():
    whole = dml.BufferTensorDesc(F32, (10,))
    desc = dml.JoinOperatorDesc.from_lengths(whole, 0, (3, 2, 5))
    value = json.loads(dumps(desc))
    assert value["Type"] == "DML_OPERATOR_JOIN"
    assert list(value["Desc"]) == ["InputCount", "InputTensors", "OutputTensor", "Axis"]
    assert loads(json.dumps({"type": "JOIN", **value["Desc"]})) == desc


def test_defaults():
    tensor = read_input(SHORT)
    assert tensor == dml.TensorDesc(dml.TensorType.BUFFER, dml.BufferTensorDesc(F32, (4,)))
    assert tensor.total_tensor_size_in_bytes == 16


@pytest.mark.parametrize(
    ("members", "attribute", "value"),
    [
        ({"TotalTensorSizeInBytes": 0}, "total_tensor_size_in_bytes", 0),
        ({"DimensionCount": 4294967295}, "dimension_count", 4294967295),
        ({"Strides": []}, "strides", ()),
        ({"Strides": None}, "strides", None),
        ({"Sizes": None}, "sizes", None),
        ({"DataType": 99}, "data_type", 99),
        ({"DataType": "DML_TENSOR_DATA_TYPE_INT4"}, "data_type", dml.TensorDataType.INT4),
        ({"Type": 7}, "type", 7),
        ({"Type": "INVALID"}, "type", dml.TensorType.INVALID),
        ({"Flags": "DML_TENSOR_FLAG_OWNED_BY_DML"}, "flags", 1),
        ({"Flags": ["OWNED_BY_DML", "NONE"]}, "flags", 1),
        ({"Flags": []}, "flags", 0),
        ({"Flags": 6}, "flags", 6),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_given_is_taken_as_given(members, attribute, value):
    assert getattr(read_input({**SHORT, **members}), attribute) == value


def test_null_pointers():
    desc = loads(json.dumps(split(None, OutputTensors=None)))
    assert desc == dml.SplitOperatorDesc(None, None, 0, 1)
    assert loads(json.dumps(split({"Type": "BUFFER", "Desc": None}))).input_tensor == dml.TensorDesc(1, None)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ('{"Desc": {}}', 1, "Field 'Type' is required."),
        ('{"Type": "SPLIT", "Desc": {}}', 27, "Field 'InputTensor' is required."),
        ('{"Type": "SPLIT", "InputTensor": {"Sizes": []}}', 34, "Field 'DataType' is required."),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": 1}}', 34, "Field 'Sizes' is required."),
        ('{"Type": "SPLIT", "Desc": null}', 27, "expected an object, not null"),
        ('{"Type": "SPILT"}', 10, "did you mean DML_OPERATOR_SPLIT?"),
        ('{"Type": true}', 10, "expected the name of an operator, not true"),
        ('{"Type": ["SPLIT"]}', 10, "expected the name of an operator, not an array"),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": "FLAOT32"}}', 47, "mean DML_TENSOR_DATA_TYPE_FLOAT32?"),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": 1.0}}', 47, "or its number, not 1.0"),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": 1, "Sizes": [1, -1]}}', 63, "Sizes[1]: expected an unsigned"),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": 1, "Sizes": [4294967296]}}', 60, "up to 4294967295"),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": 1, "Sizes": [1.5]}}', 60, "not 1.5"),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": 1, "Sizes": [true]}}', 60, "not true"),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": 1, "Sizes": "x"}}', 59, "expected an array of unsigned"),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": 1, "Sizes": [1], "Flags": {}}}', 73, "not an object"),
        ('{"Type": "SPLIT", "InputTensor": {"DataType": 1, "Sizes": [1], "Flags": ["OWNED"]}}', 74, "'OWNED'"),
        ('{"Type": "SPLIT", "InputTensor": null, "OutputTensors": {}}', 57, "expected an array of tensors"),
        ('{"Type": "SPLIT", "InputTensor": null, "OutputTensors": [4]}', 58, "expected an object, not 4"),
        ('{"Type": "SPLIT", "InputTensor": null, "OutputTensors": [], "Axis": null}', 69, "Axis: expected an unsigned"),
        ("[]", 1, "expected an object, not an array"),
        ('"\\u001b[31m"', 1, "'\\x1b[31m'"),
    ],
)
def test_faults(text, column, message):
    with pytest.raises(InputError) as caught:
        loads(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, column)


def test_total_size_is_64_bit():
    assert read_input({**SHORT, "TotalTensorSizeInBytes": 2**64 - 1}).total_tensor_size_in_bytes == 2**64 - 1
    with pytest.raises(InputError, match="TotalTensorSizeInBytes: expected an unsigned integer up to 1844674"):
        read_input({**SHORT, "TotalTensorSizeInBytes": 2**64})


def test_other_operator():
    with pytest.raises(OtherOperatorError, match="neither DML_OPERATOR_SPLIT nor DML_OPERATOR_JOIN") as caught:
        loads('{"Type": "DML_OPERATOR_GEMM"}')
    assert caught.value.type_name == "DML_OPERATOR_GEMM"


@pytest.mark.parametrize(
    ("steps", "position"),
    [
        ((), (1, 1)),
        (("Axis",), (10, 9)),
        (("InputTensor",), (4, 16)),
        (("InputTensor", "Type"), (4, 25)),
        (("InputTensor", "Sizes"), (5, 45)),
        (("InputTensor", "Sizes", 2), (5, 52)),
        (("InputTensor", "Strides"), (5, 12)),
        (("OutputTensors",), (7, 18)),
        (("OutputTensors", 1, "DataType"), (8, 20)),
        (("OutputTensors", 1, "Desc"), (8, 6)),
        (("OutputTensors", 5, "Sizes"), (7, 18)),
        (("OutputCount",), (2, 10)),
    ],
)
@pytest.mark.parametrize("type_key", ["Type", "type"])
def test_locate(steps, position, type_key):
    text = (
        f'{{"{type_key}": "SPLIT",\n'
        + ' "desc": {\n'
        + "\n"
        + '"InputTensor": {"Type": "BUFFER",\n'
        + '   "Desc": {"DataType": "FLOAT32", "Sizes": [1, 1, 6, 2]}},\n'
        + '"OutputCount" : 2,\n'
        + '"OutputTensors": [{"DataType": 1, "Sizes": [1]},\n'
        + '     {"DataType" : 1, "Sizes": [1]}],\n'
        + "\n"
        + '"Axis": 2}}'
    )
    if steps == ("OutputCount",):
        position = (6, 17)
    assert read_operator(JsonText(text)).locate(Location(steps)) == position


def test_every_path_of_a_report_has_a_place():
    desc = dml.SplitOperatorDesc(
        dml.BufferTensorDesc(0, (2, 0), dimension_count=3), [None, dml.TensorDesc(1, None)], 9, output_count=5
    )
    for indent in (None, 2):
        parsed = read_operator(JsonText(dumps(desc, indent)))
        report = dml.validate(parsed.descriptor).located(parsed.locate)
        assert report.diagnostics
        assert all(diagnostic.line and diagnostic.column for diagnostic in report.diagnostics)


def test_total_of_0_in_a_model():
    zero = {**SHORT, "TotalTensorSizeInBytes": 0, "Strides": []}
    value = split(zero, OutputTensors=[SHORT, {"Desc": zero}])
    parsed = read_operator(JsonText(json.dumps(value)), whole_model=True)
    assert parsed.descriptor.input_tensor.total_tensor_size_in_bytes == 16
    assert parsed.descriptor.input_tensor.strides is None
    assert [(note.path, note.expected, note.actual) for note in parsed.notes] == [
        ("InputTensor.TotalTensorSizeInBytes", 16, 0),
        ("OutputTensors[1].TotalTensorSizeInBytes", 16, 0),
    ]
    assert all(note.rule == "input/total-size-computed" for note in parsed.notes)
    assert [(note.line, note.column) for note in parsed.notes] == [
        parsed.locate(note.location) for note in parsed.notes
    ]


def test_what_is_no_descriptor_is_not_written():
    with pytest.raises(TypeError, match="int is not a SplitOperatorDesc or JoinOperatorDesc"):
        dumps(3)
