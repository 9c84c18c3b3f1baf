"""Judges a graph: predicts CompileGraph's result, and which graph outputs are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity
from dmlsplit.descriptors.enums import GRAPH, HResult
from dmlsplit.descriptors.location import Location
from dmlsplit.graphs.descriptors import GraphDesc, GraphNode, described
from dmlsplit.graphs.execution import Correctness, Execution
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.program import Crash, NotCompiled, Unmodelled
from dmlsplit.graphs.structure import faults
from dmlsplit.graphs.traits import GraphTraits, traits_of
from dmlsplit.rules.graph import GRAPH_RULES
from dmlsplit.rules.graph_faults import happens, of_output
from dmlsplit.system.records import record
from dmlsplit.targets.releases import releases
from dmlsplit.targets.target import Target
from dmlsplit.verdicts.any_operator import evaluate_any
from dmlsplit.verdicts.validation import evaluate, reads_undefined

_CORRECTNESS: Final[tuple[Correctness, ...]] = ("right", "wrong", "unknown")
_UNREADABLE: Final = ("graph/tensor-null", "graph/tensor-short")
"""The rules about tensors for which nothing can be predicted."""


@record
class GraphReport(Report):
    """The judgement of one graph.

    `hresult` is the result of CompileGraph, or of the first CreateOperator that fails; None if the process ends or the
    result is unknown. `compiles` is None if it is unknown. `outputs` has the correctness of each graph output, compared
    with running the operators one by one.
    """

    compiles: bool | None = None
    outputs: tuple[Correctness, ...] = ()
    by_runtime: bool = False
    """True if the target is a version of ONNX Runtime; the report is then that of the release that it ships."""

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form: an operator report's keys and "graph"; for a runtime also "onnxruntime", null."""
        graph = {"compiles": self.compiles, "outputs": list(self.outputs)}
        runtime = {"onnxruntime": None} if self.by_runtime else {}
        return {**Report.to_dict(self), "graph": graph, **runtime}

    @property
    def is_unknown(self) -> bool:
        return "unknown" in self.outputs or self.compiles is None

    @property
    def cure(self) -> str:
        """What to change about a valid graph that CompileGraph compiles wrongly, as text; "" for any other graph."""
        rules = [GRAPH_RULES[d.rule] for d in self.errors if d.rule in GRAPH_RULES]
        return "; ".join(dict.fromkeys(rule.cure for rule in rules if rule.sound))

    @property
    def remark(self) -> str:
        """The number of outputs of each correctness, as text: "outputs: 2 right, 1 wrong"."""
        counts = Counter(self.outputs)
        return "outputs: " + (", ".join(f"{counts[word]} {word}" for word in _CORRECTNESS if counts[word]) or "none")


def evaluate_graph(graph: GraphDesc, target: Target) -> GraphReport:
    """Returns the report of one target on a graph.

    A release is judged by the model of its CompileGraph. A feature level is judged by its tables for the nodes, and by
    the outcome of CompileGraph that all observed builds of the level share; if they differ, the outcome is unknown.
    """
    if target.release is not None:
        return judge(graph, target, [traits_of(target.release)])
    builds = [release for release in releases() if release.max_feature_level == target.feature_level]
    return judge(graph, target, list(dict.fromkeys(map(traits_of, builds))))


class _Compiled(NamedTuple):
    """The outcome of CompileGraph for a graph."""

    found: tuple[Diagnostic, ...]
    compiles: bool | None
    outputs: tuple[Correctness, ...] | None = None
    """None if no output can be judged."""
    ends_the_process: bool = False


def judge(graph: GraphDesc, target: Target, traits: Sequence[GraphTraits | None]) -> GraphReport:
    """Returns the report of a target on a graph; `traits` has the traits of each build of the target, None for a build
    whose traits were never recorded."""
    graph = described(graph)
    created, failure = _created(graph, target)
    compiled = failure or _by_builds(graph, faults(graph), traits)
    compiled = compiled._replace(found=(*created, *compiled.found))
    hresult: int | None = None
    if compiled.compiles is not None and not compiled.ends_the_process:
        hresult = HResult.S_OK if compiled.compiles else target.invalid_argument
    unknown: Correctness = "unknown"
    return GraphReport(
        compiled.found,
        target.name,
        hresult,
        GRAPH,
        compiles=compiled.compiles,
        outputs=(unknown,) * len(graph.outputs) if compiled.outputs is None else compiled.outputs,
        by_runtime=target.runtime is not None,
    )


