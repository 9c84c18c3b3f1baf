"""What became of one node of a model in a session, step by step, as a value.

found = explain("model.onnx", "split_qkv", "1.24.4")
for step in found.steps:
    print(step.name, step.fate, [node.operator for node in step.nodes])
print(found.placement, found.part, found.answer)
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, NamedTuple

import onnx

from dmlsplit.descriptors.diagnostics import SCHEMA, Diagnostic
from dmlsplit.descriptors.dims import Dim
from dmlsplit.descriptors.schema import known_operator
from dmlsplit.formats.arguments import inputs_of
from dmlsplit.formats.sessions import NodeKey
from dmlsplit.graphs.descriptors import node_type
from dmlsplit.onnxruntime.fused_parts import session_graphs
from dmlsplit.onnxruntime.graphs_of_model import new_graphs
from dmlsplit.onnxruntime.model_nodes import read_sessions
from dmlsplit.onnxruntime.node_facts import facts_in
from dmlsplit.onnxruntime.node_names import SessionNode, only_node, session_nodes, wanted_node
from dmlsplit.onnxruntime.node_placement import placed
from dmlsplit.onnxruntime.onnx_session import OnnxSession
from dmlsplit.onnxruntime.optimization import standing_for
from dmlsplit.onnxruntime.passes import Pass, watched
from dmlsplit.onnxruntime.reports import answer_json
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.records import record
from dmlsplit.targets.runtime_versions import Runtime, find_runtime
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions, check_options
from dmlsplit.verdicts.runtime_answers import RuntimeAnswer

if TYPE_CHECKING:
    from dmlsplit.models.graph import Doubt, Graph
    from dmlsplit.onnxruntime.findings import GraphFinding
    from dmlsplit.onnxruntime.fused import Part
    from dmlsplit.verdicts.model_placements import Failed, NodePlacement, SessionAnswer, Why

BRANCHES: Final = "constant_if"
"""The step that replaces an If whose condition is constant by its branch."""


class Fate(enum.StrEnum):
    """The effect of one step on a node."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    """Its operator, inputs or outputs change."""
    FUSED = "fused"
    """It becomes one node together with others of the model."""
    FOLDED = "folded"
    """It is replaced by constants."""
    REMOVED = "removed"
    """It is removed: its readers read something else, or nothing reads it."""
    UNKNOWN = "unknown"
    """It is not known whether the pass changes it."""


class NodeState(NamedTuple):
    """A node of the session's graph. `of` are the paths of the model's nodes that it represents."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    of: tuple[str, ...]


class Step(NamedTuple):
    """One pass, and the nodes that represent the node after it: usually one, none if it is gone.

    `made`: True if the session's optimization level includes the pass. `instead` are the tensors that are read in place
    of a removed node's outputs; `doubts` says what is not known if the fate is unknown.
    """

    name: str
    level: int
    made: bool
    fate: Fate
    nodes: tuple[NodeState, ...]
    instead: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


class Placement(NamedTuple):
    """Where a node runs, "DML" or "CPU", whether it is in a fused graph, and why it is not on DirectML.

    `provider` and `in_graph` are None if they are unknown, `why` is None for a node on DirectML. `types` are the
    element types for which DirectML has no kernel, if that is why.
    """

    provider: str | None
    in_graph: bool | None
    why: Why | None = None
    types: tuple[str, ...] = ()


@record
class FusedPart:
    """The part of the graph that the node is fused with: the index of the part, and its nodes.

    `operators` are the DirectML operators passed to CompileGraph, in order; empty if they are not known.
    """

    index: int
    nodes: tuple[str, ...]
    operators: tuple[str, ...]
    known: bool
    """True if its nodes and their sizes are known."""


