"""The values of attributes that kernels take; others fail session creation, as the kernel is created.

Observed: words and integers for each attribute and version of an operator, with 1.18.0, 1.20.1, 1.24.4 and 1.30.0. onnx
does not check them. DirectML's kernels read integers as the lowest 32 bits of them, with a sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Flag, auto
from functools import lru_cache
from typing import Final, NamedTuple

import onnx

from dmlsplit.descriptors.dims import is_static
from dmlsplit.models.graph import Node, attribute
from dmlsplit.models.schemas import LARGEST_OPSET, schema_of
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.integers import signed
from dmlsplit.system.printable import printable


class _On(Flag):
    """The providers whose kernels refuse a value."""

    CPU = auto()
    DML = auto()
    BOTH = CPU | DML


class _Words(NamedTuple):
    """The words that an attribute may have from one opset up to another: `words`, or, if `begun`, any prefix of one of
    them, including the empty string."""

    attribute: str
    words: frozenset[bytes]
    on: _On = _On.BOTH
    begun: bool = False
    first: int = 1
    last: int = LARGEST_OPSET


class _Numbers(NamedTuple):
    """The integers that an attribute may have: those for which `takes` is true, described by `text`."""

    attribute: str
    takes: Callable[[int], bool]
    text: str
    on: _On = _On.BOTH


def _words(
    attribute: str, words: str, on: _On = _On.BOTH, *, begun: bool = False, first: int = 1, last: int = LARGEST_OPSET
) -> _Words:
    return _Words(attribute, frozenset(words.encode().split()), on, begun, first, last)


def _flag(attribute: str, on: _On = _On.BOTH) -> _Numbers:
    return _Numbers(attribute, lambda number: number in (0, 1), "0 or 1", on)


_PADDINGS: Final = (_Words("auto_pad", frozenset({b"", b"NOTSET", b"SAME_UPPER", b"SAME_LOWER", b"VALID"})),)
_COORDINATES: Final = (
    "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
_RESIZED: Final = (
    _words("mode", "nearest linear cubic", _On.CPU),
    _words("mode", "nearest NEAREST NN nn linear bilinear BILINEAR cubic", _On.DML, begun=True),
    _words("coordinate_transformation_mode", " ".join(_COORDINATES), _On.CPU),
    _words("coordinate_transformation_mode", " ".join(_COORDINATES), _On.DML, begun=True),
    _Words("nearest_mode", frozenset({b"", b"round_prefer_floor", b"round_prefer_ceil", b"floor", b"ceil"}), _On.CPU),
)
_RECURRENT: Final = (
    _words("direction", "forward reverse bidirectional"),
    _Numbers("layout", lambda number: number == 0, "0"),
)
_HIDDEN: Final = _Numbers("hidden_size", lambda number: 0 < number < 1 << 31, "above 0", _On.CPU)
_NOT_ZERO: Final = (lambda number: number != 0, "other than 0", _On.DML)
_NOT_NEGATIVE: Final = (lambda number: number >= 0, "0 or more")
_VALUES: Final[Mapping[str, Sequence[_Words | _Numbers]]] = {
    **dict.fromkeys(("AveragePool", "Conv", "ConvTranspose", "MaxPool"), _PADDINGS),
    **dict.fromkeys(("ArgMax", "ArgMin"), (_flag("select_last_index", _On.DML),)),
    "BitShift": (_words("direction", "LEFT RIGHT"),),
    "DepthToSpace": (_Words("mode", frozenset({b"", b"DCR", b"CRD"})),),
    **dict.fromkeys(("GRU", "LSTM"), (*_RECURRENT, _HIDDEN)),
    "RNN": _RECURRENT,
    "GatherND": (_Numbers("batch_dims", *_NOT_NEGATIVE, _On.DML),),
    "GlobalLpPool": (_Numbers("p", *_NOT_ZERO),),
    "GridSample": (
        _words("padding_mode", "zeros border reflection"),
        _words("mode", "bilinear nearest bicubic", last=19),
        _words("mode", "linear nearest cubic", first=20),
    ),
    "LRN": (_Numbers("size", *_NOT_ZERO),),
    "LpNormalization": (_Numbers("p", lambda number: number in (1, 2), "1 or 2"),),
    "LpPool": (*_PADDINGS, _Numbers("p", *_NOT_ZERO)),
    "Mod": (_flag("fmod", _On.CPU),),
    "NonMaxSuppression": (_flag("center_point_box", _On.CPU),),
    "Pad": (_words("mode", "constant reflect edge wrap"),),
    **dict.fromkeys(
        ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        (_Numbers("dtype", lambda number: number != 0, "a type"),),
    ),
    **dict.fromkeys(("Resize", "Upsample"), _RESIZED),
    "RoiAlign": (
        _words("mode", "avg max", _On.CPU),
        _words("mode", "avg max", _On.DML, begun=True),
        _words("coordinate_transformation_mode", "half_pixel output_half_pixel", _On.DML, begun=True),
        *(_Numbers(name, *_NOT_NEGATIVE, _On.DML) for name in ("output_height", "output_width")),
        _Numbers("sampling_ratio", *_NOT_NEGATIVE),
    ),
}
"""Maps an operator to what is known of the values of its attributes."""
_ACTIVATIONS: Final = {
    **dict.fromkeys((b"Relu", b"Sigmoid", b"Tanh"), None),
    b"LeakyRelu": 1,
    b"Clip": 2,
    b"HardSigmoid": 2,
}
"""The activations of a FusedConv on the CPU, each with the number of its parameters, None if it reads none."""
_NEEDED: Final = {**dict.fromkeys(("GRU", "LSTM", "RNN"), "hidden_size"), "RegexFullMatch": "pattern"}
"""Attributes that kernels on the CPU need though they are optional."""
_DIRECTIONS: Final = ("scan_input_directions", "scan_output_directions")
_POOLS: Final = frozenset({"AveragePool", "LpPool", "MaxPool"})
_FUSED_GEMM: Final = "FusedGemm"
_FUSED_PRODUCT: Final = "FusedMatMulActivation"
_ACTIVATIONS_OF_GEMM: Final = {
    **dict.fromkeys((b"Relu", b"Sigmoid", b"Softplus", b"Softsign", b"Tanh"), ()),
    **dict.fromkeys((b"Celu", b"Elu", b"LeakyRelu", b"ThresholdedRelu"), ("alpha",)),
    **dict.fromkeys((b"HardSigmoid", b"ParametricSoftplus", b"ScaledTanh"), ("alpha", "beta")),
    b"Selu": ("alpha", "gamma"),
}
"""The activations of a FusedGemm on the CPU, each with the parameters that it needs."""
_AXES: Final = frozenset(
    {"ArgMax", "ArgMin", "GatherElements", "Hardmax", "LayerNormalization", "LogSoftmax", "LpNormalization"}
    | {
        "MeanVarianceNormalization",
        "ReverseSequence",
        "Scatter",
        "ScatterElements",
        "Slice",
        "Softmax",
        "Squeeze",
        "Unsqueeze",
    }
    | {
        f"Reduce{name}"
        for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    }
)
"""Operators whose kernels on DirectML refuse axes among their attributes beyond the dimensions of their first input,
also axes that are defaults; those of Unsqueeze are dimensions of the output."""


def refused_value(graph: SessionGraph, node: Node, *, on_dml: bool) -> str:
    """Returns, as a clause about the node, why its kernel on DirectML or on the CPU does not take the value of an
    attribute, or needs one that is missing; "" if nothing is known against it."""
    if node.proto.op_type == _FUSED_GEMM and not on_dml:
        return _refused_activation_of_gemm(node)
    if node.proto.op_type == _FUSED_PRODUCT and on_dml:
        return _refused_activation_of_product(graph, node)
    needed = None if on_dml else _NEEDED.get(node.op_type)
    if needed is not None and attribute(node, needed) is None:
        return f"it has no {needed}"
    if not node.proto.attribute:
        return _beyond_rank(graph, node) if on_dml and node.op_type in _AXES else ""
    on = _On.DML if on_dml else _On.CPU
    for known in _VALUES.get(node.op_type, ()):
        given = attribute(node, known.attribute) if on in known.on else None
        if given is not None and (why := _refused(known, given, graph.opset, on_dml)):
            return why
    if node.proto.op_type == "FusedConv" and not on_dml:
        return _refused_activation(graph, node)
    if node.op_type == "Resize":
        return _outside_of_no_cubic(node)
    if not on_dml:
        return _refused_directions(node) if node.op_type == "Scan" else _refused_pool(graph, node)
    return _beyond_rank(graph, node) if node.op_type in _AXES else ""


def _refused_activation(graph: SessionGraph, node: Node) -> str:
    """Returns why the CPU's FusedConv does not take its activation or the number of its parameters; "" if it does."""
    activation, parameters = attribute(node, "activation"), attribute(node, "activation_params")
    if activation is None or (activation.s == b"HardSwish" and graph.runtime.traits.activates_by_hard_swish):
        return ""
    count = _ACTIVATIONS.get(activation.s)
    shown = printable(activation.s.decode("utf-8", "replace"), 60)
    if activation.s not in _ACTIVATIONS:
        return f"its activation is '{shown}'"
    given = 0 if parameters is None else len(parameters.floats)
    return f"its activation {shown} has {given} parameters, not {count}" if count not in (None, given) else ""


