"""Branches that take the places of their Ifs: small models in onnx's text form."""

from __future__ import annotations

import pytest

from tests.onnxruntime.placements import SHAPED, TAKES, placed, where

NESTED_SHAPE = """(float[2,3] x) => (float[2,3] y, float[?,?] z) <bool c = {1}> {
    y, z = If(c) <
        then_branch = t () => (float[2,3] p, float[?,?] q) {
            a = Exp(x)
            q = If(c) <
                then_branch = u () => (float[?,?] b) { s = Shape(a) b = ConstantOfShape(s) },
                else_branch = v () => (float[?,?] d) { d = Abs(x) }
            >
            p = Neg(x)
        },
        else_branch = e () => (float[2,3] f, float[?,?] g) { f = Abs(x) g = Exp(x) }
    >
}"""


@pytest.mark.parametrize(
    ("data_type", "size", "version", "session"),
    [
        ("double", 15, "1.24.4", True),
        ("double", 16, "1.24.4", False),
        ("float", 32, "1.24.4", True),
        ("double", 16, "1.23.2", True),
        ("double", 16, "1.30.0", True),
    ],
)
def test_a_constant_of_a_taken_branch(data_type, size, version, session):
    """It is lost from 128 bytes on, in 1.24.4, where a node outside of fused graphs reads it: that of DOUBLE."""
    found = placed(
        f"""({data_type}[{size}] x) => ({data_type}[{size}] y) <bool c = {{1}}> {{
            y = If(c) <
                then_branch = t () => ({data_type}[{size}] a) {{
                    n = Constant<value_ints = [{size}]>()
                    k = ConstantOfShape<value = {data_type}[1] {{1}}>(n)
                    a = Add(x, k)
                }},
                else_branch = e () => ({data_type}[{size}] b) {{ b = Abs(x) }}
            >
        }}""",
        version,
    )
    assert found.created is session


def test_what_only_a_taken_branch_reads_the_sizes_of_stays():
    found = placed(
        """(float[2,3] x) => (float[?,?] y) <bool c = {1}> {
            a = Exp(x)
            y = If(c) <
                then_branch = t () => (float[?,?] b) { s = Shape(a) b = ConstantOfShape(s) },
                else_branch = e () => (float[?,?] d) { d = Abs(x) }
            >
        }""",
        "1.20.1",
    )
    assert where(found)["a"] == "DML"


def test_what_only_a_branch_in_a_branch_reads_the_sizes_of_stays():
    """Both branches are taken; the Shape is folded before they are."""
    found = placed(NESTED_SHAPE)
    inner = where(found)["y.then_branch/q.then_branch/s"]
    assert (where(found)["y.then_branch/a"], inner) == ("DML", "folded")


def test_what_a_taken_branch_computes_for_a_folded_shape():
    """It stays in the model's own graph, and fails the session; in a graph inside a node it is taken out."""
    body = """{
        a = If(c) <
            then_branch = t () => (float[3] p) { p = Exp(s) },
            else_branch = e () => (float[3] q) { q = Abs(s) }
        >
        z = Shape(a) k = ConstantOfShape<value = float[1] {2}>(z) r = Mul(s, k)
    }"""
    inside = placed(
        f"(float[2,3] x) => (float[2,3] y) <bool c = {{1}}> {{ "
        f"y = Scan<num_scan_inputs = 1, body = b (float[3] s) => (float[3] r) {body}>(x) }}"
    )
    assert (inside.created, where(inside)["y.body/a.then_branch/p"]) == (True, "folded")
    own = placed(f"(float[3] s) => (float[3] r) <bool c = {{1}}> {body}")
    assert (own.created, where(own)["a.then_branch/p"]) == (False, "DML")


