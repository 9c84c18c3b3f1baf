"""The pass dmlsplit.onnxruntime.passes.common_subexpression_elimination."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from dmlsplit.models.graph import Doubt
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import (
    common_subexpression_elimination,
    constant_sharing,
)
from dmlsplit.onnxruntime.passes.identity_elimination import eliminate_identities
from tests.onnxruntime.passes import after, graph_of

HEAD = "(float[2,6] x) => (float[?,?] o, float[?,?] u) <float one = {1}, float uno = {1}, float[1] ones = {1}>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Neg(x) b = Neg(x) o = Abs(a) u = Exp(b)", ["b = Neg(x)", "o = Abs(b)", "u = Exp(b)"]),
        (
            "a = Neg(x) b = Neg(x) c = Abs(a) d = Abs(b) o = Exp(c) u = Log(d)",
            ["b = Neg(x)", "d = Abs(b)", "o = Exp(d)", "u = Log(d)"],
        ),
        ("o = Neg(x) u = Neg(x)", ["o = Neg(x)", "u = Neg(x)"]),
        (
            "a, b = Split<axis=1>(x) c, d = Split<axis=0>(x) o = Add(a, b) u = Add(c, d)",
            ["a,b = Split(x)", "c,d = Split(x)", "o = Add(a,b)", "u = Add(c,d)"],
        ),
        (
            "a = RandomUniformLike(x) b = RandomUniformLike(x) o = Neg(a) u = Abs(b)",
            ["a = RandomUniformLike(x)", "b = RandomUniformLike(x)", "o = Neg(a)", "u = Abs(b)"],
        ),
        (
            "a = Multinomial(x) b = Multinomial(x) o = Cast<to=1>(a) u = Cast<to=1>(b)",
            ["a = Multinomial(x)", "b = Multinomial(x)", "o = Cast(a)", "u = Cast(b)"],
        ),
        (
            "a = Bernoulli(x) b = Bernoulli(x) o = Neg(a) u = Abs(b)",
            ["b = Bernoulli(x)", "o = Neg(b)", "u = Abs(b)"],
        ),
    ],
    ids=["equal", "one after another", "outputs", "other attributes", "random", "Multinomials", "Bernoullis"],
)
def test_what_is_computed_twice(body, expected):
    """The walk begins with the last node that nothing reads."""
    assert after(common_subexpression_elimination, f"{HEAD} {{ {body} }}") == expected


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("d = DequantizeLinear(x, s) a = Neg(d) b = Neg(d) o = Abs(a) u = Abs(b)", "dabou"),
        ("d = DequantizeLinear(x, s) e = DequantizeLinear(x, s) a = Neg(d) b = Neg(e) o = Abs(a) u = Exp(b)", "deabou"),
        ("d = com.microsoft.DequantizeLinear(x, s) a = Neg(d) b = Neg(d) o = Abs(a) u = Exp(b)", "dabou"),
        (
            "f = Cast<to=1>(x) d = QuantizeLinear(f, s) a = Cast<to=1>(d) b = Cast<to=1>(d) o = Abs(a) u = Exp(b)",
            "fdbou",
        ),
    ],
    ids=["readers", "twins", "of com.microsoft", "quantized"],
)
def test_each_reader_has_a_dequantize_linear_of_its_own(body, left):
    """Observed with four versions: nothing that reads one is merged."""
    head = "(int8[2,6] x, float s) => (float[?,?] o, float[?,?] u)"
    found = after(common_subexpression_elimination, f"{head} {{ {body} }}")
    assert "".join(each[0] for each in found) == left


def test_what_reads_one_dequantize_linear_through_an_identity_is_merged():
    head = "(int8[2,6] x, float s) => (float[?,?] o, float[?,?] u)"
    graph = graph_of(
        f"{head} {{ d = DequantizeLinear(x, s) i = Identity(d) a = Neg(i) b = Neg(i) o = Abs(a) u = Exp(b) }}"
    )
    eliminate_identities(graph)
    common_subexpression_elimination(graph)
    assert [node.outputs[0].name for node in graph.nodes] == ["d", "b", "o", "u"]


def test_small_constants_that_are_equal_are_one():
    """Of one type and shape."""
    found = after(constant_sharing, f"{HEAD} {{ a = Add(x, one) b = Add(x, uno) o = Add(a, ones) u = Neg(b) }}")
    assert found == ["a = Add(x,one)", "b = Add(x,one)", "o = Add(a,ones)", "u = Neg(b)"]


@pytest.mark.parametrize(
    ("twin", "differ"),
    [
        ("c, d, e = Split<axis=1>(x)", {"a", "c"}),
        ("c, d = Split<axis=1>(x)", set()),
        ("c, d, e = Split<axis=0>(x)", set()),
        ("i = Identity(x) c, d, e = Split<axis=1>(i)", set()),
    ],
    ids=["another number", "the same number", "another axis", "another tensor"],
)
def test_splits_that_differ_in_their_outputs_alone(twin, differ):
    graph = graph_of(f"{HEAD} {{ a, b = Split<axis=1>(x) {twin} o = Add(a, b) u = Add(c, d) }}")
    nodes = graph.nodes
    common_subexpression_elimination(graph)
    assert {node.outputs[0].name for node in nodes if Doubt.TWINS_DIFFER in node.doubts} == differ


def test_a_graph_is_compared_again_only_after_a_change():
    """Of equal results of one node the second becomes known once the first node in front of them is merged."""
    graph = graph_of(f"{HEAD} {{ a = Neg(x) b = Abs(x) c = Exp(a) d = Exp(b) o = Add(c, d) u = Neg(one) }}")
    common_subexpression_elimination(graph)
    order = graph.without_twins
    assert order is not None
    assert order is graph.walk()
    first, second = graph.nodes[:2]
    graph.redirect_all({second.outputs[0]: first.outputs[0]})
    assert graph.walk() is not order
    common_subexpression_elimination(graph)
    assert [node.op_type for node in graph.nodes if node.op_type == "Exp"] == ["Exp"]
    assert graph.without_twins is None


@pytest.mark.parametrize("change", ["renumber", "remove", "write", "read"])
def test_a_changed_graph_is_walked_again(change):
    graph = graph_of(f"{HEAD} {{ a = Neg(x) o = Abs(a) u = Exp(a) }}")
    order = graph.walk()
    assert graph.walk() is order
    node = graph.nodes[-1]
    more = {"write": ([graph.value("v")],), "read": ([graph.value("x")],)}.get(change, ())
    getattr(graph, change)(node, *more)
    assert graph.walk() is not order


def number(kind: str, raw: bytes) -> onnx.TensorProto:
    return TensorProto(data_type=TensorProto.DataType.Value(kind), dims=[1], raw_data=raw)


WRITTEN = helper.make_tensor("", TensorProto.FLOAT, [1], [1.0])


@pytest.mark.parametrize(
    ("one", "other", "merging"),
    [
        (number("FLOAT", b"\0\0\x80?"), number("FLOAT", b"\0\0\x80?"), {"1.24.4", "1.30.0"}),
        (number("FLOAT", b"\0\0\x80?"), number("FLOAT", b"\0\0\0\0"), set()),
        (number("FLOAT", b"\0\0\0\x80"), number("FLOAT", b"\0\0\0\0"), {"1.24.4"}),
        (number("FLOAT", b"\0\0\xc0\x7f"), number("FLOAT", b"\0\0\xc0\x7f"), {"1.30.0"}),
        (WRITTEN, WRITTEN, {"1.30.0"}),
        (number("FLOAT", b"\0\0\x80?"), WRITTEN, {"1.30.0"}),
        (number("INT64", bytes(8)), number("INT64", bytes(8)), {"1.24.4", "1.30.0"}),
        (number("FLOAT16", b"\0<"), number("FLOAT16", b"\0<"), {"1.24.4", "1.30.0"}),
        (number("DOUBLE", bytes(8)), number("DOUBLE", bytes(8)), {"1.30.0"}),
        (number("BOOL", b"\1"), number("BOOL", b"\1"), {"1.30.0"}),
        (number("FLOAT", b"\0\0"), number("FLOAT", b"\0\0"), set()),
        (
            TensorProto(data_type=1, dims=[2], raw_data=bytes(8)),
            TensorProto(data_type=1, dims=[2], raw_data=bytes(8)),
            set(),
        ),
    ],
    ids=[
        *("equal", "not equal", "-0", "NaN", "no bytes", "bytes and a number"),
        *("INT64", "FLOAT16", "DOUBLE", "BOOL", "half a number", "two numbers"),
    ],
)
@pytest.mark.parametrize("version", ["1.24.4", "1.30.0"])
def test_numbers_that_are_attributes(one, other, merging, version):
    """Asked of 1.18.0, 1.24.4 and 1.30.0."""
    body = "a = ConstantOfShape(n) b = ConstantOfShape(n) o = Neg(a) u = Abs(b)"
    graph = graph_of(f"(int64[2] n) => (float[?,?] o, float[?,?] u) {{ {body} }}", version=version)
    for node, value in zip(graph.nodes, (one, other), strict=False):
        node.proto.attribute.append(helper.make_attribute("value", value))
    common_subexpression_elimination(graph)
    assert (len(graph.nodes) == len("bou")) is (version in merging)


SPLITS = "(float[4,4] x) => (float[?,?] o, float[?,?] u)"
IMAGE = "(float[1,1,4,5] x, float[1,1,1,1] w) => (float[?,?,?,?] o, float[?,?,?,?] u)"


@pytest.mark.parametrize(
    ("one", "other", "are_merged"),
    [
        (f"{SPLITS} {{ a, c = Split<axis=0>(x) ", "b, d = Split(x) ", True),
        (f"{SPLITS} {{ a, c = Split<axis=1>(x) ", "b, d = Split(x) ", False),
        (f"{SPLITS} {{ a = Softmax<axis=-1>(x) ", "b = Softmax(x) ", True),
        (f"{SPLITS} {{ a = Transpose<perm=[1,0]>(x) ", "b = Transpose(x) ", False),
        (f"{SPLITS} {{ a = Gemm<alpha=1.0, transB=0>(x, x) ", "b = Gemm(x, x) ", False),
        (f"{SPLITS} {{ a = Gemm<beta=2.0, alpha=1.0>(x, x) ", "b = Gemm<beta=2.0, alpha=1.0>(x, x) ", True),
        (
            f'{IMAGE} {{ a = Conv<dilations=[1,1], auto_pad="NOTSET", pads=[0,0,0,0]>(x, w) ',
            'b = Conv<dilations=[1,1], pads=[0,0,0,0], auto_pad="NOTSET">(x, w) ',
            True,
        ),
        (
            f"{IMAGE} {{ a = Conv<pads=[0,0,0,0], dilations=[1,1]>(x, w) ",
            "b = Conv<dilations=[1,1], pads=[0,0,0,0]>(x, w) ",
            False,
        ),
        (
            f'{IMAGE} {{ a = Conv<strides=[1,1], group=1, auto_pad="NOTSET">(x, w) ',
            'b = Conv<strides=[1,1], auto_pad="NOTSET", group=1>(x, w) ',
            False,
        ),
    ],
    ids=[
        "a default",
        "another axis",
        "a default of a Softmax",
        "no default",
        "other places among the defaults",
        "as many defaults",
        "other buckets",
        "another order",
        "another order in a bucket",
    ],
)
def test_attributes_are_compared_in_the_order_of_their_hash_table(one, other, are_merged):
    """Each was asked of 1.18.0 and 1.24.4."""
    left = after(common_subexpression_elimination, f"{one} {other} o = Neg(a) u = Exp(b) }}")
    assert len(left) == (3 if are_merged else 4)
