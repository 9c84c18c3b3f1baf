"""Nodes that something refuses, fails on or computes wrongly, put into a model at random places.

Each plant reads one tensor and gives one of the same shape, which the tensor's reader reads instead: what is planted is
part of what the model computes. A plant is given the graph's opset and names made for it, and knows all sizes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference


@dataclass
class Place:
    """A graph, the index of a node in it, and which of the node's inputs is replaced: a FLOAT tensor of `shape`."""

    graph: onnx.GraphProto
    index: int
    slot: int
    shape: tuple[int, ...]


@dataclass
class Plant:
    """The nodes of one plant in the making."""

    opset: int
    prefix: str
    shape: tuple[int, ...]
    nodes: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    """Names and shapes of what becomes an output of the model."""

    def name(self):
        return f"{self.prefix}/t{len(self.nodes)}"

    def add(self, op, *inputs, count=1, names=None, **attributes):
        base = self.name()
        names = [f"{base}_{i}" for i in range(count)] if names is None else [n and f"{base}_{n}" for n in names]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{base}/{op}", **attributes))
        return names[0] if len(names) == 1 else names

    def integers(self, *values):
        name = self.name()
        value = numpy_helper.from_array(np.array(values, np.int64), name)
        self.nodes.append(helper.make_node("Constant", [], [name], value=value))
        return name

    def split(self, tensor, axis, lengths, **fields):
        if self.opset < 13:
            return self.add("Split", tensor, count=len(lengths), axis=axis, split=lengths, **fields)
        return self.add("Split", tensor, self.integers(*lengths), count=len(lengths), axis=axis, **fields)

    def slice(self, tensor, axis, start, end):
        return self.add("Slice", tensor, *(self.integers(value) for value in (start, end, axis)))

    def concat(self, axis, *tensors):
        return self.add("Concat", *tensors, axis=axis)

    def reshape(self, tensor, shape):
        return self.add("Reshape", tensor, self.integers(*shape))

    def halves(self):
        """The first axis with an even size."""
        return next(i for i, size in enumerate(self.shape) if size % 2 == 0)

    @property
    def widest(self):
        return max(range(len(self.shape)), key=lambda axis: self.shape[axis])


def gate(p, x):
    axis, half = p.halves(), p.shape[p.halves()] // 2
    a, b = p.split(p.add("Relu", x), axis, [half, half])
    y = p.add("Mul", a, p.add("Sigmoid", b))
    return p.concat(axis, y, p.slice(x, axis, half, 2 * half))


def product(p, x):
    axis, size = p.widest, p.shape[p.widest]
    y, t = p.add("Abs", x), p.add("Tanh", x)
    product = p.add("Mul", p.add("Mul", y, t), p.add("Sigmoid", t))
    return p.slice(p.concat(axis, x, product), axis, size, 2 * size)


def overwritten(p, x):
    """A state beside a Concat: read after the operator behind it."""
    axis, size = p.widest, p.shape[p.widest]
    v = p.add("Tanh", x)
    r = p.add("Relu", p.concat(axis, v, x))
    return p.add("Add", v, p.slice(r, axis, size, 2 * size))


def state(p, x):
    """An output of the model, made by an operator that the activation in front of a Concat would be put into."""
    axis, size = p.widest, p.shape[p.widest]
    v = p.add("Add", x, x)
    p.outputs.append((v, p.shape))
    return p.slice(p.concat(axis, p.add("Relu", v), x), axis, size, 2 * size)


def one_part(p, x):
    axis, half = p.halves(), p.shape[p.halves()] // 2
    v = p.add("Sigmoid", x)
    a, _ = p.split(v, axis, [half, half])
    p.outputs.append((p.add("Relu", a), (*p.shape[:axis], half, *p.shape[axis + 1 :])))
    return p.add("Neg", x)


def dead(p, x):
    axis, size = p.widest, p.shape[p.widest]
    parts = p.split(x, axis, [size - 1, 1])
    p.concat(axis, *parts)
    return p.add("Neg", x)


def empty(p, x):
    axis, size = p.widest, p.shape[p.widest]
    return p.concat(axis, *p.split(x, axis, [0, size - 1, 1]))


def omitted(p, x):
    axis, size = p.widest, p.shape[p.widest]
    a, _, c = p.split(x, axis, [1, size - 2, 1], names=["a", "", "c"])
    return p.concat(axis, a, p.slice(x, axis, 1, size - 1), c)


