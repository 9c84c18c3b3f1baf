"""The pass dmlsplit.onnxruntime.passes.rule_based_graph_transformer."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.common_subexpression_elimination import common_subexpression_elimination
from dmlsplit.onnxruntime.passes.rule_based_graph_transformer import remove_first_noops, remove_noops
from tests.onnxruntime.passes import after, graph_of, left
from tests.onnxruntime.placements import placed

GIVEN = "float one = {1}, float zero = {0}, float two = {2}, float[1] ones = {1}, bool on = {1}"
HEAD = f"(float[2,6] x, bool mode) => (float[2,6] o) <{GIVEN}>"
LIMITS = (
    "s = Constant<value_ints=[0]>() e = Constant<value_ints=[9223372036854775807]>() d = Constant<value_ints=[1]>()"
)
BEHIND = ["n = Neg(x)", "o = Abs(n)"]
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
    "a Dropout in training mode": ("n = Neg(x) a = Dropout(n, one, on) o = Abs(a)", BEHIND),
    "a Dropout in the mode that an input says": ("n = Neg(x) a = Dropout(n, one, mode) o = Abs(a)", BEHIND),
    "a mask that nothing reads": ("n = Neg(x) a, m = Dropout(n) o = Abs(a)", BEHIND),
    "a mask": ("a, m = Dropout(x) o = Where(m, a, x)", ["a,m = Dropout(x)", "o = Where(m,a,x)"]),
    "expand_elimination": ("n = Neg(x) s = Constant<value_ints = [2,6]>() a = Expand(n, s) o = Abs(a)", BEHIND),
    "cast_elimination": ("a = Cast<to=1>(x) o = Abs(a)", ["o = Abs(x)"]),
    "a Cast to another type": ("a = Cast<to=10>(x) o = Cast<to=1>(a)", ["a = Cast(x)", "o = Cast(a)"]),
    "times 1": ("n = Neg(x) a = Mul(one, n) o = Abs(a)", BEHIND),
    "times a tensor of 1": ("n = Neg(x) a = Mul(n, ones) o = Abs(a)", BEHIND),
    "plus 0": ("n = Neg(x) a = Add(n, zero) o = Abs(a)", BEHIND),
    "minus 0": ("n = Neg(x) a = Sub(n, zero) o = Abs(a)", BEHIND),
    "0 minus": ("a = Sub(zero, x) o = Abs(a)", ["a = Sub(zero,x)", "o = Abs(a)"]),
    "by 1": ("n = Neg(x) a = Div(n, one) o = Abs(a)", BEHIND),
    "times 1, of an input": ("a = Mul(one, x) o = Abs(a)", ["a = Mul(one,x)", "o = Abs(a)"]),
    "times 1, of two tensors": (
        "n = Neg(x) k = Relu(one) a = Mul(n, one) b = Dropout(a, k) o = Abs(b)",
        ["n = Neg(x)", "k = Relu(one)", "b = Dropout(n,k)", "o = Abs(b)"],
    ),
    "what nothing reads": ("n = Neg(x) d = Mul(n, one) e = Identity(x) o = Abs(n)", BEHIND),
    "what nothing reads, of an input": (
        "n = Neg(x) d = Mul(x, one) o = Abs(n)",
        ["n = Neg(x)", "d = Mul(x,one)", "o = Abs(n)"],
    ),
    "times 2": ("a = Mul(x, two) o = Abs(a)", ["a = Mul(x,two)", "o = Abs(a)"]),
    "times 1, which gives an output": ("o = Mul(x, one)", ["o = Mul(x,one)"]),
    "a Slice of everything": (f"n = Neg(x) {LIMITS} a = Slice(n, s, e) o = Abs(a)", BEHIND),
    "a Slice of everything along an axis": (f"n = Neg(x) {LIMITS} a = Slice(n, s, e, d, d) o = Abs(a)", BEHIND),
    "a Slice that ends at the size": (
        f"{LIMITS} n = Constant<value_ints=[6]>() a = Slice(x, s, n, d, d) o = Abs(a)",
        ["a = Slice(x,s,n,d,d)", "o = Abs(a)"],
    ),
    "a Slice of each second element": (
        f"{LIMITS} n = Constant<value_ints=[2]>() a = Slice(x, s, e, d, n) o = Abs(a)",
        ["a = Slice(x,s,e,d,n)", "o = Abs(a)"],
    ),
    "a Slice from 1": (f"{LIMITS} a = Slice(x, d, e, d) o = Abs(a)", ["a = Slice(x,d,e,d)", "o = Abs(a)"]),
    "one after another": ("n = Neg(x) a = Mul(n, one) b = Add(a, zero) c = Identity(b) o = Abs(c)", BEHIND),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_does_nothing_is_gone(name):
    body, expected = LEFT[name]
    assert after(remove_noops, f"{HEAD} {{ {body} }}") == expected


def test_a_factor_of_a_tensor_of_unknown_rank_stays():
    body = "(float[2,3] x, int64[R] s) => (float o) <float one = {1}> { r = Reshape(x, s) a = Mul(r, one) o = Abs(a) }"
    body = body.replace("(float o)", "(float[?,?] o)")
    assert after(remove_noops, body)[1] == "a = Mul(r,one)"


def test_a_shape_that_grows_is_no_noop():
    body = "(float[6] x) => (float[2,6] o) <float[2,6] zero = {0,0,0,0,0,0,0,0,0,0,0,0}, float[1,1] one = {1}>"
    assert after(remove_noops, f"{body} {{ a = Mul(x, one) o = Add(a, zero) }}") == [
        "a = Mul(x,one)",
        "o = Add(a,zero)",
    ]


@pytest.mark.parametrize(
    ("opset", "version", "is_left"), [(21, "1.24.4", False), (22, "1.24.4", True), (22, "1.30.0", False)]
)
def test_old_versions_keep_a_new_dropout(opset, version, is_left):
    found = after(remove_noops, f"{HEAD} {{ a = Dropout(x) o = Abs(a) }}", opset, version)
    assert found == (["a = Dropout(x)", "o = Abs(a)"] if is_left else ["o = Abs(x)"])


@pytest.mark.parametrize(("end", "count"), [(9223372036854775807, 1), (6, 2)])
def test_an_old_slice_of_everything(end, count):
    body = f"{HEAD} {{ a = Slice<starts=[0], ends=[{end}], axes=[1]>(x) o = Abs(a) }}"
    assert len(after(remove_noops, body, 9)) == count


@pytest.mark.parametrize(
    ("opset", "version", "body", "expected"),
    [
        (13, "1.18.0", "c = Cast<to=1>(x) o = Shape(c)", ["o = Shape(x)"]),
        (12, "1.18.0", "c = Cast<to=1>(x) o = Shape(c)", ["c = Cast(x)", "o = Shape(c)"]),
        (21, "1.24.4", "c = Cast<to=1>(x) o = Shape(c)", ["c = Cast(x)", "o = Shape(c)"]),
        (21, "1.30.0", "c = Cast<to=1>(x) o = Shape(c)", ["o = Shape(x)"]),
        (13, "1.24.4", "c = Cast<to=1>(x) o = Shape(c) u = Neg(c)", ["c = Cast(x)", "o = Shape(c)", "u = Neg(c)"]),
    ],
    ids=["13", "older", "newer", "newer, removed", "read otherwise"],
)
def test_a_cast_that_only_shapes_read(opset, version, body, expected):
    """Asked of these versions."""
    outputs = "(int64[2] o, float[?,?] u)" if " u = " in body else "(int64[2] o)"
    assert after(remove_first_noops, f"(double[N,6] x) => {outputs} {{ {body} }}", opset, version) == expected


def test_a_cast_between_equal_nodes_is_removed_before_they_are_merged():
    graph = graph_of("(float[2,6] x) => (float[2,6] o) { a = Neg(x) c = Cast<to=1>(x) b = Neg(c) o = Add(a, b) }")
    remove_first_noops(graph)
    common_subexpression_elimination(graph)
    assert left(graph) == ["b = Neg(x)", "o = Add(b,b)"]


def test_identities_and_transposes_are_not_among_the_first():
    body = "a = Identity(x) t = Transpose(a) u = Transpose(t) o = Neg(u)"
    assert len(after(remove_first_noops, f"{HEAD} {{ {body} }}")) == 4


@pytest.mark.parametrize("operator", ["Dropout", "Identity"])
@pytest.mark.parametrize(
    ("branch", "other", "read"),
    [("p = Relu(d)", "q = Neg(n)", "d"), ("p = Add(d, n)", "q = Neg(x)", "d"), ("p = Relu(d)", "q = Neg(d)", "n")],
    ids=["in the other branch", "in the same one", "in neither"],
)
def test_what_a_branch_reads_by_its_name_and_by_that_of_its_input(branch, other, read, operator):
    """The name cannot be replaced in the If, and the node is left until it is removed with the Shape of it. Observed in
    seven versions."""
    found = placed(
        f"""(float[2,3] x) => (float[2,3] y, float[2,3] z) <bool t = {{1}}> {{
            n = Celu(x) d = {operator}(n) s = Shape(d) y = ConstantOfShape(s)
            z = If(t) <then_branch = g () => (float[2,3] p) {{ {branch} }},
                       else_branch = h () => (float[2,3] q) {{ {other} }}> }}""",
        "1.20.1",
        13,
    )
    assert found.created is False
    assert f", but {read}, which" in found.failure.message


@pytest.mark.parametrize(
    ("sizes", "target", "is_gone"),
    [
        ("2,6", "1", True),
        ("2,1", "0", True),
        ("n,6", "6", True),
        ("n,6", "1,6", True),
        ("n,6", "2,6", False),
        ("1,6", "2,1", False),
        ("2,6", "1,1,1", False),
        ("2,6", "", False),
        ("", "", False),
    ],
)
def test_an_expand_to_the_sizes_that_are_there(sizes, target, is_gone):
    """Observed with 1.18.0, 1.24.4 and 1.30.0."""
    count = len(target.split(",")) if target else 0
    head = f"(float[{sizes}] x) => (float[?,?] o) <int64[{count}] s = {{{target}}}>"
    expected = BEHIND if is_gone else ["n = Neg(x)", "a = Expand(n,s)", "o = Abs(a)"]
    assert after(remove_noops, f"{head} {{ n = Neg(x) a = Expand(n, s) o = Abs(a) }}") == expected
