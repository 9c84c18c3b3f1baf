"""The programs that load a library and ask it: prebuilt in the wheel, or compiled from harness/ with a C++ compiler."""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from dmlsplit.library import wine
from dmlsplit.library.catalogue import LINUX, WINDOWS, Platform
from dmlsplit.library.errors import BuildError, Unavailable
from dmlsplit.library.places import cache_folder, made_whole, require_platform
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record

SOURCES: Final = Path(__file__).parent / "harness"
PREBUILT: Final = Path(__file__).parent / "prebuilt"
"""The folder that has a subfolder of programs for each platform; only wheels for Linux on x86-64 have it."""
ROOTS: Final = (Path(__file__).parents[1] / "c", Path(__file__).parents[2])
"""The folders of the C library, in a wheel or in a checkout."""
COMPILE_SECONDS: Final = 300
FLAGS: Final = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-s")

_COMMON: Final = ("device", "library", "messages", "objects", "program", "recording")
_CAPTURE: Final = ("dms_capture.c", "dms_members.c")
"""Sources of the C library that are also valid C++."""
_ASKED: Final = ("main", "graph", "guarded", "session", "wire", *_COMMON)


@record
class Toolchain:
    """How the harness of a platform is compiled: `programs` maps each program to its sources and flags.

    `variable` is the environment variable that names the compiler, `compiler` the default.
    """

    variable: str
    compiler: str
    flags: tuple[str, ...]
    programs: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]

    def found(self) -> list[str]:
        """Returns the words of the compiler's command, the first an absolute path. Raises Unavailable if there is no
        compiler."""
        words = command_words(os.environ.get(self.variable) or self.compiler, self.variable)
        path = shutil.which(words[0])
        if path is None:
            raise Unavailable(f"no C++ compiler was found (${self.variable}, else {self.compiler.split()[0]})")
        return [path, *words[1:]]

    def commands(self, compiler: Sequence[str], root: Path, output: Path) -> list[tuple[str, list[str]]]:
        """Returns each program's name with the words of the command that builds it in the folder `output`."""
        found = []
        for program, (sources, flags) in self.programs.items():
            files = [str(_source(name, root)) for name in sources]
            include = f"-I{root / 'include'}"
            command = [*compiler, *FLAGS, include, "-o", str(output / program), *files, *flags, *self.flags]
            found.append((program, command))
        return found


def command_words(command: str, variable: str) -> list[str]:
    """Returns the words of a compiler's command. Raises Unavailable, which names the environment variable, if it is
    malformed or empty."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        raise Unavailable(f"${variable} is not a command: {printable(repr(command))}")
    return words


def _source(name: str, root: Path) -> Path:
    if name in _CAPTURE:
        return root / "csrc" / name
    return SOURCES / (name if "." in name else f"{name}.cpp")


_SHARED: Final = ("-shared", "-fPIC")
TOOLCHAINS: Final[Mapping[str, Toolchain]] = {
    LINUX.name: Toolchain(
        "CXX",
        "c++",
        ("-static-libstdc++", "-static-libgcc"),
        {
            "harness": ((*_ASKED, "platform_linux"), ("-ldl",)),
            "libdxcore.so": (("dxcore_linux",), (*_SHARED, "-Wl,-soname,libdxcore.so")),
            "libd3d12.so": (
                ("d3d12", "objects"),
                # DirectML needs the symbol with this version
                (*_SHARED, "-Wl,-soname,libd3d12.so", f"-Wl,--version-script={SOURCES / 'd3d12.map'}"),
            ),
        },
    ),
    WINDOWS.name: Toolchain(
        "DMLSPLIT_WINDOWS_CXX",
        "x86_64-w64-mingw32-g++ -static",
        (),
        {
            "harness.exe": ((*_ASKED, "platform_windows"), ()),
            "sessions.exe": (("sessions", "recorder", "runtime", *_COMMON, "platform_windows", *_CAPTURE), ()),
            "dxgi.dll": (("dxgi",), ("-shared",)),
            "d3d12.dll": (("d3d12", "d3d12.def", "objects"), ("-shared",)),
            "dxcore.dll": (("dxcore_windows",), ("-shared",)),
        },
    ),
}


@record
class Harness:
    """A harness that can be run: `program` is the start of its command line, `root` the folder that it sees as "/".

    `survives_crashes`: after a crash of the library it continues with the next command.
    """

    program: tuple[str, ...]
    root: str
    environment: dict[str, str]
    survives_crashes: bool

    def command(self, library: Path, settings: Sequence[str]) -> list[str]:
        return [*self.program, f"{self.root}{library.absolute()}", *settings]


@functools.cache
def harness(platform: Platform = LINUX, program: str = "harness") -> Harness:
    """Returns the harness of a platform, recompiled if its sources have changed. Raises Unavailable if it cannot be
    run.

    `program` is "harness", which asks DirectML, or for Windows "sessions", which asks ONNX Runtime.
    """
    require_platform()
    if platform is WINDOWS:
        environment = wine.environment(cache_folder().absolute() / "wine")
        return Harness(("wine", str(programs(platform) / f"{program}.exe")), "Z:", environment, survives_crashes=False)
    folder = programs(platform)
    variables = {"LD_LIBRARY_PATH": str(folder)}
    return Harness((str(folder / program),), "", variables, survives_crashes=True)


def programs(platform: Platform) -> Path:
    """Returns the folder with a platform's programs and stand-in libraries, which are compiled if necessary. Raises
    Unavailable without a compiler."""
    prebuilt = PREBUILT / platform.name
    if prebuilt.is_dir():
        return prebuilt
    tools = TOOLCHAINS[platform.name]
    compiler = tools.found()
    root = c_library()
    folder = cache_folder() / "harness" / fingerprint(compiler, root)
    if not folder.exists():
        with made_whole(folder) as made:
            compile_programs(tools, root, made)
    return folder


def compile_programs(tools: Toolchain, root: Path, folder: Path, seconds: float = COMPILE_SECONDS) -> None:
    """Compiles a platform's programs into a folder. Raises Unavailable without a compiler, BuildError if it fails or
    takes more than `seconds`."""
    for program, command in tools.commands(tools.found(), root, folder):
        compile_command(program, command, seconds)


def compile_command(program: str, command: Sequence[str], seconds: float = COMPILE_SECONDS) -> None:
    """Runs the command that compiles `program`. Raises BuildError if it fails or takes more than `seconds`."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise BuildError(f"{program} was not compiled within {seconds:.0f} seconds") from None
    if result.returncode != 0:
        raise BuildError(f"{program} does not compile:\n{result.stderr}")


def c_library() -> Path:
    """Returns the folder with the C library's include and csrc. Raises Unavailable if there is none."""
    root = next((path for path in ROOTS if (path / "include" / "dmlsplit_directml.h").is_file()), None)
    if root is None:
        raise Unavailable("this installation has no headers; the wheel and the checkout have them")
    return root


def fingerprint(compiler: Sequence[str], root: Path) -> str:
    """Returns a hash, as text, of all sources and headers, the compiler's command and this module."""
    digest = hashlib.sha256("\0".join(compiler).encode())
    of_c = [*root.glob("include/*.h"), *root.glob("csrc/dms_capture.c"), *root.glob("csrc/dms_members.*")]
    for path in sorted([*SOURCES.iterdir(), *of_c, Path(__file__)]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
