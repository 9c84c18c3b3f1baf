"""`dmlsplit layer install` and `remove`: which files there are afterwards, and after whatever goes wrong."""

from __future__ import annotations

import os
import shutil
import stat
from struct import pack, pack_into

import pytest

from dmlsplit.cli import main
from dmlsplit.library import layer
from dmlsplit.library.catalogue import LINUX, WINDOWS
from dmlsplit.library.errors import Unavailable
from dmlsplit.library.harness import TOOLCHAINS

ELF = b"\x7fELF" + bytes(14) + b"\x3e\x00" + b"the real library for Linux"
ARM = b"\x7fELF" + bytes(14) + b"\xb7\x00" + b"the real library for Arm"
LAYER = b"\x7fELF, a small library: " + layer.MARK + b"\0"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a library for Linux, and a layer that is ready."""
    made = tmp_path / "made"
    made.write_bytes(LAYER)
    monkeypatch.setattr(layer, "built", lambda platform: made)
    folder = tmp_path / "some_directml"
    folder.mkdir()
    (folder / "libdirectml.so").write_bytes(ELF)
    (folder / "libdirectml.so").chmod(0o755)
    (folder / "other.so").write_bytes(b"another")
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


INSTALLED = {"libdirectml.so": LAYER, "libdirectml.real.so": ELF, "other.so": b"another"}
BEFORE = {"libdirectml.so": ELF, "other.so": b"another"}


def test_it_is_put_there_and_taken_away(folder, capsys):
    before = (folder / "libdirectml.so").stat()
    assert main(["layer", "install", str(folder)]) == 0
    assert contents(folder) == INSTALLED
    assert stat.S_IMODE((folder / "libdirectml.so").stat().st_mode) == 0o755
    assert main(["layer", "install", str(folder)]) == 2
    assert contents(folder) == INSTALLED
    assert main(["layer", "remove", str(folder)]) == 0
    assert contents(folder) == BEFORE
    after = (folder / "libdirectml.so").stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert main(["layer", "remove", str(folder)]) == 2
    assert contents(folder) == BEFORE
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        f"{folder / 'libdirectml.so'} is the layer; the real library is libdirectml.real.so next to it",
        f"{folder / 'libdirectml.so'} is the real library again",
    ]
    assert shown.err.splitlines() == [
        f"dmlsplit: {folder / 'libdirectml.so'}: the layer is already installed",
        f"dmlsplit: {folder}: there is no layer in this folder",
    ]


@pytest.mark.parametrize("links", [True, False])
def test_nothing_is_half_done(folder, monkeypatch, links):
    """The layer cannot be written: the real library has its one name, as before."""
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    written = layer.write_file

    def full(path, *parts):
        if path.endswith("libdirectml.so"):
            assert contents(folder)["libdirectml.so"] == ELF
            raise OSError(28, "No space left on device", path)
        written(path, *parts)

    monkeypatch.setattr(layer, "write_file", full)
    assert main(["layer", "install", str(folder)]) == 2
    assert contents(folder) == BEFORE


def no_links(*paths, **options):
    raise OSError(95, "Operation not supported")


def test_a_file_system_without_links(folder, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    layer.install(folder)
    assert contents(folder) == INSTALLED
    layer.remove(folder)
    assert contents(folder) == BEFORE


@pytest.mark.parametrize("second_name", [os.link, shutil.copy])
def test_an_installation_that_was_killed_is_finished_or_undone(folder, second_name):
    second_name(folder / "libdirectml.so", folder / "libdirectml.real.so")
    layer.remove(folder)
    assert contents(folder) == BEFORE
    second_name(folder / "libdirectml.so", folder / "libdirectml.real.so")
    layer.install(folder)
    assert contents(folder) == INSTALLED


def test_where_the_second_library_fails_the_first_is_given_back(folder, monkeypatch):
    shutil.copy(folder / "libdirectml.so", folder / "DirectML.dll")
    monkeypatch.setattr(layer, "_suited", lambda place, file: LAYER)
    written = layer.write_file

    def full(path, *parts):
        if path.endswith("libdirectml.so"):
            raise OSError(28, "No space left on device", path)
        written(path, *parts)

    monkeypatch.setattr(layer, "write_file", full)
    before = contents(folder)
    with pytest.raises(OSError, match="No space left"):
        layer.install(folder)
    assert contents(folder) == before


def test_a_name_with_a_hash_in_it_stays(folder):
    hashed = folder / "libdirectml.so.0de2b4431c65"
    (folder / "libdirectml.so").rename(hashed)
    layer.install(folder)
    assert (hashed.read_bytes(), (folder / "libdirectml.real.so").read_bytes()) == (LAYER, ELF)
    layer.remove(folder)
    assert contents(folder) == {hashed.name: ELF, "other.so": b"another"}


def refused(folder, command, said, capsys):
    before = contents(folder) if folder.is_dir() else None
    assert main(["layer", command, str(folder)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert before is None or contents(folder) == before


def test_what_cannot_be_done_is_refused(folder, tmp_path, capsys):
    refused(tmp_path / "absent", "install", "there is no such folder", capsys)
    refused(folder / "other.so", "remove", "this is not a folder", capsys)
    refused(tmp_path, "install", "there is no DirectML.dll or libdirectml.so in this folder", capsys)
    shutil.copy(folder / "libdirectml.so", folder / "libdirectml.so.0123")
    refused(folder, "install", "it is not known which of them is used", capsys)
    (folder / "libdirectml.so.0123").unlink()
    (folder / "libdirectml.real.so").write_bytes(b"another one")
    refused(folder, "install", "libdirectml.real.so: it exists already, and is not the same library", capsys)
    refused(folder, "remove", "this library is not the layer", capsys)  # an update came after the layer
    (folder / "libdirectml.real.so").unlink()
    (folder / "libdirectml.so").write_bytes(ARM)
    refused(folder, "install", "this is not a library for x86-64", capsys)
    (folder / "libdirectml.so").write_bytes(b"")
    refused(folder, "install", "this is not a library for x86-64", capsys)
    (folder / "libdirectml.so").unlink()
    (folder / "libdirectml.so").symlink_to(folder / "other.so")
    refused(folder, "install", "it is a link to", capsys)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
def test_what_is_no_regular_file_is_not_read(folder, capsys):
    """Reading a FIFO would wait for a writer, reading a device need not end."""
    os.mkfifo(folder / "fifo")
    for layer_file in (folder / "fifo", os.devnull):
        assert main(["layer", "install", str(folder), "--layer", str(layer_file)]) == 2
        assert capsys.readouterr().err == f"dmlsplit: {layer_file}: it is not a regular file\n"
    (folder / "fifo").rename(folder / "libdirectml.real.so")
    for command in ("install", "remove"):
        refused(folder, command, "libdirectml.real.so: it is not a regular file", capsys)
    assert contents(folder) == BEFORE


def test_a_folder_s_name_is_shown_not_obeyed(folder, capsys):
    folder = folder.rename(folder.with_name("\x1b[31m"))
    assert main(["layer", "install", str(folder)]) == 0
    assert main(["layer", "remove", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.count("\\x1b[31m") == 2


def image_with(names, size, sections=1):
    """A DLL for x86-64 that exports so many names, all of them one of this size."""
    image = bytearray(0x400)
    image[:2] = b"MZ"
    pack_into("<I", image, 0x3C, 0x80)
    pack_into("<4sHH", image, 0x80, b"PE", 0x8664, sections)
    pack_into("<H", image, 0x94, 240)
    pack_into("<III", image, 0x98 + 108, 16, 0x1000, 40)
    pack_into("<IIII", image, 0x98 + 248, 1 << 30, 0x1000, 1 << 30, 0x400)
    directory = bytearray(40)
    pack_into("<I", directory, 24, names)
    pack_into("<I", directory, 32, 0x1000 + 40)
    return bytes(image + directory + pack("<I", 0x1000 + 40 + 4 * names) * names) + b"A" * size + b"\0"


def test_a_library_s_exports_cannot_keep_us(folder, capsys):
    assert layer.exports(image_with(1 << 16, 15), "a.dll") == {"A" * 15}
    assert layer.exports(image_with(1, 4095), "a.dll") == {"A" * 4095}
    for image in (image_with((1 << 16) + 1, 15), image_with(1, 4096), image_with(1, 15, sections=97)):
        with pytest.raises(layer.LayerError, match="the library's exports cannot be read"):
            layer.exports(image, "a.dll")
    (folder / "libdirectml.so").unlink()
    (folder / "DirectML.dll").write_bytes(image_with(1, 4096))
    refused(folder, "install", "DirectML.dll: the library's exports cannot be read", capsys)


@pytest.mark.parametrize("command", [" ", "'", 'cc "'])
def test_a_compiler_that_is_no_command(command, monkeypatch):
    monkeypatch.setenv("CC", command)
    monkeypatch.setenv("CXX", command)
    with pytest.raises(Unavailable, match=r"^\$CC is not a command: "):
        layer._compiler(layer.KINDS["linux"])
    with pytest.raises(Unavailable, match=r"^\$CXX is not a command: "):
        TOOLCHAINS["linux"].found()


def test_a_library_that_is_too_large_is_not_read(folder, capsys):
    (folder / "libdirectml.so").unlink()
    with open(folder / "libdirectml.so", "wb") as stream:
        stream.truncate(layer.MOST_LIBRARY_BYTES + 1)
    assert main(["layer", "install", str(folder)]) == 2
    assert capsys.readouterr().err.endswith("libdirectml.so: it is larger than 268,435,456 bytes\n")


def test_no_compiler(monkeypatch, capsys):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(Unavailable, match=r"no C compiler was found \(\$CC, else cc, gcc, clang, zig"):
        layer._compiler(layer.KINDS["linux"])


def test_what_the_layer_exports():
    """A DLL that exports more than the layer passes on is left alone: its other functions would be missing."""
    try:
        image = layer.built(WINDOWS).read_bytes()
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert layer.exports(image, "a.dll") == layer.EXPORTED
    for size in (0, 64, 200, 1000, 5000):
        with pytest.raises(layer.LayerError):
            layer.exports(image[:size], "a.dll")
    more = image.replace(b"DMLCreateDevice1\0", b"DMLCreateDeviceX\0")
    assert layer.exports(more, "a.dll") == {"DMLCreateDevice", "DMLCreateDeviceX"}


def test_a_library_with_other_exports_is_left_alone(folder, tmp_path, monkeypatch, capsys):
    (folder / "libdirectml.so").unlink()
    (folder / "DirectML.dll").write_bytes(b"MZ" + bytes(58) + b"\x40\0\0\0" + b"PE\0\0\x64\x86")
    monkeypatch.setattr(layer, "exports", lambda image, name: {"DMLCreateDevice", "DMLReflect"})
    refused(folder, "install", "it exports DMLReflect, which the layer does not forward", capsys)
    refused(folder, "remove", "there is no layer", capsys)
    monkeypatch.setattr(layer, "exports", lambda image, name: {"DMLCreateDevice"})
    refused(folder, "install", "made: this is not a layer for DirectML.dll", capsys)
    (tmp_path / "dll").write_bytes(b"MZ" + LAYER)
    assert main(["layer", "install", str(folder), "--layer", str(tmp_path / "dll")]) == 0
    assert set(contents(folder)) == {"DirectML.dll", "DirectML.real.dll", "other.so"}


@pytest.mark.slow
@pytest.mark.parametrize("platform", [LINUX, WINDOWS], ids=["linux", "windows"])
@pytest.mark.parametrize("zig", [False, True])
def test_sources_compile_without_a_warning(platform, zig, tmp_path, monkeypatch):
    if zig:
        pytest.importorskip("ziglang")
        monkeypatch.setenv("PATH", "")
        monkeypatch.delenv("CC", raising=False)
    try:
        compiler = [*layer._compiler(layer.KINDS[platform.name]), "-Werror", "-Wpedantic"]
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert ("ziglang" in compiler) == zig
    root = next(path for path in layer.ROOTS if (path / "layer").is_dir())
    layer.compile_layer(platform, root, tmp_path, compiler)
    made = tmp_path / platform.library
    assert list(tmp_path.iterdir()) == [made]
    assert layer.MARK in made.read_bytes()
    assert platform is LINUX or layer.exports(made.read_bytes(), "a.dll") == layer.EXPORTED
