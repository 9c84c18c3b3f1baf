"""Obstacles: why a way of rewriting does not lead to operators that the target takes.

The search returns an obstacle wherever it gives a way up, and a refusal names those that it met.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from dmlsplit.enums import TensorDataType


class TooMany(NamedTuple):
    """There would be more operators, or more tensors of all operators, than a rewriting may have."""

    things: str
    limit: int

    @property
    def distance(self) -> tuple[int, float]:
        return 0, 0

    @property
    def words(self) -> str:
        return f"{self.things} would be more than {self.limit}"


class RefusedByTarget(NamedTuple):
    """The target refuses an operator that was built for it, by an error of its own at `path`."""

    path: str
    message: str

    @property
    def distance(self) -> tuple[int, float]:
        return 1, 0

    @property
    def words(self) -> str:
        return f"an operator would be refused, as its {self.path} {self.message}"


class TooLarge(NamedTuple):
    """A number of a tensor exceeds its bound, where elements have `bits` bits."""

    what: str
    number: int
    limit: int
    bits: int

    @property
    def distance(self) -> tuple[int, float]:
        return 2, self.number / self.limit

    @property
    def words(self) -> str:
        return f"{self.what} would be {self.number} in elements of {self.bits} bits, it takes {self.limit}"


class Interleaving(NamedTuple):
    """An output cannot be written to a temporary buffer first: its elements lie between each other."""

    path: str

    @property
    def distance(self) -> tuple[int, float]:
        return 3, 0

    @property
    def words(self) -> str:
        return f"the elements of {self.path} interleave"


class TooManyDimensions(NamedTuple):
    """After folding, tensors have `left` dimensions, of which the target takes `most`."""

    left: int
    most: int

    @property
    def distance(self) -> tuple[int, float]:
        return 4, self.left

    @property
    def words(self) -> str:
        return f"{self.left} dimensions are left after folding, it takes {self.most}"


class Indivisible(NamedTuple):
    """Elements of `bits` bits would hold bits of several runs, or of a run and a gap."""

    data_type: int
    bits: int

    @property
    def distance(self) -> tuple[int, float]:
        return 5, self.bits

    @property
    def words(self) -> str:
        name = TensorDataType(self.data_type).name
        return f"pieces of {name} begin or end within {self.bits} bits, the least that it moves"


Obstacle: TypeAlias = TooMany | RefusedByTarget | TooLarge | Interleaving | TooManyDimensions | Indivisible


def nearest(obstacles: Iterable[Obstacle]) -> Obstacle:
    """The obstacle that is closest to a rewriting."""
    return min(obstacles, key=lambda obstacle: obstacle.distance)


class Refusal(NamedTuple):
    """What the search met on each way: one operator, several on sub-ranges, copies through a temporary buffer.

    A way that was not gone, since no data type divides the runs or nothing was left to be packed, has no obstacles.
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
            where = "" if isinstance(cut, TooMany) else "cut at multiples of 16 bytes, of a part "
            clauses.append(f"{where}{cut.words}{', with a temporary buffer too' if packed == cut else ''}")
        if packed is not None and packed != cut:
            clauses.append(f"a temporary buffer does not help, since {packed.words}")
        return "; ".join(clauses)
