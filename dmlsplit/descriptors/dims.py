"""Dimensions of a framework's tensors as a model declares them: a number, a name, an interval, or unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias, TypeGuard

from dmlsplit.system.printable import printable


class Bounds(NamedTuple):
    """The smallest and the largest size, both included; `high` None: no upper bound."""

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
"""A size, a name (ONNX), an Interval (OpenVINO), or None for an unknown size."""
Shape: TypeAlias = tuple[Dim, ...]


def bounds(dim: Dim) -> Bounds:
    """Returns the smallest and the largest size that a dimension may have; a name or None allows any size from 0."""
    if isinstance(dim, Interval):
        return dim.bounds
    return Bounds(dim, dim) if isinstance(dim, int) else Bounds(0, None)


def interval(low: int, high: int | None) -> Dim:
    """Returns the dimension between two bounds (`high` None: no upper bound) in its simplest form: an int if they are
    equal, None if any size is allowed."""
    if low == high:
        return low
    return None if low == 0 and high is None else Interval(low, high)


def overlap(a: Dim, b: Dim) -> bool:
    """True if some size satisfies both dimensions; a name allows any size."""
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    return (b_high is None or a_low <= b_high) and (a_high is None or b_low <= a_high)


def compatible(a: Shape | None, b: Shape | None) -> bool:
    """True if some shape satisfies both; an unknown rank (None) allows any shape."""
    return a is None or b is None or (len(a) == len(b) and all(map(overlap, a, b)))


def both(a: Dim, b: Dim) -> Dim:
    """Returns the dimension that satisfies both `a` and `b`, which must overlap; a name is kept if the other one is
    unknown."""
    if isinstance(a, int) or b is None:
        return a
    if isinstance(b, int) or a is None:
        return b
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    highs = [high for high in (a_high, b_high) if high is not None]
    return interval(max(a_low, b_low), min(highs, default=None))


def merged(a: Shape | None, b: Shape | None) -> Shape | None:
    """Returns the shape that satisfies both `a` and `b`, which must be compatible; None if both are None."""
    if a is None or b is None:
        return b if a is None else a
    return tuple(map(both, a, b))


_is_number: Final = partial(type.__instancecheck__, int)
"""isinstance(dim, int), as a fast method: it is called for all tensors of a model several times."""


def is_static(shape: Shape | None) -> TypeGuard[tuple[int, ...]]:
    """True for a shape of known rank whose sizes are all numbers."""
    return shape is not None and all(map(_is_number, shape))


def numbers(shape: Shape | None) -> tuple[int, ...]:
    """Returns the sizes of a shape, which must be static."""
    assert is_static(shape)
    return shape


def braced(numbers: Sequence[int]) -> str:
    """Returns sizes as Microsoft's pages write them: "{1,1,6,2}"."""
    return "{" + ",".join(map(str, numbers)) + "}"


def printable_shape(shape: Shape | None) -> Shape | None:
    """Returns the shape with the names of symbols shortened and escaped for printing; None for None."""
    return None if shape is None else tuple([printable(dim, 60) if isinstance(dim, str) else dim for dim in shape])


def is_name(dim: Dim) -> TypeGuard[str]:
    """True for a symbolic name (ONNX dim_param), False for numbers, intervals and unknown sizes."""
    return isinstance(dim, str) and not isinstance(dim, Interval)


def agrees(sizes: Sequence[int], declared: Shape) -> bool:
    """True if sizes match a declared shape; equal names must have equal sizes."""
    named: dict[str, int] = {}
    return len(sizes) == len(declared) and all(
        overlap(size, dim) and (not is_name(dim) or named.setdefault(dim, size) == size)
        for size, dim in zip(sizes, declared, strict=True)
    )


def dim_text(dim: Dim | float) -> str:
    """Returns a dimension as printable text: "6", "batch", "2..10", "?" for None."""
    return "?" if dim is None else printable(str(dim), 60)


def shape_text(shape: Iterable[Dim | float] | None) -> str:
    """Returns a shape as printable text: "[1, batch, ?, 2..10]", "unknown" for an unknown rank."""
    return "unknown" if shape is None else f"[{', '.join(map(dim_text, shape))}]"
