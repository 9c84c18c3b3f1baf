"""The layer: a library that takes the place of the real DirectML, forwards all calls to it, and records them.

It is prebuilt in the wheel, or compiled from layer/ and csrc/ with a C compiler. `install` replaces a DirectML.dll or
libdirectml.so, which is renamed and stays in the same folder; `remove` undoes that.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from dmlsplit.library.catalogue import LINUX, WINDOWS, Platform
from dmlsplit.library.errors import Unavailable
from dmlsplit.library.harness import PREBUILT, ROOTS, command_words, compile_command
from dmlsplit.library.places import cache_folder, made_whole
from dmlsplit.system.atomic_files import write_file
from dmlsplit.system.errors import DmlSplitError, InputError, naming
from dmlsplit.system.input_files import input_size, open_input
from dmlsplit.system.records import record

MARK: Final = b"dmlsplit layer over DirectML"
"""Bytes that only the layer's file contains."""
MOST_BYTES: Final = 8 << 20
"""The layer's file is smaller than this."""
MOST_LIBRARY_BYTES: Final = 1 << 28
"""The real library's file is smaller than this: builds have 3 to 20 MB."""
FLAGS: Final = ("-std=c11", "-O2", "-g0", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-fvisibility=hidden")
CORE: Final = (
    *("dms_capture", "dms_members", "dms_overlap", "dms_rules", "dms_text"),
    *("dms_verdict", "dms_verdict_found", "dms_verdict_layout", "dms_verdict_target", "dms_verdict_tensor"),
)
"""The sources of the C library that are compiled into the layer."""
EXPORTED: Final = frozenset({"DMLCreateDevice", "DMLCreateDevice1"})
_MOST_SECTIONS: Final = 96
"""The most bytes of headers of a DLL that Windows loads."""
_MOST_NAMES: Final = 1 << 16
"""The exports of a DLL have numbers of 16 bits."""
_LONGEST_NAME: Final = 4096
"""The most bytes of an export's name, including the terminating zero."""


@record
class Kind:
    """The layer for a platform: the name that the real library gets, how the layer is compiled, how its file begins."""

    real: str
    names: re.Pattern[str]
    """The library's file name; in some packages it contains a hash."""
    variable: str
    """The environment variable that names the compiler."""
    compilers: tuple[str, ...]
    target: str
    """zig's name for the platform."""
    flags: tuple[str, ...]
    source: str
    image: tuple[bytes, int, bytes]
    """The first bytes of a library, and those that name the machine (x86-64) at an offset from the header."""


KINDS: Final[Mapping[str, Kind]] = {
    LINUX.name: Kind(
        "libdirectml.real.so",
        re.compile(r"libdirectml\.so(\.[0-9a-f]+)?|libdirectml\.[0-9a-f]{8,}\.so"),
        "CC",
        ("cc", "gcc", "clang"),
        "x86_64-linux-gnu",
        ("-fPIC", "-pthread", "-ldl", "-Wl,-rpath,$ORIGIN", "-s"),
        "platform_linux",
        (b"\x7fELF", 18, b"\x3e\x00"),
    ),
    WINDOWS.name: Kind(
        "DirectML.real.dll",
        re.compile(r"DirectML(\.[0-9a-f]{8,})?\.dll", re.IGNORECASE),
        "DMLSPLIT_WINDOWS_CC",
        ("x86_64-w64-mingw32-gcc -static",),
        "x86_64-windows-gnu",
        ("-s",),
        "platform_windows",
        (b"MZ", 4, b"\x64\x86"),
    ),
}


class LayerError(DmlSplitError):
    """The layer cannot be installed or removed."""


@record
class LibraryPaths:
    """The paths of a library in a folder: its own name, and its name when the layer is installed."""

    platform: Platform
    library: Path
    real: Path


def install(folder: Path, layer: Path | None = None) -> list[LibraryPaths]:
    """Replaces the DirectML libraries of a folder by the layer, renames them in the same folder, and returns their
    places.

    `layer` is the file to use instead of this package's own layer. Raises LayerError if the folder has no such library,
    if the layer is already installed, or if it does not fit the library; Unavailable without a compiler. After an error
    nothing has changed.
    """
    places = list(_places(folder))
    if not places:
        names = " or ".join(platform.library for platform in (WINDOWS, LINUX))
        raise LayerError(f"{folder}: there is no {names} in this folder")
    layers = [(place, _suited(place, layer)) for place in places]
    done: list[LibraryPaths] = []
    try:
        for place, image in layers:
            _put(place, image)
            done.append(place)
    except BaseException:
        for place in done:
            place.real.replace(place.library)
        raise
    return places


def remove(folder: Path) -> list[LibraryPaths]:
    """Restores the names of the DirectML libraries of a folder, and returns their places. Raises LayerError if no layer
    is installed."""
    places = [place for place in _places(folder) if place.real.exists()]
    if not places:
        raise LayerError(f"{folder}: there is no layer in this folder")
    for place in places:
        if place.library.exists() and not _is_layer(place.library) and not _is_begun(place):
            raise LayerError(
                f"{place.library}: this library is not the layer; {place.real.name} next to it is left in place"
            )
    for place in places:
        with naming(str(place.library)):
            if place.library.exists() and place.library.samefile(place.real):
                place.real.unlink()  # left by an interrupted installation
            else:
                place.real.replace(place.library)
    return places


def _places(folder: Path) -> Iterator[LibraryPaths]:
    """Yields the DirectML libraries of a folder, with or without the layer. Raises LayerError if it is not a folder, or
    if there are several for one platform."""
    if not folder.is_dir():
        raise LayerError(f"{folder}: {'this is not a folder' if folder.exists() else 'there is no such folder'}")
    for platform in (WINDOWS, LINUX):
        kind = KINDS[platform.name]
        found = sorted(path for path in folder.iterdir() if kind.names.fullmatch(path.name) and path.is_file())
        real = folder / kind.real
        if len(found) > 1:
            raise LayerError(f"{folder}: {found[0].name} and {found[1].name}: it is not known which of them is used")
        if found or real.exists():
            yield LibraryPaths(platform, found[0] if found else folder / platform.library, real)


def _is_layer(path: Path) -> bool:
    return MARK in _bytes(path, MOST_BYTES)


def _bytes(path: Path, most: int | None = None) -> bytes:
    """Returns the content of a file; b"" if it has more than `most` bytes. Raises LayerError for anything but a regular
    file, and for one that is too large for a library."""
    try:
        with naming(str(path)):
            size = input_size(path)
            if most is not None and size > most:
                return b""
            if size > MOST_LIBRARY_BYTES:
                raise InputError(f"it is larger than {MOST_LIBRARY_BYTES:,} bytes")
            with open_input(path) as stream:
                return stream.read()
    except InputError as error:
        raise LayerError(f"{path}: {error.message}") from None


def _is_begun(place: LibraryPaths) -> bool:
    """True if the files under both names of the library are equal: an installation was interrupted between its two
    steps."""
    return place.library.samefile(place.real) or _bytes(place.library) == _bytes(place.real)


def _suited(place: LibraryPaths, layer: Path | None) -> bytes:
    """Returns the bytes of the layer for a library: those of the file `layer`, or the package's own. Raises LayerError
    if library or layer is not what it should be."""
    if not place.library.exists():
        raise LayerError(f"{place.library}: it is missing next to {place.real.name}")
    if place.library.is_symlink():
        raise LayerError(f"{place.library}: it is a link to {place.library.resolve()}; name the folder of its target")
    if _is_layer(place.library):
        raise LayerError(f"{place.library}: the layer is already installed")
    if place.real.exists() and not _is_begun(place):
        raise LayerError(f"{place.real}: it exists already, and is not the same library as {place.library.name}")
    image = _bytes(place.library)
    start, offset, machine = KINDS[place.platform.name].image
    header = int.from_bytes(image[0x3C:0x40], "little") if place.platform is WINDOWS else 0
    if not image.startswith(start) or image[header + offset : header + offset + 2] != machine:
        raise LayerError(f"{place.library}: this is not a library for x86-64")
    if place.platform is WINDOWS:
        more = sorted(exports(image, str(place.library)) - EXPORTED)
        if more:
            raise LayerError(f"{place.library}: it exports {more[0]}, which the layer does not forward")
    path = layer or built(place.platform)
    made = _bytes(path) if _is_layer(path) else b""
    if not made.startswith(start):
        raise LayerError(f"{path}: this is not a layer for {place.library.name}")
    return made


def _put(place: LibraryPaths, layer: bytes) -> None:
    """Gives the library its second name, and then the layer the first one, so that a program finds one of the two at
    any time."""
    with naming(str(place.library)):
        if not place.real.exists():
            try:
                os.link(place.library, place.real)
            except OSError:  # a file system without links
                write_file(str(place.real), _bytes(place.library))
                shutil.copystat(place.library, place.real)
        try:
            write_file(str(place.library), layer)
        except BaseException:
            with suppress(OSError):
                place.real.unlink()
            raise


def exports(image: bytes, name: str) -> frozenset[str]:
    """Returns the names that a DLL for x86-64 exports. Raises LayerError, which calls the DLL `name`, if they cannot be
    read."""
    try:
        return frozenset(_exports(image))
    except (IndexError, StopIteration, ValueError):
        raise LayerError(f"{name}: the library's exports cannot be read") from None


def _exports(image: bytes) -> Iterator[str]:
    def number(at: int, size: int = 4) -> int:
        if at + size > len(image):
            raise IndexError
        return int.from_bytes(image[at : at + size], "little")

    header = number(0x3C)
    optional = header + 24
    sections, count = optional + number(header + 20, 2), number(header + 6, 2)
    if count > _MOST_SECTIONS:
        raise ValueError

    def offset(address: int) -> int:
        """Returns the offset in the file of an address in memory."""
        for i in range(count):
            row = sections + 40 * i
            if number(row + 12) <= address < number(row + 12) + max(number(row + 8), number(row + 16)):
                return address - number(row + 12) + number(row + 20)
        raise IndexError

    if number(optional + 108) == 0 or number(optional + 112) == 0:
        return
    directory = offset(number(optional + 112))
    named = number(directory + 24)
    if named > _MOST_NAMES:
        raise ValueError
    names = offset(number(directory + 32)) if named else 0
    for i in range(named):
        start = offset(number(names + 4 * i))
        yield image[start : image.index(b"\0", start, start + _LONGEST_NAME)].decode("ascii")


def built(platform: Platform) -> Path:
    """Returns the path of the layer for a platform: that in the wheel, or one that is recompiled if its sources have
    changed. Raises Unavailable without sources or compiler."""
    prebuilt = PREBUILT / "layer" / platform.library
    if prebuilt.is_file():
        return prebuilt
    root = next((path for path in ROOTS if (path / "layer" / "layer.c").is_file()), None)
    if root is None:
        raise Unavailable("this installation has no sources; the wheel and the checkout have them")
    compiler = _compiler(KINDS[platform.name])
    digest = hashlib.sha256("\0".join(compiler).encode())
    of_core = [root / "csrc" / f"{name}.c" for name in CORE]
    others = [*root.glob("layer/*"), *root.glob("include/*.h"), *root.glob("csrc/*.h"), *root.glob("csrc/*.inc")]
    for path in sorted([*of_core, *others, Path(__file__)]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    folder = cache_folder() / "layer" / digest.hexdigest()[:16]
    if not folder.exists():
        with made_whole(folder) as made:
            compile_layer(platform, root, made, compiler)
    return folder / platform.library


def compile_layer(platform: Platform, root: Path, folder: Path, compiler: Sequence[str] = ()) -> None:
    """Compiles a platform's layer from the sources in `root` into a folder. Raises Unavailable without a compiler,
    BuildError if it fails."""
    kind = KINDS[platform.name]
    command = [*(compiler or _compiler(kind)), "-shared"]
    definitions = [f'-DLAYER_REAL="{kind.real}"', f"-I{root / 'include'}", f"-I{root / 'csrc'}"]
    sources = [root / "layer" / f"{name}.c" for name in ("layer", "objects", "output", "copy", kind.source)]
    sources += [root / "csrc" / f"{name}.c" for name in CORE]
    linked = []
    if platform is LINUX:
        # The layer is linked to the real library by its new name, where everything that the layer does not export is
        # found.
        empty, stub = folder / "empty.c", folder / kind.real
        empty.write_text("extern int dmlsplit_nothing;\n", "utf-8")
        compile_command("the layer", [*command, "-fPIC", f"-Wl,-soname,{kind.real}", "-o", str(stub), str(empty)])
        linked = ["-Wl,--no-as-needed", str(stub)]
    output = folder / platform.library
    compile_command(
        "the layer", [*command, *FLAGS, *definitions, "-o", str(output), *map(str, sources), *linked, *kind.flags]
    )
    for path in folder.iterdir():
        if path != output:  # the stub, and zig's import library and symbols
            path.unlink()


def compile_layers(root: Path, folder: Path) -> None:
    """Compiles the layers of all platforms into a folder, for a wheel. Raises Unavailable without a compiler,
    BuildError if it fails."""
    for platform in (LINUX, WINDOWS):
        made = folder / platform.name
        made.mkdir()
        compile_layer(platform, root, made)
        (made / platform.library).replace(folder / platform.library)
        made.rmdir()


def _compiler(kind: Kind) -> list[str]:
    """Returns the words of a compiler's command. Raises Unavailable if there is none."""
    named = os.environ.get(kind.variable)
    for command in [named] if named else kind.compilers:
        words = command_words(command, kind.variable)
        path = shutil.which(words[0])
        if path is not None:
            return [path, *words[1:]]
    zig = shutil.which("zig")
    if not named and (zig is not None or importlib.util.find_spec("ziglang") is not None):
        start = [zig] if zig is not None else [sys.executable, "-m", "ziglang"]
        return [*start, "cc", "-target", kind.target]
    known = ", ".join([*(command.split()[0] for command in kind.compilers), "zig (pip install ziglang)"])
    raise Unavailable(f"no C compiler was found (${kind.variable}, else {known})")
