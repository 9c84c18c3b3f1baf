"""The pass dmlsplit.onnxruntime.passes.identity_elimination."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.identity_elimination import eliminate_identities
from dmlsplit.onnxruntime.passes.rule_based_graph_transformer import remove_first_noops
from tests.onnxruntime.passes import after, graph_of
from tests.onnxruntime.placements import TAKES, placed, where

HEAD = "(float[2,6] x, bool c) => (float[?,?] o)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Identity(x) b = Identity(a) o = Neg(b)", ["o = Neg(x)"]),
        ("a = Neg(x) o = Identity(a)", ["a = Neg(x)", "o = Identity(a)"]),
        ("a = Identity(x) o = Add(a, x)", ["o = Add(x,x)"]),
    ],
    ids=["one after another", "an output", "beside what it reads"],
)
def test_identities(body, expected):
    assert after(eliminate_identities, f"{HEAD} {{ {body} }}") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Neg(x) o = Identity(a)", ["o = Neg(x)"]),
        ("a = Neg(x) b = Neg(a) o = Identity(a)", ["a = Neg(x)", "b = Neg(a)", "o = Identity(a)"]),
        ("o = Identity(x)", ["o = Identity(x)"]),
        ("a = Dropout(x) o = Identity(a)", ["o = Identity(x)"]),
    ],
    ids=["alone", "beside another reader", "of an input", "of what is removed first"],
)
def test_identities_of_outputs(body, expected):
    assert after(remove_first_noops, f"{HEAD} {{ {body} }}") == expected


def test_graphs_in_nodes_read_what_is_left():
    branch = "t () => (float[?,?] {0}) {{ {0} = {1}(a) }}"
    branches = f"then_branch = {branch.format('p', 'Neg')}, else_branch = {branch.format('q', 'Abs')}"
    graph = graph_of(f"{HEAD} {{ r = Relu(x) a = Identity(r) o = If (c) <{branches}> }}")
    eliminate_identities(graph)
    relu, choice = graph.nodes
    assert {value.name for value in choice.captured}.isdisjoint({"a"})
    assert (list(relu.readers), graph.source("a")) == ([choice], "r")


@pytest.mark.parametrize(
    ("read", "left"),
    [("r", {"a", "r"}), ("x", {"r", "x"})],
    ids=["what it reads", "another tensor"],
)
def test_a_graph_in_a_node_that_reads_the_input_and_the_output(read, left):
    """The name cannot be replaced there, and the Identity stays. Observed."""
    other = "else_branch = e () => (float[?,?] q) { q = Abs(a) }"
    branches = f"then_branch = t () => (float[?,?] p) {{ p = Add(a, {read}) }}, {other}"
    graph = graph_of(f"{HEAD} {{ r = Relu(x) a = Identity(r) b = Identity(r) o = If (c) <{branches}> }}")
    eliminate_identities(graph)
    assert {value.name for value in graph.nodes[-1].captured} - {"p", "q"} == left
    assert [node.outputs[0].name for node in graph.nodes[1:-1]] == [name for name in "ab" if name in left]


@pytest.mark.parametrize(
    ("first", "second", "around", "beside", "stays"),
    [
        ("Neg(r)", "Abs(x)", "Add(i, a)", "x", False),
        ("Neg(a)", "Abs(x)", "Add(i, i)", "x", False),
        ("Neg(a)", "Abs(x)", "Add(i, r)", "x", True),
        ("Neg(a)", "Abs(r)", "Add(i, i)", "x", True),
        ("Neg(a)", "Abs(x)", "Add(i, i)", "r", True),
        ("Add(r, a)", "Abs(x)", "Add(i, i)", "x", True),
        ("Neg(r)", "Abs(r)", "Neg(i)", "a", False),
    ],
    ids=[
        *("in a graph whose node does not read it", "the name is nowhere", "around", "the other branch of the node"),
        *("the other branch of the node around", "the same graph", "in graphs of another branch"),
    ],
)
def test_graphs_in_graphs(first, second, around, beside, stays):
    """The name can be replaced if no branch of a node that reads the old one has the new one. Observed."""
    inner = (
        f"then_branch = u () => (float[?,?] v) {{ v = {first} }}, "
        f"else_branch = w () => (float[?,?] d) {{ d = {second} }}"
    )
    outer = f"t () => (float[?,?] p) {{ i = If(c) <{inner}> p = {around} }}"
    branches = f"then_branch = {outer}, else_branch = e () => (float[?,?] q) {{ q = Exp({beside}) }}"
    graph = graph_of(f"{HEAD} {{ r = Relu(x) a = Identity(r) o = If (c) <{branches}> }}")
    eliminate_identities(graph)
    assert ("a" in [value.name for node in graph.nodes for value in node.outputs]) is stays


WITHIN = TAKES.replace("y = If(c)", "m = If(t)") % ("p = Neg(%s)", "q = Abs(x)")


@pytest.mark.parametrize(
    ("branch", "behind", "is_left"),
    [
        ("", TAKES.replace("c", "t", 1) % ("p = Neg(w)", "q = Abs(w)"), False),
        (f"{WITHIN % 'a'} n = Exp(m)", "y = Neg(w)", True),
        (f"{WITHIN % 'e'} n = Exp(m)", "y = Neg(w)", True),
        (f"{WITHIN % 'x'} n = Exp(m)", "y = Neg(w)", False),
    ],
    ids=[
        "an If behind the branch",
        "an If in it that reads the input",
        "one that reads the result",
        "another If in it",
    ],
)
def test_an_identity_of_a_branch_that_gives_a_graph_output(branch, behind, is_left):
    """It goes in the branch if nothing there reads its input or result; readers elsewhere do not matter. Observed."""
    found = placed(
        f"""(float[2,3] x) => (float[2,3] w, float[2,3] y) <bool t = {{1}}> {{
            w = If(t) <then_branch = b () => (float[2,3] e) {{ a = Exp(x) [i] e = Identity(a) {branch} }},
                       else_branch = d () => (float[2,3] f) {{ f = Neg(x) }}> {behind} }}"""
    )
    assert where(found)["w.then_branch/i"] == ("DML" if is_left else "folded")


@pytest.mark.parametrize(("element", "copies"), [("float8e5m2", (0, 1)), ("uint8", (1, 0))])
def test_an_identity_of_a_branch_that_reads_a_dequantize_linear(element, copies):
    """The Identity has one of its own, which gives the model's output, whatever else reads it. One of FLOAT8 is on the
    CPU, as the Scan. Observed."""
    found = placed(
        f"""(float[2,3] x, {element}[2,3] j) => (float[2,3] w, float[2,3] y) <float k = {{1}}, bool t = {{1}}> {{
            w = If(t) <then_branch = b () => (float[2,3] e) {{
                           d = DequantizeLinear(j, k) u = Round(d) [i] e = Identity(d) }},
                       else_branch = a () => (float[2,3] f) {{ f = Neg(x) }}>
            y = Scan<num_scan_inputs = 1, body = s (float[3] l) => (float[3] m) {{ m = Exp(l) }}>(w) }}""",
        opset=19,
    )
    assert where(found)["w.then_branch/i"] == "folded"
    assert found.copies == copies
