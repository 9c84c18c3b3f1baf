"""Where every node of a model goes in a session, and what follows of it: copies, graph capture, whether it is made.

Source: fallback_cpu_capability.cc, transformer_memcpy.cc and inference_session.cc of ONNX Runtime; observed.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from dmlsplit.formats.onnx.protobuf import domain_of, subgraphs
from dmlsplit.models.graph import Node, Value
from dmlsplit.onnxruntime.creation import Failure, first_of
from dmlsplit.onnxruntime.graph_build import session_graphs
from dmlsplit.onnxruntime.neighbours import CPU_INPUTS, KEEPS_ON_CPU
from dmlsplit.onnxruntime.operators import Cell, is_on_dml, operator_of
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.printable import printable
from dmlsplit.targets.runtime_versions import Runtime

_OLDEST_OPSET: Final = 7


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
    """Why a node is not on DirectML."""

    OPSET = "opset"
    """Its operator has changed at this opset, and DirectML's kernels are for an older one."""
    OPERATOR = "operator"
    """There is no kernel for its operator."""
    TYPES = "types"
    """There is none for its element types."""
    ATTRIBUTES = "attributes"
    """There is none for its attributes, or as many outputs."""
    SIZES = "sizes"
    """It computes with sizes, which ONNX Runtime leaves on the CPU."""
    NO_KERNEL = "no-kernel"
    """Neither DirectML nor the CPU has a kernel."""
    UNASKED = "unasked"
    """The table of operators does not have it, or not of its types."""


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

    def to_dict(self) -> dict[str, object]:
        """The node as JSON has it."""
        return {
            "node": self.path,
            "operator": self.op,
            "provider": str(self.provider),
            "why": None if self.why is None else str(self.why),
            "version": self.version,
            "graph": self.graph,
        }


@dataclass(frozen=True, slots=True)
class FusedSize:
    """A fused graph: how many of the model's nodes are in it at least, and at most; None for more than are known."""

    least: int
    most: int | None

    @property
    def text(self) -> str:
        """ "12", "3 to 5", "2 or more"."""
        if self.most is None:
            return f"{self.least} or more"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


@dataclass(frozen=True)
class ModelPlacement:
    """What a version of ONNX Runtime makes of a model as a whole.

    `session`: whether it is made, None where that is not known; `failing` is the node that keeps it from being made,
    where one does, and `failure` says why. `copies` between devices are to the CPU, and from it; None where they are
    not known. `capture` is "" where the session can be captured as one graph, else what prevents it; None where it is
    not known.
    """

    runtime: Runtime
    session: bool | None
    failing: str
    failure: str
    nodes: tuple[NodePlacement, ...]
    graphs: tuple[FusedSize, ...]
    copies: tuple[int, int] | None
    capture: str | None

    @cached_property
    def counts(self) -> Counter[Provider]:
        """The nodes of each provider."""
        return Counter(node.provider for node in self.nodes)

    @property
    def on_dml(self) -> float:
        """The part of the nodes that run at all that is certainly on DirectML; 1 where none runs."""
        running = len(self.nodes) - self.counts[Provider.FOLDED]
        return self.counts[Provider.DML] / running if running else 1.0

    def elsewhere(self) -> dict[tuple[Why | None, str, int | None, int | None], list[str]]:
        """The nodes on the CPU, and those that are not known, by reason and operator; the most first."""
        found: dict[tuple[Why | None, str, int | None, int | None], list[str]] = {}
        for node in self.nodes:
            if node.provider in (Provider.CPU, Provider.BOTH, Provider.UNKNOWN):
                found.setdefault((node.why, node.op, node.version, node.newest), []).append(node.path)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def to_dict(self) -> dict[str, Any]:
        """The placement as JSON has it."""
        return {
            "version": self.runtime.version,
            "session": {True: "created", False: "fails", None: "unknown"}[self.session],
            "failing": self.failing or None,
            "failure": self.failure or None,
            "counts": {str(provider): self.counts[provider] for provider in Provider},
            "graphs": [{"least": size.least, "most": size.most} for size in self.graphs],
            "copies": None if self.copies is None else {"to_cpu": self.copies[0], "from_cpu": self.copies[1]},
            "capture": None if self.capture is None else {"accepted": not self.capture, "reason": self.capture or None},
            "nodes": [node.to_dict() for node in self.nodes],
        }


def placement(graphs: Sequence[SessionGraph], failures: Sequence[Failure]) -> ModelPlacement:
    """Where the nodes of a model's graphs go. `graphs`: each behind those in its nodes; `failures` keep the session
    from being made."""
    runtime = graphs[-1].runtime
    nodes: list[NodePlacement] = []
    sizes: list[FusedSize] = []
    for graph in graphs:
        fused = _fused(graph, sizes)
        nodes += [_placed(graph, i, fused.get(i)) for i, node in enumerate(graph.nodes) if node.op_type != "Constant"]
    first = first_of(failures)
    doubts = [each for each in failures if not each.certain]
    lost = any(node.provider is Provider.UNKNOWN for node in nodes)
    session = False if first is not None else None if doubts or lost else True
    failure = first or next(iter(doubts), None)
    copies = _copies(graphs)
    return ModelPlacement(
        runtime,
        session,
        "" if failure is None else failure.node,
        "" if failure is None else failure.why,
        tuple(nodes),
        tuple(sizes),
        copies,
        _capture(graphs, copies),
    )


