"""Graphs inside nodes: as models of their own, and with fewer nodes in them where the node around them matters."""

from __future__ import annotations

import onnx
import pytest

import dmlsplit as dml
from dmlsplit.formats.onnx.protobuf import all_nodes, subgraphs
from tests.formats.onnx_families import CHOICE, FAMILIES, X, branch, choice, concat, made
from tests.models import node, text

IF = """(bool c, float[2,6] x) => (float[2,6] v, float[2,6] w) <float[6] k = {1,2,3,4,5,6}> {
    h = Exp(x)
    y, z = If(c) <
        then_branch = t () => (float[2,6] a, float[2,6] b) {
            t1 = Add(h, k)  t2 = Tanh(t1)  t3 = Neg(t2)  a = Exp(t3)  b = Abs(t3) },
        else_branch = e () => (float[2,6] p, float[2,6] q) {
            t1 = Sub(h, k)  t2 = Neg(t1)  p = Abs(t2)  q = Neg(t2) }
    >
    v = Neg(y)  w = Abs(z)
}"""
LOOP = """(int64 m, bool c, float[2,6] x) => (float[2,6] v, float[?,2,6] w) {
    h = Exp(x)
    y, z = Loop(m, c, h) <body = b (int64 i, bool d, float[2,6] p) => (bool g, float[2,6] q, float[2,6] r) {
        u1 = Neg(p)  u2 = Tanh(u1)  u3 = Abs(u2)  q = Exp(u3)  r = Neg(u3)  g = Identity(d) }>
    v = Neg(y)  w = Abs(z)
}"""
SCAN = """(float[2,6] s, float[5,2,6] x) => (float[2,6] v, float[5,2,6] w) {
    h = Exp(x)
    y, z = Scan(s, h) <num_scan_inputs = 1, body = b (float[2,6] o, float[2,6] p) => (float[2,6] q, float[2,6] r) {
        u1 = Add(o, p)  u2 = Tanh(u1)  u3 = Abs(u2)  q = Exp(u3)  r = Neg(u3) }>
    v = Neg(y)  w = Abs(z)
}"""
NESTED = """(bool c, float[2,6] x) => (float[2,6] v) {
    y = If(c) <
        then_branch = t () => (float[2,6] a) {
            t1 = Exp(x)
            t2 = If(c) <
                then_branch = tt () => (float[2,6] aa) { i1 = Neg(t1)  i2 = Tanh(i1)  aa = Abs(i2) },
                else_branch = ee () => (float[2,6] pp) { j1 = Neg(x)  pp = Abs(j1) }
            >
            a = Abs(t2) },
        else_branch = e () => (float[2,6] p) { f1 = Neg(x)  p = Abs(f1) }
    >
    v = Neg(y)
}"""


def ops(model):
    return sorted(node.op_type for node in all_nodes(model.graph.node))


def reduced(body, check):
    found = dml.onnx.reduce(text(body), "1.24.4", check=check)
    onnx.checker.check_model(found.model, full_check=True)
    assert check(found.model)
    assert not found.expected.why
    return found.model


def within(kind, op):
    """Whether an operator is in a graph inside a node of this kind."""

    def check(model):
        around = [node for node in all_nodes(model.graph.node) if node.op_type == kind]
        return any(inner.op_type == op for node in around for graph in subgraphs(node) for inner in graph.node)

    return check


@pytest.mark.parametrize("body", [IF, LOOP, SCAN, NESTED], ids=["If", "Loop", "Scan", "If in If"])
def test_a_node_inside_becomes_the_model(body):
    assert ops(reduced(body, lambda model: "Tanh" in ops(model))) == ["Tanh"]


@pytest.mark.parametrize(
    ("body", "kind", "most"), [(IF, "If", 4), (LOOP, "Loop", 5), (SCAN, "Scan", 4), (NESTED, "If", 5)]
)
def test_the_node_around_it_stays_where_it_matters(body, kind, most):
    left = ops(reduced(body, within(kind, "Tanh")))
    assert {kind, "Tanh"} <= set(left) <= {kind, "Tanh", "Identity"}
    assert len(left) <= most


def test_names_that_two_branches_have_are_told_apart():
    """What both lose of t2 becomes an input each."""
    model = reduced(
        IF,
        lambda model: (
            sum(
                inner.op_type == "Abs" for node in model.graph.node for graph in subgraphs(node) for inner in graph.node
            )
            == 2
        ),
    )
    assert ops(model).count("Abs") == 2
    assert len({value.name for value in model.graph.input}) == len(model.graph.input)


def test_a_function_that_matters_stays():
    body = "(float[2,6] x) => (float[2,6] z) { h = Exp(x)  y = own.two(h)  z = Neg(y) }"
    functions = '<domain: "own", opset_import: ["" : 17]> two (u) => (w) { t = Neg(u)  w = Tanh(t) }'
    model = text(body, functions=functions)
    found = dml.onnx.reduce(model, "1.24.4", check=lambda each: any(n.domain == "own" for n in each.graph.node))
    assert [node.op_type for node in found.model.graph.node] == ["two"]
    onnx.checker.check_model(found.model, full_check=True)
    found = dml.onnx.reduce(model, "1.24.4", check=lambda each: "Tanh" in str(each))
    assert ([node.op_type for node in found.model.graph.node], len(found.model.functions)) == (["Tanh"], 0)


def test_attributes_of_one_name():
    """No runtime loads such a model; the reduction ends all the same, with the graphs told apart."""
    model = text(IF)
    branches = next(node for node in model.graph.node if node.op_type == "If").attribute
    for name in ("then_branch", "else_branch"):
        branches.add(name=name, type=onnx.AttributeProto.INT)
    branches.sort(key=lambda attribute: attribute.HasField("g"))
    for attribute in branches:
        attribute.name = "then_branch"
    found = dml.onnx.reduce(model, "1.24.4", check=lambda made: {"If", "Sub"} <= set(ops(made)))
    assert ops(found.model).count("Sub") == 1


def checks(count):
    """How many models are checked for one with gates in a branch, beside one another."""
    gates = FAMILIES["gates of one tensor"](count).graph
    outputs = [each.name for each in gates.output]
    then = branch([*gates.node, concat(outputs, "t")], "t")
    other = branch([node("Identity", ["x"], ["e"])], "e")
    model = made([choice("", then, other)], ["y"], [CHOICE, X])
    found = dml.onnx.reduce(model, "1.24.4")
    assert ops(found.model) == ["Mul", "Sigmoid", "Split"]
    return found.checks


def test_a_graph_that_was_opened_is_cut_before_its_nodes_are_tried_one_by_one():
    assert checks(64) < checks(8) + 24
