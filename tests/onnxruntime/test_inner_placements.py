"""Nodes in the graphs inside nodes, and what these graphs read: small models in onnx's text form."""

from __future__ import annotations

import pytest

from dmlsplit.verdicts.model_placements import Why
from tests import models
from tests.onnxruntime.placements import SHAPED, TAKES, placed, placed_model, reason, where


def test_a_where_in_a_branch_that_reads_a_not_twice():
    found = placed(
        """(bool k, bool[2,3] a, bool[2,3] b) => (bool[2,3] y) {
            y = If(k) <then_branch = t () => (bool[2,3] p) { n = Not(a) p = Where(n, n, b) },
                       else_branch = e () => (bool[2,3] q) { q = And(a, b) }> }""",
        opset=12,
    )
    assert found.created is True


@pytest.mark.parametrize(("rows", "provider"), [("2", "DML"), ("N", "CPU")])
def test_a_folded_shape_takes_no_strings_into_a_branch(rows, provider):
    found = placed(
        f"""(bool c, string[{rows},3] s, float[2,3] x) => (float[2,3] y, int64[?] z) {{
            y, z = If(c) <then_branch = t () => (float[2,3] a, int64[?] n) {{ n = Shape(s) a = Neg(x) }},
                          else_branch = e () => (float[2,3] b, int64[?] m) {{ b = Abs(x) m = Shape(x) }}>
        }}""",
        opset=19,
    )
    assert where(found)["y"] == provider


@pytest.mark.parametrize(("read", "provider"), [("n = Shape(r)", "DML"), ("o = Identity(r) n = Shape(o)", "DML")])
def test_nor_does_what_computes_something_for_it(read, provider):
    found = placed(
        f"""(bool c, string[2,3] s, float[2,3] x) => (float[2,3] y, int64[?] z) {{
            y, z = If(c) <then_branch = t () => (float[2,3] a, int64[?] n) {{
                              r = Concat<axis=0>(s, s) {read} a = Neg(x) }},
                          else_branch = e () => (float[2,3] b, int64[?] m) {{ b = Abs(x) m = Shape(x) }}>
        }}""",
        opset=19,
    )
    assert where(found)["y"] == provider


def test_what_is_read_besides_does():
    found = placed(
        """(bool c, string[2,3] s, float[2,3] x) => (float[2,3] y, int64[?] z, string[?,?] w) {
            y, z, w = If(c) <then_branch = t () => (float[2,3] a, int64[?] n, string[?,?] v) {
                              r = Concat<axis=0>(s, s) n = Shape(r) v = Identity(r) a = Neg(x) },
                          else_branch = e () => (float[2,3] b, int64[?] m, string[?,?] q) {
                              b = Abs(x) m = Shape(x) q = Identity(s) }>
        }""",
        opset=19,
    )
    assert where(found)["y"] == "CPU"


def test_a_folded_shape_takes_no_sizes_into_a_body():
    found = placed(
        """(float16[N,3] s, float[3,2,3] x) => (float[?,?,?] y, float q) {
            m = Size(s) f = Cast<to=1>(m) q = Sqrt(f)
            v, w = Scan<num_scan_inputs=1, body = b (float[2,3] i) => (float[2,3] o, int64[?] h) {
                h = Shape(f) o = Neg(i)
            }>(x)
            y = Relu(v)
        }"""
    )
    assert (where(found)["q"], where(found)["y"]) == ("CPU", "DML")
    assert found.copies == (0, 1)


@pytest.mark.parametrize(("declared", "place"), [("float[2,3]", "folded"), ("float[N,3]", "DML")])
def test_a_graph_reads_the_declared_output_that_stands_for_an_equal_tensor(declared, place):
    found = placed(
        f"""(float[N,3] x, bool c) => ({declared} w, int64[2] y) {{
            v = Neg(x)
            y = If(c) <then_branch = t () => (int64[2] p) {{ s = Shape(v) p = Abs(s) }},
                       else_branch = e () => (int64[2] q) {{ q = Constant<value_ints=[1,1]>() }}>
            w = Neg(x) }}"""
    )
    assert where(found)["y.then_branch/s"] == place


BODY = "{ h = Neg(p) s = Shape(h) n = Abs(s) r = Reshape(h, n) e = Exp(r) a = Tanh(e) "


DEAD = BODY.replace("Tanh(e)", "Tanh(p)")


