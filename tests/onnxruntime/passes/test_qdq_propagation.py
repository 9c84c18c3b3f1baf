"""The pass dmlsplit.onnxruntime.passes.qdq_propagation: each model was asked of 1.20.1, 1.24.4 and 1.30.0."""

from __future__ import annotations

import pytest

from dmlsplit.models.graph import attribute
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.passes.ensure_unique_dq_for_node_unit import ensure_unique_dq_for_node_unit
from dmlsplit.onnxruntime.passes.qdq_propagation import qdq_propagation
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests.models import text
from tests.onnxruntime.passes import after, graph_of
from tests.onnxruntime.placements import placed, where

GIVEN = "float s = {1}, float8e5m2 z = {0}, int64[4] k = {2,3,5,4}, int64[1] none = {0}, int64[1] one = {1}"
QUANTIZED = "d = DequantizeLinear(x, s, z) "


def placement(body, opset=19, version="1.24.4", given="float8e5m2", optimization=99):
    head = f"({given}[2,3,4,5] x, float8e5m2 v) => (float[?,?,?,?] y) <{GIVEN.replace('float8e5m2', given)}>"
    sessions = OnnxSessions(text(f"{head} {{ {body} }}", opset), lambda *_: None)
    return sessions.of(find_runtime(version), SessionOptions(optimization=optimization)).placement


@pytest.mark.parametrize("version", ["1.20.1", "1.24.4", "1.30.0"])
@pytest.mark.parametrize(
    "moving",
    [
        "r = Reshape(d, k)",
        "r = Transpose(d)",
        "r = Slice(d, none, one)",
        "u = Unsqueeze(d, none) r = Squeeze(u, none)",
        "r = MaxPool<kernel_shape = [2,2]>(d)",
    ],
    ids=["Reshape", "Transpose", "Slice", "Unsqueeze", "MaxPool"],
)
def test_floats_of_8_bits_are_not_moved(moving, version):
    found = placement(f"{QUANTIZED} {moving} y = Relu(r)", version=version)
    assert found.created is False
    assert "has to copy the elements of x" in found.failure.message


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (f"{QUANTIZED} r = Reshape(d, k) y = Relu(r)", {"given": "uint8"}),
        (f"{QUANTIZED} r = Reshape(d, k) y = Relu(r)", {"opset": 23}),
        (f"{QUANTIZED} r = Reshape(d, k) y = Relu(r)", {"optimization": 1}),
        (f"{QUANTIZED} y = Relu(d)", {}),
        ("d = DequantizeLinear(x, s, v) r = Reshape(d, k) y = Relu(r)", {}),
    ],
    ids=["of integers", "on the CPU", "not optimized", "computed with", "a zero point that is no constant"],
)
def test_others_are(body, changes):
    assert placement(body, **changes).created is True


SCALED = "float s = {0.5}, uint8 z = {3}, uint8 w = {0}, int64[1] k = {12}, int64[1] one = {1}"
INTO = "{ d = DequantizeLinear(x, s, z)"


MOVED = f"(uint8[2,6] x) => (float[?] o) <{SCALED}> {INTO}"
GIVEN_FLOATS = f"(float[2,6] x) => (uint8[?] o) <{SCALED}>"
END = "o = QuantizeLinear(t, s, z) }"


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (f"{MOVED} t = Reshape(d, k) o = Relu(t) }}", "DRQDR"),
        (f"{MOVED} o = Reshape(d, k) }}", "DRQD"),
        (f"{MOVED} u = Transpose(d) t = Reshape(u, k) o = Relu(t) }}", "DTQDRQDR"),
        (f"(uint8[2,6] x) => (uint8[?] o) <{SCALED}> {INTO} t = Reshape(d, k) {END}", "DRQ"),
        (f"{GIVEN_FLOATS} {{ t = Reshape(x, k) {END}", "QDRQ"),
        (f"{GIVEN_FLOATS} {{ n = Neg(x) t = Reshape(n, k) {END}", "NQDRQ"),
        (f"{MOVED} o = Relu(d) }}", "DR"),
        (f"{MOVED} n = Neg(s) e = DequantizeLinear(x, n, z) t = Reshape(e, k) o = Relu(t) }}", "DRR"),
    ],
    ids=["behind", "at an output", "behind two", "between", "in front", "behind another", "no mover", "an open scale"],
)
def test_pairs(body, kept):
    """The operators in the order of the data, by their first letters."""
    lines = after(qdq_propagation, body)
    made = {line.split(" = ")[0]: line.split(" = ")[1] for line in lines}
    way, name = "", body.split("[?] ")[1].partition(")")[0]
    while name in made:
        way = made[name][0] + way
        name = made[name].partition("(")[2].rstrip(")").split(",")[0]
    assert way == kept


