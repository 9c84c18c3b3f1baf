"""The pass dmlsplit.onnxruntime.passes.qdq_selector_action_transformer: all models were asked of 1.18.0, 1.20.1, 1.22.0
and 1.24.4, most of 1.19.2, 1.23.2 and 1.30.0, too."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.onnxruntime.passes.qdq_selector_action_transformer import qdq_selector_action_transformer
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests.models import model
from tests.onnxruntime.passes import after
from tests.onnxruntime.placements import placed, where
from tests.onnxruntime.whole_models import predicted

GIVEN = """float s = {0.5}, float u = {0.25}, float m = {-0.5}, float[1] v = {0.5}, uint8 z = {3}, uint8 w = {3},
           uint8 o = {0}, uint8[1] a = {3}, int8 i = {3}, int64[1] k = {144}, int64[1] one = {1}, float lo = {0},
           float hi = {1000}"""
HEAD = f"(uint8[1,4,6,6] x) => (uint8[?] y) <{GIVEN}>"
FRONT = "d = DequantizeLinear(x, s, z)"
VERSIONS = ["1.18.0", "1.20.1", "1.22.0", "1.24.4", "1.30.0"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{FRONT} t = Reshape(d, k) y = QuantizeLinear(t, s, z)", ["y = Reshape(x,k)"]),
        (f"{FRONT} t = Reshape(d, k) y = QuantizeLinear(t, s, w)", ["y = Reshape(x,k)"]),
        (f"{FRONT} t = Reshape(d, k) y = QuantizeLinear(t, v, a)", ["y = Reshape(x,k)"]),
        (f"{FRONT} t = Sigmoid(d) y = QuantizeLinear(t, u, o)", ["y = QLinearSigmoid(x,s,z,u,o)"]),
        (f"{FRONT} t = Concat<axis=0>(d) y = QuantizeLinear(t, u)", ["y = QLinearConcat(x,s,z,u)"]),
        ("n = Cast<to=2>(x) d = DequantizeLinear(n, s, z) q = QuantizeLinear(d, s, z) y = Flatten(q)",
         ["n = Cast(x)", "y = Flatten(n)"]),
        (f"{FRONT} y = QuantizeLinear(d, s, z)", ["y = Identity(x)"]),
        ("n = Cast<to=2>(x) d = DequantizeLinear(n, s, z) y = QuantizeLinear(d, s, z)", ["y = Cast(x)"]),
        (f"{FRONT} y = QuantizeLinear(d, u, z)", ["d = DequantizeLinear(x,s,z)", "y = QuantizeLinear(d,u,z)"]),
    ],
    ids=["a pair", "equal zero points", "vectors of one", "computed", "joined", "nothing between", "input to output",
         "at an output", "other scales"],
)  # fmt: skip
def test_what_is_left(body, expected):
    assert after(qdq_selector_action_transformer, f"{HEAD} {{ {body} }}") == expected


POOL = "t = MaxPool<kernel_shape=[2,2]>(d)"
MEAN = "t = AveragePool<kernel_shape=[2,2]>(d)"
QUANTIZED = "y = QuantizeLinear(t, s, z)"
INTO = f"{FRONT} t = "


@pytest.mark.parametrize(
    ("body", "dropped"),
    [
        (f"{FRONT} t = Flatten(d) y = QuantizeLinear(t, u, z)", []),
        (f"{FRONT} t = Flatten(d) y = QuantizeLinear(t, s)", []),
        (f"{FRONT} t = Neg(d) {QUANTIZED}", []),
        (f"{FRONT} t = Flatten(d) n = Neg(t) {QUANTIZED}", []),
        ("n = Neg(e) d = DequantizeLinear(x, e, z) t = Flatten(d) y = QuantizeLinear(t, e, z)", []),
        ("d = DequantizeLinear(x, m, z) t = Flatten(d) y = QuantizeLinear(t, m, z)", ["1.20.1"]),
        (f"d = DequantizeLinear(x, m, z) {POOL} y = QuantizeLinear(t, m, z)", []),
        (f"{FRONT} t = Flatten(d) n = Neg(d) {QUANTIZED}", ["1.20.1"]),
        (f"{FRONT} {POOL} {QUANTIZED}", ["1.18.0"]),
        (f"{FRONT} {POOL} y = QuantizeLinear(t, s, i)", []),
        (f"{FRONT} t = ReduceMax(d) {QUANTIZED}", ["1.20.1"]),
        (f"{FRONT} t = ReduceMin(d) {QUANTIZED}", ["1.20.1"]),
        (f"{FRONT} t = Resize(d, , r) {QUANTIZED}", ["1.18.0", "1.22.0"]),
        (f"{FRONT} t = DepthToSpace<blocksize=2>(d) {QUANTIZED}", []),
        (f"{FRONT} {MEAN} {QUANTIZED}", ["1.22.0"]),
        (f"{FRONT} {MEAN} y = QuantizeLinear(t, m)", ["1.22.0"]),
        (f"{FRONT} {MEAN} y = QuantizeLinear(t, s, i)", []),
        (f"{FRONT} t = GlobalAveragePool(d) y = QuantizeLinear(t, v, a)", ["1.22.0"]),
        (f"{FRONT} t = Sigmoid(d) n = QuantizeLinear(t, s, w) {QUANTIZED}", []),
        (f"{FRONT} t = Add(d, d) {QUANTIZED}", ["1.18.0"]),
        (f"{FRONT} t = Mul(d, d) {QUANTIZED}", []),
        (f"{FRONT} t = Add(d, h) {QUANTIZED}", []),
        (f"{FRONT} t = Concat<axis=0>(d, d) {QUANTIZED}", ["1.18.0"]),
        (f"{FRONT} t = MatMul(d, d) {QUANTIZED}", ["1.18.0"]),
        (f"{FRONT} t = MatMul(d, h) {QUANTIZED}", []),
        (f"{FRONT} t = Conv(d, f) {QUANTIZED}", []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", VERSIONS)
def test_versions(body, dropped, version):
    """`dropped` are the first version that drops what quantizes, and the first that does not again."""
    kind, others = "int8" if body.endswith("i)") else "uint8", ", float[?] n" if "n = Neg" in body else ""
    head = f"(uint8[1,4,6,6] x, float e, float[4,4,1,1] f) => ({kind}[?] y{others})"
    more = "float[4] r = {1, 1, 2, 2}, float[6] h = {1, 2, 3, 4, 5, 6}"
    found = placed(f"{head} <{GIVEN}, {more}> {{ {body} }}", version)
    keys = [find_runtime(each).key for each in dropped]
    expected = sum(find_runtime(version).key >= each for each in keys) == 1
    assert [where(found)[name] == "folded" for name in "dty"] == [expected, False, expected]
    assert found.created is not False  # the output is declared with another rank, which leaves some unknown


@pytest.mark.parametrize(
    ("version", "opset", "expected"),
    [
        ("1.24.4", 11, False),
        ("1.24.4", 12, True),
        ("1.24.4", 22, False),
        ("1.30.0", 11, False),
        ("1.30.0", 12, True),
        ("1.30.0", 22, True),
    ],
)
def test_opsets_whose_pools_move_quantized_elements(version, opset, expected):
    text = f"(uint8[1,4,6,6] x) => (uint8[1,4,5,5] y) <{GIVEN}> {{ {FRONT} {POOL} {QUANTIZED} }}"
    found = placed(text, version, opset)
    assert [where(found)[name] == "folded" for name in "dy"] == [expected, expected]
    assert found.created is True


def test_a_first_reader_keeps_what_dequantizes():
    head = f"(uint8[1,4,6,6] x) => (uint8[?] y, float[?] n) <{GIVEN}>"
    found = placed(f"{head} {{ {FRONT} n = Neg(d) t = Flatten(d) {QUANTIZED} }}")
    assert [where(found)[name] for name in "dty"] == ["DML", "DML", "folded"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("kind", "dropped"), [("uint8", True), ("int16", True)])
def test_splits(kind, dropped, version):
    found = placed(
        f"""({kind}[2,6] x) => ({kind}[?] y, {kind}[?] w) <float s = {{0.5}}, {kind} z = {{3}}> {{ {FRONT}
            [p] t, u = Split<axis=1, num_outputs=2>(d) y = QuantizeLinear(t, s, z) w = QuantizeLinear(u, s, z) }}""",
        version,
        21,
    )
    assert [where(found)[name] == "folded" for name in "dpyw"] == [dropped, False, dropped, dropped]
    assert found.copies == (0, 0)


@pytest.mark.parametrize("second", ["Cast<to=2>(u)", "QuantizeLinear(u, e, z)"], ids=["no other", "another scale"])
def test_splits_that_stay(second):
    found = placed(
        f"""(uint8[2,6] x) => (uint8[?] y, uint8[?] w) <float s = {{0.5}}, float e = {{0.25}}, uint8 z = {{3}}> {{
            {FRONT} [p] t, u = Split<axis=1>(d) y = QuantizeLinear(t, s, z) w = {second} }}"""
    )
    assert where(found)["d"] == where(found)["y"] == "DML"


@pytest.mark.parametrize(
    ("types", "dropped"),
    [
        (("uint8", "uint8"), True),
        (("uint8", "int8"), True),
        (("int8", "uint8"), False),
        (("int8", "int8"), False),
        (("uint16", "uint16"), False),
    ],
)
@pytest.mark.parametrize("behind", [True, False], ids=["quantized", "of floats"])
def test_products(types, dropped, behind):
    left, right = types
    result = f"{left}[?] y" if behind else "float[?] t"
    found = placed(
        f"""({left}[2,2] x, {right}[2,2] c) => ({result}) <float s = {{0.5}}, {left} z = {{0}}, {right} b = {{0}}> {{
            {FRONT} e = DequantizeLinear(c, s, b) t = MatMul(d, e) {QUANTIZED if behind else ""} }}""",
        "1.24.4",
        21,
    )
    assert [where(found)[name] == "folded" for name in "dte"] == [dropped, False, dropped]


@pytest.mark.parametrize(
    ("weights", "bias", "dropped"),
    [("uint8", "int32", True), ("int8", "int32", True), ("int16", "int32", False), ("uint8", "uint8", False)],
)
def test_convolutions(weights, bias, dropped):
    found = placed(
        f"""(uint8[1,2,6,6] x, {weights}[2,2,1,1] f, {bias}[2] c) => (uint8[?] y) <float s = {{0.5}}, uint8 z = {{3}},
            {weights} b = {{0}}, {bias} i = {{0}}> {{ {FRONT}
            e = DequantizeLinear(f, s, b) g = DequantizeLinear(c, s, i) t = Conv(d, e, g) {QUANTIZED} }}""",
        "1.24.4",
        21,
    )
    assert [where(found)[name] == "folded" for name in "degty"] == [dropped] * 3 + [False, dropped]


@pytest.mark.parametrize(
    ("version", "scale", "dropped"),
    [
        ("1.24.4", "{1.0}", True),
        ("1.30.0", "{0.25}", True),
        ("1.30.0", "{0.2524}", True),
        ("1.30.0", "{0.2551}", False),
        ("1.30.0", "", False),
    ],
    ids=["any", "the product", "about the product", "another", "an input"],
)
def test_scales_of_biases(version, scale, dropped):
    given = f", float v = {scale}" if scale else ""
    found = placed(
        f"""(uint8[1,2,6,6] x{"" if scale else ", float v"}) => (uint8[?] y) <float s = {{0.5}}, uint8 z = {{3}},
            uint8[2,2,1,1] f = {{1,2,3,4}}, int32[2] c = {{5,6}}, int32 i = {{0}}{given}> {{ {FRONT}
            e = DequantizeLinear(f, s, z) g = DequantizeLinear(c, v, i) t = Conv(d, e, g) {QUANTIZED} }}""",
        version,
    )
    assert {where(found)[name] for name in "degy"} == ({"folded"} if dropped else {"DML"})


@pytest.mark.parametrize(
    ("behind", "left"),
    [
        ("y = Neg(e)", False),
        ("y = Mul(e, e)", True),
        ("y = Neg(e) v = Cast<to=6>(q)", True),
        ("y = Neg(e) v = Abs(e)", True),
        ("y = Identity(e)", False),
    ],
    ids=["one use", "two of the DequantizeLinear", "two readers", "two behind", "an output"],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_pair_that_gives_what_it_reads(version, behind, left):
    """It stays where what it gives is used several times. Observed."""
    kinds = {"Cast": ", int32[2,4] v", "Abs": ", float[2,4] v"}
    more = next((kind for op, kind in kinds.items() if op in behind), "")
    found = placed(
        f"""(uint8[2,4] x) => (float[2,4] y{more}) <float s = {{0.5}}, uint8 z = {{3}}> {{ {FRONT}
            q = QuantizeLinear(d, s, z) e = DequantizeLinear(q, s, z) {behind} }}""",
        version,
    )
    assert (where(found)["d"], where(found)["q"]) == (("DML", "DML") if left else ("folded", "folded"))


@pytest.mark.parametrize(("kind", "dropped"), [("uint8", True), ("uint16", False)])
def test_the_largest_of_quantized_elements(kind, dropped):
    head = f"({kind}[2,6] x) => (int64[?,?] y) <float s = {{0.5}}, {kind} z = {{3}}>"
    found = placed(f"{head} {{ {FRONT} y = ArgMax(d) }}", "1.24.4", 21)
    assert [where(found)[name] == "folded" for name in "dy"] == [dropped, False]


@pytest.mark.parametrize(
    ("version", "body", "dropped"),
    [
        ("1.18.0", "t = Add(d, d) r = Relu(t)", "dry"),
        ("1.18.0", "t = Add(d, d) r = Clip(t, lo)", "dry"),
        ("1.18.0", "t = Flatten(d) r = Clip(t, hi)", ""),
        ("1.18.0", "t = Add(d, d) r = Relu(t) q = QuantizeLinear(r, s)", ""),
        ("1.20.1", "t = Flatten(d) r = Relu(t)", ""),
        ("1.24.4", "t = Flatten(d) r = Relu(t)", ""),
        ("1.24.4", "t = Add(d, d) r = Clip(t, lo)", ""),
        ("1.24.4", "t = Add(d, d) r = Clip(t)", ""),
        ("1.18.0", "t = Add(d, d) r = Clip(t)", "dry"),
        ("1.24.4", "t = MatMul(d, d) r = Relu(t) q = QuantizeLinear(r, s, z)", ""),
    ],
)
def test_clips(version, body, dropped):
    found = placed(
        f"(uint8[1,4,6,6] x) => (uint8[?] y) <{GIVEN}> {{ d = DequantizeLinear(x, s, o) {body} "
        f"y = QuantizeLinear(r, s, {'z' if 'q =' in body else 'o'}) }}",
        version,
    )
    assert {name for name in "dry" if where(found)[name] == "folded"} == set(dropped)
    assert found.created is not False


def test_a_clip_by_strings():
    head = f'(uint8[1,4,6,6] x) => (uint8[?] y) <{GIVEN}, string f = {{"a"}}, string g = {{"b"}}>'
    body = "d = DequantizeLinear(x, s, o) t = Add(d, d) r = Clip(t, f, g) y = QuantizeLinear(r, s, o)"
    assert placed(f"{head} {{ {body} }}", "1.24.4").created is False, "its bounds have the type of what it clips"


@pytest.mark.parametrize(
    ("version", "opset", "body", "message"),
    [
        ("1.22.0", 17, f"{INTO}LeakyRelu(d) {QUANTIZED}", "but DirectML has no kernel for it"),
        ("1.22.0", 17, f"{INTO}Softmax(d) {QUANTIZED}", "but DirectML has no kernel for it"),
        ("1.20.1", 21, f"{INTO}MatMul(d, d) {QUANTIZED}", "but DirectML has no kernel for it"),
        ("1.24.4", 17, f"{FRONT} {MEAN} y = QuantizeLinear(t, v, a)", "must be scalars"),
        ("1.18.0", 17, f"{INTO}Add(d, d) y = QuantizeLinear(t, v, a)", "must be scalars"),
        (
            "1.24.4",
            17,
            "d = DequantizeLinear(x, s, o) [t] t = Add(d, d) r = Relu(t) y = QuantizeLinear(r, s, o)",
            "two nodes temporarily have the same name",
        ),
        (
            "1.30.0",
            17,
            "d = DequantizeLinear(x, s, o) t = Add(d, d) r = Clip(t, , hi) y = QuantizeLinear(r, s, o)",
            "left",
        ),
        (
            "1.22.0",
            17,
            "d = DequantizeLinear(x, s, o) t = Add(d, d) r = Clip(t, lo, hi) y = QuantizeLinear(r, s, o)",
            "left without its inputs",
        ),
    ],
)
def test_sessions_that_fail(version, opset, body, message):
    found = placed(f"{HEAD} {{ {body} }}", version, opset)
    assert found.created is False
    assert message in found.failure.message


FLOATS_OF_8 = "(float8e5m2[2,4] x) => ({}) <float s = {{0.5}}, float8e5m2 z = {{0}}, int64[1] k = {{8}}>"
INTEGERS = "({}[2,4] x) => ({}) <float s = {{0.5}}, {} z = {{0}}, int64[1] k = {{0}}>"


def of_integers(kind, outputs):
    return INTEGERS.format(kind, outputs, kind)


@pytest.mark.parametrize(
    ("text", "opset", "version", "message"),
    [
        (f"{FLOATS_OF_8.format('float8e5m2[8] y')} {{ {INTO}Reshape(d, k) {QUANTIZED} }}",
         19, "1.24.4", "but DirectML has no kernel for that"),
        (f"{FLOATS_OF_8.format('float8e5m2[8] y')} {{ {INTO}Reshape(d, k) {QUANTIZED} }}", 21, "1.18.0", ""),
        (f"{FLOATS_OF_8.format('float8e5m2[8] y')} {{ {INTO}Reshape(d, k) {QUANTIZED} }}", 23, "1.24.4", ""),
        (f"{FLOATS_OF_8.format('float8e5m2[4,2] y')} {{ {INTO}Transpose(d) {QUANTIZED} }}",
         21, "1.18.0", "but the CPU has no kernel for that"),
        (f"{FLOATS_OF_8.format('float8e5m2[4,2] y')} {{ {INTO}Transpose(d) {QUANTIZED} }}", 21, "1.20.1", ""),
        (f"{FLOATS_OF_8.format('float8e5m2[2,4] y')} {{ {INTO}Sigmoid(d) {QUANTIZED} }}", 19, "1.20.1", ""),
        (f"{FLOATS_OF_8.format('float8e5m2[2,4] y')} {{ {INTO}Sigmoid(d) {QUANTIZED} }}",
         19, "1.22.0", "a QLinearSigmoid"),
        (f"{FLOATS_OF_8.format('int64[1,4] y')} {{ {FRONT} y = ArgMax(d) }}", 19, "1.24.4", "has to copy"),
        (f"{of_integers('uint8', 'uint8[1,4] y')} {{ {INTO}ReduceMax(d, k) {QUANTIZED} }}",
         18, "1.20.1", "has to copy"),
        (f"{of_integers('int8', 'int8[1,4] y')} {{ {INTO}ReduceMin(d, k) {QUANTIZED} }}", 18, "1.30.0", "has to copy"),
        (f"{of_integers('int8', 'int8[1,4] y')} {{ {INTO}ReduceMin(d, k) {QUANTIZED} }}", 20, "1.30.0", ""),
        (f"{of_integers('int32', 'int64[1,4] y')} {{ {FRONT} y = ArgMax(d) }}", 17, "1.24.4", ""),
        (f"{of_integers('int32', 'float[2,2] y')} {{ {FRONT} y = MatMul(d, d) }}".replace("2,4", "2,2"), 17, "1.24.4",
         "a MatMulIntegerToFloat"),
    ],
)  # fmt: skip
def test_elements_without_a_kernel(text, opset, version, message):
    """The provider is chosen before, for FLOAT: the process ends, or the session fails, where there is no kernel."""
    found = placed(text, version, opset)
    assert found.created is (not message)
    if message:
        assert message in found.failure.message
    else:
        assert (where(found)["d"] == "folded") is ("Sigmoid" not in text)


@pytest.mark.parametrize("opset", [22, 23])
def test_on_the_cpu(opset):
    """A pool of opset 22 is on the CPU, and takes quantized elements there, too."""
    found = placed(f"{HEAD} {{ {FRONT} {MEAN} {QUANTIZED} }}", "1.24.4", opset)
    assert [where(found)[name] for name in "dty"] == ["folded", "CPU", "folded"]
    assert found.copies == (0, 0)


def test_an_operator_of_the_model_on_the_cpu():
    """Versions up to 1.20 run a QLinearMatMul of opset 21 there."""
    found = placed(
        """(uint8[2,2] x, uint8[2,2] c) => (uint8[?,?] y) <float s = {0.5}, uint8 z = {3}> {
           y = QLinearMatMul(x, s, z, c, s, z, s, z) }""",
        "1.20.1",
        21,
    )
    assert (found.created, where(found)["y"]) == (True, "CPU")


WEIGHTS = ",".join("123456" * 6)


@pytest.mark.parametrize(
    ("given", "scales", "more", "packed"),
    [
        ("int8[6,6]", "float s = {1}, int8 z = {0}", "", True),
        ("uint8[6,6]", "float s = {1}, uint8 z = {0}", "", True),
        ("int8[6,6]", "float[6] s = {1,1,1,1,1,1}, int8[6] z = {0,0,0,0,0,0}", "", True),
        ("int8[6,6]", "float[1] s = {1}, int8[1] z = {0}", "", False),
        ("int8[6,6]", "float s = {1}, int8 z = {0}", "n = QuantizeLinear(y, s, z)", False),
        ("int8[1,6,6]", "float s = {1}, int8 z = {0}", "", False),
    ],
    ids=["one scale", "unsigned", "by column", "a vector of one", "another quantization", "several matrices"],
)
@pytest.mark.parametrize("version", ["1.24.4", "1.30.0"])
def test_packed_weights(given, scales, more, packed, version):
    outputs = "float[1,6,6] y, int8[1,6,6] n" if more else "float[1,6,6] y"
    found = placed(
        f"""(float[1,6,6] x) => ({outputs}) <{scales}, {given} w = {{{WEIGHTS}}}> {{
            d = DequantizeLinear(w, s, z) y = MatMul(x, d) {more} }}""",
        version,
        21,
    )
    assert (where(found)["d"] == "folded") is (packed and version == "1.30.0")


@pytest.mark.parametrize(
    ("batch", "opset", "product", "created"),
    [
        ("4", 21, "MatMul(x, d)", False),
        ("4", 21, "MatMul(d, x)", True),
        ("1", 21, "MatMul(x, d)", True),
        ("4", 19, "MatMul(x, d)", True),
        ("4", 21, "Mul(x, d)", True),
    ],
)
@pytest.mark.parametrize("version", ["1.20.1", "1.22.0", "1.24.4"])
def test_directml_refuses_repeated_matrices(batch, opset, product, created, version):
    found = placed(
        f"""(float[{batch},6,6] x) => (float[{batch},6,6] y) <float s = {{1}}, int8 z = {{0}},
            int8[6,6] w = {{{WEIGHTS}}}> {{ d = DequantizeLinear(w, s, z) t = {product} y = Neg(t) }}""",
        version,
        opset,
    )
    assert found.created is created
    if not created:
        assert "by the same matrix of a DequantizeLinear more than once" in found.failure.message


@pytest.mark.parametrize(
    ("version", "opset", "given", "dropped"),
    [
        ("1.18.0", 21, "int8", False),
        ("1.18.0", 21, "uint8", True),
        ("1.24.4", 23, "int8", False),
        ("1.20.1", 21, "int8", True),
    ],
)
def test_pairs_on_the_cpu_are_unsigned(version, opset, given, dropped):
    """Quantizations of these opsets are on the CPU in 1.18 and 1.24: what one reads alone becomes UINT8, what two read
    does not."""
    found = placed(
        f"""(float[2,6] x) => (float[2,6] y) <float s = {{1}}, {given} z = {{0}}> {{
            q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) e = DequantizeLinear(q, s, z)
            t = Add(d, e) p = QuantizeLinear(t, s, z) y = DequantizeLinear(p, s, z) }}""",
        version,
        opset,
    )
    assert {name: where(found)[name] == "folded" for name in "dep"} == dict.fromkeys("dep", dropped)


CONV = """uint8 z = {3}, int8 n = {3}, uint8 o = {0}, float s = {0.5},
    uint8[4,4,1,1] k = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}"""


@pytest.mark.parametrize("version", ["1.22.0", "1.24.4", "1.30.0"])
def test_convolutions_on_the_cpu(version):
    """A Conv of opset 22 is there, and so is the QLinearConv in its place: what DirectML reads, too, is copied."""
    found = placed(
        f"""(uint8[1,4,6,6] x) => (uint8[1,4,6,6] y, float[1,4,6,6] f) <{CONV}> {{ {FRONT}
            e = DequantizeLinear(k, s, o) t = Conv(d, e) {QUANTIZED} f = DequantizeLinear(x, s, z) }}""",
        version,
        22,
    )
    assert [where(found)[name] for name in "detyf"] == ["folded", "folded", "CPU", "folded", "DML"]
    assert (found.created, found.copies, found.capture) == (True, (0, 1), False)


@pytest.mark.parametrize("version", ["1.24.4", "1.30.0"])
def test_signed_elements_on_the_cpu(version):
    """Between quantizations on the CPU they are made unsigned, and a kernel takes them with unsigned weights."""
    found = placed(
        f"""(float[1,4,6,6] x) => (float[1,4,6,6] y) <{CONV}> {{ q = QuantizeLinear(x, s, n)
            d = DequantizeLinear(q, s, n) e = DequantizeLinear(k, s, o) t = Conv(d, e) p = QuantizeLinear(t, s, n)
            y = DequantizeLinear(p, s, n) }}""",
        version,
        23,
    )
    assert (found.created, found.copies, where(found)["d"]) == (True, (0, 0), "folded")


@pytest.mark.parametrize("version", ["1.24.4", "1.30.0"])
@pytest.mark.parametrize("scales", ["float s = {1}, int8 z = {0}", "float[4] s = {1,1,1,1}, int8[4] z = {0,0,0,0}"])
@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("y = Gemm(x, d)", "packed"),
        ("y = Gemm(x, d, b)", "fails"),
        ("y = Gemm(x, d, m)", "not packed"),
        ("f = DequantizeLinear(i, u, n) y = Gemm(x, d, f)", "fails"),
        ("t = MatMul(x, d) y = Add(t, b)", "fails"),
        ("y = Gemm<alpha=0.5>(x, d, b)", "not packed"),
        ("y = Gemm<beta=0.5>(x, d, b)", "not packed"),
        ("y = Gemm<transA=1>(v, d, b)", "not packed"),
        ("t = Gemm(x, d, b) y = QuantizeLinear(t, u, o)", "not packed"),
    ],
)
def test_packed_weights_of_gemms(body, outcome, scales, version):
    """DirectML's kernel takes no bias."""
    found = placed(
        f"""(float[2,6] x, float[6,2] v) => ({"int8" if body.startswith("t = Gemm") else "float"}[2,4] y)
            <{scales}, float[4] b = {{1,2,3,4}}, float[1,4] m = {{1,2,3,4}}, int32[4] i = {{1,2,3,4}},
            float u = {{0.5}}, int32 n = {{0}}, int8 o = {{0}}, int8[6,4] w = {{{WEIGHTS[:47]}}}> {{
            d = DequantizeLinear(w, s, z) {body} }}""",
        version,
    )
    newest = version == "1.30.0"
    assert found.created is (outcome != "fails" or not newest)
    assert (where(found)["d"] == "folded") is (outcome != "not packed" and newest)
    if not found.created:
        assert "whose bias DirectML's kernel does not take" in found.failure.message


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("more", "created"), [("", True), ("e = DequantizeLinear(n, s, z) r = Neg(e)", False), ("r = Cast<to=1>(n)", False)]
)
def test_a_pair_in_front_of_an_output_whose_source_others_read(more, created, version):
    """The node in front of the pair gets the name of the output: nothing computes what the others read."""
    found = placed(
        f"""(float[2,4] x) => (uint8[2,4] y{", float[2,4] r" if more else ""}) <{GIVEN}> {{ n = QuantizeLinear(x, s, z)
            d = DequantizeLinear(n, s, z) y = QuantizeLinear(d, s, z) {more} }}""",
        version,
    )
    assert found.created is created
    if not created:
        assert "computes the output of a removed QuantizeLinear" in found.failure.message


