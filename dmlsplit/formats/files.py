"""Opens the files that a model refers to, if that is allowed."""

from __future__ import annotations

import math
import ntpath
import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from dmlsplit.formats import npy
from dmlsplit.formats.limits import Limit
from dmlsplit.system.atomic_files import note_input
from dmlsplit.system.errors import InputError
from dmlsplit.system.input_files import open_input, paths_of
from dmlsplit.system.printable import printable

MAX_BUFFER_BYTES: Final = Limit.FILES_BUFFER.most
"""A resource larger than this, or than a quarter of the machine's memory, is refused before anything is allocated,
because three copies of a sequence exist while a model runs."""

_MOST_NAMES: Final = 1 << 14
"""The number of names in a folder that are compared with the one that a model refers to."""

Bytes = npt.NDArray[np.uint8]


class AllowedFolders:
    """The folders whose files a model may refer to: its own, which is the base of relative paths, and others. Links are
    resolved first."""

    def __init__(self, folder: str | os.PathLike[str], more: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.folder = os.path.realpath(folder)
        self._roots = (self.folder, *map(os.path.realpath, paths_of(more, "allow_paths")))
        self._names: dict[str, dict[str, str]] = {}

    def source(self, path: str) -> str:
        """Returns the path, links resolved, at which DxDispatch would find a file that a model names: next to the model
        if it exists there, else in the current folder. Raises InputError if that is outside the allowed folders."""
        return self._resolved(self._source(path), path)

    def note_source(self, path: str, model: str) -> None:
        """Notes the file `path`, which a DxDispatch model refers to, as an input, so that no output of this command
        replaces it. `model` names the model in the error."""
        note_reference(self._source(path), model)

    def beside(self, path: str) -> str:
        """Returns `path` with links resolved; a relative path starts in the model's folder, and the file need not
        exist. Raises InputError if it is outside the allowed folders, or cannot be a file's name."""
        return self._resolved(os.path.join(self.folder, path), path)

    def _source(self, path: str) -> str:
        beside = os.path.join(self.folder, path)
        # lexists, so that dangling links are reported, not ignored
        return path if not os.path.lexists(beside) and os.path.exists(path) else beside

    def read(self, location: str, offset: int, size: int) -> tuple[bytes, int]:
        """Returns up to `size` bytes from byte `offset` of a regular file, relative to the model (b"" if the offset is
        not in the file or `size` is not positive), and the file's size in bytes.

        All data outside a model's own file is read here. Raises InputError if the file is not allowed or not regular,
        OSError if it cannot be read.
        """
        path = self.beside(location)
        note_reference(path, "a model")  # only the caller knows the model's name
        with open_input(path) as stream:
            held = os.fstat(stream.fileno()).st_size
            if not 0 <= offset <= held or size <= 0:
                return b"", held
            stream.seek(offset)
            return stream.read(min(size, held - offset)), held

    def is_there_on_windows(self, path: str) -> bool:
        """True if there is something in the model's folder that Windows takes for the relative path `path`: backslashes
        separate folders, and neither letter case nor dots and spaces at the end of a name count."""
        place = self.folder
        for name in ntpath.normpath(path).split("\\"):
            found = self._names_in(place).get(_on_windows(name))
            if found is None:
                return False
            place = os.path.join(place, found)
        return True

    def _names_in(self, folder: str) -> dict[str, str]:
        """Maps what Windows compares of the names in an allowed folder to one of these names each."""
        if folder not in self._names:
            names: dict[str, str] = {}
            with suppress(InputError, OSError), os.scandir(self._resolved(folder, folder)) as entries:
                names = {_on_windows(entry.name): entry.name for entry in islice(entries, _MOST_NAMES)}
            self._names[folder] = names
        return self._names[folder]

    def _resolved(self, path: str, shown: str) -> str:
        try:
            resolved = os.path.realpath(path)
            loops = os.path.islink(resolved)
        except (ValueError, OSError):  # a NUL, a lone surrogate
            raise InputError(f"'{printable(shown)}' is not a file name") from None
        if loops:
            raise InputError(f"'{printable(shown)}' leads to itself by symbolic links")
        if not any(_contains(root, resolved) for root in self._roots):
            raise InputError(f"'{printable(shown)}' is outside the model's folder; --allow-path DIR allows another one")
        return resolved


def _on_windows(name: str) -> str:
    return name.rstrip(". ").lower()


def note_reference(path: str, model: str) -> None:
    """Notes the file `path`, which a model refers to, as an input, whether it is read or not, so that no output of this
    command replaces it. `model` names the model in the error."""
    note_input(path, f"a file that {model} refers to")


def note_references(locations: Iterable[str], path: str | os.PathLike[str]) -> None:
    """Notes external data files, named relative to the model at `path`, as inputs, so that no output of this command
    replaces them."""
    folder = os.path.dirname(os.path.abspath(path))
    for location in locations:
        note_reference(os.path.join(folder, location), os.fspath(path))


def _contains(root: str, path: str) -> bool:
    try:
        return os.path.commonpath((os.path.normcase(root), os.path.normcase(path))) == os.path.normcase(root)
    except ValueError:  # different drives
        return False


def check_size(size: int, what: str) -> None:
    """Raises InputError, which names the buffer `what`, if `size` bytes exceed MAX_BUFFER_BYTES or a quarter of the
    physical memory."""
    memory = _physical_memory()
    limit = MAX_BUFFER_BYTES if memory is None else min(MAX_BUFFER_BYTES, memory // 4)
    if size > limit:
        raise InputError(f"{what} needs {size} bytes of memory; the limit is {limit}")


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def read_raw(path: str) -> Bytes:
    """Returns all bytes of a regular file as an array of uint8. Raises InputError if it is too large or not regular,
    OSError if it cannot be read."""
    with open_input(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        check_size(size, "the file")
        return np.fromfile(stream, np.uint8, size)


def read_npy(path: str) -> np.ndarray:
    """Returns the array in an .npy file, C-contiguous and in native byte order.

    The header is checked against the file's size before anything is allocated. Raises InputError for a malformed file,
    a dtype without a DirectML type, Fortran order, and data whose size differs from the header's (DxDispatch would pad
    it with zeros); OSError if the file cannot be read.
    """
    with open_input(path) as stream:
        header = npy.read_header(stream, os.fstat(stream.fileno()).st_size)
        dtype = header.dtype
        if dtype.kind not in "fiub" or dtype.itemsize > 8:
            raise InputError(f"dtype {printable(str(dtype))} has no DirectML tensor data type")
        if header.fortran_order and len(header.shape) > 1:
            raise InputError("the array is in Fortran order, which DxDispatch does not read")
        check_size(header.data_size, "the file")
        array = np.fromfile(stream, dtype, math.prod(header.shape))
    return array.astype(dtype.newbyteorder("="), copy=False)


def reason(error: OSError | InputError) -> str:
    """Returns the error's message without the file's name."""
    return error.message if isinstance(error, InputError) else error.strerror or str(error)
