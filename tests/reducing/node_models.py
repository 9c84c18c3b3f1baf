"""ONNX models of one Split or Concat, made of the facts that a rule's examples state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from dmlsplit.rules.onnx.concat_facts import OnnxConcat
from dmlsplit.rules.onnx.split_facts import OnnxSplit
from tests import models


def model_of(facts: OnnxSplit | OnnxConcat) -> onnx.ModelProto:
    """A model of the node: its inputs are the model's, its named outputs too."""
    node, inputs, initializers = _split(facts) if isinstance(facts, OnnxSplit) else _concat(facts)
    for name in facts.other_attributes:
        node.attribute.append(helper.make_attribute(name, 2))
    for name in facts.mistyped_attributes:
        node.attribute.append(helper.make_attribute(name, 1.0))
    types, shapes = _declared(facts)
    outputs = [
        models.value(name, shape, element)
        for name, element, shape in zip(dict.fromkeys(filter(None, node.output)), types, shapes, strict=False)
    ]
    opset = facts.opset or facts.version
    return models.model([node], inputs, outputs, opset, initializers, ir_version=models.ir_version(min(opset or 1, 23)))


def _split(facts: OnnxSplit) -> tuple[onnx.NodeProto, list[onnx.ValueInfoProto], list[onnx.TensorProto]]:
    outputs = ["" if i in facts.omitted else f"a{i}" for i in range(facts.outputs)]
    for i in facts.repeated:
        outputs[i] = outputs[i - 1]
    names = ["x" if facts.data_input else "", "l" if facts.split_input else ""][: facts.inputs]
    given = {"axis": facts.axis, "num_outputs": facts.num_outputs, "split": facts.split}
    node = helper.make_node("Split", names, outputs, **{k: v for k, v in given.items() if v is not None})
    inputs = [models.value("x", facts.input_shape, _element(facts.data_type))] if facts.data_input else []
    return node, inputs, [_lengths(facts)] if facts.split_input else []


def _lengths(facts: OnnxSplit) -> onnx.TensorProto:
    """The initializer of the lengths; of two dimensions and one element where it is malformed."""
    tensor = TensorProto(name="l", data_type=_element(facts.split_type), dims=facts.split_shape)
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    tensor.raw_data = np.array((1,) if facts.split_malformed else facts.split_values, kind).tobytes()
    return tensor


def _concat(facts: OnnxConcat) -> tuple[onnx.NodeProto, list[onnx.ValueInfoProto], list[onnx.TensorProto]]:
    names = ["" if i in facts.omitted else f"x{i}" for i in range(len(facts.shapes))]
    outputs = [f"a{i}" for i in range(facts.outputs)]
    node = helper.make_node("Concat", names, outputs, **({} if facts.axis is None else {"axis": facts.axis}))
    types = facts.data_types or (None,) * len(names)
    shaped = zip(names, facts.shapes, types, strict=True)
    return node, [models.value(name, shape, _element(kind)) for name, shape, kind in shaped if name], []


def _declared(facts: OnnxSplit | OnnxConcat) -> tuple[Sequence[int], Sequence[models.Shape | None]]:
    """The element types and the shapes of the outputs; the input's type, and none, where nothing is declared."""
    if isinstance(facts, OnnxSplit):
        types, shapes, own, count = facts.declared_types, facts.declared_shapes, facts.data_type, facts.outputs
    else:
        types, shapes = (facts.declared_type,) * facts.outputs, (facts.declared_shape,) * facts.outputs
        own, count = next(iter(facts.data_types), None), facts.outputs
    types, shapes = types or (None,) * count, shapes or (None,) * count
    return [_element(each or own) for each in types], shapes


def _element(name: str | None) -> int:
    return TensorProto.DataType.Value(name or "FLOAT")
