"""The documented tables of the two pages, typed a second time, per tensor and kind."""

import pytest

import dmlsplit as dml

T32_16 = "FLOAT32 FLOAT16 INT32 INT16 UINT32 UINT16"
T_8 = T32_16 + " INT8 UINT8"
T_64 = T_8 + " FLOAT64 INT64 UINT64"

# (operator, first level of the table): {tensor: (kind, dimension counts, types)}
PAGES = {
    ("SPLIT", "4_1"): {"InputTensor": ("Input", "1 to 8", T_64), "OutputTensors": ("Array of outputs", "1 to 8", T_64)},
    ("SPLIT", "3_0"): {"InputTensor": ("Input", "1 to 8", T_8), "OutputTensors": ("Array of outputs", "1 to 8", T_8)},
    ("SPLIT", "2_1"): {"InputTensor": ("Input", "4", T_8), "OutputTensors": ("Array of outputs", "4", T_8)},
    ("SPLIT", "1_0"): {"InputTensor": ("Input", "4", T32_16), "OutputTensors": ("Array of outputs", "4", T32_16)},
    ("JOIN", "4_1"): {"InputTensors": ("Array of inputs", "1 to 8", T_64), "OutputTensor": ("Output", "1 to 8", T_64)},
    ("JOIN", "3_0"): {"InputTensors": ("Array of inputs", "4 to 5", T_8), "OutputTensor": ("Output", "4 to 5", T_8)},
    ("JOIN", "2_1"): {"InputTensors": ("Array of inputs", "4", T_8), "OutputTensor": ("Output", "4", T_8)},
    ("JOIN", "1_0"): {"InputTensors": ("Array of inputs", "4", T32_16), "OutputTensor": ("Output", "4", T32_16)},
}
TABLE_OF_LEVEL = {
    "1_0": "1_0", "2_0": "1_0", "2_1": "2_1", "3_0": "3_0", "3_1": "3_0", "4_0": "3_0", "4_1": "4_1", "5_0": "4_1",
    "5_1": "4_1", "5_2": "4_1", "6_0": "4_1", "6_1": "4_1", "6_2": "4_1", "6_3": "4_1", "6_4": "4_1",
}  # fmt: skip


@pytest.mark.parametrize("operator", ["SPLIT", "JOIN"])
@pytest.mark.parametrize("level", [str(level) for level in dml.FeatureLevel])
def test_tensor_support(operator, level):
    rows = dml.tensor_support(dml.OperatorType[operator], level)
    page = PAGES[operator, TABLE_OF_LEVEL[level]]
    assert [row.tensor for row in rows] == list(page)  # inputs first
    for row in rows:
        kind, counts, types = page[row.tensor]
        first, _, last = counts.partition(" to ")
        assert row.kind == kind
        assert row.dimension_counts == tuple(range(int(first), int(last or first) + 1))
        assert {t.name for t in row.data_types} == set(types.split())
        assert f"dml_{operator.lower()}_operator_desc" in row.source
        assert f"DML_FEATURE_LEVEL_{TABLE_OF_LEVEL[level]}" in row.source


@pytest.mark.parametrize("operator", ["SPLIT", "JOIN"])
@pytest.mark.parametrize("level", [str(level) for level in dml.FeatureLevel])
def test_validate_follows_the_tables(operator, level):
    """Every data type x dimension count at every level, and nothing but the table decides."""
    _, counts, types = next(iter(PAGES[operator, TABLE_OF_LEVEL[level]].values()))
    first, _, last = counts.partition(" to ")
    make = dml.SplitOperatorDesc if operator == "SPLIT" else dml.JoinOperatorDesc
    for data_type in dml.TensorDataType:
        for count in range(1, 9):
            sizes = (1,) * (count - 1) + (4,)
            d = make.from_lengths(dml.BufferTensorDesc(data_type, sizes), -1, (1, 3))
            expected = data_type.name in types.split() and int(first) <= count <= int(last or first)
            report = dml.validate(d, feature_level=level)
            assert report.ok is expected, (data_type, count)
            assert report.hresult == (0 if expected else 0x80070057)


def test_unknown_operator():
    with pytest.raises(ValueError, match="is not an operator"):
        dml.tensor_support(dml.OperatorType.INVALID, "3_0")


def test_minimum_and_supported_levels():
    def levels(data_type, sizes):
        d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(data_type, sizes), -1, (1, 1))
        supported = dml.supported_feature_levels(d)
        lowest = dml.minimum_feature_level(d)
        assert lowest == (supported[0] if supported else None)
        assert set(supported) == {level for level in dml.FeatureLevel if lowest is not None and level >= lowest}
        return lowest and str(lowest)

    types = dml.TensorDataType
    assert levels(types.FLOAT32, (1, 1, 1, 2)) == "1_0"
    assert levels(types.UINT8, (1, 1, 1, 2)) == "2_1"
    assert levels(types.FLOAT32, (1, 2)) == "3_0"
    assert levels(types.INT64, (1, 1, 1, 2)) == "4_1"
    assert levels(types.INT4, (1, 1, 1, 2)) is None
    assert levels(types.FLOAT32, (1, 1, 1, 3)) is None
