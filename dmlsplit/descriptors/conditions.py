"""Conditions on sizes that a model leaves open: sums and products of symbols, their bounds, and the sizes that satisfy
several conditions at once, as text and as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from dmlsplit.descriptors.dims import Bounds, Dim, Interval, Shape, bounds, interval, is_name
from dmlsplit.descriptors.enums import UINT_MAX
from dmlsplit.system.records import record

Values: TypeAlias = Mapping[str, int]
"""Sizes of symbols, by the symbols' names."""


@record
class Symbol:
    """An open size, named as in the model, or by its place if the model gives no name. `limits` are the bounds of an
    interval."""

    name: str
    limits: Bounds


Operation: TypeAlias = Literal["sum", "product", "share", "rounded up", "last"]


@record
class Term:
    """An operation on the sizes in `of`. "share": the first divided by the second, rounded down. "rounded up": the same
    quotient rounded up. "last": what remains of the first after all parts but one have taken "rounded up" each (the
    second is the number of parts)."""

    operation: Operation
    of: tuple[Expression, ...]


Expression: TypeAlias = int | Symbol | Term


THE_AXIS: Final = Symbol("the axis", Bounds(0, None))
"""The size on the axis of a tensor whose rank is open."""
DIMENSIONS: Final = Symbol("dimensions", Bounds(0, None))
ELEMENTS: Final = Symbol("elements", Bounds(0, None))
LEAST_SIZE: Final = Symbol("least size", Bounds(0, None))
GREATEST_SIZE: Final = Symbol("greatest size", Bounds(0, None))
"""Other quantities of such a tensor that occur in conditions."""


def expression(dim: Dim, place: str) -> Expression:
    """Returns the expression for a dimension: its number, or a symbol that is named as in the model or, without a name,
    after `place`."""
    if isinstance(dim, int):
        return dim
    return Symbol(dim if is_name(dim) else place, bounds(dim))


def expressions(shape: Shape, place: str) -> tuple[Expression, ...]:
    """Returns the expressions for the dimensions of a shape; `place` is the shape's name."""
    return tuple([expression(dim, f"{place}[{i}]") for i, dim in enumerate(shape)])


def total(sizes: Iterable[Expression]) -> Expression:
    """Returns the expression for the sum of sizes."""
    return _folded("sum", tuple(sizes))


def product(sizes: Iterable[Expression]) -> Expression:
    """Returns the expression for the product of sizes."""
    return _folded("product", tuple(sizes))


def _folded(operation: Operation, sizes: tuple[Expression, ...]) -> Expression:
    numbers = [size for size in sizes if isinstance(size, int)]
    symbols = [size for size in sizes if not isinstance(size, int)]
    number = sum(numbers) if operation == "sum" else math.prod(numbers)
    if not symbols:
        return number
    neutral = number == (0 if operation == "sum" else 1)
    if neutral and len(symbols) == 1:
        return symbols[0]
    return Term(operation, tuple(symbols) if neutral else (*symbols, number))


def quotient(operation: Operation, size: Expression, count: int) -> Expression:
    """Returns the expression for an operation on a size and a number of parts; a number if the size is a number."""
    made = Term(operation, (size, count))
    return value_of(made, {}) if isinstance(size, int) else size if count == 1 else made


def symbols_of(size: Expression) -> Iterator[Symbol]:
    """Yields the symbols of an expression; a symbol is yielded once for each occurrence."""
    if isinstance(size, Symbol):
        yield size
    elif isinstance(size, Term):
        for part in size.of:
            yield from symbols_of(part)


