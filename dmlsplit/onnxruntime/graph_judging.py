"""Judges the fused graphs of a model for a release: which outputs are wrong, and which graphs are refused.

An operator that was not observed in graphs is tried as a member of each of several families; if the results differ the
verdict is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from dmlsplit.graphs.execution import Correctness, Execution
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.operators import Family
from dmlsplit.graphs.program import CompiledGraph, NotCompiled, Tensor, Unmodelled
from dmlsplit.graphs.traits import GraphTraits, that_decide, traits_of
from dmlsplit.models.functions import JUDGED
from dmlsplit.onnxruntime.fused import FusedGraph, Part
from dmlsplit.onnxruntime.operator_traits import FAMILIES, Kind
from dmlsplit.onnxruntime.risks import is_without_risk, may_lose_branch
from dmlsplit.rules.graph_faults import Fault, FaultKind, first_names
from dmlsplit.system.records import entity, record
from dmlsplit.targets.release_names import version_key
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.verdicts.model_placements import GraphOutcome

_BRANCH: Final = (
    "this DirectML may compute an output wrong if it depends on a normalization and an earlier output is computed "
    "from the same tensor; rename the outputs so that it comes first in byte order, set ep.dml.disable_graph_fusion "
    "to 1, or use DirectML 1.10.1 or newer"
)
_FIRST_TO_TAKE_CONSTANTS: Final = version_key("1.13.1")
"""The first DirectML whose CompileGraph takes constants as nodes of their own."""
_VIEWS: Final = frozenset({"Split", "Slice"})
"""The ONNX operators whose outputs may become views of their inputs."""


@record
class GraphFault:
    """A fault of a graph, and the graph's outputs that it makes wrong; none if CompileGraph refuses the graph."""

    fault: Fault
    outputs: tuple[int, ...] = ()
    tensor: tuple[int, int] | None = None
    """The wrong tensor, given instead of outputs, as its node and its index among the node's outputs."""

    @property
    def rule(self) -> str:
        return self.fault.rule

    @property
    def node(self) -> int | None:
        """The index of the node that causes the fault; None for a copy."""
        return self.fault.index


@entity
class JudgedGraph:
    """The judgement of one graph. `compiles` is None if it is unknown; `unknown` is the reason why outputs are."""

    compiles: bool | None
    outputs: tuple[Correctness, ...]
    found: tuple[GraphFault, ...] = ()
    unknown: str = ""
    undecided: tuple[str, ...] = ()
    """The operators that make it unknown."""

    @property
    def outcome(self) -> GraphOutcome:
        """The outcome of the graph: refused, or the outcome of its worst output."""
        if self.compiles is False:
            return GraphOutcome.REFUSED
        if "wrong" in self.outputs:
            return GraphOutcome.WRONG
        return GraphOutcome.UNKNOWN if self.compiles is None or "unknown" in self.outputs else GraphOutcome.RIGHT


def judged(graph: FusedGraph, traits: GraphTraits | None, *, takes_constants: bool = True) -> JudgedGraph:
    """Returns the judgement of a graph for a release of DirectML: whether CompileGraph accepts it, and which of its
    outputs are wrong.

    `traits` describe the release's graph compiler; None if it was never recorded: whether the graph compiles and all
    its outputs are then unknown. If `takes_constants` is False, the release refuses graphs with constants as nodes,
    which newer versions of ONNX Runtime submit; such a graph is refused for any traits.
    """
    deciding = None if traits is None else that_decide(traits, graph.types)
    return graph.once((deciding, takes_constants), lambda: _judgement(graph, deciding, takes_constants))


def _judgement(graph: FusedGraph, traits: GraphTraits | None, takes_constants: bool) -> JudgedGraph:
    found = _followed(graph, traits, takes_constants)
    if traits is not None and traits.loses_branches and found.compiles and may_lose_branch(graph):
        return _unknown(graph, _BRANCH)
    if found.unknown and traits is not None and is_without_risk(graph, traits):
        return JudgedGraph(True, tuple(["right" for _ in graph.outputs]))
    return found


