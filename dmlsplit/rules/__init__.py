"""The registry of rules: each rule is defined once, and all code that refers to rules reads it from here.

Scopes: input/ (reported by the readers of files), tensor/, split/, join/, operator/ (of any other operator), legalize/
(reported by rewriting), onnx/ and openvino/ (the frameworks' own rules for their Splits and Concats), node/ (reported
by the front ends of models), onnxruntime/ and model/ (reported about a node, and about a whole model, if the target is
a version of ONNX Runtime), placement/ (why a node is not on DirectML), require/ (what a project demands of a whole
model), graph/, and the emulated device's, binding/ and device/. Ids are never reused; a renamed rule's old id stays in
REDIRECTS.

Every rule that is a name in one of its scope's modules is in the registry; rules run in the order of their definitions.
The modules of a scope are imported when the first of its rules is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.descriptors.geometry import ROLES
from dmlsplit.rules import crash
from dmlsplit.rules._model import (
    DescriptorRule,
    Finding,
    Findings,
    Notice,
    OperatorCheck,
    OperatorRule,
    Rule,
    TensorRule,
)
from dmlsplit.rules._views import Aspect, OperatorView, TensorView
from dmlsplit.system.lazy import lazy

if TYPE_CHECKING:
    from dmlsplit.descriptors.conditions import Condition
    from dmlsplit.rules._bindings import BindingRule, BindingSlot, BindingView, BufferRange, SlotKind
    from dmlsplit.rules._facts import NodeFacts
    from dmlsplit.rules._nodes import NodeRule

__all__ = [
    "CRASH_RULES",
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
    "NodeRule",
    "Notice",
    "OperatorCheck",
    "OperatorRule",
    "OperatorView",
    "Rule",
    "SlotKind",
    "TensorRule",
    "TensorView",
    "judge_node",
    "node_rules",
    "reads_past_an_array",
    "valid_where",
]

_NAMES: Final = {
    "dmlsplit.rules._bindings": "BindingRule BindingSlot BindingView BufferRange SlotKind",
    "dmlsplit.rules._nodes": "NodeRule",
}
__getattr__, __dir__ = lazy(__name__, _NAMES)  # operators alone need neither

REDIRECTS: Final[Mapping[str, str]] = {"graph/neighbour-rank": "operator/dimension-count-not-supported"}
"""Maps a renamed rule's old id to its new id."""

_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("input",),
    "tensor": ("tensor", "strides", "total_size"),
    "split": ("operator", "crash"),
    "join": ("operator", "crash"),
    "operator": ("any_operator",),
    "library": ("library",),
    "legalize": ("legalize",),
    "node": ("node",),
    "onnx": ("onnx.form", "onnx.lengths", "onnx.concat", "onnx"),
    "openvino": ("openvino.inputs", "openvino.lengths", "openvino.concat"),
    "onnxruntime": ("onnxruntime",),
    "model": ("whole_model",),
    "placement": ("placement",),
    "require": ("requirements",),
    "graph": ("graph",),
    "binding": ("binding",),
    "device": ("device",),
}
"""Maps each scope to the modules of its rules."""


@cache
def _scope(name: str) -> Mapping[str, Rule]:
    """Maps the ids of a scope's rules to the rules, in the order of their definitions. Raises ValueError for an id that
    is taken or defined in a module of another scope."""
    rules: dict[str, Rule] = {}
    for module in _MODULES.get(name, ()):
        for value in vars(import_module(f"dmlsplit.rules.{module}")).values():
            for rule in value if isinstance(value, tuple) else (value,):
                if not isinstance(rule, Rule):
                    continue
                if module not in _MODULES.get(rule.scope, ()):
                    raise ValueError(f"rule id {rule.id} has a scope of other modules")
                if rule.scope == name and (rules.setdefault(rule.id, rule) is not rule or rule.id in REDIRECTS):
                    raise ValueError(f"rule id {rule.id} is taken")
    return rules


class _Registry(Mapping[str, Rule]):
    def __getitem__(self, id: str) -> Rule:
        return _scope(id.partition("/")[0])[id]

    def __iter__(self) -> Iterator[str]:
        for name in _MODULES:
            yield from _scope(name)

    def values_of(self, scope: str) -> tuple[Rule, ...]:
        """Returns the rules of a scope, in the order of their definitions."""
        return tuple(_scope(scope).values())

    def __len__(self) -> int:
        return sum(len(_scope(name)) for name in _MODULES)


RULES: Final = _Registry()
"""Maps ids to rules."""
TENSOR_RULES: Final = tuple([rule for rule in _scope("tensor").values() if isinstance(rule, TensorRule)])
"""The rules about a single tensor, in the order of its members."""
CRASH_RULES: Final = dict(zip(ROLES, crash.crash, strict=True))
"""Run before all others for a release: they find reads that end the process before anything is checked."""
OPERATOR_RULES: Final[Mapping[OperatorType, tuple[OperatorRule, ...]]] = {
    kind: tuple(
        [
            rule
            for rule in _scope(kind.name.lower()).values()
            if isinstance(rule, OperatorRule) and rule is not CRASH_RULES[kind]
        ]
    )
    for kind in ROLES
}
reads_past_an_array: Final = crash.reads_past_an_array


@cache
def node_rules(facts: type[NodeFacts]) -> tuple[NodeRule[Any], ...]:
    """Returns the rules that check nodes whose facts are of the class `facts`, in the order of their definitions."""
    from dmlsplit.rules._nodes import NodeRule

    return tuple(
        [rule for rule in _scope(facts.scope).values() if isinstance(rule, NodeRule) and isinstance(rule.bad, facts)]
    )


def valid_where(facts: NodeFacts) -> tuple[Condition, ...]:
    """Returns the conditions on open sizes under which the rules of the node's framework (ONNX, ONNX Runtime or
    OpenVINO) find no error; all of them must hold. () if no rule depends on an open size. `judge_node` must not report
    an error of the node; rules that only warn do not count."""
    return facts.valid_where(rule for rule in node_rules(type(facts)) if rule.severity is Severity.ERROR)


def judge_node(facts: NodeFacts, node: str) -> tuple[Diagnostic, ...]:
    """Returns the diagnostics of the framework's own rules about a node; each location contains `node`, its printable
    name."""
    return facts.judge(node_rules(type(facts)), node)