AROUND = {
    "If": """(bool c, float[2,3] x) => (float[?,?] y) { p = Relu(x)
        y = If(c) <then_branch = t () => (float[?,?] a) %s }, else_branch = e () => (float[?,?] b) { b = Abs(x) }> }""",
    "Loop": """(int64 m, bool c, float[2,3] x) => (float[?,?] y) {
        y = Loop(m, c, x) <
            body = b (int64 i, bool d, float[2,3] p) => (bool g, float[?,?] a) %s g = Identity(d) }
        > }""",
    "Scan": """(float[5,2,3] x) => (float[?,?,?] y) {
        y = Scan(x) <num_scan_inputs = 1, body = b (float[2,3] p) => (float[?,?] a) %s }> }""",
}


@pytest.mark.parametrize("op", AROUND)
def test_sizes_that_are_computed_in_a_graph_of_a_node(op):
    """They are folded there as in the model's graph; the session fails where nothing reads what is computed."""
    found = placed(AROUND[op] % BODY)
    assert "4" in [size.text for size in found.graphs]
    assert found.created is True
    assert placed(AROUND[op] % DEAD).created is False


def test_copies_of_what_graphs_inside_nodes_read():
    """A graph inside a node copies what it reads from outside, where nodes on both sides in it read that."""
    found = placed(
        """(bool c, float[2,3] x) => (float[2,3] y) {
            a = Relu(x)
            y = If(c) <
                then_branch = t () => (float[2,3] b) { r = Round(a) s = Abs(a) b = Add(r, s) },
                else_branch = e () => (float[2,3] d) { d = Round(a) }
            >
        }""",
        opset=22,
    )
    assert where(found) | {"y": "CPU", "a": "DML"} == where(found)
    assert found.copies == (0, 2)


@pytest.mark.parametrize(("data_type", "provider"), [("int64", "DML"), ("bfloat16", "CPU"), ("string", "CPU")])
def test_what_the_branches_of_an_if_read_decides(data_type, provider):
    found = placed(
        f"""(bool c, float[2] x, {data_type}[N] z) => (float[2] y) {{
            y = If(c) <
                then_branch = t () => (float[2] a) {{ s = Shape(z) a = Relu(x) }},
                else_branch = e () => (float[2] b) {{ b = Abs(x) }}
            >
        }}"""
    )
    assert where(found)["y"] == provider
    assert reason(found, "y") is (Why.TYPES if provider == "CPU" else None)


def test_a_graph_in_a_node_that_is_folded_is_not_compiled():
    """Nothing reads what the body computes first, which fails a session that has it; a Shape of its Scan is all that
    is read."""
    scan = """(float[5,2,3] x) => (float[?,?,?] y) {
        z = Scan(x) <num_scan_inputs = 1, body = b (float[2,3] p) => (float[2,3] a) { h = Exp(p) a = Abs(p) }>
        %s }"""
    found = placed(scan % "s = Shape(z) y = ConstantOfShape(s)")
    assert (found.created, found.graphs, found.capture) == (True, (), True)
    assert set(where(found).values()) == {"folded"}
    assert placed(scan % "y = Neg(z)").created is False


@pytest.mark.parametrize(("more", "place"), [("u = ReduceMax(a)", "CPU"), ("", "folded")])
def test_a_dropout_that_a_graph_inside_a_node_reads(more, place):
    """It stays where that graph reads its input, too, even one that the node reads as well."""
    found = placed(
        f"""(float[2,3] x) => (float[2,3] y) {{ a = Neg(x) d = Dropout(a)
            y = Scan<
                num_scan_inputs = 1, body = b (float[3] s) => (float[3] r) {{ {more} t = ReduceMax(d) r = Mul(s, s) }}
            >(a) }}"""
    )
    assert where(found)["d"] == place


@pytest.mark.parametrize(("version", "place"), [("1.19.2", "CPU"), ("1.20.1", "DML")])
@pytest.mark.parametrize("source", ["", "q = SequenceConstruct(x, x)"])
def test_an_if_that_reads_a_sequence(source, version, place):
    given = "" if source else "seq(float[2,3]) q, "
    found = placed(
        f"""(bool c, {given}int64 i, float[2,3] x) => (float[2,3] y) {{ {source}
            y = If(c) <
                then_branch = t () => (float[2,3] a) {{ a = SequenceAt(q, i) }},
                else_branch = e () => (float[2,3] b) {{ b = Abs(x) }}
            > }}""",
        version,
    )
    assert where(found)["y"] == place


