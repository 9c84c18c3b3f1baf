"""Findings about several nodes of a model at once: ONNX Runtime's treatment of the whole model, and the remedy.

Each has two models in onnx's text form, one on each side of its boundary.
"""

from __future__ import annotations

from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import Source
from dmlsplit.rules.onnxruntime import ADAPTER, HELPER, KERNELS, OBSERVED, PARTITIONER, PREFERENCE
from dmlsplit.system.records import entity


@entity
class ModelText:
    """A model: its graph in onnx's text form, and its opset."""

    graph: str
    opset: int


@entity
class ModelRule(Notice):
    """A finding about a model; `cure` is the remedy, as an imperative. `examples_for` is the version of ONNX Runtime in
    which `bad` has the finding and `good` does not."""

    cure: str = ""
    bad: ModelText = ModelText("", 0)
    good: ModelText = ModelText("", 0)
    examples_for: str = "1.24.4"


COPIES: Final = Source(
    "ONNX Runtime: transformer_memcpy.cc",
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/optimizer/transformer_memcpy.cc",
)
SELECTORS: Final = Source(
    "ONNX Runtime: qdq_selectors.cc",
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/optimizer/qdq_transformer/"
    "selectors_actions/qdq_selectors.cc",
)
VERSIONS: Final = Source("ONNX: operator changelog", "https://github.com/onnx/onnx/blob/main/docs/Changelog.md")
_BETWEEN: Final = (
    "(float[1,4,8,8] x, float[4,4,1,1] w) => (float[1,4,8,8] y) { a = Relu(x) c = Conv(a, w) y = Sigmoid(c) }"
)

OPSET_WITHOUT_KERNELS = ModelRule(
    "model/opset-without-kernels",
    "Operators run on the CPU because DirectML has no kernels for their versions in the model's opset.",
    "A kernel is registered for a range of versions of its operator. Opset 22 introduced new versions of Conv, "
    "MaxPool and 40 others, and opset 23 of Reshape, Transpose, Cast and similar operators, mostly to add element "
    "types. ONNX Runtime up to 1.30 has no DirectML kernels for them and runs them on the CPU without a warning. "
    "Exporting the model at the older opset moves them back to DirectML; so does legalize, if every node means the "
    "same at the older opset according to ONNX's schemas.",
    (OBSERVED, KERNELS, VERSIONS),
    Severity.WARNING,
    Basis.OBSERVED,
    cure="export the model at the older opset, or convert it with dmlsplit legalize",
    bad=ModelText(_BETWEEN, 22),
    good=ModelText(_BETWEEN, 21),
)

_RESIZED: Final = (
    "(float[1,1,4,4] x) => (float[?,?,?,?] y) { a = Relu(x) k = Constant<value_floats=[1.0,1.0,2.0,2.0]>() "
    'r = Resize<mode="MODE">(a, , k) y = Sigmoid(r) }'
)

CPU_ISLAND = ModelRule(
    "model/cpu-island",
    "Nodes on the CPU are between nodes on DirectML: each Run copies tensors to the CPU and back.",
    "The GPU and the CPU wait for each other, however little the nodes compute, and the model cannot be captured as "
    "one graph. Each tensor that crosses is copied once in each direction. The finding says what moves the nodes to "
    "DirectML: another opset, a cast, or another attribute. An operator without any DirectML kernel has to be "
    "replaced by other operators.",
    (OBSERVED, KERNELS, PREFERENCE, COPIES),
    Severity.WARNING,
    Basis.OBSERVED,
    cure="move the nodes to DirectML as the finding says, or move them before or after all other nodes",
    bad=ModelText(_RESIZED.replace("MODE", "cubic"), 17),
    good=ModelText(_RESIZED.replace("MODE", "linear"), 17),
)

