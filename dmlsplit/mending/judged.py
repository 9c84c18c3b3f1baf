"""The target's judgement of a model: the version of ONNX Runtime that represents the target, and the nodes that it
accepts."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar

import onnx

from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.descriptors.dims import Dim
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.formats.onnx import loading
from dmlsplit.formats.onnx.protobuf import Names
from dmlsplit.formats.onnx.tensors import ReadExternal
from dmlsplit.formats.sessions import Inputs
from dmlsplit.mending.editing import Replacement, names_of, replace_nodes
from dmlsplit.mending.sites import Bodies, Site, Sites, sites_of
from dmlsplit.mending.views import LEAST_RANK, View
from dmlsplit.mending.words import Change, Refusal, invalid
from dmlsplit.models import given
from dmlsplit.models.functions import check_references, recursive
from dmlsplit.models.graph import Node
from dmlsplit.models.inference import Inference
from dmlsplit.models.once import Once
from dmlsplit.models.places import Place, Spot
from dmlsplit.onnxruntime.answers import NodeOnRuntime
from dmlsplit.onnxruntime.creation import first_of
from dmlsplit.onnxruntime.findings import GraphFinding
from dmlsplit.onnxruntime.inferred_sizes import UninferredSize, uninferred_sizes
from dmlsplit.onnxruntime.node_faults import NodeFault, faults_in
from dmlsplit.onnxruntime.node_prediction import placement_by_facts
from dmlsplit.onnxruntime.older_opset import OlderOpset, different_at, older_opset, types_not_taken_at
from dmlsplit.onnxruntime.onnx_session import OnnxSession, OnnxSessions
from dmlsplit.onnxruntime.quantization_axes import OffAxis, off_axis
from dmlsplit.onnxruntime.quantized_faults import QuantizedFault, first_quantized_faults
from dmlsplit.onnxruntime.ranks import BeyondRank, all_beyond_rank
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.rules.graph_faults import Fault, NodeName
from dmlsplit.rules.onnxruntime import FAULTS, GRAPH_REFUSED
from dmlsplit.system.errors import InputError
from dmlsplit.targets.runtime_versions import NEWEST, Runtime, runtime_of_release, runtimes
from dmlsplit.targets.target import Target
from dmlsplit.verdicts.runtime_answers import Outcome
from dmlsplit.verdicts.validation import evaluate

ELSEWHERE: Final = "onnxruntime/session-fails-elsewhere"
SIZES: Final = "onnxruntime/sizes-unknown"
_OPEN: Final = (
    "sizes or element types are open; `dmlsplit check` judges the model with --shape and --dim, --free-dimension fixes "
    "sizes in the file"
)
_FAILING: Final = (Outcome.SESSION_FAILS, Outcome.RUN_FAILS)

F = TypeVar("F", bound=NodeFault | BeyondRank)


def session_of(target: Target) -> tuple[Runtime, bool]:
    """Returns the version of ONNX Runtime that represents a target, and True if a model for the target must run in it.

    A release is represented by the newest version that ships it. A level, and a release that no version ships, judge
    descriptors only; the newest version represents them.
    """
    runtime = target.runtime
    if runtime is None and target.release is not None:
        runtime = runtime_of_release(target.release)
    return (NEWEST, False) if runtime is None else (runtime, True)


def observed(runtime: Runtime) -> Runtime:
    """Returns `runtime` if the behaviour of its library was recorded, else the newest version whose library's behaviour
    was recorded."""
    return runtime if runtime.observed else next(other for other in runtimes() if other.observed)


class JudgedModel:
    """A model, its Splits and Concats, and the target's verdicts on them and on the graphs into which the nodes are
    fused.

    Its sessions compute all answers. `model` is not changed. Raises InputError if it is not a model.
    """

    def __init__(
        self, model: onnx.ModelProto, sessions: OnnxSessions, target: Target, read: onnx.ModelProto, shared: Once | None
    ) -> None:
        """Makes the JudgedModel of a model for a target; nothing is judged yet. `sessions` are those of the model, and
        `read` is the model that they read, with the sizes of free dimensions. `shared` keeps the sessions of changed
        models, shared by equal models for all targets; None keeps none."""
        self.model = model
        self.target = target
        self._sessions = sessions
        self._read = read
        self._shared = shared

    @classmethod
    def of(cls, model: onnx.ModelProto, target: Target, read_external: ReadExternal) -> JudgedModel:
        """Returns the JudgedModel of a model. `read_external` reads external data."""
        sessions = _sessions_of(_without_weights(model), read_external, None, None)
        return cls(model, sessions, target, sessions.proto, None)

    @classmethod
    def of_sessions(cls, sessions: OnnxSessions, target: Target) -> JudgedModel:
        """Returns the JudgedModel of the model of these sessions, which answer about it."""
        sizes = sessions.inputs.free_dimensions
        read = sessions.kept("filled", lambda: _filled(sessions.proto, sizes)) if sizes else sessions.proto
        return cls(read, sessions, target, read, sessions.kept)

    def _session(self, runtime: Runtime) -> OnnxSession:
        """Returns the session of a version with the target's options."""
        return self._sessions.of(runtime, self.target.session_options)

    @property
    def _closest(self) -> OnnxSession:
        """The session of the target's version of ONNX Runtime or, if its behaviour was never recorded, of the version
        that `observed` returns for it."""
        return self._session(observed(session_of(self.target)[0]))

    @property
    def sites(self) -> Sequence[Site]:
        """The Split and Concat nodes of the model, each at every call of the functions around it."""
        return self._sites.found

    @property
    def _sites(self) -> Sites:
        return self._sites_of(typed=False)

    @property
    def typed_sites(self) -> Sites:
        """All Split and Concat nodes, with scopes for all graphs; unlike in `sites`, types are inferred for all tensors
        even if no node needs it."""
        known = self._sites
        return known if known.typed else self._sites_of(typed=True)

    def _sites_of(self, *, typed: bool) -> Sites:
        sessions = self._sessions
        return sessions.kept(
            ("sites", typed),
            lambda: sites_of(self._read, sessions.read_external, sessions.inference, typed=typed),
        )

    @cached_property
    def bodies(self) -> Bodies:
        """The graphs and functions of the model, by their places."""
        return Bodies(self.model)

    @cached_property
    def names(self) -> Names:
        """The names of tensors and nodes in the model; code that changes the model adds the new names to this set."""
        return names_of(self.model)

    @cached_property
    def views(self) -> Sequence[View]:
        """The Split and Concat nodes of `sites`, in order, each with the target's answer; without one if the session
        lacks the node."""
        runtime, in_session = session_of(self.target)
        session = self._closest
        answers: dict[tuple[str, str], list[NodeOnRuntime]] = {}
        for found in reversed(session.nodes):
            answers.setdefault((found.op, found.path), []).append(found)
        views = []
        for site in self.sites:
            of_name = answers.get((site.node.op, site.path))
            if not of_name:
                views.append(View(site, self.target, runtime, in_session))
                continue
            answer = of_name.pop()
            # judged separately: the answer may be that session creation fails at another node
            placed = placement_by_facts(answer.facts, session.runtime, options=session.options).answer
            on_cpu = placed is not None and placed.outcome is Outcome.CPU
            views.append(View(site, self.target, runtime, in_session, answer.facts, answer.answer, on_cpu))
        return views

    @cached_property
    def older_opset(self) -> OlderOpset | None:
        """The older opset in which more nodes run on DirectML; None if there is none, or if the target is not a version
        of ONNX Runtime whose behaviour was recorded."""
        runtime = self.target.runtime
        if runtime is None or not runtime.observed:
            return None
        session = self._session(runtime)
        return older_opset(session.graphs, lambda: session.graphs_as_written)

    def different_at(self, opset: int) -> str:
        """Returns, as text, the first node with another meaning in the older opset `opset` than in the model's, and
        why; "" if every node means the same."""
        return different_at(self._closest.graphs_as_written, opset)

    def types_not_taken_at(self, opset: int) -> str:
        """Returns, as text, the first node with graphs inside whose operator, in opset `opset`, does not accept the
        types of the node's tensors, and why; "" if there is no such node."""
        return types_not_taken_at(self._closest.graphs_as_written, opset)

    def _placed(self, find: Callable[[Sequence[SessionGraph]], Iterable[F]]) -> Sequence[tuple[Spot | None, F]]:
        """Returns what `find` finds in the graphs of the target's session, each with its place in the model; () if the
        target is not a version of ONNX Runtime whose behaviour was recorded."""
        runtime = self.target.runtime
        if runtime is None or not runtime.observed:
            return ()
        found = find(self._session(runtime).graphs)
        return [(self._spot(each.graph.nodes[each.index].proto), each) for each in found]

    @cached_property
    def beyond_rank(self) -> Sequence[tuple[Spot | None, BeyondRank]]:
        """The nodes, other than Split and Concat, whose rank makes session creation fail, each with its place in the
        model (None if it is not known). Empty if the target is not a version of ONNX Runtime whose behaviour was
        recorded."""
        return self._placed(all_beyond_rank)

    @cached_property
    def quantized_faults(self) -> Sequence[tuple[Spot | None, QuantizedFault]]:
        """The nodes that are replaced with operators for quantized elements that make session creation fail, each with
        its place in the model (None if it is not known). Empty if the target is not a version of ONNX Runtime whose
        behaviour was recorded."""
        return self._placed(lambda graphs: faults_in(graphs, first_quantized_faults))

    @cached_property
    def off_axis(self) -> Sequence[tuple[Spot | None, OffAxis]]:
        """The quantizations that are not computed along their axis, each with its place in the model (None if it is not
        known). Empty if the target is not a version of ONNX Runtime whose behaviour was recorded."""
        return self._placed(lambda graphs: faults_in(graphs, off_axis))

    @cached_property
    def uninferred_sizes(self) -> Sequence[tuple[Spot | None, UninferredSize]]:
        """The Reshapes whose kernel does not infer a size, each with its place in the model (None if it is not known).
        Empty if the target is not a version of ONNX Runtime whose behaviour was recorded."""
        return self._placed(lambda graphs: faults_in(graphs, uninferred_sizes))

    @cached_property
    def failure(self) -> str:
        """The reason why the target creates no session of the model; "" if it creates one, may create one, or is not a
        version of ONNX Runtime."""
        runtime = self.target.runtime
        first = None if runtime is None else self._session(runtime).failure
        if first is None:
            return ""
        return f"the session fails at {first.node}: {first.why}" if first.node else first.why

    def failure_but_of(self, rules: Container[str]) -> str:
        """Returns the reason why the session that represents the target is not created, leaving out failures for which
        `rules` has the id of a node's diagnostic; "" if there is no other."""
        first = first_of(each for each in self._closest.failures if each.rule not in rules)
        return "" if first is None else first.why

    @cached_property
    def findings(self) -> Sequence[GraphFinding]:
        """The findings about the DirectML graphs of the session; none if the target has no runtime with such graphs."""
        runtime = self.target.graph_runtime
        return () if runtime is None else self._session(runtime).findings(affected=False)

    @property
    def not_loaded(self) -> Sequence[str]:
        """The reasons why the runtime does not load the model, regardless of its nodes; none if the target's models
        need not run in a runtime."""
        refused = self._closest.model.refused
        return refused if session_of(self.target)[1] else ()

    @cached_property
    def spots(self) -> Mapping[str, Sequence[Spot]]:
        """Maps the path of a node in a finding to the places of the model's nodes to which the path may refer: findings
        are about a model whose functions are inlined."""
        runtime = self.target.graph_runtime
        assert runtime is not None
        found: dict[str, list[Spot]] = {}
        seen: set[tuple[str, Spot]] = set()
        for path, node in self._session(runtime).paths():
            spot = self._spot(node)
            if spot is not None and (path, spot) not in seen:
                seen.add((path, spot))
                found.setdefault(path, []).append(spot)
        return found

    def _spot(self, node: onnx.NodeProto) -> Spot | None:
        """Returns the place in the model of a node of a session's graph; None for one that the model lacks."""
        number = node.doc_string
        return self._sessions.spots[int(number)] if number.isdecimal() else None

    @cached_property
    def twins(self) -> Mapping[Spot, Sequence[tuple[Spot, str]]]:
        """Maps the place of each node that the session merges with equal nodes to the places and paths of all of these
        nodes."""
        runtime = self.target.graph_runtime
        assert runtime is not None
        found: dict[Spot, Sequence[tuple[Spot, str]]] = {}
        for graph in self._session(runtime).graphs:
            alike: dict[Node, list[tuple[Spot, str]]] = {}
            for index, node in enumerate(graph.nodes):
                kept, spot = graph.graph.kept(node), self._spot(node.proto)
                if kept.op_type == node.op_type and spot is not None:
                    alike.setdefault(kept, []).append((spot, graph.path(index)))
            for spots in alike.values():
                if len(spots) > 1:
                    found |= dict.fromkeys([spot for spot, _ in spots], spots)
        return found

    def release(self) -> None:
        """Frees the sessions, which are large; they are created again when needed."""
        self._sessions.release()

    def changed(self, model: onnx.ModelProto) -> JudgedModel:
        """Returns the JudgedModel of a changed model for the same target."""
        read, sessions = _without_weights(model), self._sessions

        def made() -> OnnxSessions:
            return _sessions_of(read, sessions.read_external, sessions.inference, sessions.inputs)

        shared = self._shared
        own = made() if shared is None else shared(read.SerializeToString(deterministic=True), made)
        return JudgedModel(model, own, self.target, own.proto, shared)

    def with_nodes(self, replaced: Mapping[Place, Replacement]) -> JudgedModel:
        """Returns the JudgedModel of the model with other nodes: each graph's mapping gives the nodes that replace a
        node, by its index."""
        model = deepcopy(self.model)
        replace_nodes(model, replaced)
        return self.changed(model)


