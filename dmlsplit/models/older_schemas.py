"""Whether a node means the same in an older opset, by ONNX's own schemas: tensors, attributes, types and text.

Schemas are compared version by version. If two differ in more than their element types, _REVIEWED has the nodes for
which they mean the same; without a row there, they differ. Source: onnx.defs, and the specification of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import onnx
from onnx import helper

from dmlsplit.formats.onnx.protobuf import domain_of, text
from dmlsplit.models.schemas import schema_of
from dmlsplit.system.printable import printable

Types: TypeAlias = Sequence[str | None]
"""The element type of each tensor, in ONNX's lower-case words; "" for an omitted one, None for an unknown one."""


class AtOlder(NamedTuple):
    """A node in an older opset. `why` is the reason why it does not mean the same, "" if it does; `dropped` are
    attributes that the older schema lacks and whose values have no effect."""

    why: str = ""
    dropped: frozenset[str] = frozenset()


_Attributes: TypeAlias = Mapping[str, Any]
_Review: TypeAlias = Callable[[_Attributes], str]
"""Returns why a node with these attributes has another meaning before the change; "" if it means the same."""


def _unless(attribute: str, *values: object) -> _Review:
    """Returns a review that accepts a node (returns "") if its attribute is omitted or has one of these values, and
    otherwise returns the reason. The first value is the default."""

    def review(attributes: _Attributes) -> str:
        found = attributes.get(attribute, values[0])
        return (
            "" if found in values else f"its {attribute} of {_shown(found)} is defined differently in the older version"
        )

    return review


def _alike(attributes: _Attributes) -> str:
    return ""


_NO_CEILING: Final = _unless("ceil_mode", 0)
_REVIEWED: Final[Mapping[tuple[str, int], _Review]] = {
    # the newer text ignores windows that begin in the end padding; without ceil_mode there are none
    ("AveragePool", 22): _NO_CEILING,
    ("MaxPool", 22): _NO_CEILING,
    # float 8 types and their saturation
    **dict.fromkeys([(name, version) for name in ("Cast", "CastLike") for version in (19, 24)], _alike),
    ("QuantizeLinear", 19): _alike,
    ("DequantizeLinear", 19): _alike,
    # blocks, and outputs of another type
    **dict.fromkeys([(name, 21) for name in ("QuantizeLinear", "DequantizeLinear")], _alike),
    **dict.fromkeys([(name, 23) for name in ("QuantizeLinear", "DequantizeLinear")], _alike),
    # scales of types other than FLOAT
    ("QLinearMatMul", 21): _alike,
    # 2-bit integers
    ("QuantizeLinear", 25): _alike,
    ("QuantizeLinear", 28): _alike,
    ("Pad", 19): _unless("mode", b"constant", b"reflect", b"edge"),
    # half_pixel_symmetric is new; the rest of the text differs only in markup
    ("Resize", 19): _unless(
        "coordinate_transformation_mode",
        *(b"half_pixel", b"asymmetric", b"align_corners", b"pytorch_half_pixel", b"tf_crop_and_resize"),
    ),
    # booleans are new
    ("ReduceMax", 20): _alike,
    ("ReduceMin", 20): _alike,
    # descriptions of attributes are reworded
    ("EyeLike", 22): _alike,
    ("Transpose", 21): _alike,
    ("Transpose", 25): _alike,
}
"""Reviews of the changes that are more than new element types: by operator, and by the version that made the change."""


def at_older(node: onnx.NodeProto, inputs: Types | None, outputs: Types | None, own: int, wanted: int) -> AtOlder:
    """Returns whether a node of opset `own` means the same in opset `wanted`, which is older, and the attributes that
    it would lose. `inputs` and `outputs` are the types of its tensors; if they are None, types are not compared.

    The graphs in its attributes are not checked.
    """
    operator = text(node.op_type)
    if domain_of(node) != "":
        return AtOlder()
    newer = schema_of(operator, own)
    if newer is None:
        return AtOlder(f"onnx {onnx.__version__} does not know {printable(operator, 60)} of opset {own}")
    dropped: set[str] = set()
    attributes = {text(each.name): each for each in node.attribute}
    if any(each.ref_attr_name for each in node.attribute) and newer.since_version > wanted:
        return AtOlder("it uses attributes of a function")
    while newer.since_version > wanted:
        older = schema_of(operator, newer.since_version - 1)
        if older is None or older.deprecated:
            return AtOlder(f"{operator} is new in opset {newer.since_version}")
        why = next(_differences(node, attributes, newer, older, dropped), "")
        if not why and inputs is not None and outputs is not None:
            why = next(_types(older, inputs, outputs), "")
        if why:
            return AtOlder(f"{operator} {older.since_version} is not {operator} {newer.since_version}: {why}")
        newer = older
    return AtOlder(dropped=frozenset(dropped))


