"""dmlsplit.onnxruntime.merged_casts. Each model was asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0; there, all chains of
two Casts of eight types were compared."""

from __future__ import annotations

import pytest

from tests.onnxruntime.placements import placed

OLD, NEW = "1.24.4", "1.30.0"
TYPES = {"FLOAT": ("float", 1), "FLOAT16": ("float16", 10), "DOUBLE": ("double", 11), "INT32": ("int32", 6),
         "INT64": ("int64", 7), "BOOL": ("bool", 9), "UINT8": ("uint8", 2), "BFLOAT16": ("bfloat16", 16)}  # fmt: skip


def running(text, version=OLD):
    return placed(text, version, 13).running


@pytest.mark.parametrize(
    ("types", "left"),
    [
        ("FLOAT16 FLOAT FLOAT16", 0),
        ("FLOAT FLOAT16 FLOAT", 2),
        ("FLOAT16 FLOAT DOUBLE", 1),
        ("FLOAT FLOAT16 INT32", 2),
        ("INT32 INT64 INT32", 0),
        ("INT64 FLOAT INT64", 2),
        ("INT32 FLOAT DOUBLE", 2),
        ("INT64 FLOAT FLOAT16", 1),
        ("FLOAT INT32 FLOAT", 2),
        ("INT32 UINT8 INT32", 2),
        ("UINT8 INT32 UINT8", 0),
        ("UINT8 INT32 INT64", 1),
        ("BOOL FLOAT BOOL", 0),
        ("FLOAT INT32 INT64", 2),
    ],
)
@pytest.mark.parametrize("version", [OLD, NEW])
def test_casts_in_a_row(types, left, version):
    first, second, third = types.split()
    casts = f"a = Cast<to={TYPES[second][1]}>(x) b = Cast<to={TYPES[third][1]}>(a) y = Tile(b, n)"
    text = f"({TYPES[first][0]}[N] x) => ({TYPES[third][0]}[?] y) <int64[1] n = {{1}}> {{ {casts} }}"
    assert running(text, version) == left + 1


@pytest.mark.parametrize(
    ("body", "nodes"),
    [
        ("a = Cast<to=1>(x) b = Cast<to=10>(a) y = Abs(b) z = Relu(a)", 3),
        ("a = Cast<to=1>(x) y = Cast<to=10>(a) z = Relu(w)", 2),
        ("z = Cast<to=1>(x) b = Cast<to=10>(z) y = Abs(b)", 2),
        ("a = Cast<to=1>(x) b = Cast<to=11>(a) c = Cast<to=1>(b) d = Cast<to=10>(c) y = Abs(d) z = Relu(w)", 2),
    ],
    ids=["another reader", "the last is an output", "the first is an output", "four"],
)
def test_what_else_reads_them(body, nodes):
    assert running(f"(float16[N] x, float[N] w) => (float16[?] y, float[?] z) {{ {body} }}") == nodes


@pytest.mark.parametrize(("sizes", "nodes"), [("4", 3), ("N", 1)])
def test_casts_in_fused_graphs_stay(sizes, nodes):
    text = f"(float16[{sizes}] x) => (float16[?] y) {{ a = Cast<to=1>(x) b = Cast<to=10>(a) y = Abs(b) }}"
    assert running(text) == nodes


@pytest.mark.parametrize(("version", "nodes"), [(OLD, 2), (NEW, 3)])
def test_a_lossy_cast_in_front_of_one_to_bool(version, nodes):
    assert running("(float[N] x) => (bool[?] y) { a = Cast<to=6>(x) b = Cast<to=9>(a) y = Not(b) }", version) == nodes


@pytest.mark.parametrize(("version", "created"), [("1.18.0", False), (OLD, False), (NEW, True)])
def test_a_cast_of_the_cpu_in_front_of_one_of_directml(version, created):
    """DirectML's Cast then reads what only the CPU can."""
    found = placed("(bfloat16[N] x) => (float16[?] y) { a = Cast<to=1>(x) b = Cast<to=10>(a) y = Abs(b) }", version, 13)
    assert found.created is created
    if not created:
        assert found.failure.message == "the Casts in front of b are removed, and DirectML has no Cast of BFLOAT16"


@pytest.mark.parametrize(("version", "nodes", "copies"), [(OLD, 2, (0, 0)), (NEW, 3, (1, 0))])
def test_copies_between_merged_casts(version, nodes, copies):
    text = (
        "(float16[N] x, float[N] w) => (bfloat16[?] y, float[?] z) { a = Cast<to=1>(x) y = Cast<to=16>(a) z = Relu(w) }"
    )
    found = placed(text, version, 13)
    assert (found.running, found.copies) == (nodes, copies)


HALVES = "(float16[N,4,4] h, float[N,4,4] x, float[N] w) => ({} y, float16[?,?,?] p, float[?] z)"


@pytest.mark.parametrize(
    ("body", "kind", "nodes", "copies"),
    [
        ("b = Det(h) y = Cast<to=1>(b)", "float[?]", 4, (0, 2)),
        ("b = Det(h) c = Cast<to=1>(b) y = Exp(c)", "float[?]", 4, (0, 2)),
        ("b = Cast<to=10>(x) y = Det(b)", "float16[?]", 3, (0, 0)),
        ("b = Cast<to=10>(x) c = Det(b) y = Cast<to=1>(c)", "float[?]", 4, (0, 1)),
    ],
)
def test_casts_next_to_what_the_cpu_computes_in_float(body, kind, nodes, copies):
    """ONNX Runtime inserts Casts around a Det of FLOAT16."""
    found = placed(f"{HALVES.format(kind)} {{ {body} p = Neg(h) z = Relu(w) }}", OLD, 17)
    assert (found.running, found.copies) == (nodes, copies)


def test_a_cast_that_another_node_reads_too_stays():
    text = "(float[N,4,4] x) => (float16[?] y, float16[?,?,?] p) { b = Cast<to=10>(x) y = Det(b) p = Neg(b) }"
    found = placed(text, OLD, 17)
    assert (found.running, found.copies) == (3, (0, 1))


def test_casts_that_a_graph_inside_a_node_reads():
    branches = (
        "then_branch = t () => (float16[?] p) { p = Abs(b) }, else_branch = e () => (float16[?] q) { q = Neg(b) }"
    )
    text = f"(float16[N] x, bool c) => (float16[?] y) {{ a = Cast<to=1>(x) b = Cast<to=10>(a) y = If(c) <{branches}> }}"
    assert placed(text, OLD, 13).running == 3
