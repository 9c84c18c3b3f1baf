"""Reads files that may never end."""

from __future__ import annotations

from typing import BinaryIO, Final

_PIECE: Final = 1 << 20
"""Size of each read: Python allocates all requested bytes before it knows how many there are."""


def read_at_most(stream: BinaryIO, most: int) -> bytes | None:
    """Returns all bytes of a stream; None if there are more than `most`. Raises OSError if reading fails."""
    pieces = []
    left = most + 1
    while left and (piece := stream.read(min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces) if left else None
