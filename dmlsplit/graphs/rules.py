"""What can be wrong with a graph: rules with the scope graph/, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dmlsplit.diagnostics import Basis, Diagnostic, Severity, Value
from dmlsplit.graphs import examples
from dmlsplit.graphs.descriptors import GraphDesc
from dmlsplit.location import Location

EXECUTED: Final = "observed: graphs executed by 22 DirectML builds, feature levels 2_1 to 6_4"
COMPILED: Final = "observed: CompileGraph of 7 DirectML builds, feature levels 2_1 to 6_4"
GRAPH_PAGE: Final = "https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_graph_desc"


@dataclass(frozen=True, slots=True)
class GraphRule:
    """One rule. `releases` says which builds do it; `example` makes a graph that breaks it, or the cured one."""

    id: str
    severity: Severity
    basis: Basis
    summary: str
    explanation: str
    releases: str
    source: str
    cure: str
    refuses: bool = False
    """CompileGraph returns E_INVALIDARG."""
    example: Callable[[bool], GraphDesc] | None = None

    def diagnostic(
        self, location: Location, message: str, *, expected: Value = None, actual: Value = None
    ) -> Diagnostic:
        return Diagnostic(self.id, self.severity, self.basis, location, message, expected, actual, self.source)


def _structure(id: str, summary: str, explanation: str, cure: str, **other: bool) -> GraphRule:
    """A rule of the graph itself: every build refuses, unless said otherwise."""
    refuses = other.get("refuses", True)
    releases = "every build" if refuses else "accepted by every build"
    return GraphRule(
        id, Severity.ERROR, Basis.OBSERVED, summary, explanation, releases, COMPILED, cure, refuses=refuses
    )


_RULES: Final = (
    GraphRule(
        "graph/fused-wrongly",
        Severity.ERROR,
        Basis.OBSERVED,
        "A product with a sigmoid is fused, and an operand is lost",
        "CompileGraph computes p * sigmoid(q) in one dispatch where it takes p and q for the same tensor. It compares "
        "the nodes that they come from, not which outputs: two different outputs of one Split are the same to it, and "
        "a * sigmoid(b), a GLU, comes out as b * sigmoid(b). From 1.14.2 on it also takes (p * q) * sigmoid(r) for "
        "such a product, and puts an output of r's node in the place of the operand that is left.",
        "p * sigmoid(q): torch-directml 0.2.5, DirectML 1.13.1 to 1.15.4; (p * q) * sigmoid(r): 1.14.2 to 1.15.4",
        EXECUTED,
        "Take the operands from two Slices, or from a Split and a Slice, in place of one Split. Or make the sigmoid a "
        "graph output, too. Of (p * q) * sigmoid(q): compute p * (q * sigmoid(q)).",
        example=examples.gated,
    ),
    GraphRule(
        "graph/memory-overwritten",
        Severity.ERROR,
        Basis.OBSERVED,
        "A tensor's memory is written over before it is read",
        "An input of a Join is computed straight into the joined buffer, and a part of a Split is read where the "
        "whole lies. An operator that works element by element then runs in place if its input has one use; uses of "
        "the tensors that lie in the same memory are not counted. So the operator behind a Join destroys an input of "
        "the Join that is needed later: it holds what that operator made of it.",
        "every build from feature level 2_1 on",
        EXECUTED,
        "Make the Join's output a graph output, too: then nothing runs in place on it. Or list the other use's graph "
        "output before that of the operator behind the Join.",
        example=examples.joined,
    ),
    GraphRule(
        "graph/place-not-written",
        Severity.ERROR,
        Basis.OBSERVED,
        "A Join takes one tensor twice, and one of its places is never written",
        "The tensor is computed straight into one place of the joined buffer. The copy to its other place is "
        "forgotten: the bytes there stay what they were.",
        "torch-directml 0.1.13.1.dev230413 and 0.2.0, DirectML 1.10.1",
        EXECUTED,
        "Compute the tensor twice, or join graph inputs only.",
        example=examples.repeated,
    ),
    GraphRule(
        "graph/memory-too-small",
        Severity.ERROR,
        Basis.OBSERVED,
        "A valid graph is refused: a tensor does not fit the memory that it would share",
        "A part of a Split is read where the whole lies. If it is the only part that is used, an operator that works "
        "element by element runs in place on it: the whole then would take the memory of the operator's output, which "
        "is smaller. CompileGraph returns E_INVALIDARG.",
        "every build from feature level 2_1 on; with a Slice in place of the Split DirectML 1.13.1 to 1.15.4",
        EXECUTED,
        "Make another output of the Split a graph output. Or put the element-wise operator in front of the Split.",
        refuses=True,
        example=examples.half,
    ),
    GraphRule(
        "graph/fusion-crashes",
        Severity.ERROR,
        Basis.OBSERVED,
        "A product with a sigmoid is fused, and CompileGraph ends the process",
        "As graph/fused-wrongly, of (p * q) * sigmoid(r): the operand that is left is a later output of a Split, and "
        "r's node has no output of that index.",
        "DirectML 1.14.2 to 1.15.4",
        "observed: CompileGraph of DirectML 1.14.2, 1.15.1 and 1.15.4",
        "Compute p * (q * sigmoid(q)).",
        example=examples.chained,
    ),
    GraphRule(
        "graph/five-dimensions",
        Severity.ERROR,
        Basis.OBSERVED,
        "A Split of five dimensions in a graph is compiled wrong",
        "Where the first size is not 1, the elements of the second and later first index come from wrong places. "
        "Along the first dimension such a Split is refused.",
        "tensorflow-directml 1.15.4.dev201216 and 1.15.5.dev210422",
        EXECUTED,
        "Describe the tensors with four dimensions.",
        example=examples.five_dimensions,
    ),
    GraphRule(
        "graph/output-not-written",
        Severity.ERROR,
        Basis.OBSERVED,
        "A graph output of a model that also feeds an activation stays empty",
        "ONNX Runtime puts an activation into the node that feeds it where nothing else reads what is between them. It "
        "does not count that this is an output of the model, too: nothing computes it, and Run gives an empty value "
        "for it. Add, Conv, BatchNormalization, Gemm and MatMul take activations so.",
        "onnxruntime-directml and onnxruntime-node 1.18.0 to 1.30.0",
        "observed: onnxruntime.dll 1.18.0, 1.20.1, 1.24.4 and 1.30.0 with its DirectML execution provider",
        "Put Max(t, t) between the node and the activation, or set the optimization level to 0 or 1.",
    ),
    GraphRule(
        "graph/unknown",
        Severity.NOTE,
        Basis.OURS,
        "What comes of the graph is not known",
        "The model of CompileGraph's memory says nothing of such a graph, or of this build.",
        "any",
        "dmlsplit's own judgement",
        "Run the graph, and compare with its operators one by one.",
    ),
    _structure(
        "graph/index-range",
        "An index of an edge is out of range",
        "The indices of an edge count the graph's inputs, outputs and nodes, and the tensors of a node.",
        "Count from 0.",
    ),
    _structure(
        "graph/edge-size",
        "The ends of an edge differ in total size",
        "Both tensors are the same memory. Their numbers of dimensions may differ.",
        "Describe both ends alike.",
    ),
    _structure(
        "graph/edge-data-type",
        "The ends of an edge differ in data type",
        "Every build accepts it where the total sizes agree, and reads the bytes as the other type.",
        "Cast between them.",
        refuses=False,
    ),
    _structure(
        "graph/input-unconnected",
        "No edge reaches an input of a node",
        "Every input of a node is fed by a graph input or by another node.",
        "Add the edge.",
    ),
    _structure(
        "graph/output-unconnected",
        "No edge reaches a graph output",
        "CompileGraph accepts it, and binding the output ends the process; up to DirectML 1.5.1 CompileGraph ends it.",
        "Remove the output.",
        refuses=False,
    ),
    _structure(
        "graph/node-unused",
        "Nothing uses an output of a node",
        "A node that neither another node nor the graph uses is refused. Of a Split one output in use is enough.",
        "Remove the node.",
    ),
    _structure(
        "graph/edge-twice",
        "Two edges reach the same input",
        "An input of a node is fed by one edge. Two edges to one graph output are accepted.",
        "Remove one.",
    ),
    _structure("graph/cycle", "A node needs its own output", "A graph has an order.", "Break the cycle."),
    _structure("graph/empty", "The graph has no nodes", "CompileGraph refuses it.", "Add a node."),
    GraphRule(
        "graph/neighbour-rank",
        Severity.ERROR,
        Basis.OBSERVED,
        "A neighbour of a Split or Join has a number of dimensions that the build does not take",
        "Builds of feature level 2_1 take tensors of 4 dimensions, some operators of 5; all later ones take 1 to 8.",
        "tensorflow-directml 1.15.3.dev200619",
        "observed: CreateOperator of 5 DirectML builds, feature levels 2_1 to 6_2",
        "Describe the tensors with four dimensions.",
        refuses=True,
    ),
    GraphRule(
        "graph/tensor-null",
        Severity.ERROR,
        Basis.OURS,
        "A tensor of the graph is a null pointer",
        "Edges cannot be judged where a tensor is not described.",
        "any",
        "dmlsplit's own judgement",
        "Describe the tensor.",
    ),
)

GRAPH_RULES: Final = {rule.id: rule for rule in _RULES}
"""The rules by their ids, in the order in which they are documented."""
