"""Makes Constant and Cast nodes for each opset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dmlsplit.formats.onnx.protobuf import Names
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.mending.words import CannotMend

_OF_ANY_TYPE: Final = 9
"""The first opset whose Constant takes any element type; before, only floats."""
_FLOATS: Final = frozenset({"FLOAT", "FLOAT16", "DOUBLE"})
"""The element types of a Constant of any opset."""
_CASTS_ARE_INFERRED: Final = 6
"""The first opset whose Casts onnx infers types through."""


def constant_nodes(name: str, values: Array, opset: int, taken: Names) -> list[onnx.NodeProto]:
    """Returns the nodes that make a constant tensor of integers at an opset; the last one writes `name`. Adds to
    `taken` the names of the others. Raises CannotMend if the opset has no such constant."""
    if opset >= _OF_ANY_TYPE:
        return [_constant(name, values)]
    floats = taken.fresh(f"{name}/double")
    data_type = helper.np_dtype_to_tensor_dtype(values.dtype)
    return [_constant(floats, values.astype(np.float64)), cast_node(floats, name, data_type, opset)]


_NOT_CAST: Final = frozenset({"COMPLEX64", "COMPLEX128"})
"""Types that no Cast produces."""


def empty_nodes(name: str, data_type: str, sizes: Sequence[int], opset: int, taken: Names) -> list[onnx.NodeProto]:
    """Returns the nodes that make a constant of these sizes without elements at an opset; the last one writes `name`.
    Adds to `taken` the names of the others. Raises CannotMend if the opset has no such constant."""
    kind = onnx.TensorProto.DataType.Value(data_type)
    if opset >= _OF_ANY_TYPE or data_type in _FLOATS:
        value = helper.make_tensor(name, kind, sizes, [])
        return [helper.make_node("Constant", [], [name], name=name, value=value)]
    if data_type in _NOT_CAST:
        raise CannotMend(f"it needs a constant of {data_type}, which opset {opset} does not have")
    floats = taken.fresh(f"{name}/float")
    return [*empty_nodes(floats, "FLOAT", sizes, opset, taken), cast_node(floats, name, kind, opset)]


def _constant(name: str, values: Array) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(values, name))


def cast_node(read: str, output: str, data_type: int, opset: int) -> onnx.NodeProto:
    """Returns a Cast node, named after its output; `data_type` is a TensorProto.DataType. Raises CannotMend for an
    opset through whose Casts onnx infers no types."""
    if opset < _CASTS_ARE_INFERRED:
        raise CannotMend(f"it needs a Cast, and onnx does not infer types through a Cast of opset {opset}")
    return helper.make_node("Cast", [read], [output], name=output, to=data_type)
