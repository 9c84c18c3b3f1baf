"""Writes the files of a mended model: the model and, if `copy_data`, its external data."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

from dmlsplit.formats.files import AllowedFolders
from dmlsplit.mending.mending import Mending
from dmlsplit.system.atomic_files import AtomicFiles, atomic_files, same_file
from dmlsplit.system.errors import InputError, naming
from dmlsplit.system.input_files import open_input
from dmlsplit.system.printable import printable

_COPIED_AT_ONCE: Final = 1 << 22
_DEVICES: Final = frozenset(
    {
        *("CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"),
        *(f"{port}{number}" for port in ("COM", "LPT") for number in "123456789\xb9\xb2\xb3"),
    }
)
"""The names that Windows reserves in every folder, with any suffix."""


def write(mending: Mending, out: str, *, copy_data: bool = False) -> list[str]:
    """Writes the mended model of a file to `out`, completely or not at all, and returns the names of the written files:
    first external data, then `out`.

    External data stays in its place, and `out` must be in the same folder; otherwise InputError is raised. If
    `copy_data`, it is copied from the allowed folders to the same relative paths beside `out`, and never outside that
    folder. Raises OSError if a file cannot be read or written.
    """
    target = os.path.realpath(out)
    folder, here = os.path.dirname(target), os.path.dirname(os.path.realpath(mending.file))
    data = [] if folder == here else mending.source.locations
    if data and not copy_data:
        message = f"the model's external data ({printable(data[0])}) is in the folder of {printable(mending.file)}"
        raise InputError(f"{message}; write the model into that folder, or copy the data with --copy-data")
    with atomic_files() as files:
        for copy, source in _copies(data, mending.folders, target).items() if mending.folders is not None else ():
            _copy(files, source, copy)
        files.make_folder(folder)
        with naming(out), open(files.create(target), "wb") as stream:
            for piece in mending.copied():
                stream.write(piece)
    return [*(os.path.join(os.path.dirname(out), location) for location in data), out]


def _copies(locations: Iterable[str], folders: AllowedFolders, model: str) -> dict[str, str]:
    """Maps the path of each external data file to write beside `model` to the path of its source. Raises InputError if
    a location is outside the folder after links are resolved, or collides with another file."""
    inside = AllowedFolders(os.path.dirname(model))
    found: dict[str, str] = {}
    for location in locations:
        shown = f"external data '{printable(location)}'"
        source = folders.beside(location)
        try:
            copy = inside.beside(location)
        except InputError:
            copy = ""
        if not copy or not is_relative_everywhere(location):
            raise InputError(f"{shown} would not be copied into the folder of {printable(model)}")
        if same_file(copy, model):
            raise InputError(f"{shown} would be copied over {printable(model)}, the model that is written")
        if not same_file(found.setdefault(copy, source), source):
            raise InputError(f"{shown} and other data would be copied to '{printable(copy)}'")
    return found


def is_relative_everywhere(location: str) -> bool:
    """True if no operating system interprets a location as a drive, a root or a device; `..` is not checked."""
    windows = PureWindowsPath(location)
    if windows.drive or windows.root or PurePosixPath(location).root:
        return False
    return not any(part.partition(".")[0].strip(" ").upper() in _DEVICES for part in windows.parts)


def _copy(files: AtomicFiles, source: str, target: str) -> None:
    if os.path.lexists(target):
        if same_file(source, target):
            return
        raise InputError(f"'{printable(target)}' exists already, and external data would be copied to it")
    with naming(source):
        read = open_input(source)
    with read:
        files.make_folder(os.path.dirname(target))
        with naming(target), open(files.create(target), "wb") as stream:
            while piece := read.read(_COPIED_AT_ONCE):
                stream.write(piece)
