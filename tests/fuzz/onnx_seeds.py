"""Small ONNX models with something of everything, to be changed."""

from __future__ import annotations

from collections.abc import Callable

import onnx
from onnx import AttributeProto, TensorProto, helper

from tests.models import BOOL, FLOAT, INT64, graph, ints, model, node, text, value, with_reference

OPERATORS = (
    *("Split", "SplitToSequence", "Identity", "Relu", "Add", "Mul", "Div", "Mod", "Concat", "Gather", "Shape", "Size"),
    *("Reshape", "Slice", "Squeeze", "Unsqueeze", "Transpose", "Constant", "ConstantOfShape", "Cast", "Where", "If"),
    *("Loop", "Scan", "ReduceProd", "ReduceSum", "Range", "Expand", "Tile", "Pad", "Resize", "Max", "Flatten"),
)
FUNCTIONS = helper.make_opsetid("f", 1)
OPSET = helper.make_opsetid("", 18)


def external(name: str, location: str = "w.bin", count: int = 2) -> TensorProto:
    """Integers that are the first of a file: w.bin has 2, 2, 3, 1, ..."""
    tensor = TensorProto(name=name, data_type=INT64, dims=[count], data_location=TensorProto.EXTERNAL)
    for key, said in (("location", location), ("offset", "0"), ("length", str(8 * count))):
        tensor.external_data.add(key=key, value=said)
    return tensor


def functions() -> onnx.ModelProto:
    """A function with an attribute calls another one, which splits in a graph that it is given."""
    axis = with_reference(node("Split", ["x"], ["a", "b"], num_outputs=2), "axis", "axis")
    inner = helper.make_function("f", "inner", ["x"], ["a", "b"], [axis], [OPSET], ["axis"])
    call = with_reference(node("inner", ["x"], ["y", "z"], domain="f"), "axis", "axis")
    branch = with_reference(
        node("If", ["c"], ["a"], else_branch=graph([node("Identity", ["x"], ["o"])], [], ["o"])),
        "then_branch",
        "body",
        AttributeProto.GRAPH,
    )
    outer = helper.make_function("f", "outer", ["x", "c"], ["a", "z"], [call, branch], [OPSET, FUNCTIONS], ["axis"])
    outer.attribute.append("body")
    split = graph([node("Split", ["x"], ["o", "p"], num_outputs=2, axis=1)], [], ["o"], name="given")
    nodes = [
        node("outer", ["x", "c"], ["a", "b"], domain="f", axis=0, body=split),
        node("outer", ["a", "c"], ["d", "e"], domain="f", axis=1, body=split),
    ]
    return model(nodes, [value("x", [4, 6]), value("c", [], BOOL)], ["a", "e"], functions=[inner, outer], domains=["f"])


def subgraphs() -> onnx.ModelProto:
    """Splits in the branches of an If, in a Loop, and of what is outside."""
    then = graph([node("Split", ["x", "l"], ["p", "q"], axis=1)], [], ["p"], name="then")
    other = graph([node("Split", ["y"], ["p", "q"], num_outputs=2)], [], ["p"], name="else")
    body = graph(
        [
            node("Identity", ["go"], ["on"]),
            node("Split", ["s"], ["t", "u"], axis=0, num_outputs=2),
            node("Concat", ["t", "u"], ["v"], axis=0),
        ],
        [value("i", [], INT64), value("go", [], BOOL), value("s", [4, 6])],
        [value("on", [], BOOL), value("v", [4, 6])],
        name="body",
    )
    nodes = [
        node("Relu", ["x"], ["y"]),
        node("If", ["c"], ["a"], then_branch=then, else_branch=other),
        node("Loop", ["n", "c", "x"], ["b"], body=body),
    ]
    inputs = [value("x", [4, 6]), value("c", [], BOOL)]
    return model(nodes, inputs, ["a", "b"], initializers=[ints("l", 2, 4), helper.make_tensor("n", INT64, [], [3])])


