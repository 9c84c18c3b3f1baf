"""Any operator in JSON, as DxDispatch writes it, to and from a descriptor.

    {"Type": "DML_OPERATOR_GEMM", "Desc": {"ATensor": T, "BTensor": T, "OutputTensor": T, "TransA": "NONE", ...}}

Members are in Desc or, without a Desc, next to Type. A tensor T has the form of dmlsplit.formats.json, a fused operator
is an operator without tensors, a DML_SCALE_BIAS is {"Scale": a, "Bias": b}, a DML_SIZE_2D {"Width": w, "Height": h}.
Enums are given by full name, by name without the prefix or by number. Optional members and the counts of arrays may be
omitted; the numbers that JSON does not have are "inf", "-inf" and "nan".
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NamedTuple, TypeAlias

from dmlsplit.descriptors.any_operator import AnyOperatorDesc, MemberError, Value, narrowed, written
from dmlsplit.descriptors.descs import OperatorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.schema import Member, OperatorSchema, enumerators, find_operator
from dmlsplit.formats.json import _OperatorReader, tensor_json
from dmlsplit.formats.json import to_json as split_or_join_json
from dmlsplit.formats.jsontext import JsonText, KeyPath, shown

AnyDesc: TypeAlias = AnyOperatorDesc | OperatorDesc

_PAIRS: Final = {"scale-bias": ("Scale", "Bias"), "size-2d": ("Width", "Height")}
_BESIDE_MEMBERS: Final = frozenset({"Type", "type", "bindings", "executionFlags"})
"""Keys of an operator without Desc that are not members."""


def loads(text: str | bytes) -> AnyDesc:
    """Parses one operator in JSON and returns its descriptor: a SplitOperatorDesc, a JoinOperatorDesc or, for any
    other operator, an AnyOperatorDesc.

    Raises InputError, with line and column, if the text is malformed; TypeError for anything but a string or bytes.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise TypeError(f"JSON text is a string or bytes, not {type(text).__name__}")
    return read_any(JsonText(text)).descriptor


def dumps(desc: AnyDesc, indent: int | None = None) -> str:
    """Returns a descriptor as JSON text, on one line or indented by `indent` spaces; `loads(dumps(desc)) == desc`."""
    return json.dumps(to_json(desc), indent=indent)


class ParsedAny(NamedTuple):
    """A descriptor, and notes about what the reader changed."""

    descriptor: AnyDesc
    notes: tuple[Diagnostic, ...]


def read_any(text: JsonText, key_path: KeyPath = (), *, whole_model: bool = False) -> ParsedAny:
    """Returns the descriptor of the operator at `key_path` of a parsed text, with notes about what the reader changed.

    `whole_model` as in read_operator. Raises InputError if the operator is malformed.
    """
    reader = _AnyReader(text, whole_model, key_path)
    descriptor = narrowed(reader.operator(key_path, "", fused=False))
    return ParsedAny(descriptor, tuple(reader.notes))


class _AnyReader(_OperatorReader):
    """Reads an operator by its schema; `words` describes its place in messages."""

    def schema(self, members: dict[str, object], path: KeyPath, words: str) -> OperatorSchema:
        value, at = self.field(members, path, "Type", lambda value, at: (value, at))
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise self.text.error(at, f"{words}Type: expected the name of an operator, not {shown(value)}")
        try:
            return find_operator(value)
        except ValueError as unknown:
            raise self.text.error(at, f"{words}Type: {unknown}") from None

    def operator(self, path: KeyPath, words: str, *, fused: bool) -> AnyOperatorDesc:
        top = self.members_of(self.text.get(path), path)
        schema = self.schema(top, path, words)
        key = next((key for key in ("Desc", "desc") if key in top), None)
        members = {name: value for name, value in top.items() if name not in _BESIDE_MEMBERS}
        if key is not None:
            path, words = (*path, key), f"{words}Desc."
            members = self.members_of(top[key], path)
        try:
            read = {
                name: self.member(schema.member(name), value, (*path, name), words) for name, value in members.items()
            }
            return AnyOperatorDesc(schema, read, fused=fused)
        except MemberError as error:
            place = f"{words}{written(error.path)}".removesuffix(".")
            raise self.text.error((*path, *error.path), f"{place}: {error.said}" if place else error.said) from None

    def member(self, member: Member | None, value: object, path: KeyPath, words: str) -> object:
        """Returns a JSON value in the form that AnyOperatorDesc takes: a tensor, a fused operator or an array of either
        is parsed, any other value is returned unchanged (AnyOperatorDesc refuses invalid ones)."""
        if member is None or value is None:
            return value
        if member.type == "tensor" and isinstance(value, dict):
            return self.tensor(value, path)
        if member.type == "tensors" and isinstance(value, list):
            return self.tensors(value, path)
        if member.type == "operator" and isinstance(value, dict):
            return self.operator(path, f"{words}{member.name}.", fused=True)
        if member.type == "operators" and isinstance(value, list):
            return [self.operator((*path, i), f"{words}{member.name}[{i}].", fused=True) for i in range(len(value))]
        return value


def to_json(desc: AnyDesc) -> dict[str, Any]:
    """Returns a descriptor as a dict that json.dumps accepts: {"Type": ..., "Desc": {...}}."""
    if not isinstance(desc, AnyOperatorDesc):
        return split_or_join_json(desc)
    named = desc.operator.whole or desc.known
    return {"Type": desc.operator.c_name if named else desc.type, "Desc": _members(desc, fused=False)}


def _members(desc: AnyOperatorDesc, *, fused: bool) -> dict[str, object]:
    found: dict[str, object] = {}
    for member in desc.operator.members:
        value = desc.members[member.name]
        if not (fused and value is None and member.type == "tensor"):
            found[member.name] = _json(member, value)
    return found


def _json(member: Member, value: Value) -> object:
    if isinstance(value, tuple):
        items = [_json(member, item) for item in value]
        names = _PAIRS.get(member.type)
        return dict(zip(names, items, strict=True)) if names else items
    if value is None or isinstance(value, TensorDesc):
        return tensor_json(value)
    if isinstance(value, AnyOperatorDesc):
        return {"Type": value.operator.c_name, "Desc": _members(value, fused=True)}
    if member.type == "enum":
        return next((name for name, number in enumerators(member.enum).items() if number == value), value)
    return value if math.isfinite(value) else str(value)
