"""Writes files that are renamed into place only when all of them are complete: on any failure only the old ones remain.

Input files, and files that a model refers to, are never replaced: see `inputs_noted`.
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
    """Context manager that gives an AtomicFiles: at the end of the block all its files get their names; on an exception
    they are removed.

    Signals are held back while files get their names. If one of several cannot be renamed, the old files are restored.
    `replace`: allows files of these names to exist. A file that is a link is replaced, not followed: a command resolves
    the path that its user names, but follows no links that it finds in a folder. Links to folders are followed.
    """
    files = AtomicFiles(replace)
    try:
        yield files
        files.move()
    except BaseException:
        files.remove()
        raise


def write_file(path: str, *parts: bytes | memoryview) -> None:
    """Writes a file atomically, and creates its folder. Raises OSError, which names `path`, if that fails."""
    with atomic_files() as files, naming(path):
        files.make_folder(os.path.dirname(path))
        with open(files.create(path), "wb") as stream:
            for part in parts:
                stream.write(part)


FileKey: TypeAlias = tuple[int, int] | str
"""A key that is equal for all names of a file: device and inode if it exists, else the resolved path."""

_noted: Final[ContextVar[dict[FileKey, str] | None]] = ContextVar("noted", default=None)


@contextmanager
def inputs_noted() -> Iterator[Mapping[FileKey, str]]:
    """Context manager: inside the block, files passed to `note_input` cannot be replaced; yields a map from their keys
    to their names.

    A model's references are known only after reading it, when the output may be half written already: so an output is
    compared with the inputs when it is created and once more before it is renamed.
    """
    noted: dict[FileKey, str] = {}
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note_input(path: str, name: str) -> None:
    """Protects a file from being replaced, if called inside `inputs_noted`; `name` names it in errors."""
    noted = _noted.get()
    if noted is not None:
        with suppress(ValueError):  # a NUL, or a lone surrogate: no file has such a name
            noted.setdefault(file_key(path), name)


def note_inputs(inputs: Mapping[FileKey, str]) -> None:
    """Protects the inputs that another process has noted, if called inside `inputs_noted`."""
    noted = _noted.get()
    if noted is not None:
        noted.update(inputs)


def refuse_input(path: str) -> None:
    """Raises OSError if the file is a noted input."""
    noted = _noted.get()
    name = noted.get(file_key(path)) if noted else None
    if name is not None:
        raise OSError(errno.EPERM, f"this would replace {name}", path)


def same_file(left: str, right: str) -> bool:
    """True if two paths lead to the same file, through links or under two names; the file need not exist."""
    return file_key(left) == file_key(right)


def file_key(path: str) -> FileKey:
    """Returns a key that is equal for all paths to a file, which need not exist."""
    real = os.path.realpath(path)  # `no/../a` does not exist before `no` does, but resolves to `a`
    for each in (path, real):
        try:
            status = os.stat(each)
        except OSError:
            continue
        return status.st_dev, status.st_ino
    return os.path.normcase(real)


class AtomicFiles:
    """The files of one `atomic_files` block."""

    def __init__(self, replace: bool) -> None:
        self._replace = replace
        # A file is recorded before it is created, because a signal may arrive right after its creation.
        self._temporary: dict[str, str] = {}
        """Final name -> temporary name."""
        self._discarded: list[str] = []
        """Old files to remove when the new ones get their names."""
        self._folders: list[str] = []
        """The folders that were made, outermost first."""

    def check(self, path: str, cure: str = "replaces") -> int | None:
        """Returns st_mode, with the bits of the type, of the file or link at `path`; None if it does not exist.

        Raises IsADirectoryError for a folder, FileExistsError for a file that must not be replaced, OSError for
        anything but a regular file or a link, and what `refuse_input` raises for an input. `cure` is the verb in the
        message that says what --force does.
        """
        refuse_input(path)
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not self._replace:
            raise FileExistsError(errno.EEXIST, f"it exists already; --force {cure} it", path)
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        return mode

    def make_folder(self, folder: str) -> None:
        """Creates a folder and its parents; for a dangling link, the folder that it leads to. Raises OSError if that
        fails."""
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
                if os.path.isdir(folder):
                    continue
                real = os.path.realpath(folder)
                if not os.path.islink(folder) or os.path.islink(real):  # a file, or a loop of links
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from None
                self.make_folder(real)

    def create(self, path: str) -> str:
        """Creates an empty temporary file in the folder of `path` and returns its name; its content will become `path`.

        It has the permissions of the file that it replaces, and the owner may write to it. Raises OSError if that fails
        or `path` must not be replaced.
        """
        mode = self.check(path)
        temporary = self._temporary[path] = _name_beside(path, "tmp")
        with naming(path):
            open(temporary, "xb").close()
            if mode is not None and stat.S_ISREG(mode):
                os.chmod(temporary, stat.S_IMODE(mode) | stat.S_IRUSR | stat.S_IWUSR)
        return temporary

    def discard(self, path: str) -> None:
        """Marks an existing file for removal when the new ones get their names. Raises OSError if it must not be
        removed."""
        self.check(path, "removes")
        self._discarded.append(path)

    def move(self) -> None:
        """Renames all files. Raises OSError, with every old file restored, if one cannot be renamed.

        Files get their names in the order in which they were created, and old ones lose theirs in the reverse order: if
        the last one exists, so do all others, even if the process is killed in between.
        """
        old: list[str] = []
        single = len(self._temporary) + len(self._discarded) == 1
        with held_back():
            with ExitStack() as undo:
                for path, temporary in reversed(self._temporary.items()):
                    mode = self.check(path)  # another process may have created it
                    with naming(path):
                        if mode is not None and stat.S_ISREG(mode):
                            os.chmod(temporary, stat.S_IMODE(mode))
                        if mode is not None and not single:  # a single file is replaced in one step
                            old.append(_put_aside(path, undo))
                for path in self._discarded:
                    with naming(path):
                        old.append(_put_aside(path, undo))
                for path, temporary in self._temporary.items():
                    with naming(path):
                        os.replace(temporary, path)
                        undo.callback(os.unlink, path)
                undo.pop_all()
            self._temporary.clear()
            self._folders.clear()
            for path in old:
                _unlink(path)

    def remove(self) -> None:
        """Removes the temporary files, and the folders that were created."""
        with held_back():
            for path in self._temporary.values():
                _unlink(path)
            for folder in reversed(self._folders):
                with suppress(OSError):  # another process has put something there
                    os.rmdir(folder)


def _put_aside(path: str, undo: ExitStack) -> str:
    """Renames an old file and returns its temporary name; `undo` renames it back."""
    aside = _name_beside(path, "old")
    os.rename(path, aside)
    undo.callback(os.replace, aside, path)
    return aside


def _unlink(path: str) -> None:
    """Removes a temporary file, trying twice; errors are ignored."""
    for _ in range(2):
        with suppress(OSError):
            os.unlink(path)
            return


def _name_beside(path: str, suffix: str) -> str:
    """Returns an unused random name in the same folder, independent of the file's own, which may be too long to
    extend."""
    return os.path.join(os.path.dirname(path), f"dmlsplit-{os.urandom(8).hex()}.{suffix}")
