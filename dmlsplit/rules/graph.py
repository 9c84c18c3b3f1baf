"""Rules about graphs. dmlsplit.graphs checks them and builds their examples."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Rule
from dmlsplit.rules._sources import COMPILE_GRAPH, GRAPH_DESC, OURS, Source
from dmlsplit.system.records import entity

EXECUTED: Final = Source("observed: graphs executed by DirectML builds of feature levels 2_1 to 6_4")
COMPILED: Final = Source("observed: CompileGraph of DirectML builds of feature levels 2_1 to 6_4")


@entity
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
    "An edge refers to the graph's inputs, outputs and nodes, and to the tensors of a node, by index; indices count "
    "from 0.",
    (COMPILED, GRAPH_DESC),
    cure="count from 0",
    refuses=True,
)
EDGE_SIZE: Final = GraphRule(
    "graph/edge-size",
    "The ends of an edge differ in total size.",
    "Both tensors refer to the same memory. Their numbers of dimensions may differ.",
    (COMPILED, GRAPH_DESC),
    cure="describe both ends with the same total size",
    refuses=True,
)
EDGE_DATA_TYPE: Final = GraphRule(
    "graph/edge-data-type",
    "The ends of an edge differ in data type.",
    "If the total sizes agree, CompileGraph accepts the edge, and the bytes are read as the other type.",
    (COMPILED,),
    releases="accepted by every build",
    cure="insert a cast",
)
INPUT_UNCONNECTED: Final = GraphRule(
    "graph/input-unconnected",
    "No edge reaches an input of a node.",
    "Every input of a node must be connected to a graph input or to an output of another node.",
    (COMPILED, GRAPH_DESC),
    cure="add the edge",
    refuses=True,
)
OUTPUT_UNCONNECTED: Final = GraphRule(
    "graph/output-unconnected",
    "No edge reaches a graph output.",
    "CompileGraph accepts the graph, and binding the output crashes the process; up to DirectML 1.5.1, CompileGraph "
    "itself crashes.",
    (COMPILED,),
    releases="accepted by every build",
    cure="remove the output",
)
NODE_UNUSED: Final = GraphRule(
    "graph/node-unused",
    "Nothing uses an output of a node.",
    "CompileGraph refuses a node whose outputs are used neither by another node nor as a graph output. For a Split, "
    "one used output is enough.",
    (COMPILED,),
    cure="remove the node",
    refuses=True,
)
EDGE_TWICE: Final = GraphRule(
    "graph/edge-twice",
    "Two edges reach the same input, or the same graph output.",
    "An input of a node has exactly one edge.",
    (COMPILED,),
    cure="remove one of them",
    refuses=True,
)
CYCLE: Final = GraphRule(
    "graph/cycle",
    "A node needs its own output.",
    "It must be possible to order the nodes of a graph so that each comes after the nodes that it reads.",
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
    "Edges of a tensor without a description cannot be judged.",
    (OURS,),
    basis=Basis.OURS,
    releases="any",
    cure="describe the tensor",
)
TENSOR_SHORT: Final = GraphRule(
    "graph/tensor-short",
    "A tensor of the graph has fewer Sizes or Strides than its DimensionCount says.",
    "DirectML would read past the end of the array, which is undefined behaviour; no error is guaranteed.",
    (OURS,),
    basis=Basis.OURS,
    releases="any",
    cure="give one for each dimension",
)
FUSED_WRONGLY: Final = GraphRule(
    "graph/fused-wrongly",
    "CompileGraph fuses a product with a sigmoid and drops an operand.",
    "CompileGraph computes p * sigmoid(q) in one dispatch if it considers p and q to be the same tensor. It compares "
    "the nodes that compute them, not their outputs: two different outputs of one Split are the same to it, and a * "
    "sigmoid(b), a GLU, is computed as b * sigmoid(b). From 1.14.2 on it does the same with (p * q) * sigmoid(r), "
    "and replaces the remaining operand with an output of r's node.",
    (EXECUTED,),
    releases="p * sigmoid(q): torch-directml 0.2.5, DirectML 1.13.1 to 1.15.4; (p * q) * sigmoid(r): 1.14.2 to 1.15.4",
    cure="take the operands from two Slices, or from a Split and a Slice, instead of one Split; or make the sigmoid "
    "a graph output as well; for (p * q) * sigmoid(q): compute p * (q * sigmoid(q))",
    sound=True,
)
MEMORY_OVERWRITTEN: Final = GraphRule(
    "graph/memory-overwritten",
    "A tensor's memory is overwritten before it is read.",
    "CompileGraph stores an input of a Join directly in the joined buffer, and reads a part of a Split directly from "
    "the whole. An elementwise operator runs in place if its input has only one use; uses of other tensors that "
    "share its memory are not counted. The operator after a Join therefore overwrites an input of the Join that is "
    "needed later, which then contains that operator's result.",
    (EXECUTED,),
    releases="every build from feature level 2_1 on",
    cure="make the Join's output a graph output as well, so that nothing runs in place on it; or list the graph "
    "output of the other use before that of the operator after the Join",
    sound=True,
)
PLACE_NOT_WRITTEN: Final = GraphRule(
    "graph/place-not-written",
    "A Join has the same tensor as two inputs, and one of its places in the output is never written.",
    "The tensor is computed directly into one place of the joined buffer. The copy to the other place is missing: "
    "the bytes there are not written.",
    (EXECUTED,),
    releases="torch-directml 0.1.13.1.dev230413 and 0.2.0, DirectML 1.10.1",
    cure="compute the tensor twice, or join graph inputs only",
    examples_for="1.10.1",
    sound=True,
)
MEMORY_TOO_SMALL: Final = GraphRule(
    "graph/memory-too-small",
    "CompileGraph refuses a valid graph: a tensor does not fit into the memory that it would share.",
    "A part of a Split is read directly from the whole. If it is the only used part, an elementwise operator runs in "
    "place on it: the whole would then be stored in the memory of the operator's output, which is smaller. "
    "CompileGraph returns E_INVALIDARG.",
    (EXECUTED,),
    releases="every build from feature level 2_1 on; with a Slice instead of the Split, DirectML 1.13.1 to 1.15.4",
    cure="make another output of the Split a graph output, or move the elementwise operator before the Split",
    refuses=True,
    sound=True,
)
FUSION_CRASHES: Final = GraphRule(
    "graph/fusion-crashes",
    "CompileGraph fuses a product with a sigmoid and crashes the process.",
    "Like graph/fused-wrongly with (p * q) * sigmoid(r), if the remaining operand is a later output of a Split and "
    "r's node has no output with that index.",
    (Source("observed: CompileGraph of DirectML 1.14.2, 1.15.1 and 1.15.4"),),
    releases="DirectML 1.14.2 to 1.15.4",
    cure="compute p * (q * sigmoid(q))",
    sound=True,
)
FIVE_DIMENSIONS: Final = GraphRule(
    "graph/five-dimensions",
    "CompileGraph compiles a Split with five dimensions or more incorrectly.",
    "If the first size is not 1, the elements with a first index of 1 or more are read from wrong positions. A Split "
    "along the first dimension is refused, and so is a Join that copies inputs whose first size is 1. With six to "
    "eight dimensions, all dimensions before the last four are treated like the first of five, and the result is "
    "unknown.",
    (EXECUTED,),
    releases="tensorflow-directml-1.15.4.dev201216 and 1.15.5.dev210422",
    cure="describe the tensors with four dimensions",
    examples_for="1.4.0",
    sound=True,
)
WHOLE_FOR_PART: Final = GraphRule(
    "graph/whole-for-part",
    "A Join copies the whole input of a Split instead of a part.",
    "A part of a Split is read directly from the whole. If a Join copies it into rows (sizes before the axis are not "
    "1) and something else reads the part as well, the Join copies from the whole: the whole's first elements are "
    "stored in the place of the part, whichever part it is, and the rest overwrites adjacent places. If the whole "
    "does not fit, CompileGraph returns E_INVALIDARG.",
    (EXECUTED,),
    releases="feature levels 2_1 to 5_0, up to DirectML 1.9.0; not tensorflow-directml 1.15.8",
    cure="use a separate Slice to get the Join's part",
    examples_for="1.8.0",
    sound=True,
)
UNKNOWN: Final = GraphRule(
    "graph/unknown",
    "The result of the graph is not known.",
    "The model of CompileGraph's memory does not cover this graph or this build, or the builds of a feature level "
    "differ.",
    (OURS,),
    severity=Severity.NOTE,
    basis=Basis.OURS,
    releases="any",
    cure="run the graph, and compare its results with those of its operators run one by one",
)
NOT_LOADED: Final = GraphRule(
    "graph/not-loaded",
    "ONNX Runtime does not load the model.",
    "ONNX requires that each tensor of a model has a unique name, is given or computed exactly once, and is given or "
    "computed before a node reads it. No version of ONNX Runtime loads a model that violates this. An initializer "
    "may be an input as well.",
    (Source("observed: onnxruntime.dll 1.19.2 and 1.24.4 with its DirectML execution provider"),),
    releases="any",
    cure="give the tensors unique names",
)
OUTPUT_NOT_WRITTEN: Final = GraphRule(
    "graph/output-not-written",
    "A model output that an activation also reads stays empty.",
    "ONNX Runtime fuses an activation into the node before it if nothing else reads the tensor between them. It does "
    "not check whether that tensor is an output of the model: nothing computes it then, and Run returns an empty "
    "value for it. Add, Conv, BatchNormalization, Gemm and MatMul are fused with activations.",
    (Source("observed: onnxruntime.dll 1.18.0, 1.20.1, 1.24.4 and 1.30.0 with its DirectML execution provider"),),
    releases="onnxruntime-directml and onnxruntime-node 1.18.0 to 1.30.0",
    cure="insert Max(t, t) between the node and the activation, or set the optimization level to 0 or 1",
)
EMPTY_PART: Final = GraphRule(
    "graph/empty-part",
    "A Split has a part without elements: none of its parts are written.",
    "ONNX Runtime neither creates nor executes an operator that has a tensor without elements. The other parts of a "
    "Split keep the bytes that were there before, and Run succeeds. If the second part is the only one without "
    "elements, and the lengths are an input, the Split becomes part of a fused graph, and the session is not "
    "created. A Concat is correct: its inputs without elements are omitted.",
    (
        Source("observed: models executed by onnxruntime.dll 1.17.3, 1.20.1 and 1.24.4, fused and unfused"),
        Source(
            "ONNX Runtime: DmlOperator.cpp",
            "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
            "Operators/DmlOperator.cpp",
        ),
    ),
    releases="onnxruntime-directml 1.17.3 to 1.24.4",
    cure="remove the part from the Split, and replace it with a constant",
)
EMPTY_OUTPUT: Final = GraphRule(
    "graph/empty-output",
    "An output of the model has no elements: the other outputs are never written.",
    "ONNX Runtime copies the outputs that were computed on the device to the CPU in one batch. The batch ends at the "
    "first tensor without elements, before anything is copied. Run succeeds, and every other output that the device "
    "computes keeps the bytes that were there before. Constants, and outputs that the CPU computes, are not in the "
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
    cure="replace the output without elements with a constant, or request only the other outputs from Run",
)
OUTPUT_MAY_BE_EMPTY: Final = GraphRule(
    "graph/output-may-be-empty",
    "An output of the model may have no elements; the other outputs are then never written.",
    "Like graph/empty-output, for an output whose sizes are known only at run time: if one of them is 0, Run copies "
    "none of the other outputs from the device.",
    EMPTY_OUTPUT.sources,
    severity=Severity.NOTE,
    releases=EMPTY_OUTPUT.releases,
    cure="request that output in a separate Run",
)
CONSTANT_NODE: Final = GraphRule(
    "graph/constant-node",
    "A graph has a constant as a node, which this DirectML does not accept.",
    "From 1.18.0 on, ONNX Runtime adds each constant of less than 8 bytes to the graph as a node. With an older "
    "DirectML, CompileGraph returns E_INVALIDARG.",
    (Source("observed: ONNX Runtime 1.24.4 with the DirectML.dll of DirectML 1.8.0, 1.9.0, 1.10.1 and 1.12.0"),),
    releases="DirectML 1.8.0 to 1.12.1 with ONNX Runtime 1.18.0 or newer",
    cure="use the DirectML that ships with ONNX Runtime",
)

GRAPH_RULES: Final = {rule.id: rule for rule in tuple(globals().values()) if isinstance(rule, GraphRule)}
