"""Findings about several nodes of a model at once: ONNX Runtime's treatment of the whole model, and the remedy.

Each has two models in onnx's text form, one on each side of its boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.rules._model import Notice
from dmlsplit.rules._sources import Source
from dmlsplit.rules.onnxruntime import HELPER, KERNELS, OBSERVED, PARTITIONER, PREFERENCE


@dataclass(frozen=True, slots=True)
class ModelText:
    """A model: its graph in onnx's text form, and its opset."""

    graph: str
    opset: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
    "Operators run on the CPU since the model's opset has new versions of them, for which DirectML has no kernels.",
    "A kernel is registered for a range of versions. Opset 22 brought new versions of Conv, MaxPool and 40 others, "
    "opset 23 of Reshape, Transpose, Cast and their like, mostly for new element types; no ONNX Runtime up to 1.30 has "
    "DirectML kernels for them. It says nothing and runs them on the CPU. An export at the older opset, or legalize "
    "where every node means the same there by ONNX's schemas, brings them back.",
    (OBSERVED, KERNELS, VERSIONS),
    Severity.WARNING,
    Basis.OBSERVED,
    cure="export the model at the older opset, or take it there with dmlsplit legalize",
    bad=ModelText(_BETWEEN, 22),
    good=ModelText(_BETWEEN, 21),
)

_RESIZED: Final = (
    "(float[1,1,4,4] x) => (float[?,?,?,?] y) { a = Relu(x) k = Constant<value_floats=[1.0,1.0,2.0,2.0]>() "
    'r = Resize<mode="MODE">(a, , k) y = Sigmoid(r) }'
)

CPU_ISLAND = ModelRule(
    "model/cpu-island",
    "Nodes on the CPU stand between nodes on DirectML: tensors are copied to the CPU and back at each Run.",
    "The GPU waits for the CPU and the CPU for the GPU, however little the nodes compute; the model cannot be captured "
    "as one graph either. Each tensor that crosses is copied once in each direction. The finding names what brings the "
    "nodes to DirectML: another opset, a cast, another attribute; of an operator without any kernel nothing does but "
    "others in its place.",
    (OBSERVED, KERNELS, PREFERENCE, COPIES),
    Severity.WARNING,
    Basis.OBSERVED,
    cure="move the nodes to DirectML by what the finding names, or in front of or behind all others",
    bad=ModelText(_RESIZED.replace("MODE", "cubic"), 17),
    good=ModelText(_RESIZED.replace("MODE", "linear"), 17),
)

OPEN_SIZES = ModelRule(
    "model/open-sizes",
    "Most nodes on DirectML are in no fused graph, since sizes are open as the session is made.",
    "A fused graph needs static sizes: it is compiled once, as the session is made. Other nodes run one by one, and "
    "their operators are made at the first Run and when sizes change. Where a model always runs with the same sizes, "
    "AddFreeDimensionOverrideByName makes the model's symbols static, a size that has no name has to be in the file.",
    (OBSERVED, PARTITIONER),
    Severity.NOTE,
    Basis.OBSERVED,
    cure="where they are always the same, fix them at session creation (AddFreeDimensionOverrideByName) or in the file",
    bad=ModelText("(float[N,4] x) => (float[N,4] y) { a = Relu(x) y = Sigmoid(a) }", 17),
    good=ModelText("(float[2,4] x) => (float[2,4] y) { a = Relu(x) y = Sigmoid(a) }", 17),
)

_PRODUCT: Final = "(float[1,SIZES,4,5] x, float[1,SIZES,5,2] z) => (float[1,SIZES,4,2] y) { y = MatMul(x, z) }"

