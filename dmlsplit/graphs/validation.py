"""Judging a graph: what CompileGraph returns, and which graph outputs are then right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from dmlsplit.descriptors import TensorDesc
from dmlsplit.diagnostics import SCHEMA, Diagnostic, Severity
from dmlsplit.enums import HResult
from dmlsplit.graphs.descriptors import GraphDesc, NeighbourOperatorDesc, node_tensors, node_type
from dmlsplit.graphs.execution import Execution
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.operators import BY_NUMBER, operator_name
from dmlsplit.graphs.program import Crash, Refused, Unmodelled
from dmlsplit.graphs.releases import GraphTraits, traits_of
from dmlsplit.graphs.rules import GRAPH_RULES
from dmlsplit.graphs.structure import faults
from dmlsplit.location import Location
from dmlsplit.release_names import find_release
from dmlsplit.releases import NEWEST, Release
from dmlsplit.target import target_of
from dmlsplit.validation import evaluate

Outcome: TypeAlias = Literal["right", "wrong", "unknown"]
OPERATOR: Final = "DML_GRAPH"
LOWEST_LEVEL_RANKS: Final = 0x2100
"""The feature level up to which builds refuse neighbours of other ranks."""


@dataclass(frozen=True, slots=True)
class GraphReport:
    """The judgement of one graph.

    `hresult` is what CompileGraph returns, or the first CreateOperator that fails; None where the process ends, or
    where that is unknown. `compiles` is None where it is unknown. `outputs` says of each graph output whether it will
    hold what the operators, one by one, would give.
    """

    diagnostics: tuple[Diagnostic, ...]
    judged_by: str
    hresult: HResult | int | None
    compiles: bool | None
    outputs: tuple[Outcome, ...]

    @property
    def operator(self) -> str:
        return OPERATOR

    @property
    def ok(self) -> bool:
        return not any(d.severity is Severity.ERROR for d in self.diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)

    def to_dict(self) -> dict[str, object]:
        """The JSON form: that of an operator's report, and "graph"."""
        return {
            "schema": SCHEMA,
            "file": None,
            "index": 0,
            "operator": OPERATOR,
            "judged_by": self.judged_by,
            "ok": self.ok,
            "hresult": None if self.hresult is None else f"0x{self.hresult:08X}",
            "diagnostics": [d.to_dict() for d in self.diagnostics],
            "graph": {"compiles": self.compiles, "outputs": list(self.outputs)},
        }

    def __str__(self) -> str:
        verdict = "ok" if self.ok else "not ok"
        code = "" if self.hresult is None else f", HRESULT 0x{self.hresult:08X}"
        head = f"{OPERATOR}: {verdict} ({self.judged_by}{code}); outputs: {', '.join(self.outputs) or 'none'}"
        return "\n".join([head, *(f"  {d}" for d in self.diagnostics)])


def validate(graph: GraphDesc, *, directml: Release | str | None = None) -> GraphReport:
    """Judges a graph by a DirectML release, the newest known where none is given.

    Raises ValueError for an unknown release, TypeError for what is no graph.
    """
    if not isinstance(graph, GraphDesc):
        raise TypeError(f"{type(graph).__name__} is not a GraphDesc")
    release = NEWEST if directml is None else find_release(directml)
    return judge(graph, release, traits_of(release))


def judge(graph: GraphDesc, release: Release, traits: GraphTraits | None) -> GraphReport:
    """The report of one release with these traits; None where the release was not observed compiling graphs."""
    created = _created(graph, release)
    if created:
        return _refused(graph, release, created)
    found = [
        GRAPH_RULES[fault.rule].diagnostic(fault.location, fault.message, expected=fault.expected, actual=fault.actual)
        for fault in faults(graph)
    ]
    if any(GRAPH_RULES[d.rule].refuses for d in found):
        return _refused(graph, release, found)
    unknown = _unknown(graph)
    if found:
        # What binding or reading such a graph does is undefined; of a null tensor nothing can be said.
        rules = {d.rule for d in found}
        if traits is None or "graph/tensor-null" in rules:
            return GraphReport(tuple(found), release.judged_by, None, None, unknown)
        compiles = not (traits.needs_all_outputs and "graph/output-unconnected" in rules)
        hresult = HResult.S_OK if compiles else None
        return GraphReport(tuple(found), release.judged_by, hresult, compiles, unknown)
    try:
        if traits is None:
            raise Unmodelled("this build was not observed compiling graphs")
        plan = compile_graph(graph, traits)
        execution = Execution(plan)
    except Unmodelled as reason:
        note = GRAPH_RULES["graph/unknown"].diagnostic(Location(), str(reason))
        return GraphReport((note,), release.judged_by, None, None, unknown)
    except Refused as refused:
        found = [GRAPH_RULES["graph/memory-too-small"].diagnostic(Location.of("Nodes", refused.node), str(refused))]
        return _refused(graph, release, found)
    except Crash as crash:
        found = [GRAPH_RULES["graph/fusion-crashes"].diagnostic(Location.of("Nodes", crash.node), str(crash))]
        return GraphReport(tuple(found), release.judged_by, None, False, unknown)
    outputs: list[Outcome] = []
    for i, fault in enumerate(execution.faults):
        outputs.append("right" if fault is None else "wrong")
        if fault is not None:
            by = f"Nodes[{fault.node}]" if fault.node is not None else "a copy"
            message = f"graph output {i} is wrong: {fault.message} ({by})"
            found.append(GRAPH_RULES[fault.rule].diagnostic(Location.of("Outputs", i), message))
    return GraphReport(tuple(found), release.judged_by, HResult.S_OK, True, tuple(outputs))


def _unknown(graph: GraphDesc) -> tuple[Outcome, ...]:
    return tuple(["unknown" for _ in graph.outputs])


def _refused(graph: GraphDesc, release: Release, found: Sequence[Diagnostic]) -> GraphReport:
    return GraphReport(tuple(found), release.judged_by, release.invalid_argument, False, _unknown(graph))


def _created(graph: GraphDesc, release: Release) -> list[Diagnostic]:
    """Why CreateOperator refuses the first node that it refuses; empty where it takes all that are judged."""
    known: dict[object, list[Diagnostic]] = {}
    split_or_join = target_of(release)
    for i, node in enumerate(graph.nodes):
        if isinstance(node, NeighbourOperatorDesc):
            found = _neighbour(node, release)
        else:
            if node not in known:
                report = evaluate(node, split_or_join)
                known[node] = [] if report.hresult == HResult.S_OK else list(report.errors)
            found = known[node]
        if found:
            return [replace(d, location=Location.of("Nodes", i, *d.location.steps)) for d in found]
    return []


def _neighbour(node: NeighbourOperatorDesc, release: Release) -> list[Diagnostic]:
    row = BY_NUMBER.get(node_type(node))
    if row is None or not _is_lowest(release):
        return []
    for tensors in node_tensors(node):
        for tensor in tensors:
            if _rank(tensor) not in (None, *row.first_level_ranks):
                allowed = " or ".join(map(str, row.first_level_ranks))
                message = f"{operator_name(node.type)} takes {allowed} dimensions at feature level 2_1"
                rank = GRAPH_RULES["graph/neighbour-rank"]
                return [rank.diagnostic(Location(), message, expected=allowed, actual=_rank(tensor))]
    return []


def _rank(tensor: TensorDesc | None) -> int | None:
    return None if tensor is None or tensor.desc is None else tensor.desc.dimension_count


def _is_lowest(release: Release) -> bool:
    return int(release.max_feature_level) <= LOWEST_LEVEL_RANKS
