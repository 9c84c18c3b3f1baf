"""The kinds of rules. A rule decorates its check; what the check is given depends on the kind:

    @TensorRule("tensor/size-zero", "A size is 0.", "DirectML has ...", sources=(...), needs=..., bad=..., good=...)
    def size_zero(t: TensorView) -> Findings:
        yield Finding(...)

The function's name is then bound to the rule. The decorator operator_rules declares a rule about Split and the
corresponding rule about Join. A Notice is a rule without a check: the code that finds the fault reports it. The
registry (dmlsplit.rules) contains every rule that is a name in one of its modules. The kinds that most commands need
are here; those about bindings are in _bindings.py, those about a framework's nodes in _nodes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Severity, Value
from dmlsplit.descriptors.enums import FeatureLevel, OperatorType, TensorDataType
from dmlsplit.descriptors.geometry import ROLES
from dmlsplit.descriptors.location import Location, Step
from dmlsplit.rules._sources import JOIN_DESC, SPLIT_DESC, Source
from dmlsplit.rules._views import OperatorView, TensorView
from dmlsplit.system.records import entity


class Finding(NamedTuple):
    """A fault: its member in the checked subject, the message, the limit, and the value found.

    A check of operators names the tensor at fault, if any; the member is then the tensor's.
    """

    member: str | tuple[Step, ...]
    message: str
    expected: Value = None
    actual: Value = None
    tensor: TensorView | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps to the member, from the checked subject."""
        member = self.member
        inside = (member,) if isinstance(member, str) and member else tuple(member)
        return inside if self.tensor is None else self.tensor.steps + inside


Findings: TypeAlias = Iterator[Finding]
Aspects: TypeAlias = Set[Any]
"""Aspects of a descriptor, or Facts about a framework's node."""
NONE: Final[Aspects] = frozenset()


