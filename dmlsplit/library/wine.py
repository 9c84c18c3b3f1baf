"""Runs the Windows builds on Linux with wine, which gets a separate prefix in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from dmlsplit.library.errors import BuildError, Unavailable

PREPARE_SECONDS = 300
IDLE_SECONDS = 120
"""Seconds that wine's services wait for another program."""


def environment(prefix: Path) -> dict[str, str]:
    """Returns the environment variables for a Windows program, and creates wine's prefix if it does not exist.

    Raises Unavailable if wine is not installed, BuildError if the prefix cannot be created.
    """
    for program in ("wine", "wineboot", "wineserver"):
        if shutil.which(program) is None:
            raise Unavailable(f"the Windows builds need wine: {program} was not found")
    if not prefix.exists():
        _make(prefix)
    variables = {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}
    # Wine's services end with the last program; that takes seconds, and takes along a program started in
    # the meantime. They are started here, so that they do not inherit the pipes of the first program.
    _run(["wineserver", f"--persistent={IDLE_SECONDS}"], variables)
    _run(["wineboot"], variables)
    # n: the stand-ins beside the program, not wine's own libraries.
    return variables | {"WINEDLLOVERRIDES": "dxgi,d3d12,dxcore=n"}


def _make(prefix: Path) -> None:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=prefix.parent, prefix=".wine-") as temporary:
        made = Path(temporary) / "made"
        # without mscoree and mshtml wine does not offer to fetch Mono and Gecko
        variables = {"WINEPREFIX": str(made), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml="}
        _run(["wineboot", "--init"], variables)
        _run(["wineserver", "--kill"], variables)
        _run(["wineserver", "--wait"], variables)  # the registry is written when it ends
        if not (made / "system.reg").exists():
            raise BuildError(f"wine did not create a prefix in {prefix.parent}")
        if not prefix.exists():  # another process was faster
            made.rename(prefix)


def _run(command: list[str], variables: dict[str, str]) -> None:
    """Runs a command with these environment variables and ignores its exit status: its outcome is judged by the files
    that it leaves. Raises BuildError if it does not end in time."""
    nothing = subprocess.DEVNULL
    try:
        subprocess.run(
            command,
            env={**os.environ, **variables},
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            timeout=PREPARE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{command[0]} did not end within {PREPARE_SECONDS} seconds") from None
