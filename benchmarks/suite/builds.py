"""Installations of commits and of the checkout, each in a folder of its own."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FORCED_ISA: Final = Path(__file__).with_name("forced_isa.h")
ISA_VARIABLE: Final = "DMLSPLIT_FORCED_ISA"
"""What forced_isa.h reads: one of ISA_LEVELS."""
ISA_LEVELS: Final = ("any", "ssse3", "avx2", "avx512", "avx512vbmi")
"""Instruction sets of x86; each includes those before it."""
DETECTION: Final = re.compile(r"\bdetect(?:_isa)?\(\)")
"""The call in dms_cpu.c that asks the CPU, under the names that it has had."""


class NotBuilt(Exception):
    """A commit is unknown or cannot be installed; the text says why."""


def _git(*arguments: str, index: Path | None = None) -> bytes:
    environment = os.environ | ({"GIT_INDEX_FILE": str(index)} if index else {})
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, env=environment)
    except OSError as error:
        raise NotBuilt(f"git: {error.strerror}") from error
    if done.returncode:
        raise NotBuilt(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def tree_of(commit: str) -> str:
    """The tree object of a commit."""
    try:
        return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{tree}}").decode().strip()
    except NotBuilt as error:
        raise NotBuilt(f"no commit {commit!r} here") from error


def tree_of_checkout() -> str:
    """A tree object of the files as they are now, changes and new files included; the index stays as it is."""
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "index")
        _git("read-tree", "HEAD", index=index)
        _git("add", "--all", index=index)
        return _git("write-tree", index=index).decode().strip()


def with_forced_isa(source: str) -> str:
    """dms_cpu.c with its detection held to ISA_VARIABLE."""
    return f'#include "{FORCED_ISA.name}"\n' + DETECTION.sub(r"(\g<0> & forced_isa())", source)


def installed(tree: str, builds: Path) -> Path:
    """The folder for PYTHONPATH that has the package of a tree object; built unless `builds` has it already."""
    folder = builds / tree
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory(dir=builds) as work:
        source, made = Path(work, "source"), Path(work, "installed")
        with tarfile.open(fileobj=io.BytesIO(_git("archive", tree))) as archive:
            archive.extractall(source, filter="data")
        cpu = source / "csrc" / "dms_cpu.c"
        if cpu.exists():
            cpu.write_text(with_forced_isa(cpu.read_text(encoding="utf-8")), encoding="utf-8")
            shutil.copy(FORCED_ISA, cpu.parent)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(made), str(source)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise NotBuilt(f"pip install: {done.stderr.strip()[-2000:]}")
        made.rename(folder)
    return folder
