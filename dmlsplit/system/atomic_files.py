"""Files that get their names when all of them are whole: on any failure the old ones stay, and nothing else.

Those that were read, or that a model refers to, are not replaced at all: see `inputs_noted`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Final, TypeAlias

from dmlsplit.system.errors import naming
from dmlsplit.system.signals import held_back


@contextmanager
def atomic_files(*, replace: bool = True) -> Iterator[AtomicFiles]:
    """New files for a block: at its end all of them get their names, on an exception none, and they are removed.

    Signals are held back while files get their names. If one of several cannot have it, those that were there before
    are put back. `replace`: whether there may be a file of that name. Links are not followed: they are replaced.
    """
    files = AtomicFiles(replace)
    try:
        yield files
        files.move()
    except BaseException:
        files.remove()
        raise


def write_file(path: str, *parts: bytes | memoryview) -> None:
    """Writes a file, and makes its folder; an OSError names `path`."""
    with atomic_files() as files, naming(path):
        files.make_folder(os.path.dirname(path))
        with open(files.create(path), "wb") as stream:
            for part in parts:
                stream.write(part)


FileKey: TypeAlias = tuple[int, int] | str
"""Equal for all names of a file: device and inode where it exists, else where its name leads."""

_noted: Final[ContextVar[dict[FileKey, str] | None]] = ContextVar("noted", default=None)


@contextmanager
def inputs_noted() -> Iterator[Mapping[FileKey, str]]:
    """Within the block no file is replaced that `note_input` was told of there; gives those files, and their names.

    What a model refers to is known only when it has been read, when the output may be half written already: an output
    is held against the inputs as it begins and once more before it gets its name.
    """
    noted: dict[FileKey, str] = {}
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note_input(path: str, name: str) -> None:
    """Notes a file that no output is to replace, within `inputs_noted`; `name` is what an error calls it."""
    noted = _noted.get()
    if noted is not None:
        with suppress(ValueError):  # a NUL, or a lone surrogate: no file has such a name
            noted.setdefault(file_key(path), name)


def note_inputs(inputs: Mapping[FileKey, str]) -> None:
    """Notes the inputs that another process has noted."""
    noted = _noted.get()
    if noted is not None:
        noted.update(inputs)


def refuse_input(path: str) -> None:
    """OSError where the file has been noted as an input."""
    noted = _noted.get()
    name = noted.get(file_key(path)) if noted else None
    if name is not None:
        raise OSError(errno.EPERM, f"this would replace {name}", path)


def same_file(left: str, right: str) -> bool:
    """Whether two paths lead to one file, by links or under two names; neither need exist."""
    return file_key(left) == file_key(right)


def file_key(path: str) -> FileKey:
    """The key of the file that a path leads to, which need not exist."""
    real = os.path.realpath(path)  # of `no/../a`, which is there only once `no` is made, that is `a`
    for each in (path, real):
        try:
            status = os.stat(each)
        except OSError:
            continue
        return status.st_dev, status.st_ino
    return os.path.normcase(real)


class AtomicFiles:
    """The files of one block of `atomic_files`."""

    def __init__(self, replace: bool) -> None:
        self._replace = replace
        # A file is noted before it is made: an interrupt may come right after.
        self._temporary: dict[str, str] = {}
        """Final name -> where the file is written."""
        self._discarded: list[str] = []
        """Old files that are to be gone when the new ones get their names."""
        self._folders: list[str] = []
        """The folders that were made, from the outermost to the innermost."""

    def check(self, path: str, cure: str = "replaces") -> int | None:
        """The mode of what has the name now, if anything; OSError where that is a folder, or may not be replaced."""
        refuse_input(path)
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not self._replace:
            raise FileExistsError(errno.EEXIST, f"it is there already; --force {cure} it", path)
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        return mode

    def make_folder(self, folder: str) -> None:
        """Makes a folder, and those around it."""
        missing = []
        while folder and not os.path.isdir(folder) and folder not in missing:  # a root is its own parent
            missing.append(folder)
            folder = os.path.dirname(folder)
        for folder in reversed(missing):
            self._folders.append(folder)
            try:
                os.mkdir(folder)
            except FileExistsError:
                self._folders.pop()
                if not os.path.isdir(folder):
                    raise

    def create(self, path: str) -> str:
        """Makes an empty file in the folder of `path` and gives its name: what is written there will be `path`.

        It has the permissions of the file that it replaces, and the owner may write to it. Raises OSError.
        """
        mode = self.check(path)
        temporary = self._temporary[path] = _name_beside(path, "tmp")
        with naming(path):
            open(temporary, "xb").close()
            if mode is not None and stat.S_ISREG(mode):
                os.chmod(temporary, stat.S_IMODE(mode) | stat.S_IRUSR | stat.S_IWUSR)
        return temporary

    def discard(self, path: str) -> None:
        """Removes a file that is there when the new ones get their names. Raises OSError."""
        self.check(path, "removes")
        self._discarded.append(path)

    def move(self) -> None:
        """Gives all files their names; OSError, and none has it, where one cannot."""
        old: list[str] = []

        def put_aside(path: str, undo: ExitStack) -> None:
            aside = _name_beside(path, "old")
            os.rename(path, aside)
            old.append(aside)
            undo.callback(os.replace, aside, path)

        with held_back():
            with ExitStack() as undo:
                for path in self._discarded:
                    with naming(path):
                        put_aside(path, undo)
                for path, temporary in self._temporary.items():
                    mode = self.check(path)  # somebody may have been faster
                    with naming(path):
                        if mode is not None and stat.S_ISREG(mode):
                            os.chmod(temporary, stat.S_IMODE(mode))
                        # One file alone is replaced in one step; of several, the old ones are kept until the last.
                        if mode is not None and len(self._temporary) > 1:
                            put_aside(path, undo)
                            os.replace(temporary, path)
                        else:
                            os.replace(temporary, path)
                            undo.callback(os.unlink, path)
                undo.pop_all()
            self._temporary.clear()
            self._folders.clear()
            for path in old:
                with suppress(OSError):
                    os.unlink(path)

    def remove(self) -> None:
        """Removes what was made."""
        with held_back():
            for path in self._temporary.values():
                with suppress(OSError):
                    os.unlink(path)
            for folder in reversed(self._folders):
                with suppress(OSError):  # somebody else has put something there
                    os.rmdir(folder)


def _name_beside(path: str, suffix: str) -> str:
    """A free name in the same folder; the file's own could be too long with anything added."""
    return os.path.join(os.path.dirname(path), f"dmlsplit-{os.urandom(8).hex()}.{suffix}")
