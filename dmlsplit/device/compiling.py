"""CompileGraph of the emulated device: the report, and what a dispatch is to run."""

from __future__ import annotations

from dataclasses import replace

from dmlsplit.device.dispatches import Shaders, as_it_should_be, as_released
from dmlsplit.diagnostics import Severity
from dmlsplit.graphs import GraphDesc, GraphReport, evaluate_graph
from dmlsplit.graphs.descriptors import described
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.program import Unmodelled
from dmlsplit.graphs.releases import traits_of
from dmlsplit.location import Location
from dmlsplit.rules import GRAPH_RULES
from dmlsplit.target import Target


def compiled_graph(graph: GraphDesc, target: Target, results: str) -> tuple[GraphReport, Shaders | None]:
    """The report of a release's target, and what is dispatched: None where the graph cannot be run."""
    report = evaluate_graph(graph, target)
    graph = described(graph)
    assert target.release is not None
    traits = traits_of(target.release)
    try:
        if results == "right":
            return report, None if _is_at_fault(report) else as_it_should_be(graph)
        if report.compiles is not True or "unknown" in report.outputs or traits is None:
            return report, None
        return report, as_released(graph, compile_graph(graph, traits))
    except Unmodelled as reason:
        note = GRAPH_RULES["graph/unknown"].diagnostic(Location(), str(reason))
        return replace(report, diagnostics=(*report.diagnostics, note), hresult=None, compiles=None), None


def _is_at_fault(report: GraphReport) -> bool:
    """Whether something is wrong with the graph itself, not only with what a release makes of it."""
    sound = {id for id, rule in GRAPH_RULES.items() if rule.sound}
    return any(d.severity is Severity.ERROR and d.rule not in sound for d in report.diagnostics)
