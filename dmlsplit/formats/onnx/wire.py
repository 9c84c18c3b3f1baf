"""Counts the messages in the bytes of a model before protobuf makes objects of them, which are 50 times as large."""

from __future__ import annotations

import re
from functools import cache
from typing import Final, TypeAlias

import onnx

from dmlsplit.formats.limits import Limit, LimitError

Fields: TypeAlias = dict[int, "Fields"]
"""Maps the numbers of a message's submessage fields to the fields of the submessages."""

NOT_COUNTED: Final = "onnx.TypeProto"
"""Not counted, because a few bytes can hold many dimensions; the limit on ranks bounds them."""
_LENGTH_DELIMITED: Final = 2


def _key(*wire_types: int) -> bytes:
    """Returns an expression for the key of a field of these wire types."""
    last = "".join(f"\\x{byte:02x}" for byte in range(128) if byte & 7 in wire_types)
    first = "".join(f"\\x{byte:02x}" for byte in range(128, 256) if byte & 7 in wire_types)
    return rf"(?:[{last}]|[{first}][\x80-\xff]*+[\x00-\x7f])".encode()


_NUMBERS: Final = re.compile(
    rb"(?:%b[\x80-\xff]*+[\x00-\x7f]|%b.{8}|%b.{4}|%b)*+" % (_key(0), _key(1), _key(5), _key(3, 4, 6, 7)), re.DOTALL
)
"""Any number of fields that are numbers, and tags of groups: there may be as many as a file has bytes."""


def check_messages(data: bytes) -> None:
    """Raises LimitError if `data` has more protobuf messages than a model of that size may have, or more fields with a
    length. Data that is not protobuf passes."""
    most = Limit.ONNX_MESSAGES.of(len(data))
    if len(data) // 2 <= most:  # A message takes at least 2 bytes.
        return
    try:
        _count(data, most)
    except IndexError:  # The data ends inside a number.
        return


def _count(data: bytes, most: int) -> None:
    found, fields_left = 0, Limit.ONNX_FIELDS.most
    todo = [(0, len(data), _fields())]
    while todo:
        place, end, fields = todo.pop()
        while place < end:
            key = data[place]
            if key & 7 != _LENGTH_DELIMITED:
                skipped = _NUMBERS.match(data, place, end)
                assert skipped is not None  # it matches the empty string
                if skipped.end() == place:
                    break  # the data ends inside a number
                place = skipped.end()
                continue
            fields_left -= 1
            if fields_left < 0:
                raise LimitError(Limit.ONNX_FIELDS, Limit.ONNX_FIELDS.most)
            place += 1
            if key >= 128:
                key, place = _varint(data, place - 1)
            length = data[place]
            place += 1
            if length >= 128:
                length, place = _varint(data, place - 1)
            inside = fields.get(key >> 3)
            if inside is not None:
                found += 1
                if found > most:
                    raise LimitError(Limit.ONNX_MESSAGES, most)
                if length:
                    todo.append((place, min(place + length, end), inside))
            place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Returns the number encoded at offset `place`, and the offset of the byte after it. Raises IndexError at the end
    of the data."""
    byte = data[place]
    if byte < 128:
        return byte, place + 1
    number, shift = byte & 127, 7
    while byte >= 128:
        place += 1
        byte = data[place]
        number |= (byte & 127) << min(shift, 63)
        shift += 7
    return number, place + 1


@cache
def _fields() -> Fields:
    """Maps each field number of ModelProto that holds messages to the same kind of mapping for these messages; a
    message that contains itself, as graphs do, refers to the same mapping."""
    made: dict[str, Fields] = {}
    todo = [onnx.ModelProto.DESCRIPTOR]
    while todo:
        message = todo.pop()
        fields = made.setdefault(message.full_name, {})
        for field in message.fields:
            inside = field.message_type
            if inside is None or inside.full_name == NOT_COUNTED:
                continue
            if inside.full_name not in made:
                made[inside.full_name] = {}
                todo.append(inside)
            fields[field.number] = made[inside.full_name]
    return made[onnx.ModelProto.DESCRIPTOR.full_name]
