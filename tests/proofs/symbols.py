"""Integers that have no value yet, and a solver that says what can be true of them.

A Number is a polynomial. Its variables are members of a descriptor, quotients and remainders of divisions by constants,
and bitwise ands. Each product of variables is one more variable for the solver, with inequalities that hold for
products of integers from 0 on. So all questions are linear. What the solver refutes is refuted for integers; what it
finds possible may be impossible, so the callers try it on the code itself.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import z3

UINT32 = 2**32 - 1
RESOURCES = 200_000_000
"""What z3 may spend on one question, in steps of its own: a busy machine takes longer for as many."""
Formula = Any
"""z3's BoolRef, or a bool."""


def both(*formulas: Formula) -> Formula:
    kept = [f for f in formulas if f is not True]
    return (
        False if any(f is False for f in kept) else True if not kept else kept[0] if len(kept) == 1 else z3.And(*kept)
    )


def either(*formulas: Formula) -> Formula:
    kept = [f for f in formulas if f is not False]
    return True if any(f is True for f in kept) else False if not kept else kept[0] if len(kept) == 1 else z3.Or(*kept)


def no(formula: Formula) -> Formula:
    return not formula if isinstance(formula, bool) else z3.Not(formula)


class Undecided(Exception):
    """The solver gave up."""


