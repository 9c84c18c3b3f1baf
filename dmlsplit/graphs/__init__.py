"""DML_GRAPH_DESC: as data, judged by a model of what CompileGraph makes of it.

descriptors   the graph and its edges, which never judge themselves
json          the form in JSON
operators     the neighbours of a Split or Join that were observed
structure     what every graph must be: edges, indices, counts
releases      how builds of DirectML differ in compiling graphs
memory        the model: passes over the graph, down to dispatches and the memory that each one touches
execution     what the dispatches compute, without numbers
rules         what can go wrong, why, where, and the cure
validation    validate(graph, directml=...)
"""

from dmlsplit.graphs.descriptors import (
    GraphDesc,
    GraphNode,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    NeighbourOperatorDesc,
    OutputGraphEdgeDesc,
)
from dmlsplit.graphs.json import dumps, loads
from dmlsplit.graphs.rules import GRAPH_RULES, GraphRule
from dmlsplit.graphs.validation import GraphReport, judge, validate

__all__ = [
    "GRAPH_RULES",
    "GraphDesc",
    "GraphNode",
    "GraphReport",
    "GraphRule",
    "InputGraphEdgeDesc",
    "IntermediateGraphEdgeDesc",
    "NeighbourOperatorDesc",
    "OutputGraphEdgeDesc",
    "dumps",
    "judge",
    "loads",
    "validate",
]
