"""Opens input files; no other module does. Only regular files are opened, because a FIFO blocks its reader, and a
device may never end. Reads streams, which may not end either, up to a limit."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import BinaryIO, Final

from dmlsplit.system.errors import InputError

NOT_REGULAR: Final = "it is not a regular file"
NO_NAME: Final = "no file can have this name"
_PIECE: Final = 1 << 20
"""Size of each read: Python allocates all requested bytes before it knows how many there are."""
_FLAGS: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class _Input(io.BufferedReader):
    """A file opened for reading. Closing it never raises OSError, because no data can be lost."""

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def open_input(path: str | os.PathLike[str]) -> BinaryIO:
    """Returns a regular file opened for reading bytes. Raises InputError for anything else, without opening it, and for
    a path that no file can have; OSError if the file cannot be opened."""
    _check(_status(path), path)
    stream = _Input(io.FileIO(path, opener=_opener))
    try:
        _check(os.fstat(stream.fileno()), path)  # the file may have been replaced since the check
    except BaseException:
        stream.close()
        raise
    return stream


def paths_of(paths: object, name: str) -> tuple[str, ...]:
    """Returns the paths as strings. Raises TypeError, which names the argument `name`, for what is no sequence of
    paths. One path in place of several is none: each of its letters would be a path, and "/" would be all files of the
    machine."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: a sequence of paths is expected; [{paths!r}] is one of a single path")
    if not isinstance(paths, Iterable):
        raise TypeError(f"{name}: a sequence of paths is expected, not {type(paths).__name__}")
    found = []
    for i, path in enumerate(paths):
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise TypeError(f"{name}[{i}]: a path is expected, not {type(path).__name__}")
        found.append(os.fsdecode(path))
    return tuple(found)


def read_at_most(stream: BinaryIO, most: int) -> bytes | None:
    """Returns all bytes of a stream; None if there are more than `most`. Raises OSError if reading fails."""
    pieces = []
    left = most + 1
    while left and (piece := stream.read(min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces) if left else None


def input_size(path: str | os.PathLike[str]) -> int:
    """Returns the size of a regular file in bytes. Raises InputError for anything else, OSError if it does not
    exist."""
    status = _status(path)
    _check(status, path)
    return status.st_size


def _status(path: str | os.PathLike[str]) -> os.stat_result:
    try:
        return os.stat(path)
    except ValueError:  # a NUL, or a lone surrogate that stands for no byte
        raise InputError(NO_NAME) from None


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | _FLAGS)


def _check(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise InputError(NOT_REGULAR)
