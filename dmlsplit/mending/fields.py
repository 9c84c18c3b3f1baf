"""Finds and writes the fields of serialized messages without decoding their content.

Source of the encoding: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.system.errors import InputError

Buffer: TypeAlias = bytes | mmap.mmap

VARINT: Final = 0
LENGTH_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}
"""The size in bytes of a fixed-size field, by wire type."""
_GROUP, _GROUP_END = 3, 4
_MOST_BYTES: Final = 10
"""The most bytes of a varint."""


class Field(NamedTuple):
    """One field: its number and wire type, the offset of its key, and the offsets at which its content begins and
    ends."""

    number: int
    kind: int
    start: int
    content: int
    end: int

    def is_message(self, number: int) -> bool:
        """True if the field has this number and the wire type of a message (length-delimited)."""
        return self.number == number and self.kind == LENGTH_DELIMITED


class Span(NamedTuple):
    """Bytes of the source, from `start` up to `end`."""

    start: int
    end: int


Part: TypeAlias = Span | bytes
"""A part of a file to write: a range of the source, or new bytes."""


def fields(data: Buffer, start: int, end: int) -> Iterator[Field]:
    """Yields the fields of a message between two byte offsets; a group is one field. Raises InputError if the bytes are
    not a message."""
    place = start
    while place < end:
        found = _field(data, place, end)
        if found.kind == _GROUP:
            found = found._replace(end=_end_of_group(data, found, end))
        elif found.kind == _GROUP_END:
            raise InputError(f"it is not an ONNX model: byte {place} ends a group that has not begun")
        yield found
        place = found.end


def messages(data: Buffer, start: int, end: int, number: int) -> Iterator[Field]:
    """Yields the fields with this number and the wire type of a message, between two byte offsets. A field with another
    wire type is skipped: a parser treats it as unknown."""
    return (field for field in fields(data, start, end) if field.is_message(number))


def _field(data: Buffer, place: int, end: int) -> Field:
    """Returns the field at byte offset `place`; of a group only its key. Raises InputError if it is malformed or ends
    after `end`."""
    key, content = varint(data, place, end)
    kind = key & 7
    if kind == LENGTH_DELIMITED:
        length, content = varint(data, content, end)
        stop = content + length
    elif kind == VARINT:
        _, stop = varint(data, content, end)
    elif kind in _FIXED:
        stop = content + _FIXED[kind]
    elif kind in (_GROUP, _GROUP_END):
        stop = content
    else:
        raise InputError(f"it is not an ONNX model: byte {place} does not begin a field")
    if stop > end:
        raise InputError(f"it is not an ONNX model: the field at byte {place} ends after its message")
    return Field(key >> 3, kind, place, content, stop)


def _end_of_group(data: Buffer, group: Field, end: int) -> int:
    """Returns the byte offset after the key that ends a group, which may contain other groups. Raises InputError if it
    does not end before `end`."""
    open_groups = [group.number]
    place = group.end
    while open_groups:
        if place >= end:
            raise InputError(f"it is not an ONNX model: the group at byte {group.start} has no end")
        inner = _field(data, place, end)
        if inner.kind == _GROUP:
            open_groups.append(inner.number)
        elif inner.kind == _GROUP_END and open_groups.pop() != inner.number:
            raise InputError(f"it is not an ONNX model: byte {place} ends a group other than the current one")
        place = inner.end
    return place


def varint(data: Buffer, place: int, end: int) -> tuple[int, int]:
    """Returns the varint at a byte offset, and the offset after it. Raises InputError if it exceeds `end`."""
    number = 0
    for shift in range(_MOST_BYTES):
        if place >= end:
            break
        byte = data[place]
        place += 1
        number |= (byte & 127) << 7 * shift
        if byte < 128:
            return number, place
    raise InputError(f"it is not an ONNX model: the number before byte {place} has no end")


def encoded(number: int) -> bytes:
    """Returns an integer as the bytes of a varint; a negative one takes 64 bits of two's complement."""
    number %= 1 << 64
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def integer(number: int, value: int) -> bytes:
    """Returns the bytes of field `number` with the integer `value`."""
    return encoded(number << 3 | VARINT) + encoded(value)


def message(number: int, parts: Iterable[Part]) -> list[Part]:
    """Returns the parts of field `number` with a message whose content is `parts`."""
    inside = list(parts)
    return [encoded(number << 3 | LENGTH_DELIMITED) + encoded(size_of(inside)), *inside]


def size_of(parts: Iterable[Part]) -> int:
    """Returns the total size of the parts in bytes."""
    return sum(part.end - part.start if isinstance(part, Span) else len(part) for part in parts)


def joined(parts: Iterable[Part]) -> list[Part]:
    """Returns parts with the same bytes, adjacent ones merged and empty ones dropped."""
    found: list[Part] = []
    new: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            new.append(part)
            continue
        if part.start == part.end:
            continue
        if any(new):
            found.append(b"".join(new))
        new.clear()
        last = found[-1] if found else None
        if isinstance(last, Span) and last.end == part.start:
            found[-1] = Span(last.start, part.end)
        else:
            found.append(part)
    return [*found, b"".join(new)] if any(new) else found
