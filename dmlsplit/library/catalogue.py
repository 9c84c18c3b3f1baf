"""The builds of Microsoft's libraries that can be asked: the package of each, and the hashes of its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, Final

from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.system.records import record
from dmlsplit.system.spelling import nearest
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import Release, releases
from dmlsplit.targets.runtime_versions import find_runtime

DIRECTML: Final = "directml"
ONNXRUNTIME: Final = "onnxruntime"


@record
class Platform:
    """The packages and files of a platform."""

    name: str
    """The platform's name in dmlsplit.releases()."""
    library: str
    """The file name of DirectML in the cache."""
    wheels: tuple[str, ...]
    """pip's names of the platform."""


LINUX: Final = Platform("linux", "libdirectml.so", ("manylinux1_x86_64", "manylinux2010_x86_64"))
WINDOWS: Final = Platform("windows", "DirectML.dll", ("win_amd64",))
PLATFORMS: Final = {platform.name: platform for platform in (LINUX, WINDOWS)}

_ORT_TERMS: Final = "ONNX Runtime: MIT; DirectML: Microsoft's terms, in its licence files"
TERMS: Final[Mapping[str, str]] = {
    "tensorflow-directml": "Microsoft Software License Terms, Microsoft DirectX Machine Learning (DirectML)",
    "torch-directml": "the LICENSE and NOTICE of torch-directml (Microsoft)",
    "experimental-torch-directml": "the LICENSE and NOTICE of torch-directml (Microsoft)",
    "onnxruntime-directml": _ORT_TERMS,
    "onnxruntime-genai-directml": _ORT_TERMS,
    "onnxruntime-node": _ORT_TERMS,
}
"""The address of the packages' licence terms."""


@record
class Build:
    """A package that ships DirectML, or ONNX Runtime and DirectML, and the SHA-256 of its libraries.

    `kind` is "directml" or "onnxruntime". A DirectML build is named as dmlsplit.releases() names it.
    """

    name: str
    kind: str
    package: str
    version: str
    python: str
    """A Python version that the package has a wheel for; "" for a package of npm."""
    size: int
    """The size of the package in bytes; 0 if it is unknown."""
    files: Mapping[str, str] = field(hash=False)
    """The SHA-256 of each library."""
    platform: Platform = LINUX

    @property
    def terms(self) -> str:
        """The address of the licence terms of the package."""
        return TERMS[self.package]

    @property
    def release(self) -> Release:
        """The DirectML release in the package."""
        return find_runtime(self.version).release if self.kind == ONNXRUNTIME else find_release(self.name)

    @property
    def feature_level(self) -> FeatureLevel:
        """The highest feature level of the package's DirectML."""
        return self.release.max_feature_level

    def __str__(self) -> str:
        return self.name


@cache
def _recorded() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(Path(__file__).with_name("builds.json").read_text("utf-8"))
    return recorded


def _build(name: str, kind: str, package: str, version: str, platform: Platform) -> Build:
    row = _recorded()[name]
    return Build(name, kind, package, version, row.get("python", ""), row.get("size", 0), row["files"], platform)


@cache
def directml_builds() -> tuple[Build, ...]:
    """Returns one build for each known release, the oldest first; a version's Linux build comes before its Windows
    build."""
    return tuple(
        [
            _build(release.name, DIRECTML, release.package, release.package_version, PLATFORMS[release.platform])
            for release in releases()
        ]
    )


@cache
def onnxruntime_builds() -> tuple[Build, ...]:
    """Returns the builds of ONNX Runtime that can be asked, the oldest first."""
    return tuple(
        [
            _build(name, ONNXRUNTIME, row["package"], name.removeprefix(f"{ONNXRUNTIME}-"), WINDOWS)
            for name, row in _recorded().items()
            if name.startswith(f"{ONNXRUNTIME}-") and "package" in row
        ]
    )


@cache
def debug_layer() -> Build:
    """Returns the build of DirectML 1.9.0 that comes with DirectML.Debug.dll, which gives reasons for refusals."""
    package, version = "experimental-torch-directml", "0.1.13.dev23122022014639"
    return _build(f"{package}-{version}", DIRECTML, package, version, WINDOWS)


def known_builds() -> tuple[Build, ...]:
    """Returns every build that can be added."""
    return (*directml_builds(), debug_layer(), *onnxruntime_builds())


DEBUG_LAYER: Final = "debug-layer"
"""The name by which users refer to debug_layer()."""


def find_build(name: str) -> Build:
    """Returns the build with this name: a DirectML release ("1.15.4", "torch-directml-0.2.5.dev240914"), a version of
    ONNX Runtime ("onnxruntime-1.24.4"), or "debug-layer". Raises ValueError for any other."""
    asked = name.strip().lower()
    if asked in (DEBUG_LAYER, debug_layer().name):
        return debug_layer()
    for build in (*directml_builds(), *onnxruntime_builds()):
        if asked in (build.name, build.name.replace(f"{ONNXRUNTIME}-", f"{ONNXRUNTIME} ")):
            return build
    if asked.startswith(ONNXRUNTIME) and not asked.startswith(f"{ONNXRUNTIME}-directml"):
        known = ", ".join(build.name for build in onnxruntime_builds())
        raise ValueError(f"no build of {name!r} can be asked; known: {known}")
    try:
        release = find_release(asked)
    except ValueError as error:
        names = [build.name for build in known_builds()]
        runtime = f"{ONNXRUNTIME}-{asked}"
        near = runtime if runtime in names else nearest(asked, names)
        raise ValueError(f"{error}{f'; did you mean {near}?' if near else ''}") from None
    if release.asked:
        raise ValueError(f"{name} was not observed and cannot be asked; {', '.join(release.agreeing)} can")
    return next(build for build in directml_builds() if build.name == release.name)
