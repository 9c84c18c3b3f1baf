"""Blocks of networks for images, on tensors of batch, channels and two sides, as exporters write them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.onnxruntime.exporter import (
    BLOCKS,
    EVERYTHING,
    FLOAT,
    SIDE,
    UINT8,
    WIDTH,
    Exporter,
    activation,
    layer_norm,
    linear_row,
)


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
