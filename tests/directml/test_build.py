"""Fetching and compiling: what is kept, what is refused, and what is said where it cannot be done."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.directml import build, wine
from tests.directml.builds import WINDOWS, Build

CONTENT = b"not Microsoft's library"
BUILD = Build("some-directml-1.0", "some-directml", "1.0", "3.11", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DMLSPLIT_CACHE", str(tmp_path))
    monkeypatch.setattr(build, "require_platform", lambda: None)
    return tmp_path


def wheel(directory, library="some_directml/libdirectml.so"):
    path = directory / "some_directml-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(library, CONTENT)
        archive.writestr("some_directml/libdirectml_tools.py", "")
        archive.writestr("some_directml/libother.so", "")
        archive.writestr("some_directml-1.0.dist-info/LICENSE", "terms")
        archive.writestr("other/LICENSE", "of something else")
    return path


def test_the_cache_is_outside_the_tree(tmp_path, monkeypatch):
    monkeypatch.delenv("DMLSPLIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert build.cache_directory() == tmp_path / "xdg" / "dmlsplit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert build.cache_directory() == tmp_path / ".cache" / "dmlsplit"


@pytest.mark.parametrize("library", ["some_directml/libdirectml.so", "_solib_directml/libdirectml.so.0123abcd"])
def test_only_the_library_and_its_licence_are_kept(cache, monkeypatch, library):
    monkeypatch.setattr(build, "_download", lambda made, directory: wheel(directory, library))
    path = build.library(BUILD)
    assert path.read_bytes() == CONTENT
    assert sorted(p.relative_to(cache).as_posix() for p in cache.rglob("*") if p.is_file()) == [
        "directml/some-directml-1.0/LICENSE",
        "directml/some-directml-1.0/libdirectml.so",
    ]
    monkeypatch.setattr(build, "_download", lambda made, directory: pytest.fail("fetched twice"))
    assert build.library(BUILD) == path


def test_what_is_kept_of_a_windows_package(cache, monkeypatch):
    def download(made, directory):
        path = directory / "some_directml-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("capi/DirectML.dll", "capi/other.dll", "LICENSE", "ThirdPartyNotices.txt", "__init__.py"):
                archive.writestr(f"some_directml-1.0.data/purelib/onnxruntime/{name}", CONTENT)
        return path

    monkeypatch.setattr(build, "_download", download)
    path = build.library(replace(BUILD, platform=WINDOWS))
    assert path == cache / "directml" / BUILD.name / "DirectML.dll"
    assert sorted(p.name for p in path.parent.iterdir()) == ["DirectML.dll", "LICENSE", "ThirdPartyNotices.txt"]


def test_another_file_than_the_observed_one_fails(cache, monkeypatch):
    monkeypatch.setattr(build, "_download", lambda made, directory: wheel(directory))
    with pytest.raises(build.BuildError, match=r"not the expected file of some-directml-1\.0"):
        build.library(replace(BUILD, sha256="0" * 64))
    assert [p for p in cache.rglob("*") if p.is_file()] == []


def test_a_wheel_without_the_library_fails(monkeypatch):
    monkeypatch.setattr(build, "_download", lambda made, directory: wheel(directory, "some_directml/other.so"))
    with pytest.raises(build.BuildError, match="contains no libdirectml"):
        build.library(BUILD)


def test_pip_says_why(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: retrying\nERROR: No matching distribution found\n")
    monkeypatch.setattr(build, "_run", lambda command, seconds: failed)
    with pytest.raises(build.Unavailable, match=r"could not fetch some-directml-1\.0: ERROR: No matching"):
        build.library(BUILD)


def test_pip_takes_too_long(monkeypatch):
    def run(command, seconds):
        raise subprocess.TimeoutExpired(command, seconds)

    monkeypatch.setattr(build, "_run", run)
    with pytest.raises(build.Unavailable, match=r"did not fetch some-directml-1\.0 within 600 seconds"):
        build.library(BUILD)


def test_another_platform(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(build.Unavailable, match=r"on x86-64, this is \w+ riscv64"):
        build.library(BUILD)
    with pytest.raises(build.Unavailable, match="riscv64"):
        build.harness.__wrapped__()


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(build.Unavailable, match="no C\\+\\+ compiler"):
        build.harness.__wrapped__()


def test_no_wine(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.Unavailable, match="the Windows builds need wine: wine was not found"):
        build.harness.__wrapped__(WINDOWS)


def test_no_compiler_for_windows(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(wine, "environment", lambda prefix: {})
    with pytest.raises(build.Unavailable, match="no C\\+\\+ compiler for Windows"):
        build.harness.__wrapped__(WINDOWS)


def test_wine_that_makes_no_prefix(tmp_path, monkeypatch):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("wine", "wineboot", "wineserver"):
        (programs / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(build.BuildError, match="wine has made no prefix"):
        wine.environment(tmp_path / "cache" / "wine")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_compiler_that_fails_is_no_reason_to_skip(cache, tmp_path, monkeypatch):
    compiler = Path(tmp_path) / "compiler"
    compiler.write_text("#!/bin/sh\necho 'error: something' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(build.BuildError, match=r"harness does not compile:\nerror: something"):
        build.harness.__wrapped__()
    assert list(cache.glob("harness/*")) == []
