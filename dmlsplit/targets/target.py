"""Targets of judgement: feature levels, releases, and versions of ONNX Runtime with the release that each ships, on a
device that may lack data types.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final, TypeAlias

from dmlsplit.descriptors.enums import FeatureLevel, HResult, OperatorType, TensorDataType
from dmlsplit.targets.feature_levels import TensorSupport, documented_support
from dmlsplit.targets.release_names import find_release, version_key
from dmlsplit.targets.releases import NEWEST, WINDOWS, Release, SizeArithmetic, release_of_level
from dmlsplit.targets.runtime_versions import Runtime, find_runtime, runtime_of_release, runtimes

if TYPE_CHECKING:
    from dmlsplit.targets.session_options import SessionOptions
    from dmlsplit.targets.windows import Windows, WindowsLike, WindowsMLLike

Support: TypeAlias = Mapping[OperatorType, tuple[TensorSupport, ...]]
By: TypeAlias = FeatureLevel | Release | Runtime
LevelLike: TypeAlias = FeatureLevel | int | str | None
"""A feature level in the forms that callers may pass; None for none."""
ReleaseLike: TypeAlias = Release | str | None
RuntimeLike: TypeAlias = Runtime | str | None
"""A release, or a version of ONNX Runtime, in the forms that callers may pass; None for none."""


class Use(enum.Enum):
    """How a target uses an operator."""

    AS_IT_IS = "as it is"
    REWRITTEN = "rewritten"
    REFUSED = "no"
    UNKNOWN = "unknown"
    ON_CPU = "CPU"
    """ONNX Runtime runs it on the CPU."""
    NOT_ASKED = "-"
    """The node violates its framework's own rules."""


RUNS: Final = (Use.AS_IT_IS, Use.REWRITTEN)
"""The uses for which DirectML runs the operator."""

_OPERATORS: Final = (OperatorType.SPLIT, OperatorType.JOIN)

NO_FLOAT64: Final = "no-float64"
NO_TYPED_UAV_LOADS: Final = "no-typed-uav-loads"
COMPUTE_ONLY: Final = "compute-only"
ASSUMPTIONS: Final[Mapping[str, str]] = {
    NO_FLOAT64: "it has no double-precision operations",
    NO_TYPED_UAV_LOADS: "it has no typed UAV loads of additional formats",
    COMPUTE_ONLY: "it is compute-only (MCDM), as NPUs are",
}
"""Assumptions about a device that change verdicts; without them the device supports everything."""
_8_BITS: Final = (TensorDataType.UINT8, TensorDataType.INT8)


def lacking(assumed: Collection[str], release: Release | None) -> dict[int, str]:
    """Maps each data type that a build refuses on a device with the properties `assumed` to the device feature that it
    requires."""
    found: dict[int, str] = {}
    if NO_FLOAT64 in assumed:
        found[TensorDataType.FLOAT64] = "double-precision operations"
    if NO_TYPED_UAV_LOADS in assumed and release is not None and release.traits.typed_loads_for_8_bits:
        found.update(dict.fromkeys(_8_BITS, "typed UAV loads of additional formats"))
    return found


