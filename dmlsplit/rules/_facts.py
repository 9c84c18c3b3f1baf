"""Rules of a framework's Split or Concat node: the facts that are known of one node, and how rules judge them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from dmlsplit.descriptors.conditions import Condition, Expression, Values, depending, fits
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.dims import compatible, shape_text
from dmlsplit.descriptors.location import Location
from dmlsplit.rules._model import Finding, Findings, NodeRule, findings_of
from dmlsplit.rules.node import RUNTIME_DIFFERS


def outputs_fit(n: Any) -> Iterator[Condition]:
    """Where the outputs of a split have the shapes that are declared of them."""
    for declared, sizes in zip(n.declared_shapes, n.parts_shapes, strict=False):
        yield from fits(declared, sizes)


def misdeclared(n: Any, outputs: str, words: str) -> Findings:
    """The outputs of a split that are declared in other shapes than they have; the words say {declared} and {shape}."""
    for i, (declared, shape) in enumerate(zip(n.declared_shapes, n.output_shapes, strict=False)):
        if not compatible(declared, shape):
            said = {"declared": shape_text(declared), "shape": shape_text(shape)}
            yield Finding((outputs, i), words.format(**said), said["shape"], said["declared"])


@dataclass(frozen=True, slots=True)
class NodeFacts(ABC):
    """The findings of a front end about one node; plain values only, so that a check needs no framework."""

    scope: ClassVar[str]
    """Of the framework's rules."""

    @property
    @abstractmethod
    def specification(self) -> str:
        """By what the node is judged: ONNX Split 13."""

    @property
    @abstractmethod
    def axis_index(self) -> int | None:
        """The axis from 0; None where it is not known."""

    @property
    @abstractmethod
    def lengths(self) -> tuple[Any, ...] | None:
        """The sizes of the parts on the axis."""

    @property
    def whole(self) -> tuple[Expression, ...] | None:
        """The sizes of the tensor that is cut or made, the open ones as symbols; None where there is no telling.

        A front end that has no open sizes leaves this, `parts` and `closed` as they are.
        """
        return None

    @property
    def parts(self) -> tuple[Expression, ...] | None:
        """The sizes of the parts on the axis, likewise."""
        return None

    @property
    def least_rank(self) -> int | None:
        """Where the rank is open: the least that its framework's rules allow, if all else depends on the sizes only."""
        return None

    @property
    def parts_shapes(self) -> tuple[tuple[Expression, ...], ...]:
        """The shapes of the parts, as far as there is telling."""
        whole, axis, parts = self.whole, self.axis_index, self.parts
        if whole is None or axis is None or parts is None:
            return ()
        return tuple([(*whole[:axis], part, *whole[axis + 1 :]) for part in parts])

    def closed(self, values: Values) -> NodeFacts:
        """The same node with the sizes of symbols."""
        return self

    @abstractmethod
    def with_shape(self, shape: tuple[int, ...]) -> NodeFacts:
        """The same node with an input of this shape, which fits what is known of it."""

    def differences(self) -> Iterable[tuple[str, str]]:
        """Members (or "") and what runtimes were seen to do otherwise, whatever the rules say of the node."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The facts that are not as usual, as JSON holds them."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}

    def valid_where(self, rules: Iterable[NodeRule[Any]]) -> tuple[Condition, ...]:
        """On which of the sizes that are left open none of the rules finds anything."""
        return depending(condition for rule in rules for condition in rule.where(self))

    def judge(self, rules: Iterable[NodeRule[Any]], node: str) -> tuple[Diagnostic, ...]:
        """The findings of rules in the node of that name.

        What runtimes do otherwise where a rule found something is a warning of its own.
        """
        found = []
        here = Location(node=node)
        for rule, findings in findings_of(rules, self):
            found += [rule.report(here, finding) for finding in findings]
            if rule.runtimes:
                found.append(RUNTIME_DIFFERS.report(here, Finding(findings[0].member, rule.runtimes)))
        found += [RUNTIME_DIFFERS.report(here, Finding(member, message)) for member, message in self.differences()]
        return tuple(found)
