"""The builds of Microsoft's library that the tests ask: which package has which, and how to recognise it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import dmlsplit as dml
from tests.oracle import DATA


class Unavailable(Exception):
    """The library or the harness cannot be had here; the message is the reason. Tests skip."""


class BuildError(Exception):
    """What is here is not what it should be. Tests fail."""


@dataclass(frozen=True, slots=True)
class Platform:
    """What the packages of a platform look like."""

    name: str
    """As dmlsplit.targets.releases() names it."""
    library: str
    """The library's file name in the cache."""
    wheels: tuple[str, ...]
    """pip's names of the platform."""


LINUX: Final = Platform("linux", "libdirectml.so", ("manylinux1_x86_64", "manylinux2010_x86_64"))
WINDOWS: Final = Platform("windows", "DirectML.dll", ("win_amd64",))


@dataclass(frozen=True, slots=True)
class Build:
    """A package that ships a build, and the SHA-256 of the library in it."""

    name: str
    """As dmlsplit.targets.releases() names it."""
    package: str
    version: str
    python: str
    """A Python version that the package has a wheel for."""
    sha256: str
    platform: Platform = LINUX


def _builds() -> tuple[Build, ...]:
    """Every release of the table; wheel and SHA-256 were recorded with the verdicts."""
    recorded = json.loads((DATA / "builds.json").read_text("utf-8"))
    platforms = {platform.name: platform for platform in (LINUX, WINDOWS)}
    return tuple(
        Build(release.name, release.package, release.package_version, **file, platform=platforms[release.platform])
        for release in dml.releases()
        for file in (recorded[release.name],)
    )


WITH_DEBUG_LAYER: Final = Build(
    "experimental-torch-directml-0.1.13.dev23122022014639",
    "experimental-torch-directml",
    "0.1.13.dev23122022014639",
    "3.8",
    "bc344512af0f23abebc628a99d6019dc021c68b78bcc1b2eaa912956cf7e8585",
    WINDOWS,
)
"""A package of DirectML 1.9.0 that ships DirectML.Debug.dll too."""

BUILDS: Final = _builds()
"""The oldest first; of one DirectML version the Linux build before the Windows one."""