@record
class Explanation:
    """What became of one node in a session: `steps` in ONNX Runtime's order, then where it runs and what is submitted.

    `placement` is None for a node that is gone before nodes are placed, `part` for a node that is not fused. `answer`
    is about a Split or Concat, None for other operators. `findings` are faults of the DirectML graph that the node is
    part of, or that are reported on it.
    """

    path: str
    operator: str
    runtime: Runtime
    options: SessionOptions
    steps: tuple[Step, ...]
    placement: Placement | None = None
    part: FusedPart | None = None
    submitted: tuple[str, ...] = ()
    """The DirectML operators that the node becomes."""
    answer: RuntimeAnswer | None = None
    findings: tuple[GraphFinding, ...] = field(default=())
    failure: Failed | None = None
    """What prevents the session from being created, here or at another node; None if nothing is known to."""
    of_model: tuple[Diagnostic, ...] = ()
    """The findings about the model as a whole that are reported on the node."""

    @property
    def is_gone(self) -> bool:
        """True if optimization leaves no node that stands for this one."""
        return bool(self.steps) and not self.steps[-1].nodes

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of the answer, those of the model on the node, then those of the findings."""
        return (*self._of_node, *(finding.diagnostic for finding in self.findings))

    @property
    def _of_node(self) -> tuple[Diagnostic, ...]:
        return (*(() if self.answer is None else self.answer.diagnostics), *self.of_model)

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict; all keys are always present."""
        part, placed = self.part, self.placement
        return {
            "schema": SCHEMA,
            "node": self.path,
            "operator": self.operator,
            "runtime": self.runtime.version,
            "options": {name: getattr(self.options, name) for name in SessionOptions.__dataclass_fields__},
            "steps": [
                {
                    "pass": step.name,
                    "level": step.level,
                    "made": step.made,
                    "fate": str(step.fate),
                    "nodes": [node._asdict() for node in step.nodes],
                    "instead": list(step.instead),
                    "doubts": list(step.doubts),
                }
                for step in self.steps
            ],
            "placement": None if placed is None else placed._asdict(),
            "part": None
            if part is None
            else {
                "index": part.index,
                "nodes": list(part.nodes),
                "operators": list(part.operators),
                "known": part.known,
            },
            "submitted": list(self.submitted),
            "onnxruntime": None if self.answer is None else answer_json(self.answer),
            "failure": None if self.failure is None else self.failure._asdict(),
            "diagnostics": [each.to_dict() for each in self._of_node],
            "findings": [
                {
                    "fault": None if each.fault is None else str(each.fault.kind),
                    "outputs": list(each.outputs),
                    "cure": None if each.cure is None else each.cure.name,
                    "diagnostic": each.diagnostic.to_dict(),
                }
                for each in self.findings
            ],
        }


