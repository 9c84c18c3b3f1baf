"""Rules of a framework's Split node: what is known of one node, and how rules are run over it."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from dmlsplit.diagnostics import Basis, Diagnostic, Severity, Value
from dmlsplit.rules._model import Check, Rule
from dmlsplit.rules.node import RUNTIME_DIFFERS


class Fact(enum.IntFlag):
    """What a check of a node relies on or finds faulty."""

    NONE = 0
    FORM = 1
    """Which inputs and attributes are given."""
    TYPE = 2
    SHAPE = 4
    AXIS = 8
    LENGTHS = 16
    """The lengths that are given: values, type and rank."""
    COUNT = 32
    """The number of outputs."""


@dataclass(frozen=True, slots=True)
class NodeFacts(ABC):
    """What a front end found out about one node; plain values only, so that a check needs no framework."""

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

    @abstractmethod
    def with_shape(self, shape: tuple[int, ...]) -> NodeFacts:
        """The same node with an input of this shape, which fits what is known of it."""

    def differences(self) -> Iterable[tuple[str, str]]:
        """Members (or "") and what runtimes were seen to do otherwise, whatever the rules say of the node."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The facts that are not as usual, as JSON holds them."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}


def node_rules(rules: list[Rule]) -> Callable[..., Callable[[Check[Any]], Check[Any]]]:
    """A decorator that turns a check of facts into a rule, documented and an error unless said otherwise."""

    def rule(id: str, summary: str, explanation: str, **given: Any) -> Callable[[Check[Any]], Check[Any]]:
        def add(check: Check[Any]) -> Check[Any]:
            settings = {"severity": Severity.ERROR, "basis": Basis.DOCUMENTED, **given}
            rules.append(Rule(id, summary=summary, explanation=explanation, node_check=check, **settings))
            return check

        return add

    return rule


def judge_facts(rules: Iterable[Rule], facts: NodeFacts, node: str) -> tuple[Diagnostic, ...]:
    """What the rules find, each path beginning with the node's name; a rule whose facts are faulty is skipped.

    What runtimes do otherwise where a rule found something is a warning of its own.
    """
    failed = 0
    found = []

    def report(rule: Rule, member: str, message: str, expected: Value = None, actual: Value = None) -> None:
        path = f"{node}.{member}" if member else node
        found.append(rule.diagnostic(path, message, expected=expected, actual=actual))

    for rule in rules:
        if failed & rule.reads or rule.node_check is None:
            continue
        findings = rule.node_check(facts) or ()
        for finding in findings:
            report(rule, *finding)
            failed |= rule.marks
        if findings and rule.runtimes:
            report(RUNTIME_DIFFERS, next(iter(findings)).member, rule.runtimes)
    for member, message in facts.differences():
        report(RUNTIME_DIFFERS, member, message)
    return tuple(found)
