"""All graphs of a model in a session: made once for all versions of ONNX Runtime for which they are equal, and freed
together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dmlsplit.models.graph import Graph, cut
from dmlsplit.models.once import Once
from dmlsplit.models.scope import Scope
from dmlsplit.onnxruntime.fused import SessionGraphs
from dmlsplit.onnxruntime.scopes import SessionModel
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions


def graphs_of_model(model: SessionModel, runtime: Runtime, options: SessionOptions) -> list[SessionGraph]:
    """Returns all graphs of a model in a session, in the order of `new_graphs`; runtimes share everything that is equal
    for them."""
    first = model.once(options, lambda: list(new_graphs(model, runtime, options)))
    return model.once((options, runtime), lambda: _for_runtime(first, runtime))


def new_graphs(model: SessionModel, runtime: Runtime, options: SessionOptions) -> Iterator[SessionGraph]:
    """Yields the graphs of a model in a session, each after the graphs inside its nodes: ONNX Runtime fuses the inner
    ones first. They are not cached."""
    return _with_inner(partial(SessionGraph, model, runtime, options), model.session, model.run, None)


def _with_inner(
    new_graph: Callable[[Scope, Scope | None, SessionGraph | None], SessionGraph],
    scope: Scope,
    run_scope: Scope | None,
    parent: SessionGraph | None,
) -> Iterator[SessionGraph]:
    """Yields the graph of `scope` after the graphs inside its nodes. `run_scope` is its scope at the first Run, if it
    has one; `parent` is the graph around it. `new_graph` returns the graph of these three."""
    graph = new_graph(scope, run_scope, parent)
    inner: list[SessionGraph] = []
    for index, inside in graph.inside.items():
        inner_run = dict(run_scope.children(index)) if run_scope is not None else {}
        for name, child in inside:
            inner += _with_inner(new_graph, child, inner_run.get(name), graph)
    graph.settle([each for each in inner if each.parent is graph])
    yield from inner
    yield graph


def _for_runtime(graphs: Sequence[SessionGraph], runtime: Runtime) -> list[SessionGraph]:
    """Returns the graphs of a model in a session of another runtime, in the same order."""
    if graphs[0].runtime == runtime:
        return list(graphs)
    found: dict[int, SessionGraph] = {}
    for graph in reversed(graphs):  # each graph follows the graphs inside its nodes
        found[id(graph)] = graph.in_session_of(runtime, None if graph.parent is None else found[id(graph.parent)])
    made = list(reversed(found.values()))
    inner: dict[int, list[SessionGraph]] = {}
    changed: set[int] = set()
    for before, graph in zip(graphs, made, strict=True):
        if id(graph) in changed:
            graph.settle(inner[id(graph)])
        if graph.parent is not None:
            inner.setdefault(id(graph.parent), []).append(graph)
            if graph.graph is not before.graph or id(graph) in changed:
                changed.add(id(graph.parent))
    return made


def release(model: SessionModel) -> None:
    """Frees the graphs of a model, which cannot be used afterwards: reference counts alone would keep them alive."""
    graphs = [each for made in model.once.values() if isinstance(made, list) for each in made]
    for graph in {id(each.once): each for each in graphs}.values():  # what several sessions share
        cut(graph.nodes)
        for made in (graph.graph, *graph.once.values()):
            if isinstance(made, Graph):
                made.release()
            elif isinstance(made, SessionGraphs):
                for variant in (each for part in made.parts for each in part.variants):
                    variant.forget_compiled()
    for graph in graphs:
        vars(graph).clear()
    model.once = Once()
