"""One graph of a model in its session after all passes: what is fused, created and submitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Graph, Node
from dmlsplit.onnxruntime.passes import MOVES, PASSES, run, show
from dmlsplit.onnxruntime.passes.transpose_optimizer import doubt_moves, has_quantized, move_transposes
from dmlsplit.onnxruntime.passes.transposed_tensors import UnsureError
from dmlsplit.onnxruntime.session_graph import SessionGraph

_OF_LEVEL_1: Final = tuple([each for each in PASSES if each.level <= 1])
_OF_LEVEL_2: Final = tuple([each for each in PASSES if each.level > 1])


def optimized(graph: SessionGraph) -> Graph:
    """Returns a copy of the graph after all passes; the same object for each call. If it is not known which Transposes
    are moved, none is, and the nodes over which one may be moved have Doubt.TRANSPOSED."""
    return graph.once(("optimized", graph.fusions), lambda: moved(graph) or _optimized(graph))


def moved(graph: SessionGraph) -> Graph | None:
    """Returns the result of `optimized` if it is known where the graph's Transposes are moved; None if it is not, or if
    there are none."""
    return graph.once(("moved", graph.fusions), lambda: _moved(graph))


def standing_for(graph: SessionGraph) -> Mapping[int, int]:
    """Maps the index of each node that was fused into another before nodes were placed to the index of that node, if it
    remains after all passes."""
    nodes = () if graph.is_removed else optimized(graph).nodes
    return {index: node.index for node in nodes for index in node.fused_before}


def indices_left(graph: SessionGraph) -> set[int]:
    """Returns the indices of the nodes of the model's graph that remain after all passes, alone or in a fused node."""
    nodes = () if graph.is_removed else optimized(graph).nodes
    return {index for node in nodes if not node.is_inserted for index in node.origins}


def judged_after(graph: SessionGraph) -> Mapping[int, Node]:
    """Maps the index of each Split and Concat that the passes leave to the node after them."""

    def found() -> Mapping[int, Node]:
        return {node.index: node for node in optimized(graph).nodes if node.op_type in JUDGED}

    return graph.once(("judged after", graph.fusions), found)


def _optimized(graph: SessionGraph) -> Graph:
    """Returns a copy of the graph after all passes except the one that moves Transposes. If that pass may move any, the
    nodes over which it may move one have Doubt.TRANSPOSED."""
    made = graph.graph.copy(graph)
    if _moves_transposes(graph):
        doubt_moves(made)
    run(PASSES, made, graph.options.optimization)
    return made


def _moves_transposes(graph: SessionGraph) -> bool:
    """Returns True if the moves of the graph's Transposes can be followed: False without Transposes, below level 1, and
    with quantized tensors."""
    level, operators = graph.options.optimization, graph.graph.operators
    return level >= 1 and "Transpose" in operators and not has_quantized(graph.graph)


def _moved(graph: SessionGraph) -> Graph | None:
    """Returns a copy of the graph after all passes; None if no Transposes are followed, or if it is not known where one
    is moved."""
    if not _moves_transposes(graph):
        return None
    made, level = (graph.graph.before_moves or graph.graph).copy(graph), graph.options.optimization
    run(_OF_LEVEL_1, made, level)
    try:
        moved_over = move_transposes(made)
    except UnsureError:
        return None
    show(MOVES, made)
    if moved_over:
        run(_OF_LEVEL_1, made, level)
    run(_OF_LEVEL_2, made, level)
    return made