def blocks(size, *, element=onnx.TensorProto.UINT4, batch=2, axis=0):
    """A product by weights of 32 rows and 8 columns with a scale for each block of rows, or of columns."""
    sizes = [32 // size, 8] if axis == 0 else [32, 8 // size]
    weights = helper.make_tensor("w", element, [32, 8], bytes(128), raw=True)
    scale = helper.make_tensor("s", onnx.TensorProto.FLOAT, sizes, np.ones(sizes, np.float32).tobytes(), raw=True)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], name="d", axis=axis, block_size=size),
        helper.make_node("MatMul", ["x", "d"], ["y"], name="y"),
    ]
    values = [helper.make_tensor_value_info(name, 1, [batch, size]) for name, size in (("x", 32), ("y", 8))]
    return model(nodes, values[:1], values[1:], 21, [weights, scale], ir_version=10)


def products(made, version):
    sessions = OnnxSessions(made, lambda *_: None)
    graph = sessions.of(find_runtime(version), SessionOptions(graph_fusion=False)).graphs[-1]
    return [node.op_type for node in optimized(graph).nodes]


@pytest.mark.parametrize(
    ("options", "packed"),
    [
        ({"size": 16}, True),
        ({"size": 32, "element": onnx.TensorProto.INT4}, True),
        ({"size": 8}, False),
        ({"size": 4, "axis": 1}, False),
    ],
    ids=["16 rows", "32 rows", "8 rows", "columns"],
)
@pytest.mark.parametrize("version", ["1.19.2", "1.20.1", "1.24.4", "1.30.0"])
def test_packed_weights_of_4_bits(options, packed, version):
    """As ONNX Runtime packs them, asked live."""
    expected = ["MatMulNBits"] if packed else ["DequantizeLinear", "MatMul"]
    assert products(blocks(**options), version) == expected


@pytest.mark.parametrize(
    ("version", "batch", "created"),
    [("1.19.2", 2, False), ("1.20.1", 2, False), ("1.20.1", "N", True), ("1.22.0", 2, True)],
)
def test_packed_weights_in_a_fused_graph(version, batch, created):
    """As session creation fails, asked live: not outside of fused graphs."""
    found = predicted(blocks(16, batch=batch), find_runtime(version))
    assert found.created is created
    assert created or "the fused graph is not made of its packed weights" in found.failure.message