def _fused(graph: SessionGraph, sizes: list[FusedSize]) -> dict[int, int]:
    """The fused graph of each node, by number; appends their sizes."""
    found: dict[int, int] = {}
    for part in session_graphs(graph).parts:
        if part.complete:
            found |= dict.fromkeys(part.members, len(sizes))
        count = len(part.paths)
        sizes.append(FusedSize(count, count if part.complete else None if part.most >= 1 << 32 else part.most))
    return found


def _placed(graph: SessionGraph, index: int, fused: int | None) -> NodePlacement:
    node, path = graph.nodes[index].proto, graph.path(index)
    domain = domain_of(node)
    op = printable(f"{domain}.{node.op_type}" if domain else node.op_type)
    if index not in graph.walk:
        return NodePlacement(path, op, Provider.FOLDED)
    operator = graph.operator(index)
    version = None if operator is None else operator.version
    cell = graph.cell(index)
    if cell is None:
        return NodePlacement(path, op, Provider.UNKNOWN, Why.UNASKED, version)
    if index in graph.preferring_cpu:
        return NodePlacement(path, op, Provider.CPU, Why.SIZES, version)
    if is_on_dml(cell):
        return NodePlacement(path, op, Provider.DML, None, version, None, fused)
    if cell is Cell.FOLDED:
        return NodePlacement(path, op, Provider.UNKNOWN, Why.UNASKED, version)
    provider = Provider.BOTH if cell is Cell.EXPANDED else Provider.CPU
    why, newest = _why(graph, index, cell)
    return NodePlacement(path, op, provider, why, version, newest)


def _why(graph: SessionGraph, index: int, cell: Cell) -> tuple[Why, int | None]:
    """Why a node is not on DirectML, and the newest version of its operator that is."""
    if cell is Cell.NO_KERNEL:
        return Why.NO_KERNEL, None
    node = graph.nodes[index].proto
    if domain_of(node) == "":
        for older in range(graph.scope.origin.opset - 1, _OLDEST_OPSET - 1, -1):
            found = graph.cell_at(index, older)
            if found is not None and is_on_dml(found):
                operator = operator_of(node, older, graph.runtime)
                return Why.OPSET, None if operator is None else operator.version
    operator = graph.operator(index)
    if operator is None or not operator.is_on_dml_at_all:
        return Why.OPERATOR, None
    by_types = operator.ask(graph.types_of(index))
    return (Why.ATTRIBUTES if by_types is not None and is_on_dml(by_types) else Why.TYPES), None


# Copies and capture.


def _copies(graphs: Sequence[SessionGraph]) -> tuple[int, int] | None:
    """How many tensors are copied to the CPU, and from it; None where nodes are not known, or hold graphs."""
    (*inner, graph) = graphs
    if inner:
        return None
    to_cpu = from_cpu = 0
    for value in graph.graph.values.values():
        if not value.name or graph.is_constant(value.name):
            continue
        made = _side(graph, value)
        reads = {_reading(graph, value, reader) for reader in value.readers}
        if None in reads or (made is None and value.readers):
            return None
        to_cpu += made is Provider.DML and Provider.CPU in reads
        from_cpu += (made is Provider.CPU and Provider.DML in reads) or (made is Provider.FOLDED and len(reads) == 2)
    return to_cpu, from_cpu


def _side(graph: SessionGraph, value: Value) -> Provider | None:
    """Where a tensor is made; FOLDED for an input, which can be given anywhere, None where it is not known."""
    if value.producer is None:
        return Provider.FOLDED
    node = value.producer
    provider = _provider(graph, node)
    if node.op_type in KEEPS_ON_CPU and provider is Provider.DML:
        return Provider.CPU
    return provider


def _reading(graph: SessionGraph, value: Value, reader: Node) -> Provider | None:
    """Where a node reads a tensor; None where it is not known, or reads it on both sides."""
    provider = _provider(graph, reader)
    if provider is not Provider.DML:
        return provider
    on_cpu = CPU_INPUTS.get(reader.op_type, ())
    places = {i in on_cpu for i, each in enumerate(reader.inputs) if each is value}
    return None if len(places) != 1 else Provider.CPU if True in places else Provider.DML


def _provider(graph: SessionGraph, node: Node) -> Provider | None:
    """DML or CPU; None where it is not known, or where other nodes on both take its place."""
    cell = graph.cell(node.index)
    if cell is None or cell in (Cell.FOLDED, Cell.EXPANDED):
        return None
    return Provider.DML if is_on_dml(cell) and node.index not in graph.preferring_cpu else Provider.CPU


def _capture(graphs: Sequence[SessionGraph], copies: tuple[int, int] | None) -> str | None:
    """What prevents graph capture, "" where nothing does; None where it is not known."""
    flow = [graph.path(node.index) for graph in graphs for node in _holding_graphs(graph)]
    if flow:
        return f"{flow[0]} is control flow"
    if copies is None:
        return None
    count = sum(copies)
    return f"{count} tensor{'s are' if count > 1 else ' is'} copied between the CPU and the device" if count else ""


def _holding_graphs(graph: SessionGraph) -> Iterator[Node]:
    return (node for node in graph.graph.nodes if any(True for _ in subgraphs(node.proto)))


def changes(placements: Sequence[ModelPlacement]) -> Mapping[str, tuple[Provider, ...]]:
    """The nodes that are not in one place in all of several versions, by path."""
    found: dict[str, list[Provider]] = {}
    for each in placements:
        for node in each.nodes:
            found.setdefault(node.path, []).append(node.provider)
    return {path: tuple(providers) for path, providers in found.items() if len(set(providers)) > 1}
