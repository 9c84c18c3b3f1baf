"""Constants and Casts as the opsets have them."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dmlsplit.formats.onnx.protobuf import Names
from dmlsplit.formats.onnx.tensors import Array

_OF_ANY_TYPE: Final = 9
"""The first opset whose Constant is: before, it is of floats."""
_TYPE_IS_NUMBER: Final = 6
"""The first opset whose Cast has its type as a number: before, it is a word."""


def constant_nodes(name: str, values: Array, opset: int, taken: Names) -> list[onnx.NodeProto]:
    """The nodes that make a constant of integers, which the last of them gives."""
    if opset >= _OF_ANY_TYPE:
        return [_constant(name, values)]
    floats = taken.fresh(f"{name}/double")
    data_type = helper.np_dtype_to_tensor_dtype(values.dtype)
    return [_constant(floats, values.astype(np.float64)), cast_node(floats, name, data_type, opset)]


def _constant(name: str, values: Array) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(values, name))


def cast_node(read: str, output: str, data_type: int, opset: int) -> onnx.NodeProto:
    """A Cast, named after its output."""
    to: int | str = data_type if opset >= _TYPE_IS_NUMBER else TensorProto.DataType.Name(data_type)
    return helper.make_node("Cast", [read], [output], name=output, to=to)
