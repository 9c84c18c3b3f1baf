"""Descriptors of operators other than Split and Join for the tests of their rules, and a table of faulty ones."""

import lzma
from pathlib import Path

import dmlsplit as dml
from dmlsplit.descriptors.any_operator import widened
from dmlsplit.formats import any_operator_json

T = dml.TensorDataType
BASES = Path(__file__).parents[1] / "data" / "operators" / "base.jsonl.xz"


def bases():
    with lzma.open(BASES, "rt", encoding="utf-8") as lines:
        return {widened(desc)[0].name: desc for desc in map(any_operator_json.loads, lines)}


def changed(name, **members):
    """The base of an operator with other members."""
    return dml.AnyOperatorDesc(name, {**widened(bases()[name])[1], **members})


def tensor_of(desc, name):
    return widened(desc)[1][name].desc


def x(*given, data_type=T.FLOAT32, **members):
    sizes = members.pop("sizes", given)
    return dml.BufferTensorDesc(data_type, sizes, **members)


def fused(name, **members):
    return dml.AnyOperatorDesc(name, members, fused=True)


FAULTY = [
    (changed("GEMM", BTensor=x(1, 1, 3, 4, data_type=T.FLOAT16)), {}, "data-type-mismatch", "BTensor.DataType"),
    (changed("GEMM", CTensor=x(2, 4)), {}, "dimension-count-mismatch", "CTensor.DimensionCount"),
    (
        changed("CAST", OutputTensor=x(1, 2, 3, 4, data_type=14)),
        {},
        "data-type-not-supported",
        "OutputTensor.DataType",
    ),
    (
        changed("QUANTIZE", QuantizationTensors=[x(1, 1, 4, 1), x(1, 1, 4, 1)]),
        {},
        "data-type-not-supported",
        "QuantizationTensors[1].DataType",
    ),
    (
        changed("REDUCE", Function="L2", InputTensor=x(1, 2, 3, 4, data_type=T.INT32)),
        {},
        "data-type-not-supported",
        "",
    ),
    (changed("ELEMENT_WISE_ADD", BTensor=x(1, 2, 1, 4)), {}, "sizes-differ", "BTensor.Sizes[2]"),
    (changed("ELEMENT_WISE_ADD", ATensor=None), {}, "tensor-missing", "ATensor"),
    (changed("QUANTIZE"), {"feature_level": "6_2"}, "not-in-target", "Type"),
    (changed("DEPTH_TO_SPACE", BlockSize=2**31), {}, "ends-the-process", "BlockSize"),
    (
        changed("CONVOLUTION", FusedActivation=fused("ACTIVATION_PARAMETERIZED_RELU")),
        {},
        "ends-the-process",
        "FusedActivation.Type",
    ),
    (
        changed("GEMM", FusedActivation=fused("ACTIVATION_PARAMETERIZED_RELU")),
        {"directml": "1.0.200610"},
        "ends-the-process",
        "FusedActivation.Type",
    ),
    (changed("GATHER", IndicesTensor=x(4, 1, 1, 2, data_type=T.UINT32)), {}, "ends-the-process", "IndexDimensions"),
    (
        changed("GATHER", IndicesTensor=x(1, 2, 1, 2, data_type=T.UINT32)),
        {},
        "indices-beyond-dimensions",
        "IndicesTensor.Sizes[1]",
    ),
    (
        changed("SCATTER_ND", IndicesTensor=x(1, 1, 2, 4, data_type=T.UINT32)),
        {},
        "ends-the-process",
        "IndicesTensor.Sizes[3]",
    ),
    (
        changed("GATHER_ND", IndicesTensor=x(1, 1, 2, 4, data_type=T.UINT32)),
        {"feature_level": "2_1"},
        "ends-the-process",
        "IndicesTensor.Sizes[3]",
    ),
    (
        changed(
            "MAX_POOLING_GRAD",
            InputTensor=x(1, 1, 2, 4, 4),
            InputGradientTensor=x(1, 1, 2, 2, 2),
            OutputGradientTensor=x(1, 1, 2, 4, 4),
        ),
        {},
        "ends-the-process",
        "InputTensor.DimensionCount",
    ),
    (
        changed("PADDING", InputTensor=x(1, 2, 3, 4, 1), OutputTensor=x(1, 2, 5, 4, 1)),
        {"directml": "1.7.0"},
        "ends-the-process",
        "DimensionCount",
    ),
    (changed("MULTIHEAD_ATTENTION", HeadCount=0), {}, "ends-the-process", "HeadCount"),
    (changed("QUANTIZE", InputTensor=x(4, 8)), {}, "ends-the-process", "QuantizationTensors[0].DimensionCount"),
    (changed("FOLD", OutputTensor=x(1, 4, 4)), {}, "ends-the-process", "OutputTensor.DimensionCount"),
    (
        changed("CONVOLUTION", FusedActivation=fused("ACTIVATION_SOFTMAX")),
        {},
        "value-not-supported",
        "FusedActivation.Type",
    ),
    (changed("LSTM", Direction=3), {}, "value-unchecked", "Direction"),
    (changed("CONVOLUTION", Direction=7), {}, "value-unknown", "Direction"),
    (changed("AVERAGE_POOLING", OutputTensor=x(1, 2, 2, 3)), {}, "window-size", "OutputTensor.Sizes[3]"),
    (
        changed("GRU", ActivationDescs=[fused("ACTIVATION_SIGMOID"), fused("ACTIVATION_PARAMETERIZED_RELU")]),
        {"directml": "1.0.200610"},
        "ends-the-process",
        "ActivationDescs[1].Type",
    ),
    (changed("REDUCE", Function=100), {"feature_level": "2_1"}, "value-unknown", "Function"),
    (changed("REDUCE", Function=2**32 - 1), {"feature_level": "2_1"}, "value-unchecked", "Function"),
    (
        dml.AnyOperatorDesc.of_tensors("GEMM", [x(1, 1, 2, 3), x(1, 1, 3, 4, data_type=2), None], [x(1, 1, 2, 4)]),
        {},
        "data-type-mismatch",
        "BTensor.DataType",
    ),
    (
        dml.AnyOperatorDesc.of_tensors("REDUCE", [x(1, 1, 2, 3)], [x(1, 1, 2, 1, data_type=T.FLOAT16)]),
        {},
        "data-type-mismatch",
        "OutputTensor.DataType",
    ),
    (changed("UNFOLD", InputTensor=x(1, 4, 4)), {}, "ends-the-process", "InputTensor.DimensionCount"),
]
"""A descriptor, the target, and one of its faults; test_values.py has what is said of each."""
