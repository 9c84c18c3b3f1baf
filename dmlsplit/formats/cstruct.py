"""A descriptor in C memory, and back: DirectML.h's structs as a 64-bit program lays them out.

`write` builds the structs for a call through ctypes, cffi or an emulated device; `read` copies structs that a C program
has built. Null pointers correspond to None.

Source of the layouts: DirectML.h, member order; they are the same on x64 and ARM64.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

from dmlsplit.descriptors.any_operator import AnyOperatorDesc, data_type_of, narrowed, scalar_format, widened
from dmlsplit.descriptors.descs import BufferTensorDesc, OperatorDesc, TensorDesc
from dmlsplit.descriptors.schema import Member, OperatorSchema, find_operator
from dmlsplit.formats.limits import Limit
from dmlsplit.system.errors import DescriptorError

MAX_TENSOR_COUNT: Final = Limit.STRUCT_TENSORS.most
"""The largest OutputCount or InputCount of an array that is read or written; larger counts are taken for garbage."""
MAX_DIMENSION_COUNT: Final = Limit.STRUCT_DIMENSIONS.most
"""The largest count of numbers (such as DimensionCount) that is read or written."""
MAX_FUSED: Final = Limit.STRUCT_FUSED.most
"""The deepest nesting of fused operators that is read."""

UINT, UINT64, POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


def struct_type(name: str, **members: type[object]) -> type[ctypes.Structure]:
    """Returns a new ctypes.Structure subclass called `name`, with `members` (name to ctypes type) in their order."""
    return type(name, (ctypes.Structure,), {"_fields_": tuple(members.items())})


DML_TENSOR_DESC = struct_type("DML_TENSOR_DESC", Type=UINT, Desc=POINTER)
DML_BUFFER_TENSOR_DESC = struct_type(
    "DML_BUFFER_TENSOR_DESC",
    DataType=UINT,
    Flags=UINT,
    DimensionCount=UINT,
    Sizes=POINTER,
    Strides=POINTER,
    TotalTensorSizeInBytes=UINT64,
    GuaranteedBaseOffsetAlignment=UINT,
)
DML_OPERATOR_DESC = struct_type("DML_OPERATOR_DESC", Type=UINT, Desc=POINTER)
DML_SIZE_2D = struct_type("DML_SIZE_2D", Width=UINT, Height=UINT)
_LAYOUTS: Final[Mapping[str, type[Any]]] = {
    "uint": UINT,
    "bool": UINT,
    "enum": UINT,
    "int": ctypes.c_int32,
    "float": ctypes.c_float,
    "uint64": UINT64,
    "scalar": UINT64,
    "size-2d": DML_SIZE_2D,
}
"""The types of members held by value; all others are pointers."""
_ELEMENTS: Final[Mapping[str, type[Any]]] = {"uints": UINT, "ints": ctypes.c_int32, "floats": ctypes.c_float}


@cache
def operator_struct(name: str | int) -> type[ctypes.Structure]:
    """Returns the ctypes struct of an operator, given by its name or DML_OPERATOR_TYPE number: DML_GEMM_OPERATOR_DESC
    for "GEMM"."""
    schema = find_operator(name)
    return struct_type(schema.struct, **{member.name: _LAYOUTS.get(member.type, POINTER) for member in schema.members})


class CStruct:
    """The structs of one descriptor, with everything that they point to.

    The memory belongs to this object and is valid as long as the object is referenced; addresses do not keep it alive.
    """

    def __init__(self, operator: ctypes.Structure, memory: list[object]) -> None:
        self._operator = operator
        self._memory = memory
        self.type: Final[int] = operator.Type
        """The DML_OPERATOR_TYPE."""
        self.address: Final[int] = operator.Desc
        """The address of the operator's own struct: DML_SPLIT_OPERATOR_DESC of a Split."""
        self.operator_desc_address: Final = ctypes.addressof(operator)
        """The address of a DML_OPERATOR_DESC of `type` that points to `address`."""


