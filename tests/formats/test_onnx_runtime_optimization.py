"""ONNX Runtime's graph optimization: what is folded, merged or moved, and what that makes of a Split or Concat."""

from __future__ import annotations

import numpy as np
import pytest

import dmlsplit.formats.onnx
from dmlsplit.onnxruntime import SessionOptions
from dmlsplit.onnxruntime.prediction import on_onnxruntime
from tests.formats.answers import SPLIT, VERSION, X, ask, outcome, rules
from tests.models import node, text, value


@pytest.mark.parametrize(("outputs", "flags"), [([], 0), (["sum"], 0), (["n"], 4)])
def test_an_activation_is_part_of_the_sum_in_front_of_it(outputs, flags):
    """Four nodes are left of five: that the sum is an output, too, changes nothing; a second reader does."""
    nodes = [SPLIT, node("Add", ["a", "a"], ["sum"]), node("Relu", ["sum"], ["r"]), node("Tanh", ["r"], ["s"])]
    nodes += [node("Concat", ["s", "b"], ["u"], axis=1)]
    nodes += [node("Sub", ["sum", "b"], ["n"])] if "n" in outputs else []
    assert outcome(ask(nodes, [X], [*outputs, "u"]))[0] == ("S", "DML", "init", flags)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("s = Sigmoid(a) m = Mul(a, s) u = Exp(m) y = Concat<axis=1>(u, b)", 0),
        ("s = Sigmoid(a) m = Mul(s, a) u = Max(m, s) y = Concat<axis=1>(u, b)", 4),
        ("s = Sigmoid(a) m = Mul(s, b) u = Exp(m) y = Concat<axis=1>(u, b)", 4),
        ("s = Neg(a) m = Min(a, s) u = Slice(m, z, o, o) y = Concat<axis=1>(u, b)", 4),
        ("s = Add(a, w) m = Mul(s, s) u = Abs(m) y = Concat<axis=1>(u, b)", 4),
        ("s = Add(a, f) m = Mul(s, s) u = Abs(m) y = Concat<axis=1>(u, b)", 0),
        ("s = Add(a, w) m = Mul(s, s) u = Tanh(m) y = Concat<axis=1>(u, b)", None),
    ],
    ids=["gate", "gate that is read", "no gate", "slice", "weights", "neutral weights", "weights in a pattern"],
)
def test_what_optimization_leaves_of_the_nodes_is_counted(words, flags):
    """x * Sigmoid(x) becomes one node where nothing else reads the Sigmoid; of weights little is known."""
    constants = "<int64[1] z = {0}, int64[1] o = {1}, float w = {2}, float f = {0}>"
    made = text(f"(float[2,6] x) => (float[?,?] y) {constants} {{ a, b = Split<axis=1>(x) {words} }}")
    answer = on_onnxruntime(made, VERSION)[0].answer
    assert (answer.compile.flags, answer.outcome, answer.diagnostics) == (flags, "DML", ())


BRANCHES = (
    "then_branch = t () => (float[?,?] a) { a, b = Split<axis=1>(r) }, "
    "else_branch = e () => (float[?,?] d) { d, e = Split<axis=0>(r) }"
)


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("k = Constant<value = bool {1}>()", "then"),
        ("k = Not(yes)", "else"),
        ("z = Shape<end=1>(x) q = Squeeze(z) n = Constant<value = int64 {2}>() k = Equal(q, n)", "then"),
        ("z = Size(x) n = Constant<value = int64 {12}>() k = Equal(z, n)", "both"),
        ("k = Identity(given)", "both"),
        ("k = Identity(default)", "both"),
    ],
)
def test_a_branch_that_is_always_taken_comes_in_the_place_of_the_if(condition, taken):
    """The other one is gone, and what is around the If is fused with what is in it."""
    head = "(float[2,6] x, bool given, bool default) => (float[?,?] y) <bool yes = {1}, bool default = {1}>"
    around = f"r = Relu(x) {condition} s = If(k)<{BRANCHES}> t = Tanh(s) u = Sigmoid(t) v = Concat<axis=1>(s, u)"
    made = text(f"{head} {{ {around} y = Add(v, v) }}")
    found = {n.path: n.on_onnxruntime(VERSION) for n in dmlsplit.formats.onnx.read(made)}
    for branch, path in (("then", "s.then_branch/a"), ("else", "s.else_branch/d")):
        answer = found[path]
        told = str(answer.outcome), answer.compile and answer.compile.flags, [d.rule for d in answer.diagnostics]
        if taken == "both":
            assert told == ("DML", 0, [])
        elif taken == branch:
            assert told == ("DML", 4, [])
        else:
            assert told == ("CPU", None, ["onnxruntime/branch-not-taken"])
    options = SessionOptions(optimization=0)
    assert len(on_onnxruntime(made, VERSION, options=options)) == 3, "only optimization does it"


