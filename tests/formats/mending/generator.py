"""Random models that some target refuses, fails on or computes wrongly; and some that are right."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.models import Sketch, array, node

OPSETS = (9, 11, 12, 13, 17, 18, 21)
FLOATS = ("FLOAT", "FLOAT", "FLOAT", "FLOAT", "FLOAT", "FLOAT16")
OTHERS = ("UINT8", "INT8", "BOOL", "INT64", "INT32")
UNARY = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Abs", "Neg")
UNARY_EXACT_OF_INTEGERS = ("Identity",)


@dataclass
class Tensor:
    name: str
    shape: tuple[int, ...]


@dataclass
class Builder:
    """One graph in the making. Sizes are numbers here; `symbols` names those that the file leaves open."""

    seed: int
    opset: int = 17
    kind: str = "FLOAT"
    sketch: Sketch = field(default_factory=Sketch)
    live: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    read: set = field(default_factory=set)
    cuts: set = field(default_factory=set)
    count: int = 0

    def __post_init__(self):
        self.random = random.Random(self.seed)

    def name(self, word="t"):
        self.count += 1
        return f"{word}{self.count}"

    def add(self, op, inputs, shapes, named=None, **attributes):
        """A node, and the tensors that it gives; an output whose shape is None has no name."""
        made = [Tensor("" if shape is None else self.name(), shape or ()) for shape in shapes]
        name = self.name(op.lower()) if self.random.random() < 0.7 else None
        names = [tensor.name for tensor in made]
        self.sketch.node(op, inputs, names, name=name, **attributes)
        self.read.update(inputs)
        found = [tensor for tensor in made if tensor.name]
        self.live += [tensor for tensor in found if 0 not in tensor.shape]
        return found

    def constant(self, values, as_node=None):
        name = self.name("k")
        elements = values if isinstance(values, np.ndarray) else np.array(values, np.int64)
        if as_node if as_node is not None else self.random.random() < 0.5:
            self.sketch.node("Constant", [], [name], value=array(name, elements))
        else:
            self.sketch.initializer(elements, name)
        return name

    def pick(self):
        return self.random.choice(self.live[-4:])

    def cut(self, size, count, empty=False):
        """Lengths that add up to a size."""
        edges = sorted(self.random.choices(range(size + 1), k=count - 1))
        lengths = [b - a for a, b in zip([0, *edges], [*edges, size], strict=True)]
        if not empty and 0 in lengths:
            return None
        return lengths

    def split(self, tensor, axis=None, lengths=None, omit=False, how=None):
        rank = len(tensor.shape)
        axis = self.random.randrange(rank) if axis is None else axis
        size = tensor.shape[axis]
        if lengths is None:
            lengths = self.cut(size, self.random.choice((2, 2, 3)), empty=self.random.random() < 0.15)
        if lengths is None:
            return []
        if (tensor.name, axis, tuple(lengths)) in self.cuts:  # OpenVINO merges equal Splits, and fails
            return []
        self.cuts.add((tensor.name, axis, tuple(lengths)))
        shapes = [(*tensor.shape[:axis], length, *tensor.shape[axis + 1 :]) for length in lengths]
        if omit and len(shapes) > 1:
            shapes[self.random.randrange(len(shapes))] = None
        attributes = {"axis": axis if self.opset < 11 or self.random.random() < 0.7 else axis - rank}
        inputs = [tensor.name]
        equal = len(set(lengths)) == 1
        chunk = -(-size // len(lengths))
        chunked = lengths == [*[chunk] * (len(lengths) - 1), size - chunk * (len(lengths) - 1)]
        how = how or self.random.choice(("given", "short"))
        if how == "computed" and self.opset >= 13 and equal:
            shape = self.add_integers("Shape", [tensor.name])
            dim = self.add_integers("Gather", [shape, self.constant([axis])])
            part = self.add_integers("Div", [dim, self.constant([len(lengths)])])
            inputs.append(self.add_integers("Concat", [part] * len(lengths), axis=0))
        elif how == "short" and self.opset < 18 and equal:
            pass
        elif how == "short" and self.opset >= 18 and chunked:
            attributes["num_outputs"] = len(lengths)
        elif self.opset < 13:
            attributes["split"] = lengths
        else:
            inputs.append(self.constant(lengths))
        return self.add("Split", inputs, shapes, **attributes)

    def add_integers(self, op, inputs, **attributes):
        name = self.name("i")
        self.sketch.node(op, inputs, [name], **attributes)
        return name

    def concat(self, tensors, axis):
        shape = list(tensors[0].shape)
        shape[axis] = sum(tensor.shape[axis] for tensor in tensors)
        return self.add("Concat", [tensor.name for tensor in tensors], [tuple(shape)], axis=axis)[0]

    def unary(self, tensor, op=None):
        op = op or self.random.choice(UNARY if self.kind in ("FLOAT", "FLOAT16") else UNARY_EXACT_OF_INTEGERS)
        return self.add(op, [tensor.name], [tensor.shape])[0]

    def binary(self, op, a, b):
        return self.add(op, [a.name, b.name], [a.shape])[0]


def _plain_split(b):
    b.split(b.pick(), omit=b.random.random() < 0.15, how=b.random.choice(("given", "short", "computed")))


def _empty_split(b):
    tensor = b.pick()
    axis = b.random.randrange(len(tensor.shape))
    lengths = [0, tensor.shape[axis]]
    b.random.shuffle(lengths)
    b.split(tensor, axis, lengths, how="given")


def _plain_concat(b):
    tensor = b.pick()
    axis = b.random.randrange(len(tensor.shape))
    alike = [t for t in b.live if t.shape == tensor.shape]
    b.concat(b.random.choices(alike, k=b.random.choice((2, 2, 3))), axis)


def _gate(b):
    tensor = b.pick()
    for axis in range(len(tensor.shape)):
        if tensor.shape[axis] % 2 == 0:
            parts = b.split(tensor, axis, [tensor.shape[axis] // 2] * 2)
            if not parts:
                return
            one, two = parts
            factors = [one, b.unary(two, "Sigmoid")]
            b.random.shuffle(factors)
            b.binary("Mul", *factors)
            return


def _product(b):
    x = b.unary(b.pick())
    y = b.unary(x)
    p = b.binary("Mul", y, x)
    b.binary("Mul", p, b.unary(x, "Sigmoid"))
    b.concat([p, p], 0) if b.random.random() < 0.3 else None
    b.split(b.live[-1])


def _overwritten(b):
    v = b.unary(b.pick())
    other = b.random.choice([t for t in b.live if t.shape == v.shape])
    joined = b.unary(b.concat(b.random.sample([v, other], 2), b.random.randrange(len(v.shape))))
    b.unary(joined)
    b.unary(v, "Neg") if b.random.random() < 0.7 else b.outputs.append(v)


def _refused(b):
    v = b.unary(b.pick())
    axis = next((i for i, size in enumerate(v.shape) if size > 1), None)
    if axis is None:
        return
    parts = b.split(v, axis, [v.shape[axis] // 2, v.shape[axis] - v.shape[axis] // 2])
    if parts:
        b.live.remove(parts[1])
        b.unary(parts[0])
        b.live.remove(parts[0])


def _unwritten(b):
    x = b.pick()
    total = b.binary("Add", x, x)
    b.outputs.append(total)
    b.concat([b.unary(total, "Relu"), x], 0)


STEPS = (_plain_split, _plain_split, _empty_split, _plain_concat)
STEPS_OF_FLOATS = (*STEPS, _gate, _product, _overwritten, _refused, _unwritten)


def model(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model, and arrays for its inputs."""
    chance = random.Random(seed)
    b = Builder(seed, chance.choice(OPSETS), chance.choice(FLOATS if chance.random() < 0.75 else OTHERS))
    rank = chance.choice((1, 2, 3, 4, 4, 5, 6))
    element_type = TensorProto.DataType.Value(b.kind)
    open_ = chance.random() < 0.25
    arrays, shapes = {}, {}
    shape = tuple(chance.choice((1, 2, 3, 4, 6, 8)) for _ in range(rank))
    for number in range(chance.choice((1, 2))):
        tensor = Tensor(f"x{number}", shape)
        b.live.append(tensor)
        arrays[tensor.name] = _array(b.kind, shape, seed + number)
        shapes[tensor.name] = ["N", *shape[1:]] if open_ else list(shape)
    steps = STEPS_OF_FLOATS if b.kind in ("FLOAT", "FLOAT16") else STEPS
    for _ in range(chance.choice((1, 2, 2, 3, 4))):
        chance.choice(steps)(b)
    ends = [t for t in b.live if t.name not in b.read and t.name not in arrays] or [b.live[-1]]
    kept = {t.name: t for t in (*b.outputs, *ends) if t.name not in arrays}
    if not kept:
        return model(seed + 10**6)
    made = Sketch(element_type, b.opset, b.sketch.nodes, initializers=b.sketch.initializers)
    for name, shape in shapes.items():
        made.input(name, *shape)
    for tensor in kept.values():
        made.output(tensor.name, [None] * len(tensor.shape))
    wrapped = chance.random()
    if wrapped < 0.12:
        nodes = [*(node("Constant", [], [t.name], value=t) for t in made.initializers), *made.nodes]
        imports = [helper.make_opsetid("", b.opset)]
        made.functions = [helper.make_function("own", "F", list(arrays), list(kept), nodes, imports)]
        made.nodes, made.initializers = [node("F", list(arrays), list(kept), domain="own", name="call")], []
    elif wrapped < 0.24:
        inner = Sketch(element_type, b.opset, made.nodes, initializers=made.initializers)
        for tensor in kept.values():
            inner.node("Identity", [tensor.name], [f"{tensor.name}_out"])
            inner.output(f"{tensor.name}_out", [None] * len(tensor.shape))
        branch = inner.graph("then")
        made.nodes, made.initializers = [], []
        made.node("If", ["choice"], list(kept), then_branch=branch, else_branch=deepcopy(branch), name="if")
        made.input("choice", element=TensorProto.BOOL)
        arrays["choice"] = np.array(True)
    return made.model(), arrays


def _array(kind: str, shape, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if kind == "BOOL":
        return generator.integers(0, 2, shape).astype(bool)
    dtype = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind))
    if dtype.kind == "f":
        return generator.normal(size=shape).astype(dtype)
    return generator.integers(0, 100, shape).astype(dtype)
