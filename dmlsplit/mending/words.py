"""The report on a mended model: changes, refusals, and the doc_string of new nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dmlsplit.descriptors.location import steps_text
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.system.records import record

_NAMES_SHOWN: Final = 3


class CannotMend(Exception):
    """A node cannot be mended; the message says why."""


@record
class Change:
    """The change at one node: the rewritings or cures, the reason, and the nodes before and after as text."""

    path: str
    names: tuple[str, ...]
    reason: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@record
class Refusal:
    """The reason why a node, or the model if the path is "", cannot be mended for the target."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


def together(found: Iterable[Refusal]) -> Iterator[tuple[str, str]]:
    """Yields, for each reason, the names of the first _NAMES_SHOWN nodes with that reason, separated by commas and with
    "..." at the end if there are more ("" for the whole model), and the reason."""
    of_reason: dict[str, dict[str, None]] = {}
    for each in found:
        of_reason.setdefault(each.reason, {})[each.path] = None
    for reason, paths in of_reason.items():
        first = list(paths)[:_NAMES_SHOWN]
        yield ", ".join([*first, "..."] if len(first) < len(paths) else first), reason


def invalid(node: SplitNode | JoinNode) -> str:
    """Returns the first reason why a node, whose report has errors, is not valid ONNX, as text."""
    error = node.report.errors[0]
    return f"it is not valid ONNX: {steps_text(error.location.steps)}: {error.message}"


def document(names: Sequence[str], path: str, target: str, reason: str) -> str:
    """Returns the doc_string line of the nodes that are written for one change."""
    return f"dmlsplit: {', '.join(names)} at {path} for {target}: {reason}"
