"""The registry of rules: each rule is defined once, and everything that speaks of rules reads it from here.

Scopes: input/ (reported by the readers of files), tensor/, split/, join/, legalize/ (reported by rewriting), onnx/ and
openvino/ (the frameworks' own rules of their Splits), node/ (reported by the front ends of models), and the emulated
device's, binding/ and device/. Ids are never reused; a renamed rule's old id stays in REDIRECTS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlsplit.diagnostics import Diagnostic
from dmlsplit.enums import OperatorType
from dmlsplit.rules import binding, crash, device, join, memory, node, onnx, openvino, split, strides, tensor
from dmlsplit.rules import input as _input
from dmlsplit.rules import legalize as _legalize
from dmlsplit.rules._facts import NodeFacts, judge_facts
from dmlsplit.rules._model import (
    PART_MEMBERS,
    BindingView,
    BufferRange,
    Judge,
    Member,
    OperatorView,
    Place,
    Rule,
    Source,
    TensorView,
    Wanted,
)

__all__ = [
    "CRASH_RULES",
    "NODE_RULES",
    "OPERATOR_RULES",
    "PART_MEMBERS",
    "REDIRECTS",
    "RULES",
    "TENSOR_RULES",
    "BindingView",
    "BufferRange",
    "Judge",
    "Member",
    "NodeFacts",
    "OperatorView",
    "Place",
    "Rule",
    "Source",
    "TensorView",
    "Wanted",
    "find_rule",
    "judge_node",
]

REDIRECTS: Final[Mapping[str, str]] = {}
"""Old id -> the id that took its place."""


TENSOR_RULES: Final = (*tensor.RULES, *strides.RULES, *memory.RULES)
"""The rules of one tensor, in member order."""
OPERATOR_RULES: Final[Mapping[OperatorType, tuple[Rule, ...]]] = {
    OperatorType.SPLIT: split.RULES,
    OperatorType.JOIN: join.RULES,
}
CRASH_RULES: Final = crash.RULES
NODE_RULES: Final[Mapping[type[NodeFacts], tuple[Rule, ...]]] = {
    onnx.OnnxSplit: onnx.RULES,
    openvino.OpenVinoSplit: openvino.RULES,
}
"""The rules of frameworks' nodes, by the class of what is known of one, in the order in which they are run."""


def _registry(*groups: tuple[Rule, ...]) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for rule in (rule for group in groups for rule in group):
        if rule.id in rules or rule.id in REDIRECTS:
            raise ValueError(f"rule id {rule.id} is taken")
        rules[rule.id] = rule
    return rules


RULES: Final[Mapping[str, Rule]] = _registry(
    _input.RULES,
    TENSOR_RULES,
    split.RULES,
    join.RULES,
    tuple(crash.RULES.values()),
    _legalize.RULES,
    node.RULES,
    *NODE_RULES.values(),
    (onnx.FUNCTION_RECURSIVE,),
    binding.RULES,
    device.RULES,
)
"""Every rule by id."""


def find_rule(id: str) -> Rule | None:
    """The rule of an id, old ids included; None where there is none."""
    return RULES.get(REDIRECTS.get(id, id))


def judge_node(facts: NodeFacts, node: str) -> tuple[Diagnostic, ...]:
    """What a framework's own rules find in a node; each path begins with `node`, its printable name."""
    return judge_facts(NODE_RULES[type(facts)], facts, node)
