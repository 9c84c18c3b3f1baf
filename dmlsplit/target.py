"""What a descriptor is judged by: a feature level, or one release of DirectML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, TypeAlias

from dmlsplit.enums import FeatureLevel, HResult, OperatorType
from dmlsplit.feature_levels import TensorSupport, tensor_support
from dmlsplit.release_names import find_release
from dmlsplit.releases import NEWEST, Release, SizeArithmetic, release_of_level

Support: TypeAlias = Mapping[OperatorType, tuple[TensorSupport, ...]]

_OPERATORS: Final = (OperatorType.SPLIT, OperatorType.JOIN)


class Target:
    """A feature level, where `release` is None, or one release, on a device that lacks some data types.

    By level: the documented tables and rules, and what every build observed refuses. By release: what that build
    answers, its own arithmetic and codes included. Two targets are equal where they judge by the same; a target is
    hashable and may go to another process.
    """

    __slots__ = (
        "_key",
        "arithmetic",
        "builds",
        "feature_level",
        "invalid_argument",
        "lacking",
        "name",
        "release",
        "support",
        "total_counts_whole_elements",
    )

    name: str
    """How a report names it: feature level 3_0, directml 1.15.4."""
    support: Support
    builds: Support
    """The observed support that the documented one is compared with: the release's own, or that of the builds of the
    level."""
    lacking: Mapping[int, str]
    """Data types that the device's Direct3D capabilities take away, and what each one needs."""

    def __init__(
        self,
        by: FeatureLevel | Release,
        lacking: Mapping[int, str] | None = None,
        support: Support | None = None,
    ) -> None:
        """`support`: what is taken in place of what the level's page, or the release, takes."""
        self.lacking = lacking or {}
        self._key = by, tuple(self.lacking.items()), tuple((support or {}).items())
        if isinstance(by, Release):
            self.release: Release | None = by
            self.feature_level = by.max_feature_level
            self.name = by.judged_by
            self.support = self.builds = by.support
            self.arithmetic = by.traits.arithmetic
            self.total_counts_whole_elements = by.traits.total_counts_whole_elements
            self.invalid_argument: int = by.invalid_argument
        else:
            self.release = None
            self.feature_level = by
            self.name = f"feature level {by}"
            self.support = {operator: tensor_support(operator, by) for operator in _OPERATORS}
            build = release_of_level(by)
            self.builds = self.support if build is None else build.support
            self.arithmetic = SizeArithmetic.EXACT
            self.total_counts_whole_elements = False
            self.invalid_argument = HResult.E_INVALIDARG
        if support:
            self.support = self.builds = support
        if lacking:
            self.name += f" without {' and '.join(dict.fromkeys(lacking.values()))}"
            self.support = self.builds = _without(self.support, lacking)

    @property
    def short_name(self) -> str:
        """As the command line takes it: 3_0, 1.15.4, or the name of a package."""
        return str(self.feature_level) if self.release is None else self.release.label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[object, ...]:
        by, lacking, support = self._key
        return Target, (by, dict(lacking), dict(support))

    def __repr__(self) -> str:
        return f"Target({self.name})"


def _without(support: Support, data_types: Mapping[int, str]) -> Support:
    """Each row without some data types."""
    return {
        operator: tuple(
            TensorSupport(row.tensor, row.kind, row.dimension_counts, row.data_types - data_types.keys(), row.source)
            for row in rows
        )
        for operator, rows in support.items()
    }


@cache
def target_of(by: FeatureLevel | Release) -> Target:
    """The target of a level or release."""
    return Target(by)


def find_target(feature_level: FeatureLevel | int | str | None = None, directml: Release | str | None = None) -> Target:
    """The target that names stand for; the newest release where none is given.

    ValueError where both are given or the name is unknown; it offers what is known.
    """
    if feature_level is not None and directml is not None:
        raise ValueError("feature_level and directml exclude each other")
    if feature_level is not None:
        return target_of(FeatureLevel.parse(feature_level))
    return target_of(NEWEST if directml is None else find_release(directml))
