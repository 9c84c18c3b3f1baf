"""Conditions on open sizes: expressions, what is certain, what follows, words."""

import itertools
import random

import pytest

from dmlsplit.descriptors.conditions import (
    Condition,
    Symbol,
    Term,
    alike,
    all_hold,
    at_least,
    bounds_of,
    conditions_text,
    depending,
    divides,
    expression,
    expressions,
    fits,
    is_one,
    product,
    quotient,
    solved,
    total,
    value_of,
)
from dmlsplit.descriptors.dims import Bounds, interval

N, M = Symbol("n", Bounds(0, None)), Symbol("m", Bounds(0, None))
SMALL = Symbol("small", Bounds(2, 5))


def test_dimensions_are_numbers_names_or_places():
    assert expressions((4, "n", None), "x") == (4, N, Symbol("x[2]", Bounds(0, None)))
    assert expression(interval(2, 5), "small") == SMALL


def test_numbers_are_computed():
    assert (total([1, 2]), product([2, 3]), quotient("share", 7, 2)) == (3, 6, 3)
    assert (quotient("rounded up", 7, 2), quotient("last", 7, 2), quotient("last", 5, 4)) == (4, 3, -1)
    assert (total([0, N]), product([1, N]), quotient("share", N, 1)) == (N, N, N)
    assert value_of(product([total([N, 2]), 3]), {"n": 4}) == 18


@pytest.mark.parametrize("seed", range(300))
def test_bounds_hold_what_is_certain_and_at_least_says_the_same(seed):
    rng = random.Random(seed)
    symbols = [Symbol(name, Bounds(low, low + rng.choice([0, 3, 20]))) for name, low in (("a", 0), ("b", 2), ("c", 5))]

    def made(depth):
        if depth == 0 or rng.random() < 0.3:
            return rng.choice([*symbols, rng.randint(0, 9)])
        kind = rng.choice(["sum", "product", "share", "rounded up", "last"])
        if kind in ("sum", "product"):
            parts = [made(depth - 1) for _ in range(rng.randint(1, 3))]
            return total(parts) if kind == "sum" else product(parts)
        return quotient(kind, made(depth - 1), rng.randint(1, 5))

    size, number = made(2), rng.randint(1, 30)
    low, high = bounds_of(size)
    relation = rng.choice(["at least", "at most", "is", "divisible by"])
    condition = Condition(size, relation, number)
    for _ in range(40):
        values = {symbol.name: rng.randint(*symbol.limits) for symbol in symbols}
        value = value_of(size, values)
        assert low <= value <= high
        assert condition.certain in (None, condition.holds(values))
        assert at_least(size, number).holds(values) == (value >= number)
        assert divides(number, size).holds(values) == (value % number == 0)
        assert is_one(size, number).holds(values) == (value == number)


@pytest.mark.parametrize("seed", range(300))
def test_what_follows_says_the_same(seed):
    rng = random.Random(seed)
    symbols = [Symbol(name, Bounds(0, 6)) for name in "abc"]
    sides = [*symbols, 0, 2, 4, total([symbols[0], 2]), quotient("share", symbols[1], 2), total(symbols)]
    conditions = []
    for _ in range(rng.randint(1, 4)):
        relation = rng.choice(["is", "is", "at least", "at most", "divisible by"])
        conditions.append(
            Condition(rng.choice(sides[:6]), relation, 2 if relation == "divisible by" else rng.choice(sides))
        )
    found = solved(conditions)
    for _ in range(60):
        values = {symbol.name: rng.randint(0, 6) for symbol in symbols}
        holds = all_hold(conditions, values)
        assert holds == all_hold(depending(conditions), values)
        assert holds == (found is not None and all_hold(found, values)), (conditions, found, values)


def test_contradictions_are_found():
    assert solved([is_one(N, 3), is_one(N, 4)]) is None
    assert solved([is_one(N, M), is_one(M, 3), Condition(N, "divisible by", 2)]) is None
    assert solved([is_one(SMALL, 7)]) is None
    assert solved([is_one(N, 4), Condition(N, "divisible by", 2), at_least(N, 1)]) == (Condition(N, "is", 4),)


def test_shapes_that_are_one():
    assert list(alike([(N, 4), (M, 4)], 1)) == [Condition(N, "is", N), Condition(M, "is", N)]
    assert depending(alike([(N, 4), (3, M)], 1)) == (Condition(N, "is", 3),)
    assert list(fits((3, interval(2, 5), "name", None), (N, M, N, M))) == [
        Condition(N, "is", 3), Condition(M, "at least", 2), Condition(M, "at most", 5),
    ]  # fmt: skip


def test_words():
    whole = product([N, 3, M])
    conditions = [
        Condition(M, "divisible by", 3),
        at_least(N, 1),
        at_least(M, 1),
        Condition(whole, "at most", 2**32 - 1, "elements"),
    ]
    assert conditions_text(conditions) == "m divisible by 3, sizes at least 1, at most 4,294,967,295 elements"
    assert (
        conditions_text([Condition(Term("last", (N, 4)), "at least", 1)]) == "n leaves 1 or more after 3 parts of n/4"
    )
    assert conditions_text([Condition(total([N, -2]), "is", M)]) == "n - 2 is m"
    assert conditions_text([]) == ""


def test_many_sizes_are_no_burden():
    """Each may have to be the next one, and a file may name as many as it likes."""
    symbols = [Symbol(f"s{i}", Bounds(0, None)) for i in range(5000)]
    chain = [is_one(a, b) for a, b in itertools.pairwise(symbols)]
    assert len(solved([*chain, is_one(symbols[-1], 3)])) == 5000
    assert solved([*chain, is_one(symbols[-1], 3), is_one(symbols[0], 4)]) is None
    assert conditions_text(chain).endswith(" conditions more")