class _Answers:
    """Assumptions and a formula -> the solver's answer. One formula is one object to z3, and keeps its number."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, int], int] = {}
        self._answers: dict[tuple[int, int], Any] = {}
        self._kept: dict[int, Any] = {}

    def after(self, state: int, formula: Any) -> int:
        """The number of these assumptions and one more; those of 0 are none."""
        kept = self._number(formula)
        return self._states.setdefault((state, kept), len(self._states) + 1)

    def get(self, state: int, formula: Any) -> Any:
        return self._answers.get((state, self._number(formula)))

    def add(self, state: int, formula: Any, answer: Any) -> None:
        self._answers[state, self._number(formula)] = answer

    def _number(self, formula: Any) -> int:
        made = z3.BoolVal(formula) if isinstance(formula, bool) else formula
        return int(self._kept.setdefault(made.get_id(), made).get_id())


_ANSWERS = _Answers()
"""Targets, roles and types differ in few things: most questions are asked many times."""


class World:
    """The variables, the solver, and the path that is explored.

    Where `relates` is False, a product is any number from 0 on: what is refuted so, is refuted in fewer steps.
    """

    def __init__(self, *, relates: bool = True) -> None:
        self.relates = relates
        self.solver = z3.Solver()
        self.solver.set("rlimit", RESOURCES)
        self.ranges: dict[str, tuple[int, int] | None] = {}
        self._terms: dict[tuple[str, ...], Any] = {}
        self._divided: dict[Any, tuple[Number, Number]] = {}
        self._rests: dict[str, tuple[Number, int]] = {}
        self._anded: dict[Any, Number] = {}
        self._and = z3.Function("and", z3.IntSort(), z3.IntSort(), z3.IntSort())
        self._assumed = 0
        self._path: list[Formula] = []
        self._decisions: list[tuple[bool, bool]] = []
        self._next = 0
        self.questions = 0

    # ---- variables

    def number(self, name: str, low: int, high: int) -> Number:
        self._variable(name, (low, high))
        return Number(self, {(name,): 1})

    def _variable(self, name: str, bounds: tuple[int, int] | None) -> Any:
        assert name not in self.ranges
        self.ranges[name] = bounds
        found = self._terms[name,] = z3.Int(name)
        if bounds is not None:
            self.assume(bounds[0] <= found, found <= bounds[1])
        return found

    def term(self, number: Number | int) -> Any:
        """The number as the solver has it: a sum of its variables."""
        if isinstance(number, int):
            return z3.IntVal(number)
        return z3.Sum([c * self._monomial(m) if m else z3.IntVal(c) for m, c in number.terms.items()])

    def _monomial(self, names: tuple[str, ...]) -> Any:
        if names not in self._terms:
            found = z3.Int("*".join(names))
            self._terms[names] = found
            self.assume(found >= 0)
            for name in dict.fromkeys(names) if self.relates else ():
                at = names.index(name)
                self._relate(found, name, names[:at] + names[at + 1 :])
        return self._terms[names]

    def _relate(self, product: Any, name: str, others: tuple[str, ...]) -> None:
        """What holds for product == x * y, where both are integers from 0 on: the signs of x, x - 1, x - 2, the same of
        y, and of what they lack to their bounds, multiplied by one another."""
        low, high = self.range_of((name,))
        _, most = self.range_of(others)
        assert low >= 0
        x, y = self._monomial((name,)), self._monomial(others)
        self.assume(z3.Implies(x == 0, product == 0), z3.Implies(y == 0, product == 0))
        self.assume(z3.Implies(x == 1, product == y), z3.Implies(y == 1, product == x))
        self.assume(z3.Implies(z3.And(x >= 1, y >= 1), product >= x + y - 1))
        self.assume(z3.Implies(x >= 2, product >= 2 * y), z3.Implies(y >= 2, product >= 2 * x))
        self.assume(high * y - product >= 0, most * x - product >= 0)
        self.assume(z3.Implies(x >= 1, most * x - product - most + y >= 0))
        self.assume(z3.Implies(y >= 1, high * y - product - high + x >= 0))
        self.assume(z3.Implies(y <= UINT32, product <= UINT32 * x))

    def range_of(self, names: tuple[str, ...]) -> tuple[int, int]:
        lows, highs = [], []
        for name in names:
            bounds = self.ranges[name]
            assert bounds is not None, f"a product with {name}"
            lows.append(bounds[0])
            highs.append(bounds[1])
        return math.prod(lows), math.prod(highs)

    def divided(self, number: Number, by: int) -> tuple[Number, Number]:
        """Quotient and remainder of a division by a constant above 0, rounded down."""
        key = number.key, by
        if key not in self._divided:
            name = f"({number})/{by}"
            quotient, rest = (Number(self, {(f"{name}{what}",): 1}) for what in ("", " rest"))
            self._variable(name, None)
            self._variable(f"{name} rest", (0, by - 1))
            self.assume(self.term(number) == by * self.term(quotient) + self.term(rest))
            self._divided[key] = quotient, rest
            self._rests[f"{name} rest"] = number, by
        return self._divided[key]

    def rest(self, number: Number, by: int) -> Number | int:
        """The remainder of a division by a constant above 0. Remainders by a multiple of it that the number has give
        way to what they are remainders of."""
        for name, (whole, divisor) in self._rests.items():
            if divisor % by == 0 and any(name in names for names in number.terms):
                parts = [
                    Number(self, {tuple(n for n in names if n != name): c}) * math.prod([whole] * names.count(name))
                    for names, c in number.terms.items()
                ]
                return sum(parts, 0) % by
        return self.divided(number, by)[1]

    def anded(self, a: Number, b: Number | int) -> Number | int:
        """a & b for an a of at least 0: a function of which little is known, but when a & (a - 1) is 0."""
        if isinstance(b, int) and b >= 0 and (b & (b + 1)) == 0:
            return self.rest(a, b + 1)
        key = a.key, b if isinstance(b, int) else b.key
        if key not in self._anded:
            name = f"({a})&({b})"
            found, x, y = self._variable(name, None), self.term(a), self.term(b)
            self.assume(found == self._and(x, y), z3.Implies(y == 0, found == 0))
            powers = z3.Or(x == 0, *(x == 2**n for n in range(64)))
            self.assume(z3.Implies(z3.And(y == x - 1, x >= 0, x < 2**64), (found == 0) == powers))
            self.assume(z3.Implies(x >= 0, z3.And(found >= 0, found <= x)))
            self._anded[key] = Number(self, {(name,): 1})
        return self._anded[key]

    # ---- questions

    def assume(self, *formulas: Formula) -> None:
        """What holds in all that is asked from here on."""
        for formula in formulas:
            self.solver.add(formula)
            self._assumed = _ANSWERS.after(self._assumed, formula)

    def _check(self, formula: Any) -> Any:
        """The solver's answer; it has one level more then, and a model where there is one."""
        self.questions += 1
        self.solver.push()
        self.solver.add(formula)
        answer = self.solver.check()
        if answer != z3.unknown:
            _ANSWERS.add(self._assumed, formula, answer)
        return answer

    def possible(self, *formulas: Formula) -> bool:
        """Whether all may be true together. Raises Undecided."""
        formula = both(*formulas)
        if isinstance(formula, bool):
            return formula
        answer = _ANSWERS.get(self._assumed, formula)
        if answer is None:
            answer = self._check(formula)
            reason = self.solver.reason_unknown() if answer == z3.unknown else ""
            self.solver.pop()
            if reason:
                raise Undecided(reason)
        return bool(answer != z3.unsat)

    def model(self, *formulas: Formula) -> Mapping[str, int] | None:
        """Values of all variables where the formulas are true; None where they never are. Raises Undecided."""
        formula = both(*formulas)
        if formula is False or _ANSWERS.get(self._assumed, formula) == z3.unsat:
            return None
        try:
            answer = self._check(formula)
            if answer == z3.unsat:
                return None
            if answer != z3.sat:
                raise Undecided(self.solver.reason_unknown())
            model = self.solver.model()
            return {
                names[0]: model.eval(term, model_completion=True).as_long()
                for names, term in self._terms.items()
                if len(names) == 1
            }
        finally:
            self.solver.pop()

    def witness(self, *formulas: Formula, attempts: int = 40) -> Mapping[str, int] | None:
        """Values for which the formulas are true, products being products; None where none was found. Their variables
        are set one by one to what a model has, until each product has one free variable at most."""
        rng = random.Random(len(self._terms))
        basic = [names for names in self._terms if len(names) == 1 and self.ranges[names[0]] is not None]
        products = [names for names in self._terms if len(names) > 1]
        factors = sorted({name for names in products for name in names if "Strides" not in name})
        for attempt in range(attempts):
            fixed: dict[str, int] = {}
            for name in factors:
                model = self.model(*formulas, *self._fixing(fixed, products))
                if model is None:
                    break
                small = [
                    n
                    for n in (1, 2, 3, 2**16, 2**32 - 1)
                    if self.possible(*formulas, *self._fixing({**fixed, name: n}, products))
                ]
                fixed[name] = rng.choice(small) if small and (attempt or not rng.randrange(2)) else model[name]
            model = self.model(*formulas, *self._fixing(fixed, products))
            if model is not None:
                return {names[0]: model[names[0]] for names in basic}
        return None

    def _fixing(self, fixed: Mapping[str, int], products: list[tuple[str, ...]]) -> list[Formula]:
        """That these variables have these values, and what follows for products of at most one other variable."""
        found: list[Formula] = [self._terms[name,] == value for name, value in fixed.items()]
        for names in products:
            free = [name for name in names if name not in fixed]
            if len(free) <= 1:
                known = math.prod(fixed[name] for name in names if name in fixed)
                found.append(self._terms[names] == (known * self._terms[free[0],] if free else known))
        return found

    # ---- paths

    def decide(self, formula: Formula) -> bool:
        """The value of a condition on this path; one that may be either is True first, and False on a later path."""
        if isinstance(formula, bool):
            return formula
        if self._next == len(self._decisions):
            may = self.possible(*self._path, formula)
            self._decisions.append((may, may and self.possible(*self._path, no(formula))))
        value, _ = self._decisions[self._next]
        self._next += 1
        self._path.append(formula if value else no(formula))
        return value

    def paths(self, function: Callable[[], Any], *given: Formula) -> Iterator[tuple[Formula, Any]]:
        """Runs a function on each path that it may take: the condition of the path, and what is returned."""
        self._decisions = []
        while True:
            self._path, self._next = list(given), 0
            result = function()
            yield both(*self._path), result
            while self._decisions and not self._decisions[-1][1]:
                self._decisions.pop()
            if not self._decisions:
                return
            self._decisions[-1] = (False, False)


