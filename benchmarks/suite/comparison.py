"""What rounds of A, A again and B say of a case: a ratio, its spread, and whether it is more than noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

OUTER: Final = 0.1
"""The share of rounds at each end that a spread leaves out."""
FEWEST_ROUNDS: Final = 3
"""Fewer say nothing of the noise."""
LEAST_NOISE: Final = 1.02
"""A few rounds agree more closely than the next few will with them."""


class Verdict(StrEnum):
    SLOWER = "slower"
    FASTER = "faster"
    ALIKE = ""
    UNKNOWN = "too few rounds"


@dataclass(frozen=True)
class Turns:
    """One case in one round: the time of each side in each turn, or its multiple of a copy's time."""

    a: Sequence[float]
    again: Sequence[float]
    b: Sequence[float]

    def ratios(self) -> tuple[float, float]:
        """B/A and A/A: medians over the turns, so that what slows all sides in a turn cancels out."""
        return statistics.median(divided(self.b, self.a)), statistics.median(divided(self.again, self.a))


@dataclass(frozen=True)
class Judgement:
    """Over the rounds: the median of B/A, the ends of its spread, and the factor by which A differs from itself."""

    ratio: float
    low: float
    high: float
    noise: float
    rounds: int

    @property
    def verdict(self) -> Verdict:
        """SLOWER or FASTER where B/A is beyond the noise and its whole spread lies on the same side of 1."""
        if self.rounds < FEWEST_ROUNDS:
            return Verdict.UNKNOWN
        if self.ratio > self.noise and self.low > 1:
            return Verdict.SLOWER
        if self.ratio < 1 / self.noise and self.high < 1:
            return Verdict.FASTER
        return Verdict.ALIKE


def divided(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [x / y for x, y in zip(above, below, strict=True)]


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which this share of the values lies, interpolated between two of them."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def judge(rounds: Sequence[Turns]) -> Judgement:
    ratios, same = zip(*(each.ratios() for each in rounds), strict=True)
    noise = max(LEAST_NOISE, quantile((max(x, 1 / x) for x in same), 1 - OUTER))
    median, low, high = statistics.median(ratios), quantile(ratios, OUTER), quantile(ratios, 1 - OUTER)
    return Judgement(median, low, high, noise, len(rounds))
