"""dmlsplit doctor: the parts of this installation, and the missing ones."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Final

import click

from dmlsplit._version import __version__
from dmlsplit.cli import _streams
from dmlsplit.system.errors import InputError
from dmlsplit.system.input_files import open_input
from dmlsplit.system.printable import printable

OPTIONAL_PACKAGES: Final = {"onnx": "onnx", "ml_dtypes": "onnx", "defusedxml": "openvino", "jinja2": "html"}
"""Maps an importable name to dmlsplit's extra that installs it."""
_MOST_PROFILE: Final = 4094
"""The most bytes of a profile's file; the core ignores a longer one."""


@click.command()
def doctor() -> int:
    """Show version, C extension, CPU features, kernels, optional packages, and the libraries that can be asked.

    The exit status is 1 if numpy or the C extension is missing (operators can be judged, but not run), if the
    extension belongs to another version of dmlsplit, or if the profile that DMLSPLIT_PROFILE names is not used. A
    missing optional package or library is not an error.

    \b
    Example:
      dmlsplit doctor

    \f
    Prints the parts and returns the exit status, 0 or 1.
    """
    extension, fault = _extension()
    numpy, numpy_fault = _numpy()
    lines = [
        f"dmlsplit     {__version__}",
        f"python       {platform.python_implementation()} {platform.python_version()} ({sys.executable})",
        f"platform     {platform.platform()}",
        f"numpy        {numpy}",
        *extension,
        *(f"{name:<12} {_optional(name, extra)}" for name, extra in OPTIONAL_PACKAGES.items()),
        *_libraries(),
    ]
    _streams.write("\n".join(lines) + "\n")
    return 1 if fault or numpy_fault else 0


def _numpy() -> tuple[str, bool]:
    try:
        import numpy
    except ImportError as error:
        return f"missing ({error}); pip install numpy", True
    return numpy.__version__, False


def _extension() -> tuple[list[str], bool]:
    """Returns the lines about the C extension, and True if it is missing, of another version, or does not use the
    profile that DMLSPLIT_PROFILE names; else False."""
    from dmlsplit.native import core

    if core.IMPORT_ERROR is not None:
        remedy = "operators can be judged, but not run; reinstall with a C compiler"
        return [f"extension    missing ({core.IMPORT_ERROR}): {remedy}"], True
    try:
        number, features, kernels = core.version(), core.cpu_features(), core.kernels()
        profile = core.profile()
    except AttributeError as error:
        return [f"extension    belongs to another version ({error}); reinstall dmlsplit"], True
    lines = [
        f"extension    {number}",
        f"cpu          {platform.machine()}: {' '.join(features) or 'no feature that a kernel uses'}",
        *(f"profile      {line}" for line in profile.lines()),
    ]
    unread = _unread_profile(core.parse_profile)
    if unread is not None:
        lines.append(f"profile      {unread}")
    for kernel in kernels:
        state = "available" if kernel.available else "not available on this CPU"
        lines.append(f"kernel       {kernel.name} ({kernel.isa}): {state}")
    stale = number != __version__
    if stale:
        lines[0] += f", but the package has {__version__}; reinstall dmlsplit"
    return lines, stale or unread is not None


def _unread_profile(parse: Callable[[str], object]) -> str | None:
    """Returns, as text, why the core ignores the file that DMLSPLIT_PROFILE names; None if it reads it, or if the
    variable is not set. `parse` raises ValueError for a malformed profile."""
    path = os.environ.get("DMLSPLIT_PROFILE")
    if not path:
        return None
    try:
        with open_input(path) as file:
            text = file.read(_MOST_PROFILE + 1)
        if len(text) > _MOST_PROFILE:
            raise ValueError(f"it has more than {_MOST_PROFILE:,} bytes")
        parse(text.decode("utf-8"))
    except InputError:
        return f"DMLSPLIT_PROFILE={printable(path)} is not a regular file"
    except OSError as error:
        return f"DMLSPLIT_PROFILE={printable(path)} cannot be read: {error.strerror}"
    except ValueError as error:
        return f"DMLSPLIT_PROFILE={printable(path)} is not used: {error}"
    return None


def _libraries() -> Iterator[str]:
    """Yields the lines about wine and the builds of DirectML and ONNX Runtime that were added for `dmlsplit ask`."""
    import shutil

    from dmlsplit.library.catalogue import DEBUG_LAYER, debug_layer, known_builds
    from dmlsplit.library.fetching import is_added
    from dmlsplit.library.places import folder_of

    wine = shutil.which("wine")
    yield f"wine         {printable(wine or 'not found; dmlsplit ask runs Windows builds with it', None)}"
    try:
        found = [build for build in known_builds() if is_added(build)]
    except (RuntimeError, OSError) as error:  # a user without a home
        yield f"library      not known: {error}"
        return
    for build in found:
        name = DEBUG_LAYER if build == debug_layer() else build.name
        system = "Linux" if build.platform.name == "linux" else "wine"
        yield f"library      {name} ({system}): {printable(str(folder_of(build)), None)}"
    if not found:
        yield "library      none added; 'dmlsplit library add' fetches builds for dmlsplit ask"


def _optional(name: str, extra: str) -> str:
    import importlib.metadata
    import importlib.util

    if importlib.util.find_spec(name) is None:
        return f"not installed; pip install 'dmlsplit[{extra}]'"
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "installed, version unknown"