def _differences(
    node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto], newer: Any, older: Any, dropped: set[str]
) -> Iterator[str]:
    """Yields, as text, what a node has that an older schema lacks or defines differently. Attributes that the older
    schema lacks, and that can be dropped, are added to `dropped`."""
    for word, names, new, old in (
        ("input", node.input, newer.inputs, older.inputs),
        ("output", node.output, newer.outputs, older.outputs),
    ):
        for i, name in enumerate(names):
            given, taken = _parameter(new, i), _parameter(old, i)
            if name and (taken is None or given is None or taken.name != given.name):
                yield f"it has the {word} {given.name if given is not None else i}"
        required = [each.name for each in old if each.option == onnx.defs.OpSchema.FormalParameterOption.Single]
        missing = [each for i, each in enumerate(required) if i >= len(names) or not names[i]]
        if missing:
            yield f"it has no {word} {missing[0]}"
    for name, attribute in attributes.items():
        if name in older.attributes or name in dropped:
            continue
        if not _is_neutral(newer, name, attribute):
            yield f"it has the attribute {printable(name, 60)}"
        dropped.add(name)
    for name, declared in older.attributes.items():
        kept = newer.attributes.get(name)
        if name not in attributes and (kept is None or _default(declared) != _default(kept)):
            yield f"the attribute {name} has a different default"
    if not _is_same_text(newer, older):
        review = _REVIEWED.get((newer.name, newer.since_version))
        if review is None:
            yield "its specification changed"
        else:
            yield from filter(None, [review({name: helper.get_attribute_value(a) for name, a in attributes.items()})])


def _parameter(parameters: Sequence[Any], index: int) -> Any:
    """Returns the formal parameter for the input or output at `index`; None if there is none."""
    if index < len(parameters):
        return parameters[index]
    last = parameters[-1] if parameters else None
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return last if last is not None and last.option == variadic else None


def _default(attribute: Any) -> tuple[bool, bytes]:
    return bool(attribute.required), bytes(attribute.default_value.SerializeToString(deterministic=True))


def _is_neutral(newer: Any, name: str, attribute: onnx.AttributeProto) -> bool:
    """True if an attribute has its default value, so that the node means the same without it."""
    value = helper.get_attribute_value(attribute)
    declared = newer.attributes.get(name)
    default = None if declared is None else declared.default_value
    return default is not None and default.type == attribute.type and value == helper.get_attribute_value(default)


def _is_same_text(newer: Any, older: Any) -> bool:
    """True if two schemas differ at most in their element types."""
    if newer.doc != older.doc or newer.attributes.keys() != older.attributes.keys():
        return False
    described = all(each.description == older.attributes[name].description for name, each in newer.attributes.items())
    return described and _form(newer) == _form(older)


def _form(schema: Any) -> list[tuple[str, object, str]]:
    return [(each.name, each.option, each.type_str) for values in (schema.inputs, schema.outputs) for each in values]


def types_at(operator: str, opset: int, inputs: Types, outputs: Types) -> str:
    """Returns, as text, the first tensor of a node whose type its operator does not accept in an opset; "" if all are
    accepted or unknown."""
    schema = schema_of(operator, opset)
    known = [[each or "" for each in types] for types in (inputs, outputs)]
    return "" if schema is None else next(_types(schema, known[0], known[1]), "")


def _types(older: Any, inputs: Types, outputs: Types) -> Iterator[str]:
    """Yields, as text, the tensors whose types an older schema does not accept; ends at the first unknown type."""
    allowed = {each.type_param_str: set(each.allowed_type_strs) for each in older.type_constraints}
    bound: dict[str, str] = {}
    for types, parameters in ((inputs, older.inputs), (outputs, older.outputs)):
        for i, each in enumerate(types):
            parameter = _parameter(parameters, i)
            if each == "" or parameter is None:
                continue
            if each is None:
                yield f"the type of its {parameter.name} is not known"
                return
            name = parameter.type_str
            if not any(f"tensor({each})" in taken for taken in allowed.get(name, {name})):
                yield f"its {parameter.name} is {each.upper()}"
            if parameter.is_homogeneous and bound.setdefault(name, each) != each:
                yield f"its {parameter.name} is {each.upper()}, not {bound[name].upper()}"


def _shown(value: object) -> str:
    return printable(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value), 60)
