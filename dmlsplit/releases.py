"""The observed builds of DirectML as data: what each takes, how it computes sizes, what it answers.

Every row was observed by calling the build, from device creation to a recorded dispatch (the Windows ones under wine,
the Linux ones directly), over a fake Direct3D 12 device. Nothing here depends on a release's name.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from dmlsplit.enums import FeatureLevel, HResult, OperatorType, TensorDataType
from dmlsplit.feature_levels import TensorSupport, tensor_support
from dmlsplit.layout import extent

OBSERVED: Final = "observed: CreateOperator of this build"


class SizeArithmetic(enum.Enum):
    """With how many bits, and of what, a build computes the size that strides imply."""

    EXACT = "exact"
    BYTES_32 = "bytes wrap at 2^32"
    INDEX_32 = "the last element's index wraps at 2^32"
    BYTES_64 = "bytes wrap at 2^64"
    BITS_64 = "bits wrap at 2^64"

    def extent(self, bits: int, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
        """Elements (of `bits` each) up to the last one, as the build's check of an output's layout counts them."""
        exact = extent(sizes, strides)
        if strides is None or self is SizeArithmetic.EXACT:
            return exact
        if self is SizeArithmetic.INDEX_32:
            return (exact - 1) % 2**32 + 1
        return exact % _EXTENT_WRAP[self](bits)

    def implied_size(self, bits: int, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
        """Bytes that the build computes for a tensor, `bits` per element; the rounding up to 4 does not wrap."""
        size = self.extent(bits, sizes, strides) * bits
        if strides is not None and self is SizeArithmetic.BYTES_32:
            size %= 8 * 2**32
        return (size + 31) // 32 * 4


# How many elements make the extent wrap to 0, by the bits of one element.
_EXTENT_WRAP: Final[Mapping[SizeArithmetic, Callable[[int], int]]] = {
    SizeArithmetic.BYTES_32: lambda bits: 2**32,
    SizeArithmetic.BYTES_64: lambda bits: 8 * 2**64 // bits,
    SizeArithmetic.BITS_64: lambda bits: 2**64 // bits,
}


@dataclass(frozen=True, slots=True)
class _Traits:
    """What a build checks, as far as builds differ."""

    split_dimension_counts: tuple[int, ...]
    join_dimension_counts: tuple[int, ...]
    data_types: frozenset[TensorDataType]
    arithmetic: SizeArithmetic
    total_counts_whole_elements: bool
    """The bound of the total drops a part of an element; otherwise it is exact to the byte."""
    split_walks_sizes_unchecked: bool
    """A split's sizes are compared before anything says that the pointers to them are not null."""
    data_types_reported: frozenset[TensorDataType]
    """Those that CheckFeatureSupport says yes to; not the same as what Split and Join take."""
    typed_loads_for_8_bits: bool
    """The 8-bit types need a device with typed UAV loads of additional formats."""
    persistent_size_multiple: int
    """Bytes; PersistentResourceSize is rounded up to it."""


@dataclass(frozen=True, slots=True)
class Release:
    """One build of DirectML.

    `name` is the package that ships it, with its version; `directml` the version that the file itself states (the Linux
    builds state none). `invalid_argument` is what it returns for a refused descriptor.
    """

    package: str
    package_version: str
    platform: str
    directml: str | None
    max_feature_level: FeatureLevel
    traits: _Traits
    invalid_argument: int = HResult.E_INVALIDARG
    compiling_observed: bool = True
    """Whether it was seen compiling, binding and recording; where not, it is taken to do what all others do."""

    @property
    def name(self) -> str:
        return f"{self.package}-{self.package_version}"

    @property
    def split_reads_input_first(self) -> bool:
        """A split's input is read before OutputCount is: observed on the Windows builds, the Linux ones count first."""
        return self.platform == "windows"

    @property
    def judged_by(self) -> str:
        """How a report names it."""
        return f"directml {self.directml}" if self.directml else self.name

    @property
    def support(self) -> Mapping[OperatorType, tuple[TensorSupport, ...]]:
        """The tensor support of both operators, inputs first, as this build has it."""
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
            for row in tensor_support(operator, release.max_feature_level)
        )
        for operator in counts
    }


_4 = (4,)
_4_TO_5 = (4, 5)
_1_TO_8 = tuple(range(1, 9))
_UP_TO_32_BIT = frozenset(TensorDataType(value) for value in range(1, 9))
_UP_TO_64_BIT = frozenset(TensorDataType(value) for value in range(1, 12))

_TF, _TORCH, _ORT = "tensorflow-directml", "torch-directml", "onnxruntime-directml"
# winerror.h's E_INVALIDARG for platforms other than Windows, which the early Linux builds were compiled with.
_E_INVALIDARG_ELSEWHERE: Final = 0x80000003

