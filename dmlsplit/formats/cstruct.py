"""A descriptor in C memory, and back: DirectML.h's structs as a 64-bit program lays them out.

`write` makes the structs for a call through ctypes, cffi or an emulated device; `read` copies those that a C program
has built. Null pointers stand for None on both sides.

Source of the layouts: DirectML.h, member order; they are the same on x64 and ARM64.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final, TypeAlias, TypeVar

from dmlsplit.descriptors.descs import BufferTensorDesc, OperatorDesc, TensorDesc
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.descriptors.geometry import ROLES, descriptor_of, members_of
from dmlsplit.formats.limits import Limit
from dmlsplit.system.errors import DescriptorError

MAX_TENSOR_COUNT: Final = Limit.STRUCT_TENSORS.most
"""The largest OutputCount or InputCount of an array that is read or written; larger ones are taken for garbage."""
MAX_DIMENSION_COUNT: Final = Limit.STRUCT_DIMENSIONS.most
"""The largest DimensionCount of sizes or strides that are read or written."""

UINT, UINT64, POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


def struct_type(name: str, **members: type[object]) -> type[ctypes.Structure]:
    """The struct of that name, its members in their order."""
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
DML_SPLIT_OPERATOR_DESC = struct_type(
    "DML_SPLIT_OPERATOR_DESC", InputTensor=POINTER, OutputCount=UINT, OutputTensors=POINTER, Axis=UINT
)
DML_JOIN_OPERATOR_DESC = struct_type(
    "DML_JOIN_OPERATOR_DESC", InputCount=UINT, InputTensors=POINTER, OutputTensor=POINTER, Axis=UINT
)
_STRUCTS: Final = {OperatorType.SPLIT: DML_SPLIT_OPERATOR_DESC, OperatorType.JOIN: DML_JOIN_OPERATOR_DESC}


class CStruct:
    """The structs of one descriptor, with everything that they point to.

    The memory belongs to this object and is valid as long as it is referenced; the addresses keep nothing alive.
    """

    def __init__(self, type: OperatorType, desc: ctypes.Structure, memory: list[object]) -> None:
        self.type: Final = type
        self._operator = DML_OPERATOR_DESC(type, ctypes.addressof(desc))
        self._memory = (desc, memory)
        self.address: Final = ctypes.addressof(desc)
        """The address of the DML_SPLIT_OPERATOR_DESC or DML_JOIN_OPERATOR_DESC."""
        self.operator_desc_address: Final = ctypes.addressof(self._operator)
        """The address of a DML_OPERATOR_DESC of `type` that points to `address`."""


def write(desc: OperatorDesc) -> CStruct:
    """Writes a descriptor into fresh C memory, which the result owns.

    C knows no array lengths: of an array longer than its count only the counted entries are written. Raises
    DescriptorError, which names the member, for descriptors that have no form in C or would be read past the end of an
    array: sizes or strides shorter than DimensionCount, a count larger than its array, None inside the array of tensors
    (which holds structs, not pointers), a total size beyond 64 bits, a count above MAX_TENSOR_COUNT or
    MAX_DIMENSION_COUNT.
    """
    writer = _Writer()
    members = members_of(desc)
    roles = members.roles
    struct = _STRUCTS[members.kind](Axis=members.axis)
    setattr(struct, roles.parts, writer.tensors(members.array, members.part_count, roles.parts, roles.part_count))
    setattr(struct, roles.part_count, members.part_count)
    setattr(struct, roles.whole, writer.tensor(members.whole, roles.whole))
    return CStruct(members.kind, struct, writer.memory)


def read(address: int, type: OperatorType | None = None) -> OperatorDesc:
    """Reads the descriptor at an address of this process; everything is copied, no reference to the memory remains.

    `address` points to a DML_SPLIT_OPERATOR_DESC or DML_JOIN_OPERATOR_DESC, according to `type`; without `type` to a
    DML_OPERATOR_DESC. A tensor's Desc is read as a DML_BUFFER_TENSOR_DESC whatever its Type: there is no other kind.

    Raises DescriptorError, which names the member, for a null or misaligned address, a misaligned pointer, a count
    above MAX_TENSOR_COUNT or MAX_DIMENSION_COUNT of an array that is not null, and an operator other than Split and
    Join. Any other address is the caller's contract: this reads whatever is there, and memory that is not mapped ends
    the process.
    """
    if type is None:
        operator = _at(DML_OPERATOR_DESC, address, "DML_OPERATOR_DESC")
        number, address, name = operator.Type, operator.Desc or 0, "Desc"
    else:
        number, name = type, f"DML_{OperatorType(type).name}_OPERATOR_DESC"
    if number not in _STRUCTS:
        raise DescriptorError(f"Type: {int(number)} is neither DML_OPERATOR_SPLIT (62) nor DML_OPERATOR_JOIN (63)")
    kind = OperatorType(number)
    roles, struct = ROLES[kind], _at(_STRUCTS[kind], address, name)
    count = getattr(struct, roles.part_count)
    parts = _read_tensors(getattr(struct, roles.parts), count, roles.parts, roles.part_count)
    return descriptor_of(kind, _read_tensor(getattr(struct, roles.whole), roles.whole), parts, count, struct.Axis)


Address: TypeAlias = int | None
"""None is a null pointer, as ctypes has it."""

_T = TypeVar("_T")
_Struct = TypeVar("_Struct", bound=ctypes.Structure)


def _check_count(count: int, limit: int, path: str) -> None:
    if count > limit:
        raise DescriptorError(f"{path}: {count} is more than {limit}, the largest count that is read or written")


class _Writer:
    """Makes the parts of a descriptor; `memory` keeps everything alive whose address was used."""

    def __init__(self) -> None:
        self.memory: list[object] = []

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
        # An array without entries still is no null pointer.
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
            raise DescriptorError(f"{path}.TotalTensorSizeInBytes: the implied size does not fit a UINT64")
        sizes = self.uints(desc.sizes, count, f"{path}.Sizes", f"{path}.DimensionCount")
        strides = self.uints(desc.strides, count, f"{path}.Strides", f"{path}.DimensionCount")
        alignment = desc.guaranteed_base_offset_alignment
        return self._address(
            DML_BUFFER_TENSOR_DESC(desc.data_type, desc.flags, count, sizes, strides, total, alignment)
        )

    def uints(self, values: tuple[int, ...] | None, count: int, path: str, count_path: str) -> Address:
        covered = self._covered(values, count, MAX_DIMENSION_COUNT, path, count_path)
        return None if covered is None else self._address((ctypes.c_uint32 * max(count, 1))(*covered))

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
    """The address, which is not null."""
    if not address:
        raise DescriptorError(f"{path}: the address is null")
    if not 0 < address < 1 << 64:
        raise DescriptorError(f"{path}: {address:#x} is no 64-bit address")
    if address % alignment:
        raise DescriptorError(f"{path}: the address {address:#x} is not a multiple of {alignment}")
    return address


def _at(struct: type[_Struct], address: Address, path: str) -> _Struct:
    return struct.from_address(_checked(address, ctypes.alignment(struct), path))


def _read_tensor(address: Address, path: str) -> TensorDesc | None:
    if address is None:
        return None
    return _tensor(_at(DML_TENSOR_DESC, address, path), path)


def _tensor(struct: ctypes.Structure, path: str) -> TensorDesc:
    if struct.Desc is None:
        return TensorDesc(struct.Type, None)
    desc = _at(DML_BUFFER_TENSOR_DESC, struct.Desc, f"{path}.Desc")
    buffer = BufferTensorDesc(
        desc.DataType,
        _read_uints(desc.Sizes, desc.DimensionCount, f"{path}.Sizes", f"{path}.DimensionCount"),
        strides=_read_uints(desc.Strides, desc.DimensionCount, f"{path}.Strides", f"{path}.DimensionCount"),
        flags=desc.Flags,
        total_tensor_size_in_bytes=desc.TotalTensorSizeInBytes,
        guaranteed_base_offset_alignment=desc.GuaranteedBaseOffsetAlignment,
        dimension_count=desc.DimensionCount,
    )
    return TensorDesc(struct.Type, buffer)


def _read_tensors(address: Address, count: int, path: str, count_path: str) -> list[TensorDesc] | None:
    array = _array(DML_TENSOR_DESC, address, count, MAX_TENSOR_COUNT, path, count_path)
    return None if array is None else [_tensor(struct, f"{path}[{i}]") for i, struct in enumerate(array)]


def _read_uints(address: Address, count: int, path: str, count_path: str) -> list[int] | None:
    array = _array(UINT, address, count, MAX_DIMENSION_COUNT, path, count_path)
    return None if array is None else list(array)


def _array(
    kind: type[Any], address: Address, count: int, limit: int, path: str, count_path: str
) -> ctypes.Array[Any] | None:
    """The array at an address; None for a null pointer."""
    if address is None:
        return None
    _check_count(count, limit, count_path)
    array: ctypes.Array[Any] = (kind * count).from_address(_checked(address, ctypes.alignment(kind), path))
    return array