def test_an_identity_does_not_count():
    nodes = [SPLIT, node("Identity", ["a"], ["i"]), *(node("Relu", [name], [name * 2]) for name in "ib")]
    nodes.append(node("Relu", ["ii"], ["z"]))
    assert outcome(ask(nodes, [X], ["z", "bb"])) == [("S", "DML", "init", 0)]


def test_lengths_of_a_static_shape_are_folded():
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["g"]), node("Div", ["g", "two"], ["d"])]
    nodes += [node("Concat", ["d", "d"], ["lengths"], axis=0, name="C")]
    nodes += [node("Split", ["x", "lengths"], ["a", "b"], axis=1, name="S")]
    constants = {"one": [1], "two": [2]}
    assert outcome(ask(nodes, [X], ["a", "b"], constants)) == [("C", "CPU", "init", None), ("S", "DML", "init", 0)]
    found = ask(nodes, [value("x", ["N", 6])], ["a", "b"], constants, given={"run_shapes": {"x": (2, 6)}})
    assert outcome(found) == [("C", "CPU", None, None), ("S", "DML", "run", 0)]
    assert rules(found)[0] == ["prefers-cpu"]


def computed_length(number):
    """The size of axis 1 as a length, from initializers of its own; a Split by it."""
    nodes = [node("Shape", ["x"], [f"s{number}"]), node("Gather", [f"s{number}", f"i{number}"], [f"g{number}"])]
    nodes.append(node("Concat", [f"g{number}"], [f"c{number}"], axis=0, name=f"C{number}"))
    return [*nodes, node("Split", ["x", f"c{number}"], [f"y{number}"], axis=1 - 2 * number, name=f"S{number}")]


@pytest.mark.parametrize(
    ("second", "once"), [([1], True), ([0], False), (np.array([1], np.int32), False)], ids=["equal", "value", "type"]
)
def test_nodes_behind_equal_initializers_are_computed_once(second, once):
    constants = {"i0": np.array([1]), "i1": np.asarray(second)}
    nodes = [*computed_length(0), *computed_length(1)]
    found = ask(nodes, [value("x", ["N", "M"])], ["y0", "y1"], constants)
    assert [n.path for n in found if "onnxruntime/computed-once" in {d.rule for d in n.answer.diagnostics}] == (
        ["C0"] if once else []
    )
    both = ask(nodes, [value("x", ["N", "M"])], ["y0", "y1", "c0", "c1"], constants)
    assert not any("computed-once" in names for names in rules(both)), "what the model gives is not taken away"


def test_an_output_that_is_read_keeps_a_node_that_repeats_another():
    """The graph gives b0, and a1 is read: neither Split can stand for the other."""
    same = [node("Split", ["r"], [f"a{i}", f"b{i}"], axis=1, name=f"S{i}") for i in (0, 1)]
    nodes = [node("Relu", ["x"], ["r"]), *same, node("Tanh", ["a1"], ["y"]), node("Tanh", ["b1"], ["z"])]
    found = ask(nodes, [X], ["b0", "y", "z"], opset=13)
    assert [flags for *_, flags in outcome(found)] == [4, 4]
    assert not any("computed-once" in names for names in rules(found))


def test_splits_that_differ_in_their_outputs_only_are_not_predicted():
    nodes = [SPLIT, node("Split", ["x"], ["c", "d", "e"], axis=1, name="T")]
    found = ask(nodes, [X], list("abcde"), opset=13)
    assert {n.answer.outcome for n in found} == {"unknown"}
    assert rules(found) == [["twins-differ"]] * 2


