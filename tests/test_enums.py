"""Values as DirectML.h has them (FACTS: DML_TARGET_VERSION 0x6400), typed here once more."""

import pytest

import dmlsplit as dml
from dmlsplit.descriptors import enums


def test_values():
    assert {m.name: m.value for m in dml.TensorDataType} == {
        "UNKNOWN": 0, "FLOAT32": 1, "FLOAT16": 2, "UINT32": 3, "UINT16": 4, "UINT8": 5, "INT32": 6, "INT16": 7,
        "INT8": 8, "FLOAT64": 9, "UINT64": 10, "INT64": 11, "UINT4": 12, "INT4": 13,
    }  # fmt: skip
    assert {m.name: m.value for m in dml.TensorType} == {"INVALID": 0, "BUFFER": 1}
    assert (dml.TensorFlags.NONE, dml.TensorFlags.OWNED_BY_DML) == (0, 1)
    assert (dml.OperatorType.INVALID, dml.OperatorType.SPLIT, dml.OperatorType.JOIN) == (0, 62, 63)
    assert dml.OperatorType.JOIN.c_name == "DML_OPERATOR_JOIN"
    assert (enums.TENSOR_DIMENSION_COUNT_MAX, enums.TENSOR_DIMENSION_COUNT_MAX1) == (5, 8)
    assert (dml.HResult.S_OK, dml.HResult.E_INVALIDARG) == (0, 0x80070057)


def test_feature_levels():
    names = ["1_0", "2_0", "2_1", "3_0", "3_1", "4_0", "4_1", "5_0", "5_1", "5_2", "6_0", "6_1", "6_2", "6_3", "6_4"]
    assert [str(level) for level in dml.FeatureLevel] == names
    for level, name in zip(dml.FeatureLevel, names, strict=True):
        major, minor = name.split("_")
        assert level.value == int(major) << 12 | int(minor) << 8


@pytest.mark.parametrize(
    "spelling", ["3_0", "3.0", "FL_3_0", "dml_feature_level_3_0", "DML_FEATURE_LEVEL_3_0", "0x3000", 0x3000]
)
def test_feature_level_spellings(spelling):
    assert dml.FeatureLevel.parse(spelling) is dml.FeatureLevel.FL_3_0
    assert dml.FeatureLevel.parse(dml.FeatureLevel.FL_3_0) is dml.FeatureLevel.FL_3_0


@pytest.mark.parametrize("value", ["7_0", "", "3", 0x3001, -1])
def test_unknown_feature_level_names_the_known_ones(value):
    with pytest.raises(ValueError, match=r"unknown feature level .*1_0, .*6_4"):
        dml.FeatureLevel.parse(value)


def test_feature_level_of_a_wrong_type():
    with pytest.raises(TypeError, match="float"):
        dml.FeatureLevel.parse(3.0)