@pytest.mark.parametrize(
    ("branch", "other", "order", "created", "is_left"),
    [
        ("p = Abs(a)", "q = Neg(x)", "yz", True, True),
        ("p = Abs(a)", "q = Neg(x)", "zy", False, False),
        ("k = Shape(a) o = ConstantOfShape(k) p = Add(o, x)", "q = Neg(x)", "yz", False, True),
        ("k = Shape(a) o = ConstantOfShape(k) p = Add(o, x)", "q = Neg(x)", "zy", True, False),
        ("p = Abs(x)", "q = Neg(a)", "yz", False, True),
        ("p = Abs(x)", "q = Neg(a)", "zy", True, False),
    ],
)
def test_what_a_taken_branch_reads_where_its_shape_is_folded(branch, other, order, created, is_left):
    """The last output's nodes are visited first. A tensor is kept for an If that is not visited yet, even one whose
    branch does not read it, and is removed where the If is replaced before: its branch then reads what is gone.
    Observed in seven versions."""
    parts = {"y": TAKES % (branch, other), "z": SHAPED}
    outputs = ", ".join(f"float[2,3] {name}" for name in order)
    body = " ".join(parts[name] for name in order)
    found = placed(f"(float[2,3] x) => ({outputs}) <bool c = {{1}}> {{ a = Exp(x) {body} }}")
    assert (found.created, where(found)["a"]) == (created, "DML" if is_left else "folded")


@pytest.mark.parametrize(("size", "created"), [("N", True), ("2", False)])
def test_a_shape_that_is_known_only_behind_the_branches(size, created):
    """It is folded after the branch has taken its If's place, with what the branch computes for it; one that is known
    before leaves that, and nothing reads it."""
    found = placed(
        f"""(float[2,6] x, float[{size},6] z) => (int64[?] u, float[2,6] y) <bool t = {{1}}> {{
            g = Exp(x)
            w = If(t) <
                then_branch = b () => (float[?,?] p) {{ [a] p = Abs(g) }},
                else_branch = e () => (float[?,?] q) {{ q = Abs(z) }}
            >
            s = Shape(w) u = Abs(s) y = Relu(x) }}"""
    )
    assert found.created is created
    assert where(found)["w.then_branch/a"] == ("folded" if created else "DML")


def test_a_dequantize_linear_that_a_taken_branch_reads():
    """Each reader has one of its own: the Shape takes no other's along."""
    found = placed(
        f"""(int8[2,3] i, float k) => (float[2,3] z, float[2,3] y) <bool c = {{1}}> {{
            a = DequantizeLinear(i, k) {SHAPED}
            {TAKES.replace("x", "a") % ("p = Abs(a)", "q = Neg(a)")} }}"""
    )
    assert (found.created, where(found)["a"]) == (True, "DML")


@pytest.mark.parametrize(("read", "where_it_is"), [("x", "DML"), ("a", "folded"), ("d", "DML")])
def test_an_identity_of_a_branch_whose_result_a_graph_reads(read, where_it_is):
    """In the branch nothing else reads what it reads: there, it goes at once, if a node is left that computes that."""
    found = placed(
        f"""(float[2,3] x, bool k) => (float[2,3] y, float[2,3] z) <bool c = {{1}}> {{
            y = If(c) <then_branch = t () => (float[2,3] p) {{
                           a = Exp(x) d = Dropout(x) [i] p = Identity({read}) }},
                       else_branch = e () => (float[2,3] q) {{ q = Neg(x) }}>
            z = If(k) <then_branch = g () => (float[2,3] r) {{ r = Abs(y) }},
                       else_branch = h () => (float[2,3] s) {{ s = Neg(x) }}> }}"""
    )
    assert where(found)["y.then_branch/i"] == where_it_is


def test_a_dequantize_linear_that_only_a_branch_reads_that_is_not_taken():
    """The only Shape around the branches reads one of its own."""
    found = placed(
        f"""(int8[2,3] i, float k, float[2,3] x) => (float[2,3] z, float[2,3] y) <bool c = {{1}}> {{
            a = DequantizeLinear(i, k) {SHAPED} {TAKES % ("p = Abs(x)", "q = Neg(a)")} }}""",
        "1.20.1",
    )
    assert where(found)["a"] == "DML"