def counted(p, x):
    axis, half = p.halves(), p.shape[p.halves()] // 2
    if p.opset >= 18:
        a, b = p.add("Split", x, count=2, axis=axis, num_outputs=2)
    else:
        a, b = p.add("Split", x, count=2, axis=axis)
    assert half
    return p.concat(axis, p.add("Neg", b), a)


def ranked(rank):
    def plant(p, x):
        axis, size = p.widest, p.shape[p.widest]
        shape = (*p.shape[: axis + 1], *(1,) * (rank - len(p.shape)), *p.shape[axis + 1 :])
        whole = p.reshape(x, shape)
        a, b = p.split(whole, axis, [1, size - 1])
        return p.reshape(p.concat(axis, b, a), p.shape)

    plant.__name__ = f"rank_{rank}"
    return plant


def booleans(p, x):
    axis, size = p.widest, p.shape[p.widest]
    zero = p.add("Sub", x, x)
    a, b = p.split(p.add("Greater", x, zero), axis, [1, size - 1])
    return p.add("Where", p.concat(axis, b, a), x, p.add("Neg", x))


def bytes_(p, x):
    axis, size = p.widest, p.shape[p.widest]
    a, b = p.split(p.add("Cast", p.add("Relu", p.add("Tanh", x)), to=TensorProto.UINT8), axis, [1, size - 1])
    return p.add("Mul", x, p.add("Cast", p.concat(axis, b, a), to=TensorProto.FLOAT))


GRAPHS = (gate, product, overwritten, state, one_part, dead)
"""What DirectML computes wrongly or refuses in a graph, by the release."""
NODES = (empty, omitted, counted, ranked(5), ranked(6), ranked(8), booleans, bytes_)
"""What a level or a runtime refuses by itself."""
NINE = ranked(9)
"""What no target takes, and a runtime not even for a Reshape."""
PLANTS: tuple[Callable, ...] = (*GRAPHS, *NODES)


def planted(model: onnx.ModelProto, seed: int, count: int, plants=PLANTS) -> tuple[onnx.ModelProto, list[str]]:
    """A model with some plants in it, and their names. Its open sizes should be given: a plant knows its sizes."""
    chance = random.Random(seed)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    opset = next(entry.version for entry in made.opset_import if not entry.domain)
    inferred = shape_inference.infer_shapes(made, data_prop=True)
    places = list(_places(made.graph, inferred.graph, {}))
    chance.shuffle(places)
    found: list[tuple[Place, Plant, str]] = []
    names = []
    used = set()
    for place in places:
        if len(found) == count:
            break
        kind = plants[(len(found) + seed) % len(plants)]
        if (id(place.graph), place.index) in used or (kind in (state, one_part) and place.graph is not made.graph):
            continue
        plant = Plant(opset, f"plant{len(found)}", place.shape)
        read = made_input = place.graph.node[place.index].input[place.slot]
        try:
            result = kind(plant, read)
        except (StopIteration, AssertionError):  # no axis for it
            continue
        assert made_input
        used.add((id(place.graph), place.index))
        found.append((place, plant, result))
        names.append(kind.__name__)
        made.graph.output.extend(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in plant.outputs
        )
    for place, _, result in found:
        place.graph.node[place.index].input[place.slot] = result
    for place, plant, _ in sorted(found, key=lambda each: -each[0].index):
        nodes = list(place.graph.node)
        nodes[place.index : place.index] = plant.nodes
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del place.graph.node[:]
        place.graph.node.extend(copies)
    return made, names


def _places(graph: onnx.GraphProto, inferred: onnx.GraphProto, around) -> Iterator[Place]:
    """The FLOAT tensors of two dimensions or more whose sizes are known, where a node reads them."""
    known = {**around, **{v.name: v.type.tensor_type for v in (*inferred.input, *inferred.value_info)}}
    weights = {tensor.name for tensor in graph.initializer}
    weights |= {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    for index, node in enumerate(graph.node):
        for attribute, twin in zip(node.attribute, inferred.node[index].attribute, strict=True):
            if attribute.HasField("g"):
                yield from _places(attribute.g, twin.g, known)
        if node.op_type in ("If", "Loop", "Scan"):
            continue
        for slot, name in enumerate(node.input):
            kind = known.get(name)
            if name in weights or kind is None or kind.elem_type != TensorProto.FLOAT or not kind.HasField("shape"):
                continue
            shape = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim)
            if 2 <= len(shape) <= 4 and min(shape) > 0 and max(shape) > 2:
                yield Place(graph, index, slot, shape)
