"""Checks a model's nodes against the schemas of their operators: inputs, outputs and attributes.

Source: checker::check_node and OpSchema::Verify of ONNX, which ONNX Runtime calls for each node; the numbers of outputs
of bodies are those that the inference of If, Loop and Scan requires. Observed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import onnx

from dmlsplit.formats.onnx.protobuf import domain_of, first_output, graphs_of, text
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.onnx_nodes import path_of
from dmlsplit.models.schemas import LARGEST_OPSET, schema_of
from dmlsplit.models.scope import labelled_graphs, opset_of
from dmlsplit.onnxruntime.contributed_schemas import is_added
from dmlsplit.system.errors import InputError, NotLoadedError
from dmlsplit.system.printable import printable, shortened

_LONGEST_NAME = 60
_MORE_OUTPUTS: Final = {"If": 0, "Loop": 1, "Scan": 0}
"""How many more outputs the bodies of a node have than the node; the condition of a Loop is one."""
_EXPERIMENTAL: Final = frozenset(
    {"Affine", "Crop", "DynamicSlice", "GRUUnit", "GivenTensorFill", "ImageScaler", "ParametricSoftplus", "Scale"}
    | {"ScaledTanh"}
)
"""Operators whose nodes ONNX does not check. Source: check_is_experimental_op of ONNX's checker.cc. Observed."""
_OF_ANY_ATTRIBUTES: Final = frozenset(
    {"BiasDropout", "BitmaskBiasDropout", "BitmaskDropout", "EPContext", "LayerNormalization", "Snpe"}
    | {"QOrderedLayerNormalization", "SimplifiedLayerNormalization"}
)
"""Operators of ONNX Runtime's own that it takes with attributes that it does not know. Observed with 1.18.0, 1.20.1,
1.24.4 and 1.30.0: each of its operators was asked with such an attribute."""
_WITHOUT_GAPS: Final = frozenset(("Concat", "Max", "Mean", "Min", "SequenceConstruct", "Sum"))
"""Operators with any number of inputs, all of which need a name: otherwise ONNX Runtime refuses the model, or its
process ends with C0000005, for some on the CPU only as the model runs. Observed with 1.18.0, 1.20.1, 1.24.4 and
1.30.0."""
_NAMED_ELSEWHERE: Final = frozenset((*JUDGED, "Constant"))
"""Operators whose outputs are not checked for names: there are rules for those of Split and Concat, and a Constant
becomes an initializer before nodes are checked."""
_OF_ONE_OR_FIVE: Final = "BatchNormalization", 14
"""The operator that writes either one tensor or five below this opset, and that opset."""
_DEPRECATED: Final = {"Scatter": "ScatterElements", "Upsample": "Resize"}
"""Maps operators that ONNX Runtime does not load once ONNX has deprecated them to those that replace them. It loads the
GroupNormalization of opset 18, which newer versions of ONNX call deprecated."""
_FIELDS: Final[Mapping[str, int]] = {
    field: onnx.AttributeProto.AttributeType.Value(name)
    for name, field in (
        *(("FLOAT", "f"), ("INT", "i"), ("STRING", "s"), ("TENSOR", "t"), ("GRAPH", "g"), ("TYPE_PROTO", "tp")),
        *((name, name.lower()) for name in ("FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS", "TYPE_PROTOS")),
        *((name, name.lower()) for name in ("SPARSE_TENSOR", "SPARSE_TENSORS")),
    )
}
"""Maps the fields of an attribute that hold its value to the types of attributes whose value they hold."""
_DATA: Final = ("float_data", "int32_data", "int64_data", "string_data", "double_data", "uint64_data")
_NOT_CHECKED: Final = "__"
"""ONNX allows attributes whose names begin with this at every node."""


