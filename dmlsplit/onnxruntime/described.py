"""The operators that ONNX Runtime's DirectML kernels submit for nodes other than Split and Concat.

One row of _KERNELS an ONNX operator: a function from a node's facts to descriptors. Tensors have at least four
dimensions, with leading 1s; what is broadcast has strides of 0. OWNED_BY_DML, which weights in fused graphs have, is
left out. Sources: DmlOperator*.cpp and OperatorHelper.cpp of ONNX Runtime; compared with what its versions submit.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, TypeAlias

from onnx import helper

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.dims import is_static
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Graph, Node, Value, attribute
from dmlsplit.onnxruntime.facts import DIRECTML_TYPES, MIN_RANK
from dmlsplit.onnxruntime.graph_build import optimized
from dmlsplit.onnxruntime.operator_traits import FUSED_ADD, OPERATORS, QUICK_GELU, RESHAPED_GEMM, row_of
from dmlsplit.onnxruntime.passes.unfollowed import in_patterns
from dmlsplit.onnxruntime.placing import placed
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.targets.releases import Release
from dmlsplit.targets.runtime_versions import Runtime, key_of
from dmlsplit.targets.target import target_of
from dmlsplit.verdicts.any_operator import evaluate_any
from dmlsplit.verdicts.model_placements import NodeOperators

Sizes: TypeAlias = tuple[int, ...]
_WITHOUT: Final = (*JUDGED, "Constant", "Shape", "Size", "If")
"""Operators that submit nothing, and those that predict.py answers for."""
_SPATIAL: Final = 2
"""The least spatial dimensions of a convolution or pooling."""


_AROUND_MATMUL: Final = frozenset({"Transpose", "Mul", "Div", "Add", "Softmax", "MatMul"})
_NOT_MOVED_OVER: Final = ("Reshape", "Flatten")
_MOVED_OVER: Final = {name for name, row in OPERATORS.items() if row.transposable} - {*_NOT_MOVED_OVER} | {
    "MatMul",
    "Split",
}


class NotDescribedError(Exception):
    """A node's operator is not derived; the message says why."""


def operators_of(graphs: Sequence[SessionGraph]) -> tuple[NodeOperators, ...]:
    """The operators of the nodes on DirectML, other than Splits and Concats, of a model's graphs."""
    return tuple([each for graph in graphs for each in operators_in(graph)])


def refusals(found: Iterable[NodeOperators], runtime: Runtime) -> Iterator[Diagnostic]:
    """Yields what the tables of the DirectML in a runtime say against operators, on their nodes."""
    for each in found:
        for desc in each.operators:
            for said in _against(desc, runtime.release):
                yield replace(said, location=replace(said.location, node=each.path))


@lru_cache(maxsize=4096)
def _against(desc: AnyOperatorDesc, release: Release) -> tuple[Diagnostic, ...]:
    """The errors that tables have of a descriptor. Cached: nodes of a model have equal operators."""
    return tuple(evaluate_any(desc, target_of(release)).errors)


def operators_in(graph: SessionGraph) -> Sequence[NodeOperators]:
    """The operators of the nodes of a graph, as it is after all passes."""
    # sessions that place all nodes alike share what is cached
    return graph.once(("operators", graph.runtime.key < _WITH_RESAMPLE3), lambda: tuple(_operators_in(graph)))


def _operators_in(graph: SessionGraph) -> Iterator[NodeOperators]:
    after = optimized(graph)
    changed = _changed(after)
    for node in after.walk():
        place = placed(graph, node)
        if node.op_type in _WITHOUT or place.on_dml is not True:
            continue
        path = graph.path(node.index)
        try:
            yield NodeOperators(path, tuple(_submitted(graph, node, node in changed, place.in_graph is True)))
        except NotDescribedError as why:
            yield NodeOperators(path, (), str(why))
        except (ArithmeticError, LookupError, TypeError, ValueError):  # files say anything: a type, a number, a length
            yield NodeOperators(path, (), "its attributes or tensors are not what its schema says")


def _submitted(graph: SessionGraph, node: Node, is_changed: bool, in_graph: bool) -> Sequence[AnyOperatorDesc]:
    """The operators of a node; `is_changed` where passes may change it, `in_graph` where it is in a fused graph."""
    if graph.parent is not None:
        raise NotDescribedError("it is in a graph of a node")
    beside = (node, *node.producers, *node.readers)
    inserted = any(value.like is not None for value in (*node.inputs, *node.outputs))
    inserted = inserted and not any(each.op_type == RESHAPED_GEMM for each in beside)
    if node.doubts or is_changed or inserted:
        raise NotDescribedError("optimization may change it")
    kernel = _KERNELS.get(node.op_type)
    if kernel is None:
        raise NotDescribedError("the operators of its kernel are not derived")
    if kernel is _moved and not in_graph:
        raise NotDescribedError("a copy outside of fused graphs is not derived")
    return kernel(_Facts(graph, node))


