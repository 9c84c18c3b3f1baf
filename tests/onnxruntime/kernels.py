"""Models of one node, and what ONNX Runtime's DirectML kernels submit for each: recorded, and how to record it again.

    python -m tests.onnxruntime.kernels                        asks all recorded versions again
    python -m tests.onnxruntime.kernels 1.24.4 1.18.0 ...      asks these; the answers of others stay if the models do

Both write tests/data/onnxruntime/kernels.json.xz.

One row a model: its graph in onnx's text form, its opset, the different answers, and the answer of each version. An
answer is the distinct operators that reached CreateOperator; null where no session was made.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.formats import any_operator_json
from dmlsplit.library.fetching import checked_folder
from dmlsplit.library.models import find_version
from dmlsplit.library.sessions import OnnxRuntime, Query
from dmlsplit.targets.runtime_versions import key_of
from tests import models


def words(text: str) -> Sequence[str]:
    return text.split()


DATA: Final = Path(__file__).parents[1] / "data" / "onnxruntime" / "kernels.json.xz"
OTHERS: Final = ("DML_OPERATOR_SPLIT", "DML_OPERATOR_JOIN")
"""What is compared elsewhere."""
SHAPES: Final = {rank: (2, 3, 4, 5, 6)[:rank] for rank in range(1, 6)}
UNARY: Final = words(
    "Relu Sigmoid Tanh Softsign Elu Celu LeakyRelu ThresholdedRelu HardSigmoid Selu Softplus Abs Acos Acosh Asin Asinh "
    "Atan Atanh Ceil Cos Cosh Exp Floor Log Neg Reciprocal Sign Sin Sinh Sqrt Tan Round Identity"
)
BROADCAST: Final = (
    *(((3,), (2, 3)), ((2, 3), (2, 3)), ((1, 3), (2, 1)), ((), (2, 3)), ((2, 3, 4), (4,)), ((1,), (3,))),
    *(((2, 3, 4, 5), (3, 1, 1)), ((2, 1, 4, 5, 6), (3, 1, 5, 1)), ((8,), (1, 8)), ((1, 8), (8,))),
)
MATRICES: Final = (
    *(((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 3), (5, 3, 4)), ((1, 2, 3), (3, 4))),
    *(((6, 5, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (6, 5, 3, 4)), ((1, 2, 3), (5, 3, 4))),
)
REDUCED: Final = (((2, 3), (1,), 1), ((2, 3, 4), (0, 2), 0), ((2, 3, 4, 5), (-1,), 1), ((2, 3, 4, 5, 6), (1, 3), 1))
REDUCTIONS: Final = words("Sum Max Min Prod L1 L2 LogSum LogSumExp SumSquare")
POOLS: Final = (
    "kernel_shape=[3,3]",
    "kernel_shape=[3,2],strides=[2,1],pads=[1,0,0,1]",
    "kernel_shape=[3,3],strides=[2,2],ceil_mode=1",
    'kernel_shape=[2,2],auto_pad="SAME_UPPER",strides=[2,2]',
    'kernel_shape=[3,3],auto_pad="SAME_LOWER"',
)
RESIZED: Final = (
    *(((1, 2, 4, 4), (1, 1, 2, 2)), ((2, 2, 4, 4), (1, 1, 2, 2)), ((1, 1, 4, 4), (1, 1, 2, 2)), ((4, 5), (2, 2))),
    *(((2, 3, 4), (1, 1, 2)), ((1, 1, 3, 4, 5), (1, 1, 2, 2, 2)), ((1, 2, 4, 4), (1, 2, 1, 2))),
    *(((1, 2, 4, 4), (1, 1, 0.5, 0.5)), ((1, 2, 4, 4), (1, 1, 2.3, 1.6))),
)
TRANSFORMS: Final = (
    *("", 'mode="linear"', 'nearest_mode="ceil"', 'nearest_mode="floor"', 'nearest_mode="round_prefer_ceil"'),
    'nearest_mode="floor",coordinate_transformation_mode="asymmetric"',
    'coordinate_transformation_mode="asymmetric"',
    *(f'mode="linear",coordinate_transformation_mode="{each}"' for each in ("align_corners", "pytorch_half_pixel")),
)
Shape = Sequence[int]


def typed(element: str, shape: Shape) -> str:
    return f"{element}[{','.join(map(str, shape))}]" if shape else element


def one(
    op: str,
    *inputs: Shape | str,
    attributes: str = "",
    opset: int = 17,
    element: str = "float",
    out: str = "",
    elements: Sequence[str] = (),
) -> tuple[str, int]:
    """A model of one node. An input is a shape, or a constant by its attribute: "value_ints=[1,2]"; "" is left out."""
    given, made, read = [], [], []
    for i, each in enumerate(inputs):
        name = f"x{i}"
        if isinstance(each, str):
            made += [f"{name} = Constant<{each}>()"] if each else []
            read.append(name if each else "")
        else:
            given.append(f"{typed(elements[i] if elements else element, each)} {name}")
            read.append(name)
    options = f"<{attributes}>" if attributes else ""
    body = f"({', '.join(given)}) => ({out or element}[] y) {{ {' '.join(made)} y = {op}{options}({', '.join(read)}) }}"
    return body, opset


def ints(*values: int) -> str:
    return f"value_ints=[{','.join(map(str, values))}]"


def samples() -> Iterator[tuple[str, int]]:
    """Yields graphs in onnx's text form with their opsets; the output's rank is filled in by `model`."""
    yield from elementwise()
    yield from moving()
    yield from windows()
    yield from matrices()
    yield from normalizations()
    yield from fused()
    yield from transposed()


def elementwise() -> Iterator[tuple[str, int]]:
    for op in UNARY:
        yield from (one(op, shape) for shape in SHAPES.values())
        yield one(op, SHAPES[3], element="float16")
    for op, attributes in (
        ("LeakyRelu", "alpha=0.3"),
        ("Elu", "alpha=2.0"),
        ("HardSigmoid", "alpha=0.1,beta=0.7"),
        ("Selu", "alpha=1.5,gamma=1.1"),
    ):
        yield one(op, (2, 3), attributes=attributes)
    for op in words("Add Sub Mul Div Pow"):
        yield from (one(op, *shapes) for shapes in BROADCAST)
        yield one(op, (2, 3), (3,), element="int32")
    for op in words("And Or Xor"):
        yield one(op, (2, 3), (3,), element="bool")
    for op in words("Equal Greater GreaterOrEqual Less LessOrEqual"):
        yield one(op, (2, 3), (3,), out="bool")
        yield one(op, (2, 3), (2, 3), element="int64", out="bool")
    for op in words("Max Min Sum Mean"):
        yield from (one(op, (2, 3), other) for other in ((3,), (2, 3)))
    yield one("Not", (2, 3), element="bool")
    yield one("Where", (3,), (2, 3), (), elements=("bool", "float", "float"))
    yield one("Where", (2, 3), (2, 3), (2, 3), elements=("bool", "float", "float"))
    yield from (one("Pow", (2, 3), exponent) for exponent in ("value_float=2.0", "value_floats=[3.0]"))
    prelus = ((2, 3), (3,)), ((1, 3, 4, 4), (3, 1, 1)), ((2, 3), (2, 3)), ((1, 3, 4, 4), (1, 3, 4, 4)), ((4, 1), (4, 1))
    yield from (one("PRelu", *shapes) for shapes in prelus)
    yield from (one("HardSwish", (2, 3), opset=opset) for opset in (14, 21))
    low, high = "value_float=-1.0", "value_float=6.0"
    yield from (one("Clip", (2, 3), *limits) for limits in ((low, high), (low,), ("", high), ()))
    yield one("Clip", (2, 3), attributes="min=0.0,max=6.0", opset=7)
    for number, out in ((10, "float16"), (6, "int32"), (7, "int64"), (9, "bool"), (2, "uint8"), (11, "double")):
        yield one("Cast", (2, 3), attributes=f"to={number}", out=out)


def moving() -> Iterator[tuple[str, int]]:
    for before, after in (((2, 3), (6,)), ((2, 3, 4, 5), (6, 20)), ((2, 3, 4, 5, 6), (720,)), ((6,), (1, 2, 3))):
        yield one("Reshape", before, ints(*after))
    yield from (one("Flatten", SHAPES[3]), one("Squeeze", (1, 3, 1)), one("Unsqueeze", (3,), ints(0, 2)))
    for shape, order in (
        *(((2, 3), (1, 0)), ((2, 3, 4), (0, 2, 1)), ((2, 3, 4), (2, 1, 0)), ((2, 3, 4, 5), (0, 2, 3, 1))),
        *(((2, 3, 4, 5, 6), (0, 2, 1, 4, 3)), ((1, 3, 1), (2, 1, 0))),
    ):
        yield one("Transpose", shape, attributes=f"perm=[{','.join(map(str, order))}]")
    for before, after in (((3,), (2, 3)), ((1, 3), (2, 3)), ((2, 1, 4), (2, 3, 4)), ((), (2,)), ((2, 3), (2, 3))):
        yield one("Expand", before, ints(*after))
    for shape, *window in (
        ((4, 5), (1,), (3,), (0,)),
        ((4, 5), (1, 0), (4, 9), (0, 1), (2, 3)),
        ((4, 5, 6), (-3,), (2147483647,), (-1,)),
        ((8,), (2,), (7,)),
        ((2, 3, 4, 5, 6), (1,), (3,), (2,)),
        ((4, 5), (4,), (0,), (1,), (-1,)),
        ((8,), (7,), (-9,), (0,), (-1,)),
        ((4, 5), (3, 0), (0, 4), (0, 1), (-2, 1)),
        ((4, 5), (-1,), (-2147483648,), (1,), (-2,)),
    ):
        yield one("Slice", shape, *(ints(*each) for each in window))
    for shape, indices, axis in (
        *(((4, 5), (3,), 0), ((4, 5), (2, 3), 1), ((4, 5), (), 0), ((4,), (2,), 0), ((2, 3, 4), (2,), -1)),
        *(((4, 5), (1, 1, 2), 0), ((2, 3, 4, 5), (2, 3), 2), ((7,), (), 0)),
    ):
        for element in ("int64", "int32"):
            yield one("Gather", shape, indices, attributes=f"axis={axis}", elements=("float", element))
    for mode in ("constant", "reflect", "edge"):
        for shape, pads in (
            ((4, 5), (1, 0, 2, 1)),
            ((2, 3, 4), (0, 0, 1, 0, 0, 2)),
            ((2, 3, 4, 5, 6), (0, 0, 1, 0, 1, 0, 0, 1, 0, 1)),
        ):
            yield one("Pad", shape, ints(*pads), attributes=f'mode="{mode}"')
    yield one("Pad", (4, 5), ints(1, 0, 2, 1), "value_float=3.0")
    yield from (one("Pad", (4, 5), ints(*pads)) for pads in ((1, 0, -1, 0), (-1, 0, -1, -2)))
    yield one("Pad", (4, 5), ints(1, 0, 2, 1), element="int32")
    yield from (one("Pad", (4, 5), ints(*pads), "", ints(*axes), opset=18) for pads, axes in (((1, 0), (1,)),))
    yield one("Pad", (2, 3, 4), ints(1, 0, 2, 1), "", ints(-1, 0), opset=18)
    yield one("Pad", (4, 5), ints(1, 0, 2, 1), attributes='mode="wrap"', opset=19)
    for shape, indices, axis in (((4, 5), (2, 5), 0), ((2, 3, 4), (2, 3, 2), -1), ((7,), (3,), 0)):
        yield one("GatherElements", shape, indices, attributes=f"axis={axis}", elements=("float", "int64"))
        types = "float", "int64", "float"
        yield one("ScatterElements", shape, indices, indices, attributes=f"axis={axis}", elements=types)
    for shape, indices, batch in (
        *(((4, 5), (3, 2), 0), ((2, 3, 4), (2, 1), 1), ((2, 3, 4), (5, 1), 0), ((2, 3), (4, 2, 1), 0)),
        ((7,), (3, 1), 0),
    ):
        yield one("GatherND", shape, indices, attributes=f"batch_dims={batch}", elements=("float", "int64"))
    for shape, indices, updates in (
        *(((4, 5), (2, 1), (2, 5)), ((4, 5), (3, 2), (3,)), ((2, 3, 4), (2, 2, 2), (2, 2, 4)), ((7,), (3, 1), (3,))),
        ((2, 3), (4, 5, 1), (4, 5, 3)),
    ):
        yield one("ScatterND", shape, indices, updates, elements=("float", "int64", "float"))
    yield one("Tile", (2, 3), ints(2, 3))
    yield from (one("DepthToSpace", (1, 4, 2, 3), attributes=f'blocksize=2,mode="{m}"') for m in ("DCR", "CRD"))
    for shape, scales in RESIZED:
        floats = f"value_floats=[{','.join(str(float(each)) for each in scales)}]"
        sizes = ints(*(int(size * scale) for size, scale in zip(shape, scales, strict=True)))
        for attributes in TRANSFORMS:
            yield one("Resize", shape, "", floats, attributes=attributes)
            yield one("Resize", shape, "", "", sizes, attributes=attributes)


def windows() -> Iterator[tuple[str, int]]:
    for image, filters, attributes in (
        ((1, 3, 8, 8), (4, 3, 3, 3), ""),
        ((1, 4, 8), (6, 4, 3), "pads=[1,1],strides=[2]"),
        ((2, 4, 5, 6, 7), (3, 4, 2, 2, 2), "strides=[1,2,1]"),
        ((1, 4, 8, 9), (8, 1, 3, 3), "group=4,pads=[1,0,2,1],dilations=[2,1]"),
        ((1, 3, 9, 8), (4, 3, 3, 3), 'auto_pad="SAME_UPPER",strides=[2,2]'),
        ((1, 3, 9, 8), (4, 3, 4, 4), 'auto_pad="SAME_LOWER",strides=[3,2]'),
        ((1, 3, 9, 8), (4, 3, 3, 3), 'auto_pad="VALID"'),
    ):
        yield one("Conv", image, filters, filters[:1], attributes=attributes)
        yield one("Conv", image, filters, attributes=attributes, opset=11)
    yield one("ConvTranspose", (1, 3, 4, 4), (3, 2, 3, 3), attributes="strides=[2,2]")
    more = "strides=[2,2],pads=[1,1,1,1],output_padding=[1,1]"
    yield one("ConvTranspose", (1, 3, 4, 4), (3, 2, 3, 3), (2,), attributes=more)
    for op in ("MaxPool", "AveragePool"):
        yield from (one(op, (1, 2, 9, 8), attributes=each) for each in POOLS)
        yield one(op, (1, 2, 9), attributes="kernel_shape=[3],strides=[2]")
        yield one(op, (1, 2, 9, 5, 4), attributes="kernel_shape=[3,2,2]")
        yield from (one(f"Global{op}", shape) for shape in ((1, 2, 9, 8), (1, 2, 9), (1, 2, 3, 4, 5)))
    yield one("AveragePool", (1, 2, 9, 8), attributes="kernel_shape=[3,3],count_include_pad=1,pads=[1,1,1,1]")


def matrices() -> Iterator[tuple[str, int]]:
    for attributes in ("", "transA=1", "transB=1", "alpha=0.5,beta=0.25"):
        left = (3, 2) if "transA" in attributes else (2, 3)
        right = (4, 3) if "transB" in attributes else (3, 4)
        yield one("Gemm", left, right, attributes=attributes)
        for added_shape in ((2, 4), (4,), (1, 4), (2, 1), (), (1,)):
            yield one("Gemm", left, right, added_shape, attributes=attributes)
    yield one("Gemm", (1, 3), (3, 4), (4,))
    yield from (one("MatMul", *shapes) for shapes in MATRICES)


def normalizations() -> Iterator[tuple[str, int]]:
    for shape in list(SHAPES.values())[1:]:
        yield one("BatchNormalization", shape, *[(3,)] * 4)
    yield one("BatchNormalization", SHAPES[4], *[(3,)] * 4, attributes="epsilon=0.001")
    yield from (one("InstanceNormalization", shape, (3,), (3,)) for shape in (SHAPES[3], SHAPES[4]))
    for shape, parameter, attributes in (
        *(((2, 3, 4), (4,), ""), ((2, 3, 4, 5), (5,), ""), ((2, 5), (5,), "")),
        ((2, 3, 4), (3, 4), "axis=1,epsilon=0.001"),
    ):
        yield one("LayerNormalization", shape, parameter, parameter, attributes=attributes)
        yield one("LayerNormalization", shape, parameter, attributes=attributes)
    yield one("LRN", (1, 4, 3, 3), attributes="size=3")
    yield one("LRN", (1, 4, 3, 3), attributes="size=5,alpha=0.001,beta=0.5,bias=2.0")
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for shape, axis in (((2, 3), -1), ((2, 3, 4), 1), ((2, 3, 4, 5), 1), ((2, 3, 4, 5, 6), 2), ((4,), 0)):
            yield from (one(op, shape, attributes=f"axis={axis}", opset=opset) for opset in (11, 17))
    for shape, axes, keepdims in REDUCED:
        written = ",".join(map(str, axes))
        for name in REDUCTIONS[1:]:
            yield one(f"Reduce{name}", shape, attributes=f"axes=[{written}],keepdims={keepdims}")
        for name in REDUCTIONS:
            yield one(f"Reduce{name}", shape, ints(*axes), attributes=f"keepdims={keepdims}", opset=18)
    for axes in ((2, 0), (-1, 1), (1, 0, 2)):
        yield one("ReduceMax", (2, 3, 4), attributes=f"axes=[{','.join(map(str, axes))}]")
        yield one("ReduceSum", (2, 3, 4), ints(*axes))
    for op in ("ArgMax", "ArgMin"):
        for shape, attributes in (
            *(((2, 3, 4), "axis=1"), ((2, 3, 4), "axis=-1,keepdims=0"), ((5,), "")),
            ((2, 3), "axis=1,select_last_index=1"),
        ):
            yield one(op, shape, attributes=attributes, out="int64")
    yield from (one("CumSum", (2, 3, 4), ints(1), attributes=each) for each in ("", "exclusive=1", "reverse=1"))
    yield one("CumSum", (5,), "value_int=-1", attributes="exclusive=1,reverse=1")


def fused() -> Iterator[tuple[str, int]]:
    """Nodes that optimization makes one of."""
    constants = "<float root = {1.4142135}, float one = {1}, float half = {0.5}, float two = {2}, float three = {3}, "
    constants += "float k = {0.044715}, float c = {0.7978845608}, float e = {0.25}, float[8] g = {1,1,1,1,1,1,1,1}>"
    head = "(float[2,3,8] x, float[2,3,8] z, float[8] b, float[6,8] w, float[4,2,8] v) => (float[] y)"
    means = dict.fromkeys((13, 17), "ReduceMean<axes=[-1]>({})") | {20: "ReduceMean({}, last)"}
    erf = "d = Div({0}, root) f = Erf(d) a = Add(f, one)"
    gelus = f"{erf} h = Mul({{0}}, half) y = Mul(h, a)", f"{erf} p = Mul({{0}}, a) y = Mul(p, half)"
    tanh = "h = Tanh(s) a = Add(h, one) l = Mul(x, half) y = Mul(l, a)"
    bodies = [
        *(gelu.format("x") for gelu in gelus),
        *(f"s = Add({added}) {gelus[0].format('s')}" for added in ("x, b", "b, x", "x, z")),
        f"m = Mul(x, z) {gelus[1].format('m')}",
        f"p = Pow(x, three) q = Mul(p, k) r = Add(x, q) s = Mul(r, c) {tanh}",
        f"p = Mul(x, k) q = Mul(x, p) r = Add(one, q) t = Mul(x, c) s = Mul(t, r) {tanh}",
        *("s = Sigmoid(x) y = Mul(x, s)", "m = Mul(x, two) s = Sigmoid(m) y = Mul(s, x)"),
        *("t = Transpose<perm=[1,0]>(w) y = MatMul(x, t)", "t = Transpose<perm=[0,2,1]>(z) y = MatMul(x, t)"),
        "s = Transpose<perm=[1,0]>(w) q = Div(x, two) y = MatMul(q, s)",
        "t = Transpose<perm=[0,2,1]>(z) q = Mul(x, half) m = MatMul(q, t) n = Div(m, three) y = Softmax(n)",
        "t = Transpose<perm=[0,2,1]>(z) m = MatMul(t, x) y = Softmax<axis=1>(m)",
        "t = Transpose<perm=[1,2,0]>(v) s = Transpose<perm=[0,2,1]>(v) y = MatMul(s, t)",
    ]
    for opset, mean in means.items():
        first = f"m = {mean.format('x')} d = Sub(x, m) p = Pow(d, two) u = {mean.format('p')}"
        rest = "s = Sqrt(a) n = Div(d, s) f = Mul(n, g) y = Add(f, b)"
        last = "last = Constant<value_ints=[-1]>() " if opset >= 18 else ""
        yield from (
            (f"{head} {constants} {{ {last}{first} a = Add({add}) {rest} }}", opset) for add in ("u, e", "e, u")
        )
        yield from ((f"{head} {constants} {{ {body} }}", opset) for body in bodies)
    sums = ("s = Add(x, z)", "t = Add(x, g) s = Add(t, z)", "t = Add(x, g) s = Add(z, t)", "s = Add(x, b)")
    for normalized in ("LayerNormalization(s, b)", "LayerNormalization<epsilon=0.5>(s, b, g)"):
        yield from ((f"{head} {constants} {{ {sum_} y = {normalized} }}", 17) for sum_ in sums)
    square = "(float[4,4] x, float[4,4] w, float[4] b) => (float[] y)"
    bodies = (
        "t = Transpose(w) y = Gemm(x, t, b)",
        "t = Transpose(x) y = Gemm(t, w)",
        "g = Gemm(x, w) y = Transpose(g)",
    )
    for body in bodies:
        yield f"{square} {{ {body} }}", 17


def transposed() -> Iterator[tuple[str, int]]:
    """Nodes over which ONNX Runtime moves Transposes."""
    t, back = "t = Transpose<perm=[0,2,1]>(x)", "y = Transpose<perm=[0,2,1]>(a)"
    head = "(float[2,3,4] x, float[4,3] z, bool[2,3,4] c) => (float[] y)"
    constants = "<float[3] v = {1,2,3}, float[4,1] w = {1,2,3,4}, float one = {1}, int64[1] i0 = {0}, "
    constants += (
        "int64[1] i1 = {1}, int64[1] i2 = {2}, int64[2] i12 = {1,2}, int64[3] r = {1,2,1}, int64[6] p = {0,1,0,0,0,2}, "
    )
    constants += "int64[3] s = {2,4,3}>"
    between = [
        *(f"a = {op}(t)" for op in ("Relu", "Gelu", "Elu", "HardSwish", "Softmax", "Softmax<axis=1>", "Identity")),
        *(f"a = Add({read})" for read in ("t, z", "z, t", "t, v", "w, t", "t, one", "t, t")),
        *("u = Transpose<perm=[0,2,1]>(c) a = Where(u, t, z)", "a = PRelu(t, v)", "b = Mul(t, v) a = Sub(b, v)"),
        *("a = Slice(t, i1, i2, i1)", "a = Concat<axis=1>(t, t)", "a = Clip(t, one)"),
        *("a = Pad(t, p)", "a = Tile(t, r)", "b = Neg(t) a = LpNormalization(b)", "a, b = Split<axis=1>(t)"),
        *("b = Unsqueeze(t, i1) d = Neg(b) a = Squeeze(d, i1)", "a = ReduceMax<axes=[1]>(t)"),
        *("a = ReduceSum(t, i12)", "b = Exp(t) a = Reshape(b, s)", "a = CastLike(t, one)"),
    ]
    ends = [
        *(
            "y = ReduceSum<keepdims=0>(t, i1)",
            "y = ReduceL2<axes=[2,0],keepdims=0>(t)",
            "y = ReduceMean<keepdims=0>(t)",
        ),
        *("b = ArgMax<axis=1>(t) y = Cast<to=1>(b)", "b = ArgMin<axis=2,keepdims=0>(t) y = Cast<to=1>(b)"),
        *("b = ReduceMax<axes=[1]>(t) d = Squeeze(b, i1) y = Neg(d)", "b = Gather(t, i0) y = Squeeze(b, i0)"),
        *("a = Relu(t) y = Transpose<perm=[2,0,1]>(a)", "y = Unsqueeze(t, i0)", "y = Relu(t)", "y = Add(t, z)"),
        *("b = Transpose<perm=[1,2,0]>(x) d = Transpose<perm=[1,2,0]>(b) y = Neg(d)", "y = MatMul(x, t)"),
        *("k = Unsqueeze(t, i0) b = GlobalMaxPool(k) y = Relu(b)", "b = Relu(t) d = Neg(t) y = Sub(b, d)"),
        *("b = Transpose<perm=[2,1,0]>(t) d = Mul(b, w) e = Transpose<perm=[2,1,0]>(d) y = Div(e, v)",),
    ]
    for opset in (13, 17, 20, 21):
        for body in (*(f"{t} {each} {back}" for each in between), *(f"{t} {each}" for each in ends)):
            if opset < 20 or "axes=" not in body:
                yield f"{head} {constants} {{ {body} }}", opset
    head = "(float[1,3,4,5] x) => (float[] y)"
    cuts = "<int64[4] s = {1,1,4,3}, int64[4] u = {1,4,1,3}>"
    first, last = "n = Neg(x) t = Transpose<perm=[0,2,3,1]>(n)", "y = Transpose<perm=[0,3,1,2]>(a)"
    for body in (
        *("a = MaxPool<kernel_shape=[2,2]>(t)", "b = GlobalAveragePool(t) a = Relu(b)", "a = Exp(t)"),
        *("b = ReduceMean<axes=[1,2]>(t) a = Mul(t, b)", "b = ReduceSum<keepdims=0>(t) a = Mul(t, b)"),
        "g = Constant<value_floats=[1.0,2.0,3.0]>() b = LayerNormalization(t, g) a = Relu(b)",
    ):
        yield f"{head} {{ {first} {body} {last} }}", 17
    yield f"(float[1,3,1,4] x) => (float[] y) {cuts} {{ t = Transpose<perm=[0,3,2,1]>(x) y = Reshape(t, s) }}", 17
    yield f"(float[1,3,1,4] x) => (float[] y) {cuts} {{ t = Transpose<perm=[0,2,3,1]>(x) y = Reshape(t, u) }}", 17


def without_flags(operator: Any) -> Any:
    """The operator without OWNED_BY_DML, in one form for all numbers."""
    if isinstance(operator, dict):
        return {name: without_flags(value) for name, value in operator.items() if name != "Flags"}
    if isinstance(operator, list):
        return [without_flags(each) for each in operator]
    return int(operator) if isinstance(operator, bool) else operator


def as_json(desc: AnyOperatorDesc) -> Any:
    """A descriptor in the form in which recorded ones are compared with derived ones."""
    return without_flags(json.loads(any_operator_json.dumps(desc)))


def model(graph: str, opset: int) -> Any:
    """The model of a row; its output has no shape but what inference finds."""
    made = models.text(graph, opset)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


def recorded(version: str) -> list[Any]:
    """The rows of a version."""
    found = []
    with OnnxRuntime(checked_folder(find_version(version))) as runtime:
        for graph, opset in samples():
            record = runtime.ask(Query(model(graph, opset).SerializeToString()))
            created = [event["desc"] for event in record.get("events", []) if event["call"] == "CreateOperator"]
            distinct = [json.loads(each) for each in dict.fromkeys(map(json.dumps, created))]
            found.append([graph, opset, distinct if record.get("session") else None])
    return found


def read() -> dict[str, Any]:
    """The content of DATA."""
    content: dict[str, Any] = json.loads(lzma.decompress(DATA.read_bytes()))
    return content


def table(of_each: Mapping[str, Sequence[Any]], before: Mapping[str, Any]) -> dict[str, Any]:
    """The content of DATA with the rows of some versions, and the answers of others in `before`."""
    versions = sorted({*before["versions"], *of_each}, key=key_of)
    kept = {(graph, opset): [distinct[i] for i in places] for graph, opset, distinct, places in before["rows"]}
    rows = []
    for number, (graph, opset, _) in enumerate(next(iter(of_each.values()))):
        of_model = dict(zip(before["versions"], kept.get((graph, opset), ()), strict=False))
        of_model |= {version: found[number][2] for version, found in of_each.items()}
        answers = [of_model[version] for version in versions]
        distinct = [answer for i, answer in enumerate(answers) if answer not in answers[:i]]
        rows.append([graph, opset, distinct, [distinct.index(answer) for answer in answers]])
    return {"versions": versions, "rows": rows}


def unasked(versions: Sequence[str], before: Mapping[str, Any]) -> str:
    """Why it is not enough to ask these versions: a model is new, and others have no answer about it; "" if it is."""
    known = {(graph, opset) for graph, opset, *_ in before["rows"]}
    new = [graph for graph, opset in samples() if (graph, opset) not in known]
    others = [version for version in before["versions"] if version not in versions]
    return f"{len(new)} models are new, first {new[0]}: ask {' '.join(others)} too" if new and others else ""


def main(versions: Sequence[str]) -> None:
    before = read()
    versions = versions or before["versions"]
    if why := unasked(versions, before):
        sys.exit(why)
    made = table({version: recorded(version) for version in versions}, before)
    DATA.write_bytes(lzma.compress(json.dumps(made).encode(), preset=9))
    print(len(made["rows"]), "models, of which versions differ in", sum(len(row[2]) > 1 for row in made["rows"]))


if __name__ == "__main__":
    main(sys.argv[1:])
