"""A frozen descriptor of any operator.

Building one never judges it: it can hold any value that the struct's members can hold, including null pointers and
unknown enum values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from dmlsplit.descriptors.descs import (
    BufferTensorDesc,
    JoinOperatorDesc,
    OperatorDesc,
    SplitOperatorDesc,
    TensorDesc,
    TensorLike,
    _tensors,
    _uint,
)
from dmlsplit.descriptors.enums import TensorType
from dmlsplit.descriptors.schema import (
    Member,
    OperatorSchema,
    enumerators,
    find_operator,
    known_operator,
    suggestion,
    tensors_only,
)
from dmlsplit.system.errors import DescriptorError
from dmlsplit.system.printable import printable

Path: TypeAlias = tuple[str | int, ...]
Number: TypeAlias = int | float
Tensors: TypeAlias = tuple[TensorDesc | None, ...]
Value: TypeAlias = "Number | TensorDesc | AnyOperatorDesc | tuple[Value, ...] | None"

DATA_TYPE: Final = "DML_TENSOR_DATA_TYPE"
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "uint": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bool": (0, 2**32 - 1),
    "enum": (0, 2**32 - 1),
}
SCALARS: Final[Mapping[str, str]] = {
    "FLOAT32": "f",
    "FLOAT16": "e",
    "UINT32": "I",
    "UINT16": "H",
    "UINT8": "B",
    "INT32": "i",
    "INT16": "h",
    "INT8": "b",
    "FLOAT64": "d",
    "UINT64": "Q",
    "INT64": "q",
}
"""Maps a data type to the `struct` format of its DML_SCALAR_UNION member; for other types the eight bytes are kept as a
number."""
_NAMED_FLOATS: Final = ("nan", "inf", "-inf", "infinity", "-infinity")
_ELEMENT: Final = {"uints": "uint", "ints": "int", "floats": "float"}
_TENSORS: Final = ("tensor", "tensors")
COUNTED: Final = ("tensors", "operators", *_ELEMENT)
"""Array types; a separate member holds each array's length."""


class MemberError(DescriptorError):
    """A value that does not fit a struct's member: `path` leads to the member, `said` describes the fault."""

    def __init__(self, path: Path, said: str) -> None:
        super().__init__(f"{written(path)}: {said}" if path else said)
        self.path = path
        self.said = said

    def __reduce__(self) -> tuple[type[MemberError], tuple[Path, str]]:
        return type(self), (self.path, self.said)