def test_what_is_behind_two_splits_that_differ_in_their_outputs_may_have_the_sizes_of_either():
    words = "a, b = Split<axis=1>(x) c, d, e = Split<axis=1>(x) r = Relu(a) j = Concat<axis=1>(r, b)"
    words += " k = Concat<axis=0>(x, x)"
    made = text(f"(float[2,6] x) => (float[?,?] j, float[?,?] e, float[?,?] k) {{ {words} }}")
    found = on_onnxruntime(made, VERSION)
    assert [(each.path, *each_rules) for each, each_rules in zip(found, rules(found), strict=True)] == [
        ("a", "twins-differ"),
        ("c", "twins-differ"),
        ("j", "context-unknown"),
        ("k",),
    ]


def test_a_split_between_transposes():
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Split", ["t"], ["a", "b"], axis=0, name="S")]
    nodes.append(node("Transpose", ["a"], ["y"], perm=[1, 0]))
    assert outcome(ask(nodes, [X], ["y", "b"])) == [("S", "DML", "init", 0)]
    nodes[0], nodes[2] = node("Transpose", ["x"], ["t"]), node("Transpose", ["a"], ["y"])  # which are not moved
    assert outcome(ask(nodes, [X], ["y", "b"])) == [("S", "DML", "init", 0)]
    assert outcome(ask(nodes[:2], [X], ["a", "b"])) == [("S", "DML", "init", 0)]


def test_two_transposes_in_front_of_a_concat_become_one_behind_it():
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Concat", ["t", "t"], ["y"], axis=0, name="C")]
    assert outcome(ask(nodes, [X], ["y"])) == [("C", "DML", "init", 0)]
    nodes[1] = node("Concat", ["t", "z"], ["y"], axis=0, name="C")
    assert outcome(ask(nodes, [X, value("z", [6, 2])], ["y"])) == [("C", "DML", "init", 0)]


def weights(*shape):
    return np.ones(shape, np.float32)


def test_a_transpose_is_not_moved_over_a_convolution():
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Conv", ["t", "w"], ["c"])]
    nodes += [node("Split", ["c"], ["a", "b"], axis=1, name="S"), node("Conv", ["a", "v"], ["d"])]
    nodes += [node("Transpose", ["d"], ["y"], perm=[0, 2, 3, 1]), node("Conv", ["b", "u"], ["e"])]
    nodes.append(node("Conv", ["e", "v"], ["f"]))
    constants = {"w": weights(4, 4, 1, 1), "v": weights(2, 2, 1, 1), "u": 2 * weights(2, 2, 1, 1)}
    image = [value("x", [1, 8, 8, 4])]
    assert outcome(ask(nodes, image, ["y", "f"], constants)) == [("S", "DML", "init", 4)]
    nodes[3:4] = [node("Relu", ["a"], ["d"]), node("MaxPool", ["c"], ["p"], kernel_shape=[1, 1])]
    assert outcome(ask(nodes, image, ["y", "f", "p"], constants)) == [("S", "DML", "init", 4)], "one side is enough"
    nodes[1] = node("Relu", ["t"], ["c"])
    assert outcome(ask(nodes, image, ["y", "f", "p"], constants)) == [("S", "DML", "init", 4)]


def test_convolutions_are_nodes_whatever_joins_them():
    nodes = [node("Conv", [f"c{i}" if i else "x", f"w{i}"], [f"c{i + 1}"]) for i in range(4)]
    nodes.append(node("Split", ["c4"], ["a", "b"], axis=1, name="S"))
    kernels = {f"w{i}": weights(4, 4, 1, 1) * (i + 1) for i in range(4)}
    assert outcome(ask(nodes, [value("x", [1, 4, 8, 8])], ["a", "b"], kernels)) == [("S", "DML", "init", 4)]


KEPT, CONSTANT = ("CPU", None), ("CPU", "init")