def _by_builds(graph: GraphDesc, found: tuple[Diagnostic, ...], traits: Sequence[GraphTraits | None]) -> _Compiled:
    """Returns the outcome that all builds with these traits share, unknown if they differ; `found` are the structural
    faults of the graph."""
    if any(GRAPH_RULES[d.rule].refuses for d in found):
        return _Compiled(found, False)
    if not traits:
        return _unknown(found, "no build of this level was observed")
    answers = [_unsound(found, row) if found else _compiled(graph, row) for row in traits]
    if len({(answer.compiles, answer.outputs, answer.ends_the_process) for answer in answers}) > 1:
        return _unknown(found, "the builds of this level differ")
    return answers[0]


def _unknown(found: tuple[Diagnostic, ...], reason: str) -> _Compiled:
    return _Compiled((*found, GRAPH_RULES["graph/unknown"].diagnostic(Location(), reason)), None)


def _unsound(found: tuple[Diagnostic, ...], traits: GraphTraits | None) -> _Compiled:
    """Returns the outcome for a graph with structural faults that CompileGraph does not refuse: it compiles, but
    binding or executing it is undefined; or the process ends; or the outcome is unknown."""
    rules = {d.rule for d in found}
    if traits is None or not rules.isdisjoint(_UNREADABLE):
        return _Compiled(found, None)
    ends = traits.needs_all_outputs and "graph/output-unconnected" in rules
    return _Compiled(found, not ends, ends_the_process=ends)


def _compiled(graph: GraphDesc, traits: GraphTraits | None) -> _Compiled:
    """Returns the outcome that the model of CompileGraph predicts for builds with these traits; unknown for None."""
    if traits is None:
        return _unknown((), "graph compilation was not observed with this build")
    try:
        execution = Execution(compile_graph(graph, traits))
    except Unmodelled as reason:
        return _unknown((), str(reason))
    except NotCompiled as error:
        place = Location.of("Nodes", error.fault.index or 0)
        found = GRAPH_RULES[error.fault.rule].diagnostic(place, happens(error.fault))
        return _Compiled((found,), False, ends_the_process=isinstance(error, Crash))
    diagnostics: list[Diagnostic] = []
    for i, wrong in enumerate(execution.faults):
        if wrong is not None:
            message = of_output(i, wrong.fault)
            diagnostics.append(GRAPH_RULES[wrong.fault.rule].diagnostic(Location.of("Outputs", i), message))
    outputs: list[Correctness] = ["right" if fault is None else "wrong" for fault in execution.faults]
    return _Compiled(tuple(diagnostics), True, tuple(outputs))


def _created(graph: GraphDesc, target: Target) -> tuple[list[Diagnostic], _Compiled | None]:
    """Returns the faults of each node's operator and, if CreateOperator fails for a node, the outcome of the graph (the
    first failing node decides), else None."""
    known: dict[object, tuple[Sequence[Diagnostic], _Compiled | None]] = {}
    found: list[Diagnostic] = []
    failure: _Compiled | None = None
    for i, node in enumerate(graph.nodes):
        if node not in known:
            known[node] = _of_node(node, target)
        diagnostics, fails = known[node]
        failure = failure or fails
        found += [replace(d, location=Location.of("Nodes", i, *d.location.steps)) for d in diagnostics]
    return found, failure


_REFUSED: Final = _Compiled((), False)
_ENDS: Final = _Compiled((), False, ends_the_process=True)
_UNDEFINED: Final = _Compiled((), None)
"""CreateOperator reads past the end of an array."""


def _of_node(node: GraphNode, target: Target) -> tuple[Sequence[Diagnostic], _Compiled | None]:
    """Returns the faults of a node, and the outcome of the graph if CreateOperator fails for it, else None. A missing
    tensor is not reported here: it is a fault of the graph."""
    if isinstance(node, AnyOperatorDesc):
        report: Report = evaluate_any(node, target)
        said = [d for d in report.diagnostics if d.rule != "operator/tensor-missing"]
        fails = any(d.severity is Severity.ERROR for d in said)
    else:
        report = evaluate(node, target)
        said = [d for d in report.diagnostics if d.severity is not Severity.NOTE]
        fails = report.hresult != HResult.S_OK
    if not fails or report.hresult is not None:
        return said, _REFUSED if fails else None
    return said, _UNDEFINED if reads_undefined(said) else _ENDS