def write(desc: AnyOperatorDesc | OperatorDesc) -> CStruct:
    """Returns the structs of a descriptor of any operator in fresh C memory, which the result owns.

    C arrays have no length: if an array is longer than its count, only the counted entries are written. Raises
    DescriptorError, which names the member, for descriptors that cannot be expressed in C or would make C read past the
    end of an array: an array shorter than its count, None inside an array of tensors (which holds structs, not
    pointers), a total size beyond 64 bits, a count above MAX_TENSOR_COUNT or MAX_DIMENSION_COUNT, a descriptor whose
    members are not all known.
    """
    writer = _Writer()
    return CStruct(writer.operator(*widened(desc), ""), writer.memory)


def read(address: int, type: int | None = None) -> AnyOperatorDesc | OperatorDesc:
    """Returns the descriptor at an address of this process; everything is copied, no reference to the memory remains.

    `address` points to the struct of an operator of DML_OPERATOR_TYPE `type`; without `type` to a DML_OPERATOR_DESC. A
    tensor's Desc is read as a DML_BUFFER_TENSOR_DESC whatever its Type is, because there is no other kind. The result
    is a SplitOperatorDesc, a JoinOperatorDesc or an AnyOperatorDesc.

    Raises DescriptorError, which names the member, for a null or misaligned address, a misaligned pointer, a count
    above MAX_TENSOR_COUNT or MAX_DIMENSION_COUNT of an array that is not null, a number that is not an operator's, and
    operators fused more than MAX_FUSED deep. Any other address is the caller's responsibility: this reads whatever is
    there, and unmapped memory ends the process.
    """
    if type is not None:
        return narrowed(_read_members(_schema(type, "Type"), address, None, "", 0))
    return narrowed(_read_operator(_at(DML_OPERATOR_DESC, address, "DML_OPERATOR_DESC"), "", 0))


Address: TypeAlias = int | None
"""None is a null pointer, as in ctypes."""

_T = TypeVar("_T")
_Struct = TypeVar("_Struct", bound=ctypes.Structure)


def _check_count(count: int, limit: int, path: str) -> None:
    if count > limit:
        raise DescriptorError(f"{path}: {count} is more than {limit}, the largest count that is read or written")