@pytest.mark.parametrize(
    ("words", "fate"),
    [
        ("n = Gather(s, zero) u = Unsqueeze(n, u0) c = Concat<axis=0>(u, c6, c4) y = Reshape(r, c)", CONSTANT),
        ("n = Gather(s, one) u = Unsqueeze(n, u0) c = Concat<axis=0>(u, c4, c2) y = Reshape(r, c)", CONSTANT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) y = Reshape(r, c)", CONSTANT),
        ("z = Size(r) u = Unsqueeze(z, u0) c = Concat<axis=0>(u, c1, c1) y = Reshape(r, c)", CONSTANT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, m1, c4) y = Reshape(r, c)", KEPT),
        ("n = Gather(s, zero) u = Unsqueeze(n, u0) c = Concat<axis=0>(u, m1, c4) y = Reshape(r, c)", CONSTANT),
        ("u = Gather(s, u0) v = Gather(s, c1) c = Concat<axis=0>(u, v, c4) y = Reshape(r, c)", KEPT),
        ("u = Slice(s, u0, c2, u0) c = Concat<axis=0>(u, c4) y = Reshape(r, c)", KEPT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) y = Reshape<allowzero=1>(r, c)", KEPT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) y = Expand(r, c)", KEPT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) i = Identity(c) y = Reshape(r, i)", CONSTANT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) i = Cast<to=7>(c) y = Reshape(r, i)", CONSTANT),
        ("u = Gather(s, u0) v = Mul(u, c1) c = Concat<axis=0>(u, v, c4) y = Reshape(r, c)", KEPT),
        (
            "n = Gather(s, one) u = Unsqueeze(n, u0) m = Gather(s, two) v = Unsqueeze(m, u0) "
            "c = Concat<axis=0>(u, c21, v) y = Reshape(r, c)",
            KEPT,
        ),
    ],
)
def test_the_shape_for_a_reshape_becomes_a_constant(words, fate):
    """With 0 for a size that stays where it is, and -1 for one other at most. Observed: what each of these does."""
    constants = "int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] u0 = {0}, int64[1] c1 = {1}, "
    constants += "int64[1] c2 = {2}, int64[1] c4 = {4}, int64[1] c6 = {6}, int64[1] m1 = {-1}, int64[2] c21 = {2,1}"
    made = text(f"(float[N,6,4] x) => (float[?,?,?] y) <{constants}> {{ r = Relu(x) s = Shape(r) {words} }}")
    (found,) = on_onnxruntime(made, VERSION)
    assert (found.answer.outcome, found.answer.at) == fate


def test_a_size_of_another_tensor_is_one_that_the_reshape_keeps_since_1_25():
    words = "s = Shape(w) n = Gather(s, zero) u = Unsqueeze(n, u0) m = Gather(s, one) v = Unsqueeze(m, u0)"
    constants = "int64 zero = {0}, int64 one = {1}, int64[1] u0 = {0}, int64[1] c4 = {4}"
    head = f"(float[N,6,4] x, float[N,6,4] w) => (float[?,?,?] y) <{constants}>"
    made = text(f"{head} {{ {words} c = Concat<axis=0>(u, v, c4) y = Reshape(x, c) }}")
    answers = {version: on_onnxruntime(made, version)[0].answer for version in ("1.24.4", "1.30.0")}
    assert {version: (answer.outcome, answer.at) for version, answer in answers.items()} == {
        "1.24.4": ("CPU", None),
        "1.30.0": ("CPU", "init"),
    }


def test_a_reshape_to_a_constant_may_be_of_a_static_shape():
    words = "s = Shape(w) n = Gather(s, zero) u = Unsqueeze(n, u0) c = Concat<axis=0>(u, c2) y = Reshape(x, c)"
    head = "(float[2,6] x, float[N] w) => (float[?,?] a, float[?,?] b)"
    head += "<int64 zero = {0}, int64[1] u0 = {0}, int64[1] c2 = {2}>"
    found = on_onnxruntime(text(f"{head} {{ {words} a, b = Split<axis=1>(y) }}"), VERSION, run_shapes={"w": (6,)})
    assert [node.answer.outcome for node in found] == ["CPU", "unknown"]


