"""Rules that say why ONNX Runtime treats a Split or Concat as it does, and the remedies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import ONNX_BOTH_SHAPES, VERSION_HISTORY, Source
from dmlsplit.rules.graph_faults import FaultKind

_DML: Final = "providers/dml/DmlExecutionProvider/src"


def _file(path: str) -> Source:
    code = "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core"
    return Source(f"ONNX Runtime: {path.rpartition('/')[2]}", f"{code}/{path}")


OBSERVED: Final = Source(
    "observed: onnxruntime.dll 1.18.0 to 1.30.0 with its DirectML execution provider, every call to DirectML recorded"
)
PARTITIONER: Final = _file(f"{_DML}/GraphPartitioner.cpp")
GRAPH: Final = _file(f"{_DML}/DmlGraphFusionHelper.cpp")
SPLIT: Final = _file(f"{_DML}/Operators/DmlOperatorSplit.cpp")
CONCAT: Final = _file(f"{_DML}/Operators/DmlOperatorConcat.cpp")
HELPER: Final = _file("providers/dml/OperatorAuthorHelper/OperatorHelper.cpp")
KERNELS: Final = _file(f"{_DML}/Operators/OperatorRegistration.cpp")
ADAPTER: Final = _file(f"{_DML}/MLOperatorAuthorImpl.cpp")
PREFERENCE: Final = _file("framework/fallback_cpu_capability.cc")
NEEDED_LEVEL: Final = _file("providers/dml/dml_provider_factory.cc")
LOADING: Final = _file("graph/model_load_utils.h")
RESOLVING: Final = _file("graph/graph.cc")
RESHAPING: Final = _file("optimizer/reshape_fusion.cc")
FOLDING: Final = _file("optimizer/constant_folding.cc")
SHARING: Final = _file("optimizer/constant_sharing.cc")
COMMON: Final = _file("optimizer/common_subexpression_elimination.cc")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Habit(Notice):
    """A behaviour of ONNX Runtime; `cure` is the remedy, as an imperative, "" if nothing is wrong.

    `faults` are the faults of graphs that make session creation fail, the most frequent one first; none for other
    behaviour.
    """

    cure: str = ""
    faults: tuple[FaultKind, ...] = ()


def _habit(
    id: str,
    severity: Severity,
    summary: str,
    explanation: str,
    *sources: Source,
    cure: str = "",
    faults: tuple[FaultKind, ...] = (),
) -> Habit:
    return Habit(id, summary, explanation, (OBSERVED, *sources), severity, Basis.OBSERVED, cure=cure, faults=faults)


_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE

VERSION_NOT_OBSERVED = _habit(
    "onnxruntime/version-not-observed",
    _N,
    "This version was not observed.",
    "The wheels up to 1.17.3, and 1.18.1, have no onnxruntime.dll to be asked. 1.18.1 is answered for as 1.18.0, which "
    "ships the same DirectML; of older versions nothing is predicted.",
)
NO_DEVICE = Habit(
    "onnxruntime/no-device",
    "The DirectML.dll of this Windows is older than ONNX Runtime needs.",
    "From 1.14 on ONNX Runtime creates its device with feature level 5_0, before that with 2_0. Where the DLL has "
    "less, the execution provider cannot be added: 887A0004, 'The specified device interface or feature level is not "
    "supported on this system'. The DirectML.dll beside onnxruntime.dll, which packages bring, is loaded in place of "
    "the system's.",
    (NEEDED_LEVEL, VERSION_HISTORY),
    _E,
    Basis.DOCUMENTED,
    cure="ship the DirectML.dll of the package beside onnxruntime.dll",
)
OPSET_TOO_NEW = _habit(
    "onnxruntime/opset-too-new",
    _E,
    "The model's opset is newer than this version of ONNX Runtime knows.",
    "The model is not loaded, whatever operators it has.",
    LOADING,
    cure="take the model to an older opset with dmlsplit legalize, or use a newer ONNX Runtime",
)
IR_VERSION_TOO_NEW = _habit(
    "onnxruntime/ir-version-too-new",
    _E,
    "The model's IR version is newer than this version of ONNX Runtime knows.",
    "The model is not loaded, even where its opset is known.",
    LOADING,
    cure="write the model with an older IR version (onnx.helper.make_model(..., ir_version=)), or use a newer "
    "ONNX Runtime",
)
TYPE_NOT_LOADED = _habit(
    "onnxruntime/type-not-loaded",
    _E,
    "ONNX Runtime has no such tensors, or the operator does not take them at this opset.",
    "Complex tensors are not supported at all, BFLOAT16 not before opset 13. The model is not loaded.",
    RESOLVING,
    cure="cast to a supported type around the node",
)
NO_KERNEL = _habit(
    "onnxruntime/no-kernel",
    _E,
    "No kernel implements this version of the operator.",
    "Split 1 and Concat 1 are known and not implemented: session creation fails.",
    KERNELS,
    cure="convert the model to opset 11 or newer (onnx.version_converter)",
)
INFERENCE_FAILS = _habit(
    "onnxruntime/inference-fails",
    _E,
    "Shape inference refuses the node.",
    "Where shapes and lengths are known, ONNX Runtime infers shapes as it loads the model and refuses what "
    "contradicts itself. The size of the split axis is kept in 32 bits with a sign there.",
    ONNX_BOTH_SHAPES,
    RESOLVING,
    cure="correct the axis or the lengths; an axis of 2^31 or more has to be split without given lengths",
)
FOLDED = _habit(
    "onnxruntime/folded",
    _N,
    "The node becomes a constant as the session is made.",
    "All its inputs are initializers: constant folding runs it on the CPU, from optimization level 1 on. Or a Concat "
    "puts the shape for one Reshape together: in its place comes a constant with 0 for what the Reshape keeps and -1 "
    "for what is not known, if that is one size at most. Or Shapes alone read what is static: they become constants, "
    "and what was computed for them is taken out.",
    FOLDING,
    RESHAPING,
)
BRANCH_NOT_TAKEN = _habit(
    "onnxruntime/branch-not-taken",
    _N,
    "The node is removed: the If around it always takes the other branch.",
    "The condition is a constant. From optimization level 1 on the branch that is taken comes in the place of the If.",
    FOLDING,
)
TYPE_ON_CPU = _habit(
    "onnxruntime/type-on-cpu",
    _W,
    "DirectML's kernel does not take this element type: the node runs on the CPU.",
    "STRING and BFLOAT16 have no kernel of the execution provider.",
    KERNELS,
    cure="cast BFLOAT16 to FLOAT16 or FLOAT around the node to keep it on the GPU",
)
DOUBLE_ON_CPU = _habit(
    "onnxruntime/double-on-cpu",
    _W,
    "The device has no doubles: the node runs on the CPU.",
    "DOUBLE needs Direct3D 12's DoublePrecisionFloatShaderOps.",
    PARTITIONER,
    cure="cast to FLOAT around the node to keep it on the GPU",
)
PREFERS_CPU = _habit(
    "onnxruntime/prefers-cpu",
    _N,
    "The node computes with sizes: it runs on the CPU.",
    "A node whose inputs are all results of Shape or Size, small initializers or the model's inputs is left "
    "on the CPU, which needs them.",
    PREFERENCE,
)
CPU_FALLBACK_DISABLED = _habit(
    "onnxruntime/cpu-fallback-disabled",
    _E,
    "The node would run on the CPU, which session.disable_cpu_ep_fallback forbids.",
    "Session creation fails where any node is left to the CPU.",
    cure="allow the fallback, or change the node's element type",
)
RANK = _habit(
    "onnxruntime/rank",
    _E,
    "A tensor has more than 8 dimensions.",
    "The execution provider takes the node and cannot make its kernel; there is no fallback to the CPU. "
    "Session creation fails, or the first Run where sizes or lengths are known only then.",
    HELPER,
    cure="merge dimensions with Reshape around the node",
)
OUTPUT_OMITTED = _habit(
    "onnxruntime/output-omitted",
    _E,
    "An output has no name, and DirectML gets no tensor for it.",
    "The descriptor holds a tensor of DML_TENSOR_TYPE_INVALID, and CreateOperator refuses it.",
    SPLIT,
    cure="give the output a name, which nothing has to read",
)
SECOND_OUTPUT_EMPTY = _habit(
    "onnxruntime/second-output-empty",
    _E,
    "The second output, and no other, has no elements: session creation fails.",
    "Looking for empty tensors, the partitioner leaves out the index of the input with the lengths, 1, among "
    "the outputs as well. The node gets into a fused graph and makes no operator there.",
    PARTITIONER,
    cure="leave the part out, and give a constant in its place",
    faults=(FaultKind.EMPTY_SECOND_PART,),
)
EMPTY_TENSOR = _habit(
    "onnxruntime/empty-tensor",
    _N,
    "No tensor has elements: nothing is submitted to DirectML.",
    "The whole node is skipped, and nothing is lost.",
    SPLIT,
    ADAPTER,
)
EMPTY_PART = _habit(
    "onnxruntime/empty-part",
    _E,
    "A part of a Split has no elements: nothing is submitted to DirectML.",
    "The whole node is skipped: its other parts are never written, and Run succeeds.",
    SPLIT,
    ADAPTER,
    cure="leave the part out, and give a constant in its place",
    faults=(FaultKind.EMPTY_PART,),
)
EMPTY_INPUTS_LEFT_OUT = _habit(
    "onnxruntime/empty-inputs-left-out",
    _N,
    "Inputs without elements are left out of the JOIN.",
    "The node is outside of a fused graph then; with no input left nothing is submitted.",
    CONCAT,
)
NEGATIVE_LENGTH = _habit(
    "onnxruntime/negative-length",
    _E,
    "A length is negative.",
    "num_outputs makes all parts but the last of the size divided and rounded up; what is left for the last "
    "may be less than nothing. It reaches DirectML modulo 2^32, or fails session creation before.",
    HELPER,
    ONNX_BOTH_SHAPES,
    cure="choose num_outputs so that something is left for the last part, or give the lengths",
)
SIZE_BEYOND_32_BITS = _habit(
    "onnxruntime/size-beyond-32-bits",
    _E,
    "A size does not fit 32 bits: session creation fails.",
    "Sizes are narrowed to 32 bits, with a check, before any operator is made.",
    PARTITIONER,
    cure="make the tensor smaller: DirectML has no such sizes",
)
LENGTHS_DO_NOT_FIT = _habit(
    "onnxruntime/lengths-do-not-fit",
    _E,
    "The lengths do not fit the size of the axis as the model runs.",
    "The kernel checks them against the real sizes.",
    HELPER,
    cure="correct the lengths",
)
REFUSED_BY_DIRECTML = _habit(
    "onnxruntime/refused-by-directml",
    _E,
    "DirectML refuses the descriptor.",
    "There is no fallback to the CPU: session creation fails, or the first Run where sizes are known only then.",
    cure="see the rules that the descriptor breaks; dmlsplit legalize rewrites it where that is possible",
)
MADE_AT_RUN = _habit(
    "onnxruntime/made-at-run",
    _N,
    "The operator is made at the first Run, outside of a fused graph.",
    "A fused graph needs static shapes, of inputs and outputs, and lengths that are constant.",
    PARTITIONER,
    ADAPTER,
)
OUTSIDE_GRAPH = _habit(
    "onnxruntime/outside-graph",
    _N,
    "The operator is compiled alone, as the session is made.",
    "A fused graph takes no node with an empty tensor or with outputs whose shapes are not static.",
    PARTITIONER,
)
GRAPH_WITHOUT_OUTPUTS = _habit(
    "onnxruntime/graph-without-outputs",
    _E,
    "Nothing reads what a fused graph computes: session creation fails.",
    "Nodes that lead to no output are taken out of the DirectML graph. CompileGraph refuses one without nodes.",
    GRAPH,
    cure="remove the nodes that nothing reads",
    faults=(FaultKind.DEAD,),
)
NOT_READ = _habit(
    "onnxruntime/not-read",
    _N,
    "Nothing reads the node's outputs: it is taken out of the fused graph before that is compiled.",
    "Its kernel is made all the same, hence its descriptor judged.",
    GRAPH,
)
COMPUTED_ONCE = _habit(
    "onnxruntime/computed-once",
    _N,
    "Another node computes the same: only one of the two is left.",
    "Equal small initializers become one, and of nodes with equal operators, inputs and attributes those stay that "
    "give outputs of the graph, else the one that ONNX Runtime comes to first.",
    SHARING,
    COMMON,
)
TWINS_DIFFER = _habit(
    "onnxruntime/twins-differ",
    _E,
    "Two Splits of one tensor look the same to ONNX Runtime, and have different numbers of outputs.",
    "The elimination of common subexpressions compares operator, inputs and attributes, not how many outputs "
    "there are: an output of one Split takes the place of an output of the other, of another size.",
    COMMON,
    cure="give one of them its lengths explicitly",
)
GRAPH_REFUSED = _habit(
    "onnxruntime/graph-refused",
    _E,
    "CompileGraph refuses the fused graph that the node is in, or ends the process.",
    "Mostly an intermediate is cut into blocks that lie one after another, by Split or Slice, one of them is read, by "
    "one elementwise operator, and that works in place: all builds of DirectML answer E_INVALIDARG. The message names "
    "the rule of graphs that is broken, and the node that breaks it.",
    GRAPH,
    cure="do what `dmlsplit check` advises for that node",
    faults=(
        FaultKind.REFUSED,
        FaultKind.WHOLE_TOO_LARGE,
        FaultKind.WHOLE_TOO_NARROW,
        FaultKind.OUTER_SPLIT,
        FaultKind.OUTER_JOIN,
        FaultKind.CONSTANT,
        FaultKind.PRODUCT_CRASHES,
    ),
)
SESSION_FAILS_ELSEWHERE = _habit(
    "onnxruntime/session-fails-elsewhere",
    _E,
    "Session creation fails at another node.",
    "Then this one does not run either.",
)
SIZES_UNKNOWN = _habit(
    "onnxruntime/sizes-unknown",
    _W,
    "What happens depends on sizes that the model leaves open.",
    "The session is made; the operator is made at the first Run, for its sizes.",
    cure="give the sizes of the first Run (--shape, --dim)",
)
CONTEXT_UNKNOWN = _habit(
    "onnxruntime/context-unknown",
    _W,
    "What happens depends on what ONNX Runtime makes of the nodes around.",
    "Optimization may change this node or its graph, in ways that are not followed here.",
)

FAULTS: Final = {
    habit.id: habit.faults for habit in tuple(globals().values()) if isinstance(habit, Habit) and habit.faults
}
"""Maps rules to the faults of graphs that a node's answer reports by them."""
