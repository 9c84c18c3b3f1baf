"""The graphs of a session that are passed to CompileGraph."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import onnx

from dmlsplit.graphs.descriptors import GraphDesc, node_type
from dmlsplit.graphs.program import CompiledGraph
from dmlsplit.models.once import Once
from dmlsplit.onnxruntime.operator_traits import Kind

Tensor: TypeAlias = tuple[int, int]
"""Output k of a node of a fused graph: (node, k); (-1, k) is input k of the graph."""


@dataclass(eq=False, repr=False)
class FusedGraph:
    """One graph for CompileGraph.

    `paths` has the path of the model's node for each node of the graph, `inputs` and `outputs` the names of the graph's
    inputs and outputs, `tensors` the names of each node's outputs.
    """

    label: str
    """The path of the model's graph that contains it, "" for the main graph."""
    desc: GraphDesc
    kinds: tuple[Kind, ...]
    paths: tuple[str, ...]
    ops: tuple[str, ...]
    """The ONNX operator of each node."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: tuple[tuple[str, ...], ...]
    protos: tuple[onnx.NodeProto, ...]
    """The model's node for each node; optimization may have removed nodes between it and its producers."""
    model_outputs: frozenset[str]
    """The names in `outputs` that are outputs of the model's graph."""
    has_constants: bool = False
    """True if a constant is a node of the graph."""
    behind_transposes: frozenset[int] = frozenset()
    """The nodes over which ONNX Runtime may move a Transpose."""
    rectified: frozenset[int] = frozenset()
    """The nodes into which a Relu was fused."""
    constant: frozenset[int] = frozenset()
    """The nodes whose results are equal for all inputs."""

    once: Once = field(default_factory=Once, repr=False)
    """The judgements, shared by graphs that differ only in names: they contain indices and no names."""
    compiled: Once = field(default_factory=Once, repr=False)
    """The compiled graphs of the judgements. They are large, and can be freed while the judgements are kept."""

    def forget_compiled(self) -> None:
        """Frees the compiled graphs; they are compiled again when needed."""
        for each in self.compiled.values():
            if isinstance(each, CompiledGraph):
                each.release()
        self.compiled = Once()

    @cached_property
    def types(self) -> frozenset[int]:
        """The DML_OPERATOR_TYPEs of the nodes."""
        return frozenset(map(node_type, self.desc.nodes))

    @cached_property
    def reads(self) -> Mapping[int, Sequence[Tensor]]:
        """Maps each node to the tensors that it reads."""
        found: dict[int, list[Tensor]] = {}
        for tensor, node in self._edges():
            found.setdefault(node, []).append(tensor)
        return found

    @cached_property
    def readers(self) -> Mapping[Tensor, Sequence[int]]:
        """Maps each tensor to the nodes that read it."""
        found: dict[Tensor, dict[int, None]] = {}
        for tensor, node in self._edges():
            found.setdefault(tensor, {})[node] = None
        return {tensor: tuple(nodes) for tensor, nodes in found.items()}

    def outputs_of(self, node: int) -> Sequence[Tensor]:
        """Returns the tensors that a node computes."""
        return [(node, index) for index in range(len(self.tensors[node]))]

    def readers_of(self, node: int) -> Sequence[int]:
        """Returns the nodes that read any output of a node, in order."""
        return sorted({reader for tensor in self.outputs_of(node) for reader in self.readers.get(tensor, ())})

    def _edges(self) -> Iterator[tuple[Tensor, int]]:
        """Yields each tensor with each node that reads it."""
        for edge in self.desc.intermediate_edges:
            yield (edge.from_node_index, edge.from_node_output_index), edge.to_node_index
        for each in self.desc.input_edges:
            yield (-1, each.graph_input_index), each.to_node_index

    @cached_property
    def exits(self) -> frozenset[Tensor]:
        """The tensors that are outputs of the graph."""
        return frozenset((edge.from_node_index, edge.from_node_output_index) for edge in self.desc.output_edges)

    def nearest(self, start: int, wanted: frozenset[str]) -> int | None:
        """Returns the index of the node with one of the operators `wanted` that is the fewest edges away from the node
        with index `start`; of equally near ones, a producer before a reader. If no path leads to one, returns the
        index of the first such node; None if the graph has none."""
        return self.once(wanted, lambda: self._all_nearest(wanted))[start]

    def _all_nearest(self, wanted: frozenset[str]) -> list[int | None]:
        """Returns, for every node, the index of the node with one of these operators that is the fewest edges away, as
        `nearest` does; None for all if the graph has no such node."""
        found: list[int | None] = [node if op in wanted else None for node, op in enumerate(self.ops)]
        first = next((node for node in found if node is not None), None)
        distance = {node: 0 for node in found if node is not None}
        todo = deque(distance)
        while todo:
            node = todo.popleft()
            for other in self._beside(node):
                if other not in distance:
                    distance[other] = distance[node] + 1
                    todo.append(other)
        for node in distance:
            closer = (other for other in self._beside(node) if distance[other] < distance[node])
            found[node] = node if not distance[node] else found[next(closer)]
        return [first if node is None else node for node in found]

    def _beside(self, node: int) -> Sequence[int]:
        before = [source for source, _ in self.reads.get(node, ()) if source >= 0]
        return (*before, *self.readers_of(node))


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """The nodes that ONNX Runtime fuses into one graph, in its order.

    `origins` has for each node the indices of the nodes of the model's graph that it replaces. `first_readers` has for
    each node the first node of the part that reads it. `leading` are the indices of nodes of the model's graph on which
    an output of the part depends.
    """

    paths: tuple[str, ...]
    """The path of each node."""
    origins: tuple[tuple[int, ...], ...]
    first_readers: tuple[int | None, ...]
    leading: frozenset[int]
    least: int
    """The minimum and maximum number of nodes of the part: other passes may fuse some, and nodes that are not certainly
    in it may be."""
    most: int
    complete: bool
    """True if its nodes are known."""
    sized: bool
    """True if all sizes are known."""
    fails: bool
    """True if a Split in it fails before the graph is made."""
    variants: tuple[FusedGraph, ...]
    """The graph for CompileGraph; empty if nothing reads its results.

    If the part is not complete: the graph without the uncertain nodes, and the graph with them; empty if sizes are
    unknown.
    """

    @property
    def members(self) -> frozenset[int]:
        """The indices of the nodes of the model's graph that the part replaces."""
        return frozenset(index for origins in self.origins for index in origins)

    @property
    def is_known(self) -> bool:
        return self.complete and self.sized


