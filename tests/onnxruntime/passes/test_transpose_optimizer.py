"""The pass dmlsplit.onnxruntime.passes.transpose_optimizer."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.rule_based_graph_transformer import remove_noops
from tests.onnxruntime.passes import after

HEAD = "(float[2,3,4] x) => (float[?,?,?] o)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Transpose<perm=[1,2,0]>(x) b = Transpose<perm=[2,0,1]>(a) o = Abs(b)", ["o = Abs(x)"]),
        ("a = Transpose(x) b = Transpose(a) o = Abs(b)", ["o = Abs(x)"]),
        (
            "a = Transpose<perm=[1,2,0]>(x) b = Transpose<perm=[1,2,0]>(a) o = Abs(b)",
            ["a = Transpose(x)", "b = Transpose(a)", "o = Abs(b)"],
        ),
        ("a = Transpose(x) b = Transpose(a) o = Add(b, x)", ["o = Add(x,x)"]),
        (
            "a = Transpose(x) b = Transpose(a) c = Transpose(a) d = Neg(a) o = Add(b, c)",
            ["a = Transpose(x)", "d = Neg(a)", "o = Add(x,x)"],
        ),
        ("a = Transpose(x) o = Transpose(a)", ["a = Transpose(x)", "o = Transpose(a)"]),
    ],
    ids=["inverse", "reversed", "not inverse", "one reader", "that is read elsewhere", "an output"],
)
def test_a_transpose_that_is_undone(body, expected):
    assert after(remove_noops, f"{HEAD} {{ {body} }}") == expected
