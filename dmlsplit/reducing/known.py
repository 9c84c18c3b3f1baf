"""What a scope knows about a value, as messages of a model; and removal of what a model does not need."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dmlsplit.formats.onnx.protobuf import reads, refill
from dmlsplit.models.scope import Scope


def declaration(scope: Scope, name: str) -> onnx.ValueInfoProto:
    """Returns the declaration of a value, with its type and shape as far as they are known."""
    element, shape = scope.type_of(name)
    if element in onnx.TensorProto.DataType.keys():  # noqa: SIM118 - it is no mapping
        return helper.make_tensor_value_info(name, onnx.TensorProto.DataType.Value(element), shape)
    made = helper.make_empty_tensor_value_info(name)
    found = scope.inferred_type(name)
    if found is not None:
        made.type.CopyFrom(found)
    return made


def is_typed(scope: Scope, name: str) -> bool:
    """True if the type of a value is known, even if its sizes are not."""
    kind = declaration(scope, name).type
    return kind.WhichOneof("value") is not None and not (
        kind.HasField("tensor_type") and kind.tensor_type.elem_type == onnx.TensorProto.UNDEFINED
    )


def remove_unread(model: onnx.ModelProto) -> None:
    """Removes, in place, the inputs and initializers of the main graph that nothing reads."""
    graph = model.graph
    used = {name for node in graph.node for name in reads(node)} | {value.name for value in graph.output}
    refill(graph.input, [each for each in graph.input if each.name in used])
    refill(graph.initializer, [each for each in graph.initializer if each.name in used])


def known_constant(scope: Scope, name: str) -> onnx.TensorProto | None:
    """Returns the elements of a value as a tensor, if they are the same for all inputs of the model; None if they are
    not known."""
    array = scope.elements(name)
    if array is None or array.dtype.kind not in "biuf":
        return None
    tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
    element, shape = scope.type_of(name)
    if element is not None and onnx.TensorProto.DataType.Name(tensor.data_type) != element:
        return None
    return tensor if shape is None or tuple(tensor.dims) == shape else None