class _Writer:
    """Builds the structs of a descriptor; `memory` keeps alive everything whose address was used."""

    def __init__(self) -> None:
        self.memory: list[object] = []

    def operator(self, schema: OperatorSchema, members: Mapping[str, Any], path: str) -> ctypes.Structure:
        """Returns a DML_OPERATOR_DESC that points to a new struct of operator `schema` filled from `members` (name to
        value). `path` is the prefix of members' names in errors. Raises DescriptorError for a member that cannot be
        expressed in C."""
        made = operator_struct(schema.number)()
        for member in schema.members:
            count = members[member.count] if member.count else 0
            value = self._member(schema, members, member, count, f"{path}{member.name}", f"{path}{member.count}")
            setattr(made, member.name, value)
        return DML_OPERATOR_DESC(schema.number, self._address(made))

    def _member(
        self, schema: OperatorSchema, members: Mapping[str, Any], member: Member, count: int, path: str, count_path: str
    ) -> Any:
        """Returns the value that the struct stores for a member: a number, a small struct, an address, or None for a
        null pointer. `path` and `count_path` name the member and its count in errors."""
        value = members[member.name]
        if member.type == "size-2d":
            return DML_SIZE_2D(*value)
        if member.type == "scalar":
            packed = struct.pack(f"<{scalar_format(data_type_of(schema, members))}", value)
            return int.from_bytes(packed, "little")
        if member.type in _LAYOUTS or value is None:
            return value
        if member.type == "tensor":
            return self.tensor(value, path)
        if member.type == "tensors":
            return self.tensors(value, count, path, count_path)
        if member.type == "operator":
            return self._address(self.operator(*widened(value), f"{path}.Desc."))
        if member.type == "operators":
            return self._operators(self._covered(value, count, MAX_TENSOR_COUNT, path, count_path) or (), path)
        if member.type == "scale-bias":
            return self._address((ctypes.c_float * 2)(*value))
        return self._numbers(_ELEMENTS[member.type], value, count, path, count_path)

    def _operators(self, descs: Sequence[AnyOperatorDesc], path: str) -> int:
        array = (DML_OPERATOR_DESC * max(len(descs), 1))()
        for i, desc in enumerate(descs):
            array[i] = self.operator(*widened(desc), f"{path}[{i}].Desc.")
        return self._address(array)

    def _address(self, data: ctypes.Structure | ctypes.Array[Any]) -> int:
        self.memory.append(data)
        return ctypes.addressof(data)

    def tensor(self, tensor: TensorDesc | None, path: str) -> Address:
        if tensor is None:
            return None
        return self._address(DML_TENSOR_DESC(tensor.type, self.buffer_tensor(tensor.desc, path)))

    def tensors(self, tensors: tuple[TensorDesc | None, ...] | None, count: int, path: str, count_path: str) -> Address:
        covered = self._covered(tensors, count, MAX_TENSOR_COUNT, path, count_path)
        if covered is None:
            return None
        # An empty array is still not a null pointer.
        array = (DML_TENSOR_DESC * max(count, 1))()
        for i, tensor in enumerate(covered):
            if tensor is None:
                raise DescriptorError(f"{path}[{i}]: null cannot be written; the array holds structs, not pointers")
            array[i] = DML_TENSOR_DESC(tensor.type, self.buffer_tensor(tensor.desc, f"{path}[{i}]"))
        return self._address(array)

    def buffer_tensor(self, desc: BufferTensorDesc | None, path: str) -> Address:
        if desc is None:
            return None
        total, count = desc.total_tensor_size_in_bytes, desc.dimension_count
        if total is None:
            raise DescriptorError(f"{path}.TotalTensorSizeInBytes: the implied size does not fit into a UINT64")
        sizes = self._numbers(UINT, desc.sizes, count, f"{path}.Sizes", f"{path}.DimensionCount")
        strides = self._numbers(UINT, desc.strides, count, f"{path}.Strides", f"{path}.DimensionCount")
        alignment = desc.guaranteed_base_offset_alignment
        return self._address(
            DML_BUFFER_TENSOR_DESC(desc.data_type, desc.flags, count, sizes, strides, total, alignment)
        )

    def _numbers(
        self, kind: type[Any], values: tuple[float, ...] | None, count: int, path: str, count_path: str
    ) -> Address:
        covered = self._covered(values, count, MAX_DIMENSION_COUNT, path, count_path)
        return None if covered is None else self._address((kind * max(count, 1))(*covered))

    @staticmethod
    def _covered(
        values: tuple[_T, ...] | None, count: int, limit: int, path: str, count_path: str
    ) -> tuple[_T, ...] | None:
        if values is None:
            return None
        if count > len(values):
            raise DescriptorError(f"{path}: {len(values)} entries, but {count_path} is {count}")
        _check_count(count, limit, count_path)
        return values[:count]


def _checked(address: Address, alignment: int, path: str) -> int:
    """Returns `address`. Raises DescriptorError, which names the member `path`, if it is null, has more than 64 bits,
    or is not a multiple of `alignment` bytes."""
    if not address:
        raise DescriptorError(f"{path}: the address is null")
    if not 0 < address < 1 << 64:
        raise DescriptorError(f"{path}: {address:#x} is not a 64-bit address")
    if address % alignment:
        raise DescriptorError(f"{path}: the address {address:#x} is not a multiple of {alignment}")
    return address


def _at(layout: type[_Struct], address: Address, path: str) -> _Struct:
    return layout.from_address(_checked(address, ctypes.alignment(layout), path))


def _schema(number: int, path: str) -> OperatorSchema:
    try:
        return find_operator(number)
    except ValueError as unknown:
        raise DescriptorError(f"{path}: {unknown}") from None


def _read_operator(operator: ctypes.Structure, path: str, depth: int) -> AnyOperatorDesc:
    """Returns the descriptor that a DML_OPERATOR_DESC points to. `path` is the prefix of members' names in errors;
    `depth` is the number of operators that this one is fused into: raises DescriptorError if it is above MAX_FUSED."""
    if depth > MAX_FUSED:
        raise DescriptorError(f"{path.removesuffix('.')}: more than {MAX_FUSED} nested fused operators")
    schema = _schema(operator.Type, f"{path}Type")
    return _read_members(schema, operator.Desc or 0, f"{path}Desc", f"{path}Desc." if path else "", depth)


