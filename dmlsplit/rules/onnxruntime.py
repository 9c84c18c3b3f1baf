"""Rules that say why ONNX Runtime treats a Split or Concat as it does, and the remedies."""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import ONNX_BOTH_SHAPES, VERSION_HISTORY, Source
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.system.records import entity

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


@entity
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
    "Some packages, for example the wheels up to 1.17.3, contain no onnxruntime.dll that could be observed. Such a "
    "version is treated like an observed one with the same DirectML, which the message names; if there is none, "
    "nothing is predicted.",
)
NO_DEVICE = Habit(
    "onnxruntime/no-device",
    "The DirectML.dll of this Windows is older than ONNX Runtime requires.",
    "ONNX Runtime creates its device with feature level 5_0 from version 1.14 on, and with 2_0 before. If the DLL "
    "supports less, the execution provider cannot be added: 887A0004, 'The specified device interface or feature "
    "level is not supported on this system'. If a DirectML.dll is in the folder of onnxruntime.dll, as packages "
    "install it, it is loaded instead of the system's.",
    (NEEDED_LEVEL, VERSION_HISTORY),
    _E,
    Basis.DOCUMENTED,
    cure="ship the package's DirectML.dll in the folder of onnxruntime.dll",
)
OPSET_TOO_NEW = _habit(
    "onnxruntime/opset-too-new",
    _E,
    "The model's opset is newer than this version of ONNX Runtime supports.",
    "The model is not loaded, whatever its operators are.",
    LOADING,
    cure="convert the model to an older opset with dmlsplit legalize, or use a newer ONNX Runtime",
)
IR_VERSION_TOO_NEW = _habit(
    "onnxruntime/ir-version-too-new",
    _E,
    "The model's IR version is newer than this version of ONNX Runtime supports.",
    "The model is not loaded, even if its opset is supported.",
    LOADING,
    cure="write the model with an older IR version (onnx.helper.make_model(..., ir_version=)), or use a newer "
    "ONNX Runtime",
)
TYPE_NOT_LOADED = _habit(
    "onnxruntime/type-not-loaded",
    _E,
    "ONNX Runtime does not support the element type, or the operator does not accept it at this opset.",
    "Complex types are not supported at all, and BFLOAT16 is not supported before opset 13. The model is not loaded.",
    RESOLVING,
    cure="cast to a supported type around the node",
)
NO_KERNEL = _habit(
    "onnxruntime/no-kernel",
    _E,
    "No kernel implements this version of the operator.",
    "ONNX Runtime knows Split 1 and Concat 1 but does not implement them: session creation fails.",
    KERNELS,
    cure="convert the model to opset 11 or newer (onnx.version_converter)",
)
INFERENCE_FAILS = _habit(
    "onnxruntime/inference-fails",
    _E,
    "Shape inference refuses the node.",
    "ONNX Runtime infers shapes when it loads the model, and refuses a node whose known shapes and lengths "
    "contradict each other. Shape inference holds the size of the split axis in a signed 32-bit integer.",
    ONNX_BOTH_SHAPES,
    RESOLVING,
    cure="correct the axis or the lengths; an axis of 2^31 or more can only be split without explicit lengths",
)
FOLDED = _habit(
    "onnxruntime/folded",
    _N,
    "The node becomes a constant when the session is created.",
    "This happens in three cases, from optimization level 1 on. All inputs are initializers: constant folding runs "
    "the node on the CPU. Or a Concat computes the shape for a single Reshape: it is replaced with a constant that "
    "has 0 for sizes which the Reshape keeps, and -1 for at most one unknown size. Or only Shape nodes read a value "
    "with static sizes: they become constants, and the nodes that computed the value are removed.",
    FOLDING,
    RESHAPING,
)
BRANCH_NOT_TAKEN = _habit(
    "onnxruntime/branch-not-taken",
    _N,
    "The node is removed: the If around it always takes the other branch.",
    "The condition is a constant. From optimization level 1 on, ONNX Runtime replaces the If with the branch that is "
    "taken.",
    FOLDING,
)
TYPE_ON_CPU = _habit(
    "onnxruntime/type-on-cpu",
    _W,
    "DirectML's kernel does not accept this element type: the node runs on the CPU.",
    "The execution provider has no kernels for STRING and BFLOAT16.",
    KERNELS,
    cure="cast BFLOAT16 to FLOAT16 or FLOAT around the node to keep it on the GPU",
)
DOUBLE_ON_CPU = _habit(
    "onnxruntime/double-on-cpu",
    _W,
    "The device does not support DOUBLE: the node runs on the CPU.",
    "DOUBLE requires Direct3D 12's DoublePrecisionFloatShaderOps.",
    PARTITIONER,
    cure="cast to FLOAT around the node to keep it on the GPU",
)
PREFERS_CPU = _habit(
    "onnxruntime/prefers-cpu",
    _N,
    "The node computes sizes: it runs on the CPU.",
    "ONNX Runtime leaves a node on the CPU if each input is a result of Shape or Size, a small initializer or an "
    "input of the model, because the CPU needs the result.",
    PREFERENCE,
)
CPU_FALLBACK_DISABLED = _habit(
    "onnxruntime/cpu-fallback-disabled",
    _E,
    "The node would run on the CPU, which session.disable_cpu_ep_fallback forbids.",
    "Session creation fails if any node is left to the CPU.",
    cure="allow the fallback, or change the node's element type",
)
RANK = _habit(
    "onnxruntime/rank",
    _E,
    "A tensor has more than 8 dimensions.",
    "The execution provider claims the node, cannot create its kernel, and does not fall back to the CPU. Session "
    "creation fails, or the first Run if sizes or lengths are known only then.",
    HELPER,
    cure="merge dimensions with a Reshape before the node and one after it",
)
OUTPUT_OMITTED = _habit(
    "onnxruntime/output-omitted",
    _E,
    "An output has no name, so DirectML gets no tensor for it.",
    "The descriptor has a tensor of DML_TENSOR_TYPE_INVALID, which CreateOperator refuses.",
    SPLIT,
    cure="give the output a name, even if nothing reads it",
)
SECOND_OUTPUT_EMPTY = _habit(
    "onnxruntime/second-output-empty",
    _E,
    "Only the second output has no elements: session creation fails.",
    "When the partitioner looks for empty tensors, it skips index 1, the index of the input with the lengths, among "
    "the outputs as well. The node becomes part of a fused graph, where it creates no operator.",
    PARTITIONER,
    cure="remove the part, and replace it with a constant",
    faults=(FaultKind.EMPTY_SECOND_PART,),
)
EMPTY_TENSOR = _habit(
    "onnxruntime/empty-tensor",
    _N,
    "No tensor has elements: nothing is submitted to DirectML.",
    "The whole node is skipped, which is correct.",
    SPLIT,
    ADAPTER,
)
EMPTY_PART = _habit(
    "onnxruntime/empty-part",
    _E,
    "A part of a Split has no elements: nothing is submitted to DirectML.",
    "The whole node is skipped: its other parts are never written, although Run succeeds.",
    SPLIT,
    ADAPTER,
    cure="remove the part, and replace it with a constant",
    faults=(FaultKind.EMPTY_PART,),
)
EMPTY_INPUTS_LEFT_OUT = _habit(
    "onnxruntime/empty-inputs-left-out",
    _N,
    "Inputs without elements are omitted from the JOIN.",
    "The node is then not part of a fused graph; if no input is left, nothing is submitted.",
    CONCAT,
)
NEGATIVE_LENGTH = _habit(
    "onnxruntime/negative-length",
    _E,
    "A length is negative.",
    "With num_outputs, each part except the last has the size of the axis divided by num_outputs and rounded up; the "
    "rest for the last part may be negative. It reaches DirectML modulo 2^32, unless session creation fails before.",
    HELPER,
    ONNX_BOTH_SHAPES,
    cure="choose num_outputs so that the last part is not negative, or give the lengths",
)
SIZE_BEYOND_32_BITS = _habit(
    "onnxruntime/size-beyond-32-bits",
    _E,
    "A size does not fit into 32 bits: session creation fails.",
    "Sizes are converted to 32 bits, with a check, before any operator is created.",
    PARTITIONER,
    cure="make the tensor smaller: DirectML does not support such sizes",
)
LENGTHS_DO_NOT_FIT = _habit(
    "onnxruntime/lengths-do-not-fit",
    _E,
    "The lengths do not fit the axis or the outputs.",
    "The kernel of a Split checks that the lengths add up to the actual size of the axis, and that num_outputs is the "
    "number of outputs. It does so at the first Run if a size is known only then.",
    HELPER,
    cure="correct the lengths or num_outputs",
)
LENGTHS_ELSEWHERE = _habit(
    "onnxruntime/lengths-elsewhere",
    _E,
    "The data of the lengths is in another file.",
    "Shape inference runs before ONNX Runtime reads external data, and refuses a Split whose lengths are such data. It "
    "does not need them where the size of the axis is open.",
    ONNX_BOTH_SHAPES,
    RESOLVING,
    cure="store the lengths in the model, as dmlsplit legalize does",
)
REFUSED_BY_DIRECTML = _habit(
    "onnxruntime/refused-by-directml",
    _E,
    "DirectML refuses the descriptor.",
    "There is no fallback to the CPU: session creation fails, or the first Run if sizes are known only then.",
    cure="see the rules that the descriptor breaks; dmlsplit legalize rewrites it if possible",
)
MADE_AT_RUN = _habit(
    "onnxruntime/made-at-run",
    _N,
    "The operator is created in the first Run, and is not part of a fused graph.",
    "A fused graph requires static shapes of inputs and outputs, and constant lengths.",
    PARTITIONER,
    ADAPTER,
)
OUTSIDE_GRAPH = _habit(
    "onnxruntime/outside-graph",
    _N,
    "The operator is compiled on its own when the session is created.",
    "A fused graph has no nodes with an empty tensor or with outputs of dynamic shape.",
    PARTITIONER,
)
GRAPH_WITHOUT_OUTPUTS = _habit(
    "onnxruntime/graph-without-outputs",
    _E,
    "Nothing reads what a fused graph computes: session creation fails.",
    "Nodes whose results reach no output are removed from the DirectML graph. CompileGraph refuses a graph without "
    "nodes.",
    GRAPH,
    cure="remove the nodes that nothing reads",
    faults=(FaultKind.DEAD,),
)
NOT_READ = _habit(
    "onnxruntime/not-read",
    _N,
    "Nothing reads the node's outputs: the node is removed from the fused graph before the graph is compiled.",
    "Its kernel is created nevertheless, so its descriptor is judged.",
    GRAPH,
)
COMPUTED_ONCE = _habit(
    "onnxruntime/computed-once",
    _N,
    "Another node computes the same result: only one of the two remains.",
    "Equal small initializers are merged. Of nodes with equal operators, inputs and attributes, those that produce "
    "graph outputs remain, otherwise the one that ONNX Runtime visits first.",
    SHARING,
    COMMON,
)
TWINS_DIFFER = _habit(
    "onnxruntime/twins-differ",
    _E,
    "ONNX Runtime treats two Splits of one tensor as equal, although they have different numbers of outputs.",
    "The elimination of common subexpressions compares operators, inputs and attributes, but not the numbers of "
    "outputs: it replaces an output of one Split with an output of the other, which has a different size.",
    COMMON,
    cure="give the lengths of one of them explicitly",
)
GRAPH_REFUSED = _habit(
    "onnxruntime/graph-refused",
    _E,
    "CompileGraph refuses the fused graph that contains the node, or crashes the process.",
    "Most often, a Split or Slice cuts an intermediate tensor into contiguous blocks, only one block is read, by a "
    "single elementwise operator, and that operator runs in place: all builds of DirectML return E_INVALIDARG. The "
    "message names the rule of graphs that is broken, and the node that breaks it.",
    GRAPH,
    cure="apply the remedy of the rule that the message names, at the node that breaks it",
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
    "Therefore this node does not run either.",
)
SIZES_UNKNOWN = _habit(
    "onnxruntime/sizes-unknown",
    _W,
    "The outcome depends on sizes that the model leaves open.",
    "The session is created; the operator is created in the first Run, for the sizes of that Run.",
    cure="give the sizes of the first Run (--shape, --dim)",
)
CONTEXT_UNKNOWN = _habit(
    "onnxruntime/context-unknown",
    _W,
    "The outcome depends on ONNX Runtime's treatment of neighbouring nodes.",
    "Optimization may change this node or its graph in ways that are not modelled.",
)

FAULTS: Final = {
    habit.id: habit.faults for habit in tuple(globals().values()) if isinstance(habit, Habit) and habit.faults
}
"""Maps rules to the faults of graphs that a node's answer reports by them."""
