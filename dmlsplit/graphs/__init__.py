"""DML_GRAPH_DESC: as data, judged by a model of what CompileGraph makes of it.

descriptors   the graph and its edges, which never judge themselves
operators     the neighbours of a Split or Join that were observed
structure     what every graph must be: edges, indices, counts
releases      how builds of DirectML differ in compiling graphs
reading       the model, from here on: the nodes and tensors (program) that its passes work on
passes        which nodes are fused, taken out and cut
memory        the dispatches that are left, and the memory that each one touches
regions       whether regions of memory meet
execution     what the dispatches compute, without numbers
validation    evaluate_graph(graph, target): the report
examples      graphs that break the rules of dmlsplit.rules.graph, and cured ones

In JSON graphs are read and written by dmlsplit.formats.graph_json.
"""

from dmlsplit.graphs.descriptors import (
    GraphDesc,
    GraphNode,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    NeighbourOperatorDesc,
    OutputGraphEdgeDesc,
)
from dmlsplit.graphs.examples import EXAMPLES
from dmlsplit.graphs.validation import GraphReport, evaluate_graph

__all__ = [
    "EXAMPLES",
    "GraphDesc",
    "GraphNode",
    "GraphReport",
    "InputGraphEdgeDesc",
    "IntermediateGraphEdgeDesc",
    "NeighbourOperatorDesc",
    "OutputGraphEdgeDesc",
    "evaluate_graph",
]
