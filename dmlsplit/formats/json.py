"""One operator in JSON, as DxDispatch writes it, to and from a descriptor.

    {"Type": "DML_OPERATOR_SPLIT", "Desc": {"InputTensor": T, "OutputCount": n, "OutputTensors": [T, ...], "Axis": a}}

T is {"Type": "BUFFER", "Desc": {...}} or the inner object alone. Enums are given by full name, by name without the
prefix or by number; null is a null pointer; the count may be omitted. Source of names, defaults and required members:
DxDispatch, src/model/JsonParsers.cpp. Numbers, nulls and omitted counts are dmlsplit's extensions: they make faulty
descriptors expressible, and Splits are then written like all other operators.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

from dmlsplit.descriptors.descs import BufferTensorDesc, OperatorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Position
from dmlsplit.descriptors.enums import OperatorType, TensorDataType, TensorFlags, TensorType
from dmlsplit.descriptors.geometry import ROLES, descriptor_of, members_of
from dmlsplit.descriptors.location import Location, Step
from dmlsplit.formats.jsontext import JsonText, KeyPath, shown
from dmlsplit.rules import RULES
from dmlsplit.system.errors import InputError
from dmlsplit.system.spelling import nearest

_PREFIXES: Final[dict[type[enum.IntEnum] | type[enum.IntFlag], str]] = {
    OperatorType: "DML_OPERATOR_",
    TensorDataType: "DML_TENSOR_DATA_TYPE_",
    TensorType: "DML_TENSOR_TYPE_",
    TensorFlags: "DML_TENSOR_FLAG_",
}
_VALUES: Final = {
    known: {name: int(member) for short, member in known.__members__.items() for name in (short, prefix + short)}
    for known, prefix in _PREFIXES.items()
}
_LOWER_CASE: Final = {"Type": "type", "Desc": "desc"}
"""DxDispatch accepts these two keys of operators in lower case; here tensors may use them too."""

_T = TypeVar("_T")
_D = TypeVar("_D")


class OtherOperatorError(InputError):
    """An operator that is neither a Split nor a Join; `type_name` is its name in the text."""

    def __init__(self, message: str, type_name: str, *, file: str | None, line: int | None, column: int | None) -> None:
        super().__init__(message, file=file, line=line, column=column)
        self.type_name = type_name


class ParsedOperator(NamedTuple):
    """A descriptor and the text that it was read from; `notes` describe what the reader changed."""

    descriptor: OperatorDesc
    notes: tuple[Diagnostic, ...]
    text: JsonText
    key_path: KeyPath

    def locate(self, location: Location) -> Position:
        """Returns line and column of a member of the operator; if the text does not contain it, those of the nearest
        enclosing value."""
        return located(self.text, self.key_path, location)


def loads(text: str | bytes) -> OperatorDesc:
    """Returns the descriptor of one Split or Join in JSON.

    Omitted members get DxDispatch's defaults, and an omitted count is the length of its array; members that are present
    are taken unchanged, so that `loads(dumps(desc)) == desc`. Raises InputError, with line and column, if the text is
    malformed or has another operator.
    """
    return read_operator(JsonText(text)).descriptor


def dumps(desc: OperatorDesc, indent: int | None = None) -> str:
    """Returns a descriptor as JSON text, on one line or indented by `indent` spaces. An unknown total size (None) is
    omitted."""
    return json.dumps(to_json(desc), indent=indent)


def to_json(desc: OperatorDesc) -> dict[str, Any]:
    """Returns a descriptor as a dict that json.dumps accepts: {"Type": ..., "Desc": {...}}."""
    members = members_of(desc)
    roles = members.roles
    array = None if members.array is None else [tensor_json(tensor) for tensor in members.array]
    whole: dict[str, object] = {roles.whole: tensor_json(members.whole)}
    parts: dict[str, object] = {roles.part_count: members.part_count, roles.parts: array}
    inputs, outputs = roles.sides(whole, parts)
    return {"Type": members.kind.c_name, "Desc": inputs | outputs | {"Axis": members.axis}}


def read_operator(text: JsonText, key_path: KeyPath = (), *, whole_model: bool = False) -> ParsedOperator:
    """Returns the Split or Join at `key_path` of a parsed text, with its place in the text and notes about what the
    reader changed.

    `whole_model`: reads the operator as part of a DxDispatch model, in which a total size of 0 is computed, empty
    strides are a null pointer and the count is required. Raises OtherOperatorError for any operator other than Split
    and Join, InputError if it is malformed.
    """
    reader = _OperatorReader(text, whole_model, key_path)
    members, path = reader.members_of(text.get(key_path), key_path), key_path
    operator = reader.operator_type(members, path)
    desc_key = _spelling(members, "Desc")
    if desc_key is not None:
        path = (*path, desc_key)
        members = reader.members_of(members[desc_key], path)
    roles = ROLES[operator]
    readers: dict[str, Any] = {roles.whole: reader.tensor, roles.parts: reader.tensors}
    tensors = {name: reader.field(members, path, name, readers[name]) for name in roles.sides(roles.whole, roles.parts)}
    axis = reader.field(members, path, "Axis", reader.uint32)
    if whole_model:  # DxDispatch requires the count
        count = reader.field(members, path, roles.part_count, reader.uint32)
    else:
        length = len(tensors[roles.parts] or ())
        count = reader.optional(members, path, roles.part_count, reader.uint32, length)
    descriptor = descriptor_of(operator, tensors[roles.whole], tensors[roles.parts], count, axis)
    return ParsedOperator(descriptor, tuple(reader.notes), text, key_path)


def located(text: JsonText, key_path: KeyPath, location: Location) -> Position:
    """Returns line and column of the member `location` of the value at `key_path`; if the text does not contain it,
    those of the nearest enclosing value."""
    return text.position(_key_path(text, key_path, location.steps))


def _spelling(members: dict[str, object], name: str) -> str | None:
    """Returns the key under which `members` has the member `name`: `name`, or its form in lower camel case; None if it
    has neither."""
    if name in members:
        return name
    lower = _LOWER_CASE.get(name)
    return lower if lower in members else None


def _key_path(text: JsonText, start: KeyPath, steps: Iterable[Step]) -> KeyPath:
    keys = list(start)
    value = text.get(start)
    for step in steps:
        if isinstance(value, dict) and isinstance(step, str):
            desc = _spelling(value, "Desc")
            if desc is not None and step not in _LOWER_CASE:
                keys.append(desc)
                value = value[desc]
            key = _spelling(value, step) if isinstance(value, dict) else None
            if key is None:
                break
            keys.append(key)
            value = value[key]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            keys.append(step)
            value = value[step]
        else:
            break
    return tuple(keys)


class FieldReader:
    """Reads typed members of a parsed text: each method takes a value and its key path, and refuses values that do not
    fit the C type."""

    def __init__(self, text: JsonText) -> None:
        self.text = text

    def members_of(self, value: object, path: KeyPath) -> dict[str, object]:
        if not isinstance(value, dict):
            raise self.text.error(path, f"expected an object, not {shown(value)}")
        return value

    def items_of(self, value: object, path: KeyPath) -> list[object]:
        if not isinstance(value, list):
            raise self.text.error(path, f"expected an array, not {shown(value)}")
        return value

    def string(self, value: object, path: KeyPath) -> str:
        if not isinstance(value, str):
            raise self.text.error(path, f"{path[-1]}: expected a string, not {shown(value)}")
        return value

    def field(self, members: dict[str, object], path: KeyPath, name: str, read: Callable[[object, KeyPath], _T]) -> _T:
        """Returns `read(value, key path)` for the member `name` of the object at `path`. Raises InputError if the
        member is missing."""
        key = _spelling(members, name)
        if key is None:
            raise self.text.error(path, f"Field '{name}' is required.")
        return read(members[key], (*path, key))

    def optional(
        self, members: dict[str, object], path: KeyPath, name: str, read: Callable[[object, KeyPath], _T], default: _D
    ) -> _T | _D:
        key = _spelling(members, name)
        return default if key is None else read(members[key], (*path, key))

    def uint32(self, value: object, path: KeyPath) -> int:
        return self._uint(value, path, 32)

    def uint64(self, value: object, path: KeyPath) -> int:
        return self._uint(value, path, 64)

    def _uint(self, value: object, path: KeyPath, bits: int) -> int:
        # bool is a subclass of int
        if type(value) is not int or not 0 <= value < 1 << bits:
            name = f"{path[-2]}[{path[-1]}]" if isinstance(path[-1], int) else path[-1]
            limit = (1 << bits) - 1
            raise self.text.error(path, f"{name}: expected an unsigned integer up to {limit}, not {shown(value)}")
        return value

    def uints(self, value: object, path: KeyPath) -> list[int] | None:
        items = self.array(value, path, "unsigned integers")
        for i, item in enumerate(items or ()):
            if type(item) is not int or not 0 <= item < 1 << 32:
                self.uint32(item, (*path, i))
        return items

    def array(self, value: object, path: KeyPath, words: str) -> list[Any] | None:
        """Returns the array `value`, or None for null. Raises InputError, which describes the expected entries by
        `words`, if it is neither."""
        if value is not None and not isinstance(value, list):
            raise self.text.error(path, f"{path[-1]}: expected an array of {words} or null, not {shown(value)}")
        return value

    def enumerator(self, value: object, path: KeyPath, known: type[enum.IntEnum] | type[enum.IntFlag]) -> int:
        """Returns the value of an enumerator given by name or number; a number need not be a member of `known`. Raises
        InputError for an unknown name and for any other kind of value."""
        if not isinstance(value, str):
            if type(value) is int:
                return self.uint32(value, path)
            raise self.text.error(path, f"expected a name of {_PREFIXES[known]}* or its number, not {shown(value)}")
        member = _VALUES[known].get(value)
        if member is None:
            message = f"{shown(value)} is not a name of {_PREFIXES[known]}*{_suggestion(value, known)}"
            raise self.text.error(path, message)
        return member

    def data_type(self, value: object, path: KeyPath) -> int:
        return self.enumerator(value, path, TensorDataType)


class _OperatorReader(FieldReader):
    """Reads a Split or Join, the one at `key_path`."""

    def __init__(self, text: JsonText, whole_model: bool, key_path: KeyPath) -> None:
        super().__init__(text)
        self.whole_model = whole_model
        self.key_path = key_path
        self.notes: list[Diagnostic] = []

    def operator_type(self, members: dict[str, object], path: KeyPath) -> OperatorType:
        value, path = self.field(members, path, "Type", lambda value, path: (value, path))
        for operator in OperatorType.SPLIT, OperatorType.JOIN:
            if value in (operator.c_name, operator.name) or (type(value) is int and value == operator):
                return operator
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise self.text.error(path, f"{path[-1]}: expected the name of an operator, not {shown(value)}")
        suggestion = _suggestion(value, OperatorType) if isinstance(value, str) else ""
        if suggestion:
            raise self.text.error(path, f"{shown(value)} is not a name of DML_OPERATOR_*{suggestion}")
        line, column = self.text.position(path)
        message = f"{shown(value)} is neither DML_OPERATOR_SPLIT nor DML_OPERATOR_JOIN"
        raise OtherOperatorError(message, str(value), file=self.text.file, line=line, column=column)

    def tensor_type(self, value: object, path: KeyPath) -> int:
        return self.enumerator(value, path, TensorType)

    def flags(self, value: object, path: KeyPath) -> int:
        if not isinstance(value, list):
            return self.enumerator(value, path, TensorFlags)
        flags = 0
        for i, item in enumerate(value):
            flags |= self.enumerator(item, (*path, i), TensorFlags)
        return flags

    def tensors(self, value: object, path: KeyPath) -> list[TensorDesc | None] | None:
        items = self.array(value, path, "tensors")
        return None if items is None else [self.tensor(item, (*path, i)) for i, item in enumerate(items)]

    def tensor(self, value: object, path: KeyPath) -> TensorDesc | None:
        if value is None:
            return None
        members = self.members_of(value, path)
        type_ = self.optional(members, path, "Type", self.tensor_type, TensorType.BUFFER)
        if _spelling(members, "Desc") is None:
            return TensorDesc(type_, self.buffer_tensor(members, path))
        return TensorDesc(type_, self.field(members, path, "Desc", self.desc))

    def desc(self, value: object, path: KeyPath) -> BufferTensorDesc | None:
        return None if value is None else self.buffer_tensor(self.members_of(value, path), path)

    def buffer_tensor(self, members: dict[str, object], path: KeyPath) -> BufferTensorDesc:
        data_type = self.field(members, path, "DataType", self.data_type)
        sizes = self.field(members, path, "Sizes", self.uints)
        strides = self.optional(members, path, "Strides", self.uints, None)
        if self.whole_model and not strides:
            strides = None
        total = self.optional(members, path, "TotalTensorSizeInBytes", self.uint64, None)
        computed = self.whole_model and total == 0
        desc = BufferTensorDesc(
            data_type,
            sizes,
            strides=strides,
            flags=self.optional(members, path, "Flags", self.flags, 0),
            total_tensor_size_in_bytes=None if computed else total,
            guaranteed_base_offset_alignment=self.optional(
                members, path, "GuaranteedBaseOffsetAlignment", self.uint32, 0
            ),
            dimension_count=self.optional(members, path, "DimensionCount", self.uint32, None),
        )
        if computed:
            self._note_computed_total(desc.total_tensor_size_in_bytes, (*path, "TotalTensorSizeInBytes"))
        return desc

    def _note_computed_total(self, total: int | None, path: KeyPath) -> None:
        line, column = self.text.position(path)
        size = "a size beyond 64 bits" if total is None else f"{total} bytes"
        message, rule = f"is 0; DxDispatch computes {size} instead", RULES["input/total-size-computed"]
        place = Location(tuple([key for key in path[len(self.key_path) :] if key not in ("Desc", "desc")]))
        self.notes.append(rule.diagnostic(place, message, expected=total, actual=0, line=line, column=column))


def _suggestion(name: str, known: type[enum.IntEnum] | type[enum.IntFlag]) -> str:
    """Returns "; did you mean X?" with the member of `known` closest to `name`, or "" if none is close."""
    near = nearest(name.upper().removeprefix(_PREFIXES[known]), known.__members__, 0.75)
    return f"; did you mean {_PREFIXES[known]}{near}?" if near else ""


def _name(value: int) -> str | int:
    """Returns an enumerator's name in DxDispatch's spelling, without the prefix; a value without a name is returned as
    a number."""
    if isinstance(value, TensorFlags):
        return {0: "NONE", 1: "OWNED_BY_DML"}.get(value, int(value))
    return value.name if isinstance(value, enum.Enum) else value


def tensor_json(tensor: TensorDesc | None) -> dict[str, object] | None:
    if tensor is None:
        return None
    desc = tensor.desc
    if desc is None:
        return {"Type": _name(tensor.type), "Desc": None}
    members: dict[str, object] = {
        "DataType": _name(desc.data_type),
        "Flags": _name(desc.flags),
        "DimensionCount": desc.dimension_count,
        "Sizes": None if desc.sizes is None else list(desc.sizes),
        "Strides": None if desc.strides is None else list(desc.strides),
        "TotalTensorSizeInBytes": desc.total_tensor_size_in_bytes,
        "GuaranteedBaseOffsetAlignment": desc.guaranteed_base_offset_alignment,
    }
    if desc.total_tensor_size_in_bytes is None:
        del members["TotalTensorSizeInBytes"]
    return {"Type": _name(tensor.type), "Desc": members}