@dataclass(eq=False, repr=False)
class Step:
    """A model after a step of mending, or several, judged again; and the changes."""

    judged: JudgedModel
    changes: list[Change] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    """What no change helps, and why."""
    left: list[Refusal] = field(default_factory=list)
    """What stays slow although the target accepts it, and why."""
    unknown: list[Refusal] = field(default_factory=list)
    """Nodes with unknown facts that a judgement needs."""

    def take(
        self, edits: Mapping[Place, Replacement], changes: Sequence[Change], refusals: Sequence[Refusal] = ()
    ) -> None:
        """Adds the refusals; if there are none, replaces nodes of the model by `edits` (as for `with_nodes`), which
        `changes` describe."""
        self.refusals += refusals
        if edits and not refusals:
            self.judged = self.judged.with_nodes(edits)
            self.changes += changes


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy of the model without weights. Raises InputError if it is not a model."""
    copy = Once()("read", lambda: loading.without_weights(model))
    check_references(copy)
    if name := recursive(copy, copy.graph.node):
        raise InputError(f"{name} calls itself")
    return copy


def _sessions_of(
    read: onnx.ModelProto, read_external: ReadExternal, inference: Inference | None, inputs: Inputs | None
) -> OnnxSessions:
    """Returns the sessions of a model without weights, whose inputs may lack names that `inputs` has."""
    return OnnxSessions(read, read_external, inputs, require_known_names=False, inference=inference)


def _filled(model: onnx.ModelProto, sizes: Mapping[str, int]) -> onnx.ModelProto:
    """Returns a copy of the model in which symbols are replaced with these sizes."""
    copy = deepcopy(model)
    given.fill_in(copy, {}, sizes, False)
    return copy


def failing_elsewhere(judged: JudgedModel) -> str:
    """Returns the reason why the session fails although it accepts every Split and Concat; "" if it does not fail or
    refuses one of them."""
    views = judged.views
    passed = _passed_over(judged.target)
    if any(view.found(rule) for view in views for rule in passed - {ELSEWHERE}):
        return ""
    if any(view.in_session and view.answer is not None and view.answer.outcome in _FAILING for view in views):
        return judged.failure_but_of(passed)
    return ""


def _passed_over(target: Target) -> set[str]:
    """Returns the ids of the rules whose diagnostics in a node's answer are not about the node itself: another node
    fails or, if the target is not a version of ONNX Runtime, its graph is refused, which `findings` judges."""
    return {ELSEWHERE} if target.runtime is not None else {ELSEWHERE, GRAPH_REFUSED.id}


def wrong_graphs(views: Sequence[View]) -> list[GraphFinding]:
    """Returns a finding for each fault of a DirectML graph that a node's own answer reports."""
    found = []
    for view in views:
        if not view.in_session or view.answer is None:
            continue
        for each in view.answer.diagnostics:
            if each.rule in FAULTS and each.rule not in _passed_over(view.target):
                fault = Fault(FAULTS[each.rule][0], NodeName(view.node.op, view.site.path))
                found.append(GraphFinding(fault, view.site.path, view.runtime.directml, said=each))
    return found