def explain(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    node: str | int,
    version: str | Runtime,
    *,
    run_shapes: Mapping[str, Sequence[Dim]] | None = None,
    run_dims: Mapping[str, int] | None = None,
    run_values: Mapping[str, Sequence[int]] | None = None,
    free_dimensions: Mapping[str, int] | None = None,
    options: SessionOptions = DEFAULTS,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> Explanation:
    """Returns how one version of ONNX Runtime treats a node of a model, pass by pass.

    `node` is its path as `check` prints it, its name, or the name of one of its outputs; a suffix #2 selects the third
    of several. A number is the node's index in the JSON of `check`. The other arguments are those of `on_onnxruntime`;
    `run_dims` are the sizes of symbolic dimensions at the first Run.

    Raises InputError if the source is not a model, or has no such node or several; ValueError for an unknown version;
    OSError if a file cannot be read.
    """
    if not isinstance(node, (str, int)):
        raise TypeError(f"node: a path, a name or an index is expected, not {type(node).__name__}")
    runtime = find_runtime(version)
    inputs = inputs_of(run_shapes, run_dims, run_values, free_dimensions, "run_")
    check_options(options)
    sessions, read = read_sessions(source, inputs, allow_paths=allow_paths)
    session = sessions.of(runtime, options)
    nodes = list(session_nodes(session.graphs))
    wanted = wanted_node(node, read.items, {name for each in nodes for name in each.names})
    found = wanted.among(nodes)
    if not found and session.is_removed(wanted.path):
        answer = None if wanted.key is None else session.answer(wanted.key)
        removed = Step(BRANCHES, 1, True, Fate.REMOVED, ())
        return Explanation(wanted.path, wanted.operator, runtime, options, (removed,), answer=answer)
    return _explained(session, only_node(wanted, found, nodes))


def _explained(session: OnnxSession, node: SessionNode) -> Explanation:
    model, runtime, options = session.model, session.runtime, session.options
    tracker = _Tracker(node)
    with watched(tracker):
        graphs = list(new_graphs(model, runtime, options))
        graph = graphs[node.graph]
        parts = session_graphs(graph)
    facts = facts_in(graph).get(node.index)
    answer = None
    if facts is not None:
        answer = session.answer(NodeKey(node.operator, node.path, node.number))
    place, part = None, None
    index = standing_for(graph).get(node.index, node.index)
    gone = bool(tracker.steps) and not tracker.steps[-1].nodes
    if not gone:
        part = next((_part(k, each) for k, each in enumerate(parts.parts) if index in each.members), None)
        provider = _provider(graph, index)
        known = None if provider == "DML" else _placement(session.placement, node)
        why, types = (None, ()) if known is None else (known.why, known.types)
        place = Placement(provider, _in_graph(part), why, types)
    beside = {node.path, *(() if part is None else part.nodes)}
    findings = [each for each in session.findings() if not beside.isdisjoint((each.path, each.node))]
    return Explanation(
        node.path,
        node.operator,
        runtime,
        options,
        tuple(tracker.steps),
        place,
        part,
        _submitted(index, answer, parts.parts) if not gone or answer is not None else (),
        answer,
        tuple(findings),
        session.placement.failure if session.placement.created is False else None,
        tuple([each for each in session.placement.diagnostics if each.location.node == node.path]),
    )


class _Tracker:
    """Notes what each pass leaves of a node."""

    def __init__(self, node: SessionNode) -> None:
        self._node = node
        self._last: tuple[NodeState, ...] | None = None
        self._doubts: set[Doubt] = set()
        self.steps: list[Step] = []

    def __call__(self, done: Pass | None, graph: Graph, made: bool) -> None:
        """Records what a pass left of the node; passes that are repeated are recorded again where they change it.
        Called before the first pass of a list, with `done` None, and after each pass; `made`: the pass was run."""
        facts = graph.facts
        if not isinstance(facts, SessionGraph) or not self._is_within(facts):
            return
        nodes = tuple(self._left(graph, facts))
        if self._last is None:
            self._last = nodes
        if done is not None:
            instead = () if nodes else self._instead(graph, facts)
            found = {doubt for node in graph.nodes if self._node.index in node.represented for doubt in node.doubts}
            doubts = tuple(sorted(doubt.value for doubt in found - self._doubts))
            self._doubts |= found
            fate = Fate.UNKNOWN if doubts and nodes == self._last else self._fate(graph, facts, nodes)
            step = Step(done.change.__name__, done.level, made, fate, nodes, instead, doubts)
            if fate is not Fate.UNCHANGED or all(each.name != step.name for each in self.steps):
                self.steps.append(step)
        self._last = nodes

    def _is_within(self, facts: SessionGraph) -> bool:
        index = self._node.index
        return index < len(facts.nodes) and facts.path(index) == self._node.path and self._is_same(facts)

    def _is_same(self, facts: SessionGraph) -> bool:
        return set(facts.nodes[self._node.index].proto.output) <= self._node.names

    def _left(self, graph: Graph, facts: SessionGraph) -> Iterator[NodeState]:
        for node in graph.nodes:
            if self._node.index in node.represented:
                inputs, outputs = ([value.name for value in values] for values in (node.inputs, node.outputs))
                of = [facts.path(index) for index in sorted(set(node.represented))]
                yield NodeState(node.op_type or node.proto.op_type, tuple(inputs), tuple(outputs), tuple(of))

    def _instead(self, graph: Graph, facts: SessionGraph) -> tuple[str, ...]:
        outputs = [name for name in facts.nodes[self._node.index].proto.output if name]
        return tuple([graph.source(name) for name in outputs if graph.source(name) != name])

    def _fate(self, graph: Graph, facts: SessionGraph, nodes: tuple[NodeState, ...]) -> Fate:
        if nodes == self._last:
            return Fate.UNCHANGED
        if not nodes:
            folded = graph.folded | facts.graph.folded
            return Fate.FOLDED if self._node.index in folded else Fate.REMOVED
        merged = self._last is not None and sum(len(n.of) for n in nodes) > sum(len(n.of) for n in self._last)
        return Fate.FUSED if merged and len(nodes) <= len(self._last or ()) else Fate.CHANGED


def _provider(graph: SessionGraph, index: int) -> str | None:
    on_dml = placed(graph, graph.nodes[index]).on_dml
    return None if on_dml is None else "DML" if on_dml else "CPU"


def _placement(found: SessionAnswer, node: SessionNode) -> NodePlacement | None:
    """Returns the placement of a node in the answer about its model; None if it is not there."""
    alike = [each for each in found.nodes.values() if each.path == node.path and each.op.endswith(node.operator)]
    return alike[node.number] if node.number < len(alike) else None


def _operator_name(number: int) -> str:
    """Returns the C name of a DML_OPERATOR_TYPE, "DML_OPERATOR_..."; "" for a number that no operator has."""
    found = known_operator(number)
    return "" if found is None else found.c_name


def _in_graph(part: FusedPart | None) -> bool | None:
    return False if part is None else True if part.known else None


def _part(index: int, part: Part) -> FusedPart:
    descs = part.variants[0].desc.nodes if part.is_known and part.variants else ()
    return FusedPart(index, part.paths, tuple([_operator_name(node_type(desc)) for desc in descs]), part.is_known)


def _submitted(index: int, answer: RuntimeAnswer | None, parts: Sequence[Part]) -> tuple[str, ...]:
    """Returns the names of the DirectML operators that the node with this index becomes, such as "DML_OPERATOR_GEMM":
    the operators of `answer`, or else, if the node is in a fused graph whose nodes are known (one of `parts`), the
    operators made from this node there; () if there is neither."""
    if answer is not None:
        return tuple([_operator_name(node_type(desc)) for desc in answer.operators])
    part = next((each for each in parts if index in each.members and each.is_known), None)
    if part is None or not part.variants:
        return ()
    at = {part.paths[k] for k, origins in enumerate(part.origins) if index in origins}
    graph = part.variants[0]
    pairs = zip(graph.paths, graph.desc.nodes, strict=True)
    return tuple([_operator_name(node_type(desc)) for path, desc in pairs if path in at])
