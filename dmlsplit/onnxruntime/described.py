"""The operators that ONNX Runtime submits for the nodes of a model other than Split and Concat, and their errors by
DirectML's tables."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Doubt, Graph, Node
from dmlsplit.onnxruntime.kernels import copies
from dmlsplit.onnxruntime.kernels.facts import KernelFacts, NotDescribedError
from dmlsplit.onnxruntime.kernels.table import CHANGED, KERNELS
from dmlsplit.onnxruntime.node_placement import cell_after, is_created, placed
from dmlsplit.onnxruntime.operator_traits import FUSED_MATMUL, RESHAPED_GEMM
from dmlsplit.onnxruntime.operators import EXPANDED
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.onnxruntime.passes.unfollowed import may_have_attention
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.targets.releases import Release
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.target import target_of
from dmlsplit.verdicts.any_operator import evaluate_any
from dmlsplit.verdicts.model_placements import NodeOperators

_WITHOUT: Final = (*JUDGED, "Constant", "Shape", "Size", "If")
"""Operators whose answers node_prediction.py gives, and operators that submit nothing."""

_TRANSPOSED_ON_CPU: Final = frozenset({"MaxPool", "Resize"})
"""Operators over which Transposes are moved after placement if they are on the CPU."""
_PRODUCTS: Final = frozenset({"MatMul", FUSED_MATMUL})
_AROUND_MATMUL: Final = _PRODUCTS | {"Transpose", "Mul", "Div", "Add", "Softmax"}


def operators_of(graphs: Sequence[SessionGraph]) -> tuple[NodeOperators, ...]:
    """Returns a record of each node of the graphs on DirectML, other than Split and Concat, with the DirectML operators
    that it submits, or why these are not known; in the order of the graphs."""
    return tuple([each for graph in graphs for each in operators_in(graph)])


def refusals(found: Iterable[NodeOperators], runtime: Runtime) -> Iterator[Diagnostic]:
    """Yields the errors of the nodes' operators by the tables of the DirectML that `runtime` ships; the location of
    each has the node's path. Yields nothing for nodes whose operators are not known."""
    for each in found:
        for desc in each.operators:
            for said in _against(desc, runtime.release):
                yield replace(said, location=replace(said.location, node=each.path))


@lru_cache(maxsize=4096)
def _against(desc: AnyOperatorDesc, release: Release) -> tuple[Diagnostic, ...]:
    """Returns the errors of a descriptor by the tables of a release. Cached, since many nodes of a model have equal
    operators."""
    return tuple(evaluate_any(desc, target_of(release)).errors)


def operators_in(graph: SessionGraph) -> Sequence[NodeOperators]:
    """Returns what `operators_of` returns, for one graph: its nodes after all optimization passes, in order."""
    after = optimized(graph)
    # sessions that make the same nodes and place all nodes alike share this cache
    created = tuple([cell_after(graph, node) for node in after.nodes if is_created(graph, node)])
    changed = CHANGED.keys() & {node.op_type for node in after.nodes}
    key = "operators", graph.fusions, created, frozenset([op for op in changed if graph.runtime.key >= CHANGED[op]])
    return graph.once(key, lambda: tuple(_operators_in(graph, after)))


def _operators_in(graph: SessionGraph, after: Graph) -> Iterator[NodeOperators]:
    changed = _changed(graph, after)
    made: dict[object, Sequence[AnyOperatorDesc]] = {}
    for node in after.walk():
        place = placed(graph, node)
        if node.op_type in _WITHOUT or place.on_dml is not True:
            continue
        path = graph.path(node.index)
        try:
            doubted = node in changed or bool(node.doubts)
            yield NodeOperators(path, tuple(_submitted(graph, node, doubted, place.in_graph, made)))
        except NotDescribedError as why:
            yield NodeOperators(path, (), str(why))
        except (ArithmeticError, LookupError, TypeError, ValueError):  # files say anything: a type, a number, a length
            yield NodeOperators(path, (), "its attributes or tensors do not match its schema")


def _submitted(
    graph: SessionGraph,
    node: Node,
    is_changed: bool,
    in_graph: bool | None,
    made: dict[object, Sequence[AnyOperatorDesc]],
) -> Sequence[AnyOperatorDesc]:
    """Returns the DirectML operators of a node. `is_changed`: True if passes that are not modelled may change it;
    `in_graph`: True if it is in a fused graph, None if that is not known. Raises NotDescribedError if the operators
    are not known.

    `made` caches the operators of earlier nodes without constants, by everything that kernels read of a node.
    """
    beside = (node, *node.producers, *node.readers)
    inserted = any(value.like is not None for value in (*node.inputs, *node.outputs))
    inserted = inserted and not any(each.op_type == RESHAPED_GEMM for each in beside)
    if is_changed or inserted:
        raise NotDescribedError("optimization may change it")
    if cell_after(graph, node) in EXPANDED:
        raise NotDescribedError("the nodes of its function replace it")
    kernel = KERNELS.get(node.op_type)
    if kernel is copies.moved and in_graph is False:
        return ()  # the execution provider copies by itself
    if graph.parent is not None and not in_graph:
        raise NotDescribedError("it is in a subgraph of a node, and in no fused graph")
    if kernel is copies.moved and in_graph is None:
        raise NotDescribedError("it is not known whether it is in a fused graph")
    if kernel is None:
        raise NotDescribedError("the operators of its kernel are not modelled")
    values = (*node.inputs, *node.outputs)
    if kernel is copies.moved or node.absorbed or any(graph.is_initializer(value.known) for value in node.inputs):
        return kernel(KernelFacts(graph, node))
    first = {value: place for place, value in reversed(list(enumerate(values)))}
    key = (
        node.op_type,
        len(node.inputs),
        tuple([(first[v], bool(v.name), graph.data_type(v.known_type), graph.shape(v.known)) for v in values]),
        *[each.SerializeToString() for each in node.proto.attribute],
    )
    if key not in made:
        made[key] = kernel(KernelFacts(graph, node))
    return made[key]


def _changed(session: SessionGraph, graph: Graph) -> set[Node]:
    """Returns the nodes that may be changed by passes that are not modelled: MatMul nodes and their surroundings if
    these may be an attention, the neighbours of nodes of another domain, and nodes over which Transposes may be
    moved."""
    products = [node for node in graph.nodes if node.op_type in _PRODUCTS] if may_have_attention(graph) else []
    starts = [each for each in products if any(near.op_type in _AROUND_MATMUL for near in _neighbours(each))]
    over = {node for node in graph.nodes if Doubt.TRANSPOSED in node.doubts}
    on_cpu = {node for node in graph.nodes if node.op_type in _TRANSPOSED_ON_CPU}
    over |= {node for node in on_cpu if placed(session, node).on_dml is not True}
    removed = {near for node in over for near in (node, *_neighbours(node)) if near.op_type == "Transpose"}
    beside = {near for node in removed for near in _neighbours(node)}
    foreign = {near for node in graph.nodes if not node.op_type for near in _neighbours(node)}
    return _reached(starts, _AROUND_MATMUL) | over | removed | beside | foreign


def _neighbours(node: Node) -> Iterator[Node]:
    yield from node.readers
    yield from node.producers


def _reached(start: Iterable[Node], through: Container[str]) -> set[Node]:
    """Returns the nodes of `start`, and every node that a path in either direction reaches, if all nodes of the path
    after the first have operators in `through`."""
    found, todo = set(start), list(start)
    while todo:
        for near in _neighbours(todo.pop()):
            if near not in found and near.op_type in through:
                found.add(near)
                todo.append(near)
    return found
