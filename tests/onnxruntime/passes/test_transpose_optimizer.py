"""The pass dmlsplit.onnxruntime.passes.transpose_optimizer."""

from __future__ import annotations

import re

import pytest

from dmlsplit.models.graph import Doubt
from dmlsplit.onnxruntime.passes.transpose_optimizer import move_transposes, transpose_optimizer
from tests.onnxruntime.passes import after, graph_of, left

REVERSED = "Transpose<perm=[2,1,0]>"
HEAD = "(float[2,3,4] x) => (float[?,?,?] o)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Transpose<perm=[1,2,0]>(x) b = Transpose<perm=[2,0,1]>(a) o = Abs(b)", ["o = Abs(x)"]),
        (f"a = {REVERSED}(x) b = {REVERSED}(a) o = Abs(b)", ["o = Abs(x)"]),
        (
            f"a = {REVERSED}(x) b = Transpose(a) o = Abs(b)",
            ["a = Transpose(x)", "b = Transpose(a)", "o = Abs(b)"],
        ),
        (
            f"a = Transpose(x) b = {REVERSED}(a) o = Abs(b)",
            ["a = Transpose(x)", "b = Transpose(a)", "o = Abs(b)"],
        ),
        (
            "a = Transpose<perm=[1,2,0]>(x) b = Transpose<perm=[1,2,0]>(a) o = Abs(b)",
            ["b = Transpose(x)", "o = Abs(b)"],
        ),
        (f"a = {REVERSED}(x) b = {REVERSED}(a) o = Add(b, x)", ["o = Add(x,x)"]),
        (f"a = {REVERSED}(x) b = {REVERSED}(a) , o = LSTM(b, x, x, , , x)", [",o = LSTM(x,x,x,,,x)"]),
        (
            f"a = {REVERSED}(x) b = {REVERSED}(a) c = {REVERSED}(a) d = Neg(a) o = Add(b, c)",
            ["a = Transpose(x)", "d = Neg(a)", "o = Add(x,x)"],
        ),
        (f"a = {REVERSED}(x) o = {REVERSED}(a)", ["a = Transpose(x)", "o = Transpose(a)"]),
    ],
    ids=[
        *("inverse", "reversed", "the second without its attribute", "the first without its attribute"),
        *("not inverse", "one reader", "without optional tensors", "that is read elsewhere", "an output"),
    ],
)
def test_a_transpose_that_is_undone(body, expected):
    assert after(transpose_optimizer, f"{HEAD} {{ {body} }}") == expected


def test_a_transpose_reads_the_output_that_takes_the_place_of_its_input():
    body = "a = Transpose<perm=[0,2,1]>(x) b = Softmax<axis=2>(a) c = Transpose<perm=[0,2,1]>(b) d = Abs(c)"
    body += " o = Transpose<perm=[0,2,1]>(c)"
    assert after(transpose_optimizer, f"{HEAD} {{ {body} }}", 12) == [
        *("a = Transpose(x)", "o = Softmax(a)", "c = Transpose(o)", "d = Abs(c)"),
    ]


FREED = "a = Transpose<perm=[1,2,0]>(x) b = {}(a) o = Transpose<perm=[2,0,1]>(b)"


