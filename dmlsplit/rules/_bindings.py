"""Rules about bindings, and what they check: one DML_BINDING_DESC."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from dmlsplit.descriptors.enums import BindingType
from dmlsplit.descriptors.location import Location
from dmlsplit.rules._model import CheckedRule, Findings
from dmlsplit.system.records import entity


class BufferRange(NamedTuple):
    """A DML_BUFFER_BINDING; all sizes are in bytes. `buffer_size` None: the Buffer is a null pointer."""

    buffer_size: int | None
    offset: int
    size_in_bytes: int

    @property
    def is_empty(self) -> bool:
        return self.buffer_size is None and self.offset == 0 and self.size_in_bytes == 0

    @property
    def wrapped_end(self) -> int:
        """The end of the range, in bytes, as a build computes it in 64 bits."""
        return (self.offset + self.size_in_bytes) % 2**64


class SlotKind(enum.Enum):
    """The resource that a slot of a binding table takes."""

    BUFFER = "a buffer"
    ARRAY = "an array of buffers"
    NOTHING = "nothing"
    NO_CALL = "not even nothing"
    """Any binding, even an empty one, removes the device."""


class BindingSlot(NamedTuple):
    """A slot of a binding table, and the resource that it requires."""

    tensor: str
    """The name in messages: a tensor's name, "the persistent resource" and the like."""
    kind: SlotKind
    size: int = 0
    """The smallest size of a buffer in bytes; `size_name` is the name of that size."""
    size_name: str = "TotalTensorSizeInBytes"
    alignment: int = 1
    """A buffer's offset must be a multiple of this many bytes."""
    why: str = ""
    """For NOTHING: why nothing may be bound here."""
    entries: tuple[BindingSlot, ...] = ()
    """The slots of an array's entries."""
    misreads_array: bool = False
    """True if a BUFFER_ARRAY without entries is accepted as nothing here, and then read as a DML_BUFFER_BINDING."""


class BindingView(NamedTuple):
    """One DML_BINDING_DESC under judgement, or an entry of an array."""

    location: Location
    slot: BindingSlot
    type: int
    is_null: bool
    """True if Desc is a null pointer."""
    ranges: tuple[BufferRange, ...]
    """One range for BUFFER, those of the array for BUFFER_ARRAY."""

    @property
    def range(self) -> BufferRange | None:
        """The bound range, if the slot takes a buffer and one is bound; otherwise None."""
        if self.slot.kind is not SlotKind.BUFFER or self.type != BindingType.BUFFER or self.is_null:
            return None
        return None if self.ranges[0].buffer_size is None else self.ranges[0]


@entity
class BindingRule(CheckedRule):
    """A rule about one DML_BINDING_DESC."""

    outcome: str = "the device is removed"

    def __call__(self, check: Callable[[BindingView], Findings]) -> BindingRule:
        return replace(self, check=check)