class Form(NamedTuple):
    """The form of an operator's nodes: the minimum and maximum numbers of inputs and outputs, the inputs and the
    outputs that need a name, the types of attributes by name (AttributeProto.AttributeType), and the names of those
    that must be given."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    needed: tuple[bool, ...]
    named: tuple[bool, ...]
    attributes: Mapping[str, int]
    required: tuple[str, ...]


def check_nodes(model: onnx.ModelProto) -> None:
    """Raises NotLoadedError for a node that ONNX Runtime does not load: the opset lacks or deprecates its operator, the
    number of its inputs or outputs is wrong, an input or output has no name, an attribute is unknown, missing, given
    twice or of another type, or a body does not have the outputs that it must have. Raises InputError instead if the
    opset is newer than the installed onnx, which may then not know the operator as it is.

    Operators of other domains, and those that ONNX Runtime adds to the default one, are not checked: versions differ in
    them (contributed_checks.py). A Split or Concat must have inputs; how many inputs and outputs it may
    have is a rule of its own.
    """
    opset = opset_of(model) or LARGEST_OPSET  # the newest opset of the domain if the model imports none
    faultless: set[tuple[str, int, int]] = set()
    """The operators and the numbers of inputs and outputs of nodes without attributes whose tensors all have names."""
    for graph, label in labelled_graphs(model.graph):
        for node in graph.node:
            form = node.op_type, len(node.input), len(node.output)
            is_plain = not node.attribute and "" not in node.input[:] and "" not in node.output[:]
            if domain_of(node) != "" or (is_plain and form in faultless):
                continue
            for why in _faults(node, opset):
                if LARGEST_OPSET > opset > onnx.defs.onnx_opset_version():
                    raise InputError(f"{called(node)} {why}")
                raise NotLoadedError(f"{called(node)} {why}; the model is not loaded", node=path_of(node, label))
            if is_plain:
                faultless.add(form)


def _faults(node: onnx.NodeProto, opset: int) -> Iterator[str]:
    known = form_of(node.op_type, opset)
    if known is not None:
        if node.op_type in _DEPRECATED and schema_of(node.op_type, opset).deprecated:
            yield f"has an operator that opset {opset} replaces with {_DEPRECATED[node.op_type]}"
        yield from faults_of(node, known)
        operator, last = _OF_ONE_OR_FIVE
        if node.op_type == operator and opset < last and len(node.output) not in (1, 5):
            yield f"writes {len(node.output)} tensors, not 1 or 5"
    elif not is_added(text(node.op_type), opset):
        yield f"has an operator that opset {opset} does not have"


def faults_of(node: onnx.NodeProto, known: Form) -> Iterator[str]:
    """Yields what is wrong with the inputs, outputs and attributes of a node whose operator has the form `known`."""
    if node.op_type in _EXPERIMENTAL:
        return
    if node.op_type not in JUDGED:
        for verb, count, (least, most) in (
            ("reads", len(node.input), known.inputs),
            ("writes", len(node.output), known.outputs),
        ):
            if not least <= count <= most:
                tensors = "tensor" if count == 1 else "tensors"
                yield f"{verb} {count} {tensors}, not {_allowed(least, most)}"
    elif not node.input:
        yield "has no inputs"
    if node.op_type == "Constant" and not node.attribute:
        yield "has no value"
    if "" in node.input[:]:
        lacking = (n and not name for name, n in zip(node.input[:], known.needed, strict=False))
        if node.op_type in _WITHOUT_GAPS or any(lacking):
            yield "lacks an input"
    if "" in node.output[:] and node.op_type not in _NAMED_ELSEWHERE:
        unnamed = (n and not name for name, n in zip(node.output[:], known.named, strict=False))
        if any(unnamed):
            yield "lacks the name of an output"
    if node.attribute or known.required:
        yield from _faults_of_attributes(node, known)


def _faults_of_attributes(node: onnx.NodeProto, known: Form) -> Iterator[str]:
    given = Counter(attribute.name for attribute in node.attribute[:])
    for name in known.required:
        if name not in given:
            yield f"lacks the attribute {name}"
    for attribute in node.attribute[:]:
        name, kind = attribute.name, attribute.type
        shown = shortened(printable(name), _LONGEST_NAME)
        if given[name] > 1:
            yield f"has the attribute {shown} {given[name]} times"
        elif name not in known.attributes:
            if not name.startswith(_NOT_CHECKED) and node.op_type not in _OF_ANY_ATTRIBUTES:
                yield f"has the attribute {shown}, which its operator does not have"
        elif kind != known.attributes[name]:
            yield f"has an attribute {shown} of the type {_type_name(kind)}, not {_type_name(known.attributes[name])}"
        elif any(_FIELDS.get(field.name, kind) != kind for field, _ in attribute.ListFields()):
            yield f"has an attribute {shown} with a value of another type than its own"
        elif kind == onnx.AttributeProto.TENSOR and node.op_type != "Constant" and (count := _stored(attribute.t)) != 1:
            yield f"has an attribute {shown} with data in {count} fields, not in one"
        elif kind == onnx.AttributeProto.GRAPH and node.op_type in _MORE_OUTPUTS:
            outputs = len(node.output) + _MORE_OUTPUTS[node.op_type]
            for graph in graphs_of(attribute):
                if len(graph.output) != outputs:
                    yield f"has a {shown} with {len(graph.output)} outputs, not {outputs}"


def _stored(tensor: onnx.TensorProto) -> int:
    """Returns the number of the fields of a tensor that hold data; 1 for data in a file, and for no elements."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL or 0 in tensor.dims:
        return 1
    return int(tensor.HasField("raw_data")) + sum(bool(getattr(tensor, name)) for name in _DATA)


def _type_name(kind: int) -> str:
    known = onnx.AttributeProto.AttributeType
    return known.Name(kind) if kind in known.values() else str(kind)


@lru_cache(maxsize=4096)
def form_of(op_type: str, opset: int) -> Form | None:
    """Returns the form of an operator of the default domain; None if onnx has none at the opset."""
    schema = schema_of(op_type, opset)
    if schema is None:
        return None
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    return Form(
        (schema.min_input, schema.max_input),
        (schema.min_output, schema.max_output),
        tuple([parameter.option == single for parameter in schema.inputs]),
        tuple([parameter.option == single for parameter in schema.outputs]),
        {name: int(attribute.type) for name, attribute in schema.attributes.items()},
        tuple(sorted(name for name, attribute in schema.attributes.items() if attribute.required)),
    )


def called(node: onnx.NodeProto) -> str:
    return shortened(printable(f"{node.op_type} {node.name or first_output(node)}".strip()), _LONGEST_NAME)


def _allowed(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} or more" if most > 1000 else f"{least} to {most}"
