"""How an exporter writes a model: its habits, and the layers that networks of all kinds have."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCKS: Final = (2, 6)
"""The least and the most blocks of a model."""
WIDTH: Final = 8
LENGTH: Final = 6
SIDE: Final = 8
FLOAT, FLOAT16, INT64, BOOL, UINT8 = (
    getattr(TensorProto, name) for name in ("FLOAT", "FLOAT16", "INT64", "BOOL", "UINT8")
)
KIND: Final = {FLOAT: np.float32, FLOAT16: np.float16, INT64: np.int64, BOOL: np.bool_, UINT8: np.uint8}
EVERYTHING: Final = (1 << 63) - 1
"""The end of a Slice to the end."""


@dataclass
class Exporter:
    """A model in the making, and the habits with which it is written."""

    rng: random.Random
    opset: int
    graph: onnx.GraphProto = field(default_factory=lambda: onnx.GraphProto(name="main"))
    made: int = 0

    def __post_init__(self) -> None:
        self.kind = FLOAT16 if self.maybe(0.2) else FLOAT
        self.batch: int | str = self.rng.choice([1, 1, 2, "batch"])
        self.length: int | str = self.rng.choice([LENGTH, LENGTH, "sequence"])
        self.side: int | str = self.rng.choice([SIDE, SIDE, SIDE, "side"])
        self.stores = self.maybe(0.5)
        """Constants are initializers, not nodes."""
        self.computes_sizes = self.maybe(0.5)
        """Sizes are read from the tensors, even those that are known."""

    def maybe(self, chance: float = 0.5) -> bool:
        return self.rng.random() < chance

    def name(self) -> str:
        self.made += 1
        return f"k{self.made}"

    def __call__(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; returns the name of its output, or the names."""
        name = self.name()
        names = [f"{name}_{i}" for i in range(outputs)]
        self.graph.node.append(helper.make_node(operator, inputs, names, name=name, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, elements: Any, kind: int | None = None, stored: bool | None = None) -> str:
        made = numpy_helper.from_array(np.asarray(elements, KIND[self.kind if kind is None else kind]))
        if not (self.stores if stored is None else stored):
            result: str = self("Constant", value=made)
            return result
        made.name = f"{self.name()}_c"
        self.graph.initializer.append(made)
        return made.name

    def ints(self, *numbers: int) -> str:
        return self.constant(numbers, INT64)

    def weight(self, *sizes: int) -> str:
        count = math.prod(sizes)
        return self.constant(np.linspace(-1, 1, count).reshape(sizes), stored=True)

    def input(self, shape: Sequence[int | str], kind: int | None = None) -> str:
        made = helper.make_tensor_value_info(
            f"input_{len(self.graph.input)}", self.kind if kind is None else kind, shape
        )
        self.graph.input.append(made)
        return made.name

    def output(self, name: str) -> None:
        if name not in [each.name for each in self.graph.output]:
            self.graph.output.append(helper.make_empty_tensor_value_info(name))

    # Operators whose attributes became inputs.

    def by_axes(self, operator: str, x: str, axes: Sequence[int], since: int, **attributes: Any) -> str:
        if self.opset < since:
            return self(operator, x, axes=list(axes), **attributes)
        return self(operator, x, self.ints(*axes), **attributes)

    def unsqueeze(self, x: str, *axes: int) -> str:
        return self.by_axes("Unsqueeze", x, axes, 13)

    def squeeze(self, x: str, *axes: int) -> str:
        return self.by_axes("Squeeze", x, axes, 13)

    def mean(self, x: str, *axes: int, keepdims: int = 1) -> str:
        return self.by_axes("ReduceMean", x, axes, 18, keepdims=keepdims)

    def reduce(self, operator: str, x: str, *axes: int, keepdims: int = 1) -> str:
        return self.by_axes(operator, x, axes, 13 if operator == "ReduceSum" else 18, keepdims=keepdims)

    def slice(self, x: str, axis: int, start: int, end: int, step: int | None = None) -> str:
        steps = [] if step is None and self.maybe() else [self.ints(step or 1)]
        return self("Slice", x, self.ints(start), self.ints(end), self.ints(axis), *steps)

    def split(self, x: str, axis: int, lengths: Sequence[int]) -> list[str]:
        count = len(lengths)
        if len(set(lengths)) == 1 and self.maybe():
            more = {"num_outputs": count} if self.opset >= 18 else {}
            return self("Split", x, outputs=count, axis=axis, **more)
        if self.opset < 13:
            return self("Split", x, outputs=count, axis=axis, split=list(lengths))
        return self("Split", x, self.ints(*lengths), outputs=count, axis=axis)

    def parts(self, x: str, axis: int, count: int, length: int) -> list[str]:
        """The equal parts of a tensor, split or sliced."""
        if self.maybe(0.7):
            return self.split(x, axis, [length] * count)
        return [
            self.slice(x, axis, i * length, (i + 1) * length if self.maybe() else EVERYTHING) for i in range(count - 1)
        ] + [self.slice(x, axis, (count - 1) * length, EVERYTHING)]

    def size(self, x: str, axis: int) -> str:
        """A size as a scalar."""
        index = self.constant(axis, INT64)
        return self("Gather", self("Shape", x), index, axis=0)

    def shape(self, x: str, *sizes: int | str) -> str:
        """A shape of which sizes that are names or None are read of a tensor: ("0", "1", -1, 4)."""
        if not self.computes_sizes and all(isinstance(size, int) for size in sizes):
            return self.ints(*[int(size) for size in sizes])
        parts = []
        for size in sizes:
            parts.append(self.unsqueeze(self.size(x, int(size)), 0) if isinstance(size, str) else self.ints(size))
        return self("Concat", *parts, axis=0)

    def reshape(self, x: str, *sizes: int | str) -> str:
        return self("Reshape", x, self.shape(x, *sizes))

    def scalar(self, number: float) -> str:
        return self.constant(number if self.maybe(0.7) else [number])

    def either(self, operator: str, x: str, y: str) -> str:
        """An operator that commutes, in one of both orders."""
        return self(operator, *((x, y) if self.maybe(0.7) else (y, x)))

    def own(self, size: int | str, axis: int) -> int | str:
        """A size as `shape` takes it: read of the tensor if it is open, or where that is a habit."""
        if isinstance(size, str) or self.computes_sizes:
            return str(axis)
        return size


def activation(e: Exporter, x: str) -> str:
    kinds: list[Callable[[], str]] = [
        lambda: e("Relu", x),
        lambda: e("Sigmoid", x),
        lambda: e("Tanh", x),
        lambda: e("LeakyRelu", x, alpha=0.1),
        lambda: e("Elu", x),
        lambda: e.either("Mul", x, e("Sigmoid", x)),
        lambda: e.either("Mul", x, e("Sigmoid", e("Mul", x, e.scalar(1.702)))),
        lambda: e("Mul", x, e("Tanh", e("Softplus", x))),
        lambda: _clipped(e, x, 0, 6),
        lambda: e("Mul", x, e("Div", _clipped(e, e("Add", x, e.scalar(3)), 0, 6), e.scalar(6))),
        lambda: e("HardSwish", x) if e.opset >= 14 else e("Mul", x, e("HardSigmoid", x, alpha=1 / 6)),
        lambda: e("PRelu", x, e.scalar(0.25)),
        lambda: e("Selu", x),
        lambda: gelu(e, x),
    ]
    return e.rng.choice(kinds)()


def _clipped(e: Exporter, x: str, low: float, high: float) -> str:
    if e.maybe(0.2):
        return e("Min", e("Max", x, e.constant(low)), e.constant(high))
    return e("Clip", x, e.constant(low), e.constant(high) if high < math.inf else "")


def gelu(e: Exporter, x: str) -> str:
    kind = e.rng.randrange(4)
    if kind == 0 and e.opset >= 20:
        return e("Gelu", x, approximate=e.rng.choice(["none", "tanh"]))
    if kind == 1:
        cubed = e("Pow", x, e.constant(3.0)) if e.maybe() else e("Mul", e("Mul", x, x), x)
        inner = e("Mul", e.either("Add", x, e.either("Mul", cubed, e.scalar(0.044715))), e.scalar(0.7978845834732056))
        return e("Mul", e("Mul", x, e.either("Add", e("Tanh", inner), e.scalar(1))), e.scalar(0.5))
    divided = e("Div", x, e.scalar(math.sqrt(2))) if e.maybe(0.7) else e("Mul", x, e.scalar(1 / math.sqrt(2)))
    added = e.either("Add", e("Erf", divided), e.scalar(1))
    if kind == 2:
        return e("Mul", e.either("Mul", x, e.scalar(0.5)), added)
    return e("Mul", e("Mul", x, added), e.scalar(0.5))


def linear(e: Exporter, x: str, before: int = WIDTH, after: int = WIDTH, biased: bool | None = None) -> str:
    kind = e.rng.randrange(6)
    biased = e.maybe(0.8) if biased is None else biased
    if kind == 0:
        rows = e("Reshape", x, e.ints(-1, before))
        product = e("Gemm", rows, e.weight(after, before), *([e.weight(after)] if biased else []), transB=1)
        return e("Reshape", product, e.shape(x, e.own(e.batch, 0), e.own(e.length, 1), after))
    weight = e("Transpose", e.weight(after, before), perm=[1, 0]) if kind == 1 else e.weight(before, after)
    product = e("MatMul", x, weight)
    return e.either("Add", e.weight(after), product) if biased else product


def layer_norm(e: Exporter, x: str) -> str:
    kind = e.rng.randrange(6)
    if kind == 0 and e.opset >= 17:
        return e("LayerNormalization", x, e.weight(WIDTH), e.weight(WIDTH), axis=-1, epsilon=1e-5)
    own = e.kind
    if is_cast := own == FLOAT16 and e.maybe():
        x, e.kind = e("Cast", x, to=FLOAT), FLOAT
    power = e.constant(2.0 if e.maybe(0.8) else [2.0])
    if kind in (1, 2):  # root mean square
        squares = e("Pow", x, power) if e.maybe(0.8) else e("Mul", x, x)
        root = e("Sqrt", e("Add", e.mean(squares, -1), e.scalar(1e-5)))
        made = e("Div", x, root) if e.maybe() else e.either("Mul", x, e("Reciprocal", root))
    else:
        centred = e("Sub", x, e.mean(x, -1))
        again = e("Sub", x, e.mean(x, -1)) if e.maybe(0.2) else centred
        squares = e("Pow", again, power) if e.maybe(0.8) else e("Mul", again, again)
        made = e("Div", centred, e("Sqrt", e("Add", e.mean(squares, -1), e.scalar(1e-5))))
    e.kind = own
    if is_cast:
        made = e("Cast", made, to=own)
    made = e.either("Mul", made, e.weight(WIDTH))
    return made if kind in (1, 2) else e.either("Add", made, e.weight(WIDTH))


def linear_row(e: Exporter, x: str, before: int = WIDTH, after: int = WIDTH) -> str:
    """A linear layer of a matrix."""
    if e.maybe():
        return e("Gemm", x, e.weight(after, before), e.weight(after), transB=1)
    return e.either("Add", e("MatMul", x, e.weight(before, after)), e.weight(after))
