"""The observed builds of DirectML as data: the descriptors that each accepts, its arithmetic of sizes, its HRESULTs.

Every row was observed by calling the build, from device creation to a recorded dispatch, with a fake Direct3D 12 device
(Windows builds under wine, Linux builds directly). Nothing here depends on a release's name: `release_names` resolves
names.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any, Final

from dmlsplit.descriptors.enums import FeatureLevel, HResult, OperatorType, TensorDataType
from dmlsplit.descriptors.layout import extent
from dmlsplit.system.records import record
from dmlsplit.targets.feature_levels import TensorSupport, documented_support

OBSERVED: Final = "observed: CreateOperator of this build"


class SizeArithmetic(enum.Enum):
    """The integer width and the unit (bytes, bits, element index) in which a build computes the size implied by
    strides."""

    EXACT = "exact"
    BYTES_32 = "bytes wrap at 2^32"
    INDEX_32 = "the last element's index wraps at 2^32"
    BYTES_64 = "bytes wrap at 2^64"
    BITS_64 = "bits wrap at 2^64"

    def extent(self, bits: int, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
        """Returns the distance in elements (of `bits` each) from the first element in memory to the last, both
        included, as the build's check of output layouts computes it, overflows included."""
        exact = extent(sizes, strides)
        if strides is None or self is SizeArithmetic.EXACT:
            return exact
        if self is SizeArithmetic.INDEX_32:
            return (exact - 1) % 2**32 + 1
        return exact % _EXTENT_WRAP[self](bits)

    def implied_size(self, bits: int, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
        """Returns the size in bytes that the build computes for a tensor with `bits` per element, overflows included;
        rounding up to a multiple of 4 does not wrap."""
        size = self.extent(bits, sizes, strides) * bits
        if strides is not None and self is SizeArithmetic.BYTES_32:
            size %= 8 * 2**32
        return (size + 31) // 32 * 4


# The number of elements for which the extent wraps to 0, by bits per element.
_EXTENT_WRAP: Final[Mapping[SizeArithmetic, Callable[[int], int]]] = {
    SizeArithmetic.BYTES_32: lambda bits: 2**32,
    SizeArithmetic.BYTES_64: lambda bits: 8 * 2**64 // bits,
    SizeArithmetic.BITS_64: lambda bits: 2**64 // bits,
}


@record
class _Traits:
    """The checks in which builds differ; `words` describes each in the error that explains how two builds differ."""

    split_dimension_counts: tuple[int, ...] = field(metadata={"words": "numbers of dimensions of Split"})
    join_dimension_counts: tuple[int, ...] = field(metadata={"words": "numbers of dimensions of Join"})
    data_types: frozenset[TensorDataType] = field(metadata={"words": "data types"})
    arithmetic: SizeArithmetic = field(metadata={"words": "the computation of sizes"})
    total_counts_whole_elements: bool = field(metadata={"words": "whether a total may end within an element"})
    """The lower bound of the total size drops a partial element; otherwise the bound is exact to the byte."""
    split_walks_sizes_unchecked: bool = field(metadata={"words": "whether a split's sizes are read unchecked"})
    """A split's sizes are compared before the pointers to them are checked for null."""
    split_reads_input_first: bool = field(metadata={"words": "whether a split's input is read before its count"})
    """A split's input is read before OutputCount; otherwise a count of 0 is refused first."""
    join_checks_output_first: bool = field(metadata={"words": "whether a join's output is checked first"})
    """A join's output is checked first and each input against it; otherwise the output comes last."""
    data_types_reported: frozenset[TensorDataType] = field(metadata={"words": "data types that are reported"})
    """The types that CheckFeatureSupport confirms; the set that Split and Join accept differs."""
    typed_loads_for_8_bits: bool = field(metadata={"words": "whether 8-bit types need typed loads"})
    """The 8-bit types require a device with typed UAV loads of additional formats."""
    persistent_size_multiple: int = field(metadata={"words": "the multiple of a persistent size"})
    """In bytes; PersistentResourceSize is rounded up to a multiple of it."""


@record
class Release:
    """One build of DirectML.

    `directml` is the version that the file itself states; Linux builds state none and have the version of the Windows
    build in their package. `shipped` lists the packages known to ship it, each with its versions or ranges
    "first..last"; the first entry is the file that was observed. `invalid_argument` is the HRESULT for a refused
    descriptor.
    """

    directml: str
    platform: str
    max_feature_level: FeatureLevel
    traits: _Traits
    shipped: tuple[tuple[str, tuple[str, ...]], ...]
    invalid_argument: int = HResult.E_INVALIDARG
    compiling_observed: bool = True
    """False if compiling, binding and recording were not observed; the build is then assumed to behave as all others
    do."""
    asked: str = ""
    """The version that was asked for, if this build stands in for a version that was not observed."""
    agreeing: tuple[str, ...] = ()
    """The builds around that version, all of which give the same verdicts; this one is the oldest of them."""

    def __hash__(self) -> int:
        return hash((self.directml, self.platform, self.asked))  # part of the keys of caches that every judgement reads

    @property
    def package(self) -> str:
        """The name of the package whose file was run to record this build's behaviour."""
        return self.shipped[0][0]

    @property
    def package_version(self) -> str:
        return self.shipped[0][1][0]

    @property
    def name(self) -> str:
        """The package with its version; "-windows" is appended if the package ships both systems."""
        ending = f"-{self.platform}" if self.platform == WINDOWS and self.package in _FOR_LINUX_TOO else ""
        return f"{self.package}-{self.package_version}{ending}"

    @property
    def label(self) -> str:
        """The shortest name that find_release resolves to this build: the DirectML version for a Windows build,
        otherwise `name`. If this build stands in for another version, that version's name."""
        return self.asked or (self.directml if self.platform == WINDOWS else self.name)

    @property
    def judged_by(self) -> str:
        """The name of this release in reports; if it stands in for a version that was not observed, the builds that
        agree about it are appended: "directml 1.9.2 (as 1.9.1, 1.10.0)"."""
        name = f"directml {self.label}" if self.label[0].isdigit() else self.label
        return f"{name} (as {', '.join(self.agreeing)})" if self.agreeing else name

    @property
    def packages(self) -> tuple[str, ...]:
        """Every package known to ship this build, with the version or "first..last"; the package whose file was
        observed comes first."""
        return tuple([f"{package}-{version}" for package, versions in self.shipped for version in versions])

    @property
    def support(self) -> Mapping[OperatorType, tuple[TensorSupport, ...]]:
        """This build's tensor support by operator, one row for each tensor member, inputs first."""
        return _support(self)


@cache
def _support(release: Release) -> Mapping[OperatorType, tuple[TensorSupport, ...]]:
    counts = {
        OperatorType.SPLIT: release.traits.split_dimension_counts,
        OperatorType.JOIN: release.traits.join_dimension_counts,
    }
    return {
        operator: tuple(
            TensorSupport(row.tensor, row.kind, counts[operator], release.traits.data_types, OBSERVED)
            for row in documented_support(operator, release.max_feature_level)
        )
        for operator in counts
    }


LINUX: Final = "linux"
WINDOWS: Final = "windows"

_4 = (4,)
_4_TO_5 = (4, 5)
_1_TO_8 = tuple(range(1, 9))
_UP_TO_32_BIT = frozenset(TensorDataType(value) for value in range(1, 9))
_UP_TO_64_BIT = frozenset(TensorDataType(value) for value in range(1, 12))

_TF, _TORCH, _ORT = "tensorflow-directml", "torch-directml", "onnxruntime-directml"
_GENAI = "onnxruntime-genai-directml"
_FOR_LINUX_TOO: Final = frozenset({_TF, _TORCH})
# Traits shared by successive builds, oldest first.
_LEVEL_2_1 = _Traits(
    _4,
    _4_TO_5,
    _UP_TO_32_BIT,
    SizeArithmetic.BYTES_32,
    total_counts_whole_elements=True,
    split_walks_sizes_unchecked=True,
    split_reads_input_first=False,
    join_checks_output_first=False,
    data_types_reported=_UP_TO_32_BIT | {TensorDataType.UINT64, TensorDataType.INT64},
    typed_loads_for_8_bits=True,
    persistent_size_multiple=1,
)
_LEVEL_3_0 = replace(_LEVEL_2_1, split_dimension_counts=_1_TO_8, split_walks_sizes_unchecked=False)
_LEVEL_3_1 = replace(_LEVEL_3_0, join_dimension_counts=_1_TO_8, join_checks_output_first=True)
_LEVEL_4_1 = replace(_LEVEL_3_1, data_types=_UP_TO_64_BIT, data_types_reported=_UP_TO_64_BIT)
_LEVEL_5_2 = replace(_LEVEL_4_1, arithmetic=SizeArithmetic.INDEX_32)
_LEVEL_6_2 = replace(
    _LEVEL_5_2, arithmetic=SizeArithmetic.BYTES_64, typed_loads_for_8_bits=False, persistent_size_multiple=4
)
_LEVEL_6_4 = replace(
    _LEVEL_6_2,
    arithmetic=SizeArithmetic.BITS_64,
    total_counts_whole_elements=False,
    data_types_reported=_UP_TO_64_BIT | {TensorDataType.UINT4, TensorDataType.INT4},
)
# On Windows every build except the oldest reads the input before the count.
_W_3_0, _W_3_1, _W_4_1, _W_5_2, _W_6_2, _W_6_4 = (
    replace(traits, split_reads_input_first=True)
    for traits in (_LEVEL_3_0, _LEVEL_3_1, _LEVEL_4_1, _LEVEL_5_2, _LEVEL_6_2, _LEVEL_6_4)
)


def _build(
    directml: str, platform: str, level: FeatureLevel, traits: _Traits, packages: str, **differing: Any
) -> Release:
    """Returns the Release with these members. `packages` is "package version, version; package version", the one that
    the recorded file is from first; `differing` are members that differ from their defaults."""
    entries = [entry.split(" ", 1) for entry in packages.split("; ")]
    shipped = tuple((package, tuple(versions.split(", "))) for package, versions in entries)
    return Release(directml, platform, level, traits, shipped, **differing)


# Linux builds up to 1.5.1 were compiled with winerror.h's E_INVALIDARG for systems other than Windows.
_ELSEWHERE: Final = {"invalid_argument": 0x80000003}
# The older Windows builds call a function that wine lacks when they compile an operator.
_UNCOMPILED: Final = {"compiling_observed": False}
_L = FeatureLevel

_RELEASES: Final = (
    _build("1.0.200610", LINUX, _L.FL_2_1, _LEVEL_2_1, f"{_TF} 1.15.3.dev200619, 1.15.3.dev200626", **_ELSEWHERE),
    _build("1.0.200610", WINDOWS, _L.FL_2_1, _LEVEL_2_1, f"{_TF} 1.15.3.dev200619, 1.15.3.dev200626", **_UNCOMPILED),
    _build("1.3.0-dev2", LINUX, _L.FL_3_0, _LEVEL_3_0, f"{_TF} 1.15.3.dev200911", **_ELSEWHERE),
    _build("1.3.0-dev2", WINDOWS, _L.FL_3_0, _W_3_0, f"{_TF} 1.15.3.dev200911", **_UNCOMPILED),
    _build("1.4.0", LINUX, _L.FL_3_0, _LEVEL_3_0, f"{_TF} 1.15.4.dev201216", **_ELSEWHERE),
    _build("1.4.0", WINDOWS, _L.FL_3_0, _W_3_0, f"{_TF} 1.15.4.dev201216", **_UNCOMPILED),
    _build("1.5.0", LINUX, _L.FL_3_1, _LEVEL_3_1, f"{_TF} 1.15.5.dev210422", **_ELSEWHERE),
    _build("1.5.0", WINDOWS, _L.FL_3_1, _W_3_1, f"{_TF} 1.15.5.dev210422", **_UNCOMPILED),
    _build("1.5.1", LINUX, _L.FL_3_1, _LEVEL_3_1, f"{_TF} 1.15.5.dev210429", **_ELSEWHERE),
    _build("1.5.1", WINDOWS, _L.FL_3_1, _W_3_1, f"{_ORT} 1.9.0; {_TF} 1.15.5.dev210429", **_UNCOMPILED),
    _build("1.7.0", LINUX, _L.FL_4_1, _LEVEL_4_1, f"{_TF} 1.15.5"),
    _build("1.7.0", WINDOWS, _L.FL_4_1, _W_4_1, f"{_TF} 1.15.5", **_UNCOMPILED),
    _build(
        "1.8.0",
        WINDOWS,
        _L.FL_5_0,
        _W_4_1,
        f"{_ORT} 1.10.0, 1.11.0, 1.11.1; ort-nightly-directml 1.11.0.dev20220320001",
    ),
    _build("1.8.2", LINUX, _L.FL_5_0, _LEVEL_4_1, f"{_TF} 1.15.7, 1.15.6; {_TF}-plugin 0.0.1.dev220621"),
    _build("1.8.2", WINDOWS, _L.FL_5_0, _W_4_1, f"{_TF} 1.15.7, 1.15.6; {_TF}-plugin 0.0.1.dev220621"),
    _build("1.9.0", LINUX, _L.FL_5_0, _LEVEL_5_2, f"{_TORCH} 0.1.13.1.dev230119, 0.1.13.1.dev230301"),
    _build(
        "1.9.0",
        WINDOWS,
        _L.FL_5_0,
        _W_5_2,
        f"{_ORT} 1.12.1, 1.12.0; {_TORCH} 0.1.13.dev221206..0.1.13.1.dev230301; "
        f"experimental-{_TORCH} 0.1.13.dev23122022014639",
    ),
    _build("1.9.1", LINUX, _L.FL_5_0, _LEVEL_5_2, f"{_TF} 1.15.8"),
    _build(
        "1.9.1",
        WINDOWS,
        _L.FL_5_0,
        _W_5_2,
        f"{_ORT} 1.13.1; {_TF} 1.15.8; {_TF}-plugin 0.1.0.dev220928..0.4.0.dev230202",
    ),
    _build("1.10.1", LINUX, _L.FL_5_2, _LEVEL_5_2, f"{_TORCH} 0.2.0.dev230426, 0.1.13.1.dev230413"),
    _build(
        "1.10.1", WINDOWS, _L.FL_5_2, _W_5_2, f"{_ORT} 1.14.1, 1.14.0; {_TORCH} 0.1.13.1.dev230413, 0.2.0.dev230426"
    ),
    _build("1.12.0", WINDOWS, _L.FL_6_1, _W_5_2, f"{_ORT} 1.15.1, 1.15.0"),
    _build("1.12.1", WINDOWS, _L.FL_6_1, _W_5_2, f"{_ORT} 1.16.3, 1.16.0"),
    _build("1.13.1", LINUX, _L.FL_6_2, _LEVEL_6_2, f"{_TORCH} 0.2.5.dev240914, 0.2.1.dev240521"),
    _build("1.13.1", WINDOWS, _L.FL_6_2, _W_6_2, f"{_ORT} 1.17.3, 1.17.0; {_TORCH} 0.2.1.dev240521, 0.2.5.dev240914"),
    _build("1.14.1", WINDOWS, _L.FL_6_3, _W_6_4, f"{_ORT} 1.18.1, 1.18.0; {_GENAI} 0.2.0rc1, 0.2.0rc7"),
    _build("1.14.2", WINDOWS, _L.FL_6_3, _W_6_4, f"{_GENAI} 0.2.0, 0.3.0"),
    _build("1.15.1", WINDOWS, _L.FL_6_4, _W_6_4, f"{_ORT} 1.19.2, 1.19.0"),
    _build("1.15.2", WINDOWS, _L.FL_6_4, _W_6_4, f"{_ORT} 1.20.1, 1.20.0"),
    _build(
        "1.15.4",
        WINDOWS,
        _L.FL_6_4,
        _W_6_4,
        f"{_ORT} 1.24.4, 1.24.1, 1.23.0, 1.22.1.dev20250710002, 1.22.0, 1.21.1, 1.21.0; "
        "onnxruntime-windowsml 1.30.0.202609102321; onnxruntime-genai-winml 0.18.0; onnxruntime-node 1.23.2..1.30.0",
    ),
)

NEWEST: Final = _RELEASES[-1]


def releases() -> tuple[Release, ...]:
    """Returns the builds whose behaviour was recorded, by ascending DirectML version; the Linux build precedes the
    Windows build of the same version."""
    return _RELEASES


def directml_versions() -> Mapping[str, tuple[Release, ...]]:
    """Maps each DirectML version to the builds of it whose behaviour was recorded, in the order of `releases`. Builds
    of one version accept the same descriptors."""
    found: dict[str, tuple[Release, ...]] = {}
    for release in _RELEASES:
        found[release.directml] = (*found.get(release.directml, ()), release)
    return found


def observed_levels() -> tuple[FeatureLevel, ...]:
    """Returns the feature levels that are the maximum of one of `releases()`, the lowest first."""
    return tuple(sorted({release.max_feature_level for release in _RELEASES}))


def release_of_level(level: FeatureLevel) -> Release | None:
    """Returns the oldest of `releases()` with the highest maximum level at or below `level`; None if `level` is below
    all."""
    best = max((release.max_feature_level for release in _RELEASES if release.max_feature_level <= level), default=None)
    return next((release for release in _RELEASES if release.max_feature_level == best), None)
