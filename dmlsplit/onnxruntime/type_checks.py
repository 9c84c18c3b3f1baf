"""Checks the element types that a model's nodes read and write against the schemas of their operators.

Source: InferAndVerifyTypeMatch of ONNX Runtime's graph.cc. Observed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from functools import lru_cache
from itertools import chain, repeat
from typing import Final, NamedTuple

import onnx

from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.formats.onnx.tensors import type_name
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.onnx_nodes import name_of
from dmlsplit.models.schemas import LARGEST_OPSET, schema_of, types_of
from dmlsplit.models.scope import Scope
from dmlsplit.onnxruntime.body_checks import fault_of_body
from dmlsplit.onnxruntime.schema_checks import called
from dmlsplit.system.errors import NotLoadedError
from dmlsplit.system.printable import printable

_TENSOR: Final = "tensor("


class Formal(NamedTuple):
    """An input or output in a schema: the name of its type parameter, or its type; True if it stands for any number of
    tensors; True if all of these have one type; and the types it may have, as in "tensor(float)"."""

    name: str
    is_variadic: bool
    is_homogeneous: bool
    types: Collection[str]


class Parameter(NamedTuple):
    """An input or output of a schema: the name of its type parameter ("" for tensors of types that may differ), the
    element types of tensors that it accepts (TensorProto.DataType), and the only one of these, 0 if it accepts several
    types."""

    name: str
    accepted: Set[int]
    only: int


class Signature(NamedTuple):
    """The inputs and outputs of an operator, and what further ones are like: nothing, or one parameter without end.

    `is_inferred`: onnx infers the types of its outputs, and compares them with those that the model declares."""

    inputs: Sequence[Parameter]
    more_inputs: Iterable[Parameter]
    outputs: Sequence[Parameter]
    more_outputs: Iterable[Parameter]
    is_inferred: bool


def check_types(scope: Scope) -> None:
    """Raises NotLoadedError for a node of a model that ONNX Runtime does not load: it reads an element type that its
    operator does not accept, reads two types where they must be one, is declared to write another type than it does, or
    hands a body a tensor of another shape than the body declares. `scope` is that of the model's graph.

    Unknown types, types other than tensors, and operators of other domains are not checked. Which types Split and
    Concat accept is a rule of their own.
    """
    opset = scope.origin.opset or LARGEST_OPSET
    for index, node in enumerate(scope.graph.node):
        if (node.input or node.output) and domain_of(node) == "":
            signature = _signature(node.op_type, opset)
            if signature is not None and (why := fault_of_types(node, scope, signature)):
                raise NotLoadedError(f"{called(node)} {why}; the model is not loaded", node=name_of(node, scope))
        for _, child in scope.children(index) if node.attribute else ():
            if why := fault_of_body(node, scope, child.graph):
                raise NotLoadedError(f"{called(node)} {why}; the model is not loaded", node=name_of(node, scope))
            check_types(child)


def fault_of_types(node: onnx.NodeProto, scope: Scope, signature: Signature) -> str:
    """Returns what is wrong with the types of a node; "" if nothing is known to be."""
    bound: dict[str, int] = {}
    read = zip(node.input[:], chain(signature.inputs, signature.more_inputs), strict=False)
    for name, (parameter, accepted, only) in read:
        kind = scope.data_type(name) if name else 0
        if not kind:
            continue
        if kind not in accepted and (only or node.op_type not in JUDGED):
            return f"reads {printable(name, 60)} of the type {type_name(kind)}, which its operator does not accept"
        if parameter and bound.setdefault(parameter, kind) != kind:
            return f"reads tensors of the types {type_name(bound[parameter])} and {type_name(kind)}, which must be one"
    if signature.is_inferred and node.op_type not in JUDGED:
        return ""
    written_to = zip(node.output[:], chain(signature.outputs, signature.more_outputs), strict=False)
    for name, (parameter, _, only) in written_to:
        written = type_name(only or bound.get(parameter, 0))
        declared = scope.declared(name)[0] if name else None
        if written and declared and declared != written:
            return f"writes {printable(name, 60)} of the type {written}, but the model declares {declared}"
    return ""


@lru_cache(maxsize=4096)
def _signature(op_type: str, opset: int) -> Signature | None:
    """Returns the signature of an operator of the default domain; None if it is not known."""
    schema = schema_of(op_type, opset)
    if schema is None:
        return None
    is_inferred = bool(schema.has_type_and_shape_inference_function)
    inputs, outputs = [[_formal(schema, each) for each in formals] for formals in (schema.inputs, schema.outputs)]
    return signature_of(inputs, outputs, is_inferred)


def _formal(schema: onnx.defs.OpSchema, of: onnx.defs.OpSchema.FormalParameter) -> Formal:
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return Formal(of.type_str, of.option == variadic, of.is_homogeneous, types_of(schema, of))


def signature_of(inputs: Sequence[Formal], outputs: Sequence[Formal], is_inferred: bool) -> Signature:
    """Returns the signature of an operator with these inputs and outputs."""
    return Signature(*_parameters(inputs), *_parameters(outputs), is_inferred)


def _parameters(formals: Sequence[Formal]) -> tuple[Sequence[Parameter], Iterable[Parameter]]:
    found = tuple(map(_parameter, formals))
    return found, repeat(found[-1]) if formals and formals[-1].is_variadic else ()


def _parameter(formal: Formal) -> Parameter:
    names = [t[len(_TENSOR) : -1].upper() for t in formal.types if t.startswith(_TENSOR)]
    tensors = frozenset(map(onnx.TensorProto.DataType.Value, names))
    only = min(tensors) if len(tensors) == len(formal.types) == 1 else 0
    return Parameter(formal.name if formal.is_homogeneous else "", tensors, only)
