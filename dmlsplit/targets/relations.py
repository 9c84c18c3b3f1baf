"""Which combinations of values an operator's members may have: of data types, or of numbers of dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, Final, TypeAlias

from dmlsplit.system.records import record

Combination: TypeAlias = tuple[int, ...]
Row: TypeAlias = tuple[int, ...]
"""A mask of values for each group: bit n is value n."""
WIDEST: Final = 32
"""Values from here on have no bit in any mask."""


@dataclass(frozen=True)
class Part:
    """Groups of members that depend on each other. The members of a group have the same value; the combination of the
    groups' values must be in one of the rows."""

    groups: tuple[tuple[str, ...], ...]
    rows: tuple[Row, ...]

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """A mask for each group, the union of its masks in all rows; bit n stands for value n."""
        return tuple([_union(row[i] for row in self.rows) for i in range(len(self.groups))])

    def has(self, values: Mapping[str, int]) -> bool:
        """True if one row accepts the values of all members of this part; a member that is not in `values` may have any
        value, and names of other parts are ignored. False if members of one group differ."""
        bits = []
        for group in self.groups:
            found = {values[name] for name in group if name in values}
            if len(found) > 1:
                return False
            bits.append(_bit(found.pop()) if found else -1)
        return any(all(bit == -1 or bit & mask for bit, mask in zip(bits, row, strict=True)) for row in self.rows)


@record
class Relation:
    """A set of accepted combinations: a combination is accepted if every part accepts it."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, names: Sequence[str], accepted: Iterable[Combination]) -> Relation:
        """Returns the smallest relation of this form that accepts all the given combinations, each of which has one
        value for each of `names`."""
        combinations = list(dict.fromkeys(accepted))
        groups = _alike(len(names), combinations)
        reduced = [tuple([each[group[0]] for group in groups]) for each in combinations]
        parts = []
        for together in _dependent(len(groups), reduced):
            tuples = {tuple([each[i] for i in together]) for each in reduced}
            named = tuple([tuple([names[i] for i in groups[g]]) for g in together])
            parts.append(Part(named, _rows(tuples)))
        return cls(tuple(parts))

    @classmethod
    def independent(cls, values: Mapping[str, Iterable[int]]) -> Relation:
        """Returns the relation of independent members: it accepts every combination of the values that `values` maps
        each member to."""
        return cls(tuple([Part(((name,),), ((_union(1 << each for each in of),),)) for name, of in values.items()]))

    @classmethod
    def from_json(cls, parts: Any) -> Relation:
        return cls(
            tuple(
                [
                    Part(tuple([tuple(group) for group in groups]), tuple([tuple(row) for row in rows]))
                    for groups, rows in parts
                ]
            )
        )

    def to_json(self) -> list[Any]:
        return [[part.groups, part.rows] for part in self.parts]

    def has(self, values: Mapping[str, int]) -> bool:
        """True if some accepted combination has these values; members that are not in `values` may have any value."""
        return all(part.has(values) for part in self.parts)

    def part_of(self, name: str) -> tuple[Part, int] | None:
        """Returns the part that contains a member, and the index of the member's group in it; None if no part contains
        it."""
        return next(((part, i) for part in self.parts for i, group in enumerate(part.groups) if name in group), None)

    def values_of(self, name: str) -> tuple[int, ...]:
        """Returns the values that a member has in the accepted combinations, the lowest first; () for an unknown
        member."""
        found = self.part_of(name)
        return () if found is None else values_in(found[0].masks[found[1]])

    def alike(self, name: str) -> tuple[str, ...]:
        """Returns the other members that always have the same value as this one; () if this one has at most one
        value."""
        found = self.part_of(name)
        if found is None or found[0].masks[found[1]].bit_count() < 2:
            return ()
        return tuple([each for each in found[0].groups[found[1]] if each != name])

    def groups_of(self, names: Sequence[str]) -> list[list[int]]:
        """Returns the groups of all parts, as lists of indices into `names`."""
        return [[names.index(name) for name in group] for part in self.parts for group in part.groups]

    def agrees(self, names: Sequence[str], answers: Mapping[Combination, bool]) -> bool:
        """True if this relation accepts each combination that `answers` maps to True, and none that it maps to False;
        each combination has one value for each of `names`."""
        return all(self.has(dict(zip(names, each, strict=True))) == ok for each, ok in answers.items())

    @property
    def is_empty(self) -> bool:
        return not all(part.rows for part in self.parts)

    def drawn(self, names: Sequence[str], source: Random) -> Combination:
        """Returns a random accepted combination, with one value for each of `names`."""
        values: dict[str, int] = {}
        for part in self.parts:
            row = source.choice(part.rows)
            for group, mask in zip(part.groups, row, strict=True):
                values.update(dict.fromkeys(group, source.choice(values_in(mask))))
        return tuple([values[name] for name in names])


def values_in(mask: int) -> tuple[int, ...]:
    """Returns the numbers of the bits that are set in a mask, the lowest first."""
    return tuple([value for value in range(mask.bit_length()) if mask >> value & 1])


def _bit(value: int) -> int:
    return 1 << value if 0 <= value < WIDEST else 0


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


def _alike(count: int, combinations: Sequence[Combination]) -> list[list[int]]:
    """Returns groups of members, as indices, that have equal values in all combinations."""
    groups: list[list[int]] = []
    for i in range(count):
        for group in groups:
            if all(each[i] == each[group[0]] for each in combinations):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _dependent(count: int, combinations: Sequence[Combination]) -> list[list[int]]:
    """Returns groups of members, as indices. Two members are in one group if not every combination of their values
    occurs, or if both are in the group of a third."""
    parts = [{i} for i in range(count)]
    for i, j in itertools.combinations(range(count), 2):
        pairs = {(each[i], each[j]) for each in combinations}
        if len(pairs) != len({a for a, _ in pairs}) * len({b for _, b in pairs}):
            first, second = (next(part for part in parts if each in part) for each in (i, j))
            if first is not second:
                first |= second
                parts.remove(second)
    return [sorted(part) for part in parts]


def _rows(tuples: Iterable[Combination]) -> tuple[Row, ...]:
    """Returns rows of masks that cover exactly these combinations; rows that differ in only one place are merged."""
    rows = sorted({tuple([1 << value for value in each]) for each in tuples})
    while True:
        before = len(rows)
        for place in range(len(rows[0]) if rows else 0):
            merged: dict[Row, int] = {}
            for row in rows:
                rest = (*row[:place], 0, *row[place + 1 :])
                merged[rest] = merged.get(rest, 0) | row[place]
            rows = sorted([(*rest[:place], mask, *rest[place + 1 :]) for rest, mask in merged.items()])
        if len(rows) == before:
            return tuple(rows)