def _read_members(schema: OperatorSchema, address: int, name: str | None, path: str, depth: int) -> AnyOperatorDesc:
    """Returns the descriptor that is read from the operator's struct at `address`. In errors, `name` names the pointer
    (None: the struct's name is used) and `path` is the prefix of members' names."""
    found = _at(operator_struct(schema.number), address, name or schema.struct)
    members: dict[str, object] = {}
    for member in schema.members:
        count = getattr(found, member.count) if member.count else 0
        value, place, count_place = getattr(found, member.name), f"{path}{member.name}", f"{path}{member.count}"
        if member.type == "size-2d":
            value = (value.Width, value.Height)
        elif member.type == "scalar":
            format = f"<{scalar_format(data_type_of(schema, members))}"
            (value,) = struct.unpack_from(format, value.to_bytes(8, "little"))
        elif member.type not in _LAYOUTS and value is not None:
            value = _pointed_to(member, value, count, place, count_place, depth)
        members[member.name] = value
    return AnyOperatorDesc(schema, members)


def _pointed_to(member: Member, address: int, count: int, path: str, count_path: str, depth: int) -> object:
    """Returns what a member's pointer, which is not null, points to: a tensor, an operator, a scale and bias, or a
    list of `count` entries. Raises DescriptorError, naming `path` or `count_path`, if it cannot be read."""
    if member.type == "tensor":
        return _tensor(_at(DML_TENSOR_DESC, address, path), path)
    if member.type == "operator":
        return _read_operator(_at(DML_OPERATOR_DESC, address, path), f"{path}.", depth + 1)
    if member.type == "scale-bias":
        return tuple(_array(ctypes.c_float, address, 2, 2, path, path) or ())
    if member.type == "tensors":
        tensors = _array(DML_TENSOR_DESC, address, count, MAX_TENSOR_COUNT, path, count_path)
        return [_tensor(each, f"{path}[{i}]") for i, each in enumerate(tensors or ())]
    if member.type == "operators":
        operators = _array(DML_OPERATOR_DESC, address, count, MAX_TENSOR_COUNT, path, count_path)
        return [_read_operator(each, f"{path}[{i}].", depth + 1) for i, each in enumerate(operators or ())]
    return _numbers(_ELEMENTS[member.type], address, count, path, count_path)


def _tensor(found: ctypes.Structure, path: str) -> TensorDesc:
    if found.Desc is None:
        return TensorDesc(found.Type, None)
    desc = _at(DML_BUFFER_TENSOR_DESC, found.Desc, f"{path}.Desc")
    buffer = BufferTensorDesc(
        desc.DataType,
        _numbers(UINT, desc.Sizes, desc.DimensionCount, f"{path}.Sizes", f"{path}.DimensionCount"),
        strides=_numbers(UINT, desc.Strides, desc.DimensionCount, f"{path}.Strides", f"{path}.DimensionCount"),
        flags=desc.Flags,
        total_tensor_size_in_bytes=desc.TotalTensorSizeInBytes,
        guaranteed_base_offset_alignment=desc.GuaranteedBaseOffsetAlignment,
        dimension_count=desc.DimensionCount,
    )
    return TensorDesc(found.Type, buffer)


def _numbers(kind: type[Any], address: Address, count: int, path: str, count_path: str) -> list[int] | None:
    array = _array(kind, address, count, MAX_DIMENSION_COUNT, path, count_path)
    return None if array is None else list(array)


def _array(
    kind: type[Any], address: Address, count: int, limit: int, path: str, count_path: str
) -> ctypes.Array[Any] | None:
    """Returns a view of the `count` entries of type `kind` at `address`, or None if the address is null. Raises
    DescriptorError if `count` exceeds `limit` or the address is misaligned."""
    if address is None:
        return None
    _check_count(count, limit, count_path)
    array: ctypes.Array[Any] = (kind * count).from_address(_checked(address, ctypes.alignment(kind), path))
    return array
