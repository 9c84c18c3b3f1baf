"""The schema of DirectML's operators and the frozen descriptor of any of them."""

import copy
import json
import pickle

import pytest

from dmlsplit import (
    BufferTensorDesc,
    DescriptorError,
    FeatureLevel,
    SplitOperatorDesc,
    TensorDesc,
    dumps,
    loads,
)
from dmlsplit.descriptors.any_operator import AnyOperatorDesc, MemberError
from dmlsplit.descriptors.schema import find_operator, operators

A, B, C = (BufferTensorDesc(1, sizes) for sizes in ((1, 1, 2, 3), (1, 1, 3, 4), (1, 1, 2, 4)))
GEMM = {"ATensor": A, "BTensor": B, "OutputTensor": C, "TransA": "NONE", "TransB": 0, "Alpha": 1, "Beta": 0.5}


def test_the_table():
    rows = operators()
    assert len(rows) == 177
    assert [row.number for row in rows] == sorted({row.number for row in rows})
    gemm = find_operator("DML_OPERATOR_GEMM")
    assert find_operator("GEMM") == find_operator(54) == gemm
    assert (gemm.c_name, gemm.struct, gemm.since) == (
        "DML_OPERATOR_GEMM",
        "DML_GEMM_OPERATOR_DESC",
        FeatureLevel.FL_1_0,
    )
    assert [member.name for member in gemm.members][:4] == ["ATensor", "BTensor", "CTensor", "OutputTensor"]
    assert find_operator("SCATTER") == find_operator("SCATTER_ELEMENTS")
    for row in rows:
        for member in row.members:
            assert not member.count or row.member(member.count).type == "uint"
    with pytest.raises(ValueError, match=r"GEM is not an operator; did you mean GEMM\?"):
        find_operator("GEM")
    with pytest.raises(ValueError, match=r"RELU is not an operator; did you mean ACTIVATION_RELU\?"):
        find_operator("DML_OPERATOR_RELU")
    with pytest.raises(ValueError, match="9999 is not an operator"):
        find_operator(9999)


def test_a_descriptor_is_frozen_and_its_members_stand_in_order():
    desc = AnyOperatorDesc("GEMM", GEMM)
    assert list(desc.members) == [member.name for member in desc.operator.members]
    assert desc.members["ATensor"] == TensorDesc(1, A)
    assert desc.members["CTensor"] is desc.members["FusedActivation"] is None
    assert desc.inputs == (TensorDesc(1, A), TensorDesc(1, B), None)
    with pytest.raises(AttributeError):
        desc.operator = None
    with pytest.raises(TypeError):
        desc.members["Alpha"] = 2
    assert desc == pickle.loads(pickle.dumps(desc)) == copy.deepcopy(desc)
    assert hash(desc) == hash(AnyOperatorDesc(54, GEMM))
    assert desc != AnyOperatorDesc("GEMM", {**GEMM, "Alpha": 2})


def test_it_is_written_and_read_as_a_split_is():
    desc = AnyOperatorDesc("GEMM", GEMM)
    assert loads(dumps(desc)) == desc
    assert list(json.loads(dumps(desc))["Desc"]) == list(desc.members)
    split = SplitOperatorDesc.from_lengths(C, 3, (1, 3))
    assert loads(dumps(split)) == split


def test_counts_are_those_of_the_arrays_unless_they_are_given():
    pooling = {"InputTensor": A, "OutputTensor": A, "Strides": [1, 1], "WindowSize": [1, 1]}
    pooling |= {"StartPadding": [0, 0], "EndPadding": [0, 0]}
    assert AnyOperatorDesc("MAX_POOLING", pooling).members["DimensionCount"] == 2
    assert AnyOperatorDesc("MAX_POOLING", {**pooling, "DimensionCount": 3}).members["DimensionCount"] == 3
    join = AnyOperatorDesc("JOIN", {"InputTensors": [A, B], "OutputTensor": C, "Axis": 0})
    assert join.members["InputCount"] == 2
    assert join.inputs == (TensorDesc(1, A), TensorDesc(1, B))


def test_a_fused_operator_has_no_tensors():
    fused = AnyOperatorDesc("ACTIVATION_LEAKY_RELU", {"Alpha": 0.1}, fused=True)
    assert fused.members["InputTensor"] is None
    assert AnyOperatorDesc("GEMM", {**GEMM, "FusedActivation": fused}).members["FusedActivation"] == fused


@pytest.mark.parametrize(
    ("operator", "members", "path", "said"),
    [
        ("GEMM", {"Atensor": A}, (), "DML_GEMM_OPERATOR_DESC has no Atensor; did you mean ATensor?"),
        ("FILL_VALUE_CONSTANT", {"OutputTensor": A, "Value": 1.5}, ("ValueDataType",), "is missing"),
        (
            "GEMM",
            {"TransA": "TRANSPOSED"},
            ("TransA",),
            "TRANSPOSED is not a DML_MATRIX_TRANSFORM; did you mean TRANSPOSE?",
        ),
        ("GEMM", {"ATensor": 3}, ("ATensor",), "expected a tensor or null, not 3"),
        ("GEMM", {"Alpha": "much"}, ("Alpha",), "expected a number, not 'much'"),
        ("GEMM", {"Alpha": 10**5000}, ("Alpha",), "a number of more than 40 digits is out of the range of the member"),
        ("GEMM", {"Alpha": 1e39}, ("Alpha",), "1e+39 is out of the range of the member"),
        ("GEMM", {"FusedActivation": 44}, ("FusedActivation",), "expected an operator, not 44"),
        ("CAST", {}, ("InputTensor",), "is missing"),
        ("REDUCE", {"Axes": [0, -1]}, ("Axes", 1), "-1 is not in 0..4294967295"),
        ("REDUCE", {"Axes": "0"}, ("Axes",), "expected an array or null, not '0'"),
        ("FILL_VALUE_CONSTANT", {"ValueDataType": "UINT8", "Value": 300}, ("Value",), "300 is not in 0..255"),
        ("ROI_POOLING", {"PooledSize": {"Width": 1}}, ("PooledSize", "Height"), "is missing"),
        ("ELEMENT_WISE_ABS", {"ScaleBias": [1]}, ("ScaleBias",), "expected Scale and Bias, not list"),
    ],
)
def test_what_does_not_fit_the_struct(operator, members, path, said):
    whole = {
        "GEMM": GEMM,
        "REDUCE": {"Function": "SUM", "InputTensor": A, "OutputTensor": A},
        "FILL_VALUE_CONSTANT": {"OutputTensor": A},
        "ROI_POOLING": {"InputTensor": A, "ROITensor": A, "OutputTensor": A, "SpatialScale": 1},
        "ELEMENT_WISE_ABS": {"InputTensor": A, "OutputTensor": A},
    }
    with pytest.raises(DescriptorError) as error:
        AnyOperatorDesc(operator, whole.get(operator, {}) | members)
    assert isinstance(error.value, MemberError)
    assert (error.value.path, error.value.said) == (path, said)
    assert error.value.args == pickle.loads(pickle.dumps(error.value)).args
