"""The types of an operator's inputs and outputs, as every supported version of onnx has them."""

from types import SimpleNamespace

import pytest

from dmlsplit.models.schemas import schema_of, types_of

FLOATS = {"tensor(double)", "tensor(float)", "tensor(float16)"}


@pytest.mark.parametrize(
    ("operator", "parameter", "types"),
    [
        ("Elu", schema_of("Elu", 6).inputs[0], FLOATS),
        ("Split", schema_of("Split", 13).inputs[1], {"tensor(int64)"}),  # the lengths, of no type parameter
        ("Shape", SimpleNamespace(type_str="T1"), {"tensor(int64)"}),  # onnx 1.20 raises TypeError for their own types
    ],
)
def test_the_types_of_an_input_or_output(operator, parameter, types):
    assert types_of(schema_of(operator, 13), parameter) == types
