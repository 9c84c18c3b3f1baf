"""The report on a mended model: its changes, its refusals, and the documentation of the nodes that are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dmlsplit.descriptors.location import steps_text
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import SplitNode


class CannotMend(Exception):
    """Why a node cannot be mended."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change at one node: by which rewritings or cures, why, and the nodes before and after, in words."""

    path: str
    names: tuple[str, ...]
    reason: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node, or the model where `path` is "", cannot be made such that the target takes it."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


def invalid(node: SplitNode | JoinNode) -> str:
    """The first reason for which a node is not valid by ONNX."""
    error = node.report.errors[0]
    return f"it is not valid by ONNX: {steps_text(error.location.steps)}: {error.message}"


def document(names: Sequence[str], path: str, target: str, reason: str) -> str:
    """The documentation of the nodes that are written for one change."""
    return f"dmlsplit: {', '.join(names)} at {path} for {target}: {reason}"