class Target:
    """A feature level (`release` is None), a release, or a version of ONNX Runtime (`runtime`), on a device that may
    lack data types.

    A level judges by the documented tables and rules, and refuses what every observed build refuses. A release judges
    as that build does, including its arithmetic and HRESULTs. A runtime judges a model as this version of ONNX Runtime
    runs it, and a descriptor as the DirectML it ships, `release`. Two targets are equal if they judge by the same
    level, release or runtime on the same device with the same support; targets are hashable and can be pickled.
    """

    __slots__ = (
        "_key",
        "arithmetic",
        "builds",
        "compute_only",
        "feature_level",
        "invalid_argument",
        "lacking",
        "name",
        "release",
        "runtime",
        "support",
        "total_counts_whole_elements",
        "windows",
    )

    name: str
    """The name in reports: "feature level 3_0", "directml 1.15.4", "onnxruntime 1.24.4"."""
    support: Support
    builds: Support
    """The observed support that the documented one is compared with: the release's own, or that of the level's builds.
    """
    lacking: Mapping[int, str]
    """Maps each data type that the device's Direct3D capabilities exclude to the capability that it requires."""
    compute_only: bool
    """True for a compute-only device, on which ONNX Runtime behaves differently."""

    def __init__(
        self,
        by: By,
        lacking: Mapping[int, str] | None = None,
        support: Support | None = None,
        *,
        compute_only: bool = False,
        windows: Windows | None = None,
    ) -> None:
        """Creates the Target for `by`. `lacking` maps each data type that the device lacks to the feature that it
        requires; `support` replaces the tensor support of the level's page or of the release; `compute_only`: the
        device is compute-only (MCDM), as NPUs are; `windows` is the Windows whose DirectML.dll judges."""
        self.windows = windows
        self.lacking = lacking or {}
        self.runtime = by if isinstance(by, Runtime) else None
        self.compute_only = compute_only and self.runtime is not None
        self._key = by, tuple(self.lacking.items()), tuple((support or {}).items()), self.compute_only, windows
        if isinstance(by, Release | Runtime):
            release = by if isinstance(by, Release) else by.release
            self.release: Release | None = release
            self.feature_level = release.max_feature_level
            self.name = by.judged_by
            self.support = self.builds = release.support
            self.arithmetic = release.traits.arithmetic
            self.total_counts_whole_elements = release.traits.total_counts_whole_elements
            self.invalid_argument: int = release.invalid_argument
        else:
            self.release = None
            self.feature_level = by
            self.name = f"feature level {by}"
            self.support = {operator: documented_support(operator, by) for operator in _OPERATORS}
            build = release_of_level(by)
            self.builds = self.support if build is None else build.support
            self.arithmetic = SizeArithmetic.EXACT
            self.total_counts_whole_elements = False
            self.invalid_argument = HResult.E_INVALIDARG
        if windows is not None and self.runtime is None:
            self.name = f"{windows.title} (directml {windows.directml}: {self.name}, documented)"
            if self.release is not None:
                self.name = f"{windows.title} ({self.release.judged_by})"
        if support:
            self.support = self.builds = support
        if lacking:
            self.name += f" without {' and '.join(dict.fromkeys(lacking.values()))}"
            self.support = self.builds = _without(self.support, lacking)
        if self.compute_only:
            self.name += " on a compute-only device"

    @property
    def kind(self) -> str:
        """The name of the kind of target as find_target's argument: "feature_level", "directml", "onnxruntime" or
        "windows"."""
        if self.windows is not None:
            return "windows"
        return "onnxruntime" if self.runtime is not None else "feature_level" if self.release is None else "directml"

    @property
    def short_name(self) -> str:
        """The target's name on the command line: "3_0", "1.15.4", a package, "1.24.4"."""
        if self.windows is not None:
            return self.windows.name
        if self.runtime is not None:
            return self.runtime.version
        return str(self.feature_level) if self.release is None else self.release.label

    @property
    def session_options(self) -> SessionOptions:
        """The options of ONNX Runtime's sessions on this device."""
        return _session_options(TensorDataType.FLOAT64 not in self.lacking, self.compute_only)

    @property
    def graph_runtime(self) -> Runtime | None:
        """The version of ONNX Runtime that a model's nodes are fused by, with the DirectML that compiles the graphs.

        For a release, the newest version that ships it; if none does, the newest version with an older DirectML, or
        otherwise the oldest version, combined with this release's DirectML. For a level, the newest version whose
        DirectML has exactly this highest level. None if there is none, and for a release that no ONNX Runtime can load.
        """
        return _graph_runtime(self.runtime or self.release or self.feature_level)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[object, ...]:
        by, lacking, support, compute_only, windows = self._key
        return partial(Target, compute_only=compute_only, windows=windows), (by, dict(lacking), dict(support))

    def __repr__(self) -> str:
        return f"Target({self.name})"


def _without(support: Support, data_types: Mapping[int, str]) -> Support:
    """Returns the tensor support with these data types removed from every row."""
    return {
        operator: tuple(
            TensorSupport(row.tensor, row.kind, row.dimension_counts, row.data_types.difference(data_types), row.source)
            for row in rows
        )
        for operator, rows in support.items()
    }


@cache
def _session_options(float64: bool, compute_only: bool) -> SessionOptions:
    from dmlsplit.targets.session_options import SessionOptions  # descriptors do not depend on a session

    return SessionOptions(float64=float64, compute_only=compute_only)


@cache
def _graph_runtime(by: By) -> Runtime | None:
    runtime = by if isinstance(by, Runtime) else None
    if isinstance(by, Release):
        runtime = runtime_of_release(by)
        if runtime is None and by.platform == WINDOWS:
            older = [each for each in runtimes() if version_key(each.directml) < version_key(by.directml)]
            runtime = replace([*runtimes()[:1], *older][-1], directml=by.directml)
    elif isinstance(by, FeatureLevel):
        of_level = [each for each in runtimes() if each.release.max_feature_level == by]
        runtime = of_level[-1] if of_level else None
    if runtime is None or runtime.observed:  # the version itself, so that comparing keys of caches ends at identity
        return runtime
    return replace(runtime, observed=True)  # it is assumed to build the graphs of an observed version