def faults(view: View) -> Iterator[str]:
    """Yields the reasons why the target refuses a node; none if the target accepts the node, or if too little is known
    about the node."""
    node = view.node
    if not node.report.ok:
        yield invalid(node)
        return
    if view.in_session and view.answer is not None and view.answer.outcome in _FAILING:
        errors = [each for each in view.answer.diagnostics if each.severity is Severity.ERROR]
        yield from (each.message for each in errors if each.rule not in _passed_over(view.target))
    if view.on_cpu:
        return
    desc = submitted_descriptor(node, without_empty=view.is_left_empty)
    if desc is not None:
        yield from _refusals(desc, view.target)


def doubts(views: Sequence[View]) -> Iterator[Refusal]:
    """Yields, with the reason, each node that the target may accept or refuse because too little is known about it."""
    for view in views:
        reason = "" if view.on_cpu or not view.node.report.ok else _doubt(view)
        if reason:
            yield Refusal(view.site.path, reason)


def _doubt(view: View) -> str:
    """Returns why the target's answer about a node is not known, as text; "" if it is known."""
    answer = view.answer
    if not view.in_session or answer is None:
        return "" if view.node.obstacle() is None else _OPEN
    if answer.outcome is not Outcome.UNKNOWN:
        return ""
    warnings = [each for each in answer.diagnostics if each.severity is Severity.WARNING]
    return warnings[0].message if warnings and warnings[0].rule != SIZES else _OPEN