class Condition:
    """A formula that code may ask: it is true on one path and false on another."""

    def __init__(self, world: World, formula: Formula) -> None:
        self.world, self.formula = world, formula

    def __bool__(self) -> bool:
        return self.world.decide(self.formula)


class Number:
    def __init__(self, world: World, terms: Mapping[tuple[str, ...], int]) -> None:
        self.world = world
        self.terms = {names: factor for names, factor in terms.items() if factor != 0}

    @property
    def key(self) -> frozenset[tuple[tuple[str, ...], int]]:
        return frozenset(self.terms.items())

    def __repr__(self) -> str:
        return " + ".join("*".join([str(c), *m]) for m, c in sorted(self.terms.items())) or "0"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def simplified(self) -> Number | int:
        return self if any(self.terms) else self.terms.get((), 0)

    def bounds(self) -> tuple[float, float]:
        low, high = 0.0, 0.0
        exact_low, exact_high = 0, 0
        for names, factor in self.terms.items():
            if any(self.world.ranges[name] is None for name in names):
                low, high = -math.inf, math.inf
                continue
            ends = sorted(factor * end for end in self.world.range_of(names))
            exact_low, exact_high = exact_low + ends[0], exact_high + ends[1]
        return (exact_low if low == 0 else low), (exact_high if high == 0 else high)

    def __add__(self, other: Number | int) -> Number | int:
        terms = Counter(self.terms)
        for names, factor in terms_of(other).items():
            terms[names] += factor
        return Number(self.world, terms).simplified()

    def __mul__(self, other: Number | int) -> Number | int:
        terms: Counter[tuple[str, ...]] = Counter()
        for m, c in self.terms.items():
            for n, d in terms_of(other).items():
                terms[tuple(sorted(m + n))] += c * d
        return Number(self.world, terms).simplified()

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Number | int:
        return self * -1

    def __sub__(self, other: Number | int) -> Number | int:
        return self + other * -1

    def __rsub__(self, other: int) -> Number | int:
        return self * -1 + other

    def __floordiv__(self, by: int) -> Number:
        return self.world.divided(self, by)[0]

    def __mod__(self, by: int) -> Number | int:
        return self.world.rest(self, by)

    def __and__(self, other: Number | int) -> Number | int:
        return self.world.anded(self, other)

    def compared(self, other: Number | int, compare: Callable[[Any, Any], Any]) -> Formula:
        """The formula of a comparison; True or False where the bounds of the variables decide it."""
        difference = self - other
        if isinstance(difference, int):
            return bool(compare(difference, 0))
        low, high = difference.bounds()
        if low > 0 or high < 0:
            return bool(compare(low, 0))
        return compare(self.world.term(difference), 0)

    def _condition(self, other: Number | int, compare: Callable[[Any, Any], Any]) -> Condition | bool:
        if not isinstance(other, (int, Number)):
            return False
        found = self.compared(other, compare)
        return found if isinstance(found, bool) else Condition(self.world, found)

    def __eq__(self, other: Any) -> Any:
        return self._condition(other, lambda a, b: a == b)

    def __ne__(self, other: Any) -> Any:
        return self._condition(other, lambda a, b: a != b)

    def __lt__(self, other: Any) -> Any:
        return self._condition(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._condition(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._condition(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._condition(other, lambda a, b: a >= b)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        """All numbers have one hash, that of no small integer: a table of numbers is searched by ==, and none of
        constants may be asked for a number that may be one of them."""
        return 2**60


def terms_of(value: Number | int) -> Mapping[tuple[str, ...], int]:
    return value.terms if isinstance(value, Number) else {(): int(value)}