def _followed(graph: FusedGraph, traits: GraphTraits | None, takes_constants: bool) -> JudgedGraph:
    """Returns the judgement of a graph by the model of CompileGraph; `traits` and `takes_constants` as in `judged`."""
    if graph.has_constants and not takes_constants:
        return _refused(graph, GraphFault(Fault(FaultKind.CONSTANT, None)))
    if traits is None:
        return _unknown(graph, "graph compilation was not observed with this DirectML")
    if any(graph.ops[i] in JUDGED for i in graph.behind_transposes):
        return _unknown(graph, "ONNX Runtime may move Transposes across one of its nodes")
    answers = [_judged(graph, traits, assumed) for assumed in _assumptions(graph.kinds)]
    first = answers[0]
    for other in answers[1:]:
        if other.compiles is None or first.compiles is None or other.compiles != first.compiles:
            why = f"not observed in such a graph: {first_names(_strange(graph))}"
            return replace(_unknown(graph, other.unknown or first.unknown or why), undecided=_strange(graph))
    if len(answers) == 1 or not first.compiles:
        return first
    outputs: list[Correctness] = []
    for results in zip(*(answer.outputs for answer in answers), strict=True):
        outputs.append(results[0] if len(set(results)) == 1 else "unknown")
    found = [
        GraphFault(fault.fault, kept)
        for fault in first.found
        if (kept := tuple([i for i in fault.outputs if outputs[i] == "wrong"]))
    ]
    if "unknown" not in outputs:
        return JudgedGraph(True, tuple(outputs), tuple(found))
    strange = _strange(graph)
    why = f"the outcome depends on operators not observed in such a graph: {first_names(strange)}"
    return JudgedGraph(True, tuple(outputs), tuple(found), why, strange)


def _strange(graph: FusedGraph) -> tuple[str, ...]:
    """Returns the sorted names of the operators of a graph that were never observed in a graph and are therefore judged
    as members of several families; () if there are none."""
    ops = zip(graph.ops, graph.kinds, strict=True)
    found = sorted({op for op, kind in ops if kind is not Kind.OBSERVED and len(set(FAMILIES[kind])) > 1})
    return tuple([op or "an operator of another domain" for op in found])


def outcome_of(part: Part, runtime: Runtime) -> tuple[GraphOutcome, tuple[str, ...]]:
    """Returns the outcome of a fused part in a session of `runtime`, and the names of the operators that make it
    unknown; () if the outcome is known, or if the part's nodes or sizes are not known."""
    if part.fails or (part.is_known and not part.variants):
        return GraphOutcome.REFUSED, ()
    if not part.is_known:
        return GraphOutcome.UNKNOWN, ()
    (graph, *_), traits = part.variants, traits_of(runtime.release)
    found = judged(graph, traits, takes_constants=takes_constants(runtime))
    forget_compiled(graph, traits)
    return found.outcome, found.undecided


def takes_constants(runtime: Runtime) -> bool:
    """False if the runtime submits constants as nodes of a graph and its DirectML refuses such nodes; else True."""
    return not runtime.traits.constants_are_nodes or version_key(runtime.directml) >= _FIRST_TO_TAKE_CONSTANTS


def compiles(graph: FusedGraph, traits: GraphTraits | None) -> GraphFault | bool | None:
    """Returns True if CompileGraph of a release with these traits accepts a graph in its given order of nodes; the
    fault if it refuses the graph, as it does for views that do not fit; None if that is unknown."""
    if _VIEWS.isdisjoint(graph.ops):
        return True
    if traits is None:
        return None
    deciding = that_decide(traits, graph.types)
    return graph.once(("compiles", deciding), lambda: _compiles(graph, deciding))


def _compiles(graph: FusedGraph, traits: GraphTraits) -> GraphFault | bool | None:
    trials = [_compiled(graph, traits, assumed) for assumed in _assumptions(graph.kinds)]
    faults = [trial[0] for trial in trials if isinstance(trial, tuple)]
    if any(isinstance(trial, Unmodelled) for trial in trials) or 0 < len(faults) < len(trials):
        return True if is_without_risk(graph, traits) else None
    return min(faults, key=lambda fault: fault.node or 0, default=True)


def _assumptions(kinds: Sequence[Kind]) -> list[dict[int, Family]]:
    """Returns up to three trials. Each maps the index of every node whose operator was never recorded in a graph to the
    family to assume for it."""
    strange = {i: FAMILIES[kind] for i, kind in enumerate(kinds) if kind is not Kind.OBSERVED}
    trials = [{i: families[k] for i, families in strange.items()} for k in range(3)]
    return [trial for k, trial in enumerate(trials) if trial not in trials[:k]]


_Compiled: TypeAlias = CompiledGraph | tuple[GraphFault, ...] | Unmodelled
"""A compiled graph; for a refused graph its faults, the reason for the refusal first; or the reason why neither is
known."""


def _compiled(graph: FusedGraph, traits: GraphTraits, assumed: Mapping[int, Family]) -> _Compiled:
    return graph.compiled((traits, *assumed.items()), lambda: _compile(graph, traits, assumed))