def _refused_activation_of_gemm(node: Node) -> str:
    """Returns why the CPU's FusedGemm does not take its activation, or which of the activation's parameters it lacks;
    "" if it takes it."""
    given = attribute(node, "activation")
    activation = b"" if given is None else given.s
    shown = printable(activation.decode("utf-8", "replace"), 60)
    if activation not in _ACTIVATIONS_OF_GEMM:
        return f"its activation is '{shown}'"
    names = [f"activation_{name}" for name in _ACTIVATIONS_OF_GEMM[activation]]
    lacking = [name for name in names if attribute(node, name) is None]
    return f"its activation {shown} lacks {lacking[0]}" if lacking else ""


def _refused_activation_of_product(graph: SessionGraph, node: Node) -> str:
    """Returns why DirectML's FusedMatMulActivation does not take its activation: another one than Softmax, or an axis
    beyond the result's dimensions. "" if it takes it, or if the ranks are unknown."""
    given, axis = attribute(node, "activation"), attribute(node, "activation_axis")
    if given is not None and given.s != b"Softmax":
        return f"its activation is '{printable(given.s.decode('utf-8', 'replace'), 60)}'"
    shapes = [graph.shape(name) for name in node.proto.input[:2]]
    ranks = [len(shape) for shape in shapes if shape is not None]
    if axis is None or len(ranks) < 2 or min(ranks) < 2:
        return ""
    beyond = not -max(ranks) <= (read := signed(axis.i)) < max(ranks)
    return f"its activation_axis {read} is not among {max(ranks)} dimensions" if beyond else ""