@pytest.mark.parametrize(
    ("moving", "opset", "moved"),
    [
        ("Reshape(d, k)", 11, "1.18.0"),
        ("Reshape(d, k)", 21, "1.19.2"),
        ("Reshape(d, k)", 23, "1.30.0"),
        ("Squeeze<axes=[0]>(d)", 11, "1.18.0"),
        ("Squeeze(d, none)", 17, "1.18.0"),
        ("Squeeze(d, none)", 21, "1.19.2"),
        ("Squeeze(d, none)", 23, "1.30.0"),
        ("Slice(d, none, one)", 17, "1.20.1"),
        ("Slice(d, none, one)", 23, "1.20.1"),
        ("Transpose(d)", 21, "1.18.0"),
        ("MaxPool<kernel_shape=[2,2]>(d)", 11, ""),
        ("MaxPool<kernel_shape=[2,2]>(d)", 12, "1.18.0"),
        ("MaxPool<kernel_shape=[2,2]>(d)", 22, "1.30.0"),
        ("Gather(d, none)", 17, ""),
    ],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.19.2", "1.20.1", "1.24.4", "1.30.0"])
def test_versions(moving, opset, moved, version):
    """What a version loads was asked of it; `moved` is the first that moves a DequantizeLinear over the node."""
    runtime = find_runtime(version)
    if opset > runtime.newest_opset:
        return
    more = ", int64[1] none = {0}"
    found = placed(f"(uint8[1,2,6,6] x) => (float[?] o) <{SCALED.replace('{12}', '{72}')}{more}> "
                   f"{INTO} t = {moving} o = Relu(t) }}", version, opset)  # fmt: skip
    assert (where(found)["d"] == "folded") is (moved != "" and runtime.key >= find_runtime(moved).key)
    assert where(found)["t"] != "folded"


def test_a_quantization_is_moved_over_a_slice_between_a_concat():
    """1.19 moves it, but keeps the pair around the Slice."""
    body = "c = Concat<axis=0>(d, e) t = Slice(c, one, k) y = QuantizeLinear(t, s, z)"
    text = f"(uint8[2,6] x) => (uint8[?,?] y) <{SCALED}> {INTO} e = DequantizeLinear(x, s, z) {body} }}"
    found = {version: where(placed(text, version)) for version in ("1.18.0", "1.19.2", "1.20.1")}
    assert [found["1.18.0"][name] == "folded" for name in "dey"] == [False, False, False]
    assert [found["1.19.2"][name] == "folded" for name in "dey"] == [True, True, False]
    assert [found["1.20.1"][name] == "folded" for name in "dey"] == [True, True, True]


@pytest.mark.parametrize(("version", "moved"), [("1.18.0", False), ("1.20.1", True), ("1.24.4", True)])
@pytest.mark.parametrize("outputs", ["float[?] o, float[?] u", "float[?] o, float[?] t"])
def test_several_readers(version, moved, outputs):
    found = placed(
        f"(uint8[2,6] x) => ({outputs}) <{SCALED}> {INTO} t = Reshape(d, k) o = Relu(t) u = Neg(t) }}", version
    )
    assert (where(found)["d"] == "folded") is moved


def test_a_reader_has_a_pair_for_each_time_that_it_reads():
    """1.19 has quantizations of opset 21 on the CPU, where INT8 becomes UINT8 if one reads it, and two read it here:
    the QuantizeLinear behind the Add has another type."""
    found = placed(
        f"""(int8[2,6] x) => (uint8[2,6] y) <{SCALED}, int8 i = {{0}}> {{ d = DequantizeLinear(x, s, i)
            t = Slice(d, none, two) a = Add(t, t) y = QuantizeLinear(a, s, z) }}""".replace(
            "int8 i", "int64[1] none = {0}, int64[1] two = {2}, int8 i"
        ),
        "1.19.2",
        21,
    )
    assert (where(found)["y"], found.copies) == ("CPU", (2, 3))


@pytest.mark.parametrize("version", ["1.19.2", "1.20.1", "1.24.4", "1.30.0"])
@pytest.mark.parametrize(
    ("read", "moved"),
    [
        ("e = DequantizeLinear(v, s, z)", True),
        ("q = QuantizeLinear(t, r, z) e = DequantizeLinear(q, r, z)", False),
    ],
    ids=["others alone", "a QuantizeLinear, too"],
)
def test_a_quantize_linear_among_several_readers(read, moved, version):
    """Nothing is then moved over the node. What the Add reads behind it is seen by what becomes of the Add."""
    found = placed(
        f"""(uint8[2,6] x, uint8[6,2] v) => (float[6,2] n, uint8[6,2] y) <{SCALED}, float r = {{0.25}}> {INTO}
            t = Transpose(d) n = Neg(t) {read} a = Add(t, e) y = QuantizeLinear(a, s, z) }}""",
        version,
    )
    assert (where(found)["y"] == "folded") is moved


def test_integers_of_32_bits_fail():
    found = placed("""(int32[2,6] x) => (float[?,?] o) <float s = {0.5}, int32 z = {0}>
                      { d = DequantizeLinear(x, s, z) t = Transpose(d) o = Relu(t) }""")
    assert found.created is False
    assert "which requires a QuantizeLinear to INT32" in found.failure.message


@pytest.mark.parametrize(("body", "created"), [("o = Relu(t)", False), ("o = QuantizeLinear(t, s, z)", True)])
@pytest.mark.parametrize("moving", ["Unsqueeze(d, one)", "Unsqueeze(d, none)"])
def test_ranks(moving, body, created):
    """A DequantizeLinear of opset 21 takes four dimensions at most, where it is then."""
    kind = "float" if "Relu" in body else "uint8"
    found = placed(f"(uint8[1,4,6,6] x) => ({kind}[?,?,?,?,?] o) <{SCALED}, int64[1] none = {{0}}> "
                   f"{INTO} t = {moving} {body} }}", "1.24.4", 21)  # fmt: skip
    assert found.created is created


def test_one_that_is_dropped_may_have_any_rank():
    found = placed(f"(uint8[1,1,2,2,3] x) => (uint8[?,?] o) <{SCALED}> "
                   f"{INTO} t = Flatten(d) o = QuantizeLinear(t, s, z) }}", "1.24.4", 21)  # fmt: skip
    assert (found.created, where(found)["d"]) == (True, "folded")


WEIGHTS = (
    "(float[2,3] x) => (float[?,?] o{}) <int8[4,3] w = {{1,2,3,4,5,6,7,8,9,10,11,12}}, float s = {{0.1}}, "
    "int8 z = {{0}}, float[4] c = {{1,2,3,4}}, int8[4] n = {{0,0,0,0}}>"
)


@pytest.mark.parametrize(
    ("more", "body", "versions"),
    [
        ("", "d = DequantizeLinear(w, s, z) t = Transpose(d) o = MatMul(x, t)", "1.24.4 1.30.0"),
        ("", "d = DequantizeLinear(w, s) t = Transpose(d) o = MatMul(x, t)", "1.24.4"),
        ("", "d = DequantizeLinear<axis=0>(w, c, n) t = Transpose<perm=[1,0]>(d) o = MatMul(x, t)", "1.24.4 1.30.0"),
        (
            ", float[4,3] r",
            "d = DequantizeLinear(w, s, z) t = Transpose<perm=[1,0]>(d) o = MatMul(x, t) r = Neg(d)",
            "1.24.4 1.30.0",
        ),
    ],
    ids=["one scale", "no zero point", "a scale for each row", "another reader"],
)
def test_a_transpose_of_a_dequantized_constant(more, body, versions):
    """As ONNX Runtime folds it, asked live."""
    for version in ("1.24.4", "1.30.0"):
        graph = graph_of(f"{WEIGHTS.format(more)} {{ {body} }}", 17, version)
        ensure_unique_dq_for_node_unit(graph)
        qdq_propagation(graph)
        is_left = any(node.op_type == "Transpose" for node in graph.nodes)
        assert (is_left, graph.failing) == (version not in versions, {})
        if not is_left:
            product = next(node for node in graph.nodes if node.op_type == "MatMul")
            (source,) = [node for node in product.producers if node.op_type == "DequantizeLinear"]
            axis = attribute(source, "axis")
            assert graph.facts.shape(source.inputs[0].known) == (3, 4)
            assert axis is None or axis.i == 1


@pytest.mark.parametrize(
    ("node", "version", "fails"),
    [
        ("DequantizeLinear<axis=0>(w, c) t = Transpose<perm=[1,0]>(d)", "1.24.4", True),
        ("DequantizeLinear<axis=0>(w, c) t = Transpose<perm=[1,0]>(d)", "1.30.0", False),
        ("DequantizeLinear<axis=0>(w, c, n) t = Transpose(d)", "1.24.4", True),
        ("DequantizeLinear<axis=0>(w, c, n) t = Transpose(d)", "1.30.0", True),
    ],
    ids=["no zero point", "no zero point in a newer version", "no permutation", "no permutation in a newer version"],
)
def test_transposes_that_fail(node, version, fails):
    """As session creation fails, asked live."""
    graph = graph_of(f"{WEIGHTS.format('')} {{ d = {node} o = MatMul(x, t) }}", 17, version)
    qdq_propagation(graph)
    assert [each.op_type for each in graph.failing] == (["Transpose"] if fails else [])