def _changed(graph: Graph) -> set[Node]:
    """The nodes that passes which are not followed may change: those around means and Erfs, MatMuls with what scales,
    transposes or adds to them, and nodes that Transposes are moved over."""
    products = [node for node in graph.nodes if node.op_type == "MatMul"]
    starts = [each for each in products if any(near.op_type in _AROUND_MATMUL for near in _neighbours(each))]
    transposes = [node for node in graph.nodes if node.op_type == "Transpose"]
    moved = [each for each in transposes if any(near.op_type in _MOVED_OVER for near in each.readers)]
    over = _reached(moved, _MOVED_OVER, both=False)
    found = in_patterns(graph) | _reached(starts, _AROUND_MATMUL, both=True) | over
    return found | {each for node in over.difference(moved) for each in node.producers}


def _neighbours(node: Node) -> Iterator[Node]:
    yield from node.readers
    yield from node.producers


def _reached(start: Iterable[Node], through: Container[str], *, both: bool) -> set[Node]:
    """Nodes, and those of some operators that read them, or with `both` that are read by them, over any way."""
    found, todo = set(start), list(start)
    while todo:
        node = todo.pop()
        for near in _neighbours(node) if both else node.readers:
            if near not in found and near.op_type in through:
                found.add(near)
                todo.append(near)
    return found


class _Facts:
    """What a kernel reads of its node: shapes, types, attributes and constants. Raises NotDescribedError for what is
    not known."""

    def __init__(self, graph: SessionGraph, node: Node) -> None:
        self.graph = graph
        self.node = node

    @property
    def opset(self) -> int:
        return self.graph.opset

    def value(self, index: int) -> Value | None:
        """The input of an index; None where it is left out."""
        inputs = self.node.inputs
        return inputs[index] if index < len(inputs) and inputs[index].name else None

    def shape(self, value: Value | None) -> Sizes:
        """The sizes of a tensor."""
        shape = None if value is None else self.graph.shape(value.known)
        if shape is None or not is_static(shape):
            raise NotDescribedError("its sizes are open")
        return tuple([int(size) for size in shape])

    def data_type(self, value: Value | None) -> TensorDataType:
        """DirectML's type of a tensor's elements."""
        name = None if value is None else self.graph.data_type(value.known)
        try:
            return TensorDataType[DIRECTML_TYPES.get(name or "", name or "")]
        except KeyError:
            raise NotDescribedError("its element type is not known") from None

    def number(self, name: str, default: Any) -> Any:
        """The value of an attribute; a FLOAT as the 32 bits that ONNX Runtime has of it."""
        found = attribute(self.node, name)
        value = default if found is None else helper.get_attribute_value(found)
        return _single(value) if isinstance(value, float) else value

    def ints(self, name: str, default: Sequence[int]) -> Sizes:
        """The numbers of an attribute."""
        return tuple(map(int, self.number(name, default)))

    def constants(self, index: int) -> Sizes | None:
        """The integers of a constant input; None where it is left out."""
        value = self.value(index)
        if value is None:
            return None
        found = self.graph.elements(value.known)
        if found is None:
            raise NotDescribedError("what it reads on the CPU is not known")
        return tuple(map(int, found.reshape(-1)))

    def floats(self, index: int) -> tuple[float, ...]:
        """The numbers of a constant input."""
        value = self.value(index)
        found = None if value is None else self.graph.elements(value.known)
        if found is None:
            raise NotDescribedError("what it reads on the CPU is not known")
        return tuple(map(float, found.reshape(-1)))

    def scalar(self, index: int) -> float | None:
        """The number of a constant input of one element; None where it is left out."""
        value = self.value(index)
        found = None if value is None else self.graph.elements(value.known)
        if value is None:
            return None
        if found is None or found.size != 1:
            raise NotDescribedError("what it reads on the CPU is not known")
        return float(found.reshape(-1)[0])

    # Tensors.

    def tensor(
        self, value: Value | None, sizes: Sizes | None = None, strides: Sequence[int] | None = None, least: int = 4
    ) -> BufferTensorDesc:
        """The tensor of a value, with other sizes and strides where they are given, of at least so many dimensions."""
        known = padded(self.shape(value) if sizes is None else sizes, least)
        if not known or 0 in known:
            raise NotDescribedError("a tensor has no elements")
        return BufferTensorDesc(self.data_type(value), known, strides=strides)

    def input(self, index: int) -> BufferTensorDesc:
        return self.tensor(self.value(index))

    @property
    def output(self) -> BufferTensorDesc:
        return self.tensor(self.node.outputs[0])

    def broadcast(self, index: int, whole: Sizes) -> BufferTensorDesc:
        """An input as a tensor of other sizes: strides of 0 where it is repeated."""
        return self.repeated(self.value(index), whole)

    def repeated(self, value: Value | None, whole: Sizes) -> BufferTensorDesc:
        """A tensor as one of other sizes. One of fewer dimensions has strides even where no size is another."""
        own = self.shape(value)
        if own == whole:
            return self.tensor(value, whole)
        own, whole = padded(own, max(len(whole), MIN_RANK)), padded(whole, MIN_RANK)
        packed, strides = 1, [0] * len(own)
        for i in reversed(range(len(own))):
            strides[i] = packed if own[i] != 1 else 0
            packed *= own[i]
        return self.tensor(value, whole, strides)

    @property
    def activation(self) -> AnyOperatorDesc | None:
        """The activation that is fused into the node; None without one."""
        proto = self.graph.nodes[self.node.index].proto
        if proto is self.node.proto or proto.op_type not in row_of("Conv").absorbs:
            return None
        row = _ACTIVATIONS.get(proto.op_type)
        if row is None:
            raise NotDescribedError(f"the parameters of a fused {proto.op_type} are not derived")
        name, parameters = row
        own = {each.name: float(helper.get_attribute_value(each)) for each in proto.attribute}
        members = {member: _single(own.get(word, default)) for member, (word, default) in parameters.items()}
        return AnyOperatorDesc(name, members, fused=True)


