"""The registry of rules: each rule is defined once, and everything that speaks of rules reads it from here.

Scopes: input/ (reported by the readers of files), tensor/, split/, join/, legalize/ (reported by rewriting), onnx/
and openvino/ (the frameworks' own rules of their Splits and Concats), node/ (reported by the front ends of models),
onnxruntime/ (reported where a version of ONNX Runtime is asked about), graph/, and the emulated device's, binding/
and device/. Ids are never reused; a renamed rule's old id stays in REDIRECTS.

A rule is in the registry if it is a name of one of the modules below; rules are run in the order in which they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from dmlsplit.conditions import Condition, depending
from dmlsplit.diagnostics import Diagnostic, Severity
from dmlsplit.enums import OperatorType
from dmlsplit.geometry import ROLES
from dmlsplit.rules import (
    binding,
    crash,
    device,
    graph,
    legalize,
    memory,
    node,
    onnx,
    onnxruntime,
    openvino,
    operator,
    strides,
    tensor,
)
from dmlsplit.rules import input as input_
from dmlsplit.rules._facts import NodeFacts, judge_facts
from dmlsplit.rules._model import (
    SCOPES,
    BindingRule,
    DescriptorRule,
    Finding,
    Findings,
    NodeRule,
    Notice,
    OperatorCheck,
    OperatorRule,
    Rule,
    TensorRule,
)
from dmlsplit.rules._sources import Source
from dmlsplit.rules._views import Aspect, BindingSlot, BindingView, BufferRange, OperatorView, SlotKind, TensorView
from dmlsplit.rules.graph import GraphRule

__all__ = [
    "BINDING_RULES",
    "CRASH_RULES",
    "GRAPH_RULES",
    "NODE_RULES",
    "OPERATOR_RULES",
    "REDIRECTS",
    "RULES",
    "TENSOR_RULES",
    "Aspect",
    "BindingRule",
    "BindingSlot",
    "BindingView",
    "BufferRange",
    "DescriptorRule",
    "Finding",
    "Findings",
    "GraphRule",
    "NodeFacts",
    "NodeRule",
    "Notice",
    "OperatorCheck",
    "OperatorRule",
    "OperatorView",
    "Rule",
    "SlotKind",
    "Source",
    "TensorRule",
    "TensorView",
    "find_rule",
    "judge_node",
    "reads_past_an_array",
    "valid_where",
]

REDIRECTS: Final[Mapping[str, str]] = {}
"""Old id -> the id that took its place."""

_MODULES: Final = (
    *(input_, tensor, strides, memory, operator, crash, legalize, node),
    *(onnx.form, onnx.lengths, onnx.concat, onnx, openvino.inputs, openvino.lengths, openvino.outputs),
    openvino.concat,
    *(onnxruntime, graph, binding, device),
)


def _rules_of(module: ModuleType) -> Iterator[Rule]:
    """The rules that are names of a module, in the order of their definitions."""
    for value in vars(module).values():
        yield from (rule for rule in (value if isinstance(value, tuple) else (value,)) if isinstance(rule, Rule))


def _registry() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for rule in (rule for module in _MODULES for rule in _rules_of(module)):
        if rules.setdefault(rule.id, rule) is not rule or rule.id in REDIRECTS:
            raise ValueError(f"rule id {rule.id} is taken")
    return dict(sorted(rules.items(), key=lambda item: SCOPES.index(item[1].scope)))


RULES: Final[Mapping[str, Rule]] = _registry()
"""Every rule by id."""
TENSOR_RULES: Final = tuple([rule for rule in RULES.values() if isinstance(rule, TensorRule)])
"""The rules of one tensor, in member order."""
OPERATOR_RULES: Final[Mapping[OperatorType, tuple[OperatorRule, ...]]] = {
    kind: tuple(
        rule for rule in _rules_of(operator) if isinstance(rule, OperatorRule) and rule.scope == kind.name.lower()
    )
    for kind in ROLES
}
CRASH_RULES: Final = dict(zip(ROLES, crash.crash, strict=True))
"""Run before all others, for a release: they find what ends the process before anything is checked."""
reads_past_an_array: Final = crash.reads_past_an_array
GRAPH_RULES: Final = {id: rule for id, rule in RULES.items() if isinstance(rule, GraphRule)}
BINDING_RULES: Final = tuple([rule for rule in RULES.values() if isinstance(rule, BindingRule)])
_NODE_RULES: Final = tuple([rule for rule in RULES.values() if isinstance(rule, NodeRule)])
NODE_RULES: Final[Mapping[type[NodeFacts], tuple[NodeRule[Any], ...]]] = {
    facts: tuple([rule for rule in _NODE_RULES if isinstance(rule.bad, facts)])
    for facts in dict.fromkeys(type(rule.bad) for rule in _NODE_RULES)
}
"""The rules of frameworks' nodes, by the class of what is known of one."""


def find_rule(id: str) -> Rule | None:
    """The rule of an id, old ids included; None where there is none."""
    return RULES.get(REDIRECTS.get(id, id))


def valid_where(facts: NodeFacts) -> tuple[Condition, ...]:
    """On which of the sizes that a node without errors leaves open its framework's rules find none, either."""
    rules = [rule for rule in NODE_RULES[type(facts)] if rule.severity is Severity.ERROR]
    return depending(condition for rule in rules for condition in rule.where(facts))


def judge_node(facts: NodeFacts, node: str) -> tuple[Diagnostic, ...]:
    """The findings of a framework's own rules in a node; each location names `node`, its printable name."""
    return judge_facts(NODE_RULES[type(facts)], facts, node)