def computed() -> onnx.ModelProto:
    """Lengths from a shape, by constants of every form."""
    sparse = helper.make_sparse_tensor(helper.make_tensor("v", INT64, [1], [2]), ints("i", 1), [2])
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Constant", [], ["k"], value_ints=[1]),
        node("Constant", [], ["two"], value=ints("", 2)),
        node("Constant", [], ["sparse"], sparse_value=sparse),
        node("Gather", ["s", "k"], ["g"], axis=0),
        node("Div", ["g", "two"], ["h"]),
        node("Sub", ["g", "h"], ["r"]),
        node("Concat", ["h", "r"], ["l"], axis=0),
        node("Split", ["x", "l"], ["a", "b"], axis=1),
        node("ConstantOfShape", ["two"], ["ones"], value=ints("", 3)),
        node("Add", ["ones", "sparse"], ["m"]),
        node("Split", ["x", "m"], ["d", "e"], axis=-1),
        node("Cast", ["l"], ["f"], to=FLOAT),
        node("Split", ["x", "w"], ["j", "o"], axis=1),
        node("SplitToSequence", ["x", "l"], ["q"], axis=1),
    ]
    lengths = external("w")
    return model(nodes, [value("x", ["n", 6])], ["a", "b", "d", "e", "j"], initializers=[lengths])


def folded_external() -> onnx.ModelProto:
    """External data in the attributes of nodes that are folded, in a constant and in a subgraph."""
    inside = graph([node("Split", ["x", "w"], ["o", "p"])], [], ["o"], [external("w", "sub/w.bin")])
    nodes = [
        node("ConstantOfShape", ["two"], ["l"], value=external("", count=1)),
        node("Constant", [], ["k"], value=external("")),
        node("Add", ["k", "k"], ["m"], zzz=external("")),
        node("Split", ["x", "l"], ["a", "b"]),
        node("Split", ["x", "m"], ["d", "e"], axis=1),
        node("If", ["c"], ["i"], then_branch=inside, else_branch=inside),
    ]
    inputs = [value("x", [4, 8]), value("c", [], BOOL)]
    return model(nodes, inputs, ["a", "d", "i"], initializers=[ints("two", 2)])


def plain(opset: int, *inputs: str, **attributes: object) -> onnx.ModelProto:
    nodes = [
        node("Relu", ["x"], ["y"], name="r"),
        node("Split", ["y", *inputs], ["a", "b"], name="s", **attributes),
        node("Split", ["a", *inputs], ["d", "e"], **attributes),
    ]
    return model(nodes, [value("x", [4, 6])], ["b", "d"], opset=opset, initializers=[ints("l", 2, 2)])


def gated(opset: int = 17, join: bool = False) -> onnx.ModelProto:
    """What DirectML fuses wrongly: a gate of the halves of a Split, and a Concat of what is read again."""
    nodes = [
        node("Split", ["x"], ["a", "b"], name="s", axis=1, **({"num_outputs": 2} if opset >= 18 else {})),
        node("Sigmoid", ["b"], ["g"], name="sigmoid"),
        node("Mul", ["a", "g"], ["m"], name="gate"),
        node("Tanh", ["m"], ["t"]),
        node("Concat", ["m", "t"], ["j"], name="join", axis=1),
        node("Relu", ["j"], ["y"]),
    ]
    outputs = [value("y", [1, 8, 2, 2]), *([value("t", [1, 4, 2, 2])] if join else [])]
    return model(nodes, [value("x", [1, 8, 2, 2])], outputs, opset=opset, initializers=[ints("w", 1)], ir_version=8)


