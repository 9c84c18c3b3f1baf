"""The answers for the Splits and Concats of a model, with what the nodes around them change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.onnxruntime.context import in_context, leading_out
from dmlsplit.onnxruntime.counting import absorbed, stays
from dmlsplit.onnxruntime.creation import LOADING, OPTIMIZING, Failure, Place, with_failures
from dmlsplit.onnxruntime.facts import FirstRun, RuntimeFacts
from dmlsplit.onnxruntime.graph_refusals import refusals
from dmlsplit.onnxruntime.neighbours import DOMAINS, FOUR_BITS
from dmlsplit.onnxruntime.node_facts import facts_in, first_run
from dmlsplit.onnxruntime.partitions import PlacedNode, partitions
from dmlsplit.onnxruntime.predict import LEAST_NODES_FOR_VOLATILE, MAX_RANK, diagnostic, placement, predict
from dmlsplit.onnxruntime.scopes import SessionModel
from dmlsplit.onnxruntime.session_graph import Placed, SessionGraph
from dmlsplit.system.printable import printable
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.runtime_answers import Outcome, RuntimeAnswer


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
    """The fused graph that a node is in: `leading_out` of it, None where it is none, and its `_count`; `place` is the
    node's own."""

    leading: frozenset[int] | None
    count: int | None
    place: Place


def answers(model: SessionModel, runtime: Runtime, options: SessionOptions) -> list[NodeOnRuntime]:
    """The answers of all graphs of a model, the inner ones first."""
    found: list[tuple[NodeOnRuntime, Place]] = []
    failures = [Failure(LOADING, why) for why in model.refused]
    graphs = SessionGraph.of_model(model, runtime, options)
    for graph, place in zip(graphs, _places(graphs), strict=True):
        found += _of_graph(graph, place, failures)
    known = with_failures([(node.path, place, node.answer) for node, place in found], failures)
    return [replace(node, answer=answer) for (node, _), answer in zip(found, known, strict=True)]


def _places(graphs: Sequence[SessionGraph]) -> list[Place]:
    """For graphs, each behind those in its nodes, the place of a node that is not fused.

    Fused graphs are made in the order of the walk over nodes, kernels in that of the file.
    """
    number = {id(graph): i for i, graph in enumerate(graphs)}

    def way(graph: SessionGraph) -> tuple[tuple[int, int], ...]:
        """The nodes that it is within, as the walk comes to them, and which graph it is in there."""
        around = graph.parent
        if around is None:
            return ()
        return *way(around), (around.walk.get(graph.scope.steps[-1][0], -1), number[id(graph)])

    behind = max(len(graph.nodes) for graph in graphs), 0
    inward = {id(graph): i for i, graph in enumerate(sorted(graphs, key=lambda graph: (*way(graph), behind)))}
    outward = sorted(graphs, key=lambda graph: [place for _, place in way(graph)])
    found = {id(graph): Place(inward[id(graph)], i, None, 0) for i, graph in enumerate(outward)}
    return [found[id(graph)] for graph in graphs]


def _of_graph(graph: SessionGraph, place: Place, failures: list[Failure]) -> list[tuple[NodeOnRuntime, Place]]:
    """The answers of one graph, whose nodes have their places at `place`; appended to `failures` is what else keeps the
    session from being made."""
    options = replace(graph.options, graph_fusion=graph.fuses)
    facts = facts_in(graph)
    neighbours = graph.once("neighbours", lambda: [graph.placed(i) for i in graph.order() if i not in facts])
    fused = frozenset(i for i, known in facts.items() if placement(known, graph.runtime, options=options).in_graph)
    groups, failing = graph.once(("groups", fused), lambda: _groups(graph, place, neighbours, facts, fused))
    failures += failing
    refused = list(refusals(graph)) if graph.runtime.observed else []
    for each in refused:
        if each.certain and facts.keys().isdisjoint(each.members):
            failures.append(Failure(min(groups[i].place.compilation for i in each.members), each.why))
    against = {i: each for each in refused for i in each.members}
    found = []
    for index, known in facts.items():
        kept, path, run = graph.once(("asked", index), partial(_asked, graph, index))
        group = groups[kept]
        answer = predict(facts[kept], graph.runtime, path=path, first_run=run, options=options, graph_nodes=group.count)
        answer = in_context(graph, kept, path, answer, group.leading, against.get(kept))
        if kept != index and answer.outcome in (Outcome.DML, Outcome.CPU):
            note = diagnostic("onnxruntime/computed-once", path, f"it computes what {graph.path(kept)} does")
            answer = replace(answer, diagnostics=(*answer.diagnostics, note))
        found.append((NodeOnRuntime(path, graph.nodes[index].op_type, known, answer), group.place))
    return found


