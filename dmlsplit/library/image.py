"""A descriptor as memory that DirectML reads: blocks of bytes with pointers between them.

The layout is that of x86-64. Every struct and every array is a separate block.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc, data_type_of, scalar_format, widened
from dmlsplit.descriptors.descs import BufferTensorDesc, OperatorDesc, TensorDesc
from dmlsplit.descriptors.schema import Member, OperatorSchema

POINTER: Final = 8
_NUMBERS: Final = {"uint": "I", "uint64": "Q", "int": "i", "bool": "I", "enum": "I", "float": "f"}
_ARRAYS: Final = {"uints": "I", "ints": "i", "floats": "f"}


class Image:
    """Blocks of memory; the first one is the DML_OPERATOR_DESC."""

    def __init__(self, desc: AnyOperatorDesc | OperatorDesc) -> None:
        self._blocks: list[tuple[bytearray, list[tuple[int, int]]]] = []
        self._operators([desc])

    def words(self) -> str:
        """Returns the image as text in the form of harness/wire.h."""
        found = [str(len(self._blocks))]
        for data, links in self._blocks:
            found += (data.hex() or "-", str(len(links)))
            found += [f"{offset} {block}" for offset, block in links]
        return " ".join(found)

    def _new(self) -> tuple[int, _Struct]:
        data, links = bytearray(), list[tuple[int, int]]()
        self._blocks.append((data, links))
        return len(self._blocks) - 1, _Struct(data, links)

    def _packed(self, format: str, values: Sequence[Any]) -> int:
        self._blocks.append((bytearray(struct.pack(f"<{len(values)}{format}", *values)), []))
        return len(self._blocks) - 1

    def _operators(self, descs: Iterable[AnyOperatorDesc | OperatorDesc]) -> int:
        """Adds an array of DML_OPERATOR_DESC to the image, and returns its block's number."""
        block, array = self._new()
        for desc in descs:
            schema, members = widened(desc)
            array.number("I", schema.number, POINTER)
            array.pointer(self._operator_desc(schema, members))
        return block

    def _operator_desc(self, schema: OperatorSchema, members: Mapping[str, Any]) -> int:
        """Adds an operator's own struct to the image, and returns its block's number."""
        block, out = self._new()
        scalar = ""
        for member in schema.members:
            value = members[member.name]
            if member.type in _NUMBERS:
                out.number(_NUMBERS[member.type], value)
            elif member.type == "size-2d":
                for number in value:
                    out.number("I", number)
            elif member.type == "scalar":
                scalar = scalar or scalar_format(data_type_of(schema, members))
                out.align(POINTER)
                out.data += struct.pack(f"<{scalar}", value).ljust(POINTER, b"\0")
            else:
                out.pointer(None if value is None else self._pointed_to(member, value))
        out.align(out.alignment)
        return block

    def _pointed_to(self, member: Member, value: Any) -> int:
        if member.type in _ARRAYS:
            return self._packed(_ARRAYS[member.type], value)
        if member.type == "scale-bias":
            return self._packed("f", value)
        if member.type in ("operator", "operators"):
            return self._operators([value] if member.type == "operator" else value)
        if member.type == "tensor":
            return self._tensors({member.name: value})
        return self._tensors({f"{member.name}[{i}]": tensor for i, tensor in enumerate(value)})

    def _tensors(self, tensors: Mapping[str, TensorDesc | None]) -> int:
        """Adds an array of DML_TENSOR_DESC to the image, and returns its block's number; the keys name the tensors in
        errors. Raises ValueError for a null entry."""
        block, array = self._new()
        for name, tensor in tensors.items():
            if tensor is None:
                raise ValueError(f"{name}: an array holds its tensors by value: an entry cannot be null")
            array.number("I", int(tensor.type), POINTER)
            array.pointer(None if tensor.desc is None else self._buffer_tensor(tensor.desc, name))
        return block

    def _buffer_tensor(self, desc: BufferTensorDesc, name: str) -> int:
        if desc.total_tensor_size_in_bytes is None:
            raise ValueError(f"{name}.TotalTensorSizeInBytes: the size of this tensor does not fit into a UINT64")
        block, out = self._new()
        for number in (int(desc.data_type), int(desc.flags), desc.dimension_count):
            out.number("I", number)
        for numbers in (desc.sizes, desc.strides):
            out.pointer(None if numbers is None else self._packed("I", numbers))
        out.number("Q", desc.total_tensor_size_in_bytes)
        out.number("I", desc.guaranteed_base_offset_alignment)
        out.align(POINTER)
        return block


class _Struct:
    """A block under construction; each member is aligned to its size."""

    def __init__(self, data: bytearray, links: list[tuple[int, int]]) -> None:
        self.data = data
        self._links = links
        self.alignment = 1

    def align(self, alignment: int) -> None:
        self.alignment = max(self.alignment, alignment)
        self.data.extend(bytes(-len(self.data) % alignment))

    def number(self, format: str, value: Any, alignment: int = 0) -> None:
        self.align(alignment or struct.calcsize(f"<{format}"))
        self.data.extend(struct.pack(f"<{format}", value))

    def pointer(self, block: int | None) -> None:
        self.align(POINTER)
        if block is not None:
            self._links.append((len(self.data), block))
        self.data.extend(bytes(POINTER))


def image(desc: AnyOperatorDesc | OperatorDesc) -> str:
    """Returns a descriptor as text in the form of harness/wire.h. Raises ValueError for a descriptor without an image:
    a null entry in an array of tensors, a total size beyond 64 bits."""
    return Image(desc).words()