@cache
def target_of(by: By) -> Target:
    """Returns the target for a level, a release or a runtime on a device that lacks nothing."""
    return Target(by)


@cache
def level_targets() -> tuple[Target, ...]:
    """Returns the targets of all feature levels, the lowest first."""
    return tuple([target_of(level) for level in FeatureLevel])


def find_target(
    feature_level: LevelLike = None,
    directml: ReleaseLike = None,
    onnxruntime: RuntimeLike = None,
    *,
    windows: WindowsLike = None,
    windows_ml: WindowsMLLike = None,
    assume: Iterable[str] = (),
) -> Target:
    """Returns the target that the arguments name; the newest release if none is given.

    `windows` ("10-22H2") names the DirectML.dll of that Windows: the recorded build of its version or, if there is
    none, its documented feature level; with `onnxruntime`, that version with this DLL, as in an application that ships
    no DirectML.dll. `windows_ml` ("2.1.71") names the ONNX Runtime and the DirectML in that Windows ML. `assume`:
    properties of the device, names from ASSUMPTIONS. Raises ValueError if more than one target is given, a name is
    unknown (the message lists the known names) or a Windows has no DirectML.dll.
    """
    if isinstance(assume, str) or not isinstance(assume, Iterable):
        raise TypeError(f"assume: a sequence of properties is expected, not {type(assume).__name__}")
    if windows is not None or windows_ml is not None:
        return _of_windows(windows, windows_ml, feature_level, directml, onnxruntime, tuple(assume))
    if (feature_level is not None) + (directml is not None) + (onnxruntime is not None) > 1:
        values = {"feature_level": feature_level, "directml": directml, "onnxruntime": onnxruntime}
        given = [name for name, value in values.items() if value is not None]
        raise ValueError(f"{' and '.join(given)} exclude each other")
    by: By = NEWEST
    if feature_level is not None:
        by = FeatureLevel.parse(feature_level)
    elif directml is not None:
        by = find_release(directml)
    elif onnxruntime is not None:
        by = find_runtime(onnxruntime)
    assumed = tuple(assume)
    return _on_device(by, assumed) if assumed else target_of(by)


def _on_device(by: By, assumed: tuple[str, ...], windows: Windows | None = None) -> Target:
    """Returns the target on a device with the properties `assumed`. Raises ValueError for an unknown property."""
    for name in assumed:
        if name not in ASSUMPTIONS:
            raise ValueError(f"unknown assumption {name!r}; known: {', '.join(ASSUMPTIONS)}")
    target = target_of(by)
    if not assumed and windows is None:
        return target
    build = target.release if target.release is not None else release_of_level(target.feature_level)
    return Target(by, lacking(assumed, build), compute_only=COMPUTE_ONLY in assumed, windows=windows)


def _of_windows(
    windows: WindowsLike,
    windows_ml: WindowsMLLike,
    feature_level: LevelLike,
    directml: ReleaseLike,
    onnxruntime: RuntimeLike,
    assumed: tuple[str, ...],
) -> Target:
    """Returns the target of find_target if a Windows or a Windows ML is given. Raises ValueError as find_target
    does."""
    from dmlsplit.targets.windows import find_windows, find_windows_ml, over_windows

    given = {"windows_ml": windows_ml, "feature_level": feature_level, "directml": directml, "onnxruntime": onnxruntime}
    others = [name for name, value in given.items() if value is not None]
    if windows_ml is not None:
        if windows is not None:
            raise ValueError("windows and windows_ml exclude each other: Windows ML has its own DirectML.dll")
        if len(others) > 1:
            raise ValueError(f"{' and '.join(others)} exclude each other")
        return _on_device(find_windows_ml(windows_ml).runtime, assumed)
    if set(others) - {"onnxruntime"}:
        raise ValueError(f"windows and {others[0]} exclude each other")
    assert windows is not None
    found = find_windows(windows)
    if onnxruntime is not None:
        return _on_device(over_windows(find_runtime(onnxruntime), found), assumed)
    by = found.release or found.feature_level
    if by is None:
        raise ValueError(f"{found.title} has no DirectML.dll: {found.remark}; applications ship their own")
    return _on_device(by, assumed, found)


def find_target_release(directml: ReleaseLike = None, onnxruntime: RuntimeLike = None) -> Release:
    """Returns the named release, or the one that a version of ONNX Runtime ships; the newest if neither is given.

    Raises ValueError as find_target does.
    """
    release = find_target(None, directml, onnxruntime).release
    assert release is not None  # only levels have no release
    return release
