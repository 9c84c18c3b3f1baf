"""The answers for the Splits and Concats of a model, with what the nodes around them change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dmlsplit.dims import is_static
from dmlsplit.formats.onnx.functions import domain_of
from dmlsplit.formats.onnx.runtime.context import in_context
from dmlsplit.formats.onnx.runtime.facts import facts_of, first_run
from dmlsplit.formats.onnx.runtime.inlining import JUDGED
from dmlsplit.formats.onnx.runtime.scopes import SessionModel
from dmlsplit.formats.onnx.runtime.session_graph import Placed, SessionGraph
from dmlsplit.formats.onnx.tensors import text
from dmlsplit.runtimes import Outcome, Runtime, RuntimeAnswer, RuntimeFacts, SessionOptions, predict
from dmlsplit.runtimes.partitions import PlacedNode, partitions
from dmlsplit.runtimes.predict import LEAST_NODES_FOR_VOLATILE, MAX_RANK, diagnostic, placement


@dataclass(frozen=True, slots=True)
class NodeOnRuntime:
    """One Split or Concat of a model, and the answer of a runtime."""

    path: str
    """What diagnostics call it: its name, or that of its first output, after that of its graph."""
    op: str
    facts: RuntimeFacts
    answer: RuntimeAnswer


def answers(model: SessionModel, runtime: Runtime, options: SessionOptions) -> list[NodeOnRuntime]:
    """The answers of all graphs of a model, the inner ones first."""
    found: list[NodeOnRuntime] = []
    failures: list[str] = []
    for graph in SessionGraph.of_model(model, runtime, options):
        found += _of_graph(graph, failures)
    return _with_failures(found, failures)


def _of_graph(graph: SessionGraph, failures: list[str]) -> list[NodeOnRuntime]:
    """The answers of one graph; appended to `failures` is what else keeps the session from being made."""
    options = replace(graph.options, graph_fusion=graph.fuses)
    judged = [i for i, node in enumerate(graph.nodes) if node.op_type in JUDGED and domain_of(node) == ""]
    facts = {index: known for index in judged if (known := facts_of(graph, index)) is not None}
    placed = []
    for index in graph.order():
        if index in facts:
            place = placement(facts[index], graph.runtime, options=options)
            on_cpu = place.answer is not None and place.answer.outcome is Outcome.CPU
            placed.append(Placed(index, not on_cpu, place.in_graph))
        else:
            placed.append(graph.placed(index))
            failures += _failures(graph, placed[-1])
    certain, possible = _fused(graph, placed, unknown=False), _fused(graph, placed, unknown=True)
    found = []
    for index, known in facts.items():
        kept = _kept(graph, index)
        path = graph.path(index)
        answer = predict(
            facts[kept],
            graph.runtime,
            path=path,
            first_run=first_run(graph, kept),
            options=options,
            graph_nodes=_count(graph, certain.get(kept, ()), possible.get(kept, ())),
        )
        answer = in_context(graph, kept, path, answer, certain.get(kept, ()), possible.get(kept, ()))
        if kept != index and answer.outcome in (Outcome.DML, Outcome.CPU):
            note = diagnostic("computed-once", path, f"it computes what {graph.path(kept)} does")
            answer = replace(answer, diagnostics=(*answer.diagnostics, note))
        found.append(NodeOnRuntime(path, graph.nodes[index].op_type, known, answer))
    return found


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
    most = sum(not graph.absorbed(i) for i in possible or certain)
    least = sum(graph.stays(i) and not graph.absorbed(i) for i in certain)
    return most if least >= LEAST_NODES_FOR_VOLATILE or most < LEAST_NODES_FOR_VOLATILE else None


def _failures(graph: SessionGraph, place: Placed) -> list[str]:
    """What of a neighbour makes session creation fail."""
    node = graph.nodes[place.index]
    shapes = [graph.shape(name) for name in node.input if name]
    rank = max((len(shape) for shape in shapes if shape is not None and is_static(shape)), default=0)
    if not place.on_dml or rank <= MAX_RANK:
        return []
    return [f"{graph.path(place.index)} has a static tensor of rank {rank}"]


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
