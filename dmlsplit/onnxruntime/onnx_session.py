"""A model in sessions of ONNX Runtime: read once, with answers for every version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import onnx

from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.limits import Budget, Limit
from dmlsplit.formats.nodes import OtherNode, SplitNode
from dmlsplit.formats.onnx.protobuf import DEFAULT_DOMAINS, all_nodes, domain_of
from dmlsplit.formats.onnx.tensors import ReadExternal
from dmlsplit.formats.sessions import Advise, Inputs, InSession, NodeKey
from dmlsplit.models import given, shadowing
from dmlsplit.models.functions import JUDGED, recursive
from dmlsplit.models.inference import OF_WEIGHTS, Fault, Inference
from dmlsplit.models.once import Once
from dmlsplit.models.onnx_nodes import path_of_only
from dmlsplit.models.places import Spot, numbered
from dmlsplit.models.scope import opset_of
from dmlsplit.onnxruntime import contributed_checks
from dmlsplit.onnxruntime.answers import Answers, NodeOnRuntime, answers
from dmlsplit.onnxruntime.branches import Taken, without_branches
from dmlsplit.onnxruntime.contributed_checks import NotLoaded, is_contributed
from dmlsplit.onnxruntime.creation import LOADING, Failure, first_of
from dmlsplit.onnxruntime.function_inlining import FunctionInlining, NodeOfGraph, places_of, without_kernel
from dmlsplit.onnxruntime.graphs_of_model import graphs_of_model, release
from dmlsplit.onnxruntime.imports import not_loaded, not_loaded_if_checked, read_around_calls
from dmlsplit.onnxruntime.inlining import Place, in_order, inlined, with_overloads_as_read
from dmlsplit.onnxruntime.node_prediction import INIT, diagnostic
from dmlsplit.onnxruntime.operators import operator_named
from dmlsplit.onnxruntime.schema_checks import check_nodes
from dmlsplit.onnxruntime.scopes import ALL_KNOWN, Habits, SessionModel
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.onnxruntime.type_checks import check_types
from dmlsplit.system.errors import NotLoadedError
from dmlsplit.system.printable import printable
from dmlsplit.system.records import entity
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions
from dmlsplit.verdicts.runtime_answers import Outcome, RuntimeAnswer

if TYPE_CHECKING:  # these modules import this package
    from dmlsplit.graphs.execution import Correctness
    from dmlsplit.onnxruntime.findings import GraphFinding
    from dmlsplit.verdicts.model_placements import SessionAnswer


T = TypeVar("T")


class OnnxSessions:
    """A model without weights (loading.without_weights), in sessions of all versions. Only the doc_strings of its nodes
    are changed: they become the nodes' numbers (places.numbered).

    Its references are checked (functions.check_references).

    `inputs` are the facts about its inputs for sessions that are given none; a name in them that the model lacks is an
    error only if `require_known_names`. `inference` is the file's; all its models share its time limit.
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
        self.proto = proto
        self.spots: list[Spot] = []
        """The places of the nodes, by their numbers."""
        operators = set()
        for spot, node in numbered(proto):
            self.spots.append(spot)
            operators.add((node.domain, node.op_type))
        self.inference = inference or Inference()
        self.read_external = read_external
        self.inputs = inputs or Inputs()
        self._require_known_names = require_known_names
        bodies = [proto.graph.node, *(function.node for function in proto.functions)]
        self._kinds = {("" if domain in DEFAULT_DOMAINS else domain, op_type) for domain, op_type in operators}
        self._operators = {op_type for _, op_type in self._kinds}
        # without functions there are no overloads
        self._has_overloads = bool(proto.functions) and any(
            each.overload for each in (*proto.functions, *(node for body in bodies for node in all_nodes(body)))
        )
        self._once = Once()
        self.kept = Once()
        """Values that other modules compute from the model, equal for all versions."""
        self.judged: list[NodeKey] = []
        """The Splits and Concats that were read, in the order of the file."""
        self.spent_on_advice = 0
        """The nodes of changed models that were judged for advice, for all targets."""

    def of(self, runtime: Runtime, options: SessionOptions = DEFAULTS, inputs: Inputs | None = None) -> OnnxSession:
        """Returns the session of a version; `inputs` are those of its first Run, None for the facts given when the
        model was read. The session's methods raise InputError for facts that contradict the model or name something
        that it lacks."""
        key = "session", runtime, options, None if inputs is None else inputs.key
        return self._once(key, lambda: OnnxSession(self, runtime, options, inputs))

    def release(self) -> None:
        """Frees the sessions created so far, which are large; they are created again when needed."""
        for made in (*self._once.values(), *self.kept.values()):
            if isinstance(made, SessionModel):
                release(made)
            elif isinstance(made, OnnxSessions):
                made.release()
        self._once, self.kept = Once(), Once()

    def model(self, inputs: Inputs | None, habits: Habits = ALL_KNOWN) -> SessionModel:
        """Returns the model in the form that sessions with these inputs (None: the inputs with which it was read) and
        habits read; habits decide how functions and sizes are read. Raises InputError for inputs that contradict the
        model or are not in it."""
        require = inputs is not None or self._require_known_names
        known = self.inputs if inputs is None else inputs
        # habits that do not change the model share one entry
        optimized, overloads, uninferred, runtime = habits
        same = Habits(optimized, overloads or not self._has_overloads, uninferred & self._operators)
        key: object = known.key, require, same
        if runtime is None or not self._inlines(runtime):
            return self._once(("model", key), lambda: self._finished(self._read(known, require, same)))
        read = self._once(("read", key), lambda: self._read(known, require, same))
        while replaced := frozenset(without_kernel(read.model.session, runtime)):
            further = self._once(("read", key, replaced), partial(self._with_bodies, read, replaced))
            if further is None:
                break
            read, key = further, (key, replaced)
        return self._once(("model", key), lambda: self._finished(read))

    def _inlines(self, runtime: Runtime) -> bool:
        """True if, before optimization, a version may replace nodes that are not calls with the nodes of functions."""
        if not self.proto.functions:
            return False
        opset = opset_of(self.proto)
        rows = (operator_named(*kind, opset, runtime) for kind in self._kinds)
        return any(row is not None and row.may_be_expanded(opset) for row in rows)

    def _read(self, inputs: Inputs, require_known_names: bool, habits: Habits) -> _Read:
        """Returns the model with its functions inlined."""
        budget = Budget(self.proto.ByteSize())
        file = with_overloads_as_read(self.proto, habits.overloads) if self._has_overloads else self.proto
        proto, written = inlined(file, budget)
        check_nodes(proto)
        shadowing.check_names(proto.graph)
        if inputs.free_dimensions:
            proto = deepcopy(proto)
            given.fill_in(proto, {}, inputs.free_dimensions, require_known_names)
        again = shadowing.computed_again(proto.graph)
        refused = [
            f"{printable(name, 60)} is computed in a subgraph of a node, but exists before it: the model is not loaded"
            for name in again
        ]

        def made(proto: onnx.ModelProto, written: Sequence[str], budget: Budget) -> SessionModel:
            return SessionModel(
                proto, written, self.read_external, budget, inputs, require_known_names, habits, self.inference
            )

        model = made(proto, in_order(written), budget)
        if (fault := model.fault) is not None and fault.operator not in JUDGED:  # these have rules of their own
            raise NotLoadedError(_as_text(fault), node=path_of_only(proto.graph, fault.operator, fault.name))
        check_types(model.session)
        opset = opset_of(self.proto)
        has_contributed = any(is_contributed(*kind, opset) for kind in self._kinds)
        not_loaded_by = tuple(contributed_checks.not_loaded(model.session)) if has_contributed else ()
        refused += not_loaded(file)
        return _Read(file, proto, written, model, budget.copy(), made, tuple(refused), not_loaded_by, habits.optimized)

    def _with_bodies(self, read: _Read, replaced: Container[NodeOfGraph]) -> _Read | None:
        """Returns the model with nodes replaced with the nodes of their functions; None if these are not known."""
        budget, written = read.budget.copy(), dict(read.written)
        inlining = FunctionInlining(replaced, self.inference, budget, written, places_of(read.file))
        proto = inlining.inlined(read.proto, read.model.session)
        if proto is None:
            return None
        model = read.made(proto, in_order(written), budget)
        model.new_fault = read.model.new_fault
        return replace(read, proto=proto, written=written, model=model, budget=budget.copy())

    def _finished(self, read: _Read) -> SessionModel:
        """Returns the model with the branches that are always taken in the places of their Ifs."""
        proto, model, budget, taken = read.proto, read.model, read.budget.copy(), Taken(in_order(read.written))
        while read.takes_branches and (left := without_branches(proto, model.session, taken, budget)) is not None:
            budget.spend(Limit.ONNX_TAKEN)
            proto = left
            model = read.made(proto, taken.written, budget)
        model.removed = frozenset(taken.removed)
        model.branches = taken.branches
        model.refused, model.not_loaded_by, model.new_fault = read.refused, read.not_loaded_by, read.model.new_fault
        return model