@pytest.mark.parametrize(
    ("words", "sizes", "level", "at"),
    [
        ("s = Shape(y) p = Gather(s, i)", "3,2", 99, "init"),
        ("s = Shape(y) p = Gather(s, i)", "3,2", 0, "run"),
        ("s = Shape(y) p = Gather(s, i)", "3,N", 99, "run"),
        ("s = Shape(y) g = Gather(s, i) p = Div(g, j)", "3,N", 99, "run"),
        ("p = Shape<start=0, end=1>(y)", "3,N", 99, "run"),
        ("p = Constant<value_ints=[3]>()", "3,N", 99, "init"),
    ],
)
def test_only_the_shape_of_what_is_static_as_a_whole_is_folded(words, sizes, level, at):
    """What is behind a Split is made with the session where its lengths were folded."""
    words = f"<int64[1] i = {{0}}, int64[1] j = {{1}}, int64[1] k = {{3}}> {{ {words} l = Concat<axis=0>(p, k)"
    words += " a, b = Split<axis=0>(x, l) r = Relu(a) c, d = Split<axis=1>(r) }"
    made = text(f"(float[6,4] x, float[{sizes}] y) => (float[?,?] b, float[?,?] c, float[?,?] d) {words}")
    found = on_onnxruntime(made, VERSION, run_shapes={"y": (3, 2)}, options=SessionOptions(optimization=level))
    answers = {each.path: (each.answer.outcome, each.answer.at) for each in found}
    assert (answers["a"], answers["c"]) == (("DML", at), ("DML", at))


@pytest.mark.parametrize(("sizes", "paths"), [("3,2", ["c"]), ("3,N", ["c", "o"])])
def test_no_branch_is_taken_for_sizes_of_a_shape_that_is_known_in_part(sizes, paths):
    words = "<int64[1] i = {0}, int64[1] k = {3}> { s = Shape(y) g = Gather(s, i) e = Equal(g, k) b = If(e)"
    words += "<then_branch = t () => (float[?,?] c) { c = Concat<axis=1>(x, x) },"
    words += " else_branch = f () => (float[?,?] o) { o = Concat<axis=0>(x, x) }> }"
    found = on_onnxruntime(text(f"(float[6,4] x, float[{sizes}] y) => (float[?,?] b) {words}"), VERSION)
    assert [each.path.rpartition("/")[2] for each in found] == paths


HALF = "sh = Shape(r) g = Gather<axis=0>(sh, o) h = Div(g, t) "
SIZED = {
    "two slices": ("m = Slice(r, z, h, o) n = Slice(r, h, g, o) w = Concat<axis=0>(n, m)", (4, 4)),
    "a slice of a slice": (
        "m = Slice(r, z, h, o) s2 = Shape(m) g2 = Gather<axis=0>(s2, o) h2 = Div(g2, t) w = Slice(m, z, h2, o)",
        (2, 2),
    ),
    "a quotient of floats": (
        "c = Cast<to=1>(g) d = Div(c, two) e = Floor(d) i = Cast<to=7>(e) w = Slice(r, z, i, o)",
        (2, 4),
    ),
    "Reshape": ("s = Concat<axis=0>(h, h) w = Reshape(r, s)", (4, 4)),
    "Expand": ("u = ReduceSum<keepdims=1>(r, o) s = Concat<axis=0>(t, h) w = Expand(u, s)", (2, 4)),
    "Tile": ("s = Concat<axis=0>(o, h) w = Tile(r, s)", (2, 32)),
    "ConstantOfShape": ("s = Concat<axis=0>(h, h) k = ConstantOfShape(s) n = Reshape(r, s) w = Add(n, k)", (4, 4)),
    "Pad": ("q = Concat<axis=0>(z, z) p = Concat<axis=0>(q, h) y = Concat<axis=0>(p, h) w = Pad(r, y)", (6, 12)),
    "TopK": ("w, i = TopK(r, h)", (2, 4)),
    "Shape, Slice": ("s = Slice(sh, o, t) i = Div(s, t) w = Slice(r, z, i, o)", (2, 4)),
}
"""What comes before a Split of axis 1, and the sizes that the Split reads."""


@pytest.mark.parametrize("name", SIZED)
def test_sizes_that_are_computed_of_static_shapes_are_known(name):
    """ONNX Runtime folds them from optimization level 1 on, and infers sizes again."""
    body, sizes = SIZED[name]
    head = "(float[2,8] x) => (float[?,?] a, float[?,?] b) <int64[1] z = {0}, int64[1] o = {1}, int64[1] t = {2}, "
    words = f"{head} float two = {{2}}> {{ r = Relu(x) {HALF} {body} a, b = Split<axis=1>(w) }}"
    (split,) = [found for found in on_onnxruntime(text(words), VERSION) if found.op == "Split"]
    assert split.facts.shapes == (sizes,)
    opened = on_onnxruntime(text(words.replace("[2,8]", "[2,N]")), VERSION)
    assert [found.answer.at for found in opened if found.op == "Split"] == ["run"]