def gated_within() -> onnx.ModelProto:
    """The same in a function that is called twice, in an If, a Loop and a Scan."""
    inner = gated().graph
    function = helper.make_function("f", "gate", ["x"], ["y"], list(inner.node), [helper.make_opsetid("", 17)])
    branch = graph([node("gate", ["x"], ["y"], domain="f")], [], [value("y", [1, 8, 2, 2])], name="branch")
    other = graph([node("Relu", ["x"], ["z"])], [], [value("z", [1, 8, 2, 2])], name="other")
    body = graph(
        [
            node("Identity", ["go"], ["on"]),
            node("Split", ["s"], ["p", "q"], axis=1),
            node("Concat", ["q", "p"], ["r"], axis=1),
        ],
        [value("i", [], INT64), value("go", [], BOOL), value("s", [1, 8, 2, 2])],
        [value("on", [], BOOL), value("r", [1, 8, 2, 2])],
        name="body",
    )
    scanned = graph(
        [node("Split", ["e"], ["h", "k"], axis=0), node("Concat", ["k", "h"], ["n"], axis=0)],
        [value("e", [8, 2, 2])],
        [value("n", [8, 2, 2])],
        name="scanned",
    )
    nodes = [
        node("gate", ["x"], ["u"], domain="f", name="call"),
        node("If", ["c"], ["v"], then_branch=branch, else_branch=other, name="if"),
        node("Loop", ["count", "c", "x"], ["w"], body=body, name="loop"),
        node("Scan", ["x"], ["scan"], body=scanned, num_scan_inputs=1, name="scan"),
    ]
    inputs = [value("x", [1, 8, 2, 2]), value("c", [], BOOL)]
    count = helper.make_tensor("count", INT64, [], [3])
    more = {"initializers": [count], "functions": [function], "domains": ["f"], "ir_version": 8}
    return model(nodes, inputs, ["u", "v", "w", "scan"], opset=17, **more)


def trained() -> onnx.ModelProto:
    """Training information that has a file of its own, and sparse weights."""
    made = gated()
    sparse = helper.make_sparse_tensor(helper.make_tensor("v", FLOAT, [1], [2.0]), ints("i", 1), [2])
    made.graph.sparse_initializer.append(sparse)
    info = made.training_info.add()
    info.initialization.name = "start"
    info.initialization.initializer.append(external("weights", "sub/w.bin"))
    info.algorithm.CopyFrom(graph([node("Relu", ["x"], ["y"])], [value("x", [2])], ["y"], [external("w", "w.bin")]))
    made.graph.node.append(node("Constant", [], ["unused"], value=external("", "w.bin")))
    return made


def transformer() -> onnx.ModelProto:
    """What the optimizer's passes look for: products with biases, a GELU, a normalization, moved dimensions."""
    body = """(float[2,4,8] x) => (float[2,4,8] o, float[2,4,4] u) <
        float[8,8] w = {%s}, float[8] b = {1,2,3,4,5,6,7,8}, float r = {1.4142135}, float one = {1}, float half = {0.5}
    > {
        m = MatMul(x, w)  n = Add(m, b)
        d = Div(n, r)  e = Erf(d)  f = Add(e, one)  g = Mul(n, f)  h = Mul(g, half)
        l = LayerNormalization<axis=-1>(h, b, b)
        q, k = Split<axis=2>(l)
        t = Transpose<perm=[0,2,1]>(k)  p = MatMul(q, t)  s = Softmax<axis=-1>(p)  u = Relu(s)
        i = Sigmoid(q)  v = Mul(q, i)  j = Concat<axis=2>(v, k)  c = Identity(j)  o = Dropout(c)
    }"""
    return text(body % ",".join(["1"] * 64))


def quantized() -> onnx.ModelProto:
    body = """(uint8[1,8,4,4] x) => (uint8[1,4,4,4] o, float[1,4,4,4] z) <
        float s = {0.5}, uint8 n = {3}, uint8[8,8,1,1] w = {%s}
    > {
        f = DequantizeLinear(x, s, n)  v = DequantizeLinear(w, s, n)  c = Conv(f, v)  r = Relu(c)
        q = QuantizeLinear(r, s, n)  o, p = Split<axis=1>(q)  z = DequantizeLinear(p, s, n)
    }"""
    made = text(body % ",".join(["1"] * 64))
    made.graph.quantization_annotation.add(tensor_name="f").quant_parameter_tensor_names.add(key="SCALE", value="s")
    return made