@entity
class _Read:
    """A model whose functions are inlined, before branches that are always taken replace their Ifs."""

    file: onnx.ModelProto
    """The model with its functions."""
    proto: onnx.ModelProto
    written: dict[str, Place]
    """The names that nodes of functions write, each with the place of its node."""
    model: SessionModel
    budget: Budget
    """What is left for the next steps."""
    made: Callable[[onnx.ModelProto, Sequence[str], Budget], SessionModel]
    """Makes the SessionModel of a further step."""
    refused: tuple[str, ...]
    not_loaded_by: Sequence[NotLoaded]
    takes_branches: bool


_MOST_TRIED: Final = 2_000
"""The most nodes of changed models that are judged before a trial."""
_OLDER: Final = "use a newer ONNX Runtime, or convert the model with dmlsplit legalize"


class OnnxSession:
    """A model in a session of one version: each answer is computed once, from the graphs of the session.

    All methods raise InputError for inputs that contradict the model, or do not exist in it.
    """

    def __init__(
        self, sessions: OnnxSessions, runtime: Runtime, options: SessionOptions, inputs: Inputs | None
    ) -> None:
        self._sessions = sessions
        self.runtime = runtime
        self.options = options
        self._inputs = inputs
        self._once = Once()

    @property
    def model(self) -> SessionModel:
        """The model as the session reads it: functions are inlined, and constant Ifs replaced with their branches."""
        traits = self.runtime.traits
        habits = Habits(self.options.optimization >= 1, traits.reads_overloads, traits.uninferred, self.runtime)
        return self._once("model", lambda: self._sessions.model(self._inputs, habits))

    @property
    def graphs(self) -> list[SessionGraph]:
        """The graphs of the model, each after the graphs inside its nodes."""
        return graphs_of_model(self.model, self.runtime, self.options)

    @property
    def graphs_as_written(self) -> Sequence[SessionGraph]:
        """Graphs with every node of the model as it is in the file: those of the session or, if branches took the
        places of Ifs or a pass before placement fused nodes, those of the session without optimization."""
        graphs = self.graphs
        if not self.model.branches.ifs and not any(graph.graph.replaced for graph in graphs):
            return graphs
        return self._sessions.of(self.runtime, replace(self.options, optimization=0), self._inputs).graphs

    @property
    def nodes(self) -> Sequence[NodeOnRuntime]:
        """The answers about every Split and Concat, in order; those of functions at each call."""
        return self._answers.nodes

    def answer(self, place: NodeKey) -> RuntimeAnswer:
        """Returns the answer about the Split or Concat with this key: the one about its node; or that the model is not
        loaded, that the node is in a branch that is never taken, or unknown if too little is known about it."""
        try:
            found = self._once("by place", lambda: _places(self.nodes)).get(place)
        except NotLoadedError as error:
            note = diagnostic("onnxruntime/session-fails-elsewhere", place.path, error.message)
            return RuntimeAnswer(self.runtime, Outcome.SESSION_FAILS, INIT, diagnostics=(note,))
        if found is not None:
            return found.answer
        if self.is_removed(place.path):
            note = diagnostic("onnxruntime/branch-not-taken", place.path, "it is in a branch that is never taken")
            return RuntimeAnswer(self.runtime, Outcome.CPU, "init", diagnostics=(note,))
        # an answer requires more: the model has no opset, or the node no inputs or element type
        note = diagnostic("onnxruntime/context-unknown", place.path, "the model does not determine enough of the node")
        return RuntimeAnswer(self.runtime, Outcome.UNKNOWN, diagnostics=(note,))

    def is_removed(self, path: str) -> bool:
        """True for the path of a node in a branch that an If never takes."""
        removed = self.model.removed
        return bool(removed) and any(path[:length] in removed for length in _ends_of_graphs(path))

    def graph_diagnostics(self, place: NodeKey | None, advise: Advise | None = None) -> tuple[Diagnostic, ...]:
        """Returns the faults of the DirectML graphs that are reported at this Split or Concat; `advise` adds advice,
        and is called once for all faults. If several nodes have one path, the first gets them; the model's first Split
        or Concat also gets the faults of other nodes."""
        from dmlsplit.onnxruntime.findings import by_path

        def made() -> Mapping[str, tuple[Diagnostic, ...]]:
            found = self.findings()
            if advise is not None and any(each.fault is not None for each in found):
                found = tuple(advise(found))
            paths = by_path(found).items()
            return {path: tuple(dict.fromkeys(each.diagnostic for each in at)) for path, at in paths}

        return tuple(self._reported(place, self._once(("diagnostics", advise is None), made)))

    def graph_correctness(self, place: NodeKey) -> Correctness:
        """Returns the correctness of the graphs whose faults `graph_diagnostics` returns, without their sentences."""
        from dmlsplit.onnxruntime.findings import by_path

        paths = self._once("findings by path", lambda: by_path(self.findings(affected=False)))
        found = list(self._reported(place, paths))
        if any(each.severity is Severity.ERROR for each in found):
            return "wrong"
        return "unknown" if any(each.is_unknown for each in found) else "right"

    def _reported(self, place: NodeKey | None, paths: Mapping[str, Sequence[T]]) -> Iterator[T]:
        """Yields what is reported at a Split or Concat, of what is found at the paths of nodes."""
        if place is not None and place.number > 0:
            return
        if place is not None:
            yield from paths.get(place.path, ())
        if place == next(iter(self._sessions.judged), None):
            known = {each.path for each in self._sessions.judged}
            yield from (each for path, found in paths.items() if path not in known for each in found)

    def findings(self, *, affected: bool = True) -> tuple[GraphFinding, ...]:
        """Returns the faults of the DirectML graphs of the model, each with its cure; `affected` as in
        findings.findings."""
        from dmlsplit.onnxruntime.findings import findings

        key = "findings", affected
        return self._once(key, lambda: findings(self.model, self.runtime, self.options, affected=affected))

    def paths(self) -> Iterator[tuple[str, onnx.NodeProto]]:
        """Yields the nodes of all graphs with their paths in findings."""
        for graph in self.graphs:
            yield from ((graph.path(node.index), node.proto) for node in graph.nodes)

    @property
    def placement(self) -> SessionAnswer:
        """The provider of every node of the model, the operators that nodes submit, and the diagnostics of the whole
        model."""
        return self._once("placement", self._described)

    @property
    def tried_placement(self) -> SessionAnswer:
        """`placement`, with advice about open sizes that was tried on the model."""
        from dmlsplit.onnxruntime.fixed_sizes import tried

        return self._once("tried", lambda: tried(self))

    def with_sizes(self, sizes: Mapping[str, int]) -> OnnxSession | None:
        """Returns a session of the model with these sizes in place of symbols, besides those that were given, for a
        trial; None if as many nodes were judged for advice as may be."""
        count = sum(len(graph.nodes) for graph in self.graphs)
        if self._sessions.spent_on_advice + count > _MOST_TRIED:
            return None
        self._sessions.spent_on_advice += count
        given = (self._inputs or self._sessions.inputs).free_dimensions
        return self._sessions.of(self.runtime, self.options, Inputs(free_dimensions={**given, **sizes}))

    def _described(self) -> SessionAnswer:
        """Returns `places` with the operators that the nodes submit, and the diagnostics of the whole model."""
        from dmlsplit.onnxruntime.described import operators_of, refusals
        from dmlsplit.onnxruntime.model_findings import model_findings, of_failure
        from dmlsplit.rules import any_operator, whole_model
        from dmlsplit.verdicts.model_placements import Failed, SessionAnswer

        try:
            found, graphs = self.places, self.graphs
        except NotLoadedError as error:
            failure = Failed(error.node, error.message)
            said_by_nodes = bool(self._sessions.judged)
            return SessionAnswer(
                self.runtime, False, failure, diagnostics=() if said_by_nodes else (of_failure(failure),)
            )
        operators = operators_of(graphs) if found.nodes else ()
        said = model_findings(found, graphs, lambda: self.graphs_as_written)
        refused = list(refusals(operators, self.runtime))
        if any(each.rule == whole_model.RANK.id for each in said):
            # a kernel that refuses the rank of its tensors submits no operator
            refused = [each for each in refused if each.rule != any_operator.dimension_count_not_supported.id]
        said = (*refused, *said)
        if found.created is False and found.failure is not None and not self._has_error(said):
            said = (of_failure(found.failure, graphs, "" if self.failure is None else self.failure.cure), *said)
        return replace(found, diagnostics=said, operators=operators)

    def _has_error(self, said: Iterable[Diagnostic]) -> bool:
        """True if a diagnostic in `said`, of a Split or Concat, or of a graph is an error."""
        of_nodes = (each for node in self.nodes for each in node.answer.diagnostics)
        if any(each.severity is Severity.ERROR for each in chain(said, of_nodes)):
            return True
        return self.runtime.observed and any(each.severity is Severity.ERROR for each in self.findings())

    @property
    def places(self) -> SessionAnswer:
        """The provider of every node of the model, without diagnostics and operators."""
        from dmlsplit.onnxruntime.placements import session_answer

        return self._once("places", lambda: session_answer(self.graphs, self.failures))

    @property
    def failure(self) -> Failure | None:
        """The failure that prevents session creation; None if none is certain."""
        return self._once("failure", lambda: first_of(self.failures))

    @property
    def failures(self) -> Sequence[Failure]:
        """Everything that makes, or may make, session creation fail."""
        return [*self._not_loaded(), *self._answers.failures]

    @property
    def _answers(self) -> Answers:
        return self._once(
            "answers", lambda: answers(self.model, self.runtime, self.options, self._not_loaded_by_version())
        )

    def _not_loaded_by_version(self) -> Iterator[Failure]:
        """Yields a failure for a window that the version checks, for each function, called or not, that imports a newer
        opset than the version loads, for functions that call themselves though nothing else calls them, and for each
        call with a graph whose names the version does not find."""
        runtime, proto = self.runtime, self._sessions.proto
        fault, traits = self.model.new_fault, runtime.traits
        if fault is not None and (
            traits.checks_windows or (traits.checks_ranks_of_weights and OF_WEIGHTS in fault.message)
        ):
            yield Failure(LOADING, _as_text(fault), node=path_of_only(proto.graph, fault.operator, fault.name))
        if proto.functions and runtime.traits.refuses_recursion:
            bodies = chain.from_iterable(function.node for function in proto.functions)
            if name := self._sessions.kept("recursive", lambda: recursive(proto, bodies)):
                yield Failure(LOADING, f"{name} calls itself: {runtime.version} does not load the model")
        for name, outer in () if runtime.traits.gives_graphs_names else read_around_calls(self._sessions.proto):
            found = f"{printable(name, 60)} hands a graph that reads {printable(outer, 60)}, of the graph around it"
            yield Failure(LOADING, f"{found}, to a function: {runtime.version} does not load the model")
        for function in self._sessions.proto.functions:
            newest = max((each.version for each in function.opset_import if domain_of(each) == ""), default=0)
            if newest > runtime.newest_opset:
                why = f"the function {printable(function.name, 60)} has opset {newest}"
                yield Failure(LOADING, f"{why}, but {runtime.version} supports up to {runtime.newest_opset}")

    def _not_loaded(self) -> Iterator[Failure]:
        """Yields the reasons why the version does not load the file, or may not, regardless of its nodes."""
        runtime, proto = self.runtime, self._sessions.proto
        if runtime.no_session:
            yield Failure(LOADING, runtime.no_session)
        if not runtime.observed:
            yield Failure(LOADING, f"the behaviour of {runtime.version} was not observed", certain=False)
        if runtime.traits.checks_stored_tensors:
            found = self._sessions.kept("not loaded if checked", lambda: tuple(not_loaded_if_checked(proto)))
            yield from (Failure(LOADING, why) for why in found[:1])
        opset, ir_version = opset_of(proto), proto.ir_version
        if opset > runtime.newest_opset:
            yield Failure(
                LOADING,
                f"the model has opset {opset}, but {runtime.version} supports up to {runtime.newest_opset}",
                cure=_OLDER,
            )
        if ir_version > runtime.newest_ir_version:
            newest = runtime.newest_ir_version
            yield Failure(
                LOADING,
                f"the model has IR version {ir_version}, but {runtime.version} supports up to {newest}",
                cure=_OLDER,
            )


