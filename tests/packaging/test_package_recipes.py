"""The recipes of packagers: what they repeat is what the tree says, and each is built from the tree or rendered.

That they name the package's version is a line of packaging/release.py.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

import dmlsplit as dml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CONDA = ROOT / "packaging" / "conda" / "recipe.yaml"
PORT = ROOT / "packaging" / "vcpkg" / "ports" / "dmlsplit"
SOURCES = ("CMakeLists.txt", "LICENSE", "cmake", "include", "csrc", "examples", "packaging")

# The helpers of vcpkg that the port calls, for one configuration of the machine at hand: what they do with their
# arguments, and no more. vcpkg itself comes from no package registry.
VCPKG = """
function(run)
    execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
    run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${CURRENT_BUILDTREES_DIR} -DCMAKE_BUILD_TYPE=Release
        -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} -DCMAKE_INSTALL_LIBDIR=lib --warn-uninitialized ${arg_OPTIONS})
endfunction()
function(vcpkg_cmake_install)
    run(${CMAKE_COMMAND} --build ${CURRENT_BUILDTREES_DIR} --target install)
endfunction()
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
    file(RENAME ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH} ${CURRENT_PACKAGES_DIR}/share/dmlsplit)
endfunction()
function(vcpkg_fixup_pkgconfig)
    file(READ ${CURRENT_PACKAGES_DIR}/lib/pkgconfig/dmlsplit.pc ignored)
endfunction()
function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
    configure_file(${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/dmlsplit/copyright COPYONLY)
endfunction()
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def test_conda_requires_what_the_package_does():
    recipe = pytest.importorskip("yaml").safe_load(CONDA.read_text("utf-8"))
    requirements = recipe["requirements"]

    def named(words):
        return {re.sub(r"(?<=[\w-])(?=[<>=])", " ", word) for word in words}

    assert set(requirements["run"]) == named(PROJECT["project"]["dependencies"]) | {"python"}
    assert set(requirements["host"]) == named(PROJECT["build-system"]["requires"]) | {"python", "pip"}
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert recipe["build"]["skip"] == f'match(python, "<{oldest}")'
    assert recipe["about"]["summary"] == PROJECT["project"]["description"]
    assert recipe["about"]["license"] == PROJECT["project"]["license"]


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64", "osx-arm64", "win-64"])
def test_conda_renders(platform):
    """Two Pythons with compilers: what conda-forge's pinning gives a recipe."""
    rattler = pytest.importorskip("rattler_build", reason="needs the package py-rattler-build")
    pinning = {"python": ["3.11", "3.14"], "c_compiler": ["compiler"], "c_stdlib": ["stdlib"]}
    config = rattler.RenderConfig(rattler.PlatformConfig(target_platform=platform))
    variants = rattler.Stage0Recipe.from_file(CONDA).render(rattler.VariantConfig(pinning), config)
    rendered = [variant.recipe.to_dict() for variant in variants]
    assert [recipe["build"]["string"][:5] for recipe in rendered] == ["py311", "py314"]
    for recipe in rendered:
        assert recipe["package"] == {"name": "dmlsplit", "version": dml.__version__}
        assert recipe["requirements"]["build"] == [f"compiler_{platform}", f"stdlib_{platform}"]
        assert (CONDA.parent / recipe["source"][0]["path"] / "pyproject.toml").samefile(ROOT / "pyproject.toml")


@pytest.mark.parametrize("recipe", [PORT / "portfile.cmake", ROOT / "packaging" / "conan" / "conanfile.py"])
def test_options_that_recipes_set_are_options_of_the_library(recipe):
    known = re.findall(r"option\((DMLSPLIT_\w+) ", (ROOT / "CMakeLists.txt").read_text("utf-8"))
    used = set(re.findall(r"DMLSPLIT_BUILD_\w+", recipe.read_text("utf-8")))
    assert used == {name for name in known if name.startswith("DMLSPLIT_BUILD_")}


def test_the_port_is_named_as_the_package():
    port = json.loads((PORT / "vcpkg.json").read_text("utf-8"))
    assert (port["name"], port["version"], port["license"]) == (PORT.name, dml.__version__, "MIT")


@pytest.fixture
def copy(tmp_path):
    """The tree's part that recipes read, where they may leave their own files beside."""
    if shutil.which("cmake") is None or shutil.which("cc") is None:
        pytest.skip("no cmake, or no C compiler, on the path")
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in SOURCES:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile)(ROOT / name, tree / name)
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_conan_creates_the_package_and_uses_it(copy, tmp_path, shared):
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    conan = shutil.which("conan", path=path)
    if conan is None:
        pytest.skip("no conan on the path")
    environment = {**os.environ, "PATH": path, "CONAN_HOME": str(tmp_path / "home")}
    run(conan, "profile", "detect", env=environment)
    options = ["-o", f"&:shared={shared}", "-o", "&:avx512=False"]
    if shutil.which("ninja", path=path):
        options += ["-c", "tools.cmake.cmaketoolchain:generator=Ninja"]
    said = run(conan, "create", copy / "packaging" / "conan", *options, env=environment)
    assert "\npart 2: 7 8 9 10 11 12\n" in said  # test_package ran
    listed = subprocess.run([conan, "list", "*", "--format=json"], env=environment, capture_output=True, check=True)
    assert list(json.loads(listed.stdout)["Local Cache"]) == [f"dmlsplit/{dml.__version__}"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="names of libraries on Linux")
@pytest.mark.parametrize(
    ("linkage", "library"),
    [("static", "libdmlsplit.a"), pytest.param("dynamic", "libdmlsplit.so", marks=pytest.mark.thorough)],
)
def test_the_port_installs_one_library(copy, tmp_path, linkage, library):
    packages = tmp_path / "packages"
    portfile = copy / PORT.relative_to(ROOT) / "portfile.cmake"
    script = tmp_path / "vcpkg.cmake"
    script.write_text(f'{VCPKG}include("{portfile}")\n')
    environment = {**os.environ, **({"CMAKE_GENERATOR": "Ninja"} if shutil.which("ninja") else {})}
    names = {"PACKAGES_DIR": packages, "BUILDTREES_DIR": tmp_path / "build"}
    settings = [f"-DCURRENT_{name}={value}" for name, value in names.items()]
    run("cmake", *settings, f"-DVCPKG_LIBRARY_LINKAGE={linkage}", "-P", script, env=environment)
    installed = {path.name for path in (packages / "lib").iterdir() if path.is_file() and not path.is_symlink()}
    assert installed == {library if linkage == "static" else f"{library}.{dml.__version__}"}
    assert {path.name for path in (packages / "share" / "dmlsplit").iterdir()} >= {"copyright", "dmlsplitConfig.cmake"}
    assert [path.name for path in (packages / "share").iterdir()] == ["dmlsplit"]
    assert (packages / "include" / "dmlsplit.hpp").is_file()