@lru_cache(maxsize=1024)
def _refusals(desc: OperatorDesc, target: Target) -> Sequence[str]:
    """Returns the messages of the target's errors about a descriptor, none if it accepts it. Cached: a model's nodes
    have few different descriptors."""
    return tuple([diagnostic.message for diagnostic in evaluate(desc, target).errors])


def submitted_descriptor(node: SplitNode | JoinNode, *, without_empty: bool = False) -> OperatorDesc | None:
    """Returns the descriptor, of at least four dimensions, that ONNX Runtime submits for a node; None if shapes or
    types are unknown.

    If `without_empty`, parts without elements are left out; None if no part is left.
    """
    if node.obstacle() is not None or node.element is None or node.axis is None:
        return None
    desc = node.descriptor()
    lengths = _numbers(node.lengths)
    tensor = desc.input_tensor if isinstance(desc, SplitOperatorDesc) else desc.output_tensor
    assert tensor is not None
    assert tensor.desc is not None
    sizes = tuple(tensor.desc.sizes or ())
    if without_empty:
        lengths = tuple(filter(None, lengths))
        if 0 in sizes:
            return None
    missing = max(LEAST_RANK - len(sizes), 0)
    whole = BufferTensorDesc(tensor.desc.data_type, (1,) * missing + sizes)
    kind: Any = SplitOperatorDesc if isinstance(desc, SplitOperatorDesc) else JoinOperatorDesc
    found: OperatorDesc = kind.from_lengths(whole, node.axis + missing, lengths)
    return found


def _numbers(sizes: Sequence[Dim] | None) -> tuple[int, ...]:
    return tuple([size for size in sizes or () if isinstance(size, int)])
