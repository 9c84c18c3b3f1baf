"""The pass dmlsplit.onnxruntime.passes.not_where_fusion. Each model was asked of 1.24.4."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.not_where_fusion import later_not_where_fusion, not_where_fusion
from tests.onnxruntime.passes import after, graph_of, left

HEAD = "(bool[2,3] c, bool[2,3] a, bool[2,3] b) => (bool[2,3] y, bool[?,?] z)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("n = Not(c) y = Where(n, a, b) z = And(a, a)", ["y = Where(c,b,a)", "z = And(a,a)"]),
        ("n = Not(c) y = Where(n, a, b) z = Where(n, b, a)", ["y = Where(c,b,a)", "z = Where(c,a,b)"]),
        ("n = Not(c) y = Where(n, a, b) z = And(n, a)", ["n = Not(c)", "y = Where(n,a,b)", "z = And(n,a)"]),
        ("n = Not(c) y = Where(a, n, b) z = And(a, a)", ["n = Not(c)", "y = Where(a,n,b)", "z = And(a,a)"]),
        ("z = Not(c) y = Where(z, a, b)", ["z = Not(c)", "y = Where(z,a,b)"]),
        (
            "o = Or(c, a) n = Not(o) y = Where(n, n, b) z = And(a, a)",
            ["o = Or(c,a)", "y = Where(o,o,b)", "z = And(a,a)"],
        ),
        ("n = Not(c) m = Not(n) y = Where(m, a, b) z = And(a, a)", ["n = Not(c)", "y = Where(n,b,a)", "z = And(a,a)"]),
    ],
    ids=["one", "two", "another reader", "no condition", "an output", "both", "a Not of a Not"],
)
def test_a_where_behind_a_not(body, expected):
    assert after(not_where_fusion, f"{HEAD} {{ {body} }}", opset=13) == expected


def test_a_not_of_a_not_is_fused_later():
    body = f"{HEAD} {{ n = Not(c) m = Not(n) y = Where(m, a, b) z = And(a, a) }}"
    assert after(later_not_where_fusion, body, opset=13) == ["y = Where(c,a,b)", "z = And(a,a)"]


@pytest.mark.parametrize(("version", "count"), [("1.24.4", 3), ("1.30.0", 2)])
def test_old_versions_do_not_fuse_a_where_of_opset_16(version, count):
    body = f"{HEAD} {{ n = Not(c) y = Where(n, a, b) z = And(a, a) }}"
    assert len(after(not_where_fusion, body, 16, version)) == count


def test_a_where_that_is_left_with_a_tensor_that_is_gone():
    graph = graph_of(f"{HEAD} {{ n = Not(c) y = Where(n, n, b) z = And(a, a) }}", opset=13)
    not_where_fusion(graph)
    assert left(graph) == ["y = Where(c,n,b)", "z = And(a,a)"]
    assert list(graph.unresolved.items()) == [(graph.nodes[0], "n")]