def _single(number: float) -> float:
    """A number rounded to 32 bits."""
    found: float = struct.unpack("f", struct.pack("f", number))[0]
    return found


def padded(sizes: Sizes, least: int = MIN_RANK) -> Sizes:
    """Sizes with leading 1s up to a number of dimensions."""
    return (*(1,) * (least - len(sizes)), *sizes)


_Kernel: TypeAlias = Callable[[_Facts], Sequence[AnyOperatorDesc]]
_Parameters: TypeAlias = Mapping[str, tuple[str, float]]
"""By member: the attribute, and its default."""
_ALPHA: Final = "Alpha"
_ACTIVATIONS: Final[Mapping[str, tuple[str, _Parameters]]] = {
    "Relu": ("ACTIVATION_RELU", {}),
    "Sigmoid": ("ACTIVATION_SIGMOID", {}),
    "Tanh": ("ACTIVATION_TANH", {}),
    "Softsign": ("ACTIVATION_SOFTSIGN", {}),
    "Softplus": ("ACTIVATION_SOFTPLUS", {"Steepness": ("", 1.0)}),
    "Elu": ("ACTIVATION_ELU", {_ALPHA: ("alpha", 1.0)}),
    "Celu": ("ACTIVATION_CELU", {_ALPHA: ("alpha", 1.0)}),
    "LeakyRelu": ("ACTIVATION_LEAKY_RELU", {_ALPHA: ("alpha", 0.01)}),
    "ThresholdedRelu": ("ACTIVATION_THRESHOLDED_RELU", {_ALPHA: ("alpha", 1.0)}),
    "HardSigmoid": ("ACTIVATION_HARD_SIGMOID", {_ALPHA: ("alpha", 0.2), "Beta": ("beta", 0.5)}),
    "Selu": (
        "ACTIVATION_SCALED_ELU",
        {_ALPHA: ("alpha", 1.67326319217681884765625), "Gamma": ("gamma", 1.05070102214813232421875)},
    ),
}
_ELEMENTWISE: Final = {
    "Abs": "ABS",
    "Acos": "ACOS",
    "Acosh": "ACOSH",
    "Asin": "ASIN",
    "Asinh": "ASINH",
    "Atan": "ATAN",
    "Atanh": "ATANH",
    "Ceil": "CEIL",
    "Cos": "COS",
    "Cosh": "COSH",
    "Erf": "ERF",
    "Exp": "EXP",
    "Floor": "FLOOR",
    "Log": "LOG",
    "Neg": "NEGATE",
    "Not": "LOGICAL_NOT",
    "Reciprocal": "RECIP",
    "Sign": "SIGN",
    "Sin": "SIN",
    "Sinh": "SINH",
    "Sqrt": "SQRT",
    "Tan": "TAN",
}
_BINARY: Final = {
    "Add": "ADD",
    "Sub": "SUBTRACT",
    "Mul": "MULTIPLY",
    "Div": "DIVIDE",
    "Max": "MAX",
    "Min": "MIN",
    "Sum": "ADD",
    "Mean": "MEAN",
    "And": "LOGICAL_AND",
    "Or": "LOGICAL_OR",
    "Xor": "LOGICAL_XOR",
    "Equal": "LOGICAL_EQUALS",
    "Greater": "LOGICAL_GREATER_THAN",
    "GreaterOrEqual": "LOGICAL_GREATER_THAN_OR_EQUAL",
    "Less": "LOGICAL_LESS_THAN",
    "LessOrEqual": "LOGICAL_LESS_THAN_OR_EQUAL",
}


def _with_activation(f: _Facts) -> Sequence[AnyOperatorDesc]:
    name, parameters = _ACTIVATIONS[f.node.op_type]
    members = {member: f.number(word, default) for member, (word, default) in parameters.items()}
    return [AnyOperatorDesc(name, {"InputTensor": f.input(0), "OutputTensor": f.output, **members})]


def _elementwise(f: _Facts) -> Sequence[AnyOperatorDesc]:
    name = f"ELEMENT_WISE_{_ELEMENTWISE[f.node.op_type]}"
    return [AnyOperatorDesc(name, {"InputTensor": f.input(0), "OutputTensor": f.output})]


def _cast(f: _Facts) -> Sequence[AnyOperatorDesc]:
    return [AnyOperatorDesc("CAST", {"InputTensor": f.input(0), "OutputTensor": f.output})]