RANK = ModelRule(
    "model/rank",
    "A static tensor has more dimensions than the kernel of its node takes: no session is created.",
    "DirectML's tensors have 8 dimensions, those of a MatMul, Trilu or Resize 4 here, of a convolution or pooling 5. "
    "The execution provider takes the node whatever its rank and cannot make its kernel; there is no fallback. "
    "Of a MatMul and a Trilu the dimensions before the last two can become one by Reshapes around it, which computes "
    "the same, bit for bit. From 9 on a Reshape fails as well.",
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
    "An operator for quantized elements that takes the place of a node between quantizations fails the session.",
    "From optimization level 2 on, a node between DequantizeLinears and QuantizeLinears becomes one operator for "
    "quantized elements. ONNX Runtime 1.21 and newer take into it a Relu or Clip that changes nothing, as its bounds "
    "are those of the quantized elements, and are left with an invalid model; QLinearAdd and QLinearAveragePool take "
    "no scales that are vectors of one element; a convolution or product takes as many zero points as scales, and a "
    "quantization without zero point gets one; it takes scales of the channels, rows or columns that it computes, as "
    "QLinearSigmoid does of the first dimension; and DirectML has no kernels for some, as for QLinearSoftmax, or none "
    "for the quantized elements that a node which moves elements is left with, as for a ReduceMax of opset 18. Where a "
    "size is open, the kernel is made as the model runs, and Run fails. Without the Relu or Clip, and with the same "
    "zero point for each scale, the model computes the same, bit for bit. A Max of a tensor and itself is that tensor; "
    "the node in front of it stays as it is, and computes in floating point.",
    (OBSERVED, SELECTORS),
    Severity.ERROR,
    Basis.OBSERVED,
    cure="remove the Relu or Clip, give a tensor as many zero points as scales, or put Max(t, t) behind the node, as "
    "dmlsplit legalize does",
    bad=ModelText(_QUANTIZED.replace("CLIP", "r = Relu(a)").replace("RESULT", "r"), 17),
    good=ModelText(_QUANTIZED.replace("CLIP", "").replace("RESULT", "a"), 17),
)

SESSION_FAILS = ModelRule(
    "model/session-fails",
    "No session is created, for a reason that has no rule of its own.",
    "ONNX Runtime does not load the model, or a step of session creation fails at a node other than Split and Concat: "
    "its opset or its IR version is newer than the version knows, or neither DirectML nor the CPU has a kernel for "
    "the node. Where an error of a Split or Concat, or of a graph, says it, this is not said as well.",
    (OBSERVED, KERNELS),
    Severity.ERROR,
    Basis.OBSERVED,
    cure="dmlsplit why reduces the model to the nodes that make it so",
    bad=ModelText("(double[2] x) => (double[2] y) { y = Acos(x) }", 17),
    good=ModelText("(float[2] x) => (float[2] y) { y = Acos(x) }", 17),
)

_BY_CHANNEL: Final = (
    "(float[3,5] x) => (float[?,?] y) <int8[5,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}, "
    "float[SCALES] s = {VALUES}> { d = DequantizeLinear<axis=AXIS>(w, s) y = MatMul(x, d) }"
)

QUANTIZATION_AXIS = ModelRule(
    "model/quantization-axis",
    "A quantization has scales along another axis than the last, and its kernel takes them along the last.",
    "The kernels of QuantizeLinear and DequantizeLinear of opset 21, which came with ONNX Runtime 1.20, describe a "
    "vector of scales as if it were of the last dimension, whatever the axis; 1.30 corrects it. Where their number "
    "does not divide the last dimension DirectML refuses the operator: no session is created, or Run fails where sizes "
    "are open. Else each scale is taken for a block of the last dimension, so that a square matrix by rows, axis 0, is "
    "computed by columns, without an error. Quantizations that become part of an operator for quantized elements are "
    "not concerned, nor those at an older opset.",
    (OBSERVED, KERNELS),
    Severity.ERROR,
    Basis.OBSERVED,
    cure="compute it with Cast, Sub and Mul, as dmlsplit legalize does, or export the model at opset 20",
    bad=ModelText(_BY_CHANNEL.replace("SCALES", "5").replace("VALUES", "0.1,0.2,0.3,0.4,0.5").replace("AXIS", "0"), 21),
    good=ModelText(_BY_CHANNEL.replace("SCALES", "4").replace("VALUES", "0.1,0.2,0.3,0.4").replace("AXIS", "1"), 21),
)