def _as_text(fault: Fault) -> str:
    name = f"{fault.operator} {printable(fault.name, 60)}".strip()
    return f"{name}: {printable(fault.message, 200)}; the model is not loaded"


def _ends_of_graphs(path: str) -> Iterator[int]:
    """Yields the index of each slash in the path of a node, up to the longest path of a graph that is possible: the
    path of the graph that holds the node ends at one of these."""
    return (i for i, character in enumerate(path[: Limit.ONNX_PATH.most + 1]) if character == "/")


def _places(nodes: Sequence[NodeOnRuntime]) -> dict[NodeKey, NodeOnRuntime]:
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for node in nodes:
        found[NodeKey(node.op, node.path, seen[node.op, node.path])] = node
        seen[node.op, node.path] += 1
    return found


Item: TypeAlias = SplitNode | JoinNode | OtherNode


def in_session(sessions: OnnxSessions, items: Iterable[Item]) -> Iterator[Item]:
    """Yields the nodes of a model, the Split and Concat nodes with the sessions and their key in these."""
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        if isinstance(item, OtherNode):
            yield item
            continue
        key = item.op, item.path
        sessions.judged.append(NodeKey(*key, seen[key]))
        yield replace(item, in_session=InSession(sessions, sessions.judged[-1]))
        seen[key] += 1
