"""Obstacles: why an attempt at a rewriting does not give operators that the target accepts.

The search returns an obstacle wherever it gives up an attempt, and a refusal reports these obstacles.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from dmlsplit.descriptors.enums import TensorDataType


class ObstacleKind(enum.IntEnum):
    """Kinds of obstacles, ordered by how close the attempt came to a rewriting, closest first."""

    TOO_MANY = enum.auto()
    """The rewriting would exceed the limits on operators or on their tensors."""
    REFUSED = enum.auto()
    """The target refuses an operator that was built for it, with an error of the operator itself."""
    TOO_LARGE = enum.auto()
    """A number of a tensor exceeds its bound."""
    INTERLEAVING = enum.auto()
    """The elements of an output interleave: it cannot be written to a temporary buffer first."""
    DIMENSIONS = enum.auto()
    """More dimensions remain after folding than the target accepts."""
    INDIVISIBLE = enum.auto()
    """An element of a data type would contain bits of several runs, or of a run and a gap."""


class Obstacle(NamedTuple):
    """Why an attempt was given up. Among obstacles of one kind, the one with the smallest excess is closest to a
    rewriting."""

    kind: ObstacleKind
    excess: float
    words: str


def too_many(things: str, limit: int) -> Obstacle:
    return Obstacle(ObstacleKind.TOO_MANY, 0, f"{things} would be more than {limit}")


def refused(path: str, message: str) -> Obstacle:
    return Obstacle(ObstacleKind.REFUSED, 0, f"an operator would be refused, because its {path} {message}")


def too_large(what: str, number: int, limit: int, bits: int) -> Obstacle:
    words = f"{what} would be {number} in elements of {bits} bits, but it accepts {limit}"
    return Obstacle(ObstacleKind.TOO_LARGE, number / limit, words)


def interleaving(path: str) -> Obstacle:
    return Obstacle(ObstacleKind.INTERLEAVING, 0, f"the elements of {path} interleave")


def too_many_dimensions(left: int, most: int) -> Obstacle:
    return Obstacle(ObstacleKind.DIMENSIONS, left, f"{left} dimensions are left after folding, but it accepts {most}")


def indivisible(data_type: int, bits: int) -> Obstacle:
    name = TensorDataType(data_type).name
    return Obstacle(
        ObstacleKind.INDIVISIBLE,
        bits,
        f"pieces of {name} begin or end within {bits} bits, the smallest unit that it copies",
    )


def nearest(obstacles: Iterable[Obstacle]) -> Obstacle:
    """Returns the obstacle closest to a rewriting; the first of several equal ones."""
    return min(obstacles, key=lambda obstacle: (obstacle.kind, obstacle.excess))


class Obstacles(NamedTuple):
    """The obstacles of each attempt: one operator, several on sub-ranges, copies through a temporary buffer.

    An attempt that the search skipped has no obstacle: no data type divides the runs, or nothing was left to pack.
    """

    one: list[Obstacle]
    cut: list[Obstacle]
    packed: list[Obstacle]

    @property
    def words(self) -> str:
        clauses = [nearest(self.one).words]
        cut = nearest(self.cut) if self.cut else None
        packed = nearest(self.packed) if self.packed else None
        if cut is not None:
            where = "" if cut.kind is ObstacleKind.TOO_MANY else "cut at multiples of 16 bytes, of a part "
            clauses.append(f"{where}{cut.words}{', even with a temporary buffer' if packed == cut else ''}")
        if packed is not None and packed != cut:
            clauses.append(f"a temporary buffer does not help, because {packed.words}")
        return "; ".join(clauses)