@pytest.mark.parametrize(
    ("body", "opset", "expected", "axis"),
    [
        (FREED.format("Relu"), 17, ["o = Relu(x)"], None),
        (FREED.format("LogSoftmax"), 13, ["o = LogSoftmax(x)"], 0),
        (FREED.format("Softmax<axis=0>"), 21, ["o = Softmax(x)"], 1),
        (FREED.format("Softmax<axis=0>"), 12, ["o = Softmax(x)"], 0),
        (FREED.format("Softmax<axis=1>"), 12, None, 1),
        (FREED.format("Relu").replace("[2,0,1]", "[1,2,0]"), 17, None, None),
        (f"{FREED.format('Relu')} u = Abs(a)", 17, ["a = Transpose(x)", "o = Relu(x)", "u = Abs(a)"], None),
        (f"{FREED.format('Relu')} u = Abs(b)", 17, None, None),
        (f"{FREED.format('Relu')} u = {REVERSED}(y)".replace("(x)", "(u)"), 17, None, None),
        ("a = Transpose(x) b = Relu(a) o = Transpose(b)", 17, None, None),
    ],
    ids=[
        *("element by element", "the last axis", "another axis", "of a vector", "of a matrix", "not inverse"),
        *("the first is read besides", "what is between is read besides", "behind another Transpose"),
        "without their attributes",
    ],
)
def test_a_node_between_transposes_that_undo_one_another(body, opset, expected, axis):
    graph = graph_of(f"(float[2,3,4] x, float[2,3,4] y) => (float[?,?,?] o, float[?,?,?] u) {{ {body} }}", opset)
    before = left(graph)
    transpose_optimizer(graph)
    assert left(graph) == (expected or before)
    (node,) = [node for node in graph.nodes if "o" in node.proto.output or "b" in node.proto.output][:1]
    assert next((each.i for each in node.proto.attribute if each.name == "axis"), None) == axis


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"a = {REVERSED}(x) b = Sqrt(a) o = {REVERSED}(b)", ["o = Sqrt(x)"]),
        (f"a = Transpose(x) b = Sqrt(a) o = {REVERSED}(b)", None),
        (f"a = {REVERSED}(x) b = Sqrt(a) o = Transpose(b)", ["1 = Sqrt(x)", "o = Transpose(b)", "b = Transpose(1)"]),
        (f"a = {REVERSED}(x) o = Relu(a)", None),
        (f"n = Constant<value_ints=[4,6]>() a = {REVERSED}(x) r = Reshape(a, n) o = Abs(y)", None),
        (f"n = Constant<value_ints=[4,6,1]>() a = {REVERSED}(x) r = Reshape(a, n) o = Abs(y)", None),
        (
            f"n = Constant<value_ints=[4,3,2]>() a = {REVERSED}(x) r = Reshape(a, n) o = Abs(y)",
            ["o = Abs(y)", "r = Transpose(x)"],
        ),
        (f"n = Shape(y) a = {REVERSED}(x) r = Reshape(a, n) o = Abs(y)", None),
        (f"a = {REVERSED}(x) b = Relu(a) c = Erf(b) o = {REVERSED}(c)", ["1 = Relu(x)", "o = Erf(1)"]),
        (f"a = {REVERSED}(x) b = LpNormalization(a) c = Relu(b) o = {REVERSED}(c)", None),
        ("a = Transpose<perm=[1,2,0]>(x) o = Transpose<perm=[1,2,0]>(a)", ["o = Transpose(x)"]),
        (f"a = {REVERSED}(x) b = {REVERSED}(x) o = Add(a, b)", ["1 = Add(x,x)", "o = Transpose(1)"]),
        (f"a = {REVERSED}(x) o = Add(a, y)", None),
        (
            f"a = {REVERSED}(x) b, c = Split<axis=0>(a) d = Concat<axis=0>(c, b) o = {REVERSED}(d)",
            ["1,2 = Split(x)", "o = Concat(2,1)"],
        ),
        (f"a = {REVERSED}(x) b = Concat<axis=0>(a, a) o = {REVERSED}(b)", ["o = Concat(x,x)"]),
        (f"a = {REVERSED}(x) b = ReduceMax<axes=[0]>(a) o = {REVERSED}(b)", ["o = ReduceMax(x)"]),
        ("b = Relu(x) o = Abs(b)", None),
    ],
    ids=[
        "between two",
        "the first without its attribute",
        "the second without its attribute",
        "at the end",
        "over a reshape of another rank",
        "over a reshape of other sizes",
        "over a reshape that moves nothing",
        "over a reshape of computed sizes",
        "over several",
        "up to one that stops them",
        "one by another",
        "two for one",
        "one for one",
        "over a split and a concat",
        "over a concat",
        "between two, with another axis",
        "none",
    ],
)
def test_transposes_are_moved(body, expected):
    """A tensor that is made has the number of the moment at which it is."""
    graph = graph_of(f"(float[2,3,4] x, float[4,3,2] y, int64[3] z) => (float[?,?,?] o) {{ {body} }}")
    before = left(graph)
    move_transposes(graph)
    assert [re.sub(r"\w\[.*?\]/", "", node) for node in left(graph)] == (expected or before)


def test_it_is_doubted_over_what_a_transpose_may_be_moved():
    body = f"n = Abs(z) a = {REVERSED}(x) b = Tile(a, n) o = {REVERSED}(b) p = Neg(a)"
    graph = graph_of(f"(float[2,3,4] x, float[4,3,2] y, int64[3] z) => (float[?,?,?] o) {{ {body} }}")
    before = left(graph)
    transpose_optimizer(graph)
    assert left(graph) == before
    assert {node.outputs[0].name for node in graph.nodes if Doubt.TRANSPOSED in node.doubts} == {"b", "o", "p"}
