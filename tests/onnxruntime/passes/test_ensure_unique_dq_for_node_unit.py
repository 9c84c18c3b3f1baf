"""The pass dmlsplit.onnxruntime.passes.ensure_unique_dq_for_node_unit."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.ensure_unique_dq_for_node_unit import ensure_unique_dq_for_node_unit
from tests.onnxruntime.passes import after, graph_of

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
