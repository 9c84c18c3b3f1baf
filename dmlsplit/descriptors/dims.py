"""Sizes of a framework's tensors, as far as a model says: a number, a name, an interval, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeGuard

from dmlsplit.system.printable import printable


class Bounds(NamedTuple):
    """The least and the greatest size, both included; `high` None: no upper bound."""

    low: int
    high: int | None


class Interval(str):
    """A size between two bounds, as OpenVINO writes it: 2..10, 3.. or ..7."""

    bounds: Bounds

    def __new__(cls, low: int, high: int | None) -> Interval:
        interval = super().__new__(cls, f"{low or ''}..{'' if high is None else high}")
        interval.bounds = Bounds(low, high)
        return interval

    def __getnewargs__(self) -> tuple[int, int | None]:  # type: ignore[override]
        return self.bounds


Dim: TypeAlias = int | str | None
"""A size, the name (of ONNX) or the Interval (of OpenVINO) that stands for one, or None where nothing is known."""
Shape: TypeAlias = tuple[Dim, ...]


def bounds(dim: Dim) -> Bounds:
    """The sizes that a dimension may have."""
    if isinstance(dim, Interval):
        return dim.bounds
    return Bounds(dim, dim) if isinstance(dim, int) else Bounds(0, None)


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


def both(a: Dim, b: Dim) -> Dim:
    """The sizes that fit two dimensions, of which there is one; a name is kept where the other says nothing."""
    if isinstance(a, int) or b is None:
        return a
    if isinstance(b, int) or a is None:
        return b
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    highs = [high for high in (a_high, b_high) if high is not None]
    return interval(max(a_low, b_low), min(highs, default=None))


def merged(a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape that two compatible shapes describe together."""
    if a is None or b is None:
        return b if a is None else a
    return tuple(map(both, a, b))


def is_static(shape: Shape | None) -> TypeGuard[tuple[int, ...]]:
    """Whether a shape is known, and all of its sizes are."""
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def numbers(shape: Shape | None) -> tuple[int, ...]:
    """The sizes of a static shape."""
    assert is_static(shape)
    return shape


def braced(numbers: Sequence[int]) -> str:
    """{1,1,6,2}: sizes as Microsoft's pages write them."""
    return "{" + ",".join(map(str, numbers)) + "}"


def printable_shape(shape: Shape | None) -> Shape | None:
    """The shape with names of symbols that are safe to print."""
    return None if shape is None else tuple([printable(dim, 60) if isinstance(dim, str) else dim for dim in shape])


def is_name(dim: Dim) -> TypeGuard[str]:
    """Whether a dimension is a name of ONNX."""
    return isinstance(dim, str) and not isinstance(dim, Interval)


def agrees(sizes: Sequence[int], declared: Shape) -> bool:
    """Whether sizes fit a declared shape; one name stands for one size throughout."""
    named: dict[str, int] = {}
    return len(sizes) == len(declared) and all(
        overlap(size, dim) and (not is_name(dim) or named.setdefault(dim, size) == size)
        for size, dim in zip(sizes, declared, strict=True)
    )


def dim_text(dim: Dim | float) -> str:
    """6, batch, ?, 2..10; safe to print."""
    return "?" if dim is None else printable(str(dim), 60)


def shape_text(shape: Iterable[Dim | float] | None) -> str:
    """[1, batch, ?, 2..10]; "unknown" for an unknown rank."""
    return "unknown" if shape is None else f"[{', '.join(map(dim_text, shape))}]"