def test_an_identity_that_reads_a_removed_tensor_goes_too_late():
    """The model is not valid as soon as the branch has taken its If's place."""
    found = placed(
        f"""(float[2,3] x) => (float[2,3] z, float[2,3] u) <bool c = {{1}}> {{
            a = Exp(x) {SHAPED} {TAKES % ("p = Identity(a)", "q = Neg(a)")} u = Sqrt(y) }}"""
    )
    assert (found.created, found.failure.node) == (False, "y.then_branch/p")


def test_what_reads_a_removed_tensor_is_named():
    found = placed(
        f"(float[2,3] x) => (float[2,3] z, float[2,3] y) <bool c = {{1}}> {{ a = Exp(x) {SHAPED} "
        f"{TAKES % ('p = Abs(a)', 'q = Neg(x)')} }}"
    )
    assert found.failure.node == "y.then_branch/p"


def test_twins_are_merged_before_a_shape_is_folded():
    """Of two Shapes, the one that is visited first stays: the If behind it still reads the tensor."""
    found = placed(
        f"""(float[2,3] x) => (float[2,3] w, float[2,3] y, float[2,3] z) <bool c = {{1}}> {{
            a = Exp(x) r = Shape(a) w = ConstantOfShape<value = float[1] {{2}}>(r)
            {TAKES % ("p = Abs(a)", "q = Neg(x)")} {SHAPED} }}"""
    )
    assert (found.created, where(found)["a"]) == (True, "DML")


def test_what_only_a_folded_shape_in_a_branch_reads_is_read_no_more():
    """Of two equal nodes the one that is visited first stays: once its Shape is folded the other If does not lead to
    the twin any more, which was equal to it only behind the first If."""
    found = placed(
        """(float[2,3] x, bool c) => (float[2,3] u, float[2,3] y) <bool t = {1}> {
            w = If(t) <
                then_branch = t () => (float[2,3] p) { p = Identity(x) },
                else_branch = e () => (float[2,3] q) { q = Exp(x) }
            >
            b = Neg(w) a = Neg(x) u = Abs(a)
            y = If(c) <
                then_branch = t () => (float[2,3] p) { s = Shape(b) p = ConstantOfShape(s) },
                else_branch = e () => (float[2,3] q) { q = Exp(x) }
            > }"""
    )
    assert (where(found)["b"], where(found)["a"]) == ("folded", "DML")


def test_what_a_body_in_a_taken_branch_computes_for_a_folded_shape():
    """It is no tensor that the If reads from around it."""
    found = placed(
        """(float[2,3] x) => (float[2,3] y) <bool t = {1}> {
            y = If(t) <
                then_branch = t () => (float[2,3] p) {
                    p = Scan<num_scan_inputs = 1, body = b (float[3] s) => (float[3] r) {
                        a = Exp(s) z = Shape(a) k = ConstantOfShape<value = float[1] {2}>(z) r = Mul(s, k)
                    }>(x)
                },
                else_branch = e () => (float[2,3] q) { q = Exp(x) }
            > }"""
    )
    assert where(found)["y.then_branch/p.body/a"] == "folded"


def test_shapes_of_a_branch_and_around_it_are_not_merged():
    """A Shape around the branch, of sizes that one in the branch has too, takes along what computes its tensor."""
    found = placed(
        """(float[5,2,3] x, float[2,3] w) => (float[5,2,3] y) {
            y = Scan<num_scan_inputs = 1, body = b (float[2,3] s) => (float[2,3] r) <bool c = {1}> {
                a, g = If(c) <
                    then_branch = t () =>
                        (float[2,3] p, float[?,?] h) { p = Exp(w) k = Shape(s) h = ConstantOfShape(k) },
                    else_branch = e () => (float[2,3] q, float[?,?] m) { q = Abs(w) m = Neg(s) }
                >
                z = Shape(a) o = ConstantOfShape<value = float[1] {2}>(z) n = Mul(s, o) r = Add(n, g) }>(x) }""",
        "1.18.0",
    )
    assert (found.created, where(found)["y.body/a.then_branch/p"]) == (True, "folded")


