"""The ranges of buffers that a program binds, as DML_BINDING_DESC describes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from dmlsplit.descriptors.descs import _uint
from dmlsplit.descriptors.enums import BindingType
from dmlsplit.descriptors.location import Location
from dmlsplit.native.buffer import Buffer
from dmlsplit.rules import BindingSlot, BindingView, BufferRange


@dataclass(frozen=True, slots=True, init=False)
class BufferBinding:
    """DML_BUFFER_BINDING: a range of a buffer, in bytes. `buffer` None is a null pointer.

    The size defaults to the rest of the buffer. Raises DescriptorError if a number does not fit a UINT64.
    """

    buffer: Buffer | None
    offset: int
    size_in_bytes: int

    def __init__(self, buffer: Buffer | None, offset: int = 0, size_in_bytes: int | None = None) -> None:
        if buffer is not None and not isinstance(buffer, Buffer):
            raise TypeError(f"Buffer: {type(buffer).__name__} is neither a Buffer nor None")
        object.__setattr__(self, "buffer", buffer)
        object.__setattr__(self, "offset", _uint(offset, "Offset", 64))
        if size_in_bytes is None:
            size_in_bytes = 0 if buffer is None else max(0, buffer.size_in_bytes - self.offset)
        object.__setattr__(self, "size_in_bytes", _uint(size_in_bytes, "SizeInBytes", 64))

    @property
    def range(self) -> BufferRange:
        size = None if self.buffer is None else self.buffer.size_in_bytes
        return BufferRange(size, self.offset, self.size_in_bytes)


NOTHING = BufferBinding(None)
"""{NULL, 0, 0}: an array entry that binds nothing."""


@dataclass(frozen=True, slots=True, init=False)
class BufferArrayBinding:
    """DML_BUFFER_ARRAY_BINDING: one entry for each input of an operator to initialize.

    None stands for {NULL, 0, 0}, which is right for inputs that are not OWNED_BY_DML.
    """

    bindings: tuple[BufferBinding, ...]

    def __init__(self, bindings: Iterable[BufferBinding | None]) -> None:
        entries = tuple([NOTHING if entry is None else entry for entry in bindings])
        for i, entry in enumerate(entries):
            if not isinstance(entry, BufferBinding):
                raise TypeError(f"Bindings[{i}]: {type(entry).__name__} is neither a BufferBinding nor None")
        object.__setattr__(self, "bindings", entries)


@dataclass(frozen=True, slots=True, init=False)
class BindingDesc:
    """DML_BINDING_DESC, for bindings that the short forms cannot express: a Type that does not match its Desc, a null
    Desc.

    DirectML reads Desc as Type says; the emulation recognizes a Desc of the wrong kind and reports an error.
    """

    type: int
    desc: BufferBinding | BufferArrayBinding | None

    def __init__(self, type: int, desc: BufferBinding | BufferArrayBinding | None = None) -> None:
        if desc is not None and not isinstance(desc, (BufferBinding, BufferArrayBinding)):
            raise TypeError(f"Desc: {desc!r} is neither a BufferBinding, a BufferArrayBinding nor None")
        object.__setattr__(self, "type", _uint(type, "Type"))
        object.__setattr__(self, "desc", desc)
        kind = {BindingType.BUFFER: BufferArrayBinding, BindingType.BUFFER_ARRAY: BufferBinding}.get(self.type)  # type: ignore[call-overload]
        if kind is not None and isinstance(desc, kind):
            raise TypeError(f"Desc: a {kind.__name__} is read as another struct because Type is {self.type}")

    @property
    def ranges(self) -> tuple[BufferBinding, ...]:
        """The buffer ranges: a tuple of one for BUFFER, the entries for BUFFER_ARRAY, () for a null Desc."""
        if isinstance(self.desc, BufferArrayBinding):
            return self.desc.bindings
        return () if self.desc is None else (self.desc,)

    def view(self, location: Location, slot: BindingSlot) -> BindingView:
        ranges = tuple([binding.range for binding in self.ranges])
        return BindingView(location, slot, self.type, self.desc is None, ranges)


Binding: TypeAlias = BindingDesc | BufferBinding | BufferArrayBinding | Buffer | BindingType | None
"""What callers may pass as a binding: None is of type NONE, with a null Desc; a Buffer is bound as a whole."""


def binding_desc(value: Binding, location: Location) -> BindingDesc:
    """Returns the DML_BINDING_DESC that a short form stands for. Raises TypeError, which names `location`, for anything
    else."""
    if isinstance(value, BindingDesc):
        return value
    if value is None or (isinstance(value, BindingType) and value is BindingType.NONE):
        return BindingDesc(BindingType.NONE)
    if isinstance(value, Buffer):
        value = BufferBinding(value)
    if isinstance(value, BufferBinding):
        return BindingDesc(BindingType.BUFFER, value)
    if isinstance(value, BufferArrayBinding):
        return BindingDesc(BindingType.BUFFER_ARRAY, value)
    raise TypeError(f"{location}: {type(value).__name__} is not a binding")
