"""The versions of ONNX Runtime with its DirectML execution provider, as data.

The formats that a version loads and the DirectML in it were observed on its published files: opsets and IR versions by
loading one model of each, the DirectML by the version that the file states. The versions from 1.18.0 on were asked
about models, seven of them at length (tests/data/onnxruntime), the others about a thousand each.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.system.printable import shortened
from dmlsplit.system.records import record
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import Release

if TYPE_CHECKING:
    from dmlsplit.targets.runtime_traits import RuntimeTraits

NODE: Final = "onnxruntime-node"
WHEEL: Final = "onnxruntime-directml"


@record
class Runtime:
    """One version of ONNX Runtime, and the DirectML that it ships.

    `packages` are those that ship it with the DirectML execution provider: onnxruntime-directml (Python),
    onnxruntime-node (npm).
    """

    version: str
    packages: tuple[str, ...]
    directml: str
    """The version that the DirectML.dll in the package states."""
    newest_opset: int
    """The newest supported opset of the default domain; models with a newer one do not load."""
    newest_ir_version: int
    like: str = ""
    """The observed version whose answers are used for this one; "" if it was observed itself."""
    observed: bool = True
    """False if neither this version nor `like` was tested with models; nothing is predicted for it."""
    shipped_as: str = ""
    """The origin of its DirectML.dll, or the product that it is part of, if not its own package: see targets.windows.
    """
    no_session: str = ""
    """Why no session can be created, whatever the model; "" if sessions can be created."""

    def __hash__(self) -> int:
        return hash(self.version)  # part of the keys of caches that every node reads

    @property
    def judged_by(self) -> str:
        """The name of this version in reports; with a Windows' DirectML.dll, or as part of Windows ML, it includes the
        name of that."""
        name = f"onnxruntime {self.version}"
        if not self.shipped_as:
            return name
        return f"{name} {self.shipped_as}" if self.shipped_as.startswith("over ") else f"{self.shipped_as} ({name})"

    @property
    def needed_level(self) -> FeatureLevel:
        """The feature level that this version requires of its device: DMLCreateDevice1 fails if the DLL does not have
        it."""
        return FeatureLevel.FL_5_0 if self.key >= _FIRST_TO_NEED_5_0 else FeatureLevel.FL_2_0

    @property
    def release(self) -> Release:
        """The DirectML release that this version ships, which judges the packed descriptors."""
        return find_release(self.directml)

    @property
    def key(self) -> tuple[int, ...]:
        """A key that orders versions."""
        return key_of(self.version)

    @property
    def traits(self) -> RuntimeTraits:
        """The traits of this version."""
        return _traits_of(self.version)


_FIRST_TO_NEED_5_0: Final = (1, 14)
"""Source: microsoft/onnxruntime, pull request 14172."""


@cache
def key_of(version: str) -> tuple[int, ...]:
    """Returns a sort key for versions: (1, 24, 4) for "1.24.4"."""
    return tuple([int(part) for part in version.split(".")])


@cache
def _traits_of(version: str) -> RuntimeTraits:
    from dmlsplit.targets.runtime_traits import traits_of  # only sessions of models need them

    return traits_of(key_of(version))


def _not_observed(version: str, directml: str, newest_opset: int, newest_ir_version: int) -> Runtime:
    """Returns a Runtime for a version up to 1.17.3, whose wheel has no onnxruntime.dll that could be run: its opset and
    IR version come from the documentation."""
    return Runtime(version, (WHEEL,), directml, newest_opset, newest_ir_version, observed=False)


_RUNTIMES: Final = (
    _not_observed("1.9.0", "1.5.1", 15, 8),
    _not_observed("1.10.0", "1.8.0", 15, 8),
    _not_observed("1.14.1", "1.10.1", 18, 8),
    _not_observed("1.15.0", "1.12.0", 19, 9),
    _not_observed("1.15.1", "1.12.0", 19, 9),
    _not_observed("1.16.0", "1.12.1", 19, 9),
    _not_observed("1.16.3", "1.12.1", 19, 9),
    _not_observed("1.17.0", "1.13.1", 20, 9),
    _not_observed("1.17.1", "1.13.1", 20, 9),
    _not_observed("1.17.3", "1.13.1", 20, 9),
    Runtime("1.18.0", (WHEEL, NODE), "1.14.1", 21, 10),
    Runtime("1.18.1", (WHEEL,), "1.14.1", 21, 10, like="1.18.0"),
    Runtime("1.19.0", (WHEEL,), "1.15.1", 21, 10),
    Runtime("1.19.2", (WHEEL,), "1.15.1", 21, 10),
    Runtime("1.20.0", (WHEEL,), "1.15.2", 21, 10),
    Runtime("1.20.1", (WHEEL, NODE), "1.15.2", 21, 10),
    Runtime("1.21.0", (WHEEL,), "1.15.4", 22, 10),
    Runtime("1.21.1", (WHEEL,), "1.15.4", 22, 10),
    Runtime("1.22.0", (WHEEL, NODE), "1.15.4", 22, 10),
    Runtime("1.23.0", (WHEEL,), "1.15.4", 23, 11),
    Runtime("1.23.2", (NODE,), "1.15.4", 23, 11),
    Runtime("1.24.1", (WHEEL,), "1.15.4", 25, 13),
    Runtime("1.24.2", (WHEEL,), "1.15.4", 25, 13),
    Runtime("1.24.3", (WHEEL,), "1.15.4", 25, 13),
    Runtime("1.24.4", (WHEEL,), "1.15.4", 25, 13),
    Runtime("1.30.0", (NODE,), "1.15.4", 26, 13),
)

NEWEST: Final = next(each for each in reversed(_RUNTIMES) if each.observed and not each.like)
"""The newest version that was observed itself: the default of commands, and the one that hints name."""


def runtimes() -> tuple[Runtime, ...]:
    """Returns the known versions, the oldest first."""
    return _RUNTIMES


def recorded_runtimes() -> tuple[Runtime, ...]:
    """Returns the versions that were observed themselves, the oldest first; the others are `like` one of these, or
    nothing is predicted for them."""
    return tuple([each for each in _RUNTIMES if each.observed and not each.like])


def find_runtime(version: str | Runtime) -> Runtime:
    """Returns the version named "1.24.4", "onnxruntime 1.24.4" or "onnxruntime-directml-1.24.4".

    Without a patch number ("1.24") returns the newest known patch. Raises ValueError, which lists the known versions,
    for any other name; TypeError for anything but a string.
    """
    if isinstance(version, Runtime):
        return version
    if not isinstance(version, str):
        raise TypeError(f"a version of ONNX Runtime is a string, not {type(version).__name__}")
    wanted = re.sub(r"^(onnxruntime|ort)([-_](directml|node))?[-@= ]*", "", version.strip().lower())
    of_minor = [runtime for runtime in _RUNTIMES if runtime.version.rpartition(".")[0] == wanted]
    named = [runtime for runtime in _RUNTIMES if runtime.version == wanted] or of_minor
    if named:
        return named[-1]
    known = ", ".join(runtime.version for runtime in _RUNTIMES)
    raise ValueError(f"unknown version of ONNX Runtime {shortened(version, 60)!r}; known: {known}")


def runtime_of_release(release: Release) -> Runtime | None:
    """Returns the newest ONNX Runtime that ships a DirectML release; None if no known one does, as for Linux."""
    if release.platform != "windows":
        return None
    shipping = [runtime for runtime in _RUNTIMES if runtime.directml == release.directml]
    return max(shipping, key=lambda runtime: runtime.key, default=None)
