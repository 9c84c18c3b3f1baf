"""Random models with quantizations around their nodes, as tools for quantization write them, and stranger ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from tests.models import ir_version

OLDEST, NEWEST = 10, 23
NODES: Final = (2, 9)
SCALES: Final = (0.5, 0.25, 0.02)
DEQUANTIZE, QUANTIZE = "DequantizeLinear", "QuantizeLinear"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
UINT8, INT8, INT32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32
FIRST: Final = {
    TensorProto.UINT16: 21,
    TensorProto.INT16: 21,
    TensorProto.FLOAT8E4M3FN: 19,
    TensorProto.UINT4: 21,
    TensorProto.INT4: 21,
}
"""The quantized types that are not in the oldest opset, with the first opset that has them."""
RARE: Final = 0.06
"""How often a quantization is of such a type."""
SHAPES: Final = ((2, 4), (1, 4, 6), (1, 4, 6, 6), (2, 4, 4, 4), (4,), (6, 6))


def _context(opset: int) -> onnx.checker.C.CheckerContext:
    made = onnx.checker.C.CheckerContext()
    made.ir_version, made.opset_imports = ir_version(opset), {"": opset}
    return made


CONTEXTS: Final = {opset: _context(opset) for opset in range(OLDEST, NEWEST + 1)}


class Scaled(NamedTuple):
    """How a tensor is quantized: the inputs of its quantizations behind the first, their type, and their axis."""

    inputs: tuple[str, ...]
    data_type: int
    axis: int | None = None


class Tensor(NamedTuple):
    name: str
    shape: tuple[int, ...]
    data_type: int = FLOAT
    scaled: Scaled | None = None
    """How it is quantized, or what it was dequantized of."""


@dataclass
class Maker:
    """A graph in the making."""

    rng: random.Random
    opset: int
    graph: onnx.GraphProto = field(default_factory=lambda: onnx.GraphProto(name="g"))
    tensors: list[Tensor] = field(default_factory=list)
    known: dict[str, onnx.TensorProto | onnx.ValueInfoProto] = field(default_factory=dict)
    made: int = 0

    def name(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def constant(self, values: Any) -> str:
        tensor = numpy_helper.from_array(np.asarray(values), self.name())
        return self.initializer(tensor)

    def initializer(self, tensor: onnx.TensorProto) -> str:
        self.graph.initializer.append(tensor)
        self.known[tensor.name] = tensor
        return tensor.name

    def of_type(self, data_type: int, values: Sequence[int], shape: Sequence[int]) -> str:
        return self.initializer(helper.make_tensor(self.name(), data_type, shape, values))

    def input(self, shape: tuple[int, ...], data_type: int = FLOAT, scaled: Scaled | None = None) -> Tensor:
        value = helper.make_tensor_value_info(self.name(), data_type, shape)
        self.graph.input.append(value)
        self.known[value.name] = value
        made = Tensor(value.name, shape, data_type, scaled)
        self.tensors.append(made)
        return made

    def node(self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[Tensor]:
        """Adds a node, if it is valid; its outputs."""
        node = helper.make_node(op, inputs, [self.name() for _ in range(outputs)], f"k{self.made}", **attributes)
        read = [self.known[name] for name in dict.fromkeys(inputs) if name]
        graph = helper.make_graph([node], "g", [], [helper.make_empty_tensor_value_info(o) for o in node.output])
        for each in read:
            (graph.initializer if isinstance(each, onnx.TensorProto) else graph.input).append(each)
        alone = onnx.ModelProto(
            graph=graph, opset_import=[helper.make_opsetid("", self.opset)], ir_version=ir_version(self.opset)
        )
        try:
            onnx.checker.check_node(node, CONTEXTS[self.opset])
            found = shape_inference.infer_shapes(alone, check_type=True, strict_mode=True, data_prop=True)
        except (onnx.checker.ValidationError, shape_inference.InferenceError, ValueError):
            return []
        self.graph.node.append(node)
        made = []
        for value in found.graph.output:
            self.known[value.name] = value
            tensor = value.type.tensor_type
            made.append(Tensor(value.name, tuple(dim.dim_value for dim in tensor.shape.dim), tensor.elem_type))
        self.tensors += made
        return made

    # Quantization.

    def scaled(self, shape: tuple[int, ...], like: Scaled | None = None, data_type: int | None = None) -> Scaled:
        """A scale and a zero point for a tensor, mostly those of another one."""
        rng = self.rng
        if like is not None and like.axis is None and rng.random() < 0.65:
            return like
        if data_type is None:
            rare = [each for each, first in FIRST.items() if first <= self.opset]
            data_type = rng.choice(rare) if rare and rng.random() < RARE else rng.choice((UINT8, UINT8, INT8))
        scale, zero = rng.choice(SCALES), rng.choice((0, 0, 3)) if data_type != INT32 else 0
        chance, axis = rng.random(), None
        if self.opset >= 13 and chance < 0.1 and shape:
            axis = rng.randrange(len(shape))
            sizes: tuple[int, ...] = (shape[axis],)
        else:
            sizes = (1,) if chance > 0.93 else ()
        count = sizes[0] if sizes else 1
        if rng.random() < 0.03 and axis is None:
            first = self.input((), FLOAT).name
        else:
            first = self.constant(np.full(sizes, scale, np.float32))
        if rng.random() < 0.06 and data_type == UINT8:
            return Scaled((first,), data_type, axis)
        return Scaled((first, self.of_type(data_type, [zero] * count, sizes)), data_type, axis)

    def quantized(self, tensor: Tensor, scaled: Scaled) -> Tensor | None:
        given = {} if scaled.axis is None else {"axis": scaled.axis}
        made = self.node(QUANTIZE, [tensor.name, *scaled.inputs], **given)
        return self._as(made, scaled)

    def dequantized(self, tensor: Tensor, scaled: Scaled | None = None) -> Tensor | None:
        scaled = scaled or tensor.scaled
        if scaled is None:
            return None
        given = {} if scaled.axis is None else {"axis": scaled.axis}
        return self._as(self.node(DEQUANTIZE, [tensor.name, *scaled.inputs], **given), scaled)

    def _as(self, made: list[Tensor], scaled: Scaled) -> Tensor | None:
        if not made:
            return None
        self.tensors[-1] = made[0]._replace(scaled=scaled)
        return self.tensors[-1]

    def weights(self, shape: tuple[int, ...], like: Scaled | None = None, data_type: int | None = None) -> str:
        """A constant that is dequantized, or one of FLOAT."""
        if self.rng.random() < 0.1:
            return self.constant(np.full(shape, 0.5, np.float32))
        scaled = self.scaled(shape, like if data_type is None else None, data_type)
        made = Tensor(self.of_type(scaled.data_type, [1] * int(np.prod(shape)), shape), shape, scaled.data_type)
        found = self.dequantized(made, scaled)
        return self.constant(np.full(shape, 0.5, np.float32)) if found is None else found.name

    # Nodes.

    def source(self) -> Tensor:
        """A tensor of FLOAT, mostly one that is dequantized."""
        rng = self.rng
        quantized = [each for each in self.tensors if each.scaled is not None and each.data_type != FLOAT]
        floats = [each for each in self.tensors if each.data_type == FLOAT and each.shape]
        chance = rng.random()
        if floats and chance < 0.6:
            return rng.choice(floats[-4:])
        if quantized and chance < 0.85:
            return self.dequantized(rng.choice(quantized[-4:])) or self.input(rng.choice(SHAPES))
        if chance < 0.95:
            shape = rng.choice(SHAPES)
            scaled = self.scaled(shape)
            return self.dequantized(self.input(shape, scaled.data_type, scaled)) or self.input(shape)
        return self.input(rng.choice(SHAPES))

    def grow(self) -> None:
        """Adds a node, and mostly a quantization behind each of its outputs."""
        rng, source = self.rng, self.source()
        op = rng.choice(list(OPERATORS))
        made = OPERATORS[op](self, op, source)
        if len(made) == 1 and made[0].data_type == FLOAT and rng.random() < 0.12:
            bounds = [self.constant(np.float32(each)) for each in (0, rng.choice((6, 1000)))]
            clipped = self.node("Relu", [made[0].name]) if rng.random() < 0.6 else self._clip(made[0], bounds)
            made = clipped or made
        if rng.random() < 0.2:
            return
        scaled: Scaled | None = None
        for each in made:
            if each.data_type != FLOAT:
                continue
            scaled = self.scaled(each.shape, source.scaled) if scaled is None or rng.random() < 0.1 else scaled
            if scaled.axis is not None and len(made) > 1:
                continue
            behind = self.quantized(each, scaled)
            if behind is not None and rng.random() < 0.6:
                other = self.scaled(behind.shape, None, scaled.data_type) if rng.random() < 0.05 else None
                self.dequantized(behind, other)

    def _clip(self, tensor: Tensor, bounds: Sequence[str]) -> list[Tensor]:
        if self.opset < 11:
            return self.node("Clip", [tensor.name], min=0.0, max=6.0)
        return self.node("Clip", [tensor.name, *bounds])

    def model(self) -> onnx.ModelProto:
        graph = self.graph
        read = {name for node in graph.node for name in node.input}
        computed = {name for node in graph.node for name in node.output}
        for tensor in self.tensors:
            if tensor.name in computed and (tensor.name not in read or self.rng.random() < 0.06):
                graph.output.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.shape))
        imports = [helper.make_opsetid("", self.opset)]
        return onnx.ModelProto(ir_version=ir_version(self.opset), graph=graph, opset_import=imports)


Making = Callable[[Maker, str, Tensor], list[Tensor]]


def _unary(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    return maker.node(op, [tensor.name])


def _spatial(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    return maker.node(op, [tensor.name]) if len(tensor.shape) > 2 else []


def _on_axis(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    rank = len(tensor.shape)
    given = {"axis": maker.rng.randrange(rank)} if maker.rng.random() < 0.6 or rank == 1 else {}
    return maker.node(op, [tensor.name], **given)


def _axes(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    """Squeeze, Unsqueeze and reductions, whose axes became an input."""
    rank = len(tensor.shape)
    axes = [maker.rng.randrange(rank + (op == "Unsqueeze"))]
    if op == "Squeeze":
        axes = [i for i, size in enumerate(tensor.shape) if size == 1][:1]
    if not axes:
        return []
    if maker.opset >= (18 if op.startswith("Reduce") else 13):
        return maker.node(op, [tensor.name, maker.constant(np.array(axes, np.int64))])
    return maker.node(op, [tensor.name], axes=axes)


def _reshape(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    sizes = maker.rng.choice(([-1], [*tensor.shape[:1], -1], [*reversed(tensor.shape)], [1, *tensor.shape]))
    return maker.node(op, [tensor.name, maker.constant(np.array(sizes, np.int64))])


def _transpose(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    axes = list(range(len(tensor.shape)))
    maker.rng.shuffle(axes)
    return maker.node(op, [tensor.name], **({} if maker.rng.random() < 0.3 else {"perm": axes}))


def _slice(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    limits = [maker.constant(np.array([each], np.int64)) for each in (0, 2, maker.rng.randrange(len(tensor.shape)))]
    return maker.node(op, [tensor.name, *limits])


def _gather(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    axis = maker.rng.randrange(len(tensor.shape))
    if op == "GatherElements":
        return maker.node(op, [tensor.name, maker.constant(np.zeros(tensor.shape, np.int64))], axis=axis)
    return maker.node(op, [tensor.name, maker.constant(np.array([0, 1], np.int64))], axis=axis)


def _tile(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    repeats = np.array([2] + [1] * (len(tensor.shape) - 1), np.int64)
    sizes = repeats if op == "Tile" else np.array([2, *tensor.shape], np.int64)
    return maker.node(op, [tensor.name, maker.constant(sizes)])


def _pool(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    sizes = tensor.shape[2:]
    return maker.node(op, [tensor.name], kernel_shape=[2] * len(sizes)) if sizes and min(sizes) > 1 else []


def _resize(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    scales = maker.constant(np.array([1] * (len(tensor.shape) - 1) + [2], np.float32))
    if maker.opset < 11:
        return maker.node(op, [tensor.name, scales])
    roi = "" if maker.opset >= 13 else maker.constant(np.zeros(0, np.float32))
    return maker.node(op, [tensor.name, roi, scales])


def _split(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    axis = maker.rng.randrange(len(tensor.shape))
    given = {"num_outputs": 2} if maker.opset >= 18 else {}
    return maker.node(op, [tensor.name], 2, axis=axis, **given) if tensor.shape[axis] % 2 == 0 else []


def _pad(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    pads = [1] * (2 * len(tensor.shape))
    if maker.opset < 11:
        return maker.node(op, [tensor.name], pads=pads)
    return maker.node(op, [tensor.name, maker.constant(np.array(pads, np.int64))])


def _clip(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    return maker._clip(tensor, [maker.constant(np.float32(each)) for each in (0, 6)])


def _second(maker: Maker, tensor: Tensor) -> str:
    """A tensor of the same shape, or a constant."""
    same = [each for each in maker.tensors if each.data_type == FLOAT and each.shape == tensor.shape]
    if maker.rng.random() < 0.6:
        return maker.rng.choice(same).name
    return maker.weights(tensor.shape, tensor.scaled)


def _binary(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    pair = [tensor.name, _second(maker, tensor)]
    maker.rng.shuffle(pair)
    return maker.node(op, pair)


def _concat(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    inputs = [tensor.name, *[_second(maker, tensor) for _ in range(maker.rng.randint(0, 2))]]
    return maker.node(op, inputs, axis=maker.rng.randrange(len(tensor.shape)))


def _matmul(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    if len(tensor.shape) < 2:
        return []
    right = maker.weights((tensor.shape[-1], 4), tensor.scaled)
    if op == "Gemm":
        bias = [maker.weights((4,), None, INT32)] if maker.rng.random() < 0.5 else []
        return maker.node(op, [tensor.name, right, *bias]) if len(tensor.shape) == 2 else []
    return maker.node(op, [tensor.name, right])


def _conv(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    if len(tensor.shape) < 3:
        return []
    weights = maker.weights((4, tensor.shape[1], *[1] * (len(tensor.shape) - 2)), tensor.scaled)
    bias = [maker.weights((4,), None, INT32)] if maker.rng.random() < 0.5 else []
    return maker.node(op, [tensor.name, weights, *bias])


def _where(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    condition = maker.input(tensor.shape, TensorProto.BOOL)
    return maker.node(op, [condition.name, tensor.name, _second(maker, tensor)])


def _cast(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    return maker.node(op, [tensor.name], to=maker.rng.choice((FLOAT, TensorProto.FLOAT16, INT32)))


def _depth(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    return maker.node(op, [tensor.name], blocksize=2) if len(tensor.shape) == 4 else []


def _normalization(maker: Maker, op: str, tensor: Tensor) -> list[Tensor]:
    if op == "LayerNormalization":
        return maker.node(op, [tensor.name, maker.weights(tensor.shape[-1:]), maker.weights(tensor.shape[-1:])])
    if len(tensor.shape) < 3:
        return []
    count = 4 if op == "BatchNormalization" else 2
    return maker.node(op, [tensor.name, *[maker.weights(tensor.shape[1:2]) for _ in range(count)]])


OPERATORS: Final[Mapping[str, Making]] = {
    **dict.fromkeys(("Relu", "Sigmoid", "Neg", "Identity", "Tanh", "LeakyRelu", "Shape"), _unary),
    "GlobalAveragePool": _spatial,
    **dict.fromkeys(("Softmax", "Flatten", "ArgMax", "LogSoftmax"), _on_axis),
    **dict.fromkeys(("Squeeze", "Unsqueeze", "ReduceMax", "ReduceMin", "ReduceMean"), _axes),
    **dict.fromkeys(("MaxPool", "AveragePool"), _pool),
    **dict.fromkeys(("Add", "Mul", "Sub", "Div", "Max"), _binary),
    **dict.fromkeys(("Gather", "GatherElements"), _gather),
    **dict.fromkeys(("Tile", "Expand"), _tile),
    **dict.fromkeys(("MatMul", "Gemm"), _matmul),
    "Conv": _conv,
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _depth),
    **dict.fromkeys(("LayerNormalization", "InstanceNormalization", "BatchNormalization"), _normalization),
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Slice": _slice,
    "Resize": _resize,
    "Split": _split,
    "Pad": _pad,
    "Clip": _clip,
    "Concat": _concat,
    "Where": _where,
    "Cast": _cast,
}


def quantized_model(seed: int, index: int, newest_opset: int) -> onnx.ModelProto:
    """The same valid model for the same arguments."""
    rng = random.Random(f"{seed}/{index}")
    while True:
        maker = Maker(rng, rng.randint(OLDEST, min(newest_opset, NEWEST)))
        for _ in range(rng.randint(*NODES)):
            maker.grow()
        model = maker.model()
        if not any(node.op_type in (DEQUANTIZE, QUANTIZE) for node in model.graph.node):
            continue
        try:
            shape_inference.infer_shapes(model, strict_mode=True)
        except (shape_inference.InferenceError, ValueError):
            continue
        return model