# What successive builds share, from the oldest on.
_LEVEL_2_1 = _Traits(
    _4,
    _4_TO_5,
    _UP_TO_32_BIT,
    SizeArithmetic.BYTES_32,
    total_counts_whole_elements=True,
    split_walks_sizes_unchecked=True,
    data_types_reported=_UP_TO_32_BIT | {TensorDataType.UINT64, TensorDataType.INT64},
    typed_loads_for_8_bits=True,
    persistent_size_multiple=1,
)
_LEVEL_3_0 = replace(_LEVEL_2_1, split_dimension_counts=_1_TO_8, split_walks_sizes_unchecked=False)
_LEVEL_3_1 = replace(_LEVEL_3_0, join_dimension_counts=_1_TO_8)
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

_RELEASES: Final = (
    Release(_TF, "1.15.3.dev200619", "linux", None, FeatureLevel.FL_2_1, _LEVEL_2_1, _E_INVALIDARG_ELSEWHERE),
    Release(_TF, "1.15.4.dev201216", "linux", None, FeatureLevel.FL_3_0, _LEVEL_3_0, _E_INVALIDARG_ELSEWHERE),
    Release(_TF, "1.15.5.dev210422", "linux", None, FeatureLevel.FL_3_1, _LEVEL_3_1, _E_INVALIDARG_ELSEWHERE),
    # Under wine it compiles no operator: it calls a function there that wine lacks.
    Release(_ORT, "1.9.0", "windows", "1.5.1", FeatureLevel.FL_3_1, _LEVEL_3_1, compiling_observed=False),
    Release(_TF, "1.15.5", "linux", None, FeatureLevel.FL_4_1, _LEVEL_4_1),
    Release(_ORT, "1.10.0", "windows", "1.8.0", FeatureLevel.FL_5_0, _LEVEL_4_1),
    Release(_TF, "1.15.8", "linux", None, FeatureLevel.FL_5_0, _LEVEL_5_2),
    Release(_ORT, "1.14.1", "windows", "1.10.1", FeatureLevel.FL_5_2, _LEVEL_5_2),
    Release(_TORCH, "0.2.0.dev230426", "linux", None, FeatureLevel.FL_5_2, _LEVEL_5_2),
    Release(_ORT, "1.15.1", "windows", "1.12.0", FeatureLevel.FL_6_1, _LEVEL_5_2),
    Release(_TORCH, "0.2.5.dev240914", "linux", None, FeatureLevel.FL_6_2, _LEVEL_6_2),
    Release(_ORT, "1.17.3", "windows", "1.13.1", FeatureLevel.FL_6_2, _LEVEL_6_2),
    Release(_ORT, "1.19.2", "windows", "1.15.1", FeatureLevel.FL_6_4, _LEVEL_6_4),
    Release(_ORT, "1.24.4", "windows", "1.15.4", FeatureLevel.FL_6_4, _LEVEL_6_4),
)

# Packages that ship the very file of another one.
_SAME_FILE: Final = {"torch-directml-0.2.1.dev240521": "torch-directml-0.2.5.dev240914"}

NEWEST: Final = _RELEASES[-1]


def releases() -> tuple[Release, ...]:
    """The observed builds, the oldest first."""
    return _RELEASES


def find_release(name: str | Release) -> Release:
    """The release of a DirectML version ("1.8.0") or of a package ("torch-directml-0.2.5.dev240914").

    ValueError, which offers the nearest release, for any other name.
    """
    if isinstance(name, Release):
        return name
    if not isinstance(name, str):
        raise TypeError(f"a release is named by a string, not {type(name).__name__}")
    text = "-".join(name.lower().split())
    text = _SAME_FILE.get(text, text)
    for release in _RELEASES:
        if text in (release.directml, release.name):
            return release
    known = ", ".join(release.directml or release.name for release in _RELEASES)
    near = _nearest(text)
    raise ValueError(f"unknown DirectML release {name!r}; the nearest is {near!r}; known: {known}")


def _nearest(text: str) -> str:
    """Of the known names of the same package (none: of the DirectML versions): the newest that continues the version,
    else the newest below it, else the oldest."""
    package, separator, version = text.rpartition("directml-")
    prefix = package + separator
    names = [release.name for release in _RELEASES if prefix and release.name.startswith(prefix)]
    if not names:
        prefix = ""
        names = [release.directml for release in _RELEASES if release.directml]
    names.sort(key=lambda name: _version_key(name.removeprefix(prefix)))
    continued = [name for name in names if name.removeprefix(prefix).startswith(version + ".")]
    below = [name for name in names if _version_key(name.removeprefix(prefix)) <= _version_key(version)]
    return (continued or below or names)[-1 if continued or below else 0]


def _version_key(version: str) -> tuple[int, ...]:
    """Orders 1.15.5.dev1 before 1.15.5 before 1.15.5.1; what is no version at all comes after every version."""
    parts = [-1 if part == "dev" else int(part[:9]) for part in re.findall(r"dev|\d+", version)]
    return tuple(parts + [0] * (6 - len(parts))) if parts else (2**31,)


def release_of_level(level: FeatureLevel) -> Release | None:
    """The oldest observed build with the highest maximum level at or below `level`; None below the lowest."""
    best = max((release.max_feature_level for release in _RELEASES if release.max_feature_level <= level), default=None)
    return next((release for release in _RELEASES if release.max_feature_level == best), None)
