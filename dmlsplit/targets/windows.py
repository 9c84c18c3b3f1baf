"""Versions of Windows and of Windows ML: the DirectML.dll of each.

A Windows has one DirectML.dll, in System32, whose version never changes. An application that ships a DirectML.dll next
to its onnxruntime.dll, as the packages of ONNX Runtime and Windows ML do, loads that one instead.

Source: core/dll/delay_load_hook.cc of ONNX Runtime, which looks next to onnxruntime.dll before the system searches.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, TypeAlias

from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.system.records import record
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import WINDOWS, Release, releases
from dmlsplit.targets.runtime_versions import Runtime, find_runtime

_HISTORY: Final = "learn.microsoft.com: DirectML version history"
_RELEASES: Final = "microsoft/DirectML: Releases.md (pull request 711)"
_VERSIONS: Final = "learn.microsoft.com: ONNX Runtime versions shipped in Windows ML"
_TAGS: Final = "microsoft/windowsml: releases"


@record
class Windows:
    """One version of Windows: `directml` is the version of the DirectML.dll in System32, "" if there is none."""

    name: str
    build: int
    directml: str
    feature_level: FeatureLevel | None
    source: str
    remark: str = ""

    @property
    def title(self) -> str:
        """The full name, such as "Windows 10 22H2"."""
        return f"Windows {self.name.replace('-', ' ')}"

    @property
    def release(self) -> Release | None:
        """The build of the same DirectML version whose behaviour was recorded, from a package; None if there is none,
        verdicts then rest on documentation."""
        asked = any(each.directml == self.directml and each.platform == WINDOWS for each in releases())
        return find_release(self.directml) if asked else None

    @property
    def basis(self) -> str:
        """What verdicts rest on: "observed" for a recorded build of the same version, "documented" for
        documentation."""
        return "documented" if self.release is None else "observed"


_1_0, _1_1 = "1.0.0", "1.1.0"
_NO_NEWER: Final = "no later version of Windows 10 has a newer one"
_WINDOWS: Final = (
    Windows("10-1809", 17763, "", None, _HISTORY, "DirectML was introduced with Windows 10 1903"),
    Windows("10-2004", 19041, _1_1, FeatureLevel.FL_2_0, _HISTORY),
    Windows("10-22H2", 19045, _1_1, FeatureLevel.FL_2_0, _HISTORY, _NO_NEWER),
    Windows("11-21H2", 22000, "1.6.0", FeatureLevel.FL_4_0, _HISTORY),
    Windows("11-22H2", 22621, "1.8.0", FeatureLevel.FL_5_0, _HISTORY),
    Windows(
        "11-24H2",
        26100,
        "1.13.1",
        FeatureLevel.FL_6_2,
        _RELEASES,
        "the version history does not say which Windows has it",
    ),
)


@record
class WindowsML:
    """One release of Windows ML: its ONNX Runtime and its DirectML.

    `like` is the version whose answers are used for it. The Python builds (onnxruntime-windowsml) were observed: what
    they load, which DirectML they ship, and at least 400 models each, which they treat as `like` does.
    """

    version: str
    onnxruntime: str
    directml: str
    like: str
    newest_opset: int
    newest_ir_version: int
    source: str

    @property
    def runtime(self) -> Runtime:
        """The ONNX Runtime in this Windows ML, with the DirectML that it ships."""
        return replace(
            find_runtime(self.like),
            version=self.onnxruntime,
            packages=(WHEEL,),
            directml=self.directml,
            newest_opset=self.newest_opset,
            newest_ir_version=self.newest_ir_version,
            like="" if self.like == self.onnxruntime else self.like,
            shipped_as=f"Windows ML {self.version}",
        )


WindowsLike: TypeAlias = Windows | str | None
WindowsMLLike: TypeAlias = WindowsML | str | None
"""A Windows, or a Windows ML, in the forms that callers may pass; None for none."""

WHEEL: Final = "onnxruntime-windowsml"
_WINDOWS_ML: Final = (
    WindowsML("2.1.71", "1.24.6", "1.15.4", "1.24.4", 25, 13, _VERSIONS),
    WindowsML("2.3.42", "1.27.1", "1.15.4", "1.24.4", 26, 13, _TAGS),
    WindowsML("2.4.89", "1.27.1", "1.15.4", "1.24.4", 26, 13, _TAGS),
    WindowsML("2.5.96", "1.28.3", "1.15.4", "1.24.4", 26, 13, _TAGS),
    WindowsML("2.6.74-rc", "1.30.0", "1.15.4", "1.30.0", 26, 13, _TAGS),
)


def windows_versions() -> tuple[Windows, ...]:
    """Returns the known versions of Windows, the oldest first."""
    return _WINDOWS


def windows_ml_versions() -> tuple[WindowsML, ...]:
    """Returns the known releases of Windows ML 2, the oldest first."""
    return _WINDOWS_ML


def find_windows(name: str | Windows) -> Windows:
    """Returns the version of Windows named "10-22H2" or "Windows 10 22H2". Raises ValueError, which lists the known
    names, for any other."""
    if isinstance(name, Windows):
        return name
    if not isinstance(name, str):
        raise TypeError(f"the name of a Windows is a string, not {type(name).__name__}")
    wanted = re.sub(r"^windows[-_ ]*", "", name.strip(), flags=re.IGNORECASE)
    wanted = re.sub(r"[-_ ]+(version[-_ ]+)?", "-", wanted, flags=re.IGNORECASE).upper()
    for each in _WINDOWS:
        if each.name.upper() == wanted:
            return each
    raise ValueError(f"unknown Windows {name!r}; known: {', '.join(each.name for each in _WINDOWS)}")


def find_windows_ml(version: str | WindowsML) -> WindowsML:
    """Returns the release of Windows ML named "2.1.71"; "2.1" names the newest 2.1 release. Raises ValueError, which
    lists the known releases, for any other name."""
    if isinstance(version, WindowsML):
        return version
    if not isinstance(version, str):
        raise TypeError(f"a version of Windows ML is a string, not {type(version).__name__}")
    wanted = version.strip().lower()
    named = [each for each in _WINDOWS_ML if each.version == wanted or each.version.startswith(f"{wanted}.")]
    if not named or not wanted.startswith("2"):
        known = ", ".join(each.version for each in _WINDOWS_ML)
        raise ValueError(f"unknown version of Windows ML {version!r}; known: {known}")
    return next((each for each in named if each.version == wanted), named[-1])


def over_windows(runtime: Runtime, windows: Windows) -> Runtime:
    """Returns a version of ONNX Runtime combined with the DirectML.dll of a Windows, as in an application that ships
    none.

    If there is no DLL, or it lacks the feature level that the version requires, `no_session` says so.
    """
    name = f"over {windows.title}"
    if windows.feature_level is None:
        failure = f"{windows.title} has no DirectML.dll ({windows.remark}), and the application ships none"
        return replace(runtime, shipped_as=name, no_session=failure)
    if windows.feature_level < runtime.needed_level:
        failure = (
            f"DMLCreateDevice1 returns DXGI_ERROR_UNSUPPORTED (0x887A0004): ONNX Runtime {runtime.version} requires "
            f"feature level {runtime.needed_level}, but the DirectML {windows.directml} of {windows.title} has "
            f"{windows.feature_level}"
        )
        return replace(runtime, shipped_as=f"{name} (directml {windows.directml})", no_session=failure)
    over = replace(runtime, shipped_as=f"{name} (directml {windows.directml})")
    if windows.release is None:
        return replace(over, like="", observed=False)
    return replace(over, directml=windows.directml)