def _refused(known: _Words | _Numbers, given: onnx.AttributeProto, opset: int, on_dml: bool) -> str:
    """Returns why `known` excludes the value of an attribute; "" if it does not."""
    if isinstance(known, _Numbers):
        read = signed(given.i) if on_dml else given.i
        return "" if known.takes(read) else f"its {known.attribute} is {read}, not {known.text}"
    is_taken = any(word.startswith(given.s) for word in known.words) if known.begun else given.s in known.words
    if is_taken or not known.first <= opset <= known.last:
        return ""
    return f"its {known.attribute} is '{printable(given.s.decode('utf-8', 'replace'), 60)}'"


def _refused_directions(node: Node) -> str:
    """Returns why the CPU's Scan does not take its directions: it needs one, 0 or 1, for each tensor that it cuts or
    puts together, or none at all. "" if it takes them."""
    count = attribute(node, "num_scan_inputs")
    if count is None:
        return ""
    states = len(node.proto.input) - count.i
    for name, most in zip(_DIRECTIONS, (count.i, len(node.proto.output) - states), strict=True):
        given = attribute(node, name)
        if given is not None and len(given.ints) != most:
            return f"its {name} are {len(given.ints)}, not {most}"
        if given is not None and not {0, 1}.issuperset(map(signed, given.ints)):
            return f"its {name} are not all 0 or 1"
    return ""


