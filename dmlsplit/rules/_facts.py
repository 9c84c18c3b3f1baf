"""Rules about a framework's Split or Concat node: the known facts about one node, and how rules judge them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, ClassVar

from dmlsplit.descriptors.conditions import THE_AXIS, Condition, Expression, Values, depending, fits
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.dims import compatible, shape_text
from dmlsplit.descriptors.location import Location
from dmlsplit.rules._model import Finding, Findings, findings_of
from dmlsplit.rules._nodes import NodeRule
from dmlsplit.rules.node import RUNTIME_DIFFERS
from dmlsplit.system.records import entity


def outputs_fit(n: Any) -> Iterator[Condition]:
    """Yields the conditions under which a split's outputs have their declared shapes."""
    for declared, sizes in zip(n.declared_shapes, n.parts_shapes, strict=False):
        yield from fits(declared, sizes)


def misdeclared(n: Any, outputs: str, words: str) -> Findings:
    """Yields a finding for each output of a split whose declared shape is wrong; `outputs` is the member's name,
    `words` the message, which contains {declared} and {shape}."""
    for i, (declared, shape) in enumerate(zip(n.declared_shapes, n.output_shapes, strict=False)):
        if not compatible(declared, shape):
            said = {"declared": shape_text(declared), "shape": shape_text(shape)}
            yield Finding((outputs, i), words.format(**said), said["shape"], said["declared"])


@entity
class NodeFacts(ABC):
    """A front end's facts about one node; only plain values, so that checks need no framework."""

    scope: ClassVar[str]
    """The scope of the framework's rules."""

    @property
    @abstractmethod
    def specification(self) -> str:
        """The specification that judges the node, such as "ONNX Split 13"."""

    @property
    @abstractmethod
    def axis_index(self) -> int | None:
        """The axis as a non-negative index; None if it is not known."""

    @property
    @abstractmethod
    def lengths(self) -> tuple[Any, ...] | None:
        """The sizes of the parts along the axis; None if their number is not known."""

    @property
    def whole(self) -> tuple[Expression, ...] | None:
        """The sizes of a Split's input or a Concat's output, with open sizes as symbols; None if unknown.

        A front end without open sizes keeps the defaults of this, `parts` and `closed`.
        """
        return None

    @property
    def parts(self) -> tuple[Expression, ...] | None:
        """The sizes of the parts along the axis, with open sizes as symbols; None if unknown."""
        return None

    @property
    def least_rank(self) -> int | None:
        """The fewest dimensions that the framework's rules allow, if the rank is open and everything else depends only
        on sizes; otherwise None. The default is None."""
        return None

    @property
    def axis_length(self) -> Expression | None:
        """The size of the whole along the axis; None if it is unknown."""
        if self.whole is None:
            return None if self.least_rank is None else THE_AXIS
        return None if self.axis_index is None else self.whole[self.axis_index]

    @property
    def parts_shapes(self) -> tuple[tuple[Expression, ...], ...]:
        """The shapes of the parts, with open sizes as symbols; () if unknown."""
        whole, axis, parts = self.whole, self.axis_index, self.parts
        if whole is None or axis is None or parts is None:
            return ()
        return tuple([(*whole[:axis], part, *whole[axis + 1 :]) for part in parts])

    def closed(self, values: Values) -> NodeFacts:
        """Returns the facts with symbols replaced by these sizes."""
        return self

    @abstractmethod
    def with_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> NodeFacts:
        """Returns the facts with these shapes of what is split or joined, which must be compatible with the known
        ones: one shape for a split."""

    def differences(self) -> Iterable[tuple[str, str]]:
        """Returns pairs of a member ("" for the node) and a message about how runtimes deviate from the specification
        there, whatever the rules find. The default is none."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the facts that differ from their defaults as a dict for JSON."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}

    def valid_where(self, rules: Iterable[NodeRule[Any]]) -> tuple[Condition, ...]:
        """Returns the conditions on open sizes under which none of `rules` finds a fault; all of them must hold. () if
        no rule depends on an open size."""
        return depending(condition for rule in rules for condition in rule.where(self))

    def judge(self, rules: Iterable[NodeRule[Any]], node: str) -> tuple[Diagnostic, ...]:
        """Returns the diagnostics of `rules` about the node with these facts; `node` names it in their locations.

        If runtimes treat a fault differently from the specification, an additional warning says so.
        """
        found = []
        here = Location(node=node)
        for rule, findings in findings_of(rules, self):
            found += [rule.report(here, finding) for finding in findings]
            if rule.runtimes:
                found.append(RUNTIME_DIFFERS.report(here, Finding(findings[0].member, rule.runtimes)))
        found += [RUNTIME_DIFFERS.report(here, Finding(member, message)) for member, message in self.differences()]
        return tuple(found)
