"""Rules about graphs. dmlsplit.graphs checks them and builds their examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Rule
from dmlsplit.rules._sources import COMPILE_GRAPH, GRAPH_DESC, OURS, Source

EXECUTED: Final = Source("observed: graphs executed by DirectML builds of feature levels 2_1 to 6_4")
COMPILED: Final = Source("observed: CompileGraph of DirectML builds of feature levels 2_1 to 6_4")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphRule(Rule):
    """A rule about graphs. `releases` names the builds affected, `cure` the remedy.

    `refuses`: CompileGraph, or CreateOperator of a node, returns a failing HRESULT. `sound`: such a graph is valid, but
    CompileGraph compiles it wrongly. `examples_for`: the DirectML release for which the two examples differ.
    """

    basis: Basis = Basis.OBSERVED
    releases: str = "every build"
    cure: str = ""
    refuses: bool = False
    sound: bool = False
    examples_for: str = "1.15.4"


INDEX_RANGE: Final = GraphRule(
    "graph/index-range",
    "An index of an edge is out of range.",
    "The indices of an edge count the graph's inputs, outputs and nodes, and the tensors of a node, from 0.",
    (COMPILED, GRAPH_DESC),
    cure="count from 0",
    refuses=True,
)
EDGE_SIZE: Final = GraphRule(
    "graph/edge-size",
    "The ends of an edge differ in total size.",
    "Both tensors are the same memory. Their numbers of dimensions may differ.",
    (COMPILED, GRAPH_DESC),
    cure="describe both ends alike",
    refuses=True,
)
EDGE_DATA_TYPE: Final = GraphRule(
    "graph/edge-data-type",
    "The ends of an edge differ in data type.",
    "Where the total sizes agree it is accepted, and the bytes are read as the other type.",
    (COMPILED,),
    releases="accepted by every build",
    cure="cast between them",
)
INPUT_UNCONNECTED: Final = GraphRule(
    "graph/input-unconnected",
    "No edge reaches an input of a node.",
    "Every input of a node is fed by a graph input or by another node.",
    (COMPILED, GRAPH_DESC),
    cure="add the edge",
    refuses=True,
)
OUTPUT_UNCONNECTED: Final = GraphRule(
    "graph/output-unconnected",
    "No edge reaches a graph output.",
    "CompileGraph accepts it, and binding the output ends the process; up to DirectML 1.5.1 CompileGraph ends it.",
    (COMPILED,),
    releases="accepted by every build",
    cure="remove the output",
)
NODE_UNUSED: Final = GraphRule(
    "graph/node-unused",
    "Nothing uses an output of a node.",
    "A node that neither another node nor the graph uses is refused. Of a Split one output in use is enough.",
    (COMPILED,),
    cure="remove the node",
    refuses=True,
)
EDGE_TWICE: Final = GraphRule(
    "graph/edge-twice",
    "Two edges reach the same input, or the same graph output.",
    "An input of a node is fed by one edge.",
    (COMPILED,),
    cure="remove one",
    refuses=True,
)
CYCLE: Final = GraphRule(
    "graph/cycle",
    "A node needs its own output.",
    "The nodes of a graph can be put in an order in which each comes behind what it reads.",
    (COMPILED, COMPILE_GRAPH),
    cure="break the cycle",
    refuses=True,
)
EMPTY: Final = GraphRule(
    "graph/empty", "The graph has no nodes.", "CompileGraph refuses it.", (COMPILED,), cure="add a node", refuses=True
)
TENSOR_NULL: Final = GraphRule(
    "graph/tensor-null",
    "A tensor of the graph is a null pointer.",
    "Edges cannot be judged where a tensor is not described.",
    (OURS,),
    basis=Basis.OURS,
    releases="any",
    cure="describe the tensor",
)
TENSOR_SHORT: Final = GraphRule(
    "graph/tensor-short",
    "A tensor of the graph has fewer Sizes or Strides than its DimensionCount says.",
    "DirectML would read past the end of the array: undefined behaviour, not a promised error.",
    (OURS,),
    basis=Basis.OURS,
    releases="any",
    cure="give as many as there are dimensions",
)
FUSED_WRONGLY: Final = GraphRule(
    "graph/fused-wrongly",
    "A product with a sigmoid is fused, and an operand is lost.",
    "CompileGraph computes p * sigmoid(q) in one dispatch where it takes p and q for the same tensor. It compares the "
    "nodes that they come from, not which outputs: two different outputs of one Split are the same to it, and "
    "a * sigmoid(b), a GLU, comes out as b * sigmoid(b). From 1.14.2 on it also takes (p * q) * sigmoid(r) for such a "
    "product, and puts an output of r's node in the place of the operand that is left.",
    (EXECUTED,),
    releases="p * sigmoid(q): torch-directml 0.2.5, DirectML 1.13.1 to 1.15.4; (p * q) * sigmoid(r): 1.14.2 to 1.15.4",
    cure="take the operands from two Slices, or from a Split and a Slice, in place of one Split; or make the sigmoid a "
    "graph output, too; of (p * q) * sigmoid(q): compute p * (q * sigmoid(q))",
    sound=True,
)
MEMORY_OVERWRITTEN: Final = GraphRule(
    "graph/memory-overwritten",
    "A tensor's memory is written over before it is read.",
    "An input of a Join is computed straight into the joined buffer, and a part of a Split is read where the whole "
    "lies. An operator that works element by element then runs in place if its input has one use; uses of the tensors "
    "that lie in the same memory are not counted. So the operator behind a Join destroys an input of the Join that is "
    "needed later: it holds what that operator made of it.",
    (EXECUTED,),
    releases="every build from feature level 2_1 on",
    cure="make the Join's output a graph output, too: then nothing runs in place on it; or list the other use's graph "
    "output before that of the operator behind the Join",
    sound=True,
)
PLACE_NOT_WRITTEN: Final = GraphRule(
    "graph/place-not-written",
    "A Join takes one tensor twice, and one of its places is never written.",
    "The tensor is computed straight into one place of the joined buffer. The copy to its other place is forgotten: "
    "the bytes there stay what they were.",
    (EXECUTED,),
    releases="torch-directml 0.1.13.1.dev230413 and 0.2.0, DirectML 1.10.1",
    cure="compute the tensor twice, or join graph inputs only",
    examples_for="1.10.1",
    sound=True,
)
MEMORY_TOO_SMALL: Final = GraphRule(
    "graph/memory-too-small",
    "A valid graph is refused: a tensor does not fit the memory that it would share.",
    "A part of a Split is read where the whole lies. If it is the only part that is used, an operator that works "
    "element by element runs in place on it: the whole then would take the memory of the operator's output, which is "
    "smaller. CompileGraph returns E_INVALIDARG.",
    (EXECUTED,),
    releases="every build from feature level 2_1 on; with a Slice in place of the Split DirectML 1.13.1 to 1.15.4",
    cure="make another output of the Split a graph output, or put the element-wise operator in front of the Split",
    refuses=True,
    sound=True,
)
FUSION_CRASHES: Final = GraphRule(
    "graph/fusion-crashes",
    "A product with a sigmoid is fused, and CompileGraph ends the process.",
    "As graph/fused-wrongly, of (p * q) * sigmoid(r): the operand that is left is a later output of a Split, and r's "
    "node has no output of that index.",
    (Source("observed: CompileGraph of DirectML 1.14.2, 1.15.1 and 1.15.4"),),
    releases="DirectML 1.14.2 to 1.15.4",
    cure="compute p * (q * sigmoid(q))",
    sound=True,
)
FIVE_DIMENSIONS: Final = GraphRule(
    "graph/five-dimensions",
    "A Split of five dimensions or more in a graph is compiled wrong.",
    "Where the first size is not 1, the elements of the second and later first index come from wrong places. Along the "
    "first dimension such a Split is refused, and so is a Join that copies inputs whose first size is 1. Of six to "
    "eight dimensions, all before the last four are what the first is of five; what is computed is unknown.",
    (EXECUTED,),
    releases="tensorflow-directml-1.15.4.dev201216 and 1.15.5.dev210422",
    cure="describe the tensors with four dimensions",
    examples_for="1.4.0",
    sound=True,
)
WHOLE_FOR_PART: Final = GraphRule(
    "graph/whole-for-part",
    "The whole input of a Split is joined in the place of a part.",
    "A part of a Split is read where the whole lies. If a Join takes it into rows (sizes before the axis are not 1) "
    "and something else reads it, too, the Join takes the whole: its first elements come to the place of the part, "
    "whichever part that is, and what does not belong there comes over the places beside it. Where it does not fit, "
    "CompileGraph returns E_INVALIDARG.",
    (EXECUTED,),
    releases="feature levels 2_1 to 5_0, up to DirectML 1.9.0; not tensorflow-directml 1.15.8",
    cure="take the part for the Join with a Slice of its own",
    examples_for="1.8.0",
    sound=True,
)
UNKNOWN: Final = GraphRule(
    "graph/unknown",
    "What comes of the graph is not known.",
    "The model of CompileGraph's memory says nothing of such a graph, or of this build; or the builds of a feature "
    "level differ.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
    releases="any",
    cure="run the graph, and compare with its operators one by one",
)
NOT_LOADED: Final = GraphRule(
    "graph/not-loaded",
    "ONNX Runtime does not load the model.",
    "Each tensor of a model has a name of its own, and is given or computed once; what a node reads is given, or "
    "computed before it. ONNX asks for that, and no version of ONNX Runtime loads a model without. An initializer may "
    "be an input as well.",
    (Source("observed: onnxruntime.dll 1.19.2 and 1.24.4 with its DirectML execution provider"),),
    releases="any",
    cure="give the tensors names of their own",
)
OUTPUT_NOT_WRITTEN: Final = GraphRule(
    "graph/output-not-written",
    "A graph output of a model that also feeds an activation stays empty.",
    "ONNX Runtime puts an activation into the node that feeds it where nothing else reads what is between them. It "
    "does not count that this is an output of the model, too: nothing computes it, and Run gives an empty value for "
    "it. Add, Conv, BatchNormalization, Gemm and MatMul take activations so.",
    (Source("observed: onnxruntime.dll 1.18.0, 1.20.1, 1.24.4 and 1.30.0 with its DirectML execution provider"),),
    releases="onnxruntime-directml and onnxruntime-node 1.18.0 to 1.30.0",
    cure="put Max(t, t) between the node and the activation, or set the optimization level to 0 or 1",
)
EMPTY_PART: Final = GraphRule(
    "graph/empty-part",
    "A Split has a part without elements: none of its parts is written.",
    "ONNX Runtime neither makes nor executes an operator with a tensor without elements. The other parts of a Split "
    "keep the bytes that were there before, and Run succeeds. Where the second part is the only one without elements, "
    "and its length is an input, the Split gets into a fused graph, and the session is not made. A Concat leaves its "
    "inputs without elements out, and is right.",
    (
        Source("observed: models executed by onnxruntime.dll 1.17.3, 1.20.1 and 1.24.4, fused and unfused"),
        Source(
            "ONNX Runtime: DmlOperator.cpp",
            "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
            "Operators/DmlOperator.cpp",
        ),
    ),
    releases="onnxruntime-directml 1.17.3 to 1.24.4",
    cure="leave the part out of the Split, and give a constant in its place",
)
EMPTY_OUTPUT: Final = GraphRule(
    "graph/empty-output",
    "An output of the model has no elements: the other outputs are never written.",
    "ONNX Runtime copies the outputs that were computed on the device to the CPU in one batch, and the copying ends at "
    "the first tensor without elements, before anything is copied. Run succeeds, and every other output that the "
    "device computes keeps the bytes that were there before. Constants, and outputs that the CPU computes, are in no "
    "batch.",
    (
        Source("observed: models executed by onnxruntime.dll 1.17.3, 1.20.1 and 1.24.4, fused and unfused"),
        Source(
            "ONNX Runtime: ExecutionProvider.cpp",
            "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
            "ExecutionProvider.cpp",
        ),
    ),
    releases="onnxruntime-directml 1.17.3 to 1.24.4",
    cure="give a constant as the output without elements, or ask Run for the other outputs only",
)
OUTPUT_MAY_BE_EMPTY: Final = GraphRule(
    "graph/output-may-be-empty",
    "An output of the model may have no elements; the other outputs are never written then.",
    "As graph/empty-output, of an output whose sizes are known only as the model runs: with one of them 0, Run copies "
    "none of the others from the device.",
    EMPTY_OUTPUT.sources,
    severity=Severity.NOTE,
    releases=EMPTY_OUTPUT.releases,
    cure="ask Run for that output alone, and for the others in another Run",
)
CONSTANT_NODE: Final = GraphRule(
    "graph/constant-node",
    "A graph has a constant as a node of its own, which this DirectML does not take.",
    "ONNX Runtime from 1.18.0 on makes a node of each constant of less than 8 bytes. CompileGraph of an older DirectML "
    "beside it returns E_INVALIDARG.",
    (Source("observed: ONNX Runtime 1.24.4 with DirectML 1.8.0, 1.9.0, 1.10.1 and 1.12.0 beside it"),),
    releases="DirectML 1.8.0 to 1.12.1 beside ONNX Runtime 1.18.0 or newer",
    cure="use the DirectML that comes with ONNX Runtime",
)

GRAPH_RULES: Final = {rule.id: rule for rule in tuple(globals().values()) if isinstance(rule, GraphRule)}