def test_an_if_of_a_type_without_tensors_in_directml():
    branch = "{} () => (bfloat16[2,3] a) {{ a = Identity(w) }}"
    found = placed(
        f"""(bool c, bfloat16[2,3] w) => (bfloat16[2,3] y) {{
            y = If(c) <then_branch = {branch.format("t")}, else_branch = {branch.format("e")}> }}""",
        opset=13,
    )
    assert where(found)["y"] == "CPU"


def test_what_a_graph_inside_a_node_of_a_taken_branch_reads_is_not_missed():
    branches = (
        "then_branch = g () => (float[2,3] v) { v = Abs(a) }, else_branch = h () => (float[2,3] w) { w = Neg(x) }"
    )
    branch = f"p = If(k) <{branches}>"
    taken = TAKES % (branch, "q = Neg(x)")
    found = placed(
        f"(float[2,3] x, bool k) => (float[2,3] z, float[2,3] y) <bool c = {{1}}> {{ a = Exp(x) {SHAPED} {taken} }}"
    )
    assert (found.created, where(found)["a"]) == (True, "folded")


@pytest.mark.parametrize(("order", "place"), [("zr", "folded"), ("rz", "DML")])
def test_in_a_graph_of_a_node_an_output_of_a_branch_has_its_first_reader_alone(order, place):
    """Where that is a Shape, what the branch computes is removed, whatever else reads it."""
    parts = {"z": "z = Shape(a) k = ConstantOfShape<value = float[1] {2}>(z)", "r": "m = Sigmoid(a)"}
    body = " ".join(parts[name] for name in order)
    choice = TAKES.replace("y = ", "a = ") % ("p = Exp(w)", "q = Abs(w)")
    found = placed(
        f"""(float[5,2,3] x, float[2,3] w) => (float[5,2,3] y) {{
            y = Scan<num_scan_inputs = 1, body = b (float[2,3] s) => (float[2,3] r) <bool c = {{1}}> {{
                {choice} {body} r = Mul(m, k) }}>(x) }}"""
    )
    assert (found.created, where(found)["y.body/a.then_branch/p"]) == (True, place)


@pytest.mark.parametrize(("behind", "created"), [("z = Sqrt(x)", True), ("z = Sqrt(v)", False)])
def test_a_split_in_a_node_that_is_removed_with_a_shape(behind, created):
    """Nothing reads what the Split computes, which fails a session that has it. Observed."""
    found = placed(
        f"""(float[2,3] x, float[2,4] i) => (float[?,?] y, float[2,3] z) {{
            v = Scan<num_scan_inputs = 1, body = b (float[3] l) => (float[3] m) {{
                p, q = Split<axis = 0>(i) m = Sigmoid(l) }}>(x)
            s = Shape(v) y = ConstantOfShape(s) {behind} }}"""
    )
    assert found.created is created


def test_what_only_a_graph_inside_a_removed_node_reads_stays():
    """The session fails: nothing reads the results of its fused graph."""
    found = placed(
        """(float[2,3] x, float[3] w) => (float[2,3] y) {
            a = Exp(w) f = Abs(a)
            d = Scan<num_scan_inputs = 1, body = b (float[3] s) => (float[3] r) { r = Add(s, f) }>(x)
            z = Shape(d) k = ConstantOfShape<value = float[1] {2}>(z) y = Mul(x, k) }"""
    )
    assert {name: where(found)[name] for name in "afd"} == {"a": "DML", "f": "DML", "d": "folded"}
    assert found.created is False


def test_a_constant_of_a_taken_branch_in_a_graph_of_a_node():
    """Its sizes are those of a Shape, which is folded there."""
    found = placed(
        """(int64 m, bool d, float[2,3,4,5] x) => (float[2,3,4,5] y, float[?,?,?,?,?] z) {
            y, z = Loop(m, d, x) <body = l (int64 i, bool g, float[2,3,4,5] p) =>
                (bool h, float[2,3,4,5] q, float[?,?,?,?] r) <bool c = {1}> {
                r = If(c) <
                    then_branch = t () => (float[?,?,?,?] a) { s = Shape(p) a = ConstantOfShape(s) },
                    else_branch = e () => (float[?,?,?,?] b) { b = Abs(p) }
                >
                q = Relu(p) h = Identity(g)
            }>
        }"""
    )
    assert found.created is False
    assert "128 bytes or more" in str(found.failure)


