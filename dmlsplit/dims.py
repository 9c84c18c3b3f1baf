"""Sizes of a framework's tensors, as far as a model says: a number, a name, an interval, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from dmlsplit.printable import printable


class Interval(NamedTuple):
    """A size between two bounds, both included; `high` None: no upper bound."""

    low: int
    high: int | None

    def __str__(self) -> str:
        """2..10, 3.. or ..7, as OpenVINO writes them."""
        return f"{self.low or ''}..{'' if self.high is None else self.high}"


Dim: TypeAlias = int | str | Interval | None
"""A size, the name (of ONNX) or the interval (of OpenVINO) that stands for one, or None where nothing is known."""
Shape: TypeAlias = tuple[Dim, ...]


def bounds(dim: Dim) -> Interval:
    """The least and the greatest size that a dimension may have."""
    if isinstance(dim, Interval):
        return dim
    return Interval(dim, dim) if isinstance(dim, int) else Interval(0, None)


def interval(low: int, high: int | None) -> Dim:
    """The dimension between two bounds, in its simplest form."""
    if low == high:
        return low
    return None if low == 0 and high is None else Interval(low, high)


def overlap(a: Dim, b: Dim) -> bool:
    """Whether one size fits both dimensions; a name stands for any size."""
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    return (b_high is None or a_low <= b_high) and (a_high is None or b_low <= a_high)


def compatible(a: Shape | None, b: Shape | None) -> bool:
    """Whether one shape fits both; an unknown rank fits any."""
    return a is None or b is None or (len(a) == len(b) and all(map(overlap, a, b)))


def agrees(sizes: Sequence[int], declared: Shape) -> bool:
    """Whether sizes fit a declared shape; one name stands for one size throughout."""
    named: dict[str, int] = {}
    return len(sizes) == len(declared) and all(
        named.setdefault(dim, size) == size if isinstance(dim, str) else overlap(size, dim)
        for size, dim in zip(sizes, declared, strict=True)
    )


def dim_text(dim: Dim | float) -> str:
    """6, batch, ?, 2..10; safe to print."""
    return "?" if dim is None else printable(str(dim), 60)


def shape_text(shape: Iterable[Dim | float] | None) -> str:
    """[1, batch, ?, 2..10]; "unknown" for an unknown rank."""
    return "unknown" if shape is None else f"[{', '.join(map(dim_text, shape))}]"
