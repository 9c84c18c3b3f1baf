"""What a version of ONNX Runtime makes of a model as a whole: where each node goes, and what follows from it."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.targets.runtime_versions import Runtime


class Provider(enum.StrEnum):
    """Where a node runs."""

    DML = "DML"
    CPU = "CPU"
    BOTH = "both"
    """Other nodes take its place, which are on both."""
    FOLDED = "folded"
    """It is a constant before the session runs, or is taken out."""
    UNKNOWN = "unknown"


class Why(enum.StrEnum):
    """Why a node is not on DirectML: the id of a rule."""

    OPSET = "placement/opset"
    OPERATOR = "placement/operator"
    TYPES = "placement/types"
    ATTRIBUTES = "placement/attributes"
    SIZES = "placement/sizes"
    NO_KERNEL = "placement/no-kernel"
    UNASKED = "placement/unasked"


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """One node of a model. `op` has its domain in front, but for the default one; `version` is that of its schema."""

    path: str
    op: str
    provider: Provider
    why: Why | None = None
    version: int | None = None
    newest: int | None = None
    """With Why.OPSET: the newest version of the operator that DirectML has a kernel for."""
    graph: int | None = None
    """The number of its fused graph; None where it is in none, or where that is not known."""

    def __str__(self) -> str:
        """Returns where the node runs: "DML", "CPU", "folded", "unknown"."""
        return str(self.provider)

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict."""
        return {
            "operator": self.op,
            "placement": str(self),
            "why": None if self.why is None else str(self.why),
            "version": self.version,
            "newest": self.newest,
            "graph": self.graph,
        }


@dataclass(frozen=True, slots=True)
class NodeOperators:
    """The DirectML operators that the kernel of a node submits, in order; none, and `why`, if they are not derived."""

    path: str
    operators: tuple[AnyOperatorDesc, ...] = ()
    why: str = ""


class GraphOutcome(enum.StrEnum):
    """What comes of a fused graph."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"
    """CompileGraph returns an error: the session is not made."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FusedSize:
    """A fused graph: how many of the model's nodes are in it at least, and at most; None for more than are known."""

    least: int
    most: int | None
    outcome: GraphOutcome = GraphOutcome.RIGHT
    """Of the worst of its outputs."""
    undecided: tuple[str, ...] = ()
    """The operators that its outcome is unknown for."""

    @property
    def text(self) -> str:
        """The number of nodes as text: "12", "3 to 5", "2 or more"."""
        if self.most is None:
            return f"{self.least} or more"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict."""
        outcome, undecided = str(self.outcome), list(self.undecided)
        return {"least": self.least, "most": self.most, "outcome": outcome, "undecided": undecided}


class Failed(NamedTuple):
    """What keeps a session from being made, or may: a message, and the path of the node; "" where it is not a node."""

    node: str
    message: str


@dataclass(frozen=True)
class SessionAnswer:
    """What a version of ONNX Runtime makes of a model as a whole.

    `created`: whether a session is made, None where that is not known; `failure` is what keeps it from being made, or
    what is not known. `copies` between devices are to the CPU, and from it; None where they are not known. `capture`:
    whether the session can be captured as one graph, None where that is not known; `capture_prevented_by` says why not.
    """

    runtime: Runtime
    created: bool | None
    failure: Failed | None = None
    nodes: Mapping[str, NodePlacement] = field(default_factory=dict)
    """By path: an unnamed node is Operator@index, one of a graph in a node stands behind that node's. In the order of
    the file, those of graphs in nodes before the others; none of a model that is not loaded."""
    graphs: tuple[FusedSize, ...] = ()
    copies: tuple[int, int] | None = None
    capture: bool | None = None
    capture_prevented_by: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    """Findings about several nodes at once, each with what helps, and operators that DirectML refuses."""
    operators: tuple[NodeOperators, ...] = ()
    """Of the nodes on DirectML other than Split and Concat; of fused nodes those of the last one."""

    @cached_property
    def counts(self) -> Counter[Provider]:
        """The number of nodes on each provider."""
        return Counter(node.provider for node in self.nodes.values())

    @cached_property
    def outcomes(self) -> Counter[GraphOutcome]:
        """The number of fused graphs with each outcome. Of a session that fails, of the refused ones alone: nothing
        comes of the others."""
        every = self.created is not False
        return Counter(each.outcome for each in self.graphs if every or each.outcome is GraphOutcome.REFUSED)

    @property
    def on_dml(self) -> float:
        """The share, 0 to 1, of the running nodes that are certainly on DirectML: 0 without a session, 1 if no node
        runs."""
        if self.created is False:
            return 0.0
        running = len(self.nodes) - self.counts[Provider.FOLDED]
        return self.counts[Provider.DML] / running if running else 1.0

    def elsewhere(self) -> list[list[NodePlacement]]:
        """Returns the nodes that are on the CPU, or may be, in one list for each operator and reason. The longest list
        comes first; lists of nodes that compute with sizes come last."""
        found: dict[tuple[object, ...], list[NodePlacement]] = {}
        for node in self.nodes.values():
            if node.provider in (Provider.CPU, Provider.BOTH, Provider.UNKNOWN):
                found.setdefault((node.provider, node.why, node.op, node.version, node.newest), []).append(node)
        return sorted(found.values(), key=lambda nodes: (nodes[0].why is Why.SIZES, -len(nodes)))

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict."""
        return {
            "version": self.runtime.version,
            "created": self.created,
            "failure": None if self.failure is None else self.failure._asdict(),
            "counts": {str(provider): self.counts[provider] for provider in Provider},
            "outcomes": {str(outcome): self.outcomes[outcome] for outcome in GraphOutcome},
            "graphs": [graph.to_dict() for graph in self.graphs],
            "copies": None if self.copies is None else {"to_cpu": self.copies[0], "from_cpu": self.copies[1]},
            "capture": self.capture,
            "capture_prevented_by": self.capture_prevented_by,
            "diagnostics": [each.to_dict() for each in self.diagnostics],
            "nodes": {path: node.to_dict() for path, node in self.nodes.items()},
        }


def changes(placements: Sequence[SessionAnswer]) -> Mapping[str, tuple[Provider, ...]]:
    """Maps the path of each node that is not on one provider in all versions to its providers, in the order of the
    versions."""
    found: dict[str, list[Provider]] = {}
    for each in placements:
        for node in each.nodes.values():
            found.setdefault(node.path, []).append(node.provider)
    return {path: tuple(providers) for path, providers in found.items() if len(set(providers)) > 1}
