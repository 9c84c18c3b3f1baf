"""The graphs of a session, as they are handed to CompileGraph."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from dmlsplit.graphs.descriptors import GraphDesc
from dmlsplit.models.once import Once
from dmlsplit.onnxruntime.lowered import Kind

Tensor: TypeAlias = tuple[int, int]
"""Output k of a node of a fused graph: (node, k); (-1, k) is input k of the graph."""


@dataclass(eq=False)
class FusedGraph:
    """One graph that is handed to CompileGraph.

    `paths` names the node of the model that each node of the graph comes of, `inputs` and `outputs` are the names of
    the tensors at the graph's ends, `tensors` those of each node's outputs.
    """

    label: str
    """The graph of the model that it lies in, "" for the main one."""
    desc: GraphDesc
    kinds: tuple[Kind, ...]
    paths: tuple[str, ...]
    ops: tuple[str, ...]
    """The ONNX operator that each node comes of."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: tuple[tuple[str, ...], ...]
    read: tuple[frozenset[str], ...]
    """The names that the model's node reads, of each node: optimization may take away what is between."""
    model_outputs: frozenset[str]
    """Those of `outputs` that are outputs of the model's graph."""
    has_constants: bool = False
    """Whether some constant is a node of its own."""
    behind_transposes: frozenset[int] = frozenset()
    """Nodes that ONNX Runtime may move a Transpose over."""

    once: Once = field(default_factory=Once, repr=False)
    """The judgements, which have numbers for nodes and tensors, and no names: those of graphs that differ in names only
    are made once."""
    compiled: Once = field(default_factory=Once, repr=False)
    """The values that its judgements rest on, which are large; they are kept without these."""

    @cached_property
    def reads(self) -> Mapping[int, Sequence[Tensor]]:
        """By node: the tensors that it reads."""
        found: dict[int, list[Tensor]] = {}
        for tensor, node in self._edges():
            found.setdefault(node, []).append(tensor)
        return found

    @cached_property
    def readers(self) -> Mapping[Tensor, Sequence[int]]:
        """By tensor: the nodes that read it."""
        found: dict[Tensor, dict[int, None]] = {}
        for tensor, node in self._edges():
            found.setdefault(tensor, {})[node] = None
        return {tensor: tuple(nodes) for tensor, nodes in found.items()}

    def outputs_of(self, node: int) -> Sequence[Tensor]:
        """The tensors that a node computes."""
        return [(node, index) for index in range(len(self.tensors[node]))]

    def readers_of(self, node: int) -> Sequence[int]:
        """The nodes that read what a node computes."""
        return sorted({reader for tensor in self.outputs_of(node) for reader in self.readers.get(tensor, ())})

    def _edges(self) -> Iterator[tuple[Tensor, int]]:
        """Each tensor with a node that reads it."""
        for edge in self.desc.intermediate_edges:
            yield (edge.from_node_index, edge.from_node_output_index), edge.to_node_index
        for each in self.desc.input_edges:
            yield (-1, each.graph_input_index), each.to_node_index

    @cached_property
    def exits(self) -> frozenset[Tensor]:
        """The outputs of nodes that are outputs of the graph."""
        return frozenset((edge.from_node_index, edge.from_node_output_index) for edge in self.desc.output_edges)

    def nearest(self, start: int, wanted: frozenset[str]) -> int | None:
        """The node of one of these operators that is the fewest edges away: of what `start` reads before of what reads
        it, the first one where no edges lead to any."""
        return self.once(wanted, lambda: self._all_nearest(wanted))[start]

    def _all_nearest(self, wanted: frozenset[str]) -> list[int | None]:
        """The same of every node: level by level from those that are wanted."""
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


@dataclass(eq=False, slots=True)
class Part:
    """The nodes of one graph that ONNX Runtime fuses, in the order in which it has them.

    `origins` are the nodes of the model's graph that each node comes of, by index: its own, and those that became part
    of it. `first_readers` are the first nodes of the part that read what each gives. `leading` are the nodes of the
    model's graph that lead to what leaves the part.
    """

    paths: tuple[str, ...]
    """The name of each node."""
    origins: tuple[tuple[int, ...], ...]
    first_readers: tuple[int | None, ...]
    leading: frozenset[int]
    least: int
    """The nodes that it has at least, and at most: optimization that is not followed here may make fewer of them, and
    nodes of which it is not known may be in it."""
    most: int
    complete: bool
    """Whether it is known which nodes are in it."""
    sized: bool
    """Whether all sizes are known."""
    fails: bool
    """Whether a Split in it fails before the graph is made."""
    variants: tuple[FusedGraph, ...]
    """The graph that is handed to CompileGraph, none where nothing reads what it computes. Where it is not complete:
    the graph without the nodes that may not be in it, and with them; none where sizes are not known."""

    @property
    def members(self) -> frozenset[int]:
        """The nodes of the model's graph that it comes of."""
        return frozenset(index for origins in self.origins for index in origins)

    @property
    def is_known(self) -> bool:
        return self.complete and self.sized


@dataclass(eq=False, slots=True)
class SessionGraphs:
    """What one graph of a model becomes in a session."""

    parts: list[Part] = field(default_factory=list)
    """In the order in which they are compiled."""
    unwritten: list[tuple[str, str, str]] = field(default_factory=list)
    """Outputs of the graph that nothing computes, with the node and the operator that made them."""
    incomplete: list[int] = field(default_factory=list)
    """The nodes with too few inputs for the activation that is put into them, by index."""
    judged: dict[str, None] = field(default_factory=dict)
    """The Splits and Concats, in order."""

    @property
    def fused(self) -> list[FusedGraph]:
        """The graphs that are certainly handed to CompileGraph."""
        return [part.variants[0] for part in self.parts if part.is_known and part.variants]

    @property
    def dead(self) -> list[Part]:
        """The parts whose results nothing reads: CompileGraph gets them without any node."""
        return [part for part in self.parts if part.is_known and not part.leading and not part.fails]

    @property
    def doubtful(self) -> list[Part]:
        """The parts of which it is not known which nodes are in them, or of which sizes."""
        return [part for part in self.parts if not part.is_known and not part.fails]

    @property
    def anchor(self) -> str | None:
        """The Split or Concat of which things are said that are of no other."""
        return next(iter(self.judged), None)