def quantized_moves() -> onnx.ModelProto:
    """Nodes between quantizations, which take and give quantized elements, and what they may be moved over."""
    body = """(uint8[1,8,4,4] x, uint8[6,4] y) => (uint8[1,8,2,2] o, uint8[?,?] p, uint8[6,4] q, uint8[4,6] u) <
        float s = {0.5}, uint8 n = {3}, int64[2] l = {4, 6}, float low = {-10}, float high = {1000}
    > {
        a = DequantizeLinear(x, s, n)  b = MaxPool<kernel_shape=[2,2],strides=[2,2]>(a)  o = QuantizeLinear(b, s, n)
        c = DequantizeLinear(y, s, n)  d = Reshape(c, l)  e = MatMul(c, d)  p = QuantizeLinear(e, s, n)
        f = Add(c, c)  g = Clip(f, low, high)  q = QuantizeLinear(g, s, n)
        h, i = Split<axis=1>(d)  j = Concat<axis=1>(i, h)  k = Relu(j)  u = QuantizeLinear(k, s, n)
    }"""
    return text(body)


def quantized_at_run() -> onnx.ModelProto:
    """Products of what is quantized by its own range, as dynamic quantization writes them, and equal constants."""
    body = """(float[N,6] x, int64[R] r) => (float[?,?] o, float[?,?] p) <
        uint8[6,4] w = {%s}, uint8 v = {3}, float k = {0.5}, float[4] b = {1,2,3,4}
    > {
        q, s, z = DynamicQuantizeLinear(x)  m = MatMulInteger(q, w, z, v)  f = Cast<to=1>(m)  t = Mul(s, k)
        g = Mul(f, t)  h = Add(g, b)  c, d = Split<axis=1>(h)
        i = ConstantOfShape<value: tensor = float[1] {1}>(r)  j = ConstantOfShape<value: tensor = float[1] {1}>(r)
        a = Reshape(x, r)  q2, s2, z2 = DynamicQuantizeLinear(a)  m2 = MatMulInteger(q2, w, z2)
        f2 = Cast<to=1>(m2)  t2 = Mul(s2, k)  p = Mul(f2, t2)  e = Add(i, j)  l = Mul(e, c)  o = Concat<axis=1>(l, d)
    }"""
    return text(body % ",".join(["1"] * 24))


def sequences() -> onnx.ModelProto:
    body = """(float[4,6] x, seq(float[N,6]) y, optional(float[4,6]) z) => (float[4,6] o, float[M,6] j, bool h) <
        int64 i = {0}, int64[2] l = {1, 3}
    > {
        s = SplitToSequence<axis=0>(x, l)  e = SequenceAt(s, i)  c = ConcatFromSequence<axis=0>(s)
        t = SequenceInsert(y, e)  j = ConcatFromSequence<axis=0>(t)  h = OptionalHasElement(z)
        g = OptionalGetElement(z)  a, b = Split<axis=0>(g)  d = Concat<axis=0>(b, a)  o = Add(c, d)
    }"""
    return text(body)


SEEDS: tuple[Callable[[], onnx.ModelProto], ...] = (
    functions,
    functions,
    subgraphs,
    subgraphs,
    computed,
    computed,
    folded_external,
    folded_external,
    gated,
    gated,
    lambda: gated(18, join=True),
    gated_within,
    gated_within,
    trained,
    trained,
    transformer,
    transformer,
    quantized,
    quantized_moves,
    quantized_at_run,
    sequences,
    lambda: plain(18, num_outputs=2, axis=1),
    lambda: plain(13, "l"),
    lambda: plain(11, split=[2, 2], axis=-2),
    lambda: plain(2, axis=1),
    lambda: plain(1, axis=1),
)