def test_an_if_whose_branches_compute_tensors_of_the_names_of_its_outputs():
    found = placed(
        """(float[2,6] x, bool k) => (float[?,?] y, float[?,?] z) {
            y, z = If(k) <then_branch = t () => (float[?,?] y, float[?,?] z) { y, z = Split<axis = 1>(x) },
                          else_branch = e () => (float[?,?] y, float[?,?] z) { y, z = Split<axis = 1>(x) }> }"""
    )
    assert where(found) == {"y.then_branch/y": "DML", "y.else_branch/y": "DML", "y": "DML"}


@pytest.mark.parametrize(
    ("before", "read", "behind", "created"),
    [
        ("", "x", "z = Sqrt(u)", False),
        ("", "u", "z = Sqrt(u)", True),
        ("e = Exp(x)", "e", "z = Sqrt(u)", True),
        ("", "x", "z = Sqrt(x)", True),
        ("", "x", "e = Add(x, y) z = Add(e, l)", False),
        ("z = Sqrt(x)", "x", "", True),
    ],
    ids=[
        *("an input", "of one alone", "what is computed", "a node reads it", "a node behind a copy does"),
        "a node that is visited later does",
    ],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.22.0", "1.23.2"])
def test_an_input_that_only_graphs_read_of_nodes_on_both_providers(before, read, behind, created, version):
    """The Loop is on the CPU, the If on DirectML. Up to 1.22 the process ends. Observed."""
    found = placed(
        f"""(float[2,3] x, float[2,3] u, float[2,3] v, bool c) => (float[2,3] l, float[2,3] y, float[2,3] z)
            <int64 n = {{2}}, bool t = {{1}}> {{
            {before} l = Loop(n, t, v) <body = b (int64 i, bool o, float[2,3] s) => (bool k, float[2,3] m) {{
                w = Neg({read}) m = Add(s, w) k = Identity(o) }}>
            {TAKES % (f"p = Neg({read if read != 'u' else 'x'})", "q = Sigmoid(u)")} {behind} }}""",
        version,
    )
    assert found.created is (created or version == "1.23.2")


def test_nodes_without_names_in_branches_of_ifs_without_names_are_each_counted():
    branches = (
        "<then_branch = t () => (float[2] p) {{ p = Exp({0}) }}, else_branch = e () => (float[2] q) {{ q = Abs({0}) }}>"
    )
    found = placed(
        f"""(float[2] x, bool c) => (float[2] z) {{
            y = If(c) {branches.format("x")} z = If(c) {branches.format("y")} }}"""
    )
    inner = {f"{name}.{branch}_branch/{output}" for name in "yz" for branch, output in (("then", "p"), ("else", "q"))}
    assert where(found).keys() == {*inner, "y", "z"}


def test_unnamed_nodes_of_a_function_are_each_counted():
    body = '<domain: "own", opset_import: ["" : 18]> F (w) => (o) { a = Exp(w) b = Exp(a) o = Exp(b) }'
    called = models.text("(float[2] x) => (float[2] z) { y = own.F(x) z = own.F(y) }", 18, functions=body)
    found = placed_model(called)
    assert where(found).keys() == {f"{call}/{name}" for call in "yz" for name in "abo"}


def test_a_node_called_as_the_output_of_another_is_counted_too():
    found = placed("(float[2] x) => (float[2] z) { y = Exp(x) [y] a = Abs(y) z = Neg(a) }")
    assert where(found) == {"y": "DML", "y (2)": "DML", "z": "DML"}


@pytest.mark.parametrize("data_type", ["int32", "int64", "bool", "double"])
def test_a_loop_carries_any_type(data_type):
    """Asked of all versions: the table has the Loop of each type that it carries."""
    body = (
        f"b (int64 i, bool k, {data_type}[3] s) => (bool ko, {data_type}[3] so) {{ so = Identity(s) ko = Identity(k) }}"
    )
    found = placed(f"(int64 n, bool c, {data_type}[3] x) => ({data_type}[3] y) {{ y = Loop<body = {body}>(n, c, x) }}")
    assert (found.created, where(found)["y"]) == (True, "CPU")
