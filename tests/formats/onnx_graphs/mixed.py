"""Random models of common operators: with Splits and Concats or without, for what is said of graphs."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Final

import onnx

from tests.models import FLOAT, FLOAT16, Sketch


def _words(text: str) -> list[str]:
    return text.split()


UNARY: Final = _words(
    "Relu Sigmoid Tanh LeakyRelu Elu Selu HardSigmoid Softplus Softsign HardSwish Abs Neg Exp "
    "Erf Sqrt Floor Sin Atan Sign Identity"
)
BINARY: Final = ("Add", "Sub", "Mul", "Max", "Min", "Div", "Pow")


class Builder:
    """A model of 3 to 20 nodes. `live` maps tensors to shapes."""

    def __init__(self, seed: int, mix: str, joins: bool) -> None:
        self.random = random.Random(f"{seed} {mix} {joins}")
        self.s = Sketch(FLOAT16 if self.random.random() < 0.08 else FLOAT)
        rank = self.random.choice((1, 2, 3, 4, 4, 4, 5))
        self.live: dict[str, tuple[int, ...]] = {}
        for name in ("x", "y")[: self.random.choice((1, 2, 2))]:
            shape = tuple(self.random.choice((1, 2, 4, 8, 16) if i else (1, 1, 2)) for i in range(rank))
            if self.live:
                shape = next(iter(self.live.values()))
            self.live[self.s.input(name, *shape)] = shape
        steps = [*ELEMENTWISE, *(VIEWS if mix != "elementwise" else ()), *(WHOLE if mix == "all" else ())]
        wanted = self.random.randint(3, 20)
        while len(self.s.nodes) < wanted:
            (self.random.choice(JOINS) if joins and self.random.random() < 0.3 else self.random.choice(steps))(self)

    def pick(self) -> str:
        return self.random.choice(list(self.live)[-5:])

    def add(self, op: str, inputs: list[str], shape: tuple[int, ...], **attributes) -> str:
        name = str(self.s(op, *inputs, **attributes))
        self.live[name] = shape
        return name

    def model(self) -> onnx.ModelProto:
        read = {name for each in self.s.nodes for name in each.input}
        made = [name for each in self.s.nodes for name in each.output if name in self.live]
        given = [name for name in made if name not in read or self.random.random() < 0.15]
        names = [f"o{i}" for i in range(len(given))]
        self.random.shuffle(names)
        for old, new in zip(given, names, strict=True):
            self.s.named(old, new)
            self.live[new] = self.live.pop(old)
        self.s.outputs = names
        return self.s.inferred()


def _unary(b: Builder) -> None:
    x = b.pick()
    b.add(b.random.choice(UNARY), [x], b.live[x])


def _clip(b: Builder) -> None:
    x = b.pick()
    b.live[b.s.clip(x)] = b.live[x]


def _constant(b: Builder) -> None:
    x = b.pick()
    b.live[b.s.mul_c(x, b.random.choice(("Mul", "Add")), 0.5)] = b.live[x]


def _binary(b: Builder) -> None:
    x = b.pick()
    alike = [name for name, shape in b.live.items() if shape == b.live[x]]
    b.add(b.random.choice(BINARY), b.random.sample([x, b.random.choice(alike)], 2), b.live[x])


def _where(b: Builder) -> None:
    x = b.pick()
    alike = [name for name, shape in b.live.items() if shape == b.live[x]]
    over = str(b.s("Greater", x, b.s.constant(0.1)))
    b.add("Where", [over, x, b.random.choice(alike)], b.live[x])


def _gate(b: Builder) -> None:
    x = b.pick()
    b.add("Mul", [x, b.add("Sigmoid", [x], b.live[x])], b.live[x])


def _slice(b: Builder) -> None:
    x = b.pick()
    shape = b.live[x]
    axes = [i for i, size in enumerate(shape) if size > 1]
    if axes:
        axis = b.random.choice(axes)
        start, end = sorted(b.random.sample(range(shape[axis] + 1), 2))
        b.live[b.s.slice(x, axis, start, end)] = (*shape[:axis], end - start, *shape[axis + 1 :])


def _transpose(b: Builder) -> None:
    x = b.pick()
    perm = list(range(len(b.live[x])))
    b.random.shuffle(perm)
    b.add("Transpose", [x], tuple(b.live[x][i] for i in perm), perm=perm)


def _reshape(b: Builder) -> None:
    x = b.pick()
    shape = list(b.live[x])
    if len(shape) > 1:
        i = b.random.randrange(len(shape) - 1)
        shape[i : i + 2] = [shape[i] * shape[i + 1]]
    elif shape[0] % 2 == 0:
        shape = [2, shape[0] // 2]
    b.add("Reshape", [x, b.s.integers(*shape)], tuple(shape))


def _unsqueeze(b: Builder) -> None:
    x = b.pick()
    if len(b.live[x]) < 5:
        b.add("Unsqueeze", [x, b.s.integers(0)], (1, *b.live[x]))
    elif 1 in b.live[x]:
        axis = b.live[x].index(1)
        b.add("Squeeze", [x, b.s.integers(axis)], (*b.live[x][:axis], *b.live[x][axis + 1 :]))


def _conv(b: Builder) -> None:
    found = [name for name, shape in b.live.items() if len(shape) in (3, 4)]
    if found:
        x = b.random.choice(found[-4:])
        n, c, *space = b.live[x]
        size = b.random.choice((1, 3))
        depthwise = b.random.random() < 0.25
        after = c if depthwise else b.random.choice((2, 4, 8))
        weights = b.s.weights(after, 1 if depthwise else c, *[size] * len(space))
        pads = [size // 2] * (2 * len(space))
        b.add("Conv", [x, weights], (n, after, *space), pads=pads, group=c if depthwise else 1)


def _normal(b: Builder) -> None:
    found = [name for name, shape in b.live.items() if len(shape) in (3, 4)]
    if found:
        x = b.random.choice(found[-4:])
        c = b.live[x][1]
        if b.random.random() < 0.5:
            b.live[b.s.bn(x, c)] = b.live[x]
        else:
            b.add("InstanceNormalization", [x, b.s.weights(c), b.s.weights(c)], b.live[x])


def _layernorm(b: Builder) -> None:
    x = b.pick()
    b.add("LayerNormalization", [x, b.s.weights(b.live[x][-1])], b.live[x])


def _matmul(b: Builder) -> None:
    x = b.pick()
    if 2 <= len(b.live[x]) < 5:
        n = b.random.choice((2, 4, 8))
        p = b.add("MatMul", [x, b.s.weights(b.live[x][-1], n)], (*b.live[x][:-1], n))
        if b.random.random() < 0.5:
            b.add("Add", [p, b.s.weights(n)], b.live[p])


def _softmax(b: Builder) -> None:
    x = b.pick()
    b.add(b.random.choice(("Softmax", "LogSoftmax")), [x], b.live[x], axis=-1)


def _pool(b: Builder) -> None:
    found = [name for name, shape in b.live.items() if len(shape) == 4]
    if found:
        x = b.random.choice(found[-4:])
        op = b.random.choice(("MaxPool", "AveragePool", "GlobalAveragePool"))
        more = {} if op.startswith("Global") else {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        b.add(op, [x], (*b.live[x][:2], 1, 1) if op.startswith("Global") else b.live[x], **more)


def _reduce(b: Builder) -> None:
    x = b.pick()
    b.add(b.random.choice(("ReduceMean", "ReduceMax")), [x], (*b.live[x][:-1], 1), axes=[-1])


def _gather(b: Builder) -> None:
    x = b.pick()
    axis = b.random.randrange(len(b.live[x]))
    taken = [b.random.randrange(b.live[x][axis]) for _ in range(2)]
    b.add("Gather", [x, b.s.integers(*taken)], (*b.live[x][:axis], 2, *b.live[x][axis + 1 :]), axis=axis)


def _pad(b: Builder) -> None:
    x = b.pick()
    pads = [0] * (2 * len(b.live[x]))
    pads[-1] = 1
    b.add("Pad", [x, b.s.integers(*pads)], (*b.live[x][:-1], b.live[x][-1] + 1))


def _tile(b: Builder) -> None:
    x = b.pick()
    b.add("Tile", [x, b.s.integers(*[1] * (len(b.live[x]) - 1), 2)], (*b.live[x][:-1], b.live[x][-1] * 2))


def _expand(b: Builder) -> None:
    x = b.pick()
    shape = tuple(2 if size == 1 and b.random.random() < 0.3 else size for size in b.live[x])
    b.add("Expand", [x, b.s.integers(*shape)], shape)


def _depth(b: Builder) -> None:
    found = [name for name, shape in b.live.items() if len(shape) == 4 and shape[1] % 4 == 0]
    if found:
        x = b.random.choice(found)
        n, c, h, w = b.live[x]
        b.add("DepthToSpace", [x], (n, c // 4, 2 * h, 2 * w), blocksize=2)


def _resize(b: Builder) -> None:
    found = [name for name, shape in b.live.items() if len(shape) == 4]
    if found:
        x = b.random.choice(found[-4:])
        n, c, h, w = b.live[x]
        scales = b.s.initializer([1.0, 1.0, 2.0, 2.0])
        b.s.initializers[-1].CopyFrom(onnx.helper.make_tensor(scales, FLOAT, [4], [1, 1, 2, 2]))
        b.add("Resize", [x, "", scales], (n, c, 2 * h, 2 * w), mode="nearest")


def _split(b: Builder) -> None:
    x = b.pick()
    axes = [i for i, size in enumerate(b.live[x]) if size > 1]
    if axes:
        axis = b.random.choice(axes)
        size = b.live[x][axis]
        count = 2 if size < 3 or b.random.random() < 0.7 else 3
        edges = [0, *sorted(b.random.sample(range(1, size), count - 1)), size]
        if b.random.random() < 0.5 and size % count == 0:
            edges = [i * size // count for i in range(count + 1)]
        lengths = [after - before for before, after in pairwise(edges)]
        for name, length in zip(b.s.split(x, axis, *lengths), lengths, strict=True):
            b.live[name] = (*b.live[x][:axis], length, *b.live[x][axis + 1 :])


def _concat(b: Builder) -> None:
    x = b.pick()
    axis = b.random.randrange(len(b.live[x]))
    fits = [
        name
        for name, shape in b.live.items()
        if len(shape) == len(b.live[x])
        and all(i == axis or p == q for i, (p, q) in enumerate(zip(shape, b.live[x], strict=True)))
    ]
    parts = [x, *b.random.choices(fits, k=b.random.choice((1, 1, 2)))]
    b.random.shuffle(parts)
    whole = sum(b.live[name][axis] for name in parts)
    b.add("Concat", parts, (*b.live[x][:axis], whole, *b.live[x][axis + 1 :]), axis=axis)


Step = Callable[[Builder], None]
ELEMENTWISE: Final[tuple[Step, ...]] = (_unary, _unary, _unary, _clip, _constant, _binary, _binary, _where, _gate)
VIEWS: Final[tuple[Step, ...]] = (_slice, _slice, _transpose, _reshape, _unsqueeze)
WHOLE: Final[tuple[Step, ...]] = (
    _conv,
    _conv,
    _normal,
    _layernorm,
    _matmul,
    _matmul,
    _softmax,
    _pool,
    _reduce,
    _gather,
    _pad,
    _tile,
    _expand,
    _depth,
    _resize,
)
JOINS: Final[tuple[Step, ...]] = (_split, _concat, _concat)


def mixed(seed: int, *, joins: bool) -> onnx.ModelProto:
    """A random model of 3 to 20 nodes, of one of three mixes."""
    while True:
        mix = random.Random(seed).choice(("all", "views", "elementwise"))
        made = Builder(seed, mix, joins).model()
        if not joins or any(node.op_type in ("Split", "Concat") for node in made.graph.node):
            return made
        seed += 10**6
