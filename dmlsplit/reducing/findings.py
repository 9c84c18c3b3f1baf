"""Finds the faults of a model in a session of one version, as classes: the ids of rules, and failed sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import onnx

from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.descriptors.location import steps_text
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import ModelNodes, OtherNode, SplitNode
from dmlsplit.formats.onnx.protobuf import all_nodes
from dmlsplit.formats.sessions import Inputs
from dmlsplit.onnxruntime.model_nodes import read_sessions
from dmlsplit.reducing.classes import SESSION_FAILS
from dmlsplit.rules import RULES
from dmlsplit.rules.onnxruntime import FAULTS
from dmlsplit.system.errors import InputError, NotLoadedError
from dmlsplit.system.records import record
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions
from dmlsplit.verdicts.model_placements import SessionAnswer

_CONSEQUENCES: Final = frozenset(
    {
        *("onnxruntime/session-fails-elsewhere", "onnxruntime/context-unknown", "onnxruntime/sizes-unknown"),
        *("node/shape-unknown", "model/session-fails", "model/unregistered-domain"),
    }
)
"""Rules that report the consequences of another node's fault or of missing knowledge and, for a failed session, no more
than `_of_session` does."""
_SAID_MORE_EXACTLY: Final = {rule: {fault.rule for fault in faults} for rule, faults in FAULTS.items()}
"""Maps a rule about a node whose graph is not known as a whole to the rules that replace it once the graph is known."""
_ORDER: Final = tuple(Severity)
_WORDS: Final = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Question:
    """The session in question: a version, its options, and the facts about the inputs of the first Run."""

    runtime: Runtime
    options: SessionOptions = DEFAULTS
    inputs: Inputs = field(default_factory=Inputs)


@record
class Finding:
    """A fault, or possible fault, of a model; `rule` is its class.

    `kind` distinguishes failed sessions without a rule: it is the message without the model's names and numbers.
    """

    rule: str
    severity: Severity
    node: str
    """The path of the node at fault; "" if it is not about a node."""
    message: str
    kind: str = ""

    @property
    def identity(self) -> tuple[str, str]:
        """A key that is equal for findings of the same class: the rule, and the kind of failed session."""
        return self.rule, self.kind

    def is_like(self, identity: tuple[str, str]) -> bool:
        """True for a finding of the class `identity`, and for one that describes the graph's fault more precisely than
        that class."""
        return self.identity == identity or self.rule in _SAID_MORE_EXACTLY.get(identity[0], ())


def findings_of(model: onnx.ModelProto, question: Question) -> list[Finding]:
    """Returns the findings about a model without weights, the most serious first; each class occurs once for each node.

    Raises InputError if the model cannot be judged.
    """
    sessions, nodes = read_sessions(model, question.inputs, require_known_names=False)
    runtime, options = question.runtime, question.options
    try:
        placed = sessions.of(runtime, options).placement
        # it is assumed to build the graphs of an observed version
        graphs = sessions.of(replace(runtime, observed=True), options).findings()
    except NotLoadedError as error:
        return _sorted([*_of_items(nodes, None, at_fault=False), _failed(model, "", error.message)])
    except InputError:
        found = _sorted(_of_items(nodes, None, at_fault=False))
        if found and found[0].severity is Severity.ERROR:
            return found  # they say why no session can be asked
        raise
    at_fault = any(each.diagnostic.severity is Severity.ERROR for each in graphs)
    found = _of_items(nodes, question, at_fault=at_fault)
    found += [_of_diagnostic(each.diagnostic, each.node) for each in graphs]
    found += [_of_diagnostic(each) for each in placed.diagnostics]
    found += _of_session(model, placed, found)
    found += _of_placements(placed)
    return _sorted(found)


def _sorted(found: Sequence[Finding]) -> list[Finding]:
    """Returns the findings, the most serious first; consequences of other findings are left out, and each class occurs
    once for each node."""
    kept: dict[tuple[tuple[str, str], str], Finding] = {}
    for each in found:
        if each.rule not in _CONSEQUENCES:
            kept.setdefault((each.identity, each.node), each)
    return sorted(kept.values(), key=lambda each: _ORDER.index(each.severity))


def _of_items(nodes: ModelNodes, question: Question | None, *, at_fault: bool) -> list[Finding]:
    """Returns the findings about Split and Concat nodes; with `question` also those about how a session runs them.
    `at_fault`: errors about graphs are reported apart, and not repeated here."""
    found: list[Finding] = []
    for item in nodes.items:
        if isinstance(item, OtherNode):
            found.append(_of_diagnostic(item.diagnostic))
            continue
        answered = () if question is None else _answered(item, question)
        said = (*item.report.diagnostics, *answered)
        found += [_of_diagnostic(d) for d in said if not (at_fault and d.rule in FAULTS)]
    return found


def _answered(item: SplitNode | JoinNode, question: Question) -> Sequence[Diagnostic]:
    """Returns the diagnostics of ONNX Runtime's answer about a node; () if it cannot be asked."""
    try:
        return item.on_onnxruntime(question.runtime, options=question.options).diagnostics
    except InputError:
        return ()


def _of_diagnostic(found: Diagnostic, node: str = "") -> Finding:
    """Returns a diagnostic as a finding about `node` or, if that is "", about the node that the diagnostic names; its
    message includes the member."""
    steps = found.location.steps
    message = f"{steps_text(steps)}: {found.message}" if steps else found.message
    return Finding(found.rule, found.severity, node or found.location.node, message)


def _of_session(model: onnx.ModelProto, placed: SessionAnswer, found: Sequence[Finding]) -> Iterator[Finding]:
    """Yields the failure of a session that is certainly not created, unless an error in `found` explains it that is
    more than a consequence of the failure (_CONSEQUENCES)."""
    failure = placed.failure
    if placed.created is not False or failure is None:
        return
    if any(each.severity is Severity.ERROR and each.rule not in _CONSEQUENCES for each in found):
        return
    yield _failed(model, failure.node, failure.message)


def _failed(model: onnx.ModelProto, node: str, message: str) -> Finding:
    names = {name for each in all_nodes(model.graph.node) for name in (each.name, *each.input, *each.output)}
    words = {word for name in (node, *names) for word in _WORDS.findall(name)}
    kept = [word for word in _WORDS.findall(message) if word not in words and not word[0].isdigit()]
    return Finding(SESSION_FAILS, Severity.ERROR, node, message, " ".join(kept))


def _of_placements(placed: SessionAnswer) -> Iterator[Finding]:
    """Yields a finding of severity note for each node that is not on DirectML, with the reason as its rule."""
    for node in placed.nodes.values():
        if node.why is not None:
            rule = RULES[str(node.why)]
            types = f" of {', '.join(node.types)}" if node.types else ""
            yield Finding(rule.id, Severity.NOTE, node.path, f"{node.op}{types}: {rule.summary}")
