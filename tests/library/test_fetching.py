"""Fetching and compiling: what is kept, what is refused, and what is said where it cannot be done."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from dmlsplit.library import fetching, harness, places, wine
from dmlsplit.library.catalogue import LINUX, ONNXRUNTIME, WINDOWS, Build
from dmlsplit.library.errors import BuildError, NotAdded, Unavailable

CONTENT = b"not Microsoft's library"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
BUILD = Build(
    "torch-directml-1.0", "directml", "torch-directml", "1.0", "3.11", 66_000_000, {"libdirectml.so": SHA256}, LINUX
)
ON_WINDOWS = replace(BUILD, platform=WINDOWS, files={"DirectML.dll": SHA256})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DMLSPLIT_CACHE", str(tmp_path))
    for module in (fetching, harness):
        monkeypatch.setattr(module, "require_platform", lambda: None)
    return tmp_path


def files(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def packages(monkeypatch, *names):
    """What pip fetches is a wheel with these files."""

    def download(build, directory):
        path = directory / "some_directml-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, CONTENT)
        return path

    monkeypatch.setattr(fetching, "_download", download)


def test_the_cache_is_the_users(tmp_path, monkeypatch):
    monkeypatch.delenv("DMLSPLIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert places.cache_folder() == tmp_path / "xdg" / "dmlsplit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places.cache_folder() == tmp_path / ".cache" / "dmlsplit"


@pytest.mark.parametrize("library", ["some_directml/libdirectml.so", "_solib_directml/libdirectml.so.0123abcd"])
def test_only_the_library_and_its_licence_are_kept(cache, monkeypatch, library):
    others = ("libdirectml_tools.py", "libother.so")
    packages(
        monkeypatch,
        library,
        *(f"some_directml/{name}" for name in others),
        "x-1.0.dist-info/LICENSE",
        "other/LICENSE",
    )
    path = fetching.library(BUILD)
    assert path.read_bytes() == CONTENT
    assert files(cache) == ["directml/torch-directml-1.0/LICENSE", "directml/torch-directml-1.0/libdirectml.so"]
    monkeypatch.setattr(fetching, "_download", lambda made, directory: pytest.fail("fetched twice"))
    assert fetching.library(BUILD) == path == fetching.checked_folder(BUILD) / "libdirectml.so"
    assert fetching.remove(BUILD)
    assert files(cache) == []
    assert not fetching.remove(BUILD)


def test_what_is_kept_of_a_windows_package(monkeypatch):
    names = ("capi/DirectML.dll", "capi/other.dll", "LICENSE", "ThirdPartyNotices.txt", "__init__.py")
    packages(monkeypatch, *(f"some_directml-1.0.data/purelib/onnxruntime/{name}" for name in names))
    assert files(fetching.add(ON_WINDOWS)) == ["DirectML.dll", "LICENSE", "ThirdPartyNotices.txt"]


def test_what_is_kept_of_onnxruntime(cache, monkeypatch):
    runtime = replace(
        ON_WINDOWS, kind=ONNXRUNTIME, version="1.99.0", files={"DirectML.dll": SHA256, "onnxruntime.dll": SHA256}
    )
    names = ("DirectML.dll", "onnxruntime.dll", "onnxruntime_providers_shared.dll", "onnxruntime_pybind11_state.pyd")
    packages(monkeypatch, *(f"onnxruntime/capi/{name}" for name in names))
    fetching.add(runtime)
    assert files(cache) == ["onnxruntime/1.99.0/DirectML.dll", "onnxruntime/1.99.0/onnxruntime.dll"]


def test_another_file_than_the_observed_one_fails(cache, monkeypatch):
    packages(monkeypatch, "some_directml/libdirectml.so")
    with pytest.raises(BuildError, match=r"not the expected file of torch-directml-1\.0"):
        fetching.add(replace(BUILD, files={"libdirectml.so": "0" * 64}))
    assert files(cache) == []


def test_a_library_that_was_changed_since_is_not_loaded(cache, monkeypatch):
    packages(monkeypatch, "some_directml/libdirectml.so")
    fetching.library(BUILD).write_bytes(b"something else")
    with pytest.raises(BuildError, match="not the expected file"):
        fetching.checked_folder(BUILD)


def test_a_wheel_without_the_library_fails(monkeypatch):
    packages(monkeypatch, "some_directml/other.so")
    with pytest.raises(BuildError, match="contains no libdirectml"):
        fetching.add(BUILD)


def test_what_is_not_here_is_not_fetched_unasked(cache):
    command = r"dmlsplit library add torch-directml-1\.0' fetches it, 66 MB \(terms: .*LICENSE"
    with pytest.raises(NotAdded, match=command):
        fetching.checked_folder(BUILD)
    assert files(cache) == []


def test_pip_says_why(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: retrying\nERROR: No matching distribution found\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: failed)
    with pytest.raises(Unavailable, match=r"pip could not fetch torch-directml-1\.0: ERROR: No matching"):
        fetching.add(BUILD)


def test_pip_takes_too_long(monkeypatch):
    def run(command, *, timeout, **options):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(Unavailable, match=r"pip did not fetch torch-directml-1\.0 within 600 seconds"):
        fetching.add(BUILD)


def test_another_platform(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    for ask in (lambda: fetching.add(BUILD), lambda: fetching.checked_folder(BUILD), harness.harness.__wrapped__):
        with pytest.raises(Unavailable, match=r"on x86-64, this is \w+ riscv64"):
            ask()


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(Unavailable, match="no C\\+\\+ compiler"):
        harness.harness.__wrapped__()


def test_no_wine(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="the Windows builds need wine: wine was not found"):
        harness.harness.__wrapped__(WINDOWS)


def test_no_compiler_for_windows(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(wine, "environment", lambda prefix: {})
    with pytest.raises(Unavailable, match=r"no C\+\+ compiler was found .* else x86_64-w64-mingw32"):
        harness.harness.__wrapped__(WINDOWS)


def test_wine_that_makes_no_prefix(tmp_path, monkeypatch):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("wine", "wineboot", "wineserver"):
        (programs / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(BuildError, match="wine did not create a prefix"):
        wine.environment(tmp_path / "cache" / "wine")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_compiler_that_fails_leaves_nothing(cache, tmp_path, monkeypatch):
    compiler = Path(tmp_path) / "compiler"
    compiler.write_text("#!/bin/sh\necho 'error: something' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(BuildError, match=r"harness does not compile:\nerror: something"):
        harness.harness.__wrapped__()
    assert list(cache.glob("harness/*")) == []


def test_the_harness_of_the_package_needs_no_compiler(tmp_path, monkeypatch):
    (tmp_path / "linux").mkdir()
    monkeypatch.setattr(harness, "PREBUILT", tmp_path)
    monkeypatch.setenv("PATH", "")
    found = harness.harness.__wrapped__()
    assert found.program == (str(tmp_path / "linux" / "harness"),)
    assert found.environment["LD_LIBRARY_PATH"] == str(tmp_path / "linux")
