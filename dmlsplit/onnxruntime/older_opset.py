"""The opset in which more nodes of a model run on DirectML: ONNX adds operator versions before DirectML has kernels.

Only opsets in which every node means the same as in the model (models/older_schemas.py) are considered; the best has
the most nodes on DirectML, the newest of equal ones. `check` advises it, and `legalize` writes the model in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dmlsplit.formats.onnx.protobuf import domain_of, has_graphs, text
from dmlsplit.models.older_schemas import at_older, types_at
from dmlsplit.onnxruntime.operators import Cell, is_on_dml
from dmlsplit.onnxruntime.optimization import indices_left
from dmlsplit.onnxruntime.ranks import beyond_rank
from dmlsplit.onnxruntime.session_graph import SessionGraph

_OLDEST: Final = 7


class OlderOpset(NamedTuple):
    """An older opset, and its effect. `operators` counts, by operator, the nodes that move to DirectML; `node` is one
    of them. `why` is the reason why the model cannot be converted to it, "" if it can."""

    opset: int
    operators: Counter[str]
    node: str
    why: str = ""


def older_opset(graphs: Sequence[SessionGraph], whole: Callable[[], Sequence[SessionGraph]]) -> OlderOpset | None:
    """Returns the older opset with the most nodes on DirectML, the newest of several; None if none has more than the
    model's own. Its `why` is set if every opset with more has an obstacle; it is then the newest of these.

    `graphs` are those of the session; `whole()` returns graphs with every node as it is in the file.
    """
    best: OlderOpset | None = None
    most = 0
    for opset in sorted(set(_candidates(graphs)), reverse=True):
        came, gain = _moved(graphs, opset)
        if gain <= most:
            continue
        why = next((found for graph in whole() for found in _against(graph, opset)), "")
        if why and best is not None:  # the same holds for every older opset
            break
        most, best = gain, OlderOpset(opset, Counter(operator for _, operator in came), came[0][0], why)
        if why:
            break
    return best


def _candidates(graphs: Sequence[SessionGraph]) -> Iterator[int]:
    """Yields for each node on the CPU the newest older opset at which it is on DirectML, if there is one."""
    for graph in graphs:
        for node in graph.order:
            cell = graph.cell(node.index)
            if cell is None or cell is Cell.FOLDED or is_on_dml(cell) or domain_of(node.proto) != "":
                continue
            for opset in range(graph.opset - 1, _OLDEST - 1, -1):
                then = graph.cell_at(node.index, opset)
                if then is not None and is_on_dml(then):
                    yield opset
                    break


def _moved(graphs: Sequence[SessionGraph], opset: int) -> tuple[list[tuple[str, str]], int]:
    """Returns (path, operator) of each node that is on DirectML in opset `opset` but not in the model's, and the
    increase in the number of nodes on DirectML; negative if there are fewer."""
    came, went = [], 0
    for graph in graphs:
        left = indices_left(graph)
        for node in graph.order:
            if node.index not in left:
                continue
            cell, then = graph.cell(node.index), graph.cell_at(node.index, opset)
            if cell is None or cell is Cell.FOLDED:
                continue
            before, after = is_on_dml(cell), then is not None and is_on_dml(then)
            if after and not before:
                came.append((graph.path(node.index), node.proto.op_type))
            went += before and not after
    return came, len(came) - went


def different_at(graphs: Sequence[SessionGraph], opset: int) -> str:
    """Returns, as text, the first node with another meaning in the older opset `opset` than in the model's, and why; ""
    if every node means the same in both."""
    return next((found for graph in graphs for found in _different(graph, opset)), "")


def types_not_taken_at(graphs: Sequence[SessionGraph], opset: int) -> str:
    """Returns, as text, the first node with graphs inside whose operator, in opset `opset`, does not accept the types
    of the node's tensors, and why; "" if there is no such node."""
    for graph in graphs:
        for index, node in enumerate(graph.nodes):
            if domain_of(node.proto) == "" and has_graphs(node.proto):
                why = types_at(text(node.proto.op_type), opset, *graph.types_of_tensors(index))
                if why:
                    return f"{graph.path(index)}: {why}"
    return ""


def _different(graph: SessionGraph, opset: int) -> Iterator[str]:
    for index, node in enumerate(graph.nodes):
        inputs, outputs = graph.types_of_tensors(index)
        found = at_older(node.proto, inputs, outputs, graph.opset, opset)
        if found.why:
            yield f"{graph.path(index)}: {found.why}"


def _against(graph: SessionGraph, opset: int) -> Iterator[str]:
    """Yields, as text, the nodes of a graph that have another meaning in an older opset, or fail session creation in
    it."""
    yield from _different(graph, opset)
    for index in range(len(graph.nodes)):
        then = graph.cell_at(index, opset)
        if then in (Cell.FAILS, Cell.FAILS_WITH_CPU, Cell.NO_KERNEL) and graph.cell(index) is not then:
            yield f"{graph.path(index)}: the session fails at it with opset {opset}"
        if then is not None and is_on_dml(then) and (beyond := beyond_rank(graph, index, opset)):
            yield f"{graph.path(index)}: DirectML's kernel does not accept tensors of rank {beyond.rank}"