def _refused_pool(graph: SessionGraph, node: Node) -> str:
    """Returns why the CPU's pool does not take its window, strides or pads; "" if it does, and for other operators. A
    stride of 0 is refused where the sizes are known: there it ends the process (division by zero)."""
    if node.op_type not in _POOLS:
        return ""
    kernel, strides, pads, padding = [attribute(node, name) for name in ("kernel_shape", "strides", "pads", "auto_pad")]
    window = [] if kernel is None else list(kernel.ints)
    if any(length <= 0 for length in window):
        return f"its kernel_shape is {window}"
    if strides is not None and 0 in strides.ints and is_static(graph.shape(node.proto.input[0])):
        return f"its strides are {list(strides.ints)}"
    if pads is None or (padding is not None and padding.s not in (b"", b"NOTSET")):
        return ""
    beyond = any(added >= length for added, length in zip(pads.ints, window * 2, strict=False))
    return f"its pads {list(pads.ints)} are not smaller than its window {window}" if beyond else ""


def _beyond_rank(graph: SessionGraph, node: Node) -> str:
    """Returns which axis among a node's attributes or their defaults is not a dimension of its first input (for
    Unsqueeze, of its output), or why DirectML does not take its keepdims; "" if neither, or if the rank is unknown.

    A keepdims other than 0 and 1 is refused because ONNX keeps the dimensions if it is 1, the kernel if it is not 0.
    """
    first = node.proto.input[0] if node.proto.input else ""
    shape = graph.shape(first) if first else None
    if shape is None:
        return ""
    kept = attribute(node, "keepdims") if shape else None
    if kept is not None and kept.i != 1 and signed(kept.i) != 0:
        return f"its keepdims is {kept.i}, not 0 or 1"
    for name in ("axis", "axes", "batch_axis", "time_axis"):
        given = attribute(node, name) or _default(node.op_type, graph.opset, name)
        if given is None:
            continue
        axes = [signed(axis) for axis in (given.ints if name == "axes" else [given.i])]
        rank = len(shape) + (len(axes) if node.op_type == "Unsqueeze" else 0)
        beyond = [axis for axis in axes if not -rank <= axis < rank]
        if beyond:
            return f"its {name} {beyond[0]} is not among {rank} dimensions"
    return ""


@lru_cache(maxsize=1024)
def _default(op_type: str, opset: int, name: str) -> onnx.AttributeProto | None:
    """Returns the default of an attribute of an operator of the default domain; None if there is none."""
    schema = schema_of(op_type, opset)
    declared = None if schema is None else schema.attributes.get(name)
    given = None if declared is None else declared.default_value
    return given if given is not None and given.type else None


def _outside_of_no_cubic(node: Node) -> str:
    """Returns why a Resize does not take its exclude_outside, which only a cubic one may have; "" if it does."""
    mode, outside = attribute(node, "mode"), attribute(node, "exclude_outside")
    is_cubic = mode is not None and mode.s == b"cubic"
    return "its exclude_outside is for cubic modes" if outside is not None and outside.i and not is_cubic else ""
