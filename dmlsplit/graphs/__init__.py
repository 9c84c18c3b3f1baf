"""DML_GRAPH_DESC as data, judged by a model of CompileGraph.

descriptors   the graph and its edges, without judgement
operators     the operators observed next to a Split or Join
structure     what every graph must be: edges, indices, counts
traits        how builds of DirectML differ in compiling graphs
program       the nodes and tensors of a graph that is compiled
reading       a graph read as a Program
fusion        products with sigmoids that become one dispatch
views         identities and Splits that are removed
dimensions    how shaders of four dimensions access five
placement     where inputs of Joins and graph outputs are stored
memory        compile_graph: the remaining dispatches, and the memory that each one accesses
regions       whether regions of memory overlap
execution     what the dispatches compute, without numbers
validation    evaluate_graph(graph, target): the report
examples      graphs that break the rules of dmlsplit.rules.graph, and cured ones

In JSON graphs are read and written by dmlsplit.formats.graph_json.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlsplit.system.lazy import lazy

if TYPE_CHECKING:
    from dmlsplit.graphs.descriptors import (
        GraphDesc,
        InputGraphEdgeDesc,
        IntermediateGraphEdgeDesc,
        OutputGraphEdgeDesc,
    )
    from dmlsplit.graphs.descriptors import GraphNode as GraphNode
    from dmlsplit.graphs.examples import EXAMPLES as EXAMPLES
    from dmlsplit.graphs.validation import GraphReport
    from dmlsplit.graphs.validation import evaluate_graph as evaluate_graph

__all__ = [
    "GraphDesc",
    "GraphReport",
    "InputGraphEdgeDesc",
    "IntermediateGraphEdgeDesc",
    "OutputGraphEdgeDesc",
]

_NAMES = {
    "dmlsplit.graphs.descriptors": "GraphDesc GraphNode InputGraphEdgeDesc IntermediateGraphEdgeDesc"
    " OutputGraphEdgeDesc",
    "dmlsplit.graphs.examples": "EXAMPLES",
    "dmlsplit.graphs.validation": "GraphReport evaluate_graph",
}
__getattr__, __dir__ = lazy(__name__, _NAMES)