OPEN_SIZES = ModelRule(
    "model/open-sizes",
    "Most nodes on DirectML are in no fused graph, because sizes are unknown when the session is created.",
    "A fused graph needs static sizes, because it is compiled once, when the session is created. The other nodes run "
    "one by one; their operators are created in the first Run and again when sizes change. If a model always runs "
    "with the same sizes, AddFreeDimensionOverrideByName makes the model's symbols static; a size without a name has "
    "to be fixed in the file.",
    (OBSERVED, PARTITIONER),
    Severity.NOTE,
    Basis.OBSERVED,
    cure="if they are always the same, fix them at session creation (AddFreeDimensionOverrideByName) or in the file",
    bad=ModelText("(float[N,4] x) => (float[N,4] y) { a = Relu(x) y = Sigmoid(a) }", 17),
    good=ModelText("(float[2,4] x) => (float[2,4] y) { a = Relu(x) y = Sigmoid(a) }", 17),
)

_PRODUCT: Final = "(float[1,SIZES,4,5] x, float[1,SIZES,5,2] z) => (float[1,SIZES,4,2] y) { y = MatMul(x, z) }"

RANK = ModelRule(
    "model/rank",
    "A static tensor has more dimensions than its node's kernel accepts: the session is not created.",
    "DirectML's tensors have at most 8 dimensions. These kernels accept fewer: MatMul, Trilu and Resize 4, "
    "convolutions and pooling 5. The execution provider claims the node whatever its rank, cannot create its kernel, "
    "and does not fall back to the CPU. For MatMul and Trilu, a Reshape before the node can merge the dimensions "
    "before the last two, and a Reshape after it can restore them; the result is the same, bit for bit. With 9 or "
    "more dimensions the Reshape itself fails as well.",
    (OBSERVED, HELPER),
    Severity.ERROR,
    Basis.OBSERVED,
    cure="merge the dimensions before the last two with Reshapes around it, as dmlsplit legalize does",
    bad=ModelText(_PRODUCT.replace("SIZES", "2,3"), 17),
    good=ModelText(_PRODUCT.replace("SIZES", "6"), 17),
)

_QUANTIZED: Final = (
    "(uint8[1,4,8,8] x) => (uint8[1,4,8,8] y) <float s = {0.05}, uint8 z = {0}> { d = DequantizeLinear(x, s, z) "
    "a = Add(d, d) CLIP q = QuantizeLinear(RESULT, s, z) y = Identity(q) }"
)

QUANTIZED = ModelRule(
    "model/quantized",
    "The session fails because ONNX Runtime replaces a node between quantizations with a quantized operator.",
    "From optimization level 2 on, ONNX Runtime replaces a node between DequantizeLinear and QuantizeLinear nodes "
    "with an operator for quantized elements. This fails in several cases. ONNX Runtime 1.21 and newer also absorb a "
    "Relu or Clip that changes nothing, because its bounds are those of the quantized type, and the resulting model "
    "is invalid. QLinearAdd and QLinearAveragePool do not accept scales that are vectors of one element. A "
    "convolution or matrix product needs as many zero points as scales, and a quantization without a zero point gets "
    "a single one. Kernels accept a vector of scales only along the channels, rows or columns that they compute; "
    "QLinearSigmoid accepts one along the first dimension. DirectML has no kernels for some operators, for example "
    "QLinearSoftmax, or none for the quantized elements that a node has to copy, for example a ReduceMax of opset 18."
    " ONNX Runtime 1.30 replaces a Gemm, or a MatMul and the Add behind it, that reads a DequantizeLinear of constant"
    " 8-bit weights with a MatMulNBits, whose kernel accepts no bias. If a size is open, the kernel is created at run"
    " time, and Run fails. Without the Relu or Clip, and with the same zero point for each scale, the model computes "
    "the same, bit for bit. The Max of a tensor with itself is that tensor; the node before it is then not replaced, "
    "and computes in floating point.",
    (OBSERVED, SELECTORS),
    Severity.ERROR,
    Basis.OBSERVED,
    cure="remove the Relu or Clip, give a tensor as many zero points as scales, or put Max(t, t) after the node, as "
    "dmlsplit legalize does",
    bad=ModelText(_QUANTIZED.replace("CLIP", "r = Relu(a)").replace("RESULT", "r"), 17),
    good=ModelText(_QUANTIZED.replace("CLIP", "").replace("RESULT", "a"), 17),
)

