"""A graph in the making, of whose nodes ONNX Runtime makes a graph of DirectML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Line = dict[str, Any]
FLOAT, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16
OPSET: Final = 17


@dataclass
class Sketch:
    """A model under construction; each method gives the name of the tensor."""

    element: int = FLOAT
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    shapes: dict[str, Sequence[int | str]] = field(default_factory=dict)

    def input(self, name: str, *shape: int | str) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, self.element, shape))
        return name

    def __call__(self, op: str, *inputs: str, out: str | Sequence[str] = "", **attributes: Any) -> Any:
        names = [out or f"t{len(self.nodes)}"] if isinstance(out, str) else list(out)
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if len(names) == 1 else names

    def constant(self, *values: float, shape: Sequence[int] | None = None) -> str:
        dtype = np.float32 if self.element == FLOAT else np.float16
        return self._add(np.array(values, dtype).reshape(() if shape is None else shape))

    def weights(self, *shape: int) -> str:
        dtype = np.float32 if self.element == FLOAT else np.float16
        count = int(np.prod(shape))
        return self._add((np.arange(1, count + 1) / (3 * count)).astype(dtype).reshape(shape))

    def integers(self, *values: int) -> str:
        return self._add(np.array(values, np.int64))

    def _add(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def split(self, x: str, axis: int, *lengths: int, names: Sequence[str] = ()) -> list[str]:
        out = list(names) or [f"part{len(self.nodes)}_{i}" for i in range(len(lengths))]
        return self("Split", x, self.integers(*lengths), out=out, axis=axis)

    def slice(self, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
        limits = [self.integers(i) for i in (start, end, axis, step)]
        return self("Slice", x, *limits)

    def concat(self, *parts: str, axis: int = 1) -> str:
        return self("Concat", *parts, axis=axis)

    def conv(self, x: str, before: int, after: int, size: int = 1, **attributes: Any) -> str:
        pads = [size // 2] * 4
        return self("Conv", x, self.weights(after, before, size, size), pads=pads, **attributes)

    def bn(self, x: str, channels: int) -> str:
        return self("BatchNormalization", x, *(self.weights(channels) for _ in range(4)))

    def clip(self, x: str, low: float = -0.5, high: float = 0.5) -> str:
        return self("Clip", x, self.constant(low), self.constant(high))

    def mul_c(self, x: str, op: str = "Mul", value: float = 0.5) -> str:
        return self(op, x, self.constant(value))

    def again(self, x: str, rank: int = 4) -> str:
        return self("Reshape", x, self.integers(*(0,) * rank))

    def named(self, tensor: str, name: str) -> str:
        """Gives a tensor that a node computes another name."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, each in enumerate(names):
                    if each == tensor:
                        names[i] = name
        self.outputs[:] = [name if each == tensor else each for each in self.outputs]
        return name

    def model(self) -> onnx.ModelProto:
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        for output in outputs:
            output.type.tensor_type.elem_type = self.element
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


UNARY: Final = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "Neg", "Abs")


def behind(s: Sketch, op: str, x: str, y: str, channels: int = 8) -> str:
    """What the words call an operator behind a tensor; `y` is another of its size where one is needed."""
    if op in UNARY:
        return s(op, x)
    match op:
        case "Clip":
            return s.clip(x)
        case "MulC" | "AddC":
            return s.mul_c(x, op[:3])
        case "MulV" | "AddV":
            shape = (1, channels, 1, 1)
            return s(op[:3], x, s.weights(*shape))
        case "BN":
            return s.bn(x, channels)
        case "Conv":
            return s.conv(x, channels, channels)
        case "Conv3":
            return s.conv(x, channels, channels, 3)
        case "Conv3r" | "Conv3y":
            return s("Add", s.conv(x, channels, channels, 3), y)
        case "Mul":
            return s("Mul", x, y)
        case _:
            raise ValueError(op)
