"""Models that grow in one way each: what is done about them may grow as they do, and no faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import onnx
from onnx import helper

from tests.models import BOOL, FLOAT, INT64, graph, ints, model, node, value

X = value("x", [1, 8, 4, 4])
ONE = [helper.make_opsetid("", 13), helper.make_opsetid("f", 1)]
TRUE = helper.make_tensor("c", BOOL, [], [True])
CHOICE = value("c", [], BOOL)


def made(nodes, outputs=(), inputs=(X,), constants=(), functions=(), opset=13, ir_version=9, value_info=()):
    """A model that imports the domains it uses; outputs are names, of which nothing is declared."""
    domains = dict.fromkeys(each.domain for each in (*nodes, *functions) if each.domain)
    return model(nodes, inputs, outputs, opset, constants, functions, domains, value_info, ir_version=ir_version)


def split(read, *parts, **more):
    return node("Split", [read] if isinstance(read, str) else read, parts, axis=1, **more)


def concat(parts, output, axis=1, **more):
    return node("Concat", parts, [output], axis=axis, **more)


def chain(count, links: Callable[[str, int], Sequence[onnx.NodeProto]], first=(), last=(), read="x", **fields):
    """Links one after another: each reads a tensor, and its last node gives the next one."""
    nodes = list(first)
    for i in range(count):
        nodes += links(read, i)
        read = nodes[-1].output[0]
    nodes += [node(each.op_type, [read, *each.input[1:]], each.output, axis=1) for each in last]
    return made(nodes, [nodes[-1].output[0]], **fields)


def beside(count, links: Callable[[int], Sequence[onnx.NodeProto]], first=(), **fields):
    """Links beside one another: the last node of each gives an output."""
    nodes, outputs = list(first), []
    for i in range(count):
        nodes += links(i)
        outputs.append(nodes[-1].output[0])
    return made(nodes, outputs, **fields)


FIRST = [split("x", "a", "b")]
LAST = [concat(["", "b"], "y")]


def swap(read, i, **more):
    return [split(read, f"a{i}", f"b{i}", **more), concat([f"b{i}", f"a{i}"], f"c{i}")]


def gate(read, i):
    return [
        split(read, f"v{i}", f"g{i}"),
        node("Sigmoid", [f"g{i}"], [f"s{i}"]),
        node("Mul", [f"v{i}", f"s{i}"], [f"m{i}"]),
    ]


def glu(read, i):
    return [*gate(read, i), concat([f"m{i}", f"m{i}"], f"c{i}")]


def crash(read, i):
    """A product that crashes the process in CompileGraph, behind a Concat that keeps it apart from the next one."""
    nodes = [
        split(read, f"a{i}", f"b{i}"),
        node("Relu", [f"a{i}"], [f"r{i}"]),
        node("Mul", [f"b{i}", f"r{i}"], [f"p{i}"]),
        node("Sigmoid", [f"r{i}"], [f"s{i}"]),
        node("Mul", [f"p{i}", f"s{i}"], [f"m{i}"]),
        concat([f"m{i}", f"a{i}"], f"c{i}"),
    ]
    for each in nodes:
        each.name = each.output[0]
    return nodes


def called(body, count=3):
    """A model in which a function with these nodes is called again and again."""
    nodes = [*body, node("Identity", [body[-1].output[0]], ["y"])]
    return chain(count, lambda read, i: [call("f", read, f"r{i}")], functions=[function("f", nodes)])


def leaky(read, output, i, count):
    """Nodes of one input that are not equal."""
    return node("LeakyRelu", [read], [output], alpha=i / (count + 1))


def branch(nodes, output):
    return graph(nodes, [], [output])


def choice(i, then, other, output=None):
    return node("If", ["c"], [output or f"y{i}"], then_branch=then, else_branch=other)


def split_in_branches(i):
    then, other = (branch([split("x", f"{k}{i}a", f"{k}{i}b")], f"{k}{i}a") for k in "te")
    return choice(i, then, other)


def nested(depth, name):
    if not depth:
        return branch([split("x", f"{name}a", f"{name}b")], f"{name}a")
    other = branch([node("Abs", ["x"], [f"{name}e"])], f"{name}e")
    return branch([choice(0, nested(depth - 1, f"{name}t"), other, f"{name}r")], f"{name}r")


def condition(read, i):
    """An If whose condition the one before gives."""
    then, other = (branch([node("Identity", [read], [f"{k}{i}"])], f"{k}{i}") for k in "te")
    return [node("If", [read], [f"y{i}"], then_branch=then, else_branch=other)]


def loop(read, i):
    inputs = [value("trip", [], INT64), value("going", [], BOOL), value("s", [1, 8, 4, 4])]
    nodes = [node("Identity", ["going"], ["go"]), split("s", "a", "b"), concat(["b", "a"], "t")]
    body = graph(nodes, inputs, [value("go", [], BOOL), value("t", [1, 8, 4, 4])])
    return [node("Loop", ["m", "", read], [f"y{i}"], body=body)]


def function(name, nodes):
    return helper.make_function("f", name, ["x"], ["y"], nodes, ONE)


def call(name, read, output):
    return node(name, [read], [output], domain="f")


def towers(count):
    """Functions that call functions, four deep."""
    functions = []
    for i in range(count):
        functions.append(function(f"f{i}_0", [split("x", "a", "b"), concat(["b", "a"], "y")]))
        functions += [
            function(f"f{i}_{d}", [call(f"f{i}_{d - 1}", "x", "z"), node("Relu", ["z"], ["y"])]) for d in (1, 2, 3)
        ]
    return chain(count, lambda read, i: [call(f"f{i}_3", read, f"r{i}")], functions=functions)


def parts_beside(count):
    parts = range(8)

    def links(i):
        cut = node("Split", [f"x{i}"], [f"o{i}_{j}" for j in parts], axis=0)
        return [leaky("x", f"x{i}", i, count), cut, concat([f"o{i}_{j}" for j in reversed(parts)], f"y{i}", 0)]

    return beside(count, links, inputs=[value("x", [8, 4])])


def wide(count):
    parts = [f"o{i}" for i in range(count)]
    relus = [node("Relu", [part], [f"p{part}"]) for part in parts]
    nodes = [node("Split", ["x"], parts, axis=0), *relus, concat([f"p{part}" for part in parts], "y", 0)]
    return made(nodes, ["y"], [value("x", [count, 4])])


def large_branches(count):
    def one(k):
        nodes = [node("Relu", ["x"], [f"{k}c"])]
        for i in range(count):
            nodes += [split(nodes[-1].output[0], f"{k}a{i}", f"{k}b{i}"), concat([f"{k}b{i}", f"{k}a{i}"], f"{k}c{i}")]
        return branch(nodes, nodes[-1].output[0])

    return made([choice(0, one("t"), one("e"))], ["y0"], constants=[TRUE])


def ifs_in_a_long_graph(count):
    def links(i):
        then, other = (branch([split(f"r{i}", f"{k}{i}", f"{k}u{i}")], f"{k}{i}") for k in "te")
        return [node("Relu", [f"r{i - 1}" if i else "x"], [f"r{i}"]), choice(i, then, other)]

    return beside(count, links, inputs=[X, CHOICE])


def shadowing(count):
    def links(i):
        then, other = (branch([split("x", "t", f"{k}{i}")], "t") for k in "te")
        return [choice(i, then, other)]

    return beside(count, links, [node("Relu", ["x"], ["t"])], inputs=[X, CHOICE])


def constants_in_branches(count):
    """Each branch reads a constant of the graph around it, of which there are as many."""

    def links(i):
        then, other = (branch([split(["x", f"k{i}"], f"{k}{i}", f"{k}u{i}")], f"{k}{i}") for k in "te")
        return [choice(i, then, other)]

    return beside(count, links, inputs=[X, CHOICE], constants=[ints(f"k{i}", 3, 5) for i in range(count)])


def graphs_of_one_node(count):
    bodies = {f"g{i}": branch([split("x", f"a{i}", f"b{i}")], f"a{i}") for i in range(count)}
    return made([node("Foo", ["x"], ["y"], domain="z", **bodies)], ["y"])


def unsorted(count):
    model = chain(count, swap)
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def ladder(count):
    def links(read, i):
        before = f"b{i}" if i else "b"
        return [node("Mul", [read, before], [f"b{i + 1}"]), node("Add", [read, before], [f"a{i}"])]

    return chain(count, links, FIRST, LAST, "a")


def lengths_from_shapes(read, i):
    return [
        node("Shape", [read], [f"sh{i}"]),
        node("Gather", [f"sh{i}", "one"], [f"g{i}"]),
        node("Div", [f"g{i}", "two"], [f"h{i}"]),
        concat([f"h{i}", f"h{i}"], f"l{i}", 0),
        split([read, f"l{i}"], f"a{i}", f"b{i}"),
        concat([f"b{i}", f"a{i}"], f"c{i}"),
    ]


def reshaped(read, i):
    return [
        node("Gather", ["sh", "one"], [f"g{i}"]),
        concat([f"g{i}", "two"], f"s{i}", 0),
        node("Reshape", [read, f"s{i}"], [f"r{i}"]),
        node("Relu", [f"r{i}"], [f"q{i}"]),
    ]


def transposed(read, i):
    return [node("Transpose", [read], [f"t{i}"], perm=[0, 2, 1, 3]), node("Relu", [f"t{i}"], [f"q{i}"])]


def strange(domain, declared=True):
    """Operators that nothing is known of, between others."""

    def model(count):
        def links(read, i):
            return [node("Foo", [read], [f"f{i}"], domain=domain), node("Add", [f"f{i}", "b"], [f"q{i}"])]

        shapes = [value(f"f{i}", [1, 4, 4, 4]) for i in range(count if declared else 0)]
        return chain(count, links, FIRST, read="a", value_info=shapes)

    return model


def doubtful_beside(count):
    def links(i):
        return [node("Foo", ["a"], [f"f{i}"], domain="com.microsoft"), node("Add", [f"f{i}", "b"], [f"q{i}"])]

    return beside(count, links, FIRST, value_info=[value(f"f{i}", [1, 4, 4, 4]) for i in range(count)])


def wrong_beside(count):
    """Graphs that come out wrong, apart from one another."""

    def links(i):
        return [node("Foo", ["x"], [f"x{i}"], domain="z"), *gate(f"x{i}", i)]

    return beside(count, links, value_info=[value(f"x{i}", [1, 8, 4, 4]) for i in range(count)])


def dead_beside(count):
    links = [(node("Foo", ["x"], [f"f{i}"], domain="z"), node("Relu", [f"f{i}"], [f"d{i}"])) for i in range(count)]
    shapes = [value(f"f{i}", [1, 8, 4, 4]) for i in range(count)]
    return made([*FIRST, *(each for pair in links for each in pair)], ["a"], value_info=shapes)


def one_name(model):
    def named(count):
        found = model(count)
        for each in found.graph.node:
            each.name = "same"
        return found

    return named


def joined(links):
    """As `beside`, and all that comes of it is joined."""

    def model(count):
        nodes = list(FIRST)
        for i in range(count):
            nodes += links(i, count)
        last = [f"r{i}" for i in range(count)]
        return made([*nodes, concat(last, "y")], ["y"])

    return model


HALF: Final = [helper.make_tensor("k", FLOAT, [1], [0.5])]
SCALE: Final = [
    helper.make_tensor("s", FLOAT, [], [0.5]),
    helper.make_tensor("z", onnx.TensorProto.UINT8, [], [3]),
    helper.make_tensor("w", onnx.TensorProto.UINT8, [4, 4], [1] * 16),
]


def quantized(read, i, between=()):
    """A QuantizeLinear and a DequantizeLinear, and nodes that read f"d{i}" and give f"r{i}", if there are any."""
    output = f"d{i}" if between else f"r{i}"
    return [
        node("QuantizeLinear", [read, "s", "z"], [f"q{i}"]),
        node("DequantizeLinear", [f"q{i}", "s", "z"], [output]),
        *between,
    ]


def moved_over(count):
    """Nodes that a DequantizeLinear is moved over, all in front of one Concat."""
    nodes = []
    for i in range(count):
        transpose = node("Transpose", [f"d{i}"], [f"r{i}"], perm=[0, 1, 3, 2])
        nodes += [leaky("x", f"l{i}", i, count), *quantized(f"l{i}", i, [transpose])]
    return made([*nodes, concat([f"r{i}" for i in range(count)], "y")], ["y"], constants=SCALE)


LENGTHS: Final = [ints("one", 1), ints("two", 2)]
TALL: Final = value("x", [1] * 8 + [4])

FAMILIES: Final[dict[str, Callable[[int], onnx.ModelProto]]] = {
    "twins": lambda n: beside(n, lambda i: [split("x", *(f"o{i}_{j}" for j in range(2 + 2 * (i % 2))))]),
    "equal": lambda n: beside(n, lambda i: swap("x", i)),
    "equal constants": lambda n: beside(
        n, lambda i: [split(["x", f"k{i}"], f"a{i}", f"b{i}")], constants=[ints(f"k{i}", 4, 4) for i in range(n)]
    ),
    "constants as nodes": lambda n: beside(
        n, lambda i: [node("Constant", [], [f"k{i}"], value=ints("v", 4, 4)), split(["x", f"k{i}"], f"a{i}", f"b{i}")]
    ),
    "lengths of a run": lambda n: beside(
        n, lambda i: [split(["x", "l"], f"a{i}", f"b{i}")], inputs=[X, value("l", [2], INT64)]
    ),
    "lengths from shapes": lambda n: chain(n, lengths_from_shapes, constants=LENGTHS),
    "splits in a row": lambda n: chain(n, swap),
    "open shapes": lambda n: chain(n, swap, inputs=[value("x", ["n", 8, "h", "w"])]),
    "unknown shapes": lambda n: chain(n, swap, [node("Foo", ["x"], ["z"], domain="z")], read="z"),
    "doubles": lambda n: chain(n, swap, inputs=[value("x", [1, 8, 4, 4], onnx.TensorProto.DOUBLE)]),
    "integers": lambda n: chain(n, swap, inputs=[value("x", [1, 8, 4, 4], onnx.TensorProto.UINT4)]),
    "opset 18": lambda n: chain(n, lambda read, i: swap(read, i, num_outputs=2), opset=18),
    "opset 24": lambda n: chain(n, lambda read, i: swap(read, i, num_outputs=2), opset=24, ir_version=11),
    "symbols": lambda n: beside(
        n, lambda i: [split(f"x{i}", f"a{i}", f"b{i}")], inputs=[value(f"x{i}", [f"n{i}", 4]) for i in range(n)]
    ),
    "unsorted": unsorted,
    "relus": lambda n: chain(n, lambda read, i: [node("Relu", [read], [f"r{i}"])], FIRST, LAST, "a"),
    "casts": lambda n: chain(
        n, lambda read, i: [node("Cast", [read], [f"r{i}"], to=10 - 9 * (i % 2))], FIRST, read="a"
    ),
    "identities": lambda n: chain(n, lambda read, i: [node("Identity", [read], [f"r{i}"])], last=FIRST),
    "identities as outputs": lambda n: beside(n, lambda i: [node("Identity", ["a"], [f"r{i}"])], FIRST),
    "identities of parts": lambda n: beside(
        n,
        lambda i: [node("Identity", [f"o{i}"], [f"r{i}"])],
        [node("Split", ["x"], [f"o{i}" for i in range(n)], axis=0)],
        inputs=[value("x", [n, 4])],
    ),
    "transposes": lambda n: chain(n, transposed, last=FIRST),
    "transposes beside": lambda n: beside(
        n,
        lambda i: [leaky("t", f"l{i}", i, n), node("Transpose", [f"l{i}"], [f"u{i}"], perm=[0, 2, 1, 3])],
        [node("Transpose", ["x"], ["t"], perm=[0, 2, 1, 3]), split("t", "a", "b")],
    ),
    "reshapes": lambda n: chain(
        n, reshaped, [node("Shape", ["x"], ["sh"])], FIRST, inputs=[value("x", ["n", 8])], constants=LENGTHS
    ),
    "ladder": ladder,
    "gates": lambda n: chain(n, glu),
    "gates of one tensor": lambda n: beside(n, lambda i: glu("x", i)),
    "gates of one name": one_name(lambda n: chain(n, glu)),
    "products that crash": lambda n: chain(n, crash),
    "calls of products that crash": lambda n: called(chain(n, crash).graph.node),
    "calls of gates": lambda n: called(chain(n, glu).graph.node),
    "gates beside": lambda n: beside(n, lambda i: [node("Relu", ["x"], [f"x{i}"]), *gate(f"x{i}", i)]),
    "gates that come out wrong": wrong_beside,
    "gates of themselves": lambda n: chain(
        n, lambda read, i: [node("Sigmoid", [read], [f"s{i}"]), node("Mul", [read, f"s{i}"], [f"m{i}"])], last=FIRST
    ),
    "one gate": joined(lambda i, n: [node("Sigmoid", ["b"], [f"s{i}"]), node("Mul", ["a", f"s{i}"], [f"r{i}"])]),
    "readers of one sum": joined(lambda i, n: [node("Add", ["a", "b"], [f"t{i}"]), node("Relu", [f"t{i}"], [f"r{i}"])]),
    "readers of one part": joined(lambda i, n: [leaky("a", f"r{i}", i, n)]),
    "error functions": joined(lambda i, n: [leaky("a", f"l{i}", i, n), node("Erf", [f"l{i}"], [f"r{i}"])]),
    "gemms": lambda n: chain(
        n,
        lambda read, i: [node("Gemm", [read, "w", "k"], [f"g{i}"]), node("Relu", [f"g{i}"], [f"r{i}"])],
        inputs=[value("x", [8, 4])],
        last=FIRST,
        constants=[*HALF, helper.make_tensor("w", FLOAT, [4, 4], [1] * 16)],
    ),
    "convolutions": lambda n: chain(
        n,
        lambda read, i: [node("Conv", [read, "w"], [f"g{i}"]), node("Mul", [f"g{i}", "k"], [f"r{i}"])],
        FIRST,
        LAST,
        "a",
        constants=[*HALF, helper.make_tensor("w", FLOAT, [4, 4, 1, 1], [1] * 16)],
    ),
    "quantizations": lambda n: chain(n, quantized, last=FIRST, constants=SCALE),
    "quantizations that are moved": moved_over,
    "products by quantized weights": lambda n: beside(
        n,
        lambda i: [node("DequantizeLinear", ["w", "s", "z"], [f"d{i}"]), node("MatMul", ["x", f"d{i}"], [f"r{i}"])],
        FIRST,
        constants=SCALE,
    ),
    "weights": lambda n: chain(
        n,
        lambda read, i: [node("Add", [read, f"k{i}"], [f"r{i}"])],
        FIRST,
        LAST,
        "a",
        constants=[helper.make_tensor(f"k{i}", FLOAT, [1], [i + 1]) for i in range(n)],
    ),
    "concat of one tensor": lambda n: made([node("Relu", ["x"], ["r"]), concat(["r"] * n, "y")], ["y"]),
    "concats of one tensor": lambda n: beside(
        n, lambda i: [leaky("b", f"l{i}", i, n), concat(["a", f"l{i}"], f"y{i}")], FIRST
    ),
    "concats of concats": lambda n: chain(
        n, lambda read, i: [concat([read, "x"], f"c{i}")], [node("Relu", ["x"], ["r"])], read="r"
    ),
    "concat of inputs": lambda n: made(
        [concat([f"x{i}" for i in range(n)], "y"), *FIRST], "ay", [X, *(value(f"x{i}", [2, 4]) for i in range(n))]
    ),
    "parts": wide,
    "parts beside": parts_beside,
    "parts as outputs": lambda n: made(
        [node("Split", ["x"], [f"o{i}" for i in range(n)], axis=0)], [f"o{i}" for i in range(n)], [value("x", [n, 4])]
    ),
    "parts without names": lambda n: made(
        [node("Split", ["x"], [f"o{i}" if i % 2 else "" for i in range(n)], axis=0)], ["o1"], [value("x", [n, 4])]
    ),
    "too many dimensions": lambda n: beside(
        n,
        lambda i: [node("Relu", ["x"], [f"r{i}"]), node("Split", [f"r{i}"], [f"a{i}", f"b{i}"], axis=8)],
        inputs=[TALL],
    ),
    "malformed": lambda n: beside(n, lambda i: [node("Split", ["x"], [f"a{i}", f"b{i}"], axis=9)]),
    "sequences": lambda n: beside(
        n,
        lambda i: [node("SplitToSequence", ["x"], [f"s{i}"]), node("ConcatFromSequence", [f"s{i}"], [f"y{i}"], axis=1)],
    ),
    "one name twice": lambda n: made([*(node("Relu", ["x"], ["t"]) for _ in range(n)), *FIRST], ["a"]),
    "splits of one name": lambda n: made([*FIRST * n, node("Relu", ["a"], ["y"])], ["y"]),
    "long names": lambda n: chain(n, lambda read, i: swap(read, f"{'n' * 200}{i}")),
    "unused inputs": lambda n: made(FIRST, ["a"], [X, *(value(f"x{i}", [2, 4]) for i in range(n))]),
    "unused constants": lambda n: made(FIRST, ["a"], constants=[ints(f"k{i}", i, i) for i in range(n)]),
    "unused declarations": lambda n: made(FIRST, ["a"], value_info=[value(f"v{i}", [2, 4]) for i in range(n)]),
    "one output": lambda n: made(FIRST, ["a"] * n),
    "attributes": lambda n: made(
        [*FIRST, node("Foo", ["a"], ["y"], domain="z", **{f"k{i}": i for i in range(n)})], ["y"]
    ),
    "domains": lambda n: beside(n, lambda i: [node("Foo", ["a"], [f"y{i}"], domain=f"d{i}")], FIRST),
    "strange operators": strange("z"),
    "unknown operators": strange("com.microsoft"),
    "operators of unknown shapes": strange("z", declared=False),
    "unknown operators beside": doubtful_beside,
    "dead": lambda n: made([*FIRST, *(leaky("b", f"d{i}", i, n) for i in range(n))], ["a"]),
    "dead graphs": dead_beside,
    "ifs": lambda n: beside(n, lambda i: [split_in_branches(i)], inputs=[X, CHOICE]),
    "ifs that are taken": lambda n: beside(n, lambda i: [split_in_branches(i)], constants=[TRUE]),
    "ifs in ifs": lambda n: beside(
        n, lambda i: [choice(i, nested(3, f"i{i}"), nested(0, f"e{i}"))], inputs=[X, CHOICE]
    ),
    "ifs in ifs that are taken": lambda n: beside(
        n, lambda i: [choice(i, nested(3, f"i{i}"), nested(0, f"e{i}"))], constants=[TRUE]
    ),
    "ifs of one another": lambda n: chain(n, condition, FIRST, read="c", constants=[TRUE]),
    "ifs in a long graph": ifs_in_a_long_graph,
    "large branches": large_branches,
    "names known around": shadowing,
    "constants in branches": constants_in_branches,
    "graphs of one node": graphs_of_one_node,
    "islands": joined(lambda i, n: [leaky("a", f"s{i}", i, n), node("RandomNormalLike", [f"s{i}"], [f"r{i}"])]),
    "loops": lambda n: chain(n, loop, constants=[helper.make_tensor("m", INT64, [], [3])]),
    "calls": lambda n: chain(
        n,
        lambda read, i: [call("f", read, f"r{i}")],
        functions=[function("f", [split("x", "a", "b"), concat(["b", "a"], "y")])],
    ),
    "calls without splits": lambda n: chain(
        n,
        lambda read, i: [call("f", read, f"r{i}")],
        FIRST,
        read="a",
        functions=[function("f", [node("Relu", ["x"], ["y"])])],
    ),
    "functions": lambda n: chain(
        n,
        lambda read, i: [call(f"f{i}", read, f"r{i}")],
        FIRST,
        read="a",
        functions=[function(f"f{i}", [node("Relu", ["x"], ["y"])]) for i in range(n)],
    ),
    "functions in functions": towers,
}
