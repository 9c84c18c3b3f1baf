"""Random models of the blocks that networks consist of, as exporters of PyTorch, TensorFlow and others write them.

The random models of whole_models know every operator, but no neighbourhood that a pass of ONNX Runtime was written for;
here each block is such a neighbourhood, in some of the ways in which it is found in published models.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from dmlsplit.targets.runtime_versions import Runtime
from tests import models
from tests.models import ir_version

OLDEST, NEWEST = 11, 23
BLOCKS: Final = (2, 6)
WIDTH: Final = 8
HEADS: Final = 2
LENGTH: Final = 6
SIDE: Final = 8
FLOAT, FLOAT16, INT64, BOOL, UINT8 = (
    getattr(TensorProto, name) for name in ("FLOAT", "FLOAT16", "INT64", "BOOL", "UINT8")
)
KIND: Final = {FLOAT: np.float32, FLOAT16: np.float16, INT64: np.int64, BOOL: np.bool_, UINT8: np.uint8}
EVERYTHING: Final = (1 << 63) - 1


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


def attention(e: Exporter, x: str) -> str:
    head = WIDTH // HEADS
    batch, length = e.own(e.batch, 0), e.own(e.length, 1)
    if e.maybe(0.3):
        joined = e.reshape(linear(e, x, after=3 * WIDTH), batch, length, 3, HEADS, head)
        moved = e("Transpose", joined, perm=[2, 0, 3, 1, 4])
        if e.maybe():
            q, k, v = [e("Gather", moved, e.constant(i, INT64), axis=0) for i in range(3)]
        else:
            q, k, v = [e.squeeze(part, 0) for part in e.split(moved, 0, [1, 1, 1])]
    else:
        if e.maybe(0.3):
            sides = e.parts(linear(e, x, after=3 * WIDTH), -1 if e.maybe() else 2, 3, WIDTH)
        else:
            sides = [linear(e, x) for _ in range(3)]
        sides = [
            e.reshape(side, batch, length if e.maybe() or isinstance(length, str) else -1, HEADS, head)
            for side in sides
        ]
        q, k, v = [e("Transpose", side, perm=[0, 2, 1, 3]) for side in sides]
    if e.maybe(0.3):
        q, k = rotary(e, q), rotary(e, k)
    scale = e.scalar(math.sqrt(head))
    if e.maybe(0.2):
        scale = e("Sqrt", e("Cast", e.size(q, 3), to=e.kind))
    turned = e("Transpose", k, perm=[0, 1, 3, 2])
    kind = e.rng.randrange(4)
    if kind == 0:
        root = e("Sqrt", scale)
        scores = e("MatMul", e("Div", q, root), e("Div", turned, root))
    elif kind == 1:
        scores = e("MatMul", e("Mul", q, e.scalar(head**-0.5)), turned)
    else:
        scores = e("MatMul", q, turned)
        scores = e("Div", scores, scale) if kind == 2 else e("Mul", scores, e.scalar(head**-0.5))
    if e.maybe():
        scores = masked(e, scores, x)
    weights = e("Softmax", scores, axis=-1 if e.maybe(0.7) or e.opset < 13 else 3)
    if e.maybe(0.1):
        weights = e("Where", e("IsNaN", weights), e.constant(0.0), weights)
    if e.maybe(0.1):
        weights = e("Dropout", weights)
    made = e("Transpose", e("MatMul", weights, v), perm=[0, 2, 1, 3])
    return linear(e, e.reshape(made, batch, e.own(e.length, 1) if not isinstance(e.length, str) else -1, WIDTH))


def masked(e: Exporter, scores: str, x: str) -> str:
    low = -1e4 if e.kind == FLOAT16 else -1e9
    kind = e.rng.randrange(4)
    if kind == 0:  # of tokens
        mask = e.input([e.batch, e.length], INT64)
        wide = e("Cast", e.unsqueeze(e.unsqueeze(mask, 1), 2), to=e.kind)
        return e.either("Add", scores, e("Mul", e("Sub", e.constant(1.0), wide), e.constant(low)))
    if kind == 1 and e.opset >= 14:  # causal
        size = e.unsqueeze(e.size(x, 1), 0)
        ones = e("ConstantOfShape", e("Concat", size, size, axis=0), value=helper.make_tensor("v", e.kind, [1], [1]))
        kept = e("Cast", e("Trilu", ones, upper=0), to=BOOL)
        return e("Where", kept, scores, e.constant(low))
    if kind == 2:
        size = e.size(x, 1)
        steps = e("Range", e.constant(0, INT64), size, e.constant(1, INT64))
        later = e("Less", e.unsqueeze(steps, 1), e.unsqueeze(steps, 0))
        return e("Where", later, e.constant(low), scores)
    mask = e.input([e.batch, 1, 1, e.length], BOOL)
    return e("Where", mask if e.maybe() else e("Not", mask), e.constant(low), scores)


def rotary(e: Exporter, x: str) -> str:
    """x: [batch, heads, length, head]."""
    head = WIDTH // HEADS
    if isinstance(e.length, str):
        cos, sin = [e.slice(e.weight(1, 1, 32, head), 2, 0, EVERYTHING) for _ in range(2)]
        end = e.unsqueeze(e.size(x, 2), 0)
        cos, sin = [e("Slice", each, e.ints(0), end, e.ints(2)) for each in (cos, sin)]
    else:
        cos, sin = e.weight(1, 1, LENGTH, head), e.weight(1, 1, LENGTH, head)
    low, high = e.parts(x, 3 if e.maybe() else -1, 2, head // 2)
    turned = e("Concat", e("Neg", high), low, axis=-1)
    return e("Add", e("Mul", x, cos), e("Mul", turned, sin))


def feed_forward(e: Exporter, x: str) -> str:
    if e.maybe(0.4):
        value, gate = e.parts(linear(e, x, after=4 * WIDTH), -1, 2, 2 * WIDTH)
        gated = e.either("Mul", value, activation(e, gate))
        return linear(e, gated, 2 * WIDTH)
    return linear(e, activation(e, linear(e, x, after=2 * WIDTH)), 2 * WIDTH)


def residual(e: Exporter, x: str) -> str:
    inner = e.rng.choice([attention, feed_forward, linear, recurrent])
    if e.maybe(0.7):
        return e.either("Add", x, inner(e, layer_norm(e, x)))
    return layer_norm(e, e.either("Add", inner(e, x), x))


def recurrent(e: Exporter, x: str) -> str:
    moved = e("Transpose", x, perm=[1, 0, 2])
    operator, gates = e.rng.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    both = e.maybe(0.3)
    count, hidden = 1 + both, WIDTH // (1 + both)
    weights = e.weight(count, gates * hidden, WIDTH), e.weight(count, gates * hidden, hidden)
    bias = [e.weight(count, 2 * gates * hidden)] if e.maybe(0.8) else []
    first = []
    if bias and e.maybe(0.4):
        wide = e("Expand", e.constant(np.zeros((count, 1, hidden))), e.shape(moved, count, "1", hidden))
        first = ["", wide] if operator != "LSTM" else ["", wide, wide]
    more = {"linear_before_reset": 1} if operator == "GRU" else {}
    name = e.name()
    outputs = [f"{name}_{i}" for i in range(3 if operator == "LSTM" and e.maybe() else 2)]
    direction = "bidirectional" if both else "forward"
    e.graph.node.append(
        helper.make_node(
            operator,
            [moved, *weights, *bias, *first],
            outputs,
            name=name,
            hidden_size=hidden,
            direction=direction,
            **more,
        )
    )
    if both:
        made = e("Transpose", outputs[0], perm=[0, 2, 1, 3])
        made = e("Reshape", made, e.ints(0, 0, -1))
    else:
        made = e.squeeze(outputs[0], 1)
    return e("Transpose", made, perm=[1, 0, 2])


def selected(e: Exporter, x: str) -> str:
    k = e.ints(2)
    values, indices = e("TopK", e("MatMul", x, e.weight(WIDTH, 4)), k, outputs=2, axis=-1)
    share = e("Softmax", values, axis=-1)
    chosen = e("Gather", e.weight(4, WIDTH), indices, axis=0)
    return e.reduce("ReduceSum", e("Mul", chosen, e.unsqueeze(share, 3)), 2, keepdims=0)


def normalized(e: Exporter, x: str) -> str:
    length = e.reduce("ReduceL2", x, -1)
    low = e("Clip", length, e.constant(1e-3))
    return e("Div", x, e("Expand", low, e("Shape", x)) if e.maybe() else low)


def summed(e: Exporter, x: str) -> str:
    steps = e("CumSum", e("Cast", e("Shape", x), to=INT64), e.constant(0, INT64))
    return e("Mul", x, e("Cast", e("Gather", steps, e.constant(0, INT64)), to=e.kind))


def positions(e: Exporter, x: str) -> str:
    size = e.size(x, 1)
    steps = e("Range", e.constant(0, INT64), size, e.constant(1, INT64))
    table = e("Gather", e.weight(32, WIDTH), e.unsqueeze(steps, 0) if e.maybe() else steps, axis=0)
    return e.either("Add", x, table)


def first(e: Exporter, x: str) -> str:
    token = e("Gather", x, e.constant(0, INT64), axis=1) if e.maybe() else e.squeeze(e.slice(x, 1, 0, 1), 1)
    e.output(e("Tanh", linear_row(e, token)))
    return x


def pooled(e: Exporter, x: str) -> str:
    mask = e.input([e.batch, e.length], INT64)
    wide = e("Cast", e("Expand", e.unsqueeze(mask, 2), e("Shape", x)), to=e.kind)
    top = e.reduce("ReduceSum", e("Mul", x, wide), 1, keepdims=0)
    low = e("Clip", e.reduce("ReduceSum", wide, 1, keepdims=0), e.constant(1e-3))
    e.output(e("Div", top, low))
    return x


def einsum(e: Exporter, x: str) -> str:
    kind = e.rng.randrange(3)
    if kind == 0:
        return e("Einsum", x, e.weight(WIDTH, WIDTH), equation="bsd,de->bse")
    if kind == 1:
        return e("Einsum", x, e.weight(WIDTH), equation=e.rng.choice(["bsd,d->bsd", "...d,d->...d"]))
    q, k, v = (e.reshape(x, e.own(e.batch, 0), e.own(e.length, 1), HEADS, -1) for _ in range(3))
    scores = e("Einsum", q, k, equation=e.rng.choice(["bind,bjnd->bnij", "bqhd,bkhd->bhqk"]))
    made = e("Einsum", e("Softmax", scores, axis=3), v, equation="bnij,bjnd->bind")
    return e.reshape(made, e.own(e.batch, 0), e.own(e.length, 1) if isinstance(e.length, int) else -1, WIDTH)


def reversed_back(e: Exporter, x: str) -> str:
    whole = e.slice(x, 2, -1, -EVERYTHING, -1) if e.maybe(0.3) else x
    a, b = e.parts(whole, 2, 2, WIDTH // 2)
    return e("Concat", b, a, axis=2 if e.maybe() else -1)


def cached(e: Exporter, x: str) -> str:
    past = e.input([e.batch, "past", WIDTH])
    present = e("Concat", past, x, axis=1)
    e.output(present)
    size = e.unsqueeze(e.size(past, 1), 0)
    return e("Slice", present, size, e.ints(EVERYTHING), e.ints(1))


def convolved(e: Exporter, x: str) -> str:
    moved = e("Transpose", x, perm=[0, 2, 1])
    made = e("Conv", moved, e.weight(WIDTH, 1, 3), e.weight(WIDTH), group=WIDTH, pads=[1, 1], kernel_shape=[3])
    return e("Transpose", activation(e, made), perm=[0, 2, 1])


def quantized(e: Exporter, x: str) -> str:
    scale, zero = e.constant(0.05, FLOAT), e.constant(128, UINT8)
    real = x if e.kind == FLOAT else e("Cast", x, to=FLOAT)
    made = e("DequantizeLinear", e("QuantizeLinear", real, scale, zero), scale, zero)
    weight = e.constant(np.arange(WIDTH * WIDTH).reshape(WIDTH, WIDTH) % 200, UINT8, stored=True)
    made = e("MatMul", made, e("DequantizeLinear", weight, scale, zero))
    if e.maybe():
        made = e("DequantizeLinear", e("QuantizeLinear", made, scale, zero), scale, zero)
    return made if e.kind == FLOAT else e("Cast", made, to=e.kind)


def chosen(e: Exporter, x: str) -> str:
    """An If as PyTorch writes squeeze: the branches have other ranks."""
    is_one = e("Equal", e.size(x, 1), e.constant(1, INT64))
    name = e.name()
    bodies = []
    for branch, operator in (("then_branch", "Neg"), ("else_branch", "Identity")):
        made = f"{name}_{branch}"
        node = helper.make_node(operator, [x], [made], name=e.name())
        bodies.append(helper.make_graph([node], branch, [], [helper.make_empty_tensor_value_info(made)]))
    e.graph.node.append(
        helper.make_node("If", [is_one], [f"{name}_0"], name=name, then_branch=bodies[0], else_branch=bodies[1])
    )
    return f"{name}_0"


OTHERS: Final = (
    selected,
    normalized,
    summed,
    positions,
    first,
    pooled,
    einsum,
    reversed_back,
    cached,
    convolved,
    quantized,
    chosen,
)


def mixed(e: Exporter, x: str) -> str:
    """A block on a sequence that is no residual: selections, sums, sizes."""
    return e.rng.choice(OTHERS)(e, x)


def linear_row(e: Exporter, x: str, before: int = WIDTH, after: int = WIDTH) -> str:
    """A linear layer of a matrix."""
    if e.maybe():
        return e("Gemm", x, e.weight(after, before), e.weight(after), transB=1)
    return e.either("Add", e("MatMul", x, e.weight(before, after)), e.weight(after))


def sequence(e: Exporter) -> None:
    """A model of text or sound: [batch, length, width]."""
    if e.maybe(0.6):
        tokens = e.input([e.batch, e.length], INT64)
        x = e("Gather", e.weight(16, WIDTH), tokens, axis=0)
    else:
        x = e.input([e.batch, e.length, WIDTH])
    for _ in range(e.rng.randint(*BLOCKS)):
        x = e.rng.choice([residual, residual, mixed])(e, x)
    if e.maybe(0.4):
        x = layer_norm(e, x)
    if e.maybe(0.3):
        x = e("ArgMax", x, axis=-1, keepdims=0) if e.maybe() else e("LogSoftmax", x, axis=2)
    e.output(x)


def convolution(e: Exporter, x: str, before: int = WIDTH, after: int = WIDTH, size: int = 3, **attributes: Any) -> str:
    group = attributes.get("group", 1)
    bias = [e.weight(after)] if e.maybe() else []
    pads = {"pads": [size // 2] * 4} if e.maybe(0.8) else {"auto_pad": e.rng.choice(["SAME_UPPER", "SAME_LOWER"])}
    if e.maybe(0.1) and size > 1:
        edges = e.ints(0, 0, 1, 1, 0, 0, 1, 1)
        fill = [e.constant(0.0)] if e.maybe() else []
        x, pads = e("Pad", x, edges, *fill, mode=e.rng.choice(["constant", "constant", "reflect"])), {"pads": [0] * 4}
    made = e(
        "Conv", x, e.weight(after, before // group, size, size), *bias, kernel_shape=[size] * 2, **pads, **attributes
    )
    if e.maybe(0.3):
        scale, shift, mean = (e.weight(after) for _ in range(3))
        variance = e.constant(np.linspace(0.5, 1, after), stored=True)
        made = e("BatchNormalization", made, scale, shift, mean, variance)
    elif e.maybe(0.1):
        made = e.either(e.rng.choice(["Add", "Mul"]), made, e.weight(1, after, 1, 1))
    return made


def plain(e: Exporter, x: str) -> str:
    return activation(e, convolution(e, x))


def depthwise(e: Exporter, x: str) -> str:
    return convolution(e, activation(e, convolution(e, x, group=WIDTH)), size=1)


def added(e: Exporter, x: str) -> str:
    made = e.either("Add", convolution(e, activation(e, convolution(e, x)), size=1), x)
    return activation(e, made) if e.maybe() else made


def excited(e: Exporter, x: str) -> str:
    kind = e.rng.randrange(3)
    if kind == 0:
        pooled = e("GlobalAveragePool", x)
    else:
        pooled = e.mean(x, 2, 3, keepdims=kind - 1)
    if kind == 1:
        inner = linear_row(e, activation(e, linear_row(e, pooled)))
        gate = e.unsqueeze(e("Sigmoid", inner), 2, 3)
    else:
        inner = convolution(e, activation(e, convolution(e, pooled, size=1)), size=1)
        gate = e("HardSigmoid", inner) if e.maybe() else e("Sigmoid", inner)
    return e.either("Mul", x, gate)


def crossed(e: Exporter, x: str) -> str:
    first, *rest = e.parts(x, 1, 2, WIDTH // 2)
    made = activation(e, convolution(e, rest[-1], WIDTH // 2, WIDTH // 2))
    return convolution(e, e("Concat", first, *rest, made, axis=1), WIDTH // 2 * 3, size=1)


def pyramid(e: Exporter, x: str) -> str:
    pools = [x]
    for _ in range(3):
        pools.append(e("MaxPool", pools[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    return convolution(e, e("Concat", *pools, axis=1), WIDTH * 4, size=1)


def resized(e: Exporter, x: str) -> str:
    small = convolution(e, x, strides=[2, 2]) if e.maybe() else e("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    mode = e.rng.choice([{"mode": "nearest", "nearest_mode": "floor"}, {"mode": "linear"}])
    mode["coordinate_transformation_mode"] = e.rng.choice(["asymmetric", "half_pixel", "align_corners"])
    roi = "" if e.opset >= 13 or e.maybe() else e.constant(np.zeros(0))
    roi = e.constant(np.zeros(0)) if e.opset < 13 else roi
    if e.maybe() and not isinstance(e.side, str):
        big = e("Resize", small, roi, e.constant([1, 1, 2, 2], FLOAT), **mode)
    else:
        none = "" if e.opset >= 13 else e.constant(np.zeros(0), FLOAT)
        first = e("Slice", e("Shape", small), e.ints(0), e.ints(2), e.ints(0))
        last = e("Slice", e("Shape", x), e.ints(2), e.ints(4), e.ints(0))
        big = e("Resize", small, roi, none, e("Concat", first, last, axis=0), **mode)
    return e.either("Add", x, big) if e.maybe() else convolution(e, e("Concat", x, big, axis=1), 2 * WIDTH, size=1)


def shuffled(e: Exporter, x: str) -> str:
    if e.maybe():
        wide = convolution(e, x, after=WIDTH * 4, size=1)
        big = e("DepthToSpace", wide, blocksize=2, mode=e.rng.choice(["DCR", "CRD"]))
        return e("AveragePool", big, kernel_shape=[2, 2], strides=[2, 2])
    sizes = e.own(e.batch, 0), e.own(e.side, 2), e.own(e.side, 3)
    if isinstance(e.side, str) and e.maybe():
        sizes = sizes[0], e.own(e.side, 2), -1
    made = e.reshape(x, sizes[0], 2, WIDTH // 2, *sizes[1:])
    made = e("Transpose", made, perm=[0, 2, 1, 3, 4])
    return e("Reshape", made, e.shape(x, sizes[0], WIDTH, *sizes[1:]))


def grouped(e: Exporter, x: str) -> str:
    made = e("Reshape", x, e.ints(0, 2, -1))
    made = e("InstanceNormalization", made, e.weight(2), e.weight(2))
    made = e("Reshape", made, e("Shape", x))
    return e("Add", e("Mul", made, e.weight(1, WIDTH, 1, 1)), e.weight(1, WIDTH, 1, 1))


def last_channels(e: Exporter, x: str) -> str:
    moved = e("Transpose", x, perm=[0, 2, 3, 1])
    made = e("MatMul", layer_norm(e, moved) if e.maybe() else moved, e.weight(WIDTH, WIDTH))
    made = activation(e, e.either("Add", made, e.weight(WIDTH)))
    return e("Transpose", made, perm=[0, 3, 1, 2])


def focused(e: Exporter, x: str) -> str:
    pieces = [e.slice(e.slice(x, 2, i, EVERYTHING, 2), 3, j, EVERYTHING, 2) for j in (0, 1) for i in (0, 1)]
    small = convolution(e, e("Concat", *pieces, axis=1), 4 * WIDTH, 4 * WIDTH, size=1)
    return e("DepthToSpace", small, blocksize=2)


def rolled(e: Exporter, x: str) -> str:
    whole = e("Concat", e.slice(x, 2, 2, EVERYTHING), e.slice(x, 2, 0, 2), axis=2)
    return e("Concat", e.slice(whole, 3, -3, EVERYTHING), e.slice(whole, 3, 0, -3), axis=3)


def transposed(e: Exporter, x: str) -> str:
    small = convolution(e, x, strides=[2, 2])
    return e("ConvTranspose", small, e.weight(WIDTH, WIDTH, 2, 2), strides=[2, 2], kernel_shape=[2, 2])


def windows(e: Exporter, x: str) -> str:
    if isinstance(e.side, str):
        return plain(e, x)
    n = SIDE // 2
    moved = e("Transpose", x, perm=[0, 2, 3, 1])
    cut = e.reshape(moved, e.own(e.batch, 0), 2, n, 2, n, WIDTH)
    cut = e("Reshape", e("Transpose", cut, perm=[0, 1, 3, 2, 4, 5]), e.ints(-1, n * n, WIDTH))
    made = e.either("Add", e("MatMul", cut, e.weight(WIDTH, WIDTH)), e.weight(WIDTH))
    back = e("Reshape", made, e.ints(-1, 2, 2, n, n, WIDTH))
    back = e("Reshape", e("Transpose", back, perm=[0, 1, 3, 2, 4, 5]), e.ints(-1, SIDE, SIDE, WIDTH))
    return e("Transpose", back, perm=[0, 3, 1, 2])


IMAGE_BLOCKS: Final = (
    plain,
    plain,
    depthwise,
    added,
    excited,
    crossed,
    pyramid,
    resized,
    shuffled,
    grouped,
    last_channels,
    focused,
    rolled,
    transposed,
    windows,
)


def image_block(e: Exporter, x: str) -> str:
    """A block that keeps [batch, width, side, side]."""
    return e.rng.choice(IMAGE_BLOCKS)(e, x)


def image(e: Exporter) -> None:
    """A model of images."""
    channels = 3
    if e.maybe(0.2):  # bytes with the channels last, as they are read
        raw = e.input([e.batch, e.side, e.side, channels], UINT8)
        x = e("Transpose", e("Cast", raw, to=e.kind), perm=[0, 3, 1, 2])
        x = e("Div", x, e.constant(255.0))
        x = e("Div", e("Sub", x, e.weight(1, channels, 1, 1)), e.constant(np.full((1, channels, 1, 1), 0.5)))
    else:
        x = e.input([e.batch, channels, e.side, e.side])
    x = activation(e, convolution(e, x, channels))
    for _ in range(e.rng.randint(*BLOCKS)):
        x = image_block(e, x)
        if e.maybe(0.15):
            e.output(x)
    kind = e.rng.randrange(5)
    if kind == 0:
        pooled = e("GlobalAveragePool", x)
        row = e("Flatten", pooled, axis=1) if e.maybe() else e("Reshape", pooled, e.ints(0 if e.maybe() else -1, WIDTH))
        e.output(e("Softmax", linear_row(e, row, after=5), axis=1) if e.maybe() else linear_row(e, row, after=5))
    elif kind == 1:
        made = e.reshape(convolution(e, x, size=1), e.own(e.batch, 0), WIDTH, -1)
        boxes, scores = e.split(made, 1, [4, WIDTH - 4])
        low, high = e.split(boxes, 1, [2, 2])
        grid = e.weight(1, 2, 1)
        corners = e("Sub", grid, low), e("Add", grid, high)
        centre = e("Div", e("Add", *corners), e.constant(2.0))
        boxes = e("Concat", centre, e("Sub", corners[1], corners[0]), axis=1)
        e.output(e("Concat", e("Mul", boxes, e.scalar(8.0)), e("Sigmoid", scores), axis=1))
    elif kind == 2:
        e.output(e("ArgMax", x, axis=1, keepdims=int(e.maybe())))
    elif kind == 3:
        rows = e("Transpose", e.reshape(x, e.own(e.batch, 0), WIDTH, -1), perm=[0, 2, 1])
        e.output(e.either("Add", e("MatMul", rows, e.weight(WIDTH, WIDTH)), e.weight(WIDTH)))
    else:
        e.output(x)


def exported_model(seed: int, index: int, runtime: Runtime) -> onnx.ModelProto:
    """The same valid model for the same seed and index of one version."""
    rng = random.Random(f"exported/{seed}/{index}")
    while True:
        e = Exporter(rng, rng.randint(OLDEST, min(NEWEST, runtime.newest_opset)))
        rng.choice([sequence, image])(e)
        graph = e.graph
        model = models.model(
            graph.node, graph.input, graph.output, e.opset, graph.initializer, ir_version=ir_version(e.opset)
        )
        try:
            inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        except (shape_inference.InferenceError, ValueError):
            continue
        del model.graph.output[:]
        model.graph.output.extend(inferred.graph.output)
        if rng.random() < 0.3:
            model.graph.value_info.extend(inferred.graph.value_info)
        try:
            onnx.checker.check_model(model)
        except onnx.checker.ValidationError:  # of sizes that inference does not find
            continue
        return model