def value_of(size: Expression, values: Values) -> int:
    """Returns the value of an expression; `values` maps the names of symbols to sizes. Raises KeyError for a symbol
    that is not in `values`."""
    if isinstance(size, int):
        return size
    if isinstance(size, Symbol):
        return values[size.name]
    numbers = [value_of(part, values) for part in size.of]
    if size.operation == "sum":
        return sum(numbers)
    if size.operation == "product":
        return math.prod(numbers)
    whole, count = numbers
    if size.operation == "share":
        return whole // count
    chunk = -(-whole // count)
    return chunk if size.operation == "rounded up" else whole - chunk * (count - 1)


def bounds_of(size: Expression) -> Bounds:
    """Returns the bounds of an expression by interval arithmetic, which treats its symbols as independent."""
    if isinstance(size, int):
        return Bounds(size, size)
    if isinstance(size, Symbol):
        return size.limits
    limits = [bounds_of(part) for part in size.of]
    highs = [high for _, high in limits if high is not None]
    if size.operation in ("sum", "product"):
        join = sum if size.operation == "sum" else math.prod
        return Bounds(join(low for low, _ in limits), join(highs) if len(highs) == len(limits) else None)
    (low, high), (count, _) = limits
    if size.operation == "last":
        # Of two shares the smaller is half the size; of more, the last share is reduced by the rounding of the others.
        return Bounds(low // 2 if count == 2 else min(low, 2 - count), high)
    up = count - 1 if size.operation == "rounded up" else 0
    return Bounds((low + up) // count, None if high is None else (high + up) // count)


Relation: TypeAlias = Literal["at least", "at most", "is", "divisible by"]


@record
class Condition:
    """A relation between a size and a number or another size."""

    size: Expression
    relation: Relation
    to: Expression
    of: str = ""
    """The unit counted, such as "elements"; "" for sizes."""

    def holds(self, values: Values) -> bool:
        """True if the relation holds for these sizes, given by the names of symbols."""
        return self._related(value_of(self.size, values), value_of(self.to, values))

    def _related(self, size: int, to: int) -> bool:
        if self.relation == "is":
            return size == to
        if self.relation == "divisible by":
            return size % to == 0
        return size >= to if self.relation == "at least" else size <= to

    def with_sizes(self, sizes: Mapping[Symbol, Expression]) -> Condition:
        """Returns this condition with symbols replaced by the given expressions."""
        size, to = substituted(self.size, sizes), substituted(self.to, sizes)
        return is_one(size, to) if self.relation == "is" else Condition(size, self.relation, to, self.of)

    @property
    def certain(self) -> bool | None:
        """True if the relation holds for all sizes, False if for none; None if it depends on them or is
        undetermined."""
        (low, high), (to_low, to_high) = bounds_of(self.size), bounds_of(self.to)
        if self.size == self.to and self.relation != "divisible by":
            return True
        if low == high and to_low == to_high:
            return self._related(low, to_low)
        above = to_high is not None and low >= to_high
        beneath = high is not None and high <= to_low
        if self.relation == "at least":
            return True if above else False if high is not None and high < to_low else None
        if self.relation == "at most":
            return True if beneath else False if to_high is not None and low > to_high else None
        if self.relation == "is":
            apart = (high is not None and high < to_low) or (to_high is not None and low > to_high)
            return False if apart else None
        return True if self.to == 1 else None

    def __str__(self) -> str:
        to = self.to if isinstance(self.to, int) else None
        if self.size == DIMENSIONS:
            number = {"is": "{}", "at least": "{} or more", "at most": "at most {}"}[self.relation]
            return f"{number.format(_text(self.to))} dimensions"
        if self.of:
            return f"{self.relation} {_text(self.to)} {self.of}"
        if isinstance(self.size, Term) and self.size.operation == "last":
            size, count = self.size.of
            return f"{_text(size)} leaves {to} or more after {value_of(count, {}) - 1} parts of {_text(size)}/{count}"
        return f"{_text(self.size)} {self.relation} {_text(self.to)}"


def _text(size: Expression) -> str:
    if isinstance(size, int):
        return f"{size:,}"
    if isinstance(size, Symbol):
        return size.name
    if size.operation == "sum":
        return " + ".join(map(_text, size.of)).replace("+ -", "- ")
    if size.operation == "product":
        return " * ".join(map(_text, size.of))
    return f"{_text(size.of[0])}/{_text(size.of[1])}"


_OF_ALL: Final = (("at least", 1), ("at most", UINT_MAX))
"""Relations that treat all sizes symmetrically."""
MOST_SAID: Final = 16
"""The most conditions that a text lists."""


def depending(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Returns the conditions that are not certain to hold, in order, without duplicates and without lower bounds that
    another condition implies."""
    left = list(dict.fromkeys(condition for condition in conditions if condition.certain is not True))
    least: dict[Expression, int] = {}
    for condition in left:
        if condition.relation in ("is", "at least") and isinstance(condition.to, int):
            least[condition.size] = max(condition.to, least.get(condition.size, 0))
    same = {condition.size for condition in left if condition.relation == "is" and isinstance(condition.to, int)}

    def implied(condition: Condition) -> bool:
        if condition.relation != "at least" or not isinstance(condition.to, int):
            return False
        greatest = least[condition.size]
        return condition.to < greatest or (condition.to == greatest and condition.size in same)

    return tuple([condition for condition in left if not implied(condition)])


def solved(conditions: Iterable[Condition]) -> tuple[Condition, ...] | None:
    """Returns the conditions after substituting the sizes that equalities determine, followed by these equalities; None
    if no sizes satisfy them all."""
    left = depending(conditions)
    known: dict[Symbol, Expression] = {}
    while True:
        if any(condition.certain is False for condition in left):
            return None
        found, others = _same_sizes(left)
        if not found:
            return (*[Condition(symbol, "is", size) for symbol, size in known.items()], *left)
        known = {symbol: substituted(size, found) for symbol, size in known.items()} | found
        # The bounds of a symbol also hold for the size that replaces it.
        limits = [c for symbol, size in found.items() for c in fits((interval(*symbol.limits),), (size,))]
        left = depending([*(condition.with_sizes(found) for condition in others), *limits])


def _same_sizes(conditions: Iterable[Condition]) -> tuple[dict[Symbol, Expression], list[Condition]]:
    """Returns a map from each symbol that an equality determines to an expression without such symbols, and a list of
    the other conditions."""
    found: dict[Symbol, Expression] = {}
    others = []
    for condition in conditions:
        size, to = _resolved(condition.size, found), _resolved(condition.to, found)
        if condition.relation == "is" and isinstance(to, Symbol) and not isinstance(size, Symbol):
            size, to = to, size
        if condition.relation == "is" and isinstance(size, Symbol) and size not in symbols_of(to):
            found[size] = to
        elif condition.relation != "is" or size != to:
            others.append(Condition(size, condition.relation, to, condition.of))
    return {symbol: _resolved(size, found) for symbol, size in found.items()}, others


def _resolved(size: Expression, by: dict[Symbol, Expression]) -> Expression:
    """Returns the expression with all symbols in `by` replaced, repeatedly, until none is left. Also shortens chains of
    symbols in `by`, in place."""
    way = []
    while isinstance(size, Symbol) and size in by:
        way.append(size)
        size = by[size]
    if way:
        size = _resolved(size, by)
        by.update(dict.fromkeys(way, size))
        return size
    if isinstance(size, Term) and not by.keys().isdisjoint(symbols_of(size)):
        return substituted(size, {symbol: _resolved(symbol, by) for symbol in symbols_of(size)})
    return size


def substituted(size: Expression, by: Mapping[Symbol, Expression]) -> Expression:
    """Returns the expression with the symbols in `by` replaced once."""
    if isinstance(size, Symbol):
        return by.get(size, size)
    if isinstance(size, int):
        return size
    of = tuple([substituted(part, by) for part in size.of])
    if size.operation in ("sum", "product"):
        return _folded(size.operation, of)
    whole, count = of
    assert isinstance(count, int)
    return quotient(size.operation, whole, count)


def alike(shapes: Sequence[Sequence[Expression] | None], axis: int | None) -> Iterator[Condition]:
    """Yields the conditions under which shapes of equal rank differ at most in dimension `axis`; none if the axis is
    unknown. Unknown shapes are skipped."""
    known = [shape for shape in shapes if shape is not None]
    if axis is None:
        return
    for i, sizes in enumerate(zip(*known, strict=False)):
        if i != axis:
            for size in sizes:
                yield is_one(size, best_known(sizes))


def best_known(sizes: Sequence[Expression]) -> Expression:
    """Returns a number among sizes that must all be equal; the first size if none is a number."""
    return next((size for size in sizes if isinstance(size, int)), sizes[0])


def is_one(a: Expression, b: Expression) -> Condition:
    """Returns the condition that two sizes are equal, solved for a symbol if possible."""
    if isinstance(a, int) or (isinstance(a, Term) and isinstance(b, Symbol)):
        a, b = b, a
    if isinstance(a, Term) and isinstance(b, int):
        numbers = [part for part in a.of if isinstance(part, int)]
        others = [part for part in a.of if not isinstance(part, int)]
        if a.operation == "sum" and numbers:
            return is_one(total(others), b - sum(numbers))
    return Condition(a, "is", b)


def divides(number: int, size: Expression) -> Condition:
    """Returns the condition that a number divides a size; constant factors of the size are divided out."""
    if isinstance(size, Term) and size.operation == "product":
        factor = math.prod(part for part in size.of if isinstance(part, int))
        rest = product(part for part in size.of if not isinstance(part, int))
        return Condition(rest, "divisible by", number // math.gcd(factor, number))
    return Condition(size, "divisible by", number)


def at_least(size: Expression, least: int) -> Condition:
    """Returns the condition that a size is at least a number, solved for a symbol if possible."""
    if isinstance(size, Term):
        numbers = [part for part in size.of if isinstance(part, int)]
        others = [part for part in size.of if not isinstance(part, int)]
        if size.operation == "sum" and len(others) == 1:
            return Condition(others[0], "at least", least - sum(numbers))
        if size.operation == "share" or (size.operation == "last" and numbers == [2]):
            return Condition(others[0], "at least", least * numbers[0])
        if size.operation == "rounded up":
            return Condition(others[0], "at least", (least - 1) * numbers[0] + 1)
    return Condition(size, "at least", least)


def fits(declared: Shape | None, sizes: Sequence[Expression] | None) -> Iterator[Condition]:
    """Yields the conditions under which sizes match a declared shape, for each declared number or interval; a declared
    name matches any size, and an unknown shape matches any sizes. The ranks are not compared."""
    for dim, size in zip(declared or (), sizes or (), strict=False):
        if isinstance(dim, int):
            yield is_one(size, dim)
        elif isinstance(dim, Interval):
            yield at_least(size, dim.bounds.low)
            if dim.bounds.high is not None:
                yield Condition(size, "at most", dim.bounds.high)


def all_hold(conditions: Iterable[Condition], values: Values) -> bool:
    """True if every condition holds for these sizes, given by the names of symbols."""
    return all(condition.holds(values) for condition in conditions)


def conditions_text(conditions: Sequence[Condition]) -> str:
    """Returns the text of the conditions, such as "sizes at least 1, at most 4,294,967,295 elements": the first
    MOST_SAID, and the number of the others; "" without conditions."""
    said: dict[str, None] = {}
    for condition in conditions:
        of_all = not condition.of and (condition.relation, condition.to) in _OF_ALL and condition.size != DIMENSIONS
        is_size = not isinstance(condition.size, Term) or condition.size.operation in ("share", "rounded up", "sum")
        said[f"sizes {condition.relation} {_text(condition.to)}" if of_all and is_size else str(condition)] = None
    if len(said) > MOST_SAID:
        return f"{', '.join(list(said)[:MOST_SAID])} and {len(said) - MOST_SAID} conditions more"
    return ", ".join(said)
