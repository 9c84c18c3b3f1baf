"""The C library, configured, built, installed, moved, and used by projects of their own: each way that is offered."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.library import layer

ROOT = Path(__file__).parents[2]
VERSION = ".".join(re.findall(r"#define DMLSPLIT_VERSION_\w+ (\d+)$", (ROOT / "include/dmlsplit.h").read_text(), re.M))
PROGRAM = """
#include "dmlsplit.hpp"
#include <cstdio>
#include <cstring>

int main()
{
    const std::uint64_t sizes[] = {3, 2}, lengths[] = {1, 2};
    dmlsplit::geometry g;
    g.element_size = 1;
    g.sizes = sizes;
    g.lengths = lengths;
    char a[2], b[4];
    void *const parts[] = {a, b};
    const auto plan = dmlsplit::plan::create(g);
    if (!plan || !plan->split("abcdef", parts) || std::memcmp(a, "ab", 2) != 0 || std::memcmp(b, "cdef", 4) != 0)
        return 1;
    std::puts(dmlsplit_version());
    return 0;
}
"""
FIND = """
cmake_minimum_required(VERSION 3.21)
project(scratch CXX)
find_package(dmlsplit {version} REQUIRED CONFIG {components})
add_executable(scratch main.cpp)
target_compile_features(scratch PRIVATE cxx_std_17)
target_link_libraries(scratch PRIVATE dmlsplit::dmlsplit)
"""
FETCH = """
cmake_minimum_required(VERSION 3.21)
project(scratch CXX C)
include(FetchContent)
FetchContent_Declare(dmlsplit SOURCE_DIR "{root}")
set(DMLSPLIT_NO_AVX512 ON)
FetchContent_MakeAvailable(dmlsplit)
add_executable(scratch main.cpp)
target_compile_features(scratch PRIVATE cxx_std_17)
target_link_libraries(scratch PRIVATE dmlsplit::dmlsplit)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake on the path"),
    pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler on the path"),
]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def cmake(source, build, *settings):
    """Configures and builds; what is on no program's path would be found by nobody else either."""
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run("cmake", "-S", source, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release", *settings)
    run("cmake", "--build", build, "--parallel", str(os.cpu_count()))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where the library was installed, and then moved to."""
    folder = tmp_path_factory.mktemp("library")
    cmake(ROOT, folder / "build")
    run("cmake", "--install", folder / "build", "--prefix", folder / "first")
    shutil.rmtree(folder / "build")
    return (folder / "first").rename(folder / "moved")


def project(folder, text, **names):
    folder.mkdir()
    (folder / "main.cpp").write_text(PROGRAM)
    (folder / "CMakeLists.txt").write_text(text.format(**names))
    return folder


def needed(program):
    return "libdmlsplit.so" in run("ldd", program) if sys.platform == "linux" else None


def test_the_version_is_everywhere_the_same(installed):
    assert dml.__version__ == VERSION
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    minor = VERSION.rpartition(".")[0]
    names = {path.name for path in (installed / "lib").iterdir()}
    if sys.platform == "linux":
        assert {"libdmlsplit.a", "libdmlsplit.so", f"libdmlsplit.so.{minor}", f"libdmlsplit.so.{VERSION}"} <= names


@pytest.mark.skipif(sys.platform != "linux", reason="nm of an ELF file")
def test_the_shared_library_exports_its_interface_only(installed):
    listed = run("nm", "-D", "--defined-only", installed / "lib" / "libdmlsplit.so")
    exported = {line.split()[-1] for line in listed.splitlines()}
    declared = set()
    for header in (installed / "include").glob("*.h"):
        declared |= set(re.findall(r"^DMLSPLIT_API [^(]*?(dmlsplit_\w+)\(", header.read_text(), re.MULTILINE))
    assert exported == declared
    assert "dmlsplit_plan_part_count" in exported


@pytest.mark.parametrize(
    ("components", "setting", "shared"),
    [
        ("", "-DBUILD_SHARED_LIBS=OFF", False),
        ("", "-DBUILD_SHARED_LIBS=ON", True),
        ("COMPONENTS static", "-DBUILD_SHARED_LIBS=ON", False),
        ("COMPONENTS shared", "-DBUILD_SHARED_LIBS=OFF", True),
    ],
)
def test_find_package(installed, tmp_path, components, setting, shared):
    source = project(tmp_path / "scratch", FIND, version=VERSION, components=components)
    cmake(source, tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed}", setting)
    assert run(tmp_path / "build" / "scratch") == f"{VERSION}\n"
    assert needed(tmp_path / "build" / "scratch") in (shared, None)


def test_another_minor_version_is_not_found(installed, tmp_path):
    source = project(tmp_path / "scratch", FIND, version="99.0", components="")
    with pytest.raises(AssertionError, match=r"99\.0"):
        cmake(source, tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed}")


def test_fetch_content(tmp_path):
    source = project(tmp_path / "scratch", FETCH, root=ROOT)
    cmake(source, tmp_path / "build")
    assert run(tmp_path / "build" / "scratch") == f"{VERSION}\n"
    # Nothing of it is installed, and no library is built that was not asked for.
    run("cmake", "--install", tmp_path / "build", "--prefix", tmp_path / "prefix")
    assert not (tmp_path / "prefix").exists()
    assert not list((tmp_path / "build").rglob("libdmlsplit.so*"))


def compile_commands(folder, **environment):
    """How the library's sources are compiled where the project around it names no build type."""
    source = project(folder, FETCH, root=ROOT)
    run(
        "cmake",
        "-S",
        source,
        "-B",
        folder / "build",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        env=os.environ | environment,
    )
    commands = json.loads((folder / "build" / "compile_commands.json").read_text())
    return [entry["command"] for entry in commands if entry["file"].startswith(str(ROOT / "csrc"))]


def test_without_a_build_type_the_library_is_optimised(tmp_path):
    commands = compile_commands(tmp_path / "neither", CFLAGS="")
    assert {" -O2 " in command for command in commands} == {True}
    commands = compile_commands(tmp_path / "flags", CFLAGS="-Os")
    assert {(" -Os " in command, " -O2 " in command) for command in commands} == {(True, False)}


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config on the path")
@pytest.mark.parametrize("shared", [True, False])
def test_pkg_config(installed, tmp_path, shared):
    if not shared:
        prefix = tmp_path / "static"
        cmake(ROOT, tmp_path / "build", "-DDMLSPLIT_BUILD_SHARED=OFF", "-DDMLSPLIT_NO_SSSE3=ON")
        run("cmake", "--install", tmp_path / "build", "--prefix", prefix)
    else:
        prefix = installed
    variables = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    assert run("pkg-config", "--modversion", "dmlsplit", env=variables).strip() == VERSION
    words = run("pkg-config", "--cflags", "--libs", "dmlsplit", env=variables).split()
    (tmp_path / "main.cpp").write_text(PROGRAM)
    binary = tmp_path / "scratch"
    run("c++", "-std=c++17", tmp_path / "main.cpp", *words, f"-Wl,-rpath,{prefix / 'lib'}", "-o", binary)
    assert run(binary) == f"{VERSION}\n"
    assert needed(binary) in (shared, None)


@pytest.mark.skipif(sys.platform != "linux", reason="ELF, and mingw")
@pytest.mark.parametrize("windows", [False, True])
def test_the_layer(tmp_path, windows):
    """What `dmlsplit layer install --layer` takes; it exports what DirectML does, and on Linux needs the real one."""
    compiler = "x86_64-w64-mingw32-gcc" if windows else "cc"
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on the path")
    system = ["-DCMAKE_SYSTEM_NAME=Windows", f"-DCMAKE_C_COMPILER={compiler}"] if windows else []
    run("cmake", "-S", ROOT, "-B", tmp_path, "-DDMLSPLIT_BUILD_LAYER=ON", "-DDMLSPLIT_BUILD_SHARED=OFF", *system)
    run("cmake", "--build", tmp_path, "--target", "dmlsplit_layer", "--parallel", "2")
    made = tmp_path / ("DirectML.dll" if windows else "libdirectml.so")
    assert layer.MARK in made.read_bytes()
    if windows:
        assert layer.exports(made.read_bytes(), made.name) == layer.EXPORTED
    else:
        assert set(run("nm", "-D", "--defined-only", "--format=just-symbols", made).split()) == layer.EXPORTED
        assert layer.KINDS["linux"].real in run("readelf", "-d", made)