def _asked(graph: SessionGraph, index: int) -> tuple[int, str, FirstRun | None]:
    """The node that computes what one of them does, what it is called, and the sizes of the first Run."""
    kept = _kept(graph, index)
    return kept, graph.path(index), first_run(graph, kept)


def _groups(
    graph: SessionGraph,
    place: Place,
    neighbours: Sequence[Placed],
    facts: Mapping[int, RuntimeFacts],
    fused: frozenset[int],
) -> tuple[dict[int, _Group], list[Failure]]:
    """The fused graph that each node is in, if any, and what fails of neighbours and of graphs without Splits."""
    in_graph = {
        **dict.fromkeys(facts, False),
        **dict.fromkeys(fused, True),
        **{n.index: n.in_graph for n in neighbours},
    }
    order = graph.order()
    rows = [
        PlacedNode(tuple(map(graph.source, graph.nodes[i].input)), tuple(graph.nodes[i].output), in_graph[i])
        for i in order
    ]
    certain = [tuple([order[i] for i in group]) for group in partitions(rows)]
    possible = [tuple([order[i] for i in group]) for group in partitions(rows, unknown=True)]
    largest = {i: group for group in possible for i in group}
    most = {i: count for group in possible for count in [_at_most(graph, group)] for i in group}
    found = {i: _Group(None, None, replace(place, index=i)) for i in range(len(graph.nodes))}
    failures = []
    for number, group in enumerate(certain):
        count, leading = _count(graph, group, most.get(group[0])), leading_out(graph, group)
        positions = {index: position for position, index in enumerate(group)}
        for index, position in positions.items():
            reader = min((positions[i] for i in graph.followers(index) if i in positions), default=None)
            found[index] = _Group(leading, count, replace(place, fused=number, index=position, reader=reader))
        if group == largest.get(group[0]) and facts.keys().isdisjoint(group) and not leading:
            why = f"nothing reads what the fused graph of {graph.path(group[0])} computes"
            failures.append(Failure(found[group[0]].place.compilation, why))
    failures += [Failure(OPTIMIZING, why) for why in _incomplete_gemms(graph)]
    failures += [Failure(LOADING, why, certain=False) for why in map(partial(_doubt, graph), neighbours) if why]
    failures += [Failure(found[n.index].place.kernel, rank) for n in neighbours if (rank := _beyond_rank(graph, n))]
    return found, failures


def _kept(graph: SessionGraph, index: int) -> int:
    """The node itself, or the one that computes its outputs where it is removed."""
    if not graph.removed(index):
        return index
    origins = (graph.origin(name) for name in graph.nodes[index].output if name)
    return next((i for i in origins if i is not None and not graph.removed(i)), index)


def _at_most(graph: SessionGraph, group: Sequence[int]) -> int:
    return sum(not absorbed(graph, i) for i in group)


def _count(graph: SessionGraph, certain: Sequence[int], most: int | None) -> int | None:
    """The nodes of a fused graph; None where optimization or unknown nodes leave open on which side of 5 that is.

    `most`: as many as it has with all nodes of which it is not known."""
    most = _at_most(graph, certain) if most is None else most
    least = sum(stays(graph, i) and not absorbed(graph, i) for i in certain)
    return most if least >= LEAST_NODES_FOR_VOLATILE or most < LEAST_NODES_FOR_VOLATILE else None


def _beyond_rank(graph: SessionGraph, place: Placed) -> str | None:
    """Why a neighbour fails session creation, if its rank does that."""
    shapes = [graph.shape(name) for name in graph.nodes[place.index].input if name]
    rank = max((len(shape) for shape in shapes if shape is not None and is_static(shape)), default=0)
    if not place.on_dml or rank <= MAX_RANK:
        return None
    return f"{graph.path(place.index)} has a static tensor of rank {rank}"


def _doubt(graph: SessionGraph, place: Placed) -> str:
    """Why a neighbour may keep the session from being made."""
    node = graph.nodes[place.index]
    domain, path = domain_of(node), graph.path(place.index)
    if domain not in DOMAINS:
        return f"{path} is of the domain {printable(domain, 60)}, which ONNX Runtime does not have by itself"
    read = [graph.scope.type_of(name)[0] for name in node.input[:1]]
    if place.on_dml is None and read and read[0] in FOUR_BITS:
        return f"whether there is a kernel for {path} is not known: {read[0]}"
    return ""


def _incomplete_gemms(graph: SessionGraph) -> Iterator[str]:
    """Each Gemm of two inputs that an activation is put into: what comes of that has to have three. Observed."""
    for index, _ in graph.alive:
        producer = graph.origin(graph.nodes[index].input[0]) if absorbed(graph, index) else None
        if producer is None or graph.nodes[producer].op_type != "Gemm" or not graph.implemented(producer):
            continue
        if sum(name != "" for name in graph.nodes[producer].input) < 3:
            yield f"{graph.path(producer)} has no C, and the activation behind it is put into it"