@dataclass(slots=True, eq=False, repr=False)
class SessionGraphs:
    """The fused parts of one graph of a model."""

    parts: list[Part] = field(default_factory=list)
    """The parts in the order in which they are compiled."""
    unwritten: list[tuple[str, str, str]] = field(default_factory=list)
    """Outputs of the graph that are never computed, each with the path and operator of the node that computed it."""
    perhaps_unwritten: list[tuple[str, str, str]] = field(default_factory=list)
    """Outputs of the graph that may never be computed, in the form of `unwritten`."""
    unfit: dict[int, str] = field(default_factory=dict)
    """The indices of nodes that cannot have a fused activation but get one, each with the reason."""
    judged: dict[str, None] = field(default_factory=dict)
    """The paths of the Splits and Concats, in order."""

    @property
    def fused(self) -> list[FusedGraph]:
        """The graphs that are certainly passed to CompileGraph: the first variant of each known part, except dead
        ones."""
        return [part.variants[0] for part in self.parts if part.is_known and part.variants]

    @property
    def dead(self) -> list[Part]:
        """The parts whose results nothing reads: CompileGraph gets a graph without nodes."""
        return [part for part in self.parts if part.is_known and not part.leading and not part.fails]

    @property
    def doubtful(self) -> list[Part]:
        """The parts whose nodes or sizes are not all known."""
        return [part for part in self.parts if not part.is_known and not part.fails]

    @property
    def anchor(self) -> str | None:
        """The path of the Split or Concat at which faults of the whole graph are reported; None if there is none."""
        return next(iter(self.judged), None)
