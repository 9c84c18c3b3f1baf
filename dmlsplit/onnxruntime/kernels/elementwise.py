"""Kernels that compute each element from the elements at the same position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.onnxruntime.kernels.facts import ACTIVATIONS, KernelFacts, NotDescribedError, padded
from dmlsplit.onnxruntime.operator_traits import FUSED_ADD

ELEMENTWISE: Final = {
    "Abs": "ABS",
    "Acos": "ACOS",
    "Acosh": "ACOSH",
    "Asin": "ASIN",
    "Asinh": "ASINH",
    "Atan": "ATAN",
    "Atanh": "ATANH",
    "Ceil": "CEIL",
    "Cos": "COS",
    "Cosh": "COSH",
    "Erf": "ERF",
    "Exp": "EXP",
    "Floor": "FLOOR",
    "Log": "LOG",
    "Neg": "NEGATE",
    "Not": "LOGICAL_NOT",
    "Reciprocal": "RECIP",
    "Sign": "SIGN",
    "Sin": "SIN",
    "Sinh": "SINH",
    "Sqrt": "SQRT",
    "Tan": "TAN",
}

BINARY: Final = {
    "Add": "ADD",
    "Sub": "SUBTRACT",
    "Mul": "MULTIPLY",
    "Div": "DIVIDE",
    "Max": "MAX",
    "Min": "MIN",
    "Sum": "ADD",
    "Mean": "MEAN",
    "And": "LOGICAL_AND",
    "Or": "LOGICAL_OR",
    "Xor": "LOGICAL_XOR",
    "Equal": "LOGICAL_EQUALS",
    "Greater": "LOGICAL_GREATER_THAN",
    "GreaterOrEqual": "LOGICAL_GREATER_THAN_OR_EQUAL",
    "Less": "LOGICAL_LESS_THAN",
    "LessOrEqual": "LOGICAL_LESS_THAN_OR_EQUAL",
}


def with_activation(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    name, parameters = ACTIVATIONS[f.node.op_type]
    members = {member: f.number(word, default) for member, (word, default) in parameters.items()}
    return [AnyOperatorDesc(name, {"InputTensor": f.input(0), "OutputTensor": f.output, **members})]


def elementwise(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    name = f"ELEMENT_WISE_{ELEMENTWISE[f.node.op_type]}"
    return [AnyOperatorDesc(name, {"InputTensor": f.input(0), "OutputTensor": f.output})]


def cast(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    return [AnyOperatorDesc("CAST", {"InputTensor": f.input(0), "OutputTensor": f.output})]


def binary(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    if len(f.node.inputs) != 2:
        raise NotDescribedError("it does not have two inputs")
    whole = f.shape(f.node.outputs[0])
    members: dict[str, object] = {
        "ATensor": f.broadcast(0, whole),
        "BTensor": f.broadcast(1, whole),
        "OutputTensor": f.output,
    }
    if f.node.op_type != FUSED_ADD:
        return [AnyOperatorDesc(f"ELEMENT_WISE_{BINARY[f.node.op_type]}", members)]
    return [AnyOperatorDesc("ELEMENT_WISE_ADD1", {**members, "FusedActivation": f.activation})]


def quick_gelu(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    """Returns the two operators of x * Sigmoid(alpha * x), and a third one that scales if alpha is not 1."""
    x, alpha = f.input(0), f.number("alpha", 1.0)
    sigmoid = AnyOperatorDesc("ACTIVATION_SIGMOID", {"InputTensor": x, "OutputTensor": x})
    product = AnyOperatorDesc("ELEMENT_WISE_MULTIPLY", {"ATensor": x, "BTensor": x, "OutputTensor": x})
    scale = {"InputTensor": x, "OutputTensor": x, "ScaleBias": {"Scale": alpha, "Bias": 0.0}}
    return [sigmoid, product, *([] if alpha == 1 else [AnyOperatorDesc("ELEMENT_WISE_IDENTITY", scale)])]


def gelu(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    """Returns a GELU; if the node has a second input, the sum with this vector with a fused GELU."""
    if f.value(1) is None:
        return [AnyOperatorDesc("ACTIVATION_GELU", {"InputTensor": f.input(0), "OutputTensor": f.output})]
    whole = f.shape(f.value(0))
    members = {
        "ATensor": f.broadcast(0, whole),
        "BTensor": f.broadcast(1, whole),
        "OutputTensor": f.output,
        "FusedActivation": AnyOperatorDesc("ACTIVATION_GELU", {}, fused=True),
    }
    return [AnyOperatorDesc("ELEMENT_WISE_ADD1", members)]


def pow_(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.node.outputs[0])
    exponent = f.value(1)
    if exponent is not None and f.graph.is_initializer(exponent.known) and math.prod(f.shape(exponent)) == 1:
        found = f.scalar(1)
        members = {"InputTensor": f.input(0), "OutputTensor": f.output, "Exponent": found}
        return [AnyOperatorDesc("ELEMENT_WISE_CONSTANT_POW", members)]
    members = {
        "InputTensor": f.broadcast(0, whole),
        "ExponentTensor": f.broadcast(1, whole),
        "OutputTensor": f.output,
    }
    return [AnyOperatorDesc("ELEMENT_WISE_POW", members)]


def where(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.node.outputs[0])
    names = ("ConditionTensor", "ATensor", "BTensor")
    members = {name: f.broadcast(i, whole) for i, name in enumerate(names)}
    return [AnyOperatorDesc("ELEMENT_WISE_IF", {**members, "OutputTensor": f.output})]


def clip(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    data_type = f.data_type(f.value(0))
    if data_type not in (TensorDataType.FLOAT32, TensorDataType.FLOAT16):
        raise NotDescribedError("limits of this element type are not derived")
    most = 3.4028234663852886e38
    if f.opset < 11:
        low, high = f.number("min", -most), f.number("max", most)
    else:
        low, high = (f.scalar(i) for i in (1, 2))
        low, high = -most if low is None else low, most if high is None else high
    members = {"InputTensor": f.input(0), "OutputTensor": f.output, "Min": low, "Max": high}
    if f.opset < 11:
        return [AnyOperatorDesc("ELEMENT_WISE_CLIP", members)]
    return [AnyOperatorDesc("ELEMENT_WISE_CLIP1", {**members, "MinMaxDataType": data_type})]


def prelu(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    slope = f.broadcast(1, padded(f.shape(f.value(0))))
    members = {"InputTensor": f.input(0), "SlopeTensor": slope, "OutputTensor": f.output}
    return [AnyOperatorDesc("ACTIVATION_PARAMETERIZED_RELU", members)]


def round_(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    members = {"InputTensor": f.input(0), "OutputTensor": f.output, "RoundingMode": "HALVES_TO_NEAREST_EVEN"}
    return [AnyOperatorDesc("ELEMENT_WISE_ROUND", members)]
