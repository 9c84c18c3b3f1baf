"""The fused parts of one graph of a model in its session.

ONNX Runtime runs the passes that follow placement, and partitions the graph into parts that it fuses; each becomes one
DirectML graph (graph_build.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dmlsplit.descriptors.dims import is_static
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Doubt, Graph, Node, Value
from dmlsplit.onnxruntime.fused import FusedGraph, Part, SessionGraphs
from dmlsplit.onnxruntime.graph_build import GraphBuilder
from dmlsplit.onnxruntime.node_placement import fused_ends, in_graphs
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.optimization import moved, optimized
from dmlsplit.onnxruntime.partitions import partitions
from dmlsplit.onnxruntime.passes.unfollowed import followed, fusible
from dmlsplit.onnxruntime.session_graph import SessionGraph

_UNBOUNDED: Final = 1 << 32
"""The most nodes of a part in which Transposes may be moved, or in which several nodes replace one: their number may
grow."""


def session_graphs(graph: SessionGraph) -> SessionGraphs:
    """Returns the DirectML graphs of one graph of a model in its session; sessions in which they are equal share
    them."""
    return graph.once(("graphs", graph.runtime), lambda: _shared(graph))


def _shared(graph: SessionGraph) -> SessionGraphs:
    made = optimized(graph)
    order = made.walk()
    places: tuple[bool | None, ...] = ()
    """For each node, True if it can be in a fused graph, False if not, None if that is unknown; empty if no node
    can."""
    ends: dict[Node, tuple[Value, ...]] = {}
    """The outputs of replaced nodes that the last of the replacing nodes compute in a fused graph, if there are any."""
    if graph.fuses:
        places = tuple(in_graphs(graph, order))
        ends = {node: last for node in order if (last := fused_ends(graph, node))}
    key = "graphs of places", graph.fusions, places, tuple(ends.items())
    return graph.once(key, lambda: _graphs(graph, made, order, places, ends))


def _graphs(
    graph: SessionGraph,
    after: Graph,
    order: Sequence[Node],
    places: Sequence[bool | None],
    ends: Mapping[Node, Sequence[Value]],
) -> SessionGraphs:
    """Returns the fused parts of the nodes of `after`, the optimized graph, in the order of its walk. `places` and
    `ends` are as in `_shared`."""
    judged = [node.index for node in order if node.op_type in JUDGED]
    lost = [node for node in order if node.unwritten]
    doubted = [node for node in lost if _may_stay_apart(graph, node)]
    found = SessionGraphs(
        unwritten=[_unwritten(graph, node) for node in lost if node not in doubted],
        perhaps_unwritten=[_unwritten(graph, node) for node in doubted],
        unfit={_first(graph, node): why for node in order if node.absorbed and (why := _unfit(graph, node))},
        judged=dict.fromkeys(map(graph.path, sorted(judged))),
    )
    if places:
        groups = partitions(order, [place is True for place in places], ends)
        possible = partitions(order, [place is not False for place in places], ends) if None in places else groups
        largest = {node: group for group in possible for node in group}
        parts = _Parts(graph, after)
        found.parts = [parts.made(group, largest[group[0]]) for group in groups]
    return found


def _unwritten(graph: SessionGraph, node: Node) -> tuple[str, str, str]:
    """Returns the name of the output that is never computed, and the path and operator of the first node that the node
    replaces."""
    first = _first(graph, node)
    return node.unwritten, graph.path(first), graph.nodes[first].op_type


def _may_stay_apart(graph: SessionGraph, node: Node) -> bool:
    """True if it is not certain that the activation behind a node is fused into it."""
    return Doubt.TRANSPOSED in node.doubts or any(graph.on_dml(index) is None for index in node.origins)


class _Parts:
    """Builds the parts of a graph."""

    def __init__(self, graph: SessionGraph, after: Graph) -> None:
        self._graph = graph
        self._after = after
        optimizes = graph.options.optimization >= 1
        knows_moves = after is moved(graph)
        self._followed = followed(after, knows_moves) if optimizes else set(after.nodes)
        self._fusible = fusible(after) if optimizes else set()
        self._of_largest: dict[Node, tuple[bool, FusedGraph | None]] = {}
        self._most_nodes: dict[Node, int] = {}

    def made(self, nodes: Sequence[Node], largest: Sequence[Node]) -> Part:
        """Returns the Part for nodes that are certainly fused; `largest` are all nodes that may be fused with them."""
        fails = any(_is_refused(self._graph, node) for node in nodes)
        builder = GraphBuilder(self._graph, self._after, nodes, self._fusible)
        alive = builder.alive()
        sized = _are_sized(self._graph, nodes)
        complete = largest == nodes
        variants: list[FusedGraph] = []
        if sized and not fails and complete:
            variants = [builder.built(alive)] if alive else []
        elif not fails and not complete:
            if largest[0] not in self._of_largest:  # many parts may share these nodes
                self._of_largest[largest[0]] = self._whole(largest)
            other_sized, other = self._of_largest[largest[0]]
            if sized and other_sized:
                variants = [builder.built(alive)] * bool(alive) + ([other] if other is not None else [])
        position = {node: i for i, node in enumerate(nodes)}
        readers = [[position[reader] for reader in node.readers if reader in position] for node in nodes]
        return Part(
            tuple([self._graph.path(node.index) for node in nodes]),
            tuple([node.origins for node in nodes]),
            tuple([min(each, default=None) for each in readers]),
            frozenset(index for node in alive for index in node.origins),
            sum(node in self._followed for node in nodes),
            self._most(largest),
            complete,
            sized,
            fails,
            tuple(variants),
        )

    def _most(self, largest: Sequence[Node]) -> int:
        """Returns the largest number of nodes that the part with these nodes can have."""
        if largest[0] not in self._most_nodes:
            more = any(Doubt.TRANSPOSED in n.doubts or self._graph.on_dml(n.index) is False for n in largest)
            self._most_nodes[largest[0]] = _UNBOUNDED if more else len(largest)
        return self._most_nodes[largest[0]]

    def _whole(self, nodes: Sequence[Node]) -> tuple[bool, FusedGraph | None]:
        """Returns True if the sizes of all nodes are known, and the graph of the nodes; None instead of the graph if
        the sizes are not known, or if nothing reads an output of the nodes."""
        builder = GraphBuilder(self._graph, self._after, nodes, self._fusible)
        alive = builder.alive()
        sized = _are_sized(self._graph, nodes)
        return sized, builder.built(alive) if sized and alive else None


def _first(graph: SessionGraph, node: Node) -> int:
    """Returns the index of the first node that a fused node replaces, without Transposes."""
    return next((index for index in node.absorbed if graph.nodes[index].op_type != "Transpose"), node.absorbed[0])


def _unfit(graph: SessionGraph, node: Node) -> str:
    """Returns why session creation fails since an activation is fused into a node, as the end of a sentence about the
    node; "" if it does not fail, or if there is no activation."""
    if graph.nodes[node.index].op_type not in row_of(node.op_type).absorbs:
        return ""
    if node.op_type == "Gemm" and (len(node.inputs) < 3 or node.inputs[2].name == ""):
        return "has no C"
    # the fused operator lacks the attribute axes, which its schema always sets
    return "has axes" if node.op_type == "MeanVarianceNormalization" else ""


def _is_refused(graph: SessionGraph, node: Node) -> bool:
    """True for a Split that fails before its graph is created: an output has no name, or no elements."""
    return node.op_type == "Split" and any(not v.name or 0 in (graph.shape(v.name) or ()) for v in node.outputs)


def _are_sized(graph: SessionGraph, nodes: Sequence[Node]) -> bool:
    """True if the nodes' outputs have static shapes, and every known size of inputs and outputs fits the 32-bit
    unsigned integers of descriptors."""
    made = {value.known for node in nodes for value in node.outputs if value.name}
    shapes = set(map(graph.shape, made))
    if not all(map(is_static, shapes)):
        return False
    read = {value.known for node in nodes for value in node.inputs if value.name}
    shapes.update(map(graph.shape, read - made))
    return all(0 <= dim < 2**32 for shape in shapes for dim in shape or () if isinstance(dim, int))