def _binary(f: _Facts) -> Sequence[AnyOperatorDesc]:
    if len(f.node.inputs) != 2:
        raise NotDescribedError("it has not two inputs")
    whole = f.shape(f.node.outputs[0])
    members: dict[str, object] = {
        "ATensor": f.broadcast(0, whole),
        "BTensor": f.broadcast(1, whole),
        "OutputTensor": f.output,
    }
    if f.node.op_type != FUSED_ADD:
        return [AnyOperatorDesc(f"ELEMENT_WISE_{_BINARY[f.node.op_type]}", members)]
    return [AnyOperatorDesc("ELEMENT_WISE_ADD1", {**members, "FusedActivation": f.activation})]


def _quick_gelu(f: _Facts) -> Sequence[AnyOperatorDesc]:
    """x * Sigmoid(x) as two operators."""
    x = f.input(0)
    sigmoid = AnyOperatorDesc("ACTIVATION_SIGMOID", {"InputTensor": x, "OutputTensor": x})
    return [sigmoid, AnyOperatorDesc("ELEMENT_WISE_MULTIPLY", {"ATensor": x, "BTensor": x, "OutputTensor": x})]


def _pow(f: _Facts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.node.outputs[0])
    exponent = f.value(1)
    if exponent is not None and f.graph.is_constant(exponent.known) and math.prod(f.shape(exponent)) == 1:
        found = f.scalar(1)
        members = {"InputTensor": f.input(0), "OutputTensor": f.output, "Exponent": found}
        return [AnyOperatorDesc("ELEMENT_WISE_CONSTANT_POW", members)]
    members = {
        "InputTensor": f.broadcast(0, whole),
        "ExponentTensor": f.broadcast(1, whole),
        "OutputTensor": f.output,
    }
    return [AnyOperatorDesc("ELEMENT_WISE_POW", members)]


def _where(f: _Facts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.node.outputs[0])
    names = ("ConditionTensor", "ATensor", "BTensor")
    members = {name: f.broadcast(i, whole) for i, name in enumerate(names)}
    return [AnyOperatorDesc("ELEMENT_WISE_IF", {**members, "OutputTensor": f.output})]


def _clip(f: _Facts) -> Sequence[AnyOperatorDesc]:
    data_type = f.data_type(f.value(0))
    if data_type not in (TensorDataType.FLOAT32, TensorDataType.FLOAT16):
        raise NotDescribedError("limits of this element type are not derived")
    most = 3.4028234663852886e38
    if f.opset < 11:
        low, high = f.number("min", -most), f.number("max", most)
    else:
        low, high = (f.scalar(i) for i in (1, 2))
        low, high = -most if low is None else low, most if high is None else high
    members = {"InputTensor": f.input(0), "OutputTensor": f.output, "Min": low, "Max": high}
    if f.opset < 11:
        return [AnyOperatorDesc("ELEMENT_WISE_CLIP", members)]
    return [AnyOperatorDesc("ELEMENT_WISE_CLIP1", {**members, "MinMaxDataType": data_type})]


def _moved(f: _Facts) -> Sequence[AnyOperatorDesc]:
    """A copy, of the input's sizes on both sides; those of the matrix behind a Gemm of more dimensions."""
    sizes = f.shape(f.value(0))
    if any(each.op_type == RESHAPED_GEMM for each in f.node.producers):
        sizes = (math.prod(sizes[:-1]), sizes[-1])
    members = {"InputTensor": f.tensor(f.value(0), sizes), "OutputTensor": f.tensor(f.node.outputs[0], sizes)}
    return [AnyOperatorDesc("ELEMENT_WISE_IDENTITY", members)]


def _transpose(f: _Facts) -> Sequence[AnyOperatorDesc]:
    """A copy from the input with its strides in another order."""
    own = f.shape(f.value(0))
    order = f.ints("perm", tuple(reversed(range(len(own)))))
    strides = [math.prod(own[i + 1 :]) for i in order]
    source = f.tensor(f.value(0), tuple([own[i] for i in order]), strides, least=1)
    target = f.tensor(f.node.outputs[0], least=1)
    return [AnyOperatorDesc("ELEMENT_WISE_IDENTITY", {"InputTensor": source, "OutputTensor": target})]


def _expand(f: _Facts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.node.outputs[0])
    members = {"InputTensor": f.broadcast(0, whole), "OutputTensor": f.output}
    return [AnyOperatorDesc("ELEMENT_WISE_IDENTITY", members)]


