"""The files of a model that is written back: the model itself, and its external data where that is to go along."""

from __future__ import annotations

import os
from typing import Final

from dmlsplit.formats.files import AllowedFolders
from dmlsplit.formats.onnx.loading import external_locations
from dmlsplit.mending.mending import Mending
from dmlsplit.system.atomic_files import AtomicFiles, atomic_files, same_file
from dmlsplit.system.errors import InputError, naming
from dmlsplit.system.input_files import open_input
from dmlsplit.system.printable import printable

_COPIED_AT_ONCE: Final = 1 << 22


def write(mending: Mending, file: str, out: str, folders: AllowedFolders, *, copy_data: bool = False) -> list[str]:
    """Writes what became of the model in `file`, whole or not at all, and gives the names of the files.

    External data stays where it is: `out` is in the same folder, else InputError; with `copy_data` it is copied to the
    same places beside `out`, from `folders`. Raises OSError.
    """
    target = os.path.realpath(out)
    folder, here = os.path.dirname(target), os.path.dirname(os.path.realpath(file))
    data = [] if folder == here else external_locations(mending.source.model)
    if data and not copy_data:
        message = (
            f"the model's external data ({printable(data[0])}) is beside {printable(file)}: write it into that folder"
        )
        raise InputError(f"{message}, or copy the data with --copy-data")
    with atomic_files() as files:
        for location in data:
            _copy_data(files, folders.beside(location), os.path.join(folder, location))
        files.make_folder(folder)
        with naming(out), open(files.create(target), "wb") as stream:
            for piece in mending.copied():
                stream.write(piece)
    return [*(os.path.join(os.path.dirname(out), location) for location in data), out]


def _copy_data(files: AtomicFiles, source: str, target: str) -> None:
    if os.path.lexists(target):
        if same_file(source, target):
            return
        raise InputError(f"'{printable(target)}' is there already, where external data would be copied to")
    files.make_folder(os.path.dirname(target))
    with naming(source), open_input(source) as read, naming(target), open(files.create(target), "wb") as stream:
        while piece := read.read(_COPIED_AT_ONCE):
            stream.write(piece)
