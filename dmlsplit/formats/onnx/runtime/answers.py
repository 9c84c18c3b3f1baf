"""The answers for the Splits and Concats of a model, with what the nodes around them change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dmlsplit.dims import is_static
from dmlsplit.formats.onnx.runtime.context import in_context, is_read
from dmlsplit.formats.onnx.runtime.counting import absorbed, stays
from dmlsplit.formats.onnx.runtime.facts import facts_in, first_run
from dmlsplit.formats.onnx.runtime.refusals import refusals
from dmlsplit.formats.onnx.runtime.scopes import SessionModel
from dmlsplit.formats.onnx.runtime.session_graph import Placed, SessionGraph
from dmlsplit.formats.onnx.tensors import text
from dmlsplit.runtimes import FirstRun, Outcome, Runtime, RuntimeAnswer, RuntimeFacts, SessionOptions, predict
from dmlsplit.runtimes.partitions import PlacedNode, partitions
from dmlsplit.runtimes.predict import LEAST_NODES_FOR_VOLATILE, MAX_RANK, diagnostic, placement


@dataclass(frozen=True, slots=True)
class NodeOnRuntime:
    """One Split or Concat of a model, and the answer of a runtime."""

    path: str
    """Its name in diagnostics: its own, or that of its first output, after that of its graph."""
    op: str
    facts: RuntimeFacts
    answer: RuntimeAnswer


@dataclass(frozen=True, slots=True)
class _Group:
    """The nodes of the fused graph that a node is in, `possible`: and those of which that is not known, and how many
    they come to (answers of `_count`)."""

    certain: tuple[int, ...]
    possible: tuple[int, ...]
    count: int | None


def answers(model: SessionModel, runtime: Runtime, options: SessionOptions) -> list[NodeOnRuntime]:
    """The answers of all graphs of a model, the inner ones first."""
    found: list[NodeOnRuntime] = []
    failures = list(model.refused)
    for graph in SessionGraph.of_model(model, runtime, options):
        found += _of_graph(graph, failures)
    return _with_failures(found, failures)


def _of_graph(graph: SessionGraph, failures: list[str]) -> list[NodeOnRuntime]:
    """The answers of one graph; appended to `failures` is what else keeps the session from being made."""
    options = replace(graph.options, graph_fusion=graph.fuses)
    facts = facts_in(graph)
    neighbours = graph.once("neighbours", lambda: [graph.placed(i) for i in graph.order() if i not in facts])
    failures += graph.once("failures", lambda: [why for place in neighbours for why in _failures(graph, place)])
    failures += graph.once("gemms", lambda: list(_incomplete_gemms(graph)))
    fused = frozenset(i for i, known in facts.items() if placement(known, graph.runtime, options=options).in_graph)
    groups, dead = graph.once(("groups", fused), lambda: _groups(graph, neighbours, facts, fused))
    failures += dead
    refused = list(refusals(graph)) if graph.runtime.observed else []
    failures += [each.why for each in refused if each.certain and facts.keys().isdisjoint(each.members)]
    against = {i: each for each in refused for i in each.members}
    found = []
    for index, known in facts.items():
        kept, path, run = graph.once(("asked", index), partial(_asked, graph, index))
        group = groups[kept]
        answer = predict(facts[kept], graph.runtime, path=path, first_run=run, options=options, graph_nodes=group.count)
        answer = in_context(graph, kept, path, answer, group.certain, against.get(kept))
        if kept != index and answer.outcome in (Outcome.DML, Outcome.CPU):
            note = diagnostic("computed-once", path, f"it computes what {graph.path(kept)} does")
            answer = replace(answer, diagnostics=(*answer.diagnostics, note))
        found.append(NodeOnRuntime(path, graph.nodes[index].op_type, known, answer))
    return found


def _asked(graph: SessionGraph, index: int) -> tuple[int, str, FirstRun | None]:
    """The node that computes what one of them does, what it is called, and the sizes of the first Run."""
    kept = _kept(graph, index)
    return kept, graph.path(index), first_run(graph, kept)


def _groups(
    graph: SessionGraph, neighbours: Sequence[Placed], facts: Mapping[int, RuntimeFacts], fused: frozenset[int]
) -> tuple[dict[int, _Group], list[str]]:
    """The fused graphs that the Splits and Concats are in, and what is wrong with others."""
    known = {place.index: place for place in neighbours}
    placed = [known.get(index) or Placed(index, True, index in fused) for index in graph.order()]
    certain, possible = _fused(graph, placed, unknown=False), _fused(graph, placed, unknown=True)
    found = {}
    for index in facts:
        group = certain.get(index, ()), possible.get(index, ())
        found[index] = _Group(*group, _count(graph, *group))
    others = {group for i, group in certain.items() if group == possible.get(i) and facts.keys().isdisjoint(group)}
    dead = sorted(graph.path(group[0]) for group in others if not is_read(graph, group))
    return found, [f"nothing reads what the fused graph of {path} computes" for path in dead]


def _kept(graph: SessionGraph, index: int) -> int:
    """The node itself, or the one that computes its outputs where it is removed."""
    if not graph.removed(index):
        return index
    origins = (graph.origin(text(name)) for name in graph.nodes[index].output if name)
    return next((i for i in origins if i is not None and not graph.removed(i)), index)


def _fused(graph: SessionGraph, placed: Sequence[Placed], *, unknown: bool) -> dict[int, tuple[int, ...]]:
    """For each node of a fused graph the nodes of that graph; `unknown`: nodes of which it is not known join."""
    rows = [
        PlacedNode(
            tuple(graph.source(text(name)) for name in graph.nodes[place.index].input),
            tuple(map(text, graph.nodes[place.index].output)),
            unknown if place.in_graph is None else place.in_graph,
        )
        for place in placed
    ]
    return {
        place.index: tuple(placed[i].index for i in group)
        for place, group in zip(placed, partitions(rows), strict=True)
        if group is not None
    }


def _count(graph: SessionGraph, certain: Sequence[int], possible: Sequence[int]) -> int | None:
    """The nodes of a fused graph; None where optimization or unknown nodes leave open on which side of 5 that is."""
    most = sum(not absorbed(graph, i) for i in possible or certain)
    least = sum(stays(graph, i) and not absorbed(graph, i) for i in certain)
    return most if least >= LEAST_NODES_FOR_VOLATILE or most < LEAST_NODES_FOR_VOLATILE else None


def _failures(graph: SessionGraph, place: Placed) -> list[str]:
    """The failure of session creation that a neighbour causes."""
    node = graph.nodes[place.index]
    shapes = [graph.shape(name) for name in node.input if name]
    rank = max((len(shape) for shape in shapes if shape is not None and is_static(shape)), default=0)
    if not place.on_dml or rank <= MAX_RANK:
        return []
    return [f"{graph.path(place.index)} has a static tensor of rank {rank}"]


def _incomplete_gemms(graph: SessionGraph) -> Iterator[str]:
    """Each Gemm of two inputs that an activation is put into: what comes of that has to have three. Observed."""
    for index, _ in graph.alive:
        producer = graph.origin(text(graph.nodes[index].input[0])) if absorbed(graph, index) else None
        if producer is None or graph.nodes[producer].op_type != "Gemm" or not graph.implemented(producer):
            continue
        if sum(name != "" for name in graph.nodes[producer].input) < 3:
            yield f"{graph.path(producer)} has no C, and the activation behind it is put into it"


def _with_failures(found: Sequence[NodeOnRuntime], failures: Sequence[str]) -> list[NodeOnRuntime]:
    """The answers where something else keeps the session from being made: then nothing runs."""
    guilty = next((node for node in found if node.answer.outcome is Outcome.SESSION_FAILS), None)
    why = failures[0] if failures else f"{guilty.path} fails session creation" if guilty is not None else None
    if why is None:
        return list(found)
    changed = []
    for node in found:
        answer = node.answer
        if answer.outcome is not Outcome.SESSION_FAILS:
            note = diagnostic("session-fails-elsewhere", node.path, why)
            notes = (*answer.diagnostics, note)
            answer = RuntimeAnswer(answer.runtime, Outcome.SESSION_FAILS, "init", diagnostics=notes)
        changed.append(replace(node, answer=answer))
    return changed