def _compile(graph: FusedGraph, traits: GraphTraits, assumed: Mapping[int, Family]) -> _Compiled:
    try:
        return compile_graph(graph.desc, traits, assumed, graph.rectified, graph.constant)
    except Unmodelled as reason:
        return reason.with_traceback(None)
    except NotCompiled as refused:
        return tuple([GraphFault(each) for each in (refused.fault, *refused.others)])


def _judged(graph: FusedGraph, traits: GraphTraits, assumed: Mapping[int, Family]) -> JudgedGraph:
    compiled = _compiled(graph, traits, assumed)
    if isinstance(compiled, Unmodelled):
        return _unknown(graph, str(compiled))
    if isinstance(compiled, tuple):
        return _refused(graph, compiled[0])
    try:
        faults = Execution(compiled).faults
    except Unmodelled as reason:
        return _unknown(graph, str(reason))
    found: dict[Fault, list[int]] = {}
    of_node: dict[tuple[FaultKind, object], Fault] = {}
    for i, wrong in enumerate(faults):
        if wrong is not None:
            fault = wrong.fault
            if fault.kind is FaultKind.OVERWRITTEN:  # one fault for all tensors that a node overwrites
                fault = of_node.setdefault((fault.kind, fault.node), fault)
            found.setdefault(fault, []).append(i)
    outcomes: list[Correctness] = ["right" if wrong is None else "wrong" for wrong in faults]
    return JudgedGraph(
        True, tuple(outcomes), tuple([GraphFault(fault, tuple(outputs)) for fault, outputs in found.items()])
    )


def hidden(graph: FusedGraph, traits: GraphTraits | None) -> tuple[GraphFault, ...]:
    """Returns the faults of a graph that `judged` does not report, because the outputs are already wrong by another
    fault, or the graph is refused for another reason; at most one for each rule and node.

    () if `judged` reports no fault, or if `traits` is None. Traits as in `judged`.
    """
    answer = judged(graph, traits)
    if not answer.found or traits is None:
        return ()
    deciding = that_decide(traits, graph.types)
    return graph.once(("hidden", deciding), lambda: _hidden(graph, deciding, answer.found))


def _hidden(graph: FusedGraph, traits: GraphTraits, reported: Sequence[GraphFault]) -> tuple[GraphFault, ...]:
    known = {(fault.rule, fault.node) for fault in reported}
    trials = [_arising(graph, traits, assumed) for assumed in _assumptions(graph.kinds)]
    common = [fault for fault in trials[0] if all(fault in other for other in trials[1:])]
    hidden = {(fault.rule, fault.node): fault for fault in reversed(common)}
    return tuple([fault for key, fault in hidden.items() if key not in known])


def forget_compiled(graph: FusedGraph, traits: GraphTraits | None) -> None:
    """Answers `compiles` while the compiled graphs, which are large, are at hand, and then frees them."""
    compiles(graph, traits)
    graph.forget_compiled()


def _arising(graph: FusedGraph, traits: GraphTraits, assumed: Mapping[int, Family]) -> dict[GraphFault, None]:
    """Returns all faults, as the keys of a dict, each as if there were no other; for a refused graph, all further
    reasons to refuse it; {} if the outcome is unknown. `assumed` maps nodes to their assumed families."""
    compiled = _compiled(graph, traits, assumed)
    if isinstance(compiled, tuple):
        return dict.fromkeys(compiled[1:])
    if isinstance(compiled, Unmodelled):
        return {}
    try:
        arisen = Execution(compiled, passes_on=False).arisen
    except Unmodelled:
        return {}
    found: dict[GraphFault, None] = {}
    for wrong, tensor in arisen.items():
        if not wrong.mild:  # its readers may correct the tensor
            found[GraphFault(wrong.fault, tensor=_made_by(tensor))] = None
    return found


def _made_by(tensor: Tensor) -> tuple[int, int] | None:
    """Returns (node, index of the node's output) for `tensor`, or for the tensor of which it is a copy; None if that is
    a graph input."""
    name = tensor.original.name
    return None if name.node is None else (name.node, name.number)


def _refused(graph: FusedGraph, found: GraphFault) -> JudgedGraph:
    return JudgedGraph(False, _outcomes(graph), (found,))


def _unknown(graph: FusedGraph, why: str) -> JudgedGraph:
    return JudgedGraph(None, _outcomes(graph), (), why)


def _outcomes(graph: FusedGraph) -> tuple[Correctness, ...]:
    return tuple(["unknown" for _ in graph.outputs])
