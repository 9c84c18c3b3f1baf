"""ONNX models for tests: in onnx's text form, of nodes, or as a sketch that grows operator by operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

BOOL, FLOAT, FLOAT16, INT64 = TensorProto.BOOL, TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64
OPSET: Final = 17
Shape: TypeAlias = Sequence[int | str | None]
Constants: TypeAlias = Iterable[onnx.TensorProto] | Mapping[str, Any]
Outputs: TypeAlias = Iterable[str | onnx.ValueInfoProto]
node = helper.make_node


def ir_version(opset: int) -> int:
    """The IR version that was current with an opset."""
    table = {1: 3, 9: 4, 10: 5, 11: 6, 12: 7, 15: 8, 19: 9, 21: 10, 23: 11}
    return table[max(first for first in table if first <= opset)]


def value(name: str, shape: Shape | None, element: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def ints(name: str, *values: int) -> onnx.TensorProto:
    """A constant of one dimension."""
    return array(name, np.array(values, np.int64))


def array(name: str, values: Any) -> onnx.TensorProto:
    """A constant."""
    return numpy_helper.from_array(np.asarray(values), name)


def with_reference(
    made: onnx.NodeProto, name: str, reference: str, kind: int = onnx.AttributeProto.INT
) -> onnx.NodeProto:
    """The node with an attribute that refers to one of the function around it."""
    made.attribute.append(onnx.AttributeProto(name=name, type=kind, ref_attr_name=reference))
    return made


def graph(
    nodes: Iterable[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto],
    outputs: Outputs = ("a",),
    initializers: Constants = (),
    name: str = "g",
    value_info: Iterable[onnx.ValueInfoProto] = (),
) -> onnx.GraphProto:
    """A graph; of an output that is a name nothing is declared. `initializers`: tensors, or arrays by name."""
    infos = [helper.make_empty_tensor_value_info(each) if isinstance(each, str) else each for each in outputs]
    if isinstance(initializers, Mapping):
        initializers = [array(each, values) for each, values in initializers.items()]
    return helper.make_graph(list(nodes), name, list(inputs), infos, list(initializers), value_info=list(value_info))


def model(
    nodes: Iterable[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto],
    outputs: Outputs = ("a",),
    opset: int = 18,
    initializers: Constants = (),
    functions: Iterable[onnx.FunctionProto] = (),
    domains: Iterable[str] = (),
    value_info: Iterable[onnx.ValueInfoProto] = (),
    **fields: Any,
) -> onnx.ModelProto:
    """A model of one graph, which imports an opset (0: none) and the first version of other domains."""
    imports = [helper.make_opsetid("", opset)] if opset else []
    imports += [helper.make_opsetid(domain, 1) for domain in domains]
    made = graph(nodes, inputs, outputs, initializers, value_info=value_info)
    return helper.make_model(made, opset_imports=imports, functions=list(functions), **fields)


def text(body: str, opset: int = OPSET, *, functions: str = "", domains: Iterable[str] = ()) -> onnx.ModelProto:
    """A model in onnx's text form: `(float[2,6] x) => (float[2,6] y) { y = Relu(x) }`, and the functions behind it.

    It imports the domain "own" where there are functions.
    """
    imported = "".join(f', "{domain}" : 1' for domain in (*domains, *(["own"] if functions else [])))
    heading = f'<ir_version: 8, opset_import: ["" : {opset}{imported}]>'
    return parser.parse_model(f"{heading} g {body} {functions}")


@dataclass
class Sketch:
    """A graph in the making. Methods that add an operator or a constant return the name of the tensor."""

    element: int = FLOAT
    opset: int = OPSET
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[str | onnx.ValueInfoProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    functions: list[onnx.FunctionProto] = field(default_factory=list)

    def input(self, name: str, *shape: int | str | None, element: int | None = None) -> str:
        self.inputs.append(value(name, shape, self.element if element is None else element))
        return name

    def output(self, name: str, shape: Shape | None, element: int | None = None) -> str:
        """Declares an output."""
        self.outputs.append(value(name, shape, self.element if element is None else element))
        return name

    def node(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Sequence[str]:
        """Adds a node whose outputs have these names; returns them."""
        self.nodes.append(node(op, list(inputs), list(outputs), **attributes))
        return outputs

    def __call__(self, op: str, *inputs: str, out: str | Sequence[str] = "", **attributes: Any) -> Any:
        names = [out or f"t{len(self.nodes)}"] if isinstance(out, str) else list(out)
        self.node(op, inputs, names, **attributes)
        return names[0] if len(names) == 1 else names

    def initializer(self, values: Any, name: str = "") -> str:
        name = name or f"c{len(self.initializers)}"
        self.initializers.append(array(name, values))
        return name

    def constant(self, *values: float, shape: Sequence[int] | None = None) -> str:
        return self.initializer(np.array(values, self._dtype).reshape(() if shape is None else shape))

    def constant_integer(self, value: int) -> str:
        """A tensor of no dimensions."""
        return self.initializer(np.array(value, np.int64))

    def weights(self, *shape: int) -> str:
        count = int(np.prod(shape))
        return self.initializer((np.arange(1, count + 1) / (3 * count)).astype(self._dtype).reshape(shape))

    def integers(self, *values: int, name: str = "") -> str:
        return self.initializer(np.array(values, np.int64), name)

    @property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.element))

    def split(self, x: str, axis: int, *lengths: int, names: Sequence[str] = ()) -> list[str]:
        out = list(names) or [f"part{len(self.nodes)}_{i}" for i in range(len(lengths))]
        made: list[str] = self("Split", x, self.integers(*lengths), out=out, axis=axis)
        return made

    def slice(self, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
        limits = [self.integers(i) for i in (start, end, axis, step)]
        return str(self("Slice", x, *limits))

    def concat(self, *parts: str, axis: int = 1) -> str:
        return str(self("Concat", *parts, axis=axis))

    def conv(self, x: str, before: int, after: int, size: int = 1, **attributes: Any) -> str:
        pads = [size // 2] * 4
        return str(self("Conv", x, self.weights(after, before, size, size), pads=pads, **attributes))

    def bn(self, x: str, channels: int) -> str:
        return str(self("BatchNormalization", x, *(self.weights(channels) for _ in range(4))))

    def clip(self, x: str, low: float = -0.5, high: float = 0.5) -> str:
        return str(self("Clip", x, self.constant(low), self.constant(high)))

    def mul_c(self, x: str, op: str = "Mul", factor: float = 0.5) -> str:
        return str(self(op, x, self.constant(factor)))

    def again(self, x: str, rank: int = 4) -> str:
        """A Reshape to the same shape."""
        return str(self("Reshape", x, self.integers(*(0,) * rank)))

    def named(self, tensor: str, name: str) -> str:
        """Renames a tensor that a node computes."""
        for each in self.nodes:
            for names in (each.input, each.output):
                for i, other in enumerate(names):
                    if other == tensor:
                        names[i] = name
        self.outputs[:] = [name if each == tensor else each for each in self.outputs]
        return name

    def graph(self, name: str = "g") -> onnx.GraphProto:
        return graph(self.nodes, self.inputs, self.outputs, self.initializers, name)

    def model(self, ir: int | None = None) -> onnx.ModelProto:
        """The model, of the IR version that was current with its opset; `ir`: of another one."""
        version = max(ir_version(self.opset), 8) if self.functions else ir_version(self.opset)
        return model(
            self.nodes,
            self.inputs,
            self.outputs,
            self.opset,
            self.initializers,
            self.functions,
            dict.fromkeys(each.domain for each in self.functions),
            ir_version=version if ir is None else ir,
        )

    def inferred(self) -> onnx.ModelProto:
        """The model with the types of its tensors."""
        outputs = [value(each, None, self.element) if isinstance(each, str) else each for each in self.outputs]
        made = Sketch(self.element, self.opset, self.nodes, self.inputs, outputs, self.initializers, self.functions)
        return onnx.shape_inference.infer_shapes(made.model(8))


EQUAL = node("Split", ["x"], ["a", "b"], axis=1)
GLU = model(
    [
        node("Split", ["x"], ["p", "q"], axis=1, num_outputs=2, name="cut"),
        node("Sigmoid", ["q"], ["gate"], name="s"),
        node("Mul", ["p", "gate"], ["a"], name="m"),
        node("Split", ["y"], ["b", "c"], axis=1, num_outputs=2, name="alone"),
    ],
    [value("x", (1, 8, 4, 4)), value("y", (1, 8, 4, 4))],
    ["a", "b", "c"],
    ir_version=8,
)
"""A gated linear unit, whose graph DirectML 1.13.1 to 1.15.4 compute wrong, and beside it a Split that is right."""
