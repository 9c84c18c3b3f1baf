"""The pass dmlsplit.onnxruntime.passes.rule_based_graph_transformer."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.rule_based_graph_transformer import remove_noops
from tests.onnxruntime.passes import after

HEAD = "(float[2,6] x) => (float[2,6] o) <float one = {1}, float zero = {0}, float two = {2}, float[1] ones = {1}>"
LIMITS = (
    "s = Constant<value_ints=[0]>() e = Constant<value_ints=[9223372036854775807]>() d = Constant<value_ints=[1]>()"
)
LEFT = {
    "identity_elimination": ("a = Identity(x) b = Neg(a) o = Abs(b)", ["b = Neg(x)", "o = Abs(b)"]),
    "an Identity that gives an output": ("b = Neg(x) o = Identity(b)", ["o = Neg(x)"]),
    "an Identity beside another reader": (
        "b = Neg(x) c = Abs(b) o = Identity(b)",
        ["b = Neg(x)", "c = Abs(b)", "o = Identity(b)"],
    ),
    "an Identity that gives an output that is read": (
        "b = Neg(x) o = Identity(b) c = Abs(o)",
        ["b = Neg(x)", "o = Identity(b)", "c = Abs(o)"],
    ),
    "an Identity of what another Identity hands on": (
        "b = Neg(x) c = Identity(b) d = Abs(c) o = Identity(b)",
        ["b = Neg(x)", "d = Abs(b)", "o = Identity(b)"],
    ),
    "an Identity of an input": ("o = Identity(x)", ["o = Identity(x)"]),
    "dropout_elimination": ("a = Dropout(x) o = Abs(a)", ["o = Abs(x)"]),
    "a mask": ("a, m = Dropout(x) o = Where(m, a, x)", ["a,m = Dropout(x)", "o = Where(m,a,x)"]),
    "expand_elimination": ("s = Constant<value_ints = [2,6]>() a = Expand(x, s) o = Abs(a)", ["o = Abs(x)"]),
    "cast_elimination": ("a = Cast<to=1>(x) o = Abs(a)", ["o = Abs(x)"]),
    "a Cast to another type": ("a = Cast<to=10>(x) o = Cast<to=1>(a)", ["a = Cast(x)", "o = Cast(a)"]),
    "times 1": ("a = Mul(one, x) o = Abs(a)", ["o = Abs(x)"]),
    "times a tensor of 1": ("a = Mul(x, ones) o = Abs(a)", ["o = Abs(x)"]),
    "plus 0": ("a = Add(x, zero) o = Abs(a)", ["o = Abs(x)"]),
    "minus 0": ("a = Sub(x, zero) o = Abs(a)", ["o = Abs(x)"]),
    "0 minus": ("a = Sub(zero, x) o = Abs(a)", ["a = Sub(zero,x)", "o = Abs(a)"]),
    "by 1": ("a = Div(x, one) o = Abs(a)", ["o = Abs(x)"]),
    "times 2": ("a = Mul(x, two) o = Abs(a)", ["a = Mul(x,two)", "o = Abs(a)"]),
    "times 1, which gives an output": ("o = Mul(x, one)", ["o = Mul(x,one)"]),
    "a Slice of everything": (f"{LIMITS} a = Slice(x, s, e) o = Abs(a)", ["o = Abs(x)"]),
    "a Slice of everything along an axis": (f"{LIMITS} a = Slice(x, s, e, d, d) o = Abs(a)", ["o = Abs(x)"]),
    "a Slice that ends at the size": (
        f"{LIMITS} n = Constant<value_ints=[6]>() a = Slice(x, s, n, d, d) o = Abs(a)",
        ["a = Slice(x,s,n,d,d)", "o = Abs(a)"],
    ),
    "a Slice of each second element": (
        f"{LIMITS} n = Constant<value_ints=[2]>() a = Slice(x, s, e, d, n) o = Abs(a)",
        ["a = Slice(x,s,e,d,n)", "o = Abs(a)"],
    ),
    "a Slice from 1": (f"{LIMITS} a = Slice(x, d, e, d) o = Abs(a)", ["a = Slice(x,d,e,d)", "o = Abs(a)"]),
    "one after another": ("a = Mul(x, one) b = Add(a, zero) c = Identity(b) o = Abs(c)", ["o = Abs(x)"]),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_does_nothing_is_gone(name):
    body, expected = LEFT[name]
    assert after(remove_noops, f"{HEAD} {{ {body} }}") == expected


def test_a_shape_that_grows_is_no_noop():
    body = "(float[6] x) => (float[2,6] o) <float[2,6] zero = {0,0,0,0,0,0,0,0,0,0,0,0}, float[1,1] one = {1}>"
    assert after(remove_noops, f"{body} {{ a = Mul(x, one) o = Add(a, zero) }}") == [
        "a = Mul(x,one)",
        "o = Add(a,zero)",
    ]


@pytest.mark.parametrize(("end", "count"), [(9223372036854775807, 1), (6, 2)])
def test_an_old_slice_of_everything(end, count):
    body = f"{HEAD} {{ a = Slice<starts=[0], ends=[{end}], axes=[1]>(x) o = Abs(a) }}"
    assert len(after(remove_noops, body, 9)) == count