def written(path: Path) -> str:
    """Returns a path as text for messages: "ActivationDescs[0].Alpha"."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


@dataclass(frozen=True, slots=True, init=False)
class AnyOperatorDesc:
    """Describes any operator: `operator` is its schema, `members` maps the struct's member names, in order, to values.

    A tensor is a TensorDesc, a BufferTensorDesc or None; an enum is a name or a number; a fused operator is an
    AnyOperatorDesc; a DML_SCALE_BIAS or a DML_SIZE_2D is a pair. Arrays are sequences; None is a null pointer. Optional
    members, the tensors of a fused operator, and the counts of arrays may be left out.

    Raises ValueError for an unknown operator, DescriptorError for an unknown or missing member and for a value that the
    member cannot hold.
    """

    operator: OperatorSchema
    members: Mapping[str, Value]

    def __init__(
        self, operator: str | int | OperatorSchema, members: Mapping[str, object], *, fused: bool = False
    ) -> None:
        schema = operator if isinstance(operator, OperatorSchema) else find_operator(operator)
        object.__setattr__(self, "operator", schema)
        object.__setattr__(self, "members", MappingProxyType(_normalized(schema, members, fused)))

    @property
    def type(self) -> int:
        """The operator's DML_OPERATOR_TYPE."""
        return self.operator.number

    @property
    def known(self) -> OperatorSchema | None:
        """The schema of the whole struct; None if DirectML has no operator of this type."""
        return known_operator(self.type)

    def __hash__(self) -> int:
        return hash((self.operator.number, *self.members.values()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AnyOperatorDesc):
            return NotImplemented
        return self.operator.number == other.operator.number and dict(self.members) == dict(other.members)

    def __reduce__(self) -> tuple[Callable[..., AnyOperatorDesc], tuple[int | OperatorSchema, dict[str, Value]]]:
        return _again, (self.operator.number if self.operator.whole else self.operator, dict(self.members))

    @classmethod
    def of_tensors(
        cls,
        operator: str | int,
        inputs: Iterable[TensorLike],
        outputs: Iterable[TensorLike],
        members: Mapping[str, object] = MappingProxyType({}),
    ) -> AnyOperatorDesc:
        """Returns the descriptor of an operator, given its tensors in member order and its other members.

        If the struct has other members, or the number is not an operator's, the result has the members Inputs and
        Outputs, and its schema is not `whole`. Raises ValueError for an unknown name.
        """
        schema = find_operator(operator) if isinstance(operator, str) else known_operator(operator)
        sides = {"input": _tensors(tuple(inputs), "Inputs") or (), "output": _tensors(tuple(outputs), "Outputs") or ()}
        if schema is not None:
            try:
                return cls(schema, dict(members) | _by_member(schema, sides))
            except MemberError:
                pass  # the struct has members that are not given
        number = schema.number if schema else _uint(operator, "Type")
        return cls(tensors_only(number), {"Inputs": sides["input"], "Outputs": sides["output"]})

    def tensors(self, role: str) -> tuple[TensorDesc | None, ...]:
        """Returns the tensors with the role `role` ("input" or "output") in member order, including the entries of
        arrays; None stands for a null pointer."""
        found: list[TensorDesc | None] = []
        for member in self.operator.members:
            value = self.members[member.name]
            if member.role == role and member.type == "tensor":
                assert value is None or isinstance(value, TensorDesc)
                found.append(value)
            elif member.role == role and isinstance(value, tuple):
                found += [tensor for tensor in value if tensor is None or isinstance(tensor, TensorDesc)]
        return tuple(found)

    @property
    def inputs(self) -> tuple[TensorDesc | None, ...]:
        return self.tensors("input")

    @property
    def outputs(self) -> tuple[TensorDesc | None, ...]:
        return self.tensors("output")


def _again(operator: int | OperatorSchema, members: dict[str, Value]) -> AnyOperatorDesc:
    return AnyOperatorDesc(operator, members)


def _by_member(schema: OperatorSchema, sides: Mapping[str, Tensors]) -> dict[str, object]:
    """Maps the name of each tensor member to its tensor, or to the tuple of all if it is an array. `sides` maps "input"
    and "output" to the tensors in member order. Raises MemberError if there are more or fewer tensors than members."""
    found: dict[str, object] = {}
    for role, tensors in sides.items():
        members = [member for member in schema.members if member.role == role]
        if len(members) == 1 and members[0].type == "tensors":
            found[members[0].name] = tensors
            continue
        if len(members) != len(tensors) or any(member.type != "tensor" for member in members):
            raise MemberError((), f"{schema.struct} has other tensors")
        found |= {member.name: tensor for member, tensor in zip(members, tensors, strict=True)}
    return found


def _normalized(schema: OperatorSchema, given: Mapping[str, object], fused: bool) -> dict[str, Value]:
    """Maps the name of each member, in the struct's order, to its value as C holds it; members that `given` lacks get
    their defaults. `fused`: the operator is fused into another one, and may lack tensors. Raises MemberError for an
    unknown member, a missing one without default, and a value that does not fit."""
    known = {member.name: member for member in schema.members}
    for name in given:
        if name not in known:
            raise MemberError((), f"{schema.struct} has no {_name(name)}{suggestion(str(name), known)}")
    values: dict[str, Value] = {}
    lengths: dict[str, int] = {}
    for member in schema.members:
        if member.name not in given:
            continue
        value, path = given[member.name], (member.name,)
        scalar = member.type == "scalar"
        read = _scalar(value, _given_type(schema, given), path) if scalar else _value(member, value, path)
        values[member.name] = read
        if member.count:
            lengths.setdefault(member.count, len(read) if isinstance(read, tuple) else 0)
    return {
        member.name: values[member.name] if member.name in values else _left_out(member, lengths, fused)
        for member in schema.members
    }


def _left_out(member: Member, lengths: Mapping[str, int], fused: bool) -> Value:
    if member.name in lengths:
        return lengths[member.name]
    if member.optional:
        return 0.0 if member.type == "float" else None
    if fused and member.type in _TENSORS:
        return None
    raise MemberError((member.name,), "is missing")


def data_type_of(schema: OperatorSchema, members: Mapping[str, object]) -> int | None:
    """Returns the data type (a DML_TENSOR_DATA_TYPE) of an operator's scalar members; None if `members` does not give
    it."""
    name = next(member.name for member in schema.members if member.enum == DATA_TYPE)
    return _enumerator(members[name], DATA_TYPE, (name,)) if name in members else None


def _given_type(schema: OperatorSchema, members: Mapping[str, object]) -> int:
    """Returns the data type (a DML_TENSOR_DATA_TYPE) of an operator's scalar members. Raises MemberError if `members`
    does not give it."""
    found = data_type_of(schema, members)
    if found is None:
        raise MemberError((next(member.name for member in schema.members if member.enum == DATA_TYPE),), "is missing")
    return found


def scalar_format(data_type: int | None) -> str:
    """Returns the `struct` format character of a scalar of this data type; "Q" for an unknown one."""
    name = next((name for name, number in enumerators(DATA_TYPE).items() if number == data_type), "")
    return SCALARS.get(name, "Q")


def _value(member: Member, value: object, path: Path) -> Value:
    if member.type == "tensor":
        return _tensor(value, path)
    if member.type == "enum":
        return _enumerator(value, member.enum, path)
    if member.type in _RANGES:
        return _integer(value, path, *_RANGES[member.type])
    if member.type == "float":
        return _float(value, path)
    if member.type == "operator":
        return None if value is None else _operator(value, path)
    if member.type == "scale-bias":
        return None if value is None else _pair(value, path, ("Scale", "Bias"), _float)
    if member.type == "size-2d":
        return _pair(value, path, ("Width", "Height"), lambda number, at: _integer(number, at, *_RANGES["uint"]))
    if value is None:
        return None
    items = [(item, (*path, i)) for i, item in enumerate(_items(value, path))]
    if member.type == "tensors":
        return tuple([_tensor(item, at) for item, at in items])
    if member.type == "operators":
        return tuple([_operator(item, at) for item, at in items])
    if member.type == "floats":
        return tuple([_float(item, at) for item, at in items])
    return tuple([_integer(item, at, *_RANGES[_ELEMENT[member.type]]) for item, at in items])


def _items(value: object, path: Path) -> Iterable[object]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise MemberError(path, f"expected an array or null, not {_shown(value)}")
    return value


def _tensor(value: object, path: Path) -> TensorDesc | None:
    if isinstance(value, BufferTensorDesc):
        return TensorDesc(TensorType.BUFFER, value)
    if value is None or isinstance(value, TensorDesc):
        return value
    raise MemberError(path, f"expected a tensor or null, not {_shown(value)}")


def _operator(value: object, path: Path) -> AnyOperatorDesc:
    if isinstance(value, AnyOperatorDesc):
        return value
    raise MemberError(path, f"expected an operator, not {_shown(value)}")


def _enumerator(value: object, enum: str, path: Path) -> int:
    if isinstance(value, str):
        values = enumerators(enum)
        number = values.get(value.removeprefix(f"{enum}_"))
        if number is None:
            raise MemberError(
                path, f"{_name(value)} is not a {enum}{suggestion(value.removeprefix(f'{enum}_'), values)}"
            )
        return number
    return _integer(value, path, *_RANGES["enum"])


def _integer(value: object, path: Path, low: int, high: int) -> int:
    if isinstance(value, bool) or (not isinstance(value, int) and hasattr(value, "__index__")):
        value = value.__index__()
    if not isinstance(value, int):
        raise MemberError(path, f"expected an integer, not {_shown(value)}")
    if not low <= value <= high:
        raise MemberError(path, f"{_shown(value)} is not in {low}..{high}")
    return int(value)


def _float(value: object, path: Path, format: str = "f") -> float:
    if isinstance(value, str) and value.lower() in _NAMED_FLOATS:
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MemberError(path, f"expected a number, not {_shown(value)}")
    try:
        number = float(value)
        struct.pack(f"<{format}", number)
    except OverflowError:
        raise MemberError(path, f"{_shown(value)} is out of the range of the member") from None
    return number


def _scalar(value: object, data_type: int | None, path: Path) -> Number:
    format = scalar_format(data_type)
    if format in "fed":
        return _float(value, path, format)
    bits = 8 * struct.calcsize(f"<{format}")
    low, high = (0, 2**bits - 1) if format.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return _integer(value, path, low, high)


def _pair(
    value: object, path: Path, names: tuple[str, str], read: Callable[[object, Path], Number]
) -> tuple[Number, Number]:
    if isinstance(value, Mapping):
        for name in value:
            if name not in names:
                raise MemberError(path, f"there is no {_name(name)}; {' and '.join(names)} are expected")
        for name in names:
            if name not in value:
                raise MemberError((*path, name), "is missing")
        first, second = (read(value[name], (*path, name)) for name in names)
        return first, second
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or len(value) != 2:
        raise MemberError(path, f"expected {' and '.join(names)}, not {_shown(value)}")
    return read(value[0], (*path, names[0])), read(value[1], (*path, names[1]))


def _name(value: object) -> str:
    """Returns a name from a file, shortened and printable, for messages."""
    return printable(str(value), 60)


def _shown(value: object) -> str:
    """Returns a value as short text for messages: null, a boolean, a number or a string as it is, anything else as the
    name of its type."""
    if value is None or isinstance(value, bool):
        return {None: "null", False: "false", True: "true"}[value]
    if isinstance(value, str):
        return f"'{printable(value, 60)}'"
    if isinstance(value, int) and not -(10**40) < value < 10**40:
        return "a number of more than 40 digits"
    return str(value) if isinstance(value, (int, float)) else type(value).__name__


def widened(desc: AnyOperatorDesc | OperatorDesc) -> tuple[OperatorSchema, Mapping[str, Value]]:
    """Returns the schema and the members (name to value) of any descriptor, Split and Join included.

    Raises MemberError, which names what is missing, if only the tensors of the operator are known; TypeError for
    anything but a descriptor.
    """
    if isinstance(desc, AnyOperatorDesc):
        desc = desc if desc.operator.whole else _whole(desc)
        return desc.operator, desc.members
    if isinstance(desc, SplitOperatorDesc):
        whole: dict[str, Value] = {"InputTensor": desc.input_tensor, "OutputCount": desc.output_count}
        return find_operator("SPLIT"), whole | {"OutputTensors": desc.output_tensors, "Axis": desc.axis}
    if isinstance(desc, JoinOperatorDesc):
        parts: dict[str, Value] = {"InputCount": desc.input_count, "InputTensors": desc.input_tensors}
        return find_operator("JOIN"), parts | {"OutputTensor": desc.output_tensor, "Axis": desc.axis}
    raise TypeError(f"{type(desc).__name__} is not a descriptor of an operator")


def _whole(desc: AnyOperatorDesc) -> AnyOperatorDesc:
    """Returns the descriptor with the operator's own schema in place of one with tensors only. Raises MemberError if
    its struct has other members than tensors, or the number is not an operator."""
    try:
        schema = find_operator(desc.type)
    except ValueError as unknown:
        raise MemberError(("Type",), str(unknown)) from None
    sides = {role: iter(desc.tensors(role)) for role in ("input", "output")}
    return AnyOperatorDesc(
        schema, {member.name: next(sides[member.role], None) for member in schema.members if member.type == "tensor"}
    )


def narrowed(desc: AnyOperatorDesc) -> AnyOperatorDesc | OperatorDesc:
    """Returns a SplitOperatorDesc for a Split and a JoinOperatorDesc for a Join; `desc` itself for any other operator,
    or if only its tensors are known."""
    members: Mapping[str, Any] = desc.members
    if not desc.operator.whole:
        return desc
    if desc.operator.name == "SPLIT":
        return SplitOperatorDesc(
            members["InputTensor"], members["OutputTensors"], members["Axis"], members["OutputCount"]
        )
    if desc.operator.name == "JOIN":
        return JoinOperatorDesc(
            members["InputTensors"], members["OutputTensor"], members["Axis"], members["InputCount"]
        )
    return desc
