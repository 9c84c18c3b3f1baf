"""The report on a mended model: changes, refusals, and the doc_string of new nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dmlsplit.descriptors.location import steps_text
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import SplitNode


class CannotMend(Exception):
    """A node cannot be mended; the message says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change at one node: the rewritings or cures, the reason, and the nodes before and after as text."""

    path: str
    names: tuple[str, ...]
    reason: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a node, or for path "" the model, cannot be mended for the target."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


def invalid(node: SplitNode | JoinNode) -> str:
    """Returns the first reason why a node, whose report has errors, is not valid ONNX, as text."""
    error = node.report.errors[0]
    return f"it is not valid by ONNX: {steps_text(error.location.steps)}: {error.message}"


def document(names: Sequence[str], path: str, target: str, reason: str) -> str:
    """Returns the doc_string line of the nodes that are written for one change."""
    return f"dmlsplit: {', '.join(names)} at {path} for {target}: {reason}"
