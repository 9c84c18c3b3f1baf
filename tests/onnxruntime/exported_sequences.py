"""Blocks of networks for text and sound, on tensors of batch, length and width, as exporters write them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from onnx import helper

from tests.onnxruntime.exporter import (
    BLOCKS,
    BOOL,
    EVERYTHING,
    FLOAT,
    FLOAT16,
    INT64,
    LENGTH,
    UINT8,
    WIDTH,
    Exporter,
    activation,
    layer_norm,
    linear,
    linear_row,
)

HEADS: Final = 2


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
