"""The operators that replace an operator without a kernel: the body of its function in ONNX.

Source: graph_partitioner.cc (InlineNodes) of ONNX Runtime, and onnx's schemas; observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import onnx
from onnx import helper

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.onnx.protobuf import domain_of, has_graphs, refill
from dmlsplit.formats.onnx.tensors import type_name
from dmlsplit.models.inference import Inference, InferenceError
from dmlsplit.models.schemas import body_version, schema_of

_TYPES: Final[dict[str, int]] = {name.lower(): number for name, number in onnx.TensorProto.DataType.items()}

_CHANGED: Final = frozenset({"Attention"})
"""Operators whose body in the installed onnx differs from the one in versions of ONNX Runtime."""


class Body(NamedTuple):
    """The nodes of a function's body, and by name the element types of its tensors, in ONNX's lower-case words, and the
    shapes of those whose rank is known."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    nodes: Sequence[onnx.NodeProto]
    types: dict[str, str]
    shapes: dict[str, Shape]


def body_of(
    node: onnx.NodeProto,
    types: Sequence[str | None],
    opset: int,
    inference: Inference,
    shapes: Sequence[Shape | None] = (),
) -> Body | None:
    """Returns the function body that defines, in onnx, a node of the default domain, for inputs of these element types
    ("" for a missing one) and of these shapes, if given. None if it has no body, if the body or a type is not known, or
    if a node in it has a graph."""
    schema, kinds = _schema_of(node, opset), _kinds(types)
    found = None if schema is None or kinds is None else _function(schema, node, kinds, body_version(schema, opset))
    if found is None or kinds is None or any(map(has_graphs, found.node)):
        return None
    given = {attribute.name: attribute for attribute in node.attribute}
    for each in found.node:
        bound = [_bound(attribute, given, schema) for attribute in each.attribute]
        refill(each.attribute, [attribute for attribute in bound if attribute is not None])
    inferred = _inferred(found, list(zip_longest(kinds, shapes[: len(kinds)])), opset, inference)
    return Body(list(found.input), list(found.output), list(found.node), *inferred)


def has_body(node: onnx.NodeProto, opset: int) -> bool:
    """True if a function body may define, in onnx, a node of the default domain."""
    schema = None if domain_of(node) else schema_of(node.op_type, opset)
    return schema is None or schema.has_function or schema.has_context_dependent_function


def holds_graphs(node: onnx.NodeProto, types: Sequence[str | None], opset: int) -> bool:
    """True if nodes with graphs inside are in the function body that defines a node for inputs of these element types;
    False also if that is not known."""
    schema, kinds = _schema_of(node, opset), _kinds(types)
    found = None if schema is None or kinds is None else _function(schema, node, kinds, body_version(schema, opset))
    return found is not None and any(map(has_graphs, found.node))


def _kinds(types: Sequence[str | None]) -> list[int] | None:
    """Returns the numbers of element types in lower case, UNDEFINED for ""; None if one is not known."""
    return None if None in types else [_TYPES.get(each or "", onnx.TensorProto.UNDEFINED) for each in types]


def _schema_of(node: onnx.NodeProto, opset: int) -> Any:
    """Returns the schema of a node of the default domain; None if it is not known, or is not that of all versions."""
    known = domain_of(node) == "" and node.op_type not in _CHANGED
    return schema_of(node.op_type, opset) if known else None


def _function(
    schema: Any, node: onnx.NodeProto, kinds: Sequence[int], version: int | None
) -> onnx.FunctionProto | None:
    """Returns the function that a schema has for this node, written for opset `version`; None if it has none."""
    made = onnx.FunctionProto()
    if version is None:
        return None
    if version in schema.function_opset_versions:
        made.ParseFromString(schema.get_function_with_opset_version(version))
        return made
    given = [helper.make_tensor_type_proto(kind, None).SerializeToString() for kind in kinds]
    make = schema.get_context_dependent_function_with_opset_version
    try:
        made.ParseFromString(make(version, node.SerializeToString(), given))
    except (RuntimeError, ValueError, IndexError):  # onnx's, of attributes that it cannot read
        return None
    return made if made.node else None


def _bound(
    attribute: onnx.AttributeProto, given: Mapping[str, onnx.AttributeProto], schema: Any
) -> onnx.AttributeProto | None:
    """Returns an attribute of a node in a function's body or, if it refers to an attribute of the function's call, a
    copy of that under its own name: the one of `given`, or the default of `schema`; None if there is neither."""
    name = attribute.ref_attr_name
    if not name:
        return attribute
    declared = schema.attributes.get(name)
    found = given.get(name) or (None if declared is None else declared.default_value)
    if found is None or not found.name:
        return None
    made = onnx.AttributeProto()
    made.CopyFrom(found)
    made.name = attribute.name
    return made


def _inferred(
    function: onnx.FunctionProto, given: Sequence[tuple[int, Shape | None]], opset: int, inference: Inference
) -> tuple[dict[str, str], dict[str, Shape]]:
    """Maps the names of a body's tensors to their element types in lower case, and to their shapes, as far as inference
    finds them. `given` has the types and shapes of its inputs."""
    inputs = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, (kind, shape) in zip(function.input, given, strict=False)
        if kind
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in function.output]
    graph = helper.make_graph(list(function.node), "body", inputs, outputs)
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    with suppress(InferenceError):
        found = inference.infer_shapes(found)
    tensors = {
        value.name: value.type.tensor_type
        for value in (*found.graph.input, *found.graph.value_info, *found.graph.output)
    }
    kinds_of = {name: type_name(tensor.elem_type) for name, tensor in tensors.items()}
    shapes = {name: _shape(tensor.shape) for name, tensor in tensors.items() if tensor.HasField("shape")}
    return {name: kind.lower() for name, kind in kinds_of.items() if kind}, shapes


def _shape(shape: onnx.TensorShapeProto) -> Shape:
    return tuple([dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in shape.dim])