SESSION_FAILS = ModelRule(
    "model/session-fails",
    "The session is not created, for a reason that no other rule covers.",
    "ONNX Runtime does not load the model, or session creation fails at a node other than Split and Concat: its "
    "opset or IR version is newer than this version of ONNX Runtime supports, or neither DirectML nor the CPU has a "
    "kernel for the node. This rule reports nothing if an error about a Split, a Concat or a graph already gives the "
    "reason.",
    (OBSERVED, KERNELS),
    Severity.ERROR,
    Basis.OBSERVED,
    cure="run dmlsplit why, which reduces the model to the nodes that cause the failure; where the message says what "
    "helps, do that",
    bad=ModelText("(double[2] x) => (double[2] y) { y = Acos(x) }", 17),
    good=ModelText("(float[2] x) => (float[2] y) { y = Acos(x) }", 17),
)

UNREGISTERED = ModelRule(
    "model/unregistered-domain",
    "Operators are of a domain that ONNX Runtime does not have.",
    "ONNX Runtime finds such an operator only if the application registers a library for it, with "
    "RegisterCustomOpsLibrary of its session options; otherwise the session is not created: 'Fatal error: "
    "acme:MyOp(-1) is not a registered function/op'. dmlsplit does not know what the library's kernels do, nor where "
    "they run.",
    (OBSERVED,),
    Severity.WARNING,
    Basis.OBSERVED,
    cure="register the library that has them (register_custom_ops_library), or replace them",
    bad=ModelText("(float[2] x) => (float[2] y) { y = acme.MyOp(x) }", 17),
    good=ModelText("(float[2] x) => (float[2] y) { y = Relu(x) }", 17),
)

_BY_CHANNEL: Final = (
    "(float[3,5] x) => (float[?,?] y) <int8[5,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}, "
    "float[SCALES] s = {VALUES}> { d = DequantizeLinear<axis=AXIS>(w, s) y = MatMul(x, d) }"
)

QUANTIZATION_AXIS = ModelRule(
    "model/quantization-axis",
    "A quantization has scales along an axis other than the last, but its kernel applies them along the last.",
    "The kernels of QuantizeLinear and DequantizeLinear for opset 21, introduced in ONNX Runtime 1.20, describe a "
    "vector of scales as if it belonged to the last dimension, whatever the axis; 1.30 fixes this. If the number of "
    "scales does not divide the last dimension, DirectML refuses the operator: the session is not created, or Run "
    "fails if sizes are open. Otherwise each scale is applied to a block of the last dimension: a square matrix that "
    "is quantized by rows (axis 0) is computed by columns, without an error. Quantizations that become part of an "
    "operator for quantized elements, and those at an older opset, are not affected.",
    (OBSERVED, KERNELS),
    Severity.ERROR,
    Basis.OBSERVED,
    cure="compute it with Cast, Sub and Mul, as dmlsplit legalize does, or export the model at opset 20",
    bad=ModelText(_BY_CHANNEL.replace("SCALES", "5").replace("VALUES", "0.1,0.2,0.3,0.4,0.5").replace("AXIS", "0"), 21),
    good=ModelText(_BY_CHANNEL.replace("SCALES", "4").replace("VALUES", "0.1,0.2,0.3,0.4").replace("AXIS", "1"), 21),
)

_RESHAPED: Final = (
    "(float[2,3,4] x) => (float[?,?] y) <int64[2] s = {2,-1}> { a = Relu(x) y = Reshape<allowzero=ZERO>(a, s) }"
)

INFERRED_SIZE = ModelRule(
    "model/inferred-size",
    "A Reshape has allowzero and a size of -1, which DirectML's kernel does not infer.",
    "ONNX allows a -1 beside allowzero if the shape has no 0, and the CPU infers the size. DirectML's kernel refuses "
    "it: the session is not created, or Run fails if sizes or the shape are unknown before. PyTorch's exporter writes "
    "such Reshapes with dynamo=True. Since a shape with a -1 has no 0, the Reshape computes the same without "
    "allowzero.",
    (OBSERVED, ADAPTER),
    Severity.ERROR,
    Basis.OBSERVED,
    cure="remove allowzero, as dmlsplit legalize does",
    bad=ModelText(_RESHAPED.replace("ZERO", "1"), 17),
    good=ModelText(_RESHAPED.replace("ZERO", "0"), 17),
)
