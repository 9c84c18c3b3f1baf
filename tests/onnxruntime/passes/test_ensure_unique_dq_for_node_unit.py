"""The pass dmlsplit.onnxruntime.passes.ensure_unique_dq_for_node_unit."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.ensure_unique_dq_for_node_unit import ensure_unique_dq_for_node_unit
from tests.onnxruntime.passes import after, graph_of
from tests.onnxruntime.placements import placed, where

GIVEN = "<float s = {0.5}> { d = DequantizeLinear(x, s)"


@pytest.mark.parametrize(
    ("outputs", "body", "of_the_first"),
    [
        ("float[?] o", "o = Abs(d)", True),
        ("float[?] o, float[?] u", "o = Abs(d) u = Neg(d)", True),
        ("float[?] o", "o = Add(d, d)", True),
        ("float[?] d, float[?] o", "o = Abs(d)", False),
        (
            "float[?] o, float[?] u",
            """o = Abs(d) u = If(c) <then_branch = t () => (float[?] p) { p = Neg(d) },
               else_branch = e () => (float[?] q) { q = Exp(d) }>""",
            False,
        ),
    ],
    ids=["one reader", "two", "one that reads it twice", "an output", "a graph in a node"],
)
def test_readers(outputs, body, of_the_first):
    graph = graph_of(f"(uint8[6] x, bool c) => ({outputs}) {GIVEN} {body} }}")
    ensure_unique_dq_for_node_unit(graph)
    read = [value for node in graph.nodes for value in node.inputs if node.op_type in ("Abs", "Neg", "Add")]
    assert len(set(read)) == len(read), "each has its own"
    assert all(value.producer.op_type == "DequantizeLinear" for value in read)
    assert [value.name == "d" for value in read] == [of_the_first, *[False] * (len(read) - 1)]


def test_one_that_is_not_shared_stays():
    body = f"(uint8[6] x) => (float[?] o) {GIVEN} o = Abs(d) }}"
    assert after(ensure_unique_dq_for_node_unit, body) == ["d = DequantizeLinear(x,s)", "o = Abs(d)"]


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4", "1.30.0"])
@pytest.mark.parametrize(
    ("condition", "branch", "other", "created"),
    [
        ("c", "m = Shape(d) p = ConstantOfShape(m)", "q = Neg(x)", True),
        ("t", "m = Shape(d) p = ConstantOfShape(m)", "q = Neg(x)", False),
        ("t", "m = Shape(d) z = ConstantOfShape(m) p = Add(z, d)", "q = Neg(x)", True),
        ("t", "p = Neg(x)", "q = Neg(d)", False),
        ("t", "p = Neg(x)", "q = Neg(x)", True),
    ],
    ids=["a graph in a node", "a branch", "one that reads it besides", "one that is not taken", "one that does not"],
)
def test_one_that_a_graph_in_a_node_no_longer_reads_stays(version, condition, branch, other, created):
    """The other readers have their own. A graph of DirectML in which nothing is read fails the session. Observed."""
    found = placed(
        f"""(uint8[1,3] i, float[1,3] x, bool c) => (float[1,3] o, float[1,3] u) <float s = {{0.5}}, bool t = {{1}}> {{
            d = DequantizeLinear(i, s) u = Relu(d)
            o = If({condition}) <then_branch = a () => (float[1,3] p) {{ {branch} }},
                                 else_branch = b () => (float[1,3] q) {{ {other} }}> }}""",
        version,
    )
    assert found.created is created
    assert where(found)["d"] == "DML"
    assert created or found.failure.message == "nothing reads the results of the fused graph of d"