def _window(f: _Facts, kernel: Sizes, spatial: Sizes) -> dict[str, object]:
    """The members of a window that moves over spatial sizes: strides, dilations and paddings."""
    rank = len(spatial)
    strides, dilations = f.ints("strides", (1,) * rank), f.ints("dilations", (1,) * rank)
    pads = f.ints("pads", (0,) * (2 * rank))
    start, end = pads[:rank], pads[rank:]
    auto = f.number("auto_pad", b"NOTSET")
    if auto in (b"SAME_UPPER", b"SAME_LOWER"):
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        out = [-(-size // step) for size, step in zip(spatial, strides, strict=True)]
        total = [max((o - 1) * s + r - n, 0) for o, s, r, n in zip(out, strides, reach, spatial, strict=True)]
        less, more = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
        start, end = (less, more) if auto == b"SAME_UPPER" else (more, less)
    elif auto == b"VALID":
        start = end = (0,) * rank
    missing = max(_SPATIAL - rank, 0)
    return {
        "DimensionCount": rank + missing,
        "Strides": (*(1,) * missing, *strides),
        "Dilations": (*(1,) * missing, *dilations),
        "StartPadding": (*(0,) * missing, *start),
        "EndPadding": (*(0,) * missing, *end),
    }


def _spatial(sizes: Sizes) -> Sizes:
    """Sizes with 1s between channels and spatial sizes, up to four."""
    return (*sizes[:2], *(1,) * (MIN_RANK - len(sizes)), *sizes[2:])


def _conv(f: _Facts) -> Sequence[AnyOperatorDesc]:
    whole, filters = f.shape(f.value(0)), f.shape(f.value(1))
    window = _window(f, filters[2:], whole[2:])
    bias, backward = f.value(2), f.node.op_type == "ConvTranspose"
    channels = filters[1] * f.number("group", 1) if backward else filters[0]
    if backward and (f.number("auto_pad", b"NOTSET") != b"NOTSET" or f.ints("output_shape", ())):
        raise NotDescribedError("paddings that follow from output sizes are not derived")
    shape = (1, channels, *(1,) * (max(len(whole), MIN_RANK) - 2))
    described = None if bias is None else f.tensor(bias, shape)
    if bias is None and any(f.graph.nodes[i].op_type in ("BatchNormalization", "Add") for i in f.node.origins):
        described = f.tensor(f.value(1), shape)  # the shift that was fused
    members = {
        "InputTensor": f.tensor(f.value(0), _spatial(whole)),
        "FilterTensor": f.tensor(f.value(1), _spatial(filters)),
        "BiasTensor": described,
        "OutputTensor": f.tensor(f.node.outputs[0], _spatial(f.shape(f.node.outputs[0]))),
        "Mode": "CROSS_CORRELATION",
        "Direction": "BACKWARD" if backward else "FORWARD",
        **window,
        "OutputPadding": (0,) * int(str(window["DimensionCount"])),
        "GroupCount": f.number("group", 1),
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("CONVOLUTION", members)]


def _pool(f: _Facts) -> Sequence[AnyOperatorDesc]:
    whole, name = f.shape(f.value(0)), f.node.op_type
    rank = len(whole) - 2
    is_global = name.startswith("Global")
    kernel = whole[2:] if is_global else f.ints("kernel_shape", ())
    if len(kernel) != rank or (len(f.node.outputs) > 1 and f.node.outputs[1].name):
        raise NotDescribedError("its indices or its window are not derived")
    window = _window(f, kernel, whole[2:])
    del window["Dilations"]
    if any(each != 1 for each in f.ints("dilations", (1,) * rank)):
        raise NotDescribedError("dilations of a pooling are not derived")
    missing = max(_SPATIAL - rank, 0)
    members = {
        "InputTensor": f.input(0),
        "OutputTensor": f.output,
        **window,
        "WindowSize": (*(1,) * missing, *kernel),
    }
    if name.endswith("MaxPool"):
        return [AnyOperatorDesc("MAX_POOLING", members)]
    include = bool(f.number("count_include_pad", 0))
    return [AnyOperatorDesc("AVERAGE_POOLING", {**members, "IncludePadding": include})]


def _gemm(f: _Facts) -> Sequence[AnyOperatorDesc]:
    fused = f.node.proto.op_type == "MatMul"  # with the Add behind it
    whole = f.shape(f.node.outputs[0])
    a, b = f.number("transA", 0), f.number("transB", 0)
    members = {
        "ATensor": f.input(0),
        "BTensor": f.input(1),
        "CTensor": None if f.value(2) is None else f.broadcast(2, whole),
        "OutputTensor": f.output,
        "TransA": "TRANSPOSE" if a and not fused else "NONE",
        "TransB": "TRANSPOSE" if b and not fused else "NONE",
        "Alpha": f.number("alpha", 1.0),
        "Beta": f.number("beta", 1.0),
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("GEMM", members)]


def _reshaped_gemm(f: _Facts) -> Sequence[AnyOperatorDesc]:
    """A Gemm whose first input has its first dimensions merged."""
    left, columns = f.shape(f.value(0)), f.shape(f.value(1))[-1]
    rows = math.prod(left[:-1])
    members = {
        "ATensor": f.tensor(f.value(0), (rows, left[-1])),
        "BTensor": f.input(1),
        "CTensor": f.broadcast(2, (rows, columns)),
        "OutputTensor": f.tensor(f.node.outputs[0], (rows, columns)),
        "TransA": "NONE",
        "TransB": "NONE",
        "Alpha": 1.0,
        "Beta": 1.0,
    }
    return [AnyOperatorDesc("GEMM", members)]


def _matmul(f: _Facts) -> Sequence[AnyOperatorDesc]:
    a, b = f.shape(f.value(0)), f.shape(f.value(1))
    if len(a) < 2 or len(b) < 2:
        raise NotDescribedError("vectors are not derived")
    batch = f.shape(f.node.outputs[0])[:-2]
    members = {
        "ATensor": f.repeated(f.value(0), (*batch, *a[-2:])),
        "BTensor": f.repeated(f.value(1), (*batch, *b[-2:])),
        "CTensor": None,
        "OutputTensor": f.output,
        "TransA": "NONE",
        "TransB": "NONE",
        "Alpha": 1.0,
        "Beta": 0.0,
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("GEMM", members)]


def _batch_normalization(f: _Facts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.value(0))
    vector = (1, f.shape(f.value(1))[0], *(1,) * (max(len(whole), MIN_RANK) - 2))
    names = ("ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor")
    members = {
        "InputTensor": f.tensor(f.value(0), _behind(whole)),
        **{name: f.tensor(f.value(i), vector) for i, name in enumerate(names, 1)},
        "OutputTensor": f.tensor(f.node.outputs[0], _behind(whole)),
        "Spatial": True,
        "Epsilon": f.number("epsilon", 1e-5),
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("BATCH_NORMALIZATION", members)]


def _behind(sizes: Sizes) -> Sizes:
    """Sizes with 1s behind them, up to four."""
    return (*sizes, *(1,) * (MIN_RANK - len(sizes)))


def _layer_normalization(f: _Facts) -> Sequence[AnyOperatorDesc]:
    whole = f.shape(f.value(0))
    rank = max(len(whole), MIN_RANK)
    axis = f.number("axis", -1) % len(whole)
    if any(value.name for value in f.node.outputs[1:]):
        raise NotDescribedError("its mean and deviation are not derived")

    def parameter(index: int) -> BufferTensorDesc | None:
        value = f.value(index)
        sizes = padded(f.shape(value), len(whole)) if value is not None else ()
        return None if value is None else f.tensor(value, _behind(sizes))

    members = {
        "InputTensor": f.tensor(f.value(0), _behind(whole)),
        "ScaleTensor": parameter(1),
        "BiasTensor": parameter(2),
        "OutputTensor": f.tensor(f.node.outputs[0], _behind(whole)),
        "AxisCount": rank - axis,
        "Axes": tuple(range(axis, rank)),
        "UseMean": True,
        "UseVariance": True,
        "Epsilon": f.number("epsilon", 1e-5),
    }
    return [AnyOperatorDesc("MEAN_VARIANCE_NORMALIZATION2", members)]


def _instance_normalization(f: _Facts) -> Sequence[AnyOperatorDesc]:
    whole = _behind(f.shape(f.value(0)))
    vector = (1, whole[1], *(1,) * (len(whole) - 2))
    axes = tuple(range(2, max(len(f.shape(f.value(0))), MIN_RANK)))
    members = {
        "InputTensor": f.tensor(f.value(0), whole),
        "ScaleTensor": f.tensor(f.value(1), vector),
        "BiasTensor": f.tensor(f.value(2), vector),
        "OutputTensor": f.tensor(f.node.outputs[0], whole),
        "AxisCount": len(axes),
        "Axes": axes,
        "NormalizeVariance": True,
        "Epsilon": f.number("epsilon", 1e-5),
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("MEAN_VARIANCE_NORMALIZATION1", members)]


def _prelu(f: _Facts) -> Sequence[AnyOperatorDesc]:
    slope = f.broadcast(1, f.shape(f.value(0)))
    members = {"InputTensor": f.input(0), "SlopeTensor": slope, "OutputTensor": f.output}
    return [AnyOperatorDesc("ACTIVATION_PARAMETERIZED_RELU", members)]


def _round(f: _Facts) -> Sequence[AnyOperatorDesc]:
    members = {"InputTensor": f.input(0), "OutputTensor": f.output, "RoundingMode": "HALVES_TO_NEAREST_EVEN"}
    return [AnyOperatorDesc("ELEMENT_WISE_ROUND", members)]


_WITH_RESAMPLE3: Final = key_of("1.20.0")
_HALF: Final = (0.5, -0.5)
_OFFSETS: Final = {
    b"half_pixel": _HALF,
    b"pytorch_half_pixel": _HALF,
    b"asymmetric": (0.0, 0.0),
    b"align_corners": (0.0, 0.0),
}
"""The offsets of pixels in the input and in the output, by coordinate_transformation_mode."""
_NEAREST: Final = {
    b"floor": ("DECREASING", 0.0),
    b"ceil": ("INCREASING", 0.0),
    b"round_prefer_floor": ("INCREASING", 0.5),
    b"round_prefer_ceil": ("DECREASING", -0.5),
}
"""The rounding, and what is added to the offset in the input, by nearest_mode."""


def _resize(f: _Facts) -> Sequence[AnyOperatorDesc]:
    own, result = f.shape(f.value(0)), f.shape(f.node.outputs[0])
    mode, transform = f.number("mode", b"nearest"), f.number("coordinate_transformation_mode", b"half_pixel")
    nearest = f.number("nearest_mode", b"round_prefer_floor")
    unusual = [attribute(f.node, name) for name in ("axes", "antialias", "keep_aspect_ratio_policy")]
    if f.opset < 11 or any(unusual) or transform not in _OFFSETS or mode not in (b"nearest", b"linear"):
        raise NotDescribedError("its mode or an attribute is not derived")
    leading = next((i for i, sizes in enumerate(zip(own, result, strict=True)) if sizes != (1, 1)), len(own))
    if len(own) - leading > MIN_RANK or any(size == 1 for size in own[leading:]):
        raise NotDescribedError("a size of 1 is not derived")
    own, result = own[leading:], result[leading:]
    scales = tuple([each / size for each, size in zip(result, own, strict=True)])
    if transform == b"align_corners":
        scales = tuple([(each - 1) / (size - 1) for each, size in zip(result, own, strict=True)])
    elif f.value(2) is not None and f.value(3) is None:
        scales = f.floats(2)[leading:]
    rounding, more = _NEAREST[nearest] if mode == b"nearest" else ("DECREASING", 0.0)
    before, after = _OFFSETS[transform]
    missing = MIN_RANK - len(own)
    members = {
        "InputTensor": f.tensor(f.value(0), own),
        "OutputTensor": f.tensor(f.node.outputs[0], result),
        "InterpolationMode": "NEAREST_NEIGHBOR" if mode == b"nearest" else "LINEAR",
        "RoundingDirection": rounding,
        "DimensionCount": MIN_RANK,
        "Scales": (*(1.0,) * missing, *map(_single, scales)),
        "InputPixelOffsets": (*(_HALF[0] + more,) * missing, *(before + more,) * len(own)),
        "OutputPixelOffsets": (*(_HALF[1],) * missing, *(after,) * len(own)),
    }
    if f.graph.runtime.key < _WITH_RESAMPLE3:
        return [AnyOperatorDesc("RESAMPLE2", members)]
    return [AnyOperatorDesc("RESAMPLE3", {**members, "Antialiased": False})]


_PADDING: Final = {b"constant": "CONSTANT", b"reflect": "REFLECTION", b"edge": "EDGE"}


def _pad(f: _Facts) -> Sequence[AnyOperatorDesc]:
    own, data_type, mode = f.shape(f.value(0)), f.data_type(f.value(0)), f.number("mode", b"constant")
    pads = f.ints("pads", ()) if f.opset < 11 else f.constants(1) or ()
    if mode not in _PADDING or len(pads) != 2 * len(own) or min(pads) < 0 or f.value(3) is not None:
        raise NotDescribedError("its mode, its axes or a negative padding is not derived")
    if data_type not in (TensorDataType.FLOAT32, TensorDataType.FLOAT16):
        raise NotDescribedError("the padding of this element type is not derived")
    value = f.number("value", 0.0) if f.opset < 11 else f.scalar(2)
    missing = (0,) * max(MIN_RANK - len(own), 0)
    members = {
        "InputTensor": f.input(0),
        "OutputTensor": f.output,
        "PaddingMode": _PADDING[mode],
        "PaddingValueDataType": data_type,
        "PaddingValue": value or 0.0,
        "DimensionCount": len(own) + len(missing),
        "StartPadding": (*missing, *pads[: len(own)]),
        "EndPadding": (*missing, *pads[len(own) :]),
    }
    return [AnyOperatorDesc("PADDING1", members)]


def _tile(f: _Facts) -> Sequence[AnyOperatorDesc]:
    repeats = padded(f.constants(1) or ())
    members = {"InputTensor": f.input(0), "OutputTensor": f.output, "RepeatsCount": len(repeats), "Repeats": repeats}
    return [AnyOperatorDesc("TILE", members)]


_ORDERS: Final = {b"DCR": "DEPTH_COLUMN_ROW", b"CRD": "COLUMN_ROW_DEPTH"}


def _depth_to_space(f: _Facts) -> Sequence[AnyOperatorDesc]:
    order = _ORDERS[f.number("mode", b"DCR")]
    members = {"InputTensor": f.input(0), "OutputTensor": f.output, "BlockSize": f.number("blocksize", 1)}
    return [AnyOperatorDesc("DEPTH_TO_SPACE1", {**members, "Order": order})]


def _lrn(f: _Facts) -> Sequence[AnyOperatorDesc]:
    members = {
        "InputTensor": f.input(0),
        "OutputTensor": f.output,
        "CrossChannel": True,
        "LocalSize": f.number("size", 1),
        "Alpha": f.number("alpha", 0.0001),
        "Beta": f.number("beta", 0.75),
        "Bias": f.number("bias", 1.0),
    }
    return [AnyOperatorDesc("LOCAL_RESPONSE_NORMALIZATION", members)]


_SOFTMAX: Final = {"Softmax": "SOFTMAX1", "LogSoftmax": "LOG_SOFTMAX1", "Hardmax": "HARDMAX1"}


def _softmax(f: _Facts) -> Sequence[AnyOperatorDesc]:
    own = f.shape(f.value(0))
    rank = max(len(own), MIN_RANK)
    axis = f.number("axis", -1 if f.opset >= 13 else 1) % max(len(own), 1) + rank - len(own)
    axes = (axis,) if f.opset >= 13 else tuple(range(axis, rank))
    members = {"InputTensor": f.input(0), "OutputTensor": f.output, "AxisCount": len(axes), "Axes": axes}
    return [AnyOperatorDesc(f"ACTIVATION_{_SOFTMAX[f.node.op_type]}", members)]


def _slice(f: _Facts) -> Sequence[AnyOperatorDesc]:
    sizes = f.shape(f.value(0))
    rank = len(sizes)
    if f.opset < 10:
        starts, ends = f.ints("starts", ()), f.ints("ends", ())
        axes, steps = f.ints("axes", tuple(range(len(starts)))), (1,) * len(starts)
    else:
        starts, ends = f.constants(1) or (), f.constants(2) or ()
        given, steps = f.constants(3), f.constants(4) or (1,) * len(starts)
        axes = tuple(range(len(starts))) if given is None else given
    offsets, lengths, strides = [0] * rank, list(sizes), [1] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        taken = range(*slice(start, end, step).indices(sizes[axis])) if step > 0 else range(0)
        if not taken:
            raise NotDescribedError("a negative step, or an empty result, is not derived")
        offsets[axis], strides[axis] = taken[0], step
        lengths[axis] = min(max(end + sizes[axis] if end < 0 else end, 0), sizes[axis]) - taken[0]
    if lengths == list(sizes):
        raise NotDescribedError("it takes everything, and may be taken out")
    members = {
        "InputTensor": f.tensor(f.value(0), least=1),
        "OutputTensor": f.tensor(f.node.outputs[0], least=1),
        "DimensionCount": rank,
        "InputWindowOffsets": offsets,
        "InputWindowSizes": lengths,
        "InputWindowStrides": strides,
    }
    return [AnyOperatorDesc("SLICE1", members)]


_REDUCE: Final = {
    "ReduceMean": "AVERAGE",
    "ReduceSum": "SUM",
    "ReduceMax": "MAX",
    "ReduceMin": "MIN",
    "ReduceProd": "MULTIPLY",
    "ReduceL1": "L1",
    "ReduceL2": "L2",
    "ReduceLogSum": "LOG_SUM",
    "ReduceLogSumExp": "LOG_SUM_EXP",
    "ReduceSumSquare": "SUM_SQUARE",
}


def _reduce(f: _Facts) -> Sequence[AnyOperatorDesc]:
    own = f.shape(f.value(0))
    given = f.ints("axes", ()) or (f.constants(1) if len(f.node.inputs) > 1 else None) or ()
    if not given and f.number("noop_with_empty_axes", 0):
        raise NotDescribedError("a reduction of no axes is not derived")
    axes = sorted({axis % len(own) for axis in given}) or list(range(len(own)))
    result = tuple([1 if i in axes else size for i, size in enumerate(own)])
    members = {
        "Function": _REDUCE[f.node.op_type],
        "InputTensor": f.tensor(f.value(0), own, least=1),
        "OutputTensor": f.tensor(f.node.outputs[0], result, least=1),
        "AxisCount": len(axes),
        "Axes": axes,
    }
    return [AnyOperatorDesc("REDUCE", members)]


def _gather(f: _Facts) -> Sequence[AnyOperatorDesc]:
    own, indices = f.shape(f.value(0)), f.shape(f.value(1))
    axis = f.number("axis", 0) % len(own)
    result = f.shape(f.node.outputs[0])
    rank = max(len(own), len(indices), len(result), 1)
    members = {
        "InputTensor": f.tensor(f.value(0), own, least=rank),
        "IndicesTensor": f.tensor(f.value(1), indices, least=rank),
        "OutputTensor": f.tensor(f.node.outputs[0], result, least=rank),
        "Axis": axis + rank - len(own),
        "IndexDimensions": len(indices),
    }
    return [AnyOperatorDesc("GATHER", members)]


_KERNELS: Final[Mapping[str, _Kernel]] = {
    **dict.fromkeys(_ACTIVATIONS, _with_activation),
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys((*_BINARY, FUSED_ADD), _binary),
    **dict.fromkeys(("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"), _moved),
    **dict.fromkeys(("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"), _pool),
    **dict.fromkeys(_SOFTMAX, _softmax),
    **dict.fromkeys(_REDUCE, _reduce),
    QUICK_GELU: _quick_gelu,
    "Cast": _cast,
    "Round": _round,
    "PRelu": _prelu,
    "Pad": _pad,
    "Resize": _resize,
    "Tile": _tile,
    "DepthToSpace": _depth_to_space,
    "LayerNormalization": _layer_normalization,
    "InstanceNormalization": _instance_normalization,
    "ConvTranspose": _conv,
    "Pow": _pow,
    "Where": _where,
    "Clip": _clip,
    "Transpose": _transpose,
    "Expand": _expand,
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    RESHAPED_GEMM: _reshaped_gemm,
    "BatchNormalization": _batch_normalization,
    "LRN": _lrn,
    "Slice": _slice,
    "Gather": _gather,
}
"""By ONNX operator; an operator without a row is not judged."""