@pytest.mark.parametrize(("computed", "is_static"), [("Identity", False), ("Abs", True)])
@pytest.mark.parametrize("choice", [False, True])
def test_what_is_declared_of_an_identity_is_lost_with_it(computed, is_static, choice):
    v = f"v = {computed}(w)"
    if choice:
        v = TAKES.replace("y = ", "v = ") % (f"p = {computed}(w)", "q = Neg(x)")
    found = placed(
        f"(float[N,3] x) => (float[2,3] y) <bool c = {{1}}, float[2,3] v> {{ w = Neg(x) {v} y = Sigmoid(v) }}"
    )
    assert [size.text for size in found.graphs] == ["1"] * is_static


@pytest.mark.parametrize(
    ("then", "other", "is_static"),
    [
        ("float[2,3]", "float[2,3]", True),
        ("float[2,3]", "float[2,?]", True),
        ("float[2,3]", "float[?,?]", False),
        ("float[?,?]", "float[2,3]", False),
        ("float[2,3]", "float[4,3]", False),
    ],
)
@pytest.mark.parametrize("output", ["", "float[?,?] y, "])
def test_what_both_branches_declare_stays_where_one_takes_the_place(then, other, is_static, output):
    """One dimension of three elements stays so: the second size of an Expand follows from the file."""
    found = placed(
        f"""(float[1,3] x, int64[2] q, int64[2] r) => ({output}float[?,?] z, int64[2] n) <bool c = {{1}}> {{
            y = If(c) <
                then_branch = t () => ({then} a) {{ a = Expand(x, q) }},
                else_branch = e () => ({other} b) {{ b = Expand(x, r) }}
            >
            z = Relu(y) s = Shape(y) n = Abs(s)
        }}"""
    )
    assert [size.text for size in found.graphs] == ["1"] * is_static
    assert where(found)["n"] == ("folded" if is_static else "CPU")


def test_what_one_branch_gives_another_stays_where_its_shape_is_folded():
    """Each is folded before it takes its If's place, and neither takes what is around it along."""
    branches = "<then_branch = t () => (float[2,3] %s) { %s }, else_branch = e () => (float[2,3] %s) { %s }>"
    found = placed(
        f"""(float[2,3] x) => (float[2,3] z) <bool c = {{1}}> {{
            a = Log(x)
            y = If(c) {branches % ("b", "b = Exp(a)", "d", "d = Tanh(a)")}
            z = If(c) {branches % ("f", "s = Shape(y) f = ConstantOfShape(s)", "g", "g = Abs(x)")}
        }}""",
        "1.20.1",
    )
    assert where(found) | {"a": "DML", "y.then_branch/b": "DML"} == where(found)
    assert found.created is False


def test_the_nodes_of_a_branch_stay_where_a_node_around_it_is_folded():
    """Nothing reads what the Abs computes: the session is not made."""
    found = placed(
        """(float[2,3] x) => (float[?,?] y) <bool c = {1}, float one = {1.0}> {
            [i] b = If(c) <then_branch = t () => (float[2,3] r) { [a] r = Abs(x) },
                       else_branch = e () => (float[2,3] s) { s = Neg(x) }>
            n = Shape(b) y = Expand(one, n) }"""
    )
    assert where(found)["i.then_branch/a"] == "DML"
    assert found.created is False


@pytest.mark.parametrize(("read", "place"), [("d", "DML"), ("x", "folded")])
def test_a_cast_that_an_if_reads_beside_a_shape(read, place):
    """The If is no Shape: the Cast stays for it, and is left when the branch that does not read it takes its place."""
    found = placed(
        f"""(float[2] x) => (float[?] y, float[?] z) <bool c = {{1}}> {{
            d = Cast<to = 11>(x)
            y = If(c) <
                then_branch = t () => (float[?] a) {{ a = Abs(x) }},
                else_branch = e () => (float[?] b) {{ h = Shape({read}) b = ConstantOfShape(h) }}>
            g = Shape(d) z = ConstantOfShape(g) }}"""
    )
    assert (where(found)["d"], found.created) == (place, place == "folded")


