"""dmlsplit library: the real libraries that can be asked on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import completing

if TYPE_CHECKING:
    from dmlsplit.library.catalogue import Build


def _names() -> list[str]:
    from dmlsplit.library.catalogue import DEBUG_LAYER, known_builds

    return [*(build.name for build in known_builds()), DEBUG_LAYER]


def _version(command: Callable[..., int]) -> Callable[..., int]:
    return click.argument("version", metavar="VERSION", shell_complete=completing(_names))(command)


@click.group(no_args_is_help=False)
def library() -> None:
    """Manage the real DirectML and ONNX Runtime libraries on this machine, which 'dmlsplit ask' uses.

    They belong to Microsoft and are not part of dmlsplit: 'add' fetches a package with pip, and by using it you accept
    the package's terms. VERSION is a DirectML release (1.15.4, or torch-directml-0.2.5.dev240914 for that of a
    package), a version of ONNX Runtime (onnxruntime-1.24.4), or debug-layer, which says why DirectML refuses an
    operator.

    \b
    Examples:
      dmlsplit library list
      dmlsplit library add torch-directml-0.2.5.dev240914
      dmlsplit library remove torch-directml-0.2.5.dev240914
    """


@library.command("list")
def list_() -> int:
    """Show which builds can be asked, and which of them are on this machine.

    \f
    Prints the table and returns the exit status, 0.
    """
    from dmlsplit.library.catalogue import DEBUG_LAYER, debug_layer, known_builds
    from dmlsplit.library.fetching import is_added, megabytes
    from dmlsplit.library.places import cache_folder
    from dmlsplit.report.table import Table

    rows = []
    for build in known_builds():
        size = f"no ({megabytes(build.size)} to fetch)" if build.size else "no"
        name = DEBUG_LAYER if build == debug_layer() else build.name
        here = "yes" if is_added(build) else size
        system = "Linux" if build.platform.name == "linux" else "wine"
        rows.append((name, build.release.directml, str(build.feature_level), system, here))
    table = Table("", ("VERSION", "DIRECTML", "LEVEL", "RUNS ON", "HERE"), rows)
    _streams.show_tables([table], plain_width=None)
    _streams.write(f"\nThey are in {cache_folder()}\n")
    return 0


@library.command()
@_version
def add(version: str) -> int:
    """Fetch one package with pip, check the SHA-256 of its libraries, and keep them with their licences.

    \f
    Prints what was done and returns the exit status, 0. Raises UsageError for an unknown version, Unavailable or
    BuildError if the package cannot be fetched or is not the known one.
    """
    from dmlsplit.library.fetching import add as fetch
    from dmlsplit.library.fetching import is_added, megabytes
    from dmlsplit.library.places import folder_of

    build = _build(version)
    if is_added(build):
        _streams.write(f"{build} is already here: {fetch(build)}\n")
        return 0
    program = "pip" if build.python else "npm"
    size = f", {megabytes(build.size)}" if build.size else ""
    _streams.write(f"{program} fetches {build.package} {build.version}{size}; by fetching it you accept its terms:\n")
    _streams.write(f"  {build.terms}\n")
    _streams.flush()
    fetch(build)
    kept = sum(file.stat().st_size for file in folder_of(build).iterdir())
    _streams.write(
        f"The SHA-256 of {' and '.join(build.files)} is the known one; {megabytes(kept)} are kept, with the\n"
    )
    _streams.write(f"licence files, in {folder_of(build)}\n")
    return 0


@library.command()
@_version
def remove(version: str) -> int:
    """Delete a build from this machine.

    \f
    Prints what was done and returns the exit status, 0, also if the build was not here. Raises UsageError for an
    unknown version.
    """
    from dmlsplit.library.fetching import remove as delete
    from dmlsplit.library.places import folder_of

    build = _build(version)
    gone = delete(build)
    _streams.write(f"{folder_of(build)} is removed\n" if gone else f"{build} is not here\n")
    return 0


def _build(version: str) -> Build:
    from dmlsplit.library.catalogue import find_build

    try:
        return find_build(version)
    except ValueError as unknown:
        raise click.UsageError(str(unknown)) from None
