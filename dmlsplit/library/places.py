"""The folders for libraries and compiled harnesses on this machine."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dmlsplit.library.catalogue import ONNXRUNTIME, Build
from dmlsplit.library.errors import Unavailable


def cache_folder() -> Path:
    """Returns $DMLSPLIT_CACHE if it is set, else "dmlsplit" in the user's cache folder; it need not exist."""
    own = os.environ.get("DMLSPLIT_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dmlsplit"


def require_platform() -> None:
    """Raises Unavailable unless this is Linux on x86-64, the only system on which the harness runs builds."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Unavailable(f"the harness is for Linux on x86-64, this is {sys.platform} {platform.machine()}")


def folder_of(build: Build) -> Path:
    """Returns the folder of a build's libraries; it need not exist."""
    if build.kind == ONNXRUNTIME:
        return cache_folder() / "onnxruntime" / build.version
    return cache_folder() / "directml" / build.name


@contextmanager
def made_whole(folder: Path) -> Iterator[Path]:
    """Context manager that yields a new folder to fill in the block; it is renamed to `folder` when the block
    ends, and deleted if the block fails or the name is taken."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = folder.with_name(f".making-{os.urandom(8).hex()}")
    try:
        made.mkdir()
        yield made
        if not folder.exists():  # otherwise another process has created it
            made.rename(folder)
    finally:
        for _ in range(2):  # a second attempt for files that could not be removed at first
            shutil.rmtree(made, ignore_errors=True)