@pytest.mark.parametrize(
    ("sizes", "reshaped", "on_dml"),
    [("w", "w", True), ("x", "w", False), ("w", "x", True)],
    ids=["its Shape and another node", "another node", "its Shape"],
)
@pytest.mark.parametrize("version", ["1.20.1", "1.24.4"])
def test_an_if_whose_branch_reads_what_a_branch_in_it_computed(sizes, reshaped, on_dml, version):
    """What is removed with the Shape of it reads FLOAT8, which DirectML's If does not take; that the Reshape is left to
    read what no node computes does not matter in a graph inside a node. Observed."""
    inner = TAKES.replace("y = If(c)", "w = If(f)").replace(" p)", " r)").replace(" q)", " u)")
    inner %= "r = Relu(x)", "d = DequantizeLinear(i, k) u = Round(d)"
    found = placed(
        f"""(float[2,3] x, float8e4m3fn[2,3] i, bool c) => (float[2,3] y, float[2,3] z)
            <float k = {{1}}, bool f = {{0}}> {{
            y, z = If(c) <
                then_branch = a () => (float[2,3] p, float[2,3] h) {{
                    {inner} p = Neg(x) s = Shape({sizes}) h = Reshape({reshaped}, s) }},
                else_branch = b () => (float[2,3] q, float[2,3] l) {{ q = Abs(x) l = Exp(x) }}> }}""",
        version,
        19,
    )
    assert where(found)["y"] == ("DML" if on_dml else "CPU")
    removed = "folded" if sizes == "w" else "CPU"
    assert where(found)["y.then_branch/w.else_branch/d"] == removed


SCANS = """y = Scan<num_scan_inputs = 1, body = b (float[3] e) => (float[3] r) {
    r = If(c) <
        then_branch = t () => (float[3] a) { q = Shape(v) w = Expand(e, q) a = ReduceMax<axes = [0], keepdims = 0>(w) },
        else_branch = f () => (float[3] n) { n = Neg(e) }
    >
}>(x)"""


@pytest.mark.parametrize("order", ["s = Shape(v) {}", "{} s = Shape(v)"])
def test_what_a_branch_never_taken_reads_in_a_graph_of_a_node_stays(order):
    """The node that computes it is linked to the branch until everything is folded. Observed with 1.20.1 and 1.24.4."""
    body = order.format(SCANS)
    found = placed(f"(float[2,3] x) => (int64[2] s, float[2,3] y) <bool c = {{0}}> {{ v = Sinh(x) {body} }}")
    assert where(found)["v"] == "DML"
    assert found.copies == (0, 1)


@pytest.mark.parametrize("tail", ["q = ConstantOfShape(s) u = ReduceSum(q)", "u = Cast<to = 1>(s)"])
def test_an_output_of_a_taken_branch_has_its_own_sizes_while_graphs_in_nodes_are_folded(tail):
    """Those that are inferred of both branches, also where an Identity computes it of a tensor of open sizes. Observed
    with 1.20.1 and 1.24.4."""
    found = placed(
        f"""(float[N,3] x, float[2,3] w) => (float[2,3] y) <bool c = {{0}}> {{
            v = If(c) <
                else_branch = f () => (float[2,3] n) {{ n = Identity(x) }},
                then_branch = t () => (float[2,3] o) {{ o = Exp(x) }}
            >
            y = Scan<num_scan_inputs = 1, body = b (float[3] e) => (float[3] r) {{
                s = Shape(v) {tail} d = Expand(e, s) k = ReduceMax<axes = [0], keepdims = 0>(d) r = Add(k, e)
            }}>(w)
        }}"""
    )
    names = {path.rpartition("/")[2]: provider for path, provider in where(found).items()}
    assert (names["s"], names["u"], names["d"]) == ("folded", "folded", "DML")
