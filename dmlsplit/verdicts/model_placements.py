"""A version of ONNX Runtime's treatment of a whole model: where each node runs, and the consequences."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.system.records import entity, record
from dmlsplit.targets.runtime_versions import Runtime


class Provider(enum.StrEnum):
    """Where a node runs."""

    DML = "DML"
    CPU = "CPU"
    BOTH = "both"
    """Replaced by other nodes, some on each."""
    FOLDED = "folded"
    """It is a constant before the session runs, or is removed."""
    UNKNOWN = "unknown"


class Why(enum.StrEnum):
    """Why a node is not on DirectML: a rule's id."""

    OPSET = "placement/opset"
    OPERATOR = "placement/operator"
    TYPES = "placement/types"
    ATTRIBUTES = "placement/attributes"
    SIZES = "placement/sizes"
    NO_KERNEL = "placement/no-kernel"
    UNASKED = "placement/unasked"


@record
class NodePlacement:
    """One node of a model. `op` starts with its domain, unless that is the default one; `version` is that of its
    schema."""

    path: str
    op: str
    provider: Provider
    why: Why | None = None
    version: int | None = None
    newest: int | None = None
    """With Why.OPSET: the newest version of the operator that DirectML has a kernel for."""
    graph: int | None = None
    """The number of its fused graph; None if it is in none, or if that is not known."""
    types: tuple[str, ...] = ()
    """With Why.TYPES: the element types for which DirectML has no kernel, such as INT64."""

    def __str__(self) -> str:
        """Returns where the node runs: "DML", "CPU", "folded", "unknown"."""
        return str(self.provider)

    def to_dict(self) -> dict[str, object]:
        """Returns a dict for JSON: the operator, the placement and its reason as text (None without one), `version`,
        `newest`, `graph` and `types`."""
        return {
            "operator": self.op,
            "placement": str(self),
            "why": None if self.why is None else str(self.why),
            "version": self.version,
            "newest": self.newest,
            "graph": self.graph,
            "types": list(self.types),
        }


@entity
class NodeOperators:
    """The DirectML operators that a node's kernel submits, in order; empty if they are not known, and `why` says
    why."""

    path: str
    operators: tuple[AnyOperatorDesc, ...] = ()
    why: str = ""


class GraphOutcome(enum.StrEnum):
    """The result of compiling and running a fused graph."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"
    """CompileGraph returns an error: session creation fails."""
    UNKNOWN = "unknown"


@record
class FusedSize:
    """A fused graph: the smallest and the largest number of the model's nodes in it; the largest is None if it is
    unknown."""

    least: int
    most: int | None
    outcome: GraphOutcome = GraphOutcome.RIGHT
    """The outcome of the worst of its outputs."""
    undecided: tuple[str, ...] = ()
    """The operators that make its outcome unknown."""

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
    """What prevents a session from being created, or may: a message, and the path of the node; "" if it is not a
    node."""

    node: str
    message: str


@dataclass(frozen=True)
class SessionAnswer:
    """How a version of ONNX Runtime treats a model as a whole.

    `created`: whether a session is created, None if that is not known; `failure` is what prevents it, or what is not
    known. `copies` are the numbers of copies between devices, to the CPU and from it; None if they are not known.
    `capture`: whether the session can be captured as one graph, None if that is not known; `capture_prevented_by` says
    why it cannot.
    """

    runtime: Runtime
    created: bool | None
    failure: Failed | None = None
    nodes: Mapping[str, NodePlacement] = field(default_factory=dict)
    """By path: the node's name; for an unnamed node, the name of its first output or, without one, its operator. The
    path of a node in a node's graph starts with that of the node around it; of equal paths, all but the first end with
    a number: "y (2)". In the order of the file, with nodes of inner graphs first; empty if the model is not loaded."""
    graphs: tuple[FusedSize, ...] = ()
    copies: tuple[int, int] | None = None
    capture: bool | None = None
    capture_prevented_by: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    """Findings about several nodes together, each with its remedy, and operators that DirectML refuses."""
    operators: tuple[NodeOperators, ...] = ()
    """The operators of the nodes on DirectML other than Split and Concat; fused nodes have those of the last one."""
    running: int | None = None
    """The number of nodes that are left by optimization, which removes nodes and fuses them into others, as in the
    sizes of `graphs`; None if it is not known. `nodes` and `counts` are of the nodes of the file."""

    @cached_property
    def counts(self) -> Counter[Provider]:
        """The number of nodes on each provider."""
        return Counter(node.provider for node in self.nodes.values())

    @cached_property
    def outcomes(self) -> Counter[GraphOutcome]:
        """The number of fused graphs with each outcome. For a session that fails, only refused graphs are counted: the
        others never run."""
        every = self.created is not False
        return Counter(each.outcome for each in self.graphs if every or each.outcome is GraphOutcome.REFUSED)

    @property
    def unknown(self) -> str:
        """What is not known of the session, as text; "" if it is known whether it is created, where each node runs, and
        whether each fused graph is right."""
        if self.created is None:
            why = "" if self.failure is None else f": {self.failure.message}"
            return f"whether its session is created is not known{why}"
        if count := self.counts[Provider.UNKNOWN]:
            return f"where {count} of its nodes run{'s' * (count == 1)} is not known"
        if count := self.outcomes[GraphOutcome.UNKNOWN]:
            return f"whether {count} of its fused graphs {'is' if count == 1 else 'are'} right is not known"
        return ""

    @property
    def on_dml(self) -> float:
        """The share, 0 to 1, of the running nodes that are certainly on DirectML: 0 if no session is created, 1 if no
        node runs."""
        if self.created is False:
            return 0.0
        running = len(self.nodes) - self.counts[Provider.FOLDED]
        return self.counts[Provider.DML] / running if running else 1.0

    def elsewhere(self) -> list[list[NodePlacement]]:
        """Returns the nodes that are or may be on the CPU, as one list for each operator and reason. The longest list
        comes first; lists of nodes that only compute sizes come last."""
        found: dict[tuple[object, ...], list[NodePlacement]] = {}
        for node in self.nodes.values():
            if node.provider in (Provider.CPU, Provider.BOTH, Provider.UNKNOWN):
                found.setdefault((node.provider, node.why, node.op, node.version, node.newest, node.types), []).append(
                    node
                )
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
            "running": self.running,
            "nodes": {path: node.to_dict() for path, node in self.nodes.items()},
        }


def changes(placements: Sequence[SessionAnswer]) -> Mapping[str, tuple[Provider, ...]]:
    """Maps the path of each node whose provider differs between versions to its providers, in the order of the
    versions."""
    found: dict[str, list[Provider]] = {}
    for each in placements:
        for node in each.nodes.values():
            found.setdefault(node.path, []).append(node.provider)
    return {path: tuple(providers) for path, providers in found.items() if len(set(providers)) > 1}
