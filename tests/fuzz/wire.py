"""Changes of serialized messages that no library writes: groups, other wire types, lengths and numbers that are wrong
or longer than they need be, fields in pieces, repeated or in another order."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor import Descriptor

VARINT, EIGHT, TEXT, GROUP, END, FOUR = range(6)
_SIZES: Final = {EIGHT: 8, FOUR: 4}


@dataclass
class Piece:
    """One field of a message; `inside`: the fields of a message in it, which then has no content of its own."""

    number: int
    kind: int
    content: bytes = b""
    inside: list[Piece] | None = None
    message: Descriptor | None = None
    wrong_by: int = 0
    """Added to its length."""
    padding: int = 0
    """Bytes of its key and of its length that there need not be."""


def changed(data: bytes, message: Descriptor, rng: random.Random) -> bytes:
    """A serialized message with some changes."""
    top = _read(memoryview(data), message)
    for _ in range(rng.choice((1, 1, 2, 4))):
        rng.choice(_CHANGES)(rng, _a_list(top, rng))
    found = bytearray(_written(top))
    if rng.random() < 0.1:
        del found[rng.randrange(len(found) + 1) :]
    return bytes(found)


def number(value: int, padding: int = 0) -> bytes:
    """A number as a varint, with bytes at its end that add nothing."""
    found = bytearray()
    while value > 127 or padding > 0:
        found.append(value & 127 | 128)
        if value <= 127:
            padding -= 1
        value >>= 7
    found.append(value)
    return bytes(found)


def _read(data: memoryview, message: Descriptor) -> list[Piece]:
    """The fields of a message that a library wrote. A message is not copied for each message around it."""
    known = {each.number: each.message_type for each in message.fields if each.message_type is not None}
    found, place = [], 0
    while place < len(data):
        key, place = _number(data, place)
        piece = Piece(key >> 3, key & 7, message=known.get(key >> 3))
        if piece.kind == VARINT:
            _, end = _number(data, place)
        elif piece.kind == TEXT:
            length, place = _number(data, place)
            end = place + length
        else:
            end = place + _SIZES[piece.kind]
        content, place = data[place:end], end
        if piece.message is not None:
            piece.inside = _read(content, piece.message)
        else:
            piece.content = bytes(content)
        found.append(piece)
    return found


def _number(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, place


def _written(pieces: list[Piece]) -> bytes:
    found = []
    for piece in pieces:
        content = piece.content if piece.inside is None else _written(piece.inside)
        found.append(number(piece.number << 3 | piece.kind, piece.padding))
        if piece.kind == TEXT:
            found.append(number(max(0, len(content) + piece.wrong_by), piece.padding))
        found.append(content)
        if piece.kind == GROUP:
            found.append(number(piece.number << 3 | END))
    return b"".join(found)


def _a_list(top: list[Piece], rng: random.Random) -> list[Piece]:
    """The fields of any message, the outer ones more often."""
    pieces = top
    while rng.random() < 0.75:
        inner = [piece.inside for piece in pieces if piece.inside]
        if not inner:
            break
        pieces = rng.choice(inner)
    return pieces


def _any_number(rng: random.Random) -> int:
    return rng.choice((1, 2, 3, 5, 6, 7, 8, 11, 14, 15, 20, 25, 1000, 2**29 - 1, 0))


def _add_group(rng: random.Random, pieces: list[Piece]) -> None:
    deep = Piece(_any_number(rng), GROUP, inside=[])
    for _ in range(rng.choice((0, 0, 1, 3, 90, 120))):
        deep = Piece(_any_number(rng), GROUP, inside=[deep])
    if rng.random() < 0.5:
        deep.inside = [*(deep.inside or []), Piece(_any_number(rng), TEXT, rng.randbytes(rng.randrange(9)))]
    pieces.insert(rng.randint(0, len(pieces)), deep)


def _add_field(rng: random.Random, pieces: list[Piece]) -> None:
    """A field of any wire type, which may be a number that another one has."""
    kind = rng.choice((VARINT, EIGHT, TEXT, FOUR, END, 6, 7))
    contents = {VARINT: number(rng.choice((0, 1, 2**64 - 1)), rng.choice((0, 0, 3, 9))), TEXT: rng.randbytes(4)}
    content = contents.get(kind, rng.randbytes(_SIZES.get(kind, 0)))
    pieces.insert(rng.randint(0, len(pieces)), Piece(_any_number(rng), kind, content))


def _other_kind(rng: random.Random, pieces: list[Piece]) -> None:
    if pieces:
        piece = rng.choice(pieces)
        piece.kind = rng.choice((VARINT, EIGHT, TEXT, GROUP, FOUR))
        if piece.kind in (VARINT, EIGHT, FOUR):
            piece.inside, piece.content = None, {VARINT: b"\x01"}.get(piece.kind, bytes(_SIZES.get(piece.kind, 0)))


def _other_text(rng: random.Random, pieces: list[Piece]) -> None:
    """Text that is no UTF-8, has a NUL, a lone surrogate or a line's end in it; numbers that end within one."""
    texts = [piece for piece in pieces if piece.kind == TEXT and piece.inside is None]
    if texts:
        rng.choice(texts).content = rng.choice(_TEXTS)


def _packed(rng: random.Random, pieces: list[Piece]) -> None:
    """Numbers are several in one field, or one in each of several fields."""
    numbers = [piece for piece in pieces if piece.kind == VARINT]
    if numbers:
        piece = rng.choice(numbers)
        piece.kind, piece.content = TEXT, piece.content * rng.choice((1, 2, 50)) + rng.choice((b"", b"\xff"))


def _wrong_length(rng: random.Random, pieces: list[Piece]) -> None:
    if pieces:
        rng.choice(pieces).wrong_by = rng.choice((-3, -2, -1, 1, 2, 3, 100, 2**31, 2**63))


def _longer(rng: random.Random, pieces: list[Piece]) -> None:
    if pieces:
        rng.choice(pieces).padding = rng.choice((1, 1, 2, 3, 4, 8, 9))


def _repeat(rng: random.Random, pieces: list[Piece]) -> None:
    if pieces:
        pieces.insert(rng.randint(0, len(pieces)), rng.choice(pieces))


def _swap(rng: random.Random, pieces: list[Piece]) -> None:
    rng.shuffle(pieces)


def _in_pieces(rng: random.Random, pieces: list[Piece]) -> None:
    """A message becomes two, which a parser puts together where there is one of it."""
    places = [i for i, piece in enumerate(pieces) if piece.inside]
    if places:
        place = rng.choice(places)
        piece = pieces[place]
        assert piece.inside is not None
        cut = rng.randint(0, len(piece.inside))
        halves = piece.inside[:cut], piece.inside[cut:]
        pieces[place : place + 1] = [Piece(piece.number, TEXT, inside=half, message=piece.message) for half in halves]


_TEXTS: Final = (b"\xff", b"\xed\xa0\x80", b"a\0b", b"\xc0\xaf", b"\xf8\x88\x80\x80\x80", b"", b"\n", "٣".encode())

_CHANGES: Final = (
    *(_add_group,) * 3,
    *(_add_field,) * 3,
    *(_other_kind,) * 2,
    *(_other_text,) * 2,
    _packed,
    _wrong_length,
    *(_longer,) * 2,
    *(_repeat,) * 2,
    _swap,
    _in_pieces,
)
