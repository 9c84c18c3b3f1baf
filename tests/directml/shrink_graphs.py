"""Making a graph smaller while it stays interesting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.graphs import (
    GraphDesc,
    GraphNode,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
)
from dmlsplit.graphs.descriptors import node_tensors

Test: TypeAlias = Callable[[Sequence[GraphDesc]], list[bool]]
"""Which of some graphs are interesting; asked in batches, since a library answers many as fast as one."""

End: TypeAlias = tuple[int | None, int]
"""A node (None: the graph's inputs) and the index of its output."""

MOST_ROUNDS: Final = 100
BATCH: Final = 50


class _Draft(NamedTuple):
    """A graph by what each node reads."""

    inputs: tuple[object, ...]
    nodes: tuple[GraphNode, ...]
    sources: tuple[tuple[End, ...], ...]
    outputs: tuple[End, ...]

    @classmethod
    def of(cls, graph: GraphDesc) -> _Draft:
        sources: list[dict[int, End]] = [{} for _ in graph.nodes]
        for edge in graph.input_edges:
            sources[edge.to_node_index][edge.to_node_input_index] = (None, edge.graph_input_index)
        for wire in graph.intermediate_edges:
            sources[wire.to_node_index][wire.to_node_input_index] = (wire.from_node_index, wire.from_node_output_index)
        outputs = {e.graph_output_index: (e.from_node_index, e.from_node_output_index) for e in graph.output_edges}
        return cls(
            graph.inputs,
            graph.nodes,
            tuple(tuple(end for _, end in sorted(found.items())) for found in sources),
            tuple(outputs[i] for i in sorted(outputs)),
        )

    def tensor(self, end: End) -> object:
        node, index = end
        return self.inputs[index] if node is None else node_tensors(self.nodes[node])[1][index]

    def build(self) -> GraphDesc:
        inputs, wires = [], []
        for node, sources in enumerate(self.sources):
            for k, (start, index) in enumerate(sources):
                if start is None:
                    inputs.append(InputGraphEdgeDesc(index, node, k))
                else:
                    wires.append(IntermediateGraphEdgeDesc(start, index, node, k))
        ends = [OutputGraphEdgeDesc(node, index, i) for i, (node, index) in enumerate(self.outputs)]
        return GraphDesc(self.inputs, map(self.tensor, self.outputs), self.nodes, inputs, ends, wires)


def shrink(graph: GraphDesc, interesting: Test) -> GraphDesc:
    """A graph that is still interesting, and of which no single simplification is (or the rounds ran out)."""
    draft = _Draft.of(graph)
    for _ in range(MOST_ROUNDS):
        smaller = _smaller(draft, interesting)
        if smaller is None:
            break
        draft = smaller
    return draft.build()


def _smaller(draft: _Draft, interesting: Test) -> _Draft | None:
    simpler = sorted(_simplified(draft), key=lambda found: len(found.nodes))
    for start in range(0, len(simpler), BATCH):
        batch = simpler[start : start + BATCH]
        for candidate, yes in zip(batch, interesting([found.build() for found in batch]), strict=True):
            if yes:
                return candidate
    return None


def _simplified(draft: _Draft) -> Iterator[_Draft]:
    """Without an output, with a graph input in the place of a tensor, or without a node that keeps its sizes."""
    for i in range(len(draft.outputs)):
        yield from _pruned(draft._replace(outputs=draft.outputs[:i] + draft.outputs[i + 1 :]))
    for node, desc in enumerate(draft.nodes):
        for k, tensor in enumerate(node_tensors(desc)[1]):
            if (node, k) not in draft.outputs:
                more = draft._replace(inputs=(*draft.inputs, tensor))
                yield from _pruned(_moved(more, (node, k), (None, len(draft.inputs))))
        for source in draft.sources[node]:
            whole = draft.tensor(source) == draft.tensor((node, 0))
            if whole and not (source[0] is None and (node, 0) in draft.outputs):
                yield from _pruned(_moved(draft, (node, 0), source))


def _moved(draft: _Draft, old: End, new: End) -> _Draft:
    sources = tuple(tuple(new if end == old else end for end in ends) for ends in draft.sources)
    return draft._replace(sources=sources, outputs=tuple(new if end == old else end for end in draft.outputs))


def _pruned(draft: _Draft) -> Iterator[_Draft]:
    """Without what nothing uses; nothing where no output is left."""
    needed: set[int | None] = set()
    stack = [node for node, _ in draft.outputs]
    while stack:
        node = stack.pop()
        if node not in needed and node is not None:
            needed.add(node)
            stack += [start for start, _ in draft.sources[node]]
    if not needed:
        return
    kept = [node for node in range(len(draft.nodes)) if node in needed]
    inputs = sorted({index for node in kept for start, index in draft.sources[node] if start is None})
    number = {node: i for i, node in enumerate(kept)}
    place = {index: i for i, index in enumerate(inputs)}

    def renamed(end: End) -> End:
        node, index = end
        return (None, place[index]) if node is None else (number[node], index)

    yield _Draft(
        tuple(draft.inputs[i] for i in inputs),
        tuple(draft.nodes[node] for node in kept),
        tuple(tuple(map(renamed, draft.sources[node])) for node in kept),
        tuple(map(renamed, draft.outputs)),
    )
