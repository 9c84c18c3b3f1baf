"""The names in the graphs inside a node, graph by graph: they decide if a name can be replaced in these graphs."""

from __future__ import annotations

from typing import Final

import onnx

from dmlsplit.formats.onnx.protobuf import has_graphs, subgraphs, text
from dmlsplit.system.records import entity


@entity
class NamesInside:
    """The names in the graphs of one node, including former ones: replaced or folded tensors leave their names
    behind."""

    graphs: tuple[frozenset[str], ...] = ()
    """For each graph its outputs and the names that its nodes read, except those read by graphs in these nodes."""
    nodes: tuple[NamesInside, ...] = ()
    """The nodes of these graphs that have graphs inside."""

    @classmethod
    def of(cls, node: onnx.NodeProto) -> NamesInside:
        """Returns the names in the graphs of a node."""
        graphs = tuple(subgraphs(node))
        read = [
            frozenset(
                map(text, (*(name for each in graph.node for name in each.input), *(v.name for v in graph.output)))
            )
            for graph in graphs
        ]
        inner = [cls.of(each) for graph in graphs for each in graph.node if has_graphs(each)]
        return cls(tuple(read), tuple(inner))

    def __contains__(self, name: str) -> bool:
        return any(name in names for names in self.graphs) or any(name in node for node in self.nodes)

    def can_rename(self, name: str, new: str) -> bool:
        """True if the name `new` can replace `name`: it is not in any graph of the node, nor in a graph of a node in
        these graphs that reads `name`. Source: CanUpdateImplicitInputNameInSubgraphs of graph_utils.cc of ONNX
        Runtime."""
        if any(new in each for each in self.graphs):
            return False
        return all(each.can_rename(name, new) for each in self.nodes if name in each)

    def renamed(self, name: str, new: str) -> NamesInside:
        """Returns the names after `new` has replaced `name`."""
        if name not in self:
            return self
        graphs = tuple([each | {new} if name in each else each for each in self.graphs])
        return NamesInside(graphs, tuple([each.renamed(name, new) for each in self.nodes]))


NO_NAMES: Final = NamesInside()
