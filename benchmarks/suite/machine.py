"""The machine and the versions of a run, for people who read its numbers later."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from dmlsplit.native import core
from suite.peers import PACKAGES


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def cpu_model() -> str:
    lines = _read("/proc/cpuinfo").splitlines()
    fields = dict(reversed([[word.strip() for word in line.split(":", 1)] for line in lines if ":" in line]))
    if "model name" not in fields:
        return platform.processor() or platform.machine()
    return f"{fields['model name']} (family {fields.get('cpu family')}, model {fields.get('model')})"


def caches() -> dict[str, str]:
    """Sizes as Linux tells them: {"L1 data": "32K", ...}; empty elsewhere."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read(str(folder / name)) for name in ("level", "type", "size"))
        if kind != "Instruction":
            found[f"L{level} {kind.lower()}"] = size
    return found


def cache_bytes() -> list[int]:
    """Data caches from the first level on; a guess where the system does not tell."""
    units = {"K": 1 << 10, "M": 1 << 20}
    sizes = [int(size[:-1]) * units[size[-1]] for size in caches().values() if size[-1:] in units]
    return sizes or [32 << 10, 1 << 20, 16 << 20]


def commit() -> str:
    """The commit that the package was imported from, with a word where its tree differs."""
    folder = Path(core.__file__).parent

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    head = git("rev-parse", "--short", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no", ".", "../csrc", "../include")
    return (head + (", changed" if changed else "")) if head else "no git repository"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe() -> dict[str, Any]:
    pages = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "caches": caches(),
        "memory": next(iter(_read("/proc/meminfo").splitlines()), "").removeprefix("MemTotal:").strip(),
        "huge pages": pages[pages.find("[") + 1 : pages.find("]")],
        "system": f"{platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}",
        "load at the start": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "dmlsplit": f"{core.version()} ({commit()})",
        "cpu features": list(core.cpu_features()),
        "kernels": [kernel.name for kernel in core.kernels() if kernel.available],
        "versions": {package: version for package in PACKAGES if (version := _version(package)) is not None},
    }


def in_words(machine: dict[str, Any]) -> list[str]:
    """Markdown list items."""
    rows = {name: value for name, value in machine.items() if name != "versions"} | machine["versions"]

    def text(value: Any) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{key} {item}" for key, item in value.items())
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    return [f"- {name}: {text(value) or 'none'}" for name, value in rows.items()]
