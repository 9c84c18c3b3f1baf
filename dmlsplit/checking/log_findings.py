"""What a given model says about a message in a log: that it explains the message, or rules it out."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from dmlsplit.checking.files import judge_files
from dmlsplit.checking.front_ends import session_of
from dmlsplit.checking.question import Question
from dmlsplit.checking.results import Note, Verdict
from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.logs.messages import Asks
from dmlsplit.logs.reading import Finding
from dmlsplit.system.records import record

if TYPE_CHECKING:
    from dmlsplit.checking.front_ends import Given
    from dmlsplit.targets.target import Target
    from dmlsplit.verdicts.model_placements import NodePlacement, SessionAnswer


_CREATED: Final = ("DmlFusedNode", "Memcpy")
"""How the names of nodes begin that ONNX Runtime names regardless of a model."""


class Explained(enum.StrEnum):
    YES = "explained"
    NO = "ruled out"
    UNKNOWN = "not known"


@record
class ModelFacts:
    """A model in a version of ONNX Runtime: its session, the errors that `check` finds, and whether anything in it is
    not known."""

    session: SessionAnswer
    errors: tuple[Diagnostic, ...]
    unknown: bool

    @classmethod
    def of(cls, path: str, target: Target, given: Given) -> ModelFacts:
        """Returns the facts about the model in a file. Raises InputError if it is not a readable model, OSError if it
        cannot be opened."""
        found = session_of(path, target, given)
        results = [result for each in judge_files([path], Question((target,), given)) for result in each]
        diagnostics = [d for result in results for d in result.report.diagnostics if d.severity is Severity.ERROR]
        unknown = any(not isinstance(result, Note) and result.verdict is Verdict.UNKNOWN for result in results)
        return cls(found, tuple(dict.fromkeys(diagnostics)), unknown)

    def explains(self, finding: Finding) -> Explained | None:
        """Returns whether the model explains a finding or rules it out; None if the finding's message does not depend
        on a model."""
        asks = None if finding.message is None else finding.message.asks
        return None if asks is None else _ANSWERS[asks](self)

    def node(self, finding: Finding) -> NodePlacement | None:
        """Returns the node that a finding names; None if it names none, or one that is not in the model."""
        if not finding.node:
            return None
        nodes = self.session.nodes
        found = nodes.get(finding.node)
        return found or next((node for path, node in nodes.items() if path.endswith(f"/{finding.node}")), None)

    def may_have(self, finding: Finding) -> bool:
        """True if the node that a finding names may be one of the model's session: it is in the model, or optimization
        may have created it, whose names are new or contain those of nodes that it replaces."""
        name = finding.node or ""
        return (
            self.node(finding) is not None
            or name.startswith(_CREATED)
            or any(path.rpartition("/")[2] in name for path in self.session.nodes)
        )

    def is_of_another_model(self, findings: Iterable[Finding]) -> bool | None:
        """Returns whether a log with these findings is of another model: it names nodes, and none of them can be one of
        this model's session; None if it names none, or if the model's nodes are not known."""
        named = [finding for finding in findings if finding.node]
        return not any(map(self.may_have, named)) if named and self.session.nodes else None


def _creation(facts: ModelFacts) -> Explained:
    if facts.session.created is False or facts.errors:
        return Explained.YES
    return Explained.UNKNOWN if facts.session.created is None or facts.unknown else Explained.NO


def _placement(facts: ModelFacts) -> Explained:
    from dmlsplit.verdicts.model_placements import Provider

    elsewhere = {group[0].provider for group in facts.session.elsewhere()}
    if Provider.CPU in elsewhere or Provider.BOTH in elsewhere:
        return Explained.YES
    return Explained.UNKNOWN if elsewhere or not facts.session.nodes else Explained.NO


def _capture(facts: ModelFacts) -> Explained:
    return {False: Explained.YES, True: Explained.NO, None: Explained.UNKNOWN}[facts.session.capture]


_ANSWERS: Final[Mapping[Asks, Callable[[ModelFacts], Explained]]] = {
    Asks.CREATION: _creation,
    Asks.PLACEMENT: _placement,
    Asks.CAPTURE: _capture,
}