@entity
class Rule:
    """Identity, meaning and sources of a rule. Its diagnostics have its `severity` and `basis`. `outcome` is the
    consequence of a violation, for rules of the emulated device."""

    id: str
    summary: str
    explanation: str
    sources: tuple[Source, ...]
    severity: Severity = Severity.ERROR
    basis: Basis = Basis.DOCUMENTED
    outcome: str = ""

    def __post_init__(self) -> None:
        if not self.sources:
            raise ValueError(f"rule {self.id} has no source")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id})"

    @property
    def scope(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def reference(self) -> str:
        return str(self.sources[0])

    def diagnostic(
        self,
        location: Location,
        message: str,
        *,
        expected: Value = None,
        actual: Value = None,
        line: int | None = None,
        column: int | None = None,
    ) -> Diagnostic:
        """Returns a diagnostic of this rule at `location`."""
        return Diagnostic(
            self.id, self.severity, self.basis, location, message, expected, actual, self.reference, line, column
        )

    def report(self, location: Location, finding: Finding) -> Diagnostic:
        """Returns the diagnostic of a finding in the subject at `location`."""
        place = location.member(*finding.steps)
        return self.diagnostic(place, finding.message, expected=finding.expected, actual=finding.actual)


class Notice(Rule):
    """A rule without a check: the code that finds the fault reports it."""

    __slots__ = ()


def _missing(*view: Any) -> Any:
    raise AssertionError("a rule without its check, or its examples")


@entity
class CheckedRule(Rule):
    """`needs`: aspects that must be sound; the check is skipped if one is absent or faulty. `spoils`: aspects that a
    finding marks as faulty."""

    needs: Aspects = NONE
    spoils: Aspects = NONE
    check: Callable[..., Findings] = _missing


@entity
class DescriptorRule(CheckedRule):
    """A rule about descriptors, with a pair of them, one on each side of its boundary."""

    bad: Callable[[], OperatorDesc] = _missing
    good: Callable[[], OperatorDesc] = _missing
    examples_for: FeatureLevel | str = FeatureLevel.FL_6_4
    """The level, or the DirectML release, for which `bad` is refused and `good` is not."""
    limit: bool = False
    """True for a limit of a level or build; another descriptor may then do the same work. False for a contradiction."""
    undefined: bool = False
    """True if a build may read past the end of an array: no HRESULT is predicted for a release, unless it refuses
    earlier."""

    @property
    def target_of_examples(self) -> dict[str, str]:
        """The keyword argument of `validate`, with its value, for `examples_for`."""
        by = self.examples_for
        return {"feature_level": str(by)} if isinstance(by, FeatureLevel) else {"directml": by}


class TensorRule(DescriptorRule):
    """A rule about a single tensor."""

    __slots__ = ()

    def __call__(self, check: Callable[[TensorView], Findings]) -> TensorRule:
        return replace(self, check=check)


@entity
class OperatorRule(DescriptorRule):
    """A rule about an operator as a whole, or about how its tensors fit together.

    `needs` are aspects of the operator itself, `needs_of_whole` of the whole tensor, `needs_of_parts` of the parts; a
    part that lacks one is not passed to the check or, with `needs_all_parts`, the rule is skipped. A finding spoils
    aspects of its tensor, or of the operator.
    """

    needs_of_whole: Aspects = NONE
    needs_of_parts: Aspects = NONE
    needs_all_parts: bool = False


R = TypeVar("R", bound=CheckedRule)


def findings_of(rules: Iterable[R], view: Any) -> Iterator[tuple[R, Sequence[Finding]]]:
    """Yields each rule that has findings, with its findings; a rule that needs an aspect which an earlier finding
    spoilt is skipped."""
    spoilt: set[object] = set()
    for rule in rules:
        found = list(rule.check(view)) if rule.needs.isdisjoint(spoilt) else []
        if found:
            spoilt |= rule.spoils
            yield rule, found


class Each(NamedTuple):
    """A setting of operator_rules whose value differs between Split and Join."""

    split: Any
    join: Any


OperatorCheck: TypeAlias = Callable[[OperatorView, Sequence[TensorView]], Findings]
Make: TypeAlias = Callable[..., OperatorDesc]
"""The function rules._examples.split or rules._examples.join."""
THE_PAGE: Final = Source("the page of the operator's desc")
"""Placeholder for the operator's page in the sources of operator_rules."""
_PAGES: Final = {"split": SPLIT_DESC, "join": JOIN_DESC}
_WORDS: Final = {
    "split": {"whole": "input", "part": "output", "operator": "split"},
    "join": {"whole": "output", "part": "input", "operator": "join"},
}


def operator_rules(
    *ids: str,
    summary: str,
    explanation: str,
    sources: tuple[Source, ...],
    bad: Callable[[Make], OperatorDesc],
    good: Callable[[Make], OperatorDesc],
    **settings: Any,
) -> Callable[[OperatorCheck], tuple[OperatorRule, ...]]:
    """Returns a decorator that turns a check into a rule about Split, Join or both; the scopes of the ids select the
    operators.

    In the texts {whole} is the input of a split or the output of a join, {part} is the opposite, and {array} and
    {count} are the members that hold the parts and their number. `bad` and `good` are called with the function that
    makes the operator's examples.
    """
    from dmlsplit.rules import _examples

    makers: dict[str, Make] = {"split": _examples.split, "join": _examples.join}

    def declare(check: OperatorCheck) -> tuple[OperatorRule, ...]:
        return tuple([_of_operator(id, makers[id.partition("/")[0]], check) for id in ids])

    def _of_operator(id: str, make: Make, check: OperatorCheck) -> OperatorRule:
        scope = id.partition("/")[0]
        roles = ROLES[OperatorType[scope.upper()]]
        words = {**_WORDS[scope], "array": roles.parts, "count": roles.part_count}
        return OperatorRule(
            id,
            summary.format(**words),
            explanation.format(**words),
            tuple([_PAGES[scope] if source is THE_PAGE else source for source in sources]),
            bad=lambda: bad(make),
            good=lambda: good(make),
            check=check,
            **{name: getattr(value, scope) if isinstance(value, Each) else value for name, value in settings.items()},
        )

    return declare


def type_name(data_type: int) -> str:
    """Returns the name of a TensorDataType ("FLOAT32"), or any other number as text."""
    return data_type.name if isinstance(data_type, TensorDataType) else str(int(data_type))
