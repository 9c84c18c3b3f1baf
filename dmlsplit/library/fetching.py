"""Fetches a package that ships a library with pip or npm, as a user would install it, and only if the user asks for it.

The libraries are Microsoft's, under the licence terms that their packages contain. They are kept in the user's cache
folder, together with the licence files; nothing of them is part of dmlsplit.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

from dmlsplit.library.catalogue import DEBUG_LAYER, DIRECTML, Build, debug_layer
from dmlsplit.library.errors import BuildError, NotAdded, Unavailable
from dmlsplit.library.places import folder_of, made_whole, require_platform
from dmlsplit.system.errors import naming

DOWNLOAD_SECONDS: Final = 600
DEBUG_LAYER_DLL: Final = "DirectML.Debug.dll"
"""The file that DirectML loads from its own folder."""
LICENCES: Final = {"LICENSE", "NOTICE", "ThirdPartyNotices.txt", "DirectML_LICENSE.txt"}


def add(build: Build) -> Path:
    """Returns the folder of a build's libraries; fetches them if they are missing.

    Raises Unavailable if they cannot be fetched, BuildError if the files differ from the recorded ones.
    """
    require_platform()
    folder = folder_of(build)
    if folder.exists():
        _check(build, folder)
        return folder
    with tempfile.TemporaryDirectory(prefix="dmlsplit-") as package, made_whole(folder) as made:
        for name, file in _packaged(build, Path(package)):
            with naming(str(folder / name)), (made / name).open("wb") as target:
                shutil.copyfileobj(file, target)
        _check(build, made)
    return folder


def remove(build: Build) -> bool:
    """Deletes a build's folder, and returns True; False if there is none. Raises OSError if it cannot be deleted."""
    folder = folder_of(build)
    if not folder.exists():
        return False
    shutil.rmtree(folder)
    return True


def is_added(build: Build) -> bool:
    return all((folder_of(build) / name).exists() for name in build.files)


def checked_folder(build: Build) -> Path:
    """Returns the folder of a build's libraries after checking their hashes. Raises NotAdded, with the command that
    fetches the build, if it is missing, BuildError if a file differs."""
    require_added(build)
    folder = folder_of(build)
    _check(build, folder)
    return folder


def require_added(build: Build) -> None:
    """Raises NotAdded, with the command that fetches it, if a build is not on this machine; Unavailable if none can be
    asked here."""
    require_platform()
    if not is_added(build):
        raise not_added(build)


def not_added(build: Build) -> NotAdded:
    """Returns, without raising it, the error for a build that is not on this machine: the command that fetches it, its
    size and its terms."""
    name = DEBUG_LAYER if build == debug_layer() else build.name
    size = f", {megabytes(build.size)}" if build.size else ""
    return NotAdded(f"{build} is not here; 'dmlsplit library add {name}' fetches it{size} (terms: {build.terms})")


def megabytes(size: int) -> str:
    return f"{max(round(size / 1e6), 1)} MB"


def library(build: Build) -> Path:
    """Returns the path of a build's DirectML shared object or DLL; fetches it if it is missing."""
    return add(build) / build.platform.library


def _packaged(build: Build, folder: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yields the files of a package to keep, libraries and licences, each as (name to keep it under, stream); the
    download goes to `folder`."""
    if not build.python:
        yield from _of_npm(build, folder)
        return
    with zipfile.ZipFile(_download(build, folder)) as archive:
        for name in archive.namelist():
            kept = kept_name(build, PurePosixPath(name))
            if kept is not None:
                with archive.open(name) as file:
                    yield kept, file


def _of_npm(build: Build, folder: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if shutil.which("npm") is None:
        raise Unavailable(f"{build} is an npm package: npm was not found")
    _run(build, ["npm", "pack", "--silent", f"{build.package}@{build.version}"], folder)
    (package,) = folder.glob("*.tgz")
    with tarfile.open(package) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            wanted = "/win32/x64/" in member.name if path.name in build.files else path.name in LICENCES
            file = archive.extractfile(member) if wanted else None
            if file is not None:
                yield path.name, file


def _download(build: Build, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--pre"]
    command += ["--retries", "1", "--timeout", "30", "--disable-pip-version-check"]
    for name in build.platform.wheels:
        command += ["--platform", name]
    command += ["--python-version", build.python, "--dest", str(folder), f"{build.package}=={build.version}"]
    _run(build, command, folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _run(build: Build, command: list[str], folder: Path) -> None:
    program = "npm" if command[0] == "npm" else "pip"
    try:
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{program} did not fetch {build} within {DOWNLOAD_SECONDS} seconds") from None
    if result.returncode != 0:
        lines = (result.stderr or result.stdout).strip().splitlines() or [f"exit status {result.returncode}"]
        errors = [line for line in lines if line.startswith("ERROR")]
        raise Unavailable(f"{program} could not fetch {build}: {(errors or lines)[-1]}")


def kept_name(build: Build, path: PurePosixPath) -> str | None:
    """Returns the name under which a file of a wheel is kept; None for a file that is not kept."""
    if path.name == DEBUG_LAYER_DLL and build.kind == DIRECTML:
        return path.name
    for library in build.files:
        stem, _, ending = library.rpartition(".")
        hashed = build.kind == DIRECTML and path.name.startswith(stem) and f".{ending}" in path.name  # in some wheels
        if path.name == library or hashed:
            return library
    beside = path.parent.name == "_solib_directml" or path.name == "DirectML_LICENSE.txt"
    of_package = path.parent.name == "onnxruntime" or path.parent.name.endswith(".dist-info")
    return path.name if beside or (of_package and path.name in LICENCES) else None


def _check(build: Build, folder: Path) -> None:
    for name, expected in build.files.items():
        path = folder / name
        if not path.exists():
            raise BuildError(f"the package of {build} contains no {name}")
        with naming(str(path)), path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != expected:
            raise BuildError(f"{path} is not the expected file of {build}: its SHA-256 is {actual}")
