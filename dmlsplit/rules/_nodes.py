"""Rules about the nodes of a framework, and the facts that they need."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dmlsplit.rules._model import Aspects, CheckedRule, Findings
from dmlsplit.system.records import entity

if TYPE_CHECKING:
    from dmlsplit.descriptors.conditions import Condition

F = TypeVar("F")


class Fact(enum.Enum):
    """A part of a node that a check requires to be sound, or finds faulty."""

    FORM = "which inputs and attributes are given"
    TYPE = "the element type"
    SHAPE = "the shape"
    AXIS = "the axis"
    LENGTHS = "the lengths that are given: values, type and rank"
    COUNT = "the number of outputs"


def _always(facts: Any) -> Iterable[Condition]:
    return ()


@entity
class NodeRule(CheckedRule, Generic[F]):
    """A framework's own rule about a node, with a pair of nodes, one on each side of its boundary. By default its check
    needs the FORM.

    `runtimes`: the observed behaviour of runtimes if the check finds a fault; reported as node/runtime-differs.
    `where`: the conditions on open sizes under which the check finds nothing; none if sizes do not matter.
    """

    needs: Aspects = frozenset({Fact.FORM})
    bad: F = field(kw_only=True)
    good: F = field(kw_only=True)
    runtimes: str = ""
    where: Callable[[F], Iterable[Condition]] = _always

    def __call__(self, check: Callable[[F], Findings]) -> NodeRule[F]:
        return replace(self, check=check)
