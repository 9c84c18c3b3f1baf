"""A model in sessions of ONNX Runtime: read once, with answers for every version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import onnx

from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.limits import Budget, Limit
from dmlsplit.formats.nodes import OtherNode, SplitNode
from dmlsplit.formats.onnx.protobuf import all_nodes
from dmlsplit.formats.onnx.tensors import ReadExternal
from dmlsplit.formats.sessions import Inputs, InSession, NodeKey
from dmlsplit.models import given, shadowing
from dmlsplit.models.functions import check_references
from dmlsplit.models.inference import Inference
from dmlsplit.models.once import Once
from dmlsplit.models.scope import opset_of
from dmlsplit.onnxruntime.answers import Answers, NodeOnRuntime, answers
from dmlsplit.onnxruntime.arity import check_arity
from dmlsplit.onnxruntime.branches import Taken, without_branches
from dmlsplit.onnxruntime.creation import LOADING, Failure
from dmlsplit.onnxruntime.imports import not_loaded
from dmlsplit.onnxruntime.inlining import inlined, with_overloads_as_read
from dmlsplit.onnxruntime.predict import INIT, diagnostic
from dmlsplit.onnxruntime.scopes import ALL_KNOWN, Habits, SessionModel
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.errors import NotLoadedError
from dmlsplit.system.printable import printable
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.runtime_answers import Outcome, RuntimeAnswer

if TYPE_CHECKING:  # the graphs are made of what is in this package
    from dmlsplit.onnxruntime.findings import GraphFinding
    from dmlsplit.verdicts.model_placements import SessionAnswer


class OnnxSession:
    """A model without weights (loading.without_weights), which is not changed.

    `inputs` are the facts about its inputs for questions that give none; a name in them that the model lacks is an
    error only where `require_known_names`. `inference` is the file's; all its models share its time.
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        read_external: ReadExternal,
        inputs: Inputs | None = None,
        *,
        require_known_names: bool = True,
        inference: Inference | None = None,
    ) -> None:
        self._proto = proto
        self._inference = inference or Inference()
        self._read_external = read_external
        self._inputs = inputs or Inputs()
        self._require_known_names = require_known_names
        bodies = [proto.graph.node, *(function.node for function in proto.functions)]
        nodes = [node for body in bodies for node in all_nodes(body)]
        self._operators = {node.op_type for node in nodes}
        # without functions there are no overloads
        self._has_overloads = bool(proto.functions) and any(each.overload for each in (*proto.functions, *nodes))
        self._once = Once()
        self.judged: list[NodeKey] = []
        """The Splits and Concats that were read, in the order of the file."""

    def nodes(self, runtime: Runtime, options: SessionOptions, inputs: Inputs | None = None) -> Sequence[NodeOnRuntime]:
        """The answers for every Split and Concat, in order; those of functions at each call.

        Raises InputError for what contradicts the model, or does not exist in it.
        """
        return tuple(self._placed(runtime, options, inputs).values())

    def answer(self, place: NodeKey, runtime: Runtime, options: SessionOptions, inputs: Inputs | None) -> RuntimeAnswer:
        """The answer for one node."""
        try:
            found = self._placed(runtime, options, inputs).get(place)
        except NotLoadedError as error:
            note = diagnostic("onnxruntime/session-fails-elsewhere", place.path, error.message)
            return RuntimeAnswer(runtime, Outcome.SESSION_FAILS, INIT, diagnostics=(note,))
        if found is not None:
            return found.answer
        if self.is_removed(place.path, runtime, options, inputs):
            note = diagnostic("onnxruntime/branch-not-taken", place.path, "it is in a branch that is never taken")
            return RuntimeAnswer(runtime, Outcome.CPU, "init", diagnostics=(note,))
        # an answer needs more: the model has no opset, or the node no inputs or element type
        note = diagnostic("onnxruntime/context-unknown", place.path, "the model says too little of the node")
        return RuntimeAnswer(runtime, Outcome.UNKNOWN, diagnostics=(note,))

    def is_removed(self, path: str, runtime: Runtime, options: SessionOptions, inputs: Inputs | None = None) -> bool:
        """True for the path of a node in a branch that an If never takes."""
        removed = self._model_of(runtime, options, inputs).removed
        return bool(removed) and any(path[:length] in removed for length in _ends_of_graphs(path))

    def in_session_of(self, runtime: Runtime, options: SessionOptions) -> SessionModel:
        """The model as a session reads it: functions are inlined, and constant Ifs replaced by their branches."""
        return self._model_of(runtime, options, None)

    def graph_diagnostics(self, place: NodeKey, runtime: Runtime, options: SessionOptions) -> tuple[Diagnostic, ...]:
        """The faults of the DirectML graphs that are reported on this node, a Split or Concat. Of several nodes with
        one path the first gets them; the first node of all gets those of other nodes, too.

        Raises InputError for a contradiction to the model.
        """
        if place.number > 0:
            return ()
        paths = self._by_path(runtime, options)
        elsewhere = self._elsewhere(runtime, options) if place == next(iter(self.judged), None) else ()
        return (*paths.get(place.path, ()), *elsewhere)

    def model_diagnostics(self, runtime: Runtime, options: SessionOptions) -> tuple[Diagnostic, ...]:
        """The faults of the DirectML graphs of a model without a Split or Concat; none for any other model.

        Raises InputError for a contradiction to the model.
        """
        return () if self.judged else self._elsewhere(runtime, options)

    def _elsewhere(self, runtime: Runtime, options: SessionOptions) -> tuple[Diagnostic, ...]:
        """The faults on nodes other than Splits and Concats."""
        known = {place.path for place in self.judged}
        paths = self._by_path(runtime, options)
        return tuple([each for path, found in paths.items() if path not in known for each in found])

    def _by_path(self, runtime: Runtime, options: SessionOptions) -> Mapping[str, tuple[Diagnostic, ...]]:
        from dmlsplit.onnxruntime.findings import by_path

        return self._once(("by path", runtime, options), lambda: by_path(self.findings(runtime, options)))

    def findings(
        self, runtime: Runtime, options: SessionOptions, *, complete: bool = False
    ) -> tuple[GraphFinding, ...]:
        """The faults of the DirectML graphs of the model, each with its cure; `complete` as in findings.findings."""
        from dmlsplit.onnxruntime.findings import findings

        model, key = self._model_of(runtime, options, None), ("findings", runtime, options, complete)
        return model.once(key, lambda: findings(model, runtime, options, complete=complete))

    def graphs(self, runtime: Runtime, options: SessionOptions, inputs: Inputs | None = None) -> list[SessionGraph]:
        """The graphs of the model, each after the graphs inside its nodes."""
        return SessionGraph.of_model(self._model_of(runtime, options, inputs), runtime, options)

    def paths(self, runtime: Runtime, options: SessionOptions) -> Iterator[tuple[str, onnx.NodeProto]]:
        """Yields the nodes of all graphs with their paths in findings."""
        for graph in self.graphs(runtime, options):
            yield from ((graph.path(node.index), node.proto) for node in graph.nodes)

    def _placed(self, runtime: Runtime, options: SessionOptions, inputs: Inputs | None) -> dict[NodeKey, NodeOnRuntime]:
        model = self._model_of(runtime, options, inputs)
        return model.once(("by place", runtime, options), lambda: _places(self._answers(model, runtime, options).nodes))

    @staticmethod
    def _answers(model: SessionModel, runtime: Runtime, options: SessionOptions) -> Answers:
        return model.once(("answers", runtime, options), lambda: answers(model, runtime, options))

    def placement(self, runtime: Runtime, options: SessionOptions, inputs: Inputs | None = None) -> SessionAnswer:
        """Where every node of the model goes, and what follows of it.

        Raises InputError for what contradicts the model, or does not exist in it.
        """
        from dmlsplit.onnxruntime.described import operators_of, refusals
        from dmlsplit.onnxruntime.model_findings import model_findings

        model = self._model_of(runtime, options, inputs)
        graphs = SessionGraph.of_model(model, runtime, options)

        def whole() -> Sequence[SessionGraph]:
            return self.graphs(runtime, replace(options, optimization=0), inputs)

        def made() -> SessionAnswer:
            found = self.places(runtime, options, inputs)
            operators = operators_of(graphs) if found.nodes else ()
            said = (*refusals(operators, runtime), *model_findings(found, graphs, whole))
            return replace(found, diagnostics=said, operators=operators)

        return model.once(("placement", runtime, options), made)

    def places(self, runtime: Runtime, options: SessionOptions, inputs: Inputs | None = None) -> SessionAnswer:
        """Where every node of the model goes, without diagnostics and operators. Raises as `placement` does."""
        from dmlsplit.onnxruntime.placements import placement

        model = self._model_of(runtime, options, inputs)

        def made() -> SessionAnswer:
            failures = [*self._not_loaded(runtime), *self._answers(model, runtime, options).failures]
            return placement(SessionGraph.of_model(model, runtime, options), failures)

        return model.once(("places", runtime, options), made)

    def _not_loaded(self, runtime: Runtime) -> Iterator[Failure]:
        """The reason why a version does not load the file, whatever nodes it has."""
        if runtime.no_session:
            yield Failure(LOADING, runtime.no_session)
        if not runtime.observed:
            yield Failure(LOADING, f"what {runtime.version} does was not observed", certain=False)
        opset, ir_version = opset_of(self._proto), self._proto.ir_version
        if opset > runtime.newest_opset:
            yield Failure(LOADING, f"the model has opset {opset}, {runtime.version} loads {runtime.newest_opset}")
        if ir_version > runtime.newest_ir_version:
            newest = runtime.newest_ir_version
            yield Failure(LOADING, f"the model has IR version {ir_version}, {runtime.version} loads {newest}")

    def _model_of(self, runtime: Runtime, options: SessionOptions, inputs: Inputs | None) -> SessionModel:
        traits = runtime.traits
        habits = Habits(options.optimization >= 1, traits.reads_overloads, traits.uninferred)
        return self.model(self._inputs if inputs is None else inputs, inputs is not None, habits)

    def model(self, inputs: Inputs, require_known_names: bool = True, habits: Habits = ALL_KNOWN) -> SessionModel:
        """The model for sessions with these inputs and habits. InputError for inputs that contradict the model or
        are not in it."""
        require = require_known_names or self._require_known_names
        # habits that do not change the model share one entry
        optimized, overloads, uninferred = habits
        known = Habits(optimized, overloads or not self._has_overloads, uninferred & self._operators)
        return self._once(("model", inputs.key, require, known), lambda: self._made(inputs, require, known))

    def _made(self, inputs: Inputs, require_known_names: bool, habits: Habits) -> SessionModel:
        check_references(self._proto)
        budget = Budget(self._proto.ByteSize())
        read = with_overloads_as_read(self._proto, habits.overloads) if self._has_overloads else self._proto
        proto, written = inlined(read, budget)
        check_arity(proto)
        shadowing.check_names(proto.graph)
        if inputs.free_dimensions:
            proto = deepcopy(proto)
            given.fill_in(proto, {}, inputs.free_dimensions, require_known_names)
        again = shadowing.computed_again(proto.graph)
        refused = [
            f"{printable(name, 60)} is computed in a graph of a node, and known before it: the model is not loaded"
            for name in again
        ]
        taken = Taken(list(written))

        def made() -> SessionModel:
            written, read = taken.written, self._read_external
            return SessionModel(proto, written, read, budget, inputs, require_known_names, habits, self._inference)

        model = made()
        while habits.optimized and (left := without_branches(proto, model.session, taken, budget)) is not None:
            budget.spend(Limit.ONNX_TAKEN)
            proto = left
            model = made()
        model.removed = frozenset(taken.removed)
        model.of_branches = frozenset(taken.tensors)
        model.refused = (*refused, *not_loaded(read))
        return model


def _ends_of_graphs(path: str) -> Iterator[int]:
    """Yields the lengths of the paths of graphs that a node of this path may be in."""
    return (i for i, character in enumerate(path[: Limit.ONNX_PATH.most + 1]) if character == "/")


def _places(nodes: Sequence[NodeOnRuntime]) -> dict[NodeKey, NodeOnRuntime]:
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for node in nodes:
        found[NodeKey(node.op, node.path, seen[node.op, node.path])] = node
        seen[node.op, node.path] += 1
    return found


Item: TypeAlias = SplitNode | JoinNode | OtherNode


def in_session(session: OnnxSession, items: Iterable[Item]) -> Iterator[Item]:
    """Yields the nodes of a model, each with its place in the session."""
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        if isinstance(item, OtherNode):
            yield item
            continue
        key = item.op, item.path
        session.judged.append(NodeKey(*key, seen[key]))
        yield replace(item, in_session=InSession(session, session.judged[-1]))
        seen[key] += 1
