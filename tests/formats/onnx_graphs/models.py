"""The models of the recorded executions, from the words in which they were recorded.

x and y are FLOAT of 1x4x4x4 unless the words say otherwise. The operators that DirectML was given are recorded, too: a
model that is not the one executed shows there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        self.outputs = [name if each == tensor else each for each in self.outputs]
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


def gate(line: Line) -> onnx.ModelProto:
    """Class A: a * Sigmoid(b) of one Split."""
    words, cure = line["model"], line.get("cure", "")
    s = Sketch(FLOAT16 if "FLOAT16" in words else FLOAT)
    shape: list[int | str] = [1, 8, 4, 4]
    axis, lengths = 1, [4, 4]
    if words == "2-D 4x64":
        shape, axis, lengths = [4, 64], 1, [32, 32]
    elif words.startswith("3-way"):
        lengths = [2, 3, 3]
    elif "1x64x32x32" in words:
        shape, lengths = [1, 64, 32, 32], [32, 32]
    elif "Conformer 1x50x256" in words:
        shape, axis, lengths = [1, 50, 256], 2, [128, 128]
    elif "1x256x50x1" in words:
        shape, lengths = [1, 256, 50, 1], [128, 128]
    if "symbolic" in words:
        shape[0] = "N"
    x = s.input("x", *shape)
    if words == "after Relu":
        x = s("Relu", x)
    elif words.startswith("Conformer 1x50x256"):
        s.inputs.clear()
        x = s("Conv", s.input("x", 1, 50, 256), s.weights(50, 50, 1))
    elif "after Conv" in words:
        x = s.conv(x, int(shape[1]), int(shape[1]))
    a, b = _parts(s, x, axis, lengths, cure)
    gate = s("Sigmoid", _changed(s, b, cure, "b")) if cure not in ("tanhform", "div") else _sigmoid(s, b, cure)
    if cure in ("hardclip", "clip_s"):
        gate = s.clip(gate, 0, 1)
    elif cure in ("ident_s", "mul1_s"):
        gate = _changed(s, gate, cure, "s")
    a = _changed(s, a, cure, "a")
    o = s("Mul", gate, a) if words == "sigmoid(b)*a" else s("Mul", a, gate)
    if words == "then Tanh":
        o = s("Tanh", o)
    s.outputs = [s.named(o, "o")]
    s.outputs += {"a_out": [a], "b_out": [b], "sig_out": [gate]}.get(cure, [])
    return s.model()


def _parts(s: Sketch, x: str, axis: int, lengths: list[int], cure: str) -> tuple[str, str]:
    if cure == "slices":
        return s.slice(x, axis, 0, lengths[0]), s.slice(x, axis, lengths[0], sum(lengths[:2]))
    if cure == "twosplits":
        return s.split(x, axis, *lengths)[0], s.split(x, axis, *lengths)[1]
    first, second, *_ = s.split(x, axis, *lengths)
    if cure == "slice_a":
        return s.slice(x, axis, 0, lengths[0]), second
    if cure == "slice_b":
        return first, s.slice(x, axis, lengths[0], sum(lengths[:2]))
    return first, second


def _sigmoid(s: Sketch, x: str, form: str) -> str:
    if form == "tanhform":
        return s.mul_c(s.mul_c(s("Tanh", s.mul_c(x)), value=0.5), "Add", 0.5)
    return s("Div", s.constant(1), s.mul_c(s("Exp", s("Neg", x)), "Add", 1))


CHANGES: Final[dict[str, Callable[[Sketch, str], str]]] = {
    "ident": lambda s, x: s("Identity", x),
    "mul1": lambda s, x: s.mul_c(x, "Mul", 1),
    "add0": lambda s, x: s.mul_c(x, "Add", 0),
    "reshape": lambda s, x: s.again(x),
    "tperm": lambda s, x: s("Transpose", s("Transpose", x, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2]),
    "transpose": lambda s, x: s("Transpose", s("Transpose", x, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2]),
    "max": lambda s, x: s("Max", x, x),
    "dropout": lambda s, x: s("Dropout", x),
    "padzero": lambda s, x: s("Pad", x, s.integers(*(0,) * 8)),
}


def _changed(s: Sketch, x: str, cure: str, place: str) -> str:
    """The tensor behind what a cure puts at a place."""
    kind, _, where = cure.rpartition("_")
    return CHANGES[kind](s, x) if where == place and kind in CHANGES else x


def repeated(line: Line) -> onnx.ModelProto:
    """Class B: a Concat that takes a tensor twice."""
    words = line["model"]
    s = Sketch()
    v = s("Tanh", s.input("x", 1, 4, 4, 4))
    second = v
    if "Max" in words:
        second = s("Max", v, v)
    elif "Reshape" in words:
        second = s.again(v)
    if "Tile" in words:
        o = s("Tile", v, s.integers(1, 2, 1, 1))
    elif words == "Concat(v,y,v)":
        o = s.concat(v, s.input("y", 1, 4, 4, 4), second)
    else:
        o = s.concat(v, second)
        o = s("Relu", o) if "Relu" in words else o
    s.outputs = [s.named(o, "o")]
    if words.endswith("v a graph output"):
        s.outputs.append(v)
    return s.model()
